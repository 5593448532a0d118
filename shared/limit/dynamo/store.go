// Package dynamo keeps the merchants' limits in a DynamoDB table of their own: one small item for a merchant's rate, one
// for each day and currency, and one for each transaction that a day has counted.
//
// It decides nothing. Its invariants: no write without a condition; every write is an update, so that one permission is
// enough; every item expires by itself.
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"mobilegateway/shared/limit"
)

// Client is the part of the DynamoDB client that is needed.
type Client interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Store is the table of limits. It holds no state; any number of goroutines may use it.
type Store struct {
	client Client
	table  string
}

var (
	_ limit.RateStore   = (*Store)(nil)
	_ limit.AmountStore = (*Store)(nil)
)

// New makes a Store over a table (LIMIT_TABLE).
func New(client Client, table string) *Store { return &Store{client: client, table: table} }

// The attributes. The partition key alone is the primary key: "rate#<merchant id>", "day#<merchant id>#<currency>#<day>"
// and "mark#<day>#<kind>#<transaction id>". Beside them each item has expire_at, the table's time to live, in seconds.
const (
	attributeKey    = "pk"
	attributeFull   = "full_at" // of a rate: microseconds since 1970
	attributeSum    = "spent"   // of a day: minor units
	attributeAmount = "amount"  // of a mark: minor units
	attributeFence  = "fence"   // of a mark: a version of the entry
)

// Move implements limit.RateStore: one UpdateItem.
func (s *Store) Move(ctx context.Context, merchantID string, m limit.Move) (int64, bool, error) {
	in := &dynamodb.UpdateItemInput{
		TableName:           aws.String(s.table),
		Key:                 keyOf("rate#" + merchantID),
		UpdateExpression:    aws.String("SET full_at = :to, expire_at = :expire"),
		ConditionExpression: aws.String("full_at BETWEEN :least AND :most"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":to": number(m.Set), ":least": number(m.Least), ":most": number(m.Most), ":expire": seconds(m.ExpireAt),
		},
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if m.Set == 0 {
		in.UpdateExpression = aws.String("SET full_at = full_at + :to, expire_at = :expire")
		in.ExpressionAttributeValues[":to"] = number(m.Add)
	}
	if m.Absent {
		in.ConditionExpression = aws.String("attribute_not_exists(full_at) OR full_at BETWEEN :least AND :most")
	}
	out, err := s.client.UpdateItem(ctx, in)
	var refused *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &refused):
		stored, err := read(refused.Item, attributeFull)
		return stored, false, err
	case throttled(err):
		return 0, false, limit.ErrBusy
	case err != nil:
		return 0, false, plain("taking a request", err)
	}
	stored, err := read(out.Attributes, attributeFull)
	return stored, true, err
}

// Transfer implements limit.AmountStore: one TransactWriteItems, or one UpdateItem where the amount stays as it is.
func (s *Store) Transfer(ctx context.Context, t limit.Transfer) (limit.Result, error) {
	mark := s.mark(t)
	if t.From == t.To {
		return s.touch(ctx, mark)
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: s.day(t)}, {Update: mark}},
	})
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) && len(cancelled.CancellationReasons) == 2 {
		return refused(cancelled)
	}
	if throttled(err) {
		return limit.Result{}, limit.ErrConflict
	}
	if err != nil {
		return limit.Result{}, plain("moving an amount", err)
	}
	return limit.Result{Made: true}, nil
}

// touch writes the mark alone.
func (s *Store) touch(ctx context.Context, mark *types.Update) (limit.Result, error) {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: mark.TableName, Key: mark.Key, UpdateExpression: mark.UpdateExpression,
		ConditionExpression: mark.ConditionExpression, ExpressionAttributeValues: mark.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: mark.ReturnValuesOnConditionCheckFailure,
	})
	var other *types.ConditionalCheckFailedException
	var conflict *types.TransactionConflictException
	switch {
	case errors.As(err, &other):
		return markInTheWay(other.Item)
	case errors.As(err, &conflict), throttled(err):
		return limit.Result{}, limit.ErrConflict
	case err != nil:
		return limit.Result{}, plain("marking a transaction", err)
	}
	return limit.Result{Made: true}, nil
}

