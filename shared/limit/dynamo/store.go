// Package dynamo keeps the merchants' limits in a DynamoDB table of their own. A merchant's rate is one small item,
// and so are each day in a currency and each transaction that a day has counted.
//
// It decides nothing. Its invariants: no write is unconditional; every write is an update, so that one permission is
// enough; every item expires.
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

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/limit"
)

// Client is the part of the DynamoDB client that the store uses.
type Client interface {
	UpdateItem(
		context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(
		context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error)
}

// Store is the table of limits. It has no state and is safe for concurrent use.
type Store struct {
	client Client
	table  string
}

var (
	_ limit.RateStore   = (*Store)(nil)
	_ dailyamount.Store = (*Store)(nil)
)

// New creates a Store over a table (LIMIT_TABLE).
func New(client Client, table string) *Store { return &Store{client: client, table: table} }

// The attributes. The primary key is only a partition key: "rate#<merchant id>", "day#<merchant
// id>#<currency>#<day>" or "mark#<day>#<kind>#<transaction id>". Each item also has expire_at, the table's time to
// live, in seconds.
const (
	attributeKey    = "pk"
	attributeFullAt = "full_at" // of a rate: microseconds since 1970
	attributeSum    = "spent"   // of a day: minor units
	attributeAmount = "amount"  // of a transaction: minor units
	attributeFence  = "fence"   // of a transaction: a version of the entry
)

// UpdateRate implements limit.RateStore: one UpdateItem.
func (s *Store) UpdateRate(ctx context.Context, merchantID string, u limit.RateUpdate) (int64, bool, error) {
	input := &dynamodb.UpdateItemInput{
		TableName:           aws.String(s.table),
		Key:                 primaryKey("rate#" + merchantID),
		UpdateExpression:    aws.String("SET full_at = :to, expire_at = :expire"),
		ConditionExpression: aws.String("full_at BETWEEN :least AND :most"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":to": number(u.Set), ":least": number(u.Min), ":most": number(u.Max), ":expire": unixSeconds(u.ExpireAt),
		},
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if u.Set == 0 {
		input.UpdateExpression = aws.String("SET full_at = full_at + :to, expire_at = :expire")
		input.ExpressionAttributeValues[":to"] = number(u.Add)
	}
	if u.AllowAbsent {
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
		return 0, false, storeError("updating a rate", err)
	}
	stored, err := readNumber(out.Attributes, attributeFullAt)
	return stored, true, err
}

// Adjust implements dailyamount.Store: one TransactWriteItems, or one UpdateItem if the amount stays the same.
func (s *Store) Adjust(ctx context.Context, a dailyamount.Adjustment) (dailyamount.AdjustmentResult, error) {
	record := s.recordUpdate(a)
	if a.OldAmount == a.NewAmount {
		return s.updateFence(ctx, record)
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: s.daySumUpdate(a)}, {Update: record}},
	})
	var cancelled *types.TransactionCanceledException
	switch {
	case errors.As(err, &cancelled) && len(cancelled.CancellationReasons) == 2:
		return rejectionResult(cancelled)
	case isThrottled(err):
		return dailyamount.AdjustmentResult{}, dailyamount.ErrConflict
	case err != nil:
		return dailyamount.AdjustmentResult{}, storeError("adjusting a daily amount", err)
	}
	return dailyamount.AdjustmentResult{Applied: true}, nil
}

// updateFence writes only the transaction's record.
func (s *Store) updateFence(ctx context.Context, u *types.Update) (dailyamount.AdjustmentResult, error) {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression,
		ConditionExpression: u.ConditionExpression, ExpressionAttributeValues: u.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure,
	})
	var conditionErr *types.ConditionalCheckFailedException
	var conflict *types.TransactionConflictException
	switch {
	case errors.As(err, &conditionErr):
		return existingRecord(conditionErr.Item)
	case errors.As(err, &conflict), isThrottled(err):
		return dailyamount.AdjustmentResult{}, dailyamount.ErrConflict
	case err != nil:
		return dailyamount.AdjustmentResult{}, storeError("updating a counted amount", err)
	}
	return dailyamount.AdjustmentResult{Applied: true}, nil
}

