package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/dynamoitem"
)

// A plan has the outcomes of a call's attempts. The last one repeats.
type plan []Outcome

func (p plan) outcome(attempt int) Outcome { return p[min(attempt, len(p))-1] }

// transport lets the requests of the real SDK have the outcomes of a plan.
type transport struct {
	plan     plan
	requests int
	tokens   map[string]bool // of transactions
}

func (x *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x.requests++
	body, _ := io.ReadAll(r.Body)
	if _, after, found := strings.Cut(string(body), `"ClientRequestToken":"`); found {
		x.tokens[after[:36]] = true
	}
	respond := func(status int, kind, message, rest string) (*http.Response, error) {
		text := "{}"
		if kind != "" {
			text = fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","Message":%q%s}`, kind, message, rest)
		}
		header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
		return &http.Response{
			StatusCode: status, Header: header, Request: r, Body: io.NopCloser(strings.NewReader(text)),
		}, nil
	}
	transact := strings.HasSuffix(r.Header.Get("X-Amz-Target"), operationTransact)
	switch x.plan.outcome(x.requests) {
	case AppliedResponseLost, AppliedLate, NotAppliedTimeout:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case AppliedThenCut, NotAppliedCut:
		return nil, errors.New("read: connection reset by peer")
	case AppliedInternalError, InternalError:
		return respond(500, "InternalServerError", "Internal server error", "")
	case Throttled:
		return respond(400, "ProvisionedThroughputExceededException",
			"The level of configured provisioned throughput for the table was exceeded.", "")
	case Conflict:
		if !transact {
			return respond(400, "TransactionConflictException", "Transaction is ongoing for the item", "")
		}
		return respond(400, "TransactionCanceledException", "Transaction cancelled, please refer cancellation reasons "+
			"for specific reasons [TransactionConflict]",
			`,"CancellationReasons":[{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"}]`)
	}
	return respond(200, "", "", "")
}

// writer is what both clients have.
type writer interface {
	PutItem(context.Context, *dynamodb.PutItemInput, ...options) (*dynamodb.PutItemOutput, error)
	TransactWriteItems(
		context.Context, *dynamodb.TransactWriteItemsInput, ...options,
	) (*dynamodb.TransactWriteItemsOutput, error)
}

// describeError returns what a caller can find out about an error.
func describeError(err error) string {
	if err == nil {
		return "none"
	}
	var operation *smithy.OperationError
	var attempts *retry.MaxAttemptsError
	var response *awshttp.ResponseError
	var cancelled *smithy.CanceledError
	var conflict *types.TransactionConflictException
	var throughput *types.ProvisionedThroughputExceededException
	var internal *types.InternalServerError
	var transaction *types.TransactionCanceledException
	var network net.Error
	var service smithy.APIError
	kinds := []bool{
		errors.As(err, &operation), errors.As(err, &attempts), errors.As(err, &response), errors.As(err, &cancelled),
		errors.As(err, &conflict), errors.As(err, &throughput), errors.As(err, &internal),
		errors.As(err, &transaction) && len(transaction.CancellationReasons) == 1,
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.As(err, &network) && network.Timeout(), errors.As(err, &service),
	}
	// The HTTP client and its context end at the same time, so either may write the text.
	text := strings.ReplaceAll(err.Error(), " (Client.Timeout exceeded while awaiting headers)", "")
	return fmt.Sprint(kinds, " ", text)
}

// observed is what a caller sees of a call.
type observed struct {
	Error    string
	Duration time.Duration
	Attempts int
}

// observe runs one call with a deadline, 0 for none.
func observe(t *testing.T, w writer, transact bool, deadline time.Duration, attempts *int) observed {
	t.Helper()
	ctx := t.Context()
	if deadline > 0 {
		bounded, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		ctx = bounded
	}
	started := time.Now()
	var err error
	if transact {
		_, err = w.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: aws.String("ledger"), Item: dynamoitem.Key("pay#1")}},
		}})
	} else {
		_, err = w.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("ledger"), Item: dynamoitem.Key("pay#1")})
	}
	return observed{Error: describeError(err), Duration: time.Since(started), Attempts: *attempts}
}

// realClient is the SDK's client, as the functions configure it.
type realClient struct {
	*dynamodb.Client
	http options
}

func (c realClient) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, _ ...options,
) (*dynamodb.PutItemOutput, error) {
	return c.Client.PutItem(ctx, in, c.http)
}

func (c realClient) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...options,
) (*dynamodb.TransactWriteItemsOutput, error) {
	return c.Client.TransactWriteItems(ctx, in, c.http)
}

// newRealClient returns the client of package awsclient over a transport.
func newRealClient(t *testing.T, x *transport) realClient {
	t.Helper()
	client, err := awsclient.New(func(name string) string {
		return map[string]string{
			"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "SECRET",
		}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	return realClient{client.DynamoDB(), func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: x, Timeout: attemptTimeout}
	}}
}

// sleep waits in the time of the bubble.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// newModelClient returns a client of the model with the outcomes of a plan.
func newModelClient(t *testing.T, outcomes plan, attempts *int) *Client {
	t.Helper()
	db, _ := newLedger(t)
	client := NewClient(db)
	client.Sleep = sleep
	client.Gate = func(_ context.Context, call Call) Decision {
		*attempts = call.Attempt
		return Decision{Outcome: outcomes.outcome(call.Attempt)}
	}
	return client
}

// TestClientMatchesSDK compares error, duration and attempts of every sequence of three outcomes with the SDK.
func TestClientMatchesSDK(t *testing.T) {
	for _, transact := range []bool{false, true} {
		for _, deadline := range []time.Duration{0, time.Second, 1520 * time.Millisecond, 3100 * time.Millisecond} {
			t.Run(fmt.Sprint("transact=", transact, " deadline=", deadline), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { compareWithSDK(t, transact, deadline) })
			})
		}
	}
}

func compareWithSDK(t *testing.T, transact bool, deadline time.Duration) {
	// The other outcomes look like one of these to the client.
	distinct := plan{Applied, AppliedResponseLost, NotAppliedCut, InternalError, Throttled, Conflict}
	n := len(distinct)
	for number := range n * n * n {
		outcomes := plan{distinct[number%n], distinct[number/n%n], distinct[number/n/n]}
		x := &transport{plan: outcomes, tokens: map[string]bool{}}
		want := observe(t, newRealClient(t, x), transact, deadline, &x.requests)
		if transact != (len(x.tokens) == 1) {
			t.Fatalf("outcomes %v: the SDK sent the tokens %v", outcomes, x.tokens)
		}
		attempts := 0
		got := observe(t, newModelClient(t, outcomes, &attempts), transact, deadline, &attempts)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("outcomes %v (-SDK +model):\n%s", outcomes, diff)
		}
	}
}

// TestRetryQuota uses up the SDK's quota of retries: an instance that sees only timeouts retries less and less.
func TestRetryQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &transport{plan: plan{NotAppliedTimeout}}
		real := newRealClient(t, x)
		attempts := 0
		model := newModelClient(t, x.plan, &attempts)
		for i := range 60 {
			x.requests = 0
			want, got := observe(t, real, false, 0, &x.requests), observe(t, model, false, 0, &attempts)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("call %d (-SDK +model):\n%s", i, diff)
			}
		}
		if attempts != 1 {
			t.Fatalf("the last call has %d attempts, want 1", attempts)
		}
	})
}
