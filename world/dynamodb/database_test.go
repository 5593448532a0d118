package dynamodb

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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

func put(t testing.TB, db *Database, item Item) {
	t.Helper()
	if _, err := db.PutItem(&dynamodb.PutItemInput{TableName: aws.String("ledger"), Item: item}); err != nil {
		t.Fatal(err)
	}
}
