// Package dynamoitem builds and reads DynamoDB items and their attributes.
//
// It does not know any table. Its invariant: an absent attribute reads as the zero value of its type, and an error
// names the attribute, never its value.
package dynamoitem

import (
	"context"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"mobilegateway/shared/logsafe"
)

// Item is an item, or the key of one.
type Item = map[string]types.AttributeValue

// KeyAttribute is the partition key of every table of the gateway.
const KeyAttribute = "pk"

// Key returns the primary key of an item.
func Key(value string) Item { return Item{KeyAttribute: Text(value)} }

// Text returns a string attribute.
func Text(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }

// Number returns a number attribute.
func Number(value int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(value, 10)}
}

// ReadText returns a string attribute, "" if it is absent or has another type.
func ReadText(item Item, name string) string {
	if value, isText := item[name].(*types.AttributeValueMemberS); isText {
		return value.Value
	}
	return ""
}

// ReadNumber returns a number attribute, 0 if it is absent. Another type and a fraction are errors.
func ReadNumber(item Item, name string) (int64, error) {
	if item[name] == nil {
		return 0, nil
	}
	value, isNumber := item[name].(*types.AttributeValueMemberN)
	if !isNumber {
		return 0, logsafe.Errorf("attribute %s is not a number", logsafe.Name(name))
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0, logsafe.Errorf("attribute %s is not a whole number", logsafe.Name(name))
	}
	return n, nil
}

// Getter is the part of the DynamoDB client that reads one item.
type Getter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// Get reads an item by its key in one strongly consistent read; nil if there is none.
func Get(ctx context.Context, client Getter, table, key string) (Item, error) {
	output, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: Key(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return output.Item, nil
}

// MaxBatch is the number of items that one GetBatch reads: the service's limit.
const MaxBatch = 100

// BatchGetter is the part of the DynamoDB client that reads many items. It is not a part of a store's client, so that
// only programs that read batches link the call.
type BatchGetter interface {
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.BatchGetItemOutput, error)
}

// GetBatch reads up to MaxBatch items of a table by their different keys, in one strongly consistent call. found has
// those that exist, in no order. unread are the keys that the table did not read, because it throttles or the response
// is full. Without keys it calls nothing.
func GetBatch(ctx context.Context, client BatchGetter, table string, keys []Item) (found, unread []Item, err error) {
	if len(keys) == 0 {
		return nil, nil, nil
	}
	output, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(true)}},
	})
	if err != nil {
		return nil, nil, err
	}
	return output.Responses[table], output.UnprocessedKeys[table].Keys, nil
}

// DescribeError names the action that failed and its cause. An error of the service is reduced to its code, because its
// message may quote the request.
func DescribeError(action string, err error) error {
	if service, isAPIError := errors.AsType[smithy.APIError](err); isAPIError {
		return logsafe.Errorf("%s: the table returned %s", logsafe.Name(action), logsafe.Code(service.ErrorCode()))
	}
	return logsafe.Errorf("%s: %w", logsafe.Name(action), err)
}
