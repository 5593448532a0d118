package awscalls

import (
	"cmp"
	"encoding/json"
	"strings"
)

// anyResource is the resource of a call that names none.
const anyResource = "*"

// tableRequest has the fields of a request to DynamoDB that name its resources.
type tableRequest struct {
	tableItem
	IndexName     string
	TransactItems []map[string]tableItem // of transactions, by kind of write
	RequestItems  map[string]batch       // of a BatchGetItem, by table
}

// batch has the keys of a BatchGetItem in one table.
type batch struct {
	Keys []itemKey
}

// itemKey is the partition key of every table.
type itemKey struct {
	PK struct{ S string } `json:"pk"`
}

// tableItem names an item: by its key, or by its content for a put.
type tableItem struct {
	TableName string
	Key, Item itemKey
}

// kind returns the item's kind, "" if the request names no item.
func (i tableItem) kind() string { return cmp.Or(i.Key.kind(), i.Item.kind()) }

func (k itemKey) kind() string {
	kind, _, _ := strings.Cut(k.PK.S, "#")
	return kind
}

// transactionActions are the permissions of a transaction, by kind of item.
var transactionActions = map[string]string{
	"Put": "dynamodb:PutItem", "Update": "dynamodb:UpdateItem", "Delete": "dynamodb:DeleteItem",
	"ConditionCheck": "dynamodb:ConditionCheckItem", "Get": "dynamodb:GetItem",
}

// tableCalls returns the calls of a request to DynamoDB, one for each permission that it needs. A request without a
// table needs its permission for every resource, so it is recorded too.
func (r *Recorder) tableCalls(operation string, body []byte) []Call {
	var in tableRequest
	_ = json.Unmarshal(body, &in) // the fields before an error count
	var needed []Call
	for _, item := range in.TransactItems {
		for kind, operand := range item {
			if name, known := transactionActions[kind]; known {
				call := Call{Action: name, Resource: r.logicalID(operand.TableName), Kind: operand.kind()}
				needed = append(needed, call)
			}
		}
	}
	for table, read := range in.RequestItems {
		for _, key := range read.Keys {
			call := Call{Action: "dynamodb:" + operation, Resource: r.logicalID(table), Kind: key.kind()}
			needed = append(needed, call)
		}
	}
	if len(needed) > 0 {
		return needed
	}
	resource := r.logicalID(cmp.Or(in.TableName, anyResource))
	if in.IndexName != "" {
		resource += "/index/" + in.IndexName
	}
	return []Call{{Action: "dynamodb:" + operation, Resource: resource, Kind: in.kind()}}
}

// secretCalls returns the call of a request to Secrets Manager.
func (r *Recorder) secretCalls(operation string, body []byte) []Call {
	var in struct {
		SecretID string `json:"SecretId"`
		Name     string
	}
	_ = json.Unmarshal(body, &in)
	secret := r.logicalID(cmp.Or(in.SecretID, in.Name, anyResource))
	return []Call{{Action: "secretsmanager:" + operation, Resource: secret}}
}

// logicalID returns the logical id of a table or a secret, else the name itself.
func (r *Recorder) logicalID(name string) string { return cmp.Or(r.logicalIDs[name], name) }
