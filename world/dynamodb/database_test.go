package dynamodb

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// clock is a settable clock.
type clock struct{ time time.Time }

func (c *clock) now() time.Time { return c.time }

// newLedger returns a database with the ledger's table, whose name is "ledger".
func newLedger(t testing.TB) (*Database, *clock) {
	t.Helper()
	c := &clock{time: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	db := New(c.now)
	if err := db.CreateTable(ledgerdynamo.Schema("ledger"), ledgerdynamo.TimeToLive); err != nil {
		t.Fatal(err)
	}
	return db, c
}

// wideItem returns an item with as many attributes as a large entry.
func wideItem(key string, version int64) Item {
	item := dynamoitem.Key(key)
	for i := len(item); i < 44; i++ {
		item[fmt.Sprint("attribute", i)] = dynamoitem.Text(fmt.Sprint("the value of attribute ", i))
	}
	item["v"], item["expire_at"] = dynamoitem.Number(version), dynamoitem.Number(1795254600)
	item["ds"], item["da"] = dynamoitem.Text("3"), dynamoitem.Number(1795254600000+version)
	item["md"], item["dk"] = dynamoitem.Text("merchant#2026-11-21"), dynamoitem.Text("10:00:00.000")
	return item
}

func replaceInput(item Item, version int64) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: aws.String("ledger"), Item: item,
		ConditionExpression:                 aws.String("v = :value"),
		ExpressionAttributeValues:           Item{":value": dynamoitem.Number(version)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func put(t testing.TB, db *Database, item Item) {
	t.Helper()
	if _, err := db.PutItem(&dynamodb.PutItemInput{TableName: aws.String("ledger"), Item: item}); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkPutItem replaces an item of 50 attributes under a condition.
func BenchmarkPutItem(b *testing.B) {
	db, _ := newLedger(b)
	items := []Item{wideItem("pay#1", 0), wideItem("pay#1", 1)}
	put(b, db, items[0])
	inputs := []*dynamodb.PutItemInput{replaceInput(items[0], 1), replaceInput(items[1], 0)}
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		if _, err := db.PutItem(inputs[i%2]); err != nil {
			b.Fatal(err)
		}
		db.Trim(db.sequence)
	}
}

func BenchmarkGetItem(b *testing.B) {
	db, _ := newLedger(b)
	put(b, db, wideItem("pay#1", 0))
	input := &dynamodb.GetItemInput{
		TableName: aws.String("ledger"), Key: dynamoitem.Key("pay#1"), ConsistentRead: aws.Bool(true),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := db.GetItem(input, Lag{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkQuery reads the due keys of one of 16 shards with 10 entries each.
func BenchmarkQuery(b *testing.B) {
	db, _ := newLedger(b)
	for i := range 10 {
		put(b, db, wideItem(fmt.Sprint("pay#", i), int64(i)))
	}
	input := &dynamodb.QueryInput{
		TableName: aws.String("ledger"), IndexName: aws.String("due"), Limit: aws.Int32(1000),
		KeyConditionExpression: aws.String("ds = :shard AND da <= :before"),
		ExpressionAttributeValues: Item{
			":shard": dynamoitem.Text("3"), ":before": dynamoitem.Number(1895254600000),
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		if out, err := db.Query(input, Lag{}); err != nil || out.Count != 10 {
			b.Fatal(out, err)
		}
	}
}

func BenchmarkCloneWriteHash(b *testing.B) {
	db, _ := newLedger(b)
	for i := range 20 {
		put(b, db, wideItem(fmt.Sprint("pay#", i), int64(i)))
	}
	input := replaceInput(wideItem("pay#1", 2), 1)
	b.ReportAllocs()
	for b.Loop() {
		clone := db.Clone()
		if _, err := clone.PutItem(input); err != nil {
			b.Fatal(err)
		}
		_ = clone.Hash()
	}
}
