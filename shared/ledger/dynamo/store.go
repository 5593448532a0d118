// Package dynamo stores the ledger in one DynamoDB table: each write is one conditional request.
//
// It has no rules about the life of a transaction. The SDK may send a request again: a write of ours that was applied,
// although its response was lost, is recognised by its Writer token and version. The invariant: no write without a
// condition, and no merchant's request reads an index.
//
// Schema describes the table; codec.go has the names of the attributes. An item must stay under the service's 400 KB,
// and stays under 150 KB. The stored response is bounded by the request that it echoes (64 KiB), and the notifications
// by the number of statuses. MaxConflicts, MaxAttempts and MaxReplays of package ledger bound the other lists.
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"mobilegateway/shared/ledger"
)

type (
	item    = map[string]types.AttributeValue
	options = func(*dynamodb.Options)
)

// Client is the part of the SDK's client that the store uses.
type Client interface {
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...options) (*dynamodb.PutItemOutput, error)
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...options) (*dynamodb.GetItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, options ...options) (*dynamodb.QueryOutput, error)
}

// Store is the ledger's table. It has no state; any number of goroutines may use it.
type Store struct {
	client Client
	table  string
}

var (
	_ ledger.Writer   = (*Store)(nil)
	_ ledger.Reader   = (*Store)(nil)
	_ ledger.DueQueue = (*Store)(nil)
	_ ledger.DayIndex = (*Store)(nil)
)

// New makes the store of a table.
func New(client Client, table string) *Store { return &Store{client: client, table: table} }

// Insert implements ledger.Writer: the condition is "absent, or expired at the new entry's UpdatedAt".
func (s *Store) Insert(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	const condition = "attribute_not_exists(" + attributeKey + ") OR " + attributeExpireAt + " <= :value"
	return s.putEntry(ctx, "inserting", e, condition, numberValue(e.UpdatedAt.Unix()))
}

// Replace implements ledger.Writer: the condition is the version before.
func (s *Store) Replace(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	return s.putEntry(ctx, "replacing", e, attributeVersion+" = :value", numberValue(e.Version-1))
}

// putEntry sends a conditional put, and returns the stored entry if the condition is false. If that entry is our own
// write, whose response was lost, the put counts as done.
func (s *Store) putEntry(
	ctx context.Context, verb string, e *ledger.Entry, condition string, value types.AttributeValue,
) (*ledger.Entry, error) {
	action := verb + " a " + string(e.Kind)
	encoded, err := Encode(e)
	if err != nil {
		return nil, describeError(action, err)
	}
	_, err = s.client.PutItem(ctx, s.conditionalPut(encoded, condition, value))
	stored, refused := conflictingItem(err)
	switch {
	case err == nil:
		return nil, nil
	case !refused:
		return nil, describeError(action, err)
	case stored == nil:
		return nil, ledger.ErrNotFound
	}
	existing, err := Decode(stored)
	if err != nil {
		return nil, describeError(action, err)
	}
	if e.Writer != "" && existing.Writer == e.Writer && existing.Version == e.Version {
		return nil, nil
	}
	return existing, nil
}

// conditionalPut makes the request that stores an item under a condition, which names its one value ":value".
func (s *Store) conditionalPut(of item, condition string, value types.AttributeValue) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: aws.String(s.table), Item: of,
		ConditionExpression: aws.String(condition), ExpressionAttributeValues: item{":value": value},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// conflictingItem finds out whether a put was refused by its condition, and which item is stored: nil for none.
func conflictingItem(err error) (stored item, refused bool) {
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return nil, false
	}
	return failed.Item, true
}

// ClaimReference implements ledger.Writer: the condition is "absent, or of this charge".
func (s *Store) ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (string, error) {
	const (
		action    = "claiming a reference"
		condition = "attribute_not_exists(" + attributeKey + ") OR " + attributeChargeID + " = :value"
	)
	key := ledger.Key{Kind: ledger.Reference, ID: ledger.ReferenceID(merchantID, referenceCode)}
	claim := item{attributeKey: textValue(key.String()), attributeChargeID: textValue(chargeID)}
	_, err := s.client.PutItem(ctx, s.conditionalPut(claim, condition, textValue(chargeID)))
	if err == nil {
		return chargeID, nil
	}
	stored, refused := conflictingItem(err)
	if !refused {
		return "", describeError(action, err)
	}
	owner, ok := stored[attributeChargeID].(*types.AttributeValueMemberS)
	if !ok {
		return "", describeError(action, errors.New("the stored reference names no charge"))
	}
	return owner.Value, nil
}

