package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/internal/dynoxide"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/limit/dynamo"
	"mobilegateway/shared/limit/limittest"
)

var tableCounter atomic.Int64

// startTimeout bounds the start of the embedded engine.
const startTimeout = 20 * time.Second

// startDatabases are the embedded engine, and a reference where the environment names it.
func startDatabases(t *testing.T) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := dynoxide.Start(ctx, "", 0)
	if err != nil {
		t.Fatalf("dynoxide: %v", err)
	}
	t.Cleanup(server.Stop)
	found := map[string]string{"dynoxide": server.Endpoint()}
	if reference := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB_REFERENCE"); reference != "" {
		found["reference"] = reference
	}
	return found
}

// newClient talks to an engine through a transport.
func newClient(endpoint string, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(endpoint), HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
}

// createTable makes an empty table as template.yaml has it.
func createTable(t *testing.T, c *dynamodb.Client) string {
	t.Helper()
	name := fmt.Sprintf("limits%d-%d", os.Getpid(), tableCounter.Add(1))
	_, err := c.CreateTable(context.Background(), &dynamodb.CreateTableInput{
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

func newKey(transaction string) dailyamount.Key {
	return dailyamount.Key{MerchantID: "m1", Currency: "XOF", Day: "d", TransactionKey: transaction}
}

func TestStore(t *testing.T) {
	for name, endpoint := range startDatabases(t) {
		t.Run(name, func(t *testing.T) {
			c := newClient(endpoint, http.DefaultTransport)
			limittest.Run(t, func(t *testing.T) limittest.Store { return dynamo.New(c, createTable(t, c)) })
		})
	}
}

// stubTransport returns the same response to every request.
type stubTransport struct {
	status       int
	body         string
	requestCount atomic.Int64
}

func (a *stubTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	a.requestCount.Add(1)
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(a.body)),
	}, nil
}

// Some errors come only from AWS's own table. The texts are the service's.
func TestErrorMapping(t *testing.T) {
	const space = "com.amazonaws.dynamodb.v20120810#"
	reasons := func(day, countedUpdate string) string {
		return `{"__type":"` + space + `TransactionCanceledException","Message":"m1 XOF",` +
			`"CancellationReasons":[{"Code":"` + day + `"},{"Code":"` + countedUpdate + `"}]}`
	}
	one := func(name string) string { return `{"__type":"` + space + name + `","message":"m1 XOF"}` }
	count := dailyamount.Adjustment{Key: newKey("k"), NewAmount: 5, Fence: 1}
	touch := count
	touch.OldAmount = 5
	cases := []struct {
		name, body string
		transfer   *dailyamount.Adjustment // nil: a rate
		want       error                   // nil: any other error
	}{
		{"another transaction on the day", reasons("TransactionConflict", "None"), &count, dailyamount.ErrConflict},
		{"another transaction on the record", reasons("None", "TransactionConflict"), &count, dailyamount.ErrConflict},
		{"a conflict beside a refusal", reasons("TransactionConflict", "ConditionalCheckFailed"), &count,
			dailyamount.ErrConflict},
		{"the partition's limit", reasons("ThrottlingError", "None"), &count, dailyamount.ErrConflict},
		{"an unknown reason", reasons("ValidationError", "None"), &count, nil},
		{"an adjustment that is throttled", one("ProvisionedThroughputExceededException"), &count,
			dailyamount.ErrConflict},
		{"an adjustment that is not allowed", one("AccessDeniedException"), &count, nil},
		{"another transaction on a fence", one("TransactionConflictException"), &touch, dailyamount.ErrConflict},
		{"a fence update that is not allowed", one("AccessDeniedException"), &touch, nil},
		{"a rate's partition is full", one("ProvisionedThroughputExceededException"), nil, limit.ErrThrottled},
		{"a rate that is not allowed", one("AccessDeniedException"), nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := dynamo.New(newClient("http://127.0.0.1:1", &stubTransport{status: 400, body: c.body}), "limits")
			var err error
			if c.transfer == nil {
				_, _, err = s.UpdateRate(context.Background(), "m1", limit.RateUpdate{AllowAbsent: true, Set: 1})
			} else {
				_, err = s.Adjust(context.Background(), *c.transfer)
			}
			switch {
			case err == nil, c.want != nil && !errors.Is(err, c.want):
				t.Errorf("error %v, want %v", err, c.want)
			case c.want == nil && errors.Is(err, dailyamount.ErrConflict):
				t.Error("the error is taken for a conflict")
			}
			if err != nil && strings.Contains(err.Error(), "m1") {
				t.Errorf("the error quotes the request: %v", err)
			}
		})
	}
}

