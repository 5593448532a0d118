package dynamodb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"mobilegateway/shared/dynamoitem"
)

func drawGet(t *rapid.T) step {
	table := drawTable(t)
	input := &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: dynamoitem.Key(drawKey(t, table)), ConsistentRead: aws.Bool(true),
	}
	if rapid.Bool().Draw(t, "projected") {
		input.ProjectionExpression = aws.String("pk, v, #s")
		input.ExpressionAttributeNames = map[string]string{"#s": "status"}
	}
	return step{"get " + *input.TableName + " " + image(input.Key), func(ctx context.Context, e engine) string {
		out, err := e.GetItem(ctx, input)
		if err != nil {
			return describe(err)
		}
		return image(out.Item)
	}}
}

// drawGetBatch draws a read of some keys of a table, which may have one key twice.
func drawGetBatch(t *rapid.T) step {
	table := drawTable(t)
	var keys []Item
	for range rapid.IntRange(1, 3).Draw(t, "keys") {
		keys = append(keys, dynamoitem.Key(drawKey(t, table)))
	}
	name := "batch of " + table
	for _, key := range keys {
		name += " " + image(key)
	}
	input := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		table: {Keys: keys, ConsistentRead: aws.Bool(true)},
	}}
	return step{name, func(ctx context.Context, e engine) string {
		out, err := e.BatchGetItem(ctx, input)
		if err != nil {
			return describe(err)
		}
		var found []string
		for _, item := range out.Responses[table] {
			found = append(found, image(item))
		}
		slices.Sort(found) // a batch has no order
		return fmt.Sprint(found, len(out.UnprocessedKeys))
	}}
}

// drawQuery draws a query of an index over all its pages.
func drawQuery(t *rapid.T) step {
	input := dynamodb.QueryInput{
		TableName: aws.String("ledger"), IndexName: aws.String("day"),
		Limit:                  aws.Int32(rapid.Int32Range(1, 4).Draw(t, "limit")),
		KeyConditionExpression: aws.String("md = :hash"), ExpressionAttributeValues: Item{":hash": text("m#1")},
	}
	sort := "dk"
	if rapid.Bool().Draw(t, "due") {
		sort = "da"
		input.IndexName = aws.String("due")
		operator := rapid.SampledFrom([]string{"<=", "<", ">", ">=", "=", "BETWEEN :low AND"}).Draw(t, "operator")
		input.KeyConditionExpression = aws.String("ds = :hash AND da " + operator + " :sort")
		input.ExpressionAttributeValues = Item{
			":hash": text(rapid.SampledFrom([]string{"0", "1"}).Draw(t, "shard")), ":sort": drawNumber(t),
		}
		if strings.HasPrefix(operator, "BETWEEN") {
			input.ExpressionAttributeValues[":low"] = dynamoitem.Number(1)
		}
	}
	if direction := rapid.IntRange(-1, 1).Draw(t, "direction"); direction != 0 {
		input.ScanIndexForward = aws.Bool(direction > 0)
	}
	if rapid.Bool().Draw(t, "filtered") {
		input.FilterExpression = aws.String("begins_with(pk, :prefix)")
		input.ExpressionAttributeValues[":prefix"] = text("pay#")
	}
	name := fmt.Sprintf("query %s: %s %s limit %d filter %q forward %t", *input.IndexName,
		*input.KeyConditionExpression, image(input.ExpressionAttributeValues), *input.Limit,
		aws.ToString(input.FilterExpression), input.ScanIndexForward == nil || *input.ScanIndexForward)
	return step{name, func(ctx context.Context, e engine) string { return queryPages(ctx, e, input, sort) }}
}

// queryPages returns the counts of the pages, the sort keys in order and all items. The order of equal sort keys is
// open.
func queryPages(ctx context.Context, e engine, input dynamodb.QueryInput, sort string) string {
	var items []Item
	pages := ""
	for {
		out, err := e.Query(ctx, &input)
		if err != nil {
			return describe(err)
		}
		items = append(items, out.Items...)
		if input.FilterExpression == nil {
			pages += fmt.Sprint(out.Count, "/", out.ScannedCount, " ")
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
		if len(out.LastEvaluatedKey) == 0 {
			return pages + sortValues(items, sort) + images(items)
		}
	}
}

func drawScan(t *rapid.T) step {
	input := &dynamodb.ScanInput{}
	if rapid.Bool().Draw(t, "filtered") {
		input.ProjectionExpression, input.FilterExpression = aws.String("pk"), aws.String("begins_with(pk, :prefix)")
		input.ExpressionAttributeValues = Item{":prefix": text("pay#")}
	}
	return scanStep(drawTable(t), input, rapid.Int32Range(0, 3).Draw(t, "limit"))
}

// scanStep scans a table over all its pages.
func scanStep(table string, like *dynamodb.ScanInput, limit int32) step {
	return step{fmt.Sprint("scan ", table, " limit ", limit), func(ctx context.Context, e engine) string {
		input := dynamodb.ScanInput{}
		if like != nil {
			input = *like
		}
		input.TableName, input.ConsistentRead = aws.String(table), aws.Bool(true)
		if limit > 0 {
			input.Limit = aws.Int32(limit)
		}
		var items []Item
		scanned := int32(0)
		for {
			out, err := e.Scan(ctx, &input)
			if err != nil {
				return describe(err)
			}
			items, scanned = append(items, out.Items...), scanned+out.ScannedCount
			input.ExclusiveStartKey = out.LastEvaluatedKey
			if len(out.LastEvaluatedKey) == 0 {
				return fmt.Sprint(scanned, " ", images(items))
			}
		}
	}}
}
