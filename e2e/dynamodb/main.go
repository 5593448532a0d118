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

	"mobilegateway/e2e/stage"
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
	os.Exit(stage.Enclosure{
		Name: "e2e-dynamodb", Prepare: prepare, Work: work,
		OwnNetwork: func(context.Context, string) bool { return false }, // the tests install the embedded engine
	}.Main())
}

// prepare installs and fetches what is missing.
func prepare(ctx context.Context, site stage.Site) error {
	if err := stage.Install(ctx, site.Root, "dynamodb"); err != nil {
		return err
	}
	return stage.FetchModules(ctx, site)
}

// work does both side by side: stories wait much and work little.
func work(ctx context.Context, site stage.Site) error {
	began := time.Now()
	say := func(format string, values ...any) {
		fmt.Fprintf(os.Stdout, "[%4.0fs] %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, values...))
	}
	address, err := stage.StartTables(ctx, site, "127.0.0.1")
	if err != nil {
		return err
	}
	say("DynamoDB Local answers")
	return stage.Together(ctx,
		func(ctx context.Context) error {
			err := stage.Stories{Variables: []string{"AWS_ENDPOINT_URL_DYNAMODB=" + address}}.Play(ctx, site, "^TestGateway$", "")
			if err == nil {
				say("the stories are told")
			}
			return err
		},
		func(ctx context.Context) error {
			err := stage.Tests(ctx, site, []string{dynamotest.Reference + "=" + address}, packages()...)
			if err == nil {
				say("the tests pass")
			}
			return err
		},
	)
}
