//go:build linux

// Command dynamodb holds the gateway against DynamoDB Local, which is AWS's own: `make e2e-dynamodb`.
//
// The embedded engine is nobody's reference. What it and we may have wrong together shows here: the tests of everything
// that speaks to DynamoDB, and all stories on a local run, with this engine behind them.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/dynamotest"
)

// packages are those whose tests speak to a DynamoDB.
func packages() []string {
	return []string{
		"./shared/ledger/dynamo", "./shared/merchant/dynamo", "./shared/webhook/dynamo", "./shared/limit/dynamo",
		"./functions/sweep", "./internal/local/dynamo",
	}
}

func main() {
	os.Exit(harness.Isolation{
		Name: "e2e-dynamodb", Prepare: installTools, RunIsolated: runSuite,
		NeedsOwnNetwork: func(context.Context, string) bool { return false }, // the tests install the embedded engine
	}.Main())
}

// installTools installs and fetches what is missing.
func installTools(ctx context.Context, site harness.Workspace) error {
	if err := harness.InstallTools(ctx, site.Root, "dynamodb"); err != nil {
		return err
	}
	return harness.FetchDependencies(ctx, site)
}

// runSuite does both side by side: stories wait much and work little.
func runSuite(ctx context.Context, site harness.Workspace) error {
	began := time.Now()
	logf := func(format string, values ...any) {
		fmt.Fprintf(os.Stdout, "[%4.0fs] %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, values...))
	}
	address, err := harness.StartDynamoDBLocal(ctx, site, "127.0.0.1")
	if err != nil {
		return err
	}
	logf("DynamoDB Local answers")
	return harness.RunParallel(ctx,
		func(ctx context.Context) error {
			err := harness.StorySuite{Variables: []string{"AWS_ENDPOINT_URL_DYNAMODB=" + address}}.Run(ctx, site, "^TestGateway$", "")
			if err == nil {
				logf("the stories are told")
			}
			return err
		},
		func(ctx context.Context) error {
			err := harness.RunTests(ctx, site, []string{dynamotest.ReferenceVariable + "=" + address}, packages()...)
			if err == nil {
				logf("the tests pass")
			}
			return err
		},
	)
}
