package wiring

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"time"

	"mobilegateway/shared/awsclient"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	"mobilegateway/shared/pause"
	"mobilegateway/shared/secret"
	secretaws "mobilegateway/shared/secret/aws"
	"mobilegateway/shared/task"
)

// DynamoDB has the calls of DynamoDB that the stores of the functions make.
type DynamoDB interface {
	ledgerdynamo.Client
	limitdynamo.Client
}

// Outside connects a function with the world outside its own memory. The bootstraps fill it with the real world, and
// the simulator with models of it.
type Outside struct {
	// DynamoDB and SecretSource return the clients, which are made on first use.
	DynamoDB     func() DynamoDB
	SecretSource func() secret.Source
	// OpenDynamoDB opens the first connection to DynamoDB in the init phase.
	OpenDynamoDB func(context.Context) error
	// OperatorTransport and MerchantTransport send requests to operators and to merchants' servers; nil for
	// connections of their own.
	OperatorTransport http.RoundTripper
	MerchantTransport http.RoundTripper
	Now               func() time.Time
	Rand              io.Reader
	// Sleep waits, or returns the context's error.
	Sleep func(ctx context.Context, wait time.Duration) error
	// Await waits until done is closed, or returns the context's error. Several goroutines may wait for one channel.
	Await func(ctx context.Context, done <-chan struct{}) error
	// After calls run in a goroutine of its own after a time, unless stop is called before.
	After func(wait time.Duration, run func()) (stop func())
	// Start starts goroutines; nil for the go statement.
	Start task.Starter
	Log   io.Writer
}

// realOutside returns the real world over a client of AWS.
func realOutside(client *awsclient.Client) Outside {
	return Outside{
		DynamoDB:     func() DynamoDB { return client.DynamoDB() },
		SecretSource: func() secret.Source { return secretaws.New(client.SecretsManager()) },
		OpenDynamoDB: client.OpenDynamoDB,
		Now:          time.Now,
		Rand:         rand.Reader,
		Sleep:        pause.For,
		Await:        pause.Until,
		After:        pause.After,
		Log:          os.Stdout,
	}
}
