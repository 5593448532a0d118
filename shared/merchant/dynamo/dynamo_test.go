package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/internal/dynamotest"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/merchant/merchanttest"
)

// client returns a client that uses a transport.
func client(endpoint string, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String(endpoint),
		HTTPClient:   &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
}

var tables atomic.Int64

// newTable makes an empty table like that of template.yaml.
func newTable(t *testing.T, c *dynamodb.Client) string {
	t.Helper()
	name := fmt.Sprintf("merchants%d", tables.Add(1))
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	return name
}

func TestRegistry(t *testing.T) {
	c := client(dynamotest.StartEndpoint(t), http.DefaultTransport)
	merchanttest.Run(t, func(t *testing.T) merchant.Registry { return dynamo.NewRegistry(c, newTable(t, c)) })
}

// lostResponseTransport passes each request to the server, and drops a number of responses.
type lostResponseTransport struct{ remaining atomic.Int64 }

func (l *lostResponseTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.remaining.Add(-1) >= 0 {
		_ = response.Body.Close()
		return nil, errors.New("connection reset by peer")
	}
	return response, err
}

func TestLostResponseIsNotARefusal(t *testing.T) {
	ctx := t.Context()
	wire := &lostResponseTransport{}
	c := client(dynamotest.StartEndpoint(t), wire)
	r := dynamo.NewRegistry(c, newTable(t, c))
	p := merchanttest.NewProfile(t, "DemoShop", 1)

	wire.remaining.Store(1)
	if err := r.Create(ctx, p); err != nil {
		t.Fatalf("Create: %v", err)
	}
	wire.remaining.Store(1)
	p.Countries = []string{"TN"}
	if err := r.Update(ctx, p); err != nil || p.Version != 2 {
		t.Fatalf("Update: %v, version %d", err, p.Version)
	}
	wire.remaining.Store(1)
	read, err := r.Profile(ctx, p.ID)
	if err != nil || read.Version != 2 || read.Countries[0] != "TN" {
		t.Fatalf("Profile = %+v, %v", read, err)
	}
}

// countingTransport counts requests by operation.
type countingTransport struct {
	reads, others atomic.Int64
	consistent    atomic.Bool
}

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
		c.reads.Add(1)
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		c.consistent.Store(strings.Contains(string(text), `"ConsistentRead":true`))
	} else {
		c.others.Add(1)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestProfileCausesOneConsistentRead(t *testing.T) {
	ctx := t.Context()
	wire := &countingTransport{}
	c := client(dynamotest.StartEndpoint(t), wire)
	r := dynamo.NewRegistry(c, newTable(t, c))
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	if err := r.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
	before := wire.others.Load()
	if _, err := dynamo.New(c, "missing-table").Profile(ctx, p.ID); err == nil {
		t.Error("a missing table gave no error")
	}
	wire.reads.Store(0)
	if read, err := r.Profile(ctx, p.ID); err != nil || read.Name != "DemoShop" {
		t.Fatalf("Profile = %v, %v", read, err)
	}
	if wire.reads.Load() != 1 || wire.others.Load() != before || !wire.consistent.Load() {
		t.Errorf("%d reads, %d other calls (consistent: %v), want one consistent read",
			wire.reads.Load(), wire.others.Load()-before, wire.consistent.Load())
	}
}

func TestReadableAndUnknownAttributesAreKept(t *testing.T) {
	ctx := t.Context()
	c := client(dynamotest.StartEndpoint(t), http.DefaultTransport)
	name := newTable(t, c)
	r := dynamo.NewRegistry(c, name)
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	if err := r.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
	key := dynamoitem.Key("merchant#" + p.ID)
	_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(name), Key: key, UpdateExpression: aws.String("SET later = :l"),
		ExpressionAttributeValues: dynamoitem.Item{":l": dynamoitem.Text("kept")},
	})
	if err != nil {
		t.Fatal(err)
	}
	merchant.Suspend(p, p.CreatedAt)
	if err := r.Update(ctx, p); err != nil {
		t.Fatal(err)
	}
	item, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(name), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	for attribute, want := range map[string]string{"name": "DemoShop", "status": "suspended", "later": "kept"} {
		if got := dynamoitem.ReadText(item.Item, attribute); got != want {
			t.Errorf("attribute %s is %q, want %q", attribute, got, want)
		}
	}
	if version, err := dynamoitem.ReadNumber(item.Item, "version"); version != 2 || err != nil {
		t.Errorf("attribute version is %d (%v), want 2", version, err)
	}
}
