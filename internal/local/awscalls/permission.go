package awscalls

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// permission is the permission that a call needs: an action on a resource, under the name in the request.
type permission struct{ action, resource, index string }

// anyResource is the resource of a call that names none.
const anyResource = "*"

// tableRequest has the fields of a request to DynamoDB that name its resources.
type tableRequest struct {
	TableName     string
	IndexName     string
	RequestItems  map[string]json.RawMessage              // of batches, by table
	TransactItems []map[string]struct{ TableName string } // of transactions, by kind
}

// transactionActions are the permissions of a transaction, by kind of item.
var transactionActions = map[string]string{
	"Put": "dynamodb:PutItem", "Update": "dynamodb:UpdateItem", "Delete": "dynamodb:DeleteItem",
	"ConditionCheck": "dynamodb:ConditionCheckItem", "Get": "dynamodb:GetItem",
}

// tablePermissions returns the permissions that a request to DynamoDB needs. target is X-Amz-Target, such as
// DynamoDB_20120810.GetItem. A request without a table needs its permission for every resource, so it is recorded too.
func tablePermissions(target string, body []byte) []permission {
	_, operation, found := strings.Cut(target, ".")
	if !found {
		return nil // not a call: an early connection or a health check
	}
	var in tableRequest
	_ = json.Unmarshal(body, &in) // the fields before an error count
	action := "dynamodb:" + operation
	var needed []permission
	for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
		needed = append(needed, permission{action: action, resource: table})
	}
	for _, item := range in.TransactItems {
		for kind, operand := range item {
			if name, known := transactionActions[kind]; known {
				needed = append(needed, permission{action: name, resource: operand.TableName})
			}
		}
	}
	if len(needed) > 0 {
		return needed
	}
	return []permission{{action: action, resource: cmp.Or(in.TableName, anyResource), index: in.IndexName}}
}

// secretPermissions returns the permission that a request to Secrets Manager needs.
func secretPermissions(target string, body []byte) []permission {
	service, operation, found := strings.Cut(target, ".")
	if !found {
		return nil
	}
	var in struct {
		SecretID string `json:"SecretId"`
		Name     string
	}
	_ = json.Unmarshal(body, &in)
	return []permission{{action: service + ":" + operation, resource: cmp.Or(in.SecretID, in.Name, anyResource)}}
}
