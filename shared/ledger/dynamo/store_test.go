package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/internal/dynoxide"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/ledger/ledgertest"
)

// engines are the servers of the tests: the embedded one, and a reference if the environment names it.
var engines struct {
	sync.Mutex
	endpoints map[string]string
	server    *dynoxide.Server
	tables    int
}

func TestMain(m *testing.M) {
	server, err := dynoxide.Start(context.Background(), "", 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	engines.server = server
	engines.endpoints = map[string]string{"dynoxide": server.Endpoint()}
	if reference := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB_REFERENCE"); reference != "" {
		engines.endpoints["reference"] = reference
	}
	code := m.Run()
	server.Stop()
	os.Exit(code)
}

// onEach runs a test on every engine.
func onEach(t *testing.T, run func(t *testing.T, endpoint string)) {
	t.Helper()
	for name, endpoint := range engines.endpoints {
		t.Run(name, func(t *testing.T) { run(t, endpoint) })
	}
}

// client makes an SDK client whose requests pass through a transport.
func client(endpoint string, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(endpoint),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
		HTTPClient: &http.Client{Transport: transport, Timeout: 10 * time.Second},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		}),
	})
}

// table makes a table of the ledger's shape and drops it after the test.
func table(t *testing.T, c *dynamodb.Client) string {
	t.Helper()
	engines.Lock()
	engines.tables++
	name := fmt.Sprintf("ledger-%d-%d", time.Now().UnixNano(), engines.tables)
	engines.Unlock()
	ctx := context.Background()
	if _, err := c.CreateTable(ctx, dynamo.Schema(name)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}) })
	waiter := dynamodb.NewTableExistsWaiter(c,
		func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 20 * time.Millisecond })
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	return name
}

// wire counts requests by operation, and may drop responses after the server has applied the requests.
type wire struct {
	requests sync.Map // operation name to *atomic.Int64
	drop     func(operation string) bool
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	operation := request.Header.Get("X-Amz-Target")
	operation = operation[strings.LastIndex(operation, ".")+1:]
	counter, _ := w.requests.LoadOrStore(operation, &atomic.Int64{})
	counter.(*atomic.Int64).Add(1)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || w.drop == nil || !w.drop(operation) {
		return response, err
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return nil, errors.New("connection reset by peer")
}

func (w *wire) count(operation string) int64 {
	counter, found := w.requests.Load(operation)
	if !found {
		return 0
	}
	return counter.(*atomic.Int64).Load()
}

func TestConformance(t *testing.T) {
	onEach(t, func(t *testing.T, endpoint string) {
		c := client(endpoint, http.DefaultTransport)
		name := table(t, c)
		ledgertest.Run(t, func(*testing.T) ledgertest.Store { return dynamo.New(c, name) })
	})
}

// newBook makes a book over a new table, with the wire of its requests.
func newBook(t *testing.T, endpoint string) (*ledger.Book, *dynamo.Store, *wire) {
	t.Helper()
	w := &wire{}
	store := dynamo.New(client(endpoint, w), table(t, client(endpoint, http.DefaultTransport)))
	random := &counting{}
	book := &ledger.Book{Store: store, Reader: store, Now: ledgertest.Now, Rand: random}
	return book, store, w
}

// counting is a random source that never repeats and always starts alike.
type counting struct{ n atomic.Uint64 }

func (c *counting) Read(p []byte) (int, error) {
	text := fmt.Sprintf("%0*d", len(p), c.n.Add(1))
	return copy(p, text), nil
}

func charge(id string) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: id}, MerchantID: "merchant", Operator: "sandbox", Fingerprint: "f",
		LeaseUntil: ledgertest.Now().Add(25 * time.Second),
	}
}