// day is the half of a transfer that moves the day's sum. An amount that is more than the whole limit fits into no day,
// not into one without a sum either.
func (s *Store) day(t limit.Transfer) *types.Update {
	update := &types.Update{
		TableName: aws.String(s.table),
		Key:       keyOf("day#" + t.MerchantID + "#" + t.Currency + "#" + t.Day),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":by": number(t.To - t.From), ":expire": seconds(t.ExpireAt), ":none": number(0), ":most": number(t.Most),
		},
		UpdateExpression:                    aws.String("SET spent = if_not_exists(spent, :none) + :by, expire_at = :expire"),
		ConditionExpression:                 aws.String("attribute_not_exists(spent) OR spent <= :most"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	switch {
	case t.To < t.From:
		delete(update.ExpressionAttributeValues, ":none")
		update.UpdateExpression = aws.String("SET spent = spent + :by, expire_at = :expire")
		update.ConditionExpression = aws.String("spent >= :most")
		update.ExpressionAttributeValues[":most"] = number(t.From - t.To)
	case t.Most < 0:
		update.ConditionExpression = aws.String("spent <= :most")
	}
	return update
}

// mark is the half of a transfer that changes the transaction's mark.
func (s *Store) mark(t limit.Transfer) *types.Update {
	condition := "amount = :from AND fence <= :fence"
	if t.From == 0 {
		condition = "attribute_not_exists(amount) OR " + condition
	}
	return &types.Update{
		TableName:           aws.String(s.table),
		Key:                 keyOf("mark#" + t.Day + "#" + t.Key),
		UpdateExpression:    aws.String("SET amount = :to, fence = :fence, expire_at = :expire"),
		ConditionExpression: aws.String(condition),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":from": number(t.From), ":to": number(t.To), ":fence": number(t.Fence), ":expire": seconds(t.ExpireAt),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// refused finds out why a transfer was not made. The mark comes first: what it holds decides what is to be moved at all.
func refused(cancelled *types.TransactionCanceledException) (limit.Result, error) {
	day, mark := cancelled.CancellationReasons[0], cancelled.CancellationReasons[1]
	for _, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "", "None", conditionFailed:
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			return limit.Result{}, limit.ErrConflict
		default:
			return limit.Result{}, fmt.Errorf("limit: moving an amount: the table answered %s", aws.ToString(reason.Code))
		}
	}
	if aws.ToString(mark.Code) == conditionFailed {
		return markInTheWay(mark.Item)
	}
	sum, err := read(day.Item, attributeSum)
	return limit.Result{Sum: sum}, err
}

const conditionFailed = "ConditionalCheckFailed"

// markInTheWay reads the mark that refused a write; an item that is not there is one that counts nothing.
func markInTheWay(item map[string]types.AttributeValue) (limit.Result, error) {
	amount, err := read(item, attributeAmount)
	if err != nil {
		return limit.Result{}, err
	}
	fence, err := read(item, attributeFence)
	return limit.Result{Mark: &limit.Mark{Amount: amount, Fence: fence}}, err
}

func keyOf(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attributeKey: &types.AttributeValueMemberS{Value: key}}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func seconds(t time.Time) types.AttributeValue { return number(t.Unix()) }

// read is a number of an item, 0 where it is not there.
func read(item map[string]types.AttributeValue, name string) (int64, error) {
	if item[name] == nil {
		return 0, nil
	}
	value, is := item[name].(*types.AttributeValueMemberN)
	if !is {
		return 0, fmt.Errorf("limit: attribute %s is not a number", name)
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("limit: attribute %s is not a whole number", name)
	}
	return n, nil
}

// throttled tells whether the table refuses for want of capacity, an item's partition included.
func throttled(err error) bool {
	var service smithy.APIError
	if !errors.As(err, &service) {
		return false
	}
	switch service.ErrorCode() {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded":
		return true
	}
	return false
}

// plain says what was tried and why it failed, without any value of a client.
func plain(tried string, err error) error {
	var service smithy.APIError
	if errors.As(err, &service) {
		return fmt.Errorf("limit: %s: the table answered %s", tried, service.ErrorCode())
	}
	return fmt.Errorf("limit: %s: %w", tried, err)
}
