// Package dynamo stores the ledger in one DynamoDB table: each write is one conditional request.
//
// It has no rules about the life of a transaction. The SDK may send a request again: a write of ours that was applied,
// although its response was lost, is recognised by its Writer token and version. The invariant: no write without a
// condition, and no request that moves money reads an index.
//
// Schema describes the table; codec.go has the names of the attributes. An item must stay under the service's 400 KB,
// and stays under 150 KB. The stored response is bounded by the request that it echoes (64 KiB), and the notifications
// by the number of statuses. MaxConflicts, MaxAttempts and MaxReplays of package ledger bound the other lists.
package dynamo

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
)

type (
	item    = dynamoitem.Item
	options = func(*dynamodb.Options)
)

// Client is the part of the SDK's client that the store uses.
type Client interface {
	dynamoitem.Getter
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...options) (*dynamodb.PutItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, options ...options) (*dynamodb.QueryOutput, error)
}

// Store is the ledger's table. It has no state; any number of goroutines may use it.
type Store struct {
	// PackResponses stores responses in their short form. Reads accept both forms with either value. Set it only if no
	// program from before the short form responds from this table (docs/deploy.md).
	PackResponses bool

	client Client
	table  string
}

var (
	_ ledger.Writer   = (*Store)(nil)
	_ ledger.Reader   = (*Store)(nil)
	_ ledger.DueQueue = (*Store)(nil)
	_ ledger.DayIndex = (*Store)(nil)

	_ ledger.ReferenceIndex = (*Store)(nil)
)

// New makes the store of a table. It does not pack responses.
func New(client Client, table string) *Store { return &Store{client: client, table: table} }

// Insert implements ledger.Writer: the condition is "absent, or expired at the new entry's UpdatedAt".
func (s *Store) Insert(ctx context.Context, e *ledger.Entry, _ ledger.Transition) (*ledger.Entry, error) {
	const condition = "attribute_not_exists(" + dynamoitem.KeyAttribute + ") OR " + attributeExpireAt + " <= :value"
	return s.putEntry(ctx, "inserting", e, condition, dynamoitem.Number(e.UpdatedAt.Unix()))
}

// Replace implements ledger.Writer: the condition is the version before, of the same first reservation. A key whose
// entry expired may have been reserved again, and the versions count from 1 again.
func (s *Store) Replace(ctx context.Context, e *ledger.Entry, _ ledger.Transition) (*ledger.Entry, error) {
	const condition = attributeVersion + " = :value AND " + attributeCreatedAt + " = " + createdValue
	return s.putEntry(ctx, "replacing", e, condition, dynamoitem.Number(e.Version-1))
}

// createdValue is the name of an entry's creation in a condition.
const createdValue = ":created"

// putEntry sends a conditional put, and returns the stored entry if the condition is false. If that entry is our own
// write, whose response was lost, the put counts as done. The condition may name createdValue beside ":value".
func (s *Store) putEntry(
	ctx context.Context, verb string, e *ledger.Entry, condition string, value types.AttributeValue,
) (*ledger.Entry, error) {
	action := "ledger: " + verb + " a " + string(e.Kind)
	encoded, err := s.encode(e)
	if err != nil {
		return nil, dynamoitem.DescribeError(action, err)
	}
	put := s.conditionalPut(encoded, condition, value)
	if strings.Contains(condition, createdValue) {
		put.ExpressionAttributeValues[createdValue] = encoded[attributeCreatedAt]
	}
	_, err = s.client.PutItem(ctx, put)
	stored, refused := conflictingItem(err)
	switch {
	case err == nil:
		return nil, nil
	case !refused:
		return nil, dynamoitem.DescribeError(action, err)
	case stored == nil:
		return nil, ledger.ErrNotFound
	}
	existing, err := Decode(stored)
	if err != nil {
		return nil, dynamoitem.DescribeError(action, err)
	}
	if e.Writer != "" && existing.Writer == e.Writer && existing.Version == e.Version {
		return nil, nil
	}
	return existing, nil
}

