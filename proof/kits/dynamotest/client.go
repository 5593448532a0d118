package dynamotest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/shared/ledger/dynamo"
)

// NewClient returns a client of an endpoint whose requests pass through a transport. It retries without a wait.
func NewClient(endpoint string, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(endpoint), HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		}),
	})
}

// Table is an empty table in a DynamoDB of its own. Requests of Client pass through Transport.
type Table struct {
	Client    *dynamodb.Client
	Name      string
	Transport *Transport
}

// NewTable creates a table of the ledger's schema; the other stores need only its key. It stops with its DynamoDB when
// the test ends.
func NewTable(t testing.TB) *Table {
	t.Helper()
	transport := &Transport{counts: map[string]int{}}
	table := &Table{Client: NewClient(StartEndpoint(t), transport), Name: "table", Transport: transport}
	if _, err := table.Client.CreateTable(context.Background(), dynamo.Schema(table.Name)); err != nil {
		t.Fatalf("create a table: %v", err)
	}
	transport.TakeCounts()
	return table
}

// Transport counts requests, and loses responses after the requests were applied. It is safe for concurrent use.
type Transport struct {
	// Losses is the number of the next responses that get lost. Set it between requests.
	Losses int

	mutex  sync.Mutex
	counts map[string]int
}

// TakeCounts returns the requests since the last call, by operation.
func (c *Transport) TakeCounts() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	counts := c.counts
	c.counts = map[string]int{}
	return counts
}

// RoundTrip implements http.RoundTripper.
func (c *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.counts[operation]++
	if err != nil || c.Losses == 0 {
		return response, err
	}
	c.Losses--
	_ = response.Body.Close() // no caller reads a lost response
	return nil, errors.New("connection reset by peer")
}
