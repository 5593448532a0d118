// Package dynamo keeps the states of circuits in the table of limits: one item for each account, with one attribute for
// each operation.
//
// It decides nothing. Its invariants: each write replaces exactly the form that the caller knows, and each item
// expires.
package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/dynamoitem"
)

// Client is the part of the DynamoDB client that the store uses.
type Client interface {
	dynamoitem.Getter
	UpdateItem(
		context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.UpdateItemOutput, error)
}

// Store is the table of limits. It has no state and is safe for concurrent use.
type Store struct {
	client Client
	table  string
}

// New creates a Store over a table (LIMIT_TABLE).
func New(client Client, table string) *Store { return &Store{client: client, table: table} }

// keyPrefix begins the primary key of an item: "circuit#<platform>/<account>". An attribute has the name of its
// operation. The item also has expire_at, the table's time to live, in seconds.
const keyPrefix = "circuit#"

// ItemKey returns the primary key of the item with the circuits of an account.
func ItemKey(account string) string { return keyPrefix + account }

// Load implements circuit.Store: one GetItem.
func (s *Store) Load(ctx context.Context, key circuit.Key) (string, error) {
	item, err := dynamoitem.Get(ctx, s.client, s.table, ItemKey(key.Account))
	if err != nil {
		return "", dynamoitem.DescribeError("circuit: reading a state", err)
	}
	return dynamoitem.ReadText(item, key.Operation), nil
}

// Swap implements circuit.Store: one UpdateItem.
func (s *Store) Swap(
	ctx context.Context, key circuit.Key, old, next string, expireAt time.Time,
) (current string, swapped bool, err error) {
	input := &dynamodb.UpdateItemInput{
		TableName:                aws.String(s.table),
		Key:                      dynamoitem.Key(ItemKey(key.Account)),
		UpdateExpression:         aws.String("SET #form = :next, expire_at = :expire"),
		ConditionExpression:      aws.String("#form = :old"),
		ExpressionAttributeNames: map[string]string{"#form": key.Operation},
		ExpressionAttributeValues: dynamoitem.Item{
			":next": dynamoitem.Text(next), ":old": dynamoitem.Text(old), ":expire": dynamoitem.Number(expireAt.Unix()),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if old == "" {
		input.ConditionExpression = aws.String("attribute_not_exists(#form)")
		delete(input.ExpressionAttributeValues, ":old")
	}
	_, err = s.client.UpdateItem(ctx, input)
	var conditionErr *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &conditionErr):
		return dynamoitem.ReadText(conditionErr.Item, key.Operation), false, nil
	case err != nil:
		return "", false, dynamoitem.DescribeError("circuit: changing a state", err)
	}
	return next, true, nil
}