// encode makes the item of an entry. It packs the response if the store does.
func (s *Store) encode(e *ledger.Entry) (item, error) {
	encoded, err := Encode(e)
	if body := packed(e.Response.Body); err == nil && s.PackResponses && len(body) > 0 {
		encoded[attributeResponseBody] = &types.AttributeValueMemberB{Value: body.pack()}
	}
	return encoded, err
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

// ClaimReference implements ledger.Writer: the condition is "absent, of this charge, or expired".
func (s *Store) ClaimReference(ctx context.Context, charge *ledger.Entry) (string, error) {
	const (
		action    = "ledger: claiming a reference"
		condition = "attribute_not_exists(" + dynamoitem.KeyAttribute + ") OR " + attributeChargeID + " = :value OR " +
			attributeExpireAt + " <= :now"
	)
	key := ledger.Key{Kind: ledger.Reference, ID: ledger.ReferenceID(charge.Merchant.ID, charge.Request.ReferenceCode)}
	claim := dynamoitem.Key(key.String())
	claim[attributeChargeID] = dynamoitem.Text(charge.ID)
	if !charge.ExpireAt.IsZero() {
		claim[attributeExpireAt] = dynamoitem.Number(charge.ExpireAt.Unix())
	}
	put := s.conditionalPut(claim, condition, dynamoitem.Text(charge.ID))
	put.ExpressionAttributeValues[":now"] = dynamoitem.Number(charge.UpdatedAt.Unix())
	_, err := s.client.PutItem(ctx, put)
	if err == nil {
		return charge.ID, nil
	}
	stored, refused := conflictingItem(err)
	if !refused {
		return "", dynamoitem.DescribeError(action, err)
	}
	owner := dynamoitem.ReadText(stored, attributeChargeID)
	if owner == "" {
		return "", dynamoitem.DescribeError(action, logsafe.New("the stored reference names no charge"))
	}
	return owner, nil
}

// ChargeOfReference implements ledger.ReferenceIndex.
func (s *Store) ChargeOfReference(ctx context.Context, merchantID, referenceCode string) (string, error) {
	key := ledger.Key{Kind: ledger.Reference, ID: ledger.ReferenceID(merchantID, referenceCode)}
	stored, err := dynamoitem.Get(ctx, s.client, s.table, key.String())
	if err != nil {
		return "", dynamoitem.DescribeError("ledger: reading a reference", err)
	}
	return dynamoitem.ReadText(stored, attributeChargeID), nil
}

// Get implements ledger.Reader.
func (s *Store) Get(ctx context.Context, key ledger.Key) (*ledger.Entry, error) {
	action := "ledger: reading a " + string(key.Kind)
	stored, err := dynamoitem.Get(ctx, s.client, s.table, key.String())
	if err != nil {
		return nil, dynamoitem.DescribeError(action, err)
	}
	if len(stored) == 0 {
		return nil, nil
	}
	e, err := Decode(stored)
	if err != nil {
		return nil, dynamoitem.DescribeError(action, logsafe.Errorf("%w: %w", ledger.ErrUndecodable, err))
	}
	return e, nil
}

// DueKeys implements ledger.DueQueue: one query of the index "due".
func (s *Store) DueKeys(ctx context.Context, query ledger.DueQuery) ([]ledger.DueKey, string, error) {
	in := &dynamodb.QueryInput{
		IndexName:              aws.String(IndexDue),
		KeyConditionExpression: aws.String(attributeDueShard + " = :shard AND " + attributeDueAt + " <= :before"),
		ExpressionAttributeValues: item{
			":shard":  dueShard(query.Shard),
			":before": dynamoitem.Number(query.Before.UnixMilli()),
		},
	}
	if !query.From.IsZero() {
		in.KeyConditionExpression = aws.String(
			attributeDueShard + " = :shard AND " + attributeDueAt + " BETWEEN :from AND :before")
		in.ExpressionAttributeValues[":from"] = dynamoitem.Number(query.From.UnixMilli())
	}
	if query.Cursor != "" {
		dueAt, key, _ := strings.Cut(query.Cursor, "#")
		in.ExclusiveStartKey = item{
			dynamoitem.KeyAttribute: dynamoitem.Text(key), attributeDueShard: dueShard(query.Shard),
			attributeDueAt: &types.AttributeValueMemberN{Value: dueAt},
		}
	}
	items, last, err := queryPage(ctx, s, in, query.Limit)
	if err != nil {
		action := "ledger: listing the due entries of shard " + strconv.Itoa(query.Shard)
		return nil, "", dynamoitem.DescribeError(action, err)
	}
	if len(items) == 0 && len(last) == 0 {
		return nil, "", nil // as most shards are
	}
	var keys []ledger.DueKey
	for _, found := range items {
		// An item of another form is skipped: it must not hide the others.
		if key, dueAt, ok := decodeDueKey(found); ok {
			keys = append(keys, ledger.DueKey{Key: key, DueAt: dueAt})
		}
	}
	key, dueAt, ok := decodeDueKey(last)
	if !ok {
		return keys, "", nil
	}
	return keys, strconv.FormatInt(dueAt.UnixMilli(), 10) + "#" + key.String(), nil
}

// decodeDueKey reads the key and the due time of an item of the index "due".
func decodeDueKey(of item) (ledger.Key, time.Time, bool) {
	key, err := decodeKey(of)
	number, isNumber := of[attributeDueAt].(*types.AttributeValueMemberN)
	if err != nil || !isNumber {
		return ledger.Key{}, time.Time{}, false
	}
	milliseconds, err := parseNumber(number.Value)
	return key, time.UnixMilli(milliseconds).UTC(), err == nil
}

// MoveDue implements ledger.DueQueue by a read and a conditional put of the item as it was read. The conditions are its
// version and due time: a write in between wins.
func (s *Store) MoveDue(ctx context.Context, key ledger.Key, now, dueAt time.Time) error {
	action := "ledger: moving a due " + string(key.Kind)
	stored, err := dynamoitem.Get(ctx, s.client, s.table, key.String())
	if err != nil {
		return dynamoitem.DescribeError(action, err)
	}
	_, storedDueAt, ok := decodeDueKey(stored)
	if !ok || storedDueAt.After(now) {
		return nil
	}
	put := s.conditionalPut(maps.Clone(stored), attributeDueAt+" = :value", stored[attributeDueAt])
	put.Item[attributeDueAt] = dynamoitem.Number(dueAt.UnixMilli())
	if version := stored[attributeVersion]; version != nil {
		put.ConditionExpression = aws.String(*put.ConditionExpression + " AND " + attributeVersion + " = :version")
		put.ExpressionAttributeValues[":version"] = version
	}
	_, err = s.client.PutItem(ctx, put)
	if _, refused := conflictingItem(err); err == nil || refused {
		return nil
	}
	return dynamoitem.DescribeError(action, err)
}

// day is the length of a UTC day.
const day = 24 * time.Hour

// Day implements ledger.DayIndex: one query of the index "day". The last page may be empty. A cursor that Day did not
// return, and no DayKey, is an error.
func (s *Store) Day(ctx context.Context, query ledger.DayQuery) (keys []ledger.DayKey, next string, err error) {
	const action = "ledger: listing a merchant's day"
	partition := dynamoitem.Text(ledger.MerchantDay(query.MerchantID, query.Day, query.Shard))
	in := &dynamodb.QueryInput{
		IndexName:                 aws.String(IndexDay),
		KeyConditionExpression:    aws.String(attributeMerchantDay + " = :day"),
		ExpressionAttributeValues: item{":day": partition},
	}
	if query.Newest {
		in.ScanIndexForward = aws.Bool(false)
	}
	if !query.From.IsZero() || !query.Last.IsZero() {
		in.KeyConditionExpression = aws.String(
			attributeMerchantDay + " = :day AND " + attributeDaySort + " BETWEEN :from AND :last")
		in.ExpressionAttributeValues[":from"] = dynamoitem.Text(ledger.DaySort(query.From)) // of none: midnight
		in.ExpressionAttributeValues[":last"] = dynamoitem.Text(
			ledger.DaySort(cmp.Or(query.Last, query.Day.UTC().Truncate(day).Add(day-time.Millisecond))))
	}
	if query.Cursor != "" {
		if in.ExclusiveStartKey, err = startKey(partition, query.Cursor); err != nil {
			return nil, "", dynamoitem.DescribeError(action, err)
		}
	}
	items, last, err := queryPage(ctx, s, in, query.Limit)
	if err != nil {
		return nil, "", dynamoitem.DescribeError(action, err)
	}
	for _, found := range items {
		key, err := decodeDayKey(found, query.Day)
		if err != nil {
			return nil, "", dynamoitem.DescribeError(action, err)
		}
		keys = append(keys, key)
	}
	if len(last) == 0 {
		return keys, "", nil
	}
	end, err := decodeDayKey(last, query.Day)
	if err != nil {
		return nil, "", dynamoitem.DescribeError(action, err)
	}
	return keys, end.Cursor(), nil
}

// decodeDayKey reads the key and the time of an item of the index "day".
func decodeDayKey(of item, in time.Time) (ledger.DayKey, error) {
	key, err := decodeKey(of)
	if err != nil {
		return ledger.DayKey{}, err
	}
	at, err := time.Parse(ledger.DaySortLayout, dynamoitem.ReadText(of, attributeDaySort))
	if err != nil {
		return ledger.DayKey{}, logsafe.New("an item of the index has no time")
	}
	sinceMidnight := at.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)) // the date of a parsed time without one
	return ledger.DayKey{Key: key, CreatedAt: in.UTC().Truncate(day).Add(sinceMidnight)}, nil
}

// startKey makes the key after which a page begins from a cursor of Day: a DaySort and a key.
func startKey(partition types.AttributeValue, cursor string) (item, error) {
	sort, key, _ := strings.Cut(cursor, "#")
	start := dynamoitem.Key(key)
	_, notKey := decodeKey(start)
	if _, err := time.Parse(ledger.DaySortLayout, sort); err != nil || notKey != nil {
		return nil, logsafe.New("not a cursor of this list")
	}
	start[attributeMerchantDay], start[attributeDaySort] = partition, dynamoitem.Text(sort)
	return start, nil
}

// MaxPage is the maximum number of keys that one DueKeys or Day requests.
const MaxPage = 1000

// queryPage sends a query, and returns its items and the key after which the next page begins. It is a function because
// the linker keeps a method of this name in programs that never call it, and with it the query of the SDK.
func queryPage(
	ctx context.Context, s *Store, in *dynamodb.QueryInput, limit int,
) (items []item, last item, err error) {
	in.TableName, in.Limit = aws.String(s.table), aws.Int32(int32(min(max(limit, 1), MaxPage)))
	out, err := s.client.Query(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	return out.Items, out.LastEvaluatedKey, nil
}
