package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

// newStore returns a store over an empty table, and the table.
func newStore(t *testing.T) (*dynamo.Store, *dynamotest.Table) {
	t.Helper()
	table := dynamotest.NewTable(t)
	return dynamo.New(table.Client, table.Name), table
}

func newBook(store *dynamo.Store) *ledger.Book {
	return &ledger.Book{Store: store, Reader: store, Now: ledgertest.Now, Rand: rand.Reader}
}

func charge(id string) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: id}, Merchant: ledger.Merchant{ID: "merchant"},
		Route: ledger.Route{Operator: "sandbox"}, Request: ledger.Request{Fingerprint: "f"},
		Call: ledger.Call{LeaseUntil: ledgertest.Now().Add(25 * time.Second)},
	}
}

// assertRequests compares the requests since the last call.
func assertRequests(t *testing.T, table *dynamotest.Table, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, table.Transport.TakeCounts()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestCallsOfACharge(t *testing.T) {
	ctx := context.Background()
	store, table := newStore(t)
	book := newBook(store)
	reservation, verdict, err := book.Reserve(ctx, charge("1"), nil)
	if err != nil || verdict != ledger.NewReservation {
		t.Fatalf("Reserve = %v, %v", verdict, err)
	}
	if owner, err := store.ClaimReference(ctx, reservation); err != nil ||
		owner != reservation.ID {
		t.Fatalf("ClaimReference = %v, %v", owner, err)
	}
	if _, err := book.StoreOutcome(ctx, reservation, ledger.RecordSuccess,
		ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	assertRequests(t, table, map[string]int{"PutItem": 3})
	again, verdict, err := book.Reserve(ctx, charge("1"), nil)
	if err != nil || verdict != ledger.StoredResponse || string(again.Response.Body) != "{}" {
		t.Fatalf("second Reserve = %v, %v", verdict, err)
	}
	assertRequests(t, table, map[string]int{"PutItem": 1})
}

func TestLostResponses(t *testing.T) {
	ctx := context.Background()
	store, table := newStore(t)
	book := newBook(store)
	table.Transport.Losses = 1
	reservation, verdict, err := book.Reserve(ctx, charge("1"), nil)
	if err != nil || verdict != ledger.NewReservation {
		t.Fatalf("Reserve = %v, %v; want NewReservation", verdict, err)
	}
	table.Transport.Losses = 1
	if owner, err := store.ClaimReference(ctx, reservation); err != nil ||
		owner != reservation.ID {
		t.Fatalf("ClaimReference = %v, %v", owner, err)
	}
	table.Transport.Losses = 1
	updated, err := book.StoreOutcome(ctx, reservation, ledger.RecordUnknown, ledger.CallOutcome{State: ledger.Unknown})
	if err != nil || updated.Version != 2 {
		t.Fatalf("StoreOutcome = version %d, %v; want version 2", updated.Version, err)
	}
	table.Transport.Losses = 1
	taken, verdict, err := book.Reserve(ctx, charge("1"), func(*ledger.Entry) time.Duration { return time.Hour })
	if err != nil || verdict != ledger.TakenOver || taken.Version != 3 {
		t.Fatalf("Reserve = version %d, %v, %v; want version 3, taken over", taken.Version, verdict, err)
	}
	assertRequests(t, table, map[string]int{"PutItem": 9}) // 2 each: insert, claim, outcome; then 2 inserts, 1 takeover
}

func TestUnknownAttributesSurvive(t *testing.T) {
	ctx := context.Background()
	store, table := newStore(t)
	e := ledgertest.Full(t)
	item, err := dynamo.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	item["from_the_future"] = &types.AttributeValueMemberM{Value: dynamoitem.Item{
		"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("1.5")}},
	}}
	if _, err := table.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table.Name, Item: item}); err != nil {
		t.Fatal(err)
	}
	fail := func(e *ledger.Entry) (ledger.Transition, error) {
		e.Status = ledger.Failed
		return ledger.EndPayment, nil
	}
	if _, err := newBook(store).Change(ctx, e.Key, fail); err != nil {
		t.Fatal(err)
	}
	stored, err := dynamoitem.Get(ctx, table.Client, table.Name, e.Key.String())
	if err != nil {
		t.Fatal(err)
	}
	m, ok := stored["from_the_future"].(*types.AttributeValueMemberM)
	if !ok || len(m.Value) != 1 {
		t.Fatalf("from_the_future = %#v", stored["from_the_future"])
	}
	if status := dynamoitem.ReadText(stored, "su"); status != "failed" {
		t.Fatalf("status = %q", status)
	}
}

