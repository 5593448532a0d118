// Package storetest has the shipping stores over tables in memory, for tests. It injects faults into their calls: an
// error, a lost response, a concurrent write.
//
// It has no rules of its own: world/dynamodb is the model of DynamoDB, and the stores are the deployed ones.
package storetest

import (
	"context"
	"fmt"
	"math"
	"time"

	"mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

const table = "table"

// newClient returns a client of an empty table with the ledger's schema. The other stores need only its key. Indexes
// never lag, and nothing reads the stream, so the database forgets every change.
func newClient() *model.Client {
	schema := dynamo.Schema(table)
	schema.StreamSpecification = nil
	database := model.New(time.Now)
	mustSucceed("create a table", database.CreateTable(schema, ""))
	client := model.NewClient(database)
	client.Gate = func(context.Context, model.Call) model.Decision {
		database.Trim(math.MaxInt64)
		return model.Decision{}
	}
	return client
}

// mustSucceed panics on the error of a step that prepares or reads a table, which is a mistake in the test.
func mustSucceed(step string, err error) {
	if err != nil {
		panic(fmt.Sprintf("storetest: %s: %v", step, err))
	}
}