// lostResponseTransport sends requests to the server and loses a number of responses.
type lostResponseTransport struct{ remaining atomic.Int64 }

func (l *lostResponseTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.remaining.Add(-1) >= 0 {
		_ = response.Body.Close()
		return nil, errors.New("connection reset by peer")
	}
	return response, err
}

// countingTransport counts the requests by operation.
type countingTransport struct{ updates, transactions, others atomic.Int64 }

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch target := r.Header.Get("X-Amz-Target"); {
	case strings.HasSuffix(target, ".UpdateItem"):
		c.updates.Add(1)
	case strings.HasSuffix(target, ".TransactWriteItems"):
		c.transactions.Add(1)
	default:
		c.others.Add(1)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Each call of the store is one request, also if the condition fails.
func TestOneRequestPerCall(t *testing.T) {
	ctx, wire := context.Background(), &countingTransport{}
	c := newClient(startDatabases(t)["dynoxide"], wire)
	s := dynamo.New(c, createTable(t, c))
	wire.others.Store(0)
	end := time.Now().Add(time.Hour)
	for _, m := range []limit.RateUpdate{
		{AllowAbsent: true, Set: 5}, {Max: 1, AllowAbsent: true, Set: 7}, {Min: 5, Max: 5, Add: 1},
	} {
		m.ExpireAt = end
		if _, _, err := s.UpdateRate(ctx, "m1", m); err != nil {
			t.Error(err)
		}
	}
	for _, x := range []dailyamount.Adjustment{
		{NewAmount: 5, MaxSumBefore: 4, Fence: 1}, {NewAmount: 5, MaxSumBefore: 4, Fence: 1},
		{OldAmount: 5, NewAmount: 5, Fence: 2}, {OldAmount: 5, Fence: 3}, {NewAmount: 9, MaxSumBefore: -1, Fence: 4},
	} {
		x.Key, x.ExpireAt = newKey("k"), end
		if _, err := s.Adjust(ctx, x); err != nil {
			t.Error(err)
		}
	}
	got := [3]int64{wire.updates.Load(), wire.transactions.Load(), wire.others.Load()}
	if want := [3]int64{3 + 1, 4, 0}; got != want {
		t.Errorf("updates, transactions and other requests: %v, want %v", got, want)
	}
}

// The SDK retries an adjustment whose response was lost: it counts once, and the retry finds it applied.
func TestLostResponseIsCountedOnce(t *testing.T) {
	ctx := context.Background()
	for name, endpoint := range startDatabases(t) {
		t.Run(name, func(t *testing.T) {
			wire := &lostResponseTransport{}
			c := newClient(endpoint, wire)
			s := dynamo.New(c, createTable(t, c))
			count := dailyamount.Adjustment{
				Key: newKey("k"), NewAmount: 5, Fence: 1, MaxSumBefore: 100, ExpireAt: time.Now().Add(time.Hour),
			}
			wire.remaining.Store(1)
			first, err := s.Adjust(ctx, count)
			if err != nil || !first.Applied && (first.Existing == nil || first.Existing.Amount != 5) {
				t.Errorf("%+v, %v", first, err)
			}
			conditionErr := count
			conditionErr.TransactionKey, conditionErr.MaxSumBefore = "z", 4
			if full, err := s.Adjust(ctx, conditionErr); err != nil || full.Applied || full.DaySum != 5 {
				t.Errorf("%+v, %v", full, err)
			}
		})
	}
}