func TestErrorsContainNoValue(t *testing.T) {
	ctx := context.Background()
	store := dynamo.New(dynamotest.NewClient(dynamotest.StartEndpoint(t), http.DefaultTransport), "no-such-table")
	e := charge("Secret_123")
	e.Request.MSISDN = "+2250700000000"
	e.BeginReservation("owner", ledgertest.Now())
	_, insert := store.Insert(ctx, e, ledger.Reserve)
	_, replace := store.Replace(ctx, e, ledger.Reschedule)
	_, get := store.Get(ctx, e.Key)
	_, claim := store.ClaimReference(ctx, e)
	_, _, due := store.DueKeys(ctx, ledger.DueQuery{Shard: 1, Before: ledgertest.Now(), Limit: 10})
	move := store.MoveDue(ctx, e.Key, ledgertest.Now(), ledgertest.Now())
	_, _, day := store.Day(ctx, ledger.DayQuery{MerchantID: "Secret_123", Day: ledgertest.Now()})
	_, _, cursor := store.Day(ctx, ledger.DayQuery{MerchantID: "merchant", Day: ledgertest.Now(), Cursor: "Secret_123"})
	for name, err := range map[string]error{
		"insert": insert, "replace": replace, "get": get, "claim": claim, "due": due, "day": day, "cursor": cursor,
		"move": move,
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
	store, _ := newStore(t)
	e := charge("1")
	e.BeginReservation("owner", ledgertest.Now())
	e.Response.Body = make([]byte, 410<<10)
	if _, err := rand.Read(e.Response.Body); err != nil { // it must not get shorter
		t.Fatal(err)
	}
	if existing, err := store.Insert(context.Background(), e, ledger.Reserve); err == nil {
		t.Fatalf("Insert = %v, want an error", existing)
	}
}

// interleaved makes another write just before a put.
type interleaved struct {
	dynamo.Client
	before func()
}

func (i interleaved) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	i.before()
	return i.Client.PutItem(ctx, in, options...)
}

// A write that comes between the read and the put of MoveDue is not lost, also if it leaves the due time as it is.
func TestMoveDueLosesAgainstAWrite(t *testing.T) {
	ctx := context.Background()
	store, table := newStore(t)
	book := newBook(store)
	reservation, _, err := book.Reserve(ctx, charge("1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		if _, err := book.Change(ctx, reservation.Key, func(e *ledger.Entry) (ledger.Transition, error) {
			e.OperatorReference = "op-1"
			return ledger.KeepConflict, nil
		}); err != nil {
			t.Error(err)
		}
	}
	slow := dynamo.New(interleaved{table.Client, write}, table.Name)
	if err := slow.MoveDue(ctx, reservation.Key, reservation.DueAt, reservation.DueAt.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	e, err := store.Get(ctx, reservation.Key)
	if err != nil || e.OperatorReference != "op-1" || e.Version != 2 || !e.DueAt.Equal(reservation.DueAt) {
		t.Errorf("%+v, %v; want the other write, due as before", e, err)
	}
}

// A page without a key that is due may have more behind it.
type emptyPage struct {
	dynamo.Client
	last dynamoitem.Item
}

func (c emptyPage) Query(
	context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	return &dynamodb.QueryOutput{LastEvaluatedKey: c.last}, nil
}

func TestEmptyPageHidesNothing(t *testing.T) {
	last := dynamoitem.Key("charge#c1")
	last["da"] = dynamoitem.Number(1700000000000)
	store := dynamo.New(emptyPage{last: last}, "table")
	query := ledger.DueQuery{Shard: 1, Before: ledgertest.Now(), Limit: 10}
	keys, next, err := store.DueKeys(context.Background(), query)
	if err != nil || len(keys) != 0 || next != "1700000000000#charge#c1" {
		t.Errorf("an empty page before another one: %v, cursor %q, %v", keys, next, err)
	}
}

func TestChargeOfReference(t *testing.T) {
	ctx := context.Background()
	store, table := newStore(t)
	e := charge("c1")
	e.Request.ReferenceCode = "REF-1"
	if _, err := store.ClaimReference(ctx, e); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{{"merchant", "REF-1", "c1"}, {"merchant", "REF-2", ""}, {"another", "REF-1", ""}} {
		if id, err := store.ChargeOfReference(ctx, c[0], c[1]); id != c[2] || err != nil {
			t.Errorf("%s of %s: %q, %v; want %q", c[1], c[0], id, err, c[2])
		}
	}
	if _, err := dynamo.New(table.Client, "no-such-table").ChargeOfReference(ctx, "merchant", "REF-1"); err == nil {
		t.Error("a reference was read from a table that does not exist")
	}
}