// daySumUpdate moves the sum of the day. An amount above the whole limit fits into no day, also not into one without a
// sum.
func (s *Store) daySumUpdate(a dailyamount.Adjustment) *types.Update {
	update := &types.Update{
		TableName: aws.String(s.table),
		Key:       primaryKey("day#" + a.MerchantID + "#" + a.Currency + "#" + a.Day),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":by": number(a.NewAmount - a.OldAmount), ":expire": unixSeconds(a.ExpireAt),
			":none": number(0), ":most": number(a.MaxSumBefore),
		},
		UpdateExpression:    aws.String("SET spent = if_not_exists(spent, :none) + :by, expire_at = :expire"),
		ConditionExpression: aws.String("attribute_not_exists(spent) OR spent <= :most"),

		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	switch {
	case a.NewAmount < a.OldAmount:
		delete(update.ExpressionAttributeValues, ":none")
		update.UpdateExpression = aws.String("SET spent = spent + :by, expire_at = :expire")
		update.ConditionExpression = aws.String("spent >= :most")
		update.ExpressionAttributeValues[":most"] = number(a.OldAmount - a.NewAmount)
	case a.MaxSumBefore < 0:
		update.ConditionExpression = aws.String("spent <= :most")
	}
	return update
}

// recordUpdate changes the record of the transaction.
func (s *Store) recordUpdate(a dailyamount.Adjustment) *types.Update {
	condition := "amount = :from AND fence <= :fence"
	if a.OldAmount == 0 {
		condition = "attribute_not_exists(amount) OR " + condition
	}
	return &types.Update{
		TableName:           aws.String(s.table),
		Key:                 primaryKey("mark#" + a.Day + "#" + a.TransactionKey),
		UpdateExpression:    aws.String("SET amount = :to, fence = :fence, expire_at = :expire"),
		ConditionExpression: aws.String(condition),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":from": number(a.OldAmount), ":to": number(a.NewAmount),
			":fence": number(a.Fence), ":expire": unixSeconds(a.ExpireAt),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

const codeConditionFailed = "ConditionalCheckFailed"

// rejectionResult finds out why an adjustment was not applied. The record comes first: the difference depends on it.
func rejectionResult(cancelled *types.TransactionCanceledException) (dailyamount.AdjustmentResult, error) {
	day, record := cancelled.CancellationReasons[0], cancelled.CancellationReasons[1]
	for _, reason := range cancelled.CancellationReasons {
		switch code := aws.ToString(reason.Code); code {
		case "", "None", codeConditionFailed:
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			return dailyamount.AdjustmentResult{}, dailyamount.ErrConflict
		default:
			return dailyamount.AdjustmentResult{}, refusedError("adjusting a daily amount", code)
		}
	}
	if aws.ToString(record.Code) == codeConditionFailed {
		return existingRecord(record.Item)
	}
	sum, err := readNumber(day.Item, attributeSum)
	return dailyamount.AdjustmentResult{DaySum: sum}, err
}

// existingRecord reads the record that refused a write. A missing item counts nothing.
func existingRecord(item map[string]types.AttributeValue) (dailyamount.AdjustmentResult, error) {
	amount, err := readNumber(item, attributeAmount)
	if err != nil {
		return dailyamount.AdjustmentResult{}, err
	}
	fence, err := readNumber(item, attributeFence)
	return dailyamount.AdjustmentResult{Existing: &dailyamount.CountedAmount{Amount: amount, Fence: fence}}, err
}

func primaryKey(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attributeKey: &types.AttributeValueMemberS{Value: key}}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func unixSeconds(t time.Time) types.AttributeValue { return number(t.Unix()) }

// readNumber reads a number of an item, 0 if it is missing.
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

// isThrottled reports whether the table has no capacity left for the request, or an item's partition has none.
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

// storeError names the action that failed and the cause. It quotes no value of a request: of a service error it has
// only the code.
func storeError(action string, err error) error {
	var apiErr smithy.APIError
	if errors.As(err, &apiErr) {
		return refusedError(action, apiErr.ErrorCode())
	}
	return fmt.Errorf("limit: %s: %w", action, err)
}

func refusedError(action, code string) error {
	return fmt.Errorf("limit: %s: the table refused with %s", action, code)
}
