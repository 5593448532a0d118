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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
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

// KeySchema is the schema of the tables of merchants and limits, which declare only the partition key.
func KeySchema() *dynamodb.CreateTableInput {
	key := aws.String(dynamoitem.KeyAttribute)
	return &dynamodb.CreateTableInput{
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: key, AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: key, KeyType: types.KeyTypeHash}},
	}
}

// Table is an empty table in a DynamoDB of its own. Requests of Client pass through Transport.
type Table struct {
	Client    *dynamodb.Client
	Name      string
	Transport *Transport
}

// NewTable creates a table of a schema. It stops with its DynamoDB when the test ends.
func NewTable(t testing.TB, schema *dynamodb.CreateTableInput) *Table {
	t.Helper()
	transport := &Transport{}
	table := &Table{Client: NewClient(StartEndpoint(t), transport), Name: "table", Transport: transport}
	schema.TableName = &table.Name
	if _, err := table.Client.CreateTable(context.Background(), schema); err != nil {
		t.Fatalf("create a table: %v", err)
	}
	transport.TakeCounts()
	return table
}

// Transport counts requests, and loses responses after the requests were applied. The zero value is ready for use. It
// is safe for concurrent use.
type Transport struct {
	mutex  sync.Mutex
	counts map[string]int
	losses int
}

// TakeCounts returns the requests since the last call, by operation.
func (c *Transport) TakeCounts() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	counts := c.counts
	c.counts = nil
	return counts
}

// LoseResponses makes the responses to the next requests get lost; 0 ends that.
func (c *Transport) LoseResponses(count int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.losses = count
}

// RoundTrip implements http.RoundTripper.
func (c *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.counts[operation]++
	if err != nil || c.losses == 0 {
		return response, err
	}
	c.losses--
	_ = response.Body.Close() // no caller reads a lost response
	return nil, errors.New("connection reset by peer")
}
