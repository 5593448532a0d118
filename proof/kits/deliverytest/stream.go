package deliverytest

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

// StreamEvent returns the Lambda event with one record of the ledger's stream for each entry.
func StreamEvent(t testing.TB, entries ...*ledger.Entry) []byte {
	t.Helper()
	schema := dynamo.Schema("ledger")
	database := model.New(func() time.Time { return time.Unix(0, 0) })
	if err := database.CreateTable(schema, ""); err != nil {
		t.Fatal(err)
	}
	client := model.NewClient(database)
	for _, e := range entries {
		item, err := dynamo.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		put := &dynamodb.PutItemInput{TableName: schema.TableName, Item: item}
		if _, err := client.PutItem(context.Background(), put); err != nil {
			t.Fatal(err)
		}
	}
	return model.LambdaEvent(database.Changes(0)...)
}