// Get implements ledger.Reader.
func (s *Store) Get(ctx context.Context, key ledger.Key) (*ledger.Entry, error) {
	action := "reading a " + string(key.Kind)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.table), ConsistentRead: aws.Bool(true),
		Key: item{attributeKey: textValue(key.String())},
	})
	if err != nil {
		return nil, describeError(action, err)
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	e, err := Decode(out.Item)
	if err != nil {
		return nil, describeError(action, err)
	}
	return e, nil
}

// DueKeys implements ledger.DueQueue: one query of the index "due".
func (s *Store) DueKeys(ctx context.Context, shard int, before time.Time, limit int) ([]ledger.Key, error) {
	keys, _, err := s.queryKeys(ctx, &dynamodb.QueryInput{
		IndexName:              aws.String(IndexDue),
		KeyConditionExpression: aws.String(attributeDueShard + " = :shard AND " + attributeDueAt + " <= :before"),
		ExpressionAttributeValues: item{
			":shard":  dueShard(shard),
			":before": numberValue(before.UnixMilli()),
		},
	}, limit)
	if err != nil {
		return nil, describeError("listing the due entries of shard "+strconv.Itoa(shard), err)
	}
	return keys, nil
}

// Day implements ledger.DayIndex: one query of the index "day". The last page may be empty. A cursor that Day did not
// return is an error.
func (s *Store) Day(
	ctx context.Context, merchantID string, day time.Time, cursor string, limit int,
) (keys []ledger.Key, next string, err error) {
	const action = "listing a merchant's day"
	partition := textValue(ledger.MerchantDay(merchantID, day))
	in := &dynamodb.QueryInput{
		IndexName:                 aws.String(IndexDay),
		KeyConditionExpression:    aws.String(attributeMerchantDay + " = :day"),
		ExpressionAttributeValues: item{":day": partition},
	}
	if cursor != "" {
		if in.ExclusiveStartKey, err = startKey(partition, cursor); err != nil {
			return nil, "", describeError(action, err)
		}
	}
	keys, last, err := s.queryKeys(ctx, in, limit)
	if err != nil {
		return nil, "", describeError(action, err)
	}
	if sort, ok := last[attributeDaySort].(*types.AttributeValueMemberS); ok {
		key, err := decodeKey(last[attributeKey])
		if err != nil {
			return nil, "", describeError(action, err)
		}
		next = sort.Value + "#" + key.String()
	}
	return keys, next, nil
}

// startKey makes the key after which a page begins from a cursor of Day: a DaySort and a key.
func startKey(partition types.AttributeValue, cursor string) (item, error) {
	sort, key, _ := strings.Cut(cursor, "#")
	_, notKey := decodeKey(textValue(key))
	if _, err := time.Parse(ledger.DaySortLayout, sort); err != nil || notKey != nil {
		return nil, errors.New("not a cursor of this list")
	}
	return item{attributeKey: textValue(key), attributeMerchantDay: partition, attributeDaySort: textValue(sort)}, nil
}

// MaxPage is the maximum number of keys that one DueKeys or Day requests.
const MaxPage = 1000

// queryKeys sends a query, and returns the keys of its items and the key after which the next page begins.
func (s *Store) queryKeys(
	ctx context.Context, in *dynamodb.QueryInput, limit int,
) (keys []ledger.Key, last item, err error) {
	in.TableName, in.Limit = aws.String(s.table), aws.Int32(int32(min(max(limit, 1), MaxPage)))
	out, err := s.client.Query(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	for _, found := range out.Items {
		key, err := decodeKey(found[attributeKey])
		if err != nil {
			return nil, nil, err
		}
		keys = append(keys, key)
	}
	return keys, out.LastEvaluatedKey, nil
}

// describeError names the action that failed and its cause, without any value of a client. An error of the service is
// reduced to its code, because its message may quote the request.
func describeError(action string, err error) error {
	var service smithy.APIError
	if errors.As(err, &service) {
		return fmt.Errorf("ledger: %s: the table returned %s", action, service.ErrorCode())
	}
	return fmt.Errorf("ledger: %s: %w", action, err)
}
