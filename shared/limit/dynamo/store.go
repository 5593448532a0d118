// Package dynamo keeps the limits of merchants and of operators' accounts in a DynamoDB table of their own. The rate of
// a merchant or an account is one small item, and so are each day in a currency and each transaction that a day has
// counted.
//
// It decides nothing. Its invariants: no write is unconditional; every write is an update, so that one permission is
// enough; every item expires.
package dynamo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/logsafe"
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

// New creates a Store over a table (LIMIT_TABLE).
func New(client Client, table string) *Store { return &Store{client: client, table: table} }

// The attributes. The primary key is only a partition key: "rate#<merchant id>", "rate#account/<account>" (SMS),
// "rate#lookups/<platform>/<account>", "day#<merchant id>#<currency>#<day>" or "mark#<day>#<kind>#<transaction id>".
// Each item also has expire_at, the table's time to live, in seconds.
const (
	attributeFullAt = "full_at" // of a rate: microseconds since 1970
	attributeSum    = "spent"   // of a day: minor units
	attributeAmount = "amount"  // of a transaction: minor units
	attributeFence  = "fence"   // of a transaction: a version of the entry
)

// UpdateRate implements limit.RateStore: one UpdateItem.
func (s *Store) UpdateRate(ctx context.Context, merchantID string, u limit.RateUpdate) (int64, bool, error) {
	input := &dynamodb.UpdateItemInput{
		TableName:           aws.String(s.table),
		Key:                 dynamoitem.Key("rate#" + merchantID),
		UpdateExpression:    aws.String("SET full_at = :to, expire_at = :expire"),
		ConditionExpression: aws.String("full_at BETWEEN :least AND :most"),
		ExpressionAttributeValues: dynamoitem.Item{
			":to": dynamoitem.Number(u.Set), ":least": dynamoitem.Number(u.Min), ":most": dynamoitem.Number(u.Max),
			":expire": unixSeconds(u.ExpireAt),
		},
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if u.Set == 0 {
		input.UpdateExpression = aws.String("SET full_at = full_at + :to, expire_at = :expire")
		input.ExpressionAttributeValues[":to"] = dynamoitem.Number(u.Add)
	}
	if u.AllowAbsent {
		input.ConditionExpression = aws.String("attribute_not_exists(full_at) OR full_at BETWEEN :least AND :most")
	}
	out, err := s.client.UpdateItem(ctx, input)
	var conditionErr *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &conditionErr):
		stored, err := dynamoitem.ReadNumber(conditionErr.Item, attributeFullAt)
		return stored, false, err
	case isThrottled(err):
		return 0, false, limit.ErrThrottled
	case err != nil:
		return 0, false, dynamoitem.DescribeError("limit: updating a rate", err)
	}
	stored, err := dynamoitem.ReadNumber(out.Attributes, attributeFullAt)
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
		return dailyamount.AdjustmentResult{}, dynamoitem.DescribeError("limit: adjusting a daily amount", err)
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
		return dailyamount.AdjustmentResult{}, dynamoitem.DescribeError("limit: updating a counted amount", err)
	}
	return dailyamount.AdjustmentResult{Applied: true}, nil
}

// daySumUpdate moves the sum of the day. An amount above the whole limit fits into no day, also not into one without a
// sum.
func (s *Store) daySumUpdate(a dailyamount.Adjustment) *types.Update {
	update := &types.Update{
		TableName: aws.String(s.table),
		Key:       dynamoitem.Key("day#" + a.MerchantID + "#" + a.Currency + "#" + a.Day),
		ExpressionAttributeValues: dynamoitem.Item{
			":by": dynamoitem.Number(a.NewAmount - a.OldAmount), ":expire": unixSeconds(a.ExpireAt),
			":none": dynamoitem.Number(0), ":most": dynamoitem.Number(a.MaxSumBefore),
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
		update.ExpressionAttributeValues[":most"] = dynamoitem.Number(a.OldAmount - a.NewAmount)
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
		Key:                 dynamoitem.Key("mark#" + a.Day + "#" + a.TransactionKey),
		UpdateExpression:    aws.String("SET amount = :to, fence = :fence, expire_at = :expire"),
		ConditionExpression: aws.String(condition),
		ExpressionAttributeValues: dynamoitem.Item{
			":from": dynamoitem.Number(a.OldAmount), ":to": dynamoitem.Number(a.NewAmount),
			":fence": dynamoitem.Number(a.Fence), ":expire": unixSeconds(a.ExpireAt),
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
			err := logsafe.Errorf("limit: adjusting a daily amount: the table returned %s", logsafe.Code(code))
			return dailyamount.AdjustmentResult{}, err
		}
	}
	if aws.ToString(record.Code) == codeConditionFailed {
		return existingRecord(record.Item)
	}
	sum, err := dynamoitem.ReadNumber(day.Item, attributeSum)
	return dailyamount.AdjustmentResult{DaySum: sum}, err
}

// existingRecord reads the record that refused a write. A missing item counts nothing.
func existingRecord(item dynamoitem.Item) (dailyamount.AdjustmentResult, error) {
	amount, err := dynamoitem.ReadNumber(item, attributeAmount)
	if err != nil {
		return dailyamount.AdjustmentResult{}, err
	}
	fence, err := dynamoitem.ReadNumber(item, attributeFence)
	return dailyamount.AdjustmentResult{Existing: &dailyamount.CountedAmount{Amount: amount, Fence: fence}}, err
}

func unixSeconds(t time.Time) types.AttributeValue { return dynamoitem.Number(t.Unix()) }

// isThrottled reports whether the table has no capacity left for the request, or an item's partition has none.
func isThrottled(err error) bool {
	throttling := []string{"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
	apiErr, isAPIError := errors.AsType[smithy.APIError](err)
	return isAPIError && slices.Contains(throttling, apiErr.ErrorCode())
}
