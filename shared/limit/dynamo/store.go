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
	attributeFullAt = "full_at" // of a rate: microseconds since 1970
	attributeSum    = "spent"   // of a day: minor units
	attributeAmount = "amount"  // of a mark: minor units
	attributeFence  = "fence"   // of a mark: a version of the entry
)

// UpdateRate implements limit.RateStore: one UpdateItem.
func (s *Store) UpdateRate(ctx context.Context, merchantID string, m limit.RateUpdate) (int64, bool, error) {
	input := &dynamodb.UpdateItemInput{
		TableName:           aws.String(s.table),
		Key:                 primaryKey("rate#" + merchantID),
		UpdateExpression:    aws.String("SET full_at = :to, expire_at = :expire"),
		ConditionExpression: aws.String("full_at BETWEEN :least AND :most"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":to": numberValue(m.Set), ":least": numberValue(m.Min), ":most": numberValue(m.Max), ":expire": unixSeconds(m.ExpireAt),
		},
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if m.Set == 0 {
		input.UpdateExpression = aws.String("SET full_at = full_at + :to, expire_at = :expire")
		input.ExpressionAttributeValues[":to"] = numberValue(m.Add)
	}
	if m.AllowAbsent {
		input.ConditionExpression = aws.String("attribute_not_exists(full_at) OR full_at BETWEEN :least AND :most")
	}
	out, err := s.client.UpdateItem(ctx, input)
	var conditionErr *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &conditionErr):
		stored, err := readNumber(conditionErr.Item, attributeFullAt)
		return stored, false, err
	case isThrottled(err):
		return 0, false, limit.ErrThrottled
	case err != nil:
		return 0, false, storeError("taking a request", err)
	}
	stored, err := readNumber(out.Attributes, attributeFullAt)
	return stored, true, err
}

// Adjust implements limit.AmountStore: one TransactWriteItems, or one UpdateItem where the amount stays as it is.
func (s *Store) Adjust(ctx context.Context, t limit.Adjustment) (limit.AdjustmentResult, error) {
	countedUpdate := s.countedAmountUpdate(t)
	if t.OldAmount == t.NewAmount {
		return s.updateFence(ctx, countedUpdate)
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: s.daySumUpdate(t)}, {Update: countedUpdate}},
	})
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) && len(cancelled.CancellationReasons) == 2 {
		return rejectionResult(cancelled)
	}
	if isThrottled(err) {
		return limit.AdjustmentResult{}, limit.ErrConflict
	}
	if err != nil {
		return limit.AdjustmentResult{}, storeError("moving an amount", err)
	}
	return limit.AdjustmentResult{Applied: true}, nil
}

// updateFence writes the mark alone.
func (s *Store) updateFence(ctx context.Context, countedUpdate *types.Update) (limit.AdjustmentResult, error) {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: countedUpdate.TableName, Key: countedUpdate.Key, UpdateExpression: countedUpdate.UpdateExpression,
		ConditionExpression: countedUpdate.ConditionExpression, ExpressionAttributeValues: countedUpdate.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: countedUpdate.ReturnValuesOnConditionCheckFailure,
	})
	var conditionErr *types.ConditionalCheckFailedException
	var conflict *types.TransactionConflictException
	switch {
	case errors.As(err, &conditionErr):
		return existingAmountResult(conditionErr.Item)
	case errors.As(err, &conflict), isThrottled(err):
		return limit.AdjustmentResult{}, limit.ErrConflict
	case err != nil:
		return limit.AdjustmentResult{}, storeError("marking a transaction", err)
	}
	return limit.AdjustmentResult{Applied: true}, nil
}

