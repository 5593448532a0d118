package awscalls

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// permission is what a call needs: an action on a resource, which a request names as it likes.
type permission struct{ action, resource, index string }

// anyResource stands for the resource of a call that names none.
const anyResource = "*"

// tableRequest is what a request to DynamoDB says about its resource.
type tableRequest struct {
	TableName     string
	IndexName     string
	RequestItems  map[string]json.RawMessage              // of batches, by table
	TransactItems []map[string]struct{ TableName string } // of transactions, by kind
}

// Of transactions, the permissions are those of the calls that they are made of.
var transactionActions = map[string]string{
	"Put": "dynamodb:PutItem", "Update": "dynamodb:UpdateItem", "Delete": "dynamodb:DeleteItem",
	"ConditionCheck": "dynamodb:ConditionCheckItem", "Get": "dynamodb:GetItem",
}

// tablePermissions reads what a request to DynamoDB needs. target is X-Amz-Target, such as DynamoDB_20120810.GetItem.
// A request that names no table needs its permission for everything, so that no call goes unseen.
func tablePermissions(target string, body []byte) []permission {
	_, operation, found := strings.Cut(target, ".")
	if !found {
		return nil // not a call: a connection that is opened early, or a health check
	}
	var in tableRequest
	_ = json.Unmarshal(body, &in) // whatever the rest is, what was read counts
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
	return []permission{{action: action, resource: orAnyResource(in.TableName), index: in.IndexName}}
}

// secretPermissions reads what a request to Secrets Manager needs: it names its secret.
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
	if in.SecretID == "" {
		in.SecretID = in.Name
	}
	return []permission{{action: service + ":" + operation, resource: orAnyResource(in.SecretID)}}
}

func orAnyResource(name string) string {
	if name == "" {
		return anyResource
	}
	return name
}
