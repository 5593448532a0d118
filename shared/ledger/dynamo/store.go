// Package dynamo keeps the ledger in one DynamoDB table: it is the only writer of conditions.
//
// Each method is one request of the service; the SDK may send it again, and a write of ours that was applied though its
// answer was lost is recognised by its Writer token and version. It knows no rule of a transaction's life. The invariant:
// no write without a condition, no request path that reads an index.
//
// The table's shape is Schema. An item must stay under the service's 400 KB: of what grows, the stored answer is bounded
// by the request it echoes (64 KiB), the conflicts by ledger.MaxConflicts, the notifications by the number of statuses, and
// their attempts and replays by ledger.MaxAttempts and ledger.MaxReplays, so an item stays under 150 KB.
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

// Client is what the store needs of the SDK's client.
type Client interface {
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// Store is the ledger's table. It holds no state; any number of goroutines may use it.
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

// Insert is ledger.Writer's: one PutItem on "absent, or expired at the new entry's UpdatedAt".
func (s *Store) Insert(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	return s.put(ctx, "inserting", e, &dynamodb.PutItemInput{
		ConditionExpression: aws.String("attribute_not_exists(pk) OR expire_at <= :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": wholeNumber(e.UpdatedAt.Unix()),
		},
	})
}

// Replace is ledger.Writer's: one PutItem on the version before.
func (s *Store) Replace(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	return s.put(ctx, "replacing", e, &dynamodb.PutItemInput{
		ConditionExpression:      aws.String("#version = :before"),
		ExpressionAttributeNames: map[string]string{"#version": attributeVersion},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":before": wholeNumber(e.Version - 1),
		},
	})
}

// put writes an entry under the condition of in, and returns the entry that is there instead, if its write was refused.
func (s *Store) put(ctx context.Context, tried string, e *ledger.Entry, in *dynamodb.PutItemInput) (*ledger.Entry, error) {
	tried += " a " + string(e.Kind)
	item, err := Encode(e)
	if err != nil {
		return nil, describeError(tried, err)
	}
	old, refused, err := s.putItem(ctx, item, in)
	if err != nil {
		return nil, describeError(tried, err)
	}
	if !refused {
		return nil, nil
	}
	if old == nil {
		return nil, ledger.ErrNotFound
	}
	existing, err := Decode(old)
	if err != nil {
		return nil, describeError(tried, err)
	}
	if e.Writer != "" && existing.Writer == e.Writer && existing.Version == e.Version {
		return nil, nil // our own write, whose answer was lost
	}
	return existing, nil
}

// putItem sends a conditional put. refused: the condition did not hold, and old is the item that is there, nil for none.
func (s *Store) putItem(ctx context.Context, item map[string]types.AttributeValue, in *dynamodb.PutItemInput) (old map[string]types.AttributeValue, refused bool, err error) {
	in.TableName, in.Item = aws.String(s.table), item
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	_, err = s.client.PutItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true, nil
	}
	return nil, false, err
}

// ClaimReference is ledger.Writer's: one PutItem on "absent, or names this charge".
func (s *Store) ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (string, error) {
	const tried = "claiming a reference"
	key := ledger.Key{Kind: ledger.Reference, ID: ledger.ReferenceID(merchantID, referenceCode)}
	item := map[string]types.AttributeValue{
		attributeKey:      textValue(key.String()),
		attributeChargeID: textValue(chargeID),
	}
	old, refused, err := s.putItem(ctx, item, &dynamodb.PutItemInput{
		ConditionExpression:       aws.String("attribute_not_exists(pk) OR charge_id = :charge"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":charge": textValue(chargeID)},
	})
	if err != nil {
		return "", describeError(tried, err)
	}
	if !refused {
		return chargeID, nil
	}
	holder, ok := old[attributeChargeID].(*types.AttributeValueMemberS)
	if !ok {
		return "", describeError(tried, wrongType(attributeChargeID))
	}
	return holder.Value, nil
}

// Get is ledger.Reader's.
func (s *Store) Get(ctx context.Context, key ledger.Key) (*ledger.Entry, error) {
	tried := "reading a " + string(key.Kind)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(s.table),
		Key:            map[string]types.AttributeValue{attributeKey: textValue(key.String())},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, describeError(tried, err)
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	e, err := Decode(out.Item)
	if err != nil {
		return nil, describeError(tried, err)
	}
	return e, nil
}

// DueKeys is ledger.Queue's: one Query of the index "due".
func (s *Store) DueKeys(ctx context.Context, shard int, before time.Time, limit int) ([]ledger.Key, error) {
	out, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName:              aws.String(s.table),
		IndexName:              aws.String(IndexDue),
		KeyConditionExpression: aws.String("due_shard = :shard AND due_at <= :before"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":shard":  dueShard(shard),
			":before": wholeNumber(before.UnixMilli()),
		},
		Limit: pageSize(limit),
	})
	if err != nil {
		return nil, describeError("listing what is due in shard "+strconv.Itoa(shard), err)
	}
	return keysOf(out.Items)
}

// keyOfCursor takes the key out of a cursor of Day, which is a DaySort: a moment, and the key behind it.
func keyOfCursor(cursor string) (string, bool) {
	moment, key, found := strings.Cut(cursor, "#")
	_, err := time.Parse(time.RFC3339, moment)
	kind, id, whole := strings.Cut(key, "#")
	return key, found && err == nil && whole && kind != "" && id != ""
}

// Day is ledger.Journal's: one Query of the index "day". The last page may be empty. A cursor that Day did not give is
// an error.
func (s *Store) Day(ctx context.Context, merchantID string, day time.Time, cursor string, limit int) ([]ledger.Key, string, error) {
	const tried = "listing a merchant's day"
	partition := textValue(ledger.MerchantDay(merchantID, day))
	in := &dynamodb.QueryInput{
		TableName:                 aws.String(s.table),
		IndexName:                 aws.String(IndexDay),
		KeyConditionExpression:    aws.String("merchant_day = :day"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":day": partition},
		Limit:                     pageSize(limit),
	}
	if cursor != "" {
		key, found := keyOfCursor(cursor)
		if !found {
			return nil, "", describeError(tried, errors.New("not a cursor"))
		}
		in.ExclusiveStartKey = map[string]types.AttributeValue{
			attributeKey: textValue(key), attributeMerchantDay: partition, attributeDaySort: textValue(cursor),
		}
	}
	out, err := s.client.Query(ctx, in)
	if err != nil {
		return nil, "", describeError(tried, err)
	}
	keys, err := keysOf(out.Items)
	if err != nil {
		return nil, "", err
	}
	next, _ := out.LastEvaluatedKey[attributeDaySort].(*types.AttributeValueMemberS)
	if next == nil {
		return keys, "", nil
	}
	return keys, next.Value, nil
}

// MaxPage is the most keys that one DueKeys or Day asks for.
const MaxPage = 1000

func pageSize(limit int) *int32 { return aws.Int32(int32(min(max(limit, 1), MaxPage))) }

func keysOf(items []map[string]types.AttributeValue) ([]ledger.Key, error) {
	keys := make([]ledger.Key, 0, len(items))
	for _, item := range items {
		key, err := decodeKey(item[attributeKey])
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// describeError says what was tried and why it failed, without any value of a client: of an error of the service its code alone,
// as its message may quote the request.
func describeError(tried string, err error) error {
	var service smithy.APIError
	if errors.As(err, &service) {
		return fmt.Errorf("ledger: %s: the table answered %s", tried, service.ErrorCode())
	}
	return fmt.Errorf("ledger: %s: %w", tried, err)
}