// daySumUpdate is the half of a transfer that moves the day's sum. An amount that is more than the whole limit fits into no day,
// not into one without a sum either.
func (s *Store) daySumUpdate(t limit.Adjustment) *types.Update {
	update := &types.Update{
		TableName: aws.String(s.table),
		Key:       primaryKey("day#" + t.MerchantID + "#" + t.Currency + "#" + t.Day),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":by": numberValue(t.NewAmount - t.OldAmount), ":expire": unixSeconds(t.ExpireAt), ":none": numberValue(0), ":most": numberValue(t.MaxSumBefore),
		},
		UpdateExpression:                    aws.String("SET spent = if_not_exists(spent, :none) + :by, expire_at = :expire"),
		ConditionExpression:                 aws.String("attribute_not_exists(spent) OR spent <= :most"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	switch {
	case t.NewAmount < t.OldAmount:
		delete(update.ExpressionAttributeValues, ":none")
		update.UpdateExpression = aws.String("SET spent = spent + :by, expire_at = :expire")
		update.ConditionExpression = aws.String("spent >= :most")
		update.ExpressionAttributeValues[":most"] = numberValue(t.OldAmount - t.NewAmount)
	case t.MaxSumBefore < 0:
		update.ConditionExpression = aws.String("spent <= :most")
	}
	return update
}

// countedAmountUpdate is the half of a transfer that changes the transaction's mark.
func (s *Store) countedAmountUpdate(t limit.Adjustment) *types.Update {
	condition := "amount = :from AND fence <= :fence"
	if t.OldAmount == 0 {
		condition = "attribute_not_exists(amount) OR " + condition
	}
	return &types.Update{
		TableName:           aws.String(s.table),
		Key:                 primaryKey("mark#" + t.Day + "#" + t.TransactionKey),
		UpdateExpression:    aws.String("SET amount = :to, fence = :fence, expire_at = :expire"),
		ConditionExpression: aws.String(condition),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":from": numberValue(t.OldAmount), ":to": numberValue(t.NewAmount), ":fence": numberValue(t.Fence), ":expire": unixSeconds(t.ExpireAt),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// rejectionResult finds out why a transfer was not made. The mark comes first: what it holds decides what is to be moved at all.
func rejectionResult(cancelled *types.TransactionCanceledException) (limit.AdjustmentResult, error) {
	day, countedUpdate := cancelled.CancellationReasons[0], cancelled.CancellationReasons[1]
	for _, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "", "None", codeConditionFailed:
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			return limit.AdjustmentResult{}, limit.ErrConflict
		default:
			return limit.AdjustmentResult{}, fmt.Errorf("limit: moving an amount: the table answered %s", aws.ToString(reason.Code))
		}
	}
	if aws.ToString(countedUpdate.Code) == codeConditionFailed {
		return existingAmountResult(countedUpdate.Item)
	}
	sum, err := readNumber(day.Item, attributeSum)
	return limit.AdjustmentResult{DaySum: sum}, err
}

const codeConditionFailed = "ConditionalCheckFailed"

// existingAmountResult reads the mark that refused a write; an item that is not there is one that counts nothing.
func existingAmountResult(item map[string]types.AttributeValue) (limit.AdjustmentResult, error) {
	amount, err := readNumber(item, attributeAmount)
	if err != nil {
		return limit.AdjustmentResult{}, err
	}
	fence, err := readNumber(item, attributeFence)
	return limit.AdjustmentResult{Existing: &limit.CountedAmount{Amount: amount, Fence: fence}}, err
}

func primaryKey(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attributeKey: &types.AttributeValueMemberS{Value: key}}
}

func numberValue(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func unixSeconds(t time.Time) types.AttributeValue { return numberValue(t.Unix()) }

// readNumber is a number of an item, 0 where it is not there.
func readNumber(item map[string]types.AttributeValue, name string) (int64, error) {
	if item[name] == nil {
		return 0, nil
	}
	value, isNumber := item[name].(*types.AttributeValueMemberN)
	if !isNumber {
		return 0, fmt.Errorf("limit: attribute %s is not a number", name)
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("limit: attribute %s is not a whole number", name)
	}
	return n, nil
}

// isThrottled tells whether the table refuses for want of capacity, an item's partition included.
func isThrottled(err error) bool {
	var apiErr smithy.APIError
	if !errors.As(err, &apiErr) {
		return false
	}
	switch apiErr.ErrorCode() {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded":
		return true
	}
	return false
}

// storeError says what was tried and why it failed, without any value of a client.
func storeError(action string, err error) error {
	var apiErr smithy.APIError
	if errors.As(err, &apiErr) {
		return fmt.Errorf("limit: %s: the table answered %s", action, apiErr.ErrorCode())
	}
	return fmt.Errorf("limit: %s: %w", action, err)
}