func TestCallsOfACharge(t *testing.T) {
	onEach(t, func(t *testing.T, endpoint string) {
		ctx := context.Background()
		book, store, w := newBook(t, endpoint)
		reservation, verdict, err := book.Reserve(ctx, charge("1"), nil)
		if err != nil || verdict != ledger.NewReservation {
			t.Fatalf("Reserve = %v, %v", verdict, err)
		}
		if owner, err := store.ClaimReference(ctx, "merchant", "reference", reservation.ID); err != nil ||
			owner != reservation.ID {
			t.Fatalf("ClaimReference = %v, %v", owner, err)
		}
		if _, err := book.StoreOutcome(ctx, reservation,
			ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if got := w.count("PutItem"); got != 3 {
			t.Errorf("a first charge wrote %d times, want 3", got)
		}
		again, verdict, err := book.Reserve(ctx, charge("1"), nil)
		if err != nil || verdict != ledger.StoredResponse || string(again.ResponseBody) != "{}" {
			t.Fatalf("second Reserve = %v, %v", verdict, err)
		}
		if got := w.count("PutItem"); got != 4 {
			t.Errorf("a repeat cost %d calls, want 1", got-3)
		}
		if got := w.count("GetItem") + w.count("Query"); got != 0 {
			t.Errorf("%d reads, want none", got)
		}
	})
}

func TestLostResponses(t *testing.T) {
	onEach(t, func(t *testing.T, endpoint string) {
		ctx := context.Background()
		book, store, w := newBook(t, endpoint)
		dropNext := func() {
			var dropped atomic.Bool
			w.drop = func(string) bool { return dropped.CompareAndSwap(false, true) }
		}
		dropNext()
		reservation, verdict, err := book.Reserve(ctx, charge("1"), nil)
		if err != nil || verdict != ledger.NewReservation {
			t.Fatalf("Reserve = %v, %v; want NewReservation", verdict, err)
		}
		dropNext()
		if owner, err := store.ClaimReference(ctx, "merchant", "reference", reservation.ID); err != nil ||
			owner != reservation.ID {
			t.Fatalf("ClaimReference = %v, %v", owner, err)
		}
		dropNext()
		updated, err := book.StoreOutcome(ctx, reservation, ledger.CallOutcome{State: ledger.Unknown})
		if err != nil || updated.Version != 2 {
			t.Fatalf("StoreOutcome = version %d, %v; want version 2", updated.Version, err)
		}
		dropNext()
		taken, verdict, err := book.Reserve(ctx, charge("1"), func(string) time.Duration { return time.Hour })
		if err != nil || verdict != ledger.TakenOver || taken.Version != 3 {
			t.Fatalf("Reserve = version %d, %v, %v; want version 3, taken over", taken.Version, verdict, err)
		}
		if got := w.count("PutItem"); got != 9 { // 2 each: insert, claim, outcome; then 2 inserts, 1 takeover
			t.Errorf("%d writes, want 9", got)
		}
	})
}

func TestUnknownAttributesSurvive(t *testing.T) {
	onEach(t, func(t *testing.T, endpoint string) {
		ctx := context.Background()
		c := client(endpoint, http.DefaultTransport)
		name := table(t, c)
		store := dynamo.New(c, name)
		e := ledgertest.Full(t)
		item, err := dynamo.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		item["from_the_future"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("1.5")}},
		}}
		if _, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: &name, Item: item}); err != nil {
			t.Fatal(err)
		}
		book := &ledger.Book{Store: store, Reader: store, Now: ledgertest.Now, Rand: &counting{}}
		fail := func(e *ledger.Entry) error { e.Status = ledger.Failed; return nil }
		if _, err := book.Change(ctx, e.Key, fail); err != nil {
			t.Fatal(err)
		}
		out, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: &name,
			Key: map[string]types.AttributeValue{"pk": item["pk"]}})
		if err != nil {
			t.Fatal(err)
		}
		m, ok := out.Item["from_the_future"].(*types.AttributeValueMemberM)
		if !ok || len(m.Value) != 1 {
			t.Fatalf("from_the_future = %#v", out.Item["from_the_future"])
		}
		if s, _ := out.Item["su"].(*types.AttributeValueMemberS); s == nil || s.Value != "failed" {
			t.Fatalf("status = %#v", out.Item["su"])
		}
	})
}

func TestErrorsContainNoValue(t *testing.T) {
	ctx := context.Background()
	store := dynamo.New(client(engines.server.Endpoint(), http.DefaultTransport), "no-such-table")
	e := charge("Secret_123")
	e.MSISDN = "+2250700000000"
	e.BeginReservation("owner", ledgertest.Now())
	_, insert := store.Insert(ctx, e)
	_, replace := store.Replace(ctx, e)
	_, get := store.Get(ctx, e.Key)
	_, claim := store.ClaimReference(ctx, "merchant", "Secret_123", "id")
	_, due := store.DueKeys(ctx, 1, ledgertest.Now(), 10)
	_, _, day := store.Day(ctx, "Secret_123", ledgertest.Now(), "", 10)
	_, _, cursor := store.Day(ctx, "merchant", ledgertest.Now(), "Secret_123", 10)
	for name, err := range map[string]error{
		"insert": insert, "replace": replace, "get": get, "claim": claim, "due": due, "day": day, "cursor": cursor,
	} {
		if err == nil || strings.Contains(err.Error(), "Secret") || strings.Contains(err.Error(), "22507") {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := store.Get(cancelled, e.Key); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestItemOverTheSizeLimitIsAnError(t *testing.T) {
	c := client(engines.server.Endpoint(), http.DefaultTransport)
	store := dynamo.New(c, table(t, c))
	e := charge("1")
	e.BeginReservation("owner", ledgertest.Now())
	e.ResponseBody = bytes.Repeat([]byte{'x'}, 410<<10)
	if existing, err := store.Insert(context.Background(), e); err == nil {
		t.Fatalf("Insert = %v, want an error", existing)
	}
}
