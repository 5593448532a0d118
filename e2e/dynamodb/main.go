//go:build linux

// Command dynamodb runs the stories and the database tests against DynamoDB Local, AWS's own engine: `make
// e2e-dynamodb`.
//
// It finds differences between the embedded engine and DynamoDB. It tests no other AWS service.
package main

import (
	"context"
	"os"

	"mobilegateway/e2e/harness"
	"mobilegateway/proof/kits/dynamotest"
)

// packages are the packages whose tests use DynamoDB.
var packages = []string{
	"./shared/ledger/dynamo", "./shared/merchant/dynamo", "./shared/webhook/dynamo", "./shared/limit/dynamo",
	"./functions/sweep", "./world/streams", "./world/dynamodb",
}

func main() {
	// The tests download the embedded engine, so they need the machine's network.
	os.Exit(harness.Isolation{Name: "e2e-dynamodb", Tools: []string{"dynamodb"}, RunIsolated: runSuite}.Main())
}

// runSuite runs stories and tests in parallel, because stories wait most of the time.
func runSuite(ctx context.Context, site harness.Workspace) error {
	address, err := harness.StartDynamoDBLocal(ctx, site, "127.0.0.1")
	if err != nil {
		return err
	}
	site.Logf("DynamoDB Local responds")
	return harness.RunParallel(ctx,
		func(ctx context.Context) error {
			stories := harness.StorySuite{Variables: []string{"AWS_ENDPOINT_URL_DYNAMODB=" + address}}
			return stories.Run(ctx, site, "^TestGateway$", "")
		},
		func(ctx context.Context) error {
			return harness.RunTests(ctx, site, []string{dynamotest.ReferenceVariable + "=" + address}, packages...)
		},
	)
}
