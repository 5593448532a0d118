package relay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/functions/notif"
	"mobilegateway/functions/relay"
	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

// stack is the stack name in the log lines, timeout the function's.
const (
	stack   = "gateway-dev"
	timeout = 20 * time.Second
)

// relayFixture is a fixture with a relay.
type relayFixture struct {
	*deliverytest.DeliveryFixture
	relay *relay.Relay
}

// The summaries of payments whose notification was delivered, and of those that are left to the sweep.
var (
	successDelivered = deliverytest.EntrySummary{
		State: ledger.Done, Status: ledger.Successful, Delivered: 1, UserSMS: ledger.UserSMSSent,
	}
	failureQueued = deliverytest.EntrySummary{State: ledger.Done, Status: ledger.Failed, Outbox: 1, Due: true}
)

func newFixture(t testing.TB) *relayFixture {
	t.Helper()
	return newFixtureOf(deliverytest.New(t))
}

// newFixtureOf returns a fixture with a relay of its parts. Its limits are those of a very slow machine.
func newFixtureOf(k *deliverytest.DeliveryFixture) *relayFixture {
	return &relayFixture{k, &relay.Relay{
		Book: k.Book, Courier: k.Courier, DecodeImage: dynamo.DecodeImage, Now: k.Clock.Now, Log: k.LogLines,
		StackName: stack, Limits: relay.Limits{Prepare: time.Minute, Send: time.Minute, Store: time.Minute},
	}}
}

// relayEntries sends a batch with the entries to the relay and checks that no record fails.
func (s *relayFixture) relayEntries(t testing.TB, entries ...*ledger.Entry) {
	t.Helper()
	s.invoke(t, deliverytest.StreamEvent(t, entries...))
}

func (s *relayFixture) invoke(t testing.TB, event []byte) {
	t.Helper()
	response, err := s.relay.Invoke(s.InvocationContext(t, timeout), event)
	if err != nil || string(response) != `{"batchItemFailures":[]}` {
		t.Errorf("response %s, %v, want a batch without failures", response, err)
	}
}

func (s *relayFixture) storeFailed(id, path string) *ledger.Entry {
	return s.StoreFinalPayment(id, ledger.Failed, func(e *ledger.Entry) { e.Outbox.URL = s.MerchantServer.URL + path })
}

func endpoint(s *relayFixture, path string) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: s.MerchantServer.URL + path}
}

// assertWrites checks the number of writes of the ledger.
func (s *relayFixture) assertWrites(t *testing.T, want int) {
	t.Helper()
	if got := s.Ledger.WriteCount(); got != want {
		t.Errorf("%d writes of the ledger, want %d", got, want)
	}
}

// One write stores the delivered notification and the payer's SMS.
func TestNotificationDelivered(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
	s.relayEntries(t, e)
	after := s.AssertEntry(t, e, successDelivered)
	if after.Outbox.Delivered[0].Attempts != 1 || after.Outbox.WakesRelay() {
		t.Errorf("notification %+v, wakes the relay: %v", after.Outbox.Delivered[0], after.Outbox.WakesRelay())
	}
	s.assertWrites(t, 1)
	if reads, healthWrites := s.Ledger.CallCount(storetest.Get), s.HealthStore.WriteCount(); reads+healthWrites != 0 {
		t.Errorf("%d reads of the ledger and %d writes of health, want none", reads, healthWrites)
	}
	s.AssertReceived(t, 1)
	s.AssertUserSMSCalls(t, 1)
	s.AssertMetric(t, "DeliveredNotifications", 1)
	if !strings.Contains(s.LogLines.String(), `"Stack":"`+stack+`","Operation":"relay"`) {
		t.Errorf("the line does not name the stack: %s", s.LogLines)
	}
	if line := s.LogLines.String(); !strings.Contains(line, `"Outcome":"posted"`) || strings.Contains(line, `"Cause"`) {
		t.Errorf("the line does not say that it was posted, or names a cause: %s", line)
	}
}

// From the request to the delivered notification a payment costs four writes: reservation, outcome, final status,
// delivery.
func TestWriteCount(t *testing.T) {
	s := newFixture(t)
	handler := &notif.CallbackHandler{
		Verifier: s.CallbackKeys, Book: s.Book, Confirmer: s.Confirmer,
		ClaimRecheckInterval: deliverytest.ClaimRecheckInterval, Now: s.Clock.Now,
	}
	s.Serve("notif", handler.Routes()...)
	ctx := s.InvocationContext(t, timeout)
	reservation, verdict, err := s.Book.Reserve(ctx, s.NewReservedPayment("DemoShop_1001"), nil)
	if err != nil || verdict != ledger.NewReservation {
		t.Fatal(verdict, err)
	}
	accepted := ledger.CallOutcome{
		State: ledger.Done, Status: ledger.Pending, ResponseStatus: 201, ResponseBody: []byte("{}"),
	}
	if _, err := s.Book.StoreOutcome(ctx, reservation, ledger.RecordSuccess, accepted); err != nil {
		t.Fatal(err)
	}
	s.Operator.SetStatus("Successful")
	token := s.SignPath(t, callback.PaymentPath("sandbox", "DemoShop_1001"))
	s.AssertCommitted(t, operationtest.LoadEvent(t, "../notif/testdata/event.json").SetPathParameter("token", token))
	s.relayEntries(t, s.MustGet(t, reservation))
	s.AssertEntry(t, reservation, successDelivered)
	s.assertWrites(t, 4)
}

// The golden event is a batch in the form of DynamoDB Streams.
func TestGoldenEvent(t *testing.T) {
	s := newFixture(t)
	const url = "https://shop.example.com/notif"
	e := s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.Outbox.URL = url })
	operationtest.Golden(t, "testdata/event.json", deliverytest.StreamEvent(t, e))
	event, err := os.ReadFile("testdata/event.json")
	if err != nil {
		t.Fatal(err)
	}
	e.Outbox.URL = s.MerchantServer.URL + "/demo"
	s.StoreEntry(e)
	s.invoke(t, []byte(strings.ReplaceAll(string(event), url, e.Outbox.URL)))
	s.AssertReceived(t, 1)
	if id := s.MerchantServer.Received("/demo")[0].ID(); id != e.Outbox.Head().ID {
		t.Errorf("webhook-id %s, want %s", id, e.Outbox.Head().ID)
	}
}

func TestLeftToTheSweep(t *testing.T) {
	none := func(*relayFixture) {}
	health := func(h webhook.Health) func(*relayFixture) {
		return func(s *relayFixture) {
			h.Endpoint, h.Version = endpoint(s, "/demo"), 1
			s.HealthStore.StoreHealth(h)
		}
	}
	unchanged := func(*ledger.Entry, time.Time) {}
	cases := []struct {
		name    string
		prepare func(*relayFixture)
		change  func(e *ledger.Entry, now time.Time)
	}{
		{"an image with less than 20 s of the lease left", func(s *relayFixture) {
			s.Clock.Advance(40*time.Second + time.Millisecond)
		}, unchanged},
		{"an image that is long overdue", func(s *relayFixture) { s.Clock.Advance(time.Hour) }, unchanged},
		{"a notification with an attempt", none, func(e *ledger.Entry, now time.Time) {
			failed := ledger.FailedAttempt{HTTPStatus: 500, Reason: "server"}
			e.Outbox.RecordFailedAttempt(*e.Outbox.HeadClaim(), failed, now.Add(time.Hour))
		}},
		{"a parked notification", none, func(e *ledger.Entry, now time.Time) { e.Outbox.Park(now) }},
		{"a dead letter", none, func(e *ledger.Entry, now time.Time) {
			e.Outbox.DeadLetter(e.Outbox.Head().ID, "server", now)
		}},
		{"an empty outbox", none, func(e *ledger.Entry, _ time.Time) { e.Outbox.Waiting = nil }},
		{"a closed fast path", health(webhook.Health{Failures: 5}), unchanged},
		{"a disabled endpoint", health(webhook.Health{DisabledAt: time.Now()}), unchanged},
		{"health that cannot be read", func(s *relayFixture) { s.HealthStore.Err = errors.New("down") }, unchanged},
		{"secrets that cannot be read", func(s *relayFixture) { s.ProfileStore.Missing = true }, unchanged},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
			c.change(e, s.Clock.Now())
			s.StoreEntry(e)
			c.prepare(s)
			s.relayEntries(t, e)
			s.AssertReceived(t, 0)
			s.assertWrites(t, 0)
		})
	}
	t.Run("with exactly 20 s left it posts", func(t *testing.T) {
		s := newFixture(t)
		e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
		s.Clock.Advance(40 * time.Second)
		s.relayEntries(t, e)
		s.AssertDelivered(t, e)
	})
	t.Run("the payer's SMS is sent nevertheless", func(t *testing.T) {
		s := newFixture(t)
		s.ProfileStore.Err = errors.New("down")
		e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
		s.relayEntries(t, e)
		after := s.AssertEntry(t, e, deliverytest.EntrySummary{
			State: ledger.Done, Status: ledger.Successful, Outbox: 1, UserSMS: ledger.UserSMSSent, Due: true,
		})
		if attempts := after.Outbox.Head().Attempts; attempts != 0 {
			t.Errorf("%d attempts counted, want none", attempts)
		}
	})
}

// A failed attempt is stored and due on the schedule; the batch never fails.
func TestFailedDelivery(t *testing.T) {
	s := newFixture(t)
	s.MerchantServer.RespondWith("/failing", 500)
	s.MerchantServer.RespondWith("/gone", 410)
	failing, gone := s.storeFailed("DemoShop_1", "/failing"), s.storeFailed("DemoShop_2", "/gone")
	healthy := s.storeFailed("DemoShop_3", "/healthy")
	s.relayEntries(t, failing, gone, healthy)
	head := s.MustHead(t, failing)
	if head.Attempts != 1 || head.LastStatus != 500 {
		t.Errorf("after a 500: %+v, want one failed attempt", head)
	}
	if wait := head.NextAttemptAt.Sub(s.Clock.Now()); wait < 4*time.Second || wait > 6*time.Second {
		t.Errorf("next attempt after %s, want 4s to 6s", wait)
	}
	if head := s.MustHead(t, gone); !head.Parked || s.HealthStore.Stored(endpoint(s, "/gone")).Enabled() {
		t.Errorf("after a 410: %+v, want it parked at a disabled endpoint", head)
	}
	s.AssertDelivered(t, healthy)
}

// The records of a batch are delivered concurrently: no slow server delays another merchant.
func TestRecordsInParallel(t *testing.T) {
	s := newFixture(t)
	const records = 25
	var arrived sync.WaitGroup
	arrived.Add(records)
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait() // no response before all requests have arrived
	})
	var entries []*ledger.Entry
	for i := range records {
		entries = append(entries, s.StoreFinalPayment(fmt.Sprint("DemoShop_", i), ledger.Failed))
	}
	s.relayEntries(t, entries...)
	s.AssertDelivered(t, entries...)
	s.assertWrites(t, records)
}

// The SMS and the post run concurrently: neither waits for the other.
func TestUserSMSInParallelWithPost(t *testing.T) {
	s := newFixture(t)
	postStarted, smsStarted := make(chan struct{}), make(chan struct{})
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) {
		close(postStarted)
		<-smsStarted
	})
	s.Operator.UserSMSFunc = func(operator.UserSMSCall) operator.Result {
		close(smsStarted)
		<-postStarted
		return operator.Result{Outcome: operator.Succeeded}
	}
	e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
	s.relayEntries(t, e)
	s.AssertEntry(t, e, successDelivered)
	s.assertWrites(t, 1)
}

func TestUserSMSFailure(t *testing.T) {
	cases := []struct {
		name     string
		result   func(operator.UserSMSCall) operator.Result
		want     ledger.UserSMSState
		failures int
	}{
		{"unknown: due again", func(operator.UserSMSCall) operator.Result {
			return operator.Result{}
		}, ledger.UserSMSDue, 0},
		{"refused: failed and counted", func(operator.UserSMSCall) operator.Result {
			return operator.Result{Outcome: operator.Refused}
		}, ledger.UserSMSFailed, 1},
		{"a panic of the driver: due again", func(operator.UserSMSCall) operator.Result {
			panic("canary")
		}, ledger.UserSMSDue, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			s.Operator.UserSMSFunc = c.result
			e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
			s.relayEntries(t, e)
			want := successDelivered
			want.UserSMS, want.Due = c.want, c.want == ledger.UserSMSDue
			s.AssertEntry(t, e, want)
			s.AssertMetric(t, "UserSMSFailures", c.failures)
		})
	}
}

// A repeated record posts the same notification again and writes nothing.
func TestRedeliveredRecord(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
	s.relayEntries(t, e)
	s.relayEntries(t, e)
	if after := s.AssertEntry(t, e, successDelivered); after.Version != e.Version+1 {
		t.Errorf("version %d after %d, want one write", after.Version, e.Version)
	}
	s.AssertReceived(t, 2)
	posts := s.MerchantServer.Received("")
	if diff := cmp.Diff([]string{posts[0].ID(), posts[0].Body}, []string{posts[1].ID(), posts[1].Body}); diff != "" {
		t.Errorf("id and body of the second post (-first +second):\n%s", diff)
	}
}

// If another write comes first, the result of the attempt is applied to the entry that this write stored.
func TestEntryChangedDuringDelivery(t *testing.T) {
	s := newFixture(t)
	reservation := s.NewReservedPayment("DemoShop_1")
	early := reservation.Clone()
	early.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Failed, Source: "callback"}, s.Clock.Now())
	early.Version++
	s.StoreEntry(early)
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) {
		// The outcome of the operator call is stored during the delivery of the early callback's notification.
		outcome := ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}
		ctx := s.InvocationContext(t, timeout)
		if _, err := s.Book.StoreOutcome(ctx, reservation, ledger.RecordSuccess, outcome); err != nil {
			t.Error(err)
		}
	})
	s.relayEntries(t, early)
	want := deliverytest.EntrySummary{State: ledger.Done, Status: ledger.Failed, Delivered: 1}
	if after := s.AssertEntry(t, early, want); after.Response.Status != 201 {
		t.Errorf("stored response %d, want 201", after.Response.Status)
	}
}

// After a failed write the entry is left to the sweep, which posts again under the same id.
func TestStoreFailure(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	s.Ledger.FailNext(storetest.Replace, storetest.FailedBeforeApply)
	s.relayEntries(t, e)
	s.AssertEntry(t, e, failureQueued)
	if !strings.Contains(s.LogLines.String(), `"Outcome":"left-to-sweep"`) {
		t.Errorf("the outcome is not left-to-sweep: %s", s.LogLines)
	}
}

// A malformed record does not stop the others; a malformed event is an error.
func TestBrokenRecords(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	var event map[string][]json.RawMessage
	if err := json.Unmarshal(deliverytest.StreamEvent(t, e), &event); err != nil {
		t.Fatal(err)
	}
	broken := []string{
		`{}`, `{"eventID":"1","dynamodb":{}}`, `{"eventID":"2","dynamodb":{"NewImage":[]}}`,
		`{"eventID":"3","dynamodb":{"NewImage":{"pk":{"S":"endpoint#1"},"version":{"N":"1"}}}}`,
	}
	for _, record := range broken {
		event["Records"] = append(event["Records"], json.RawMessage(record))
	}
	payload, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	s.invoke(t, payload)
	s.AssertDelivered(t, e)
	if lines := s.LogLines.LineCount(); lines != len(broken)+1 {
		t.Errorf("%d lines for %d records", lines, len(broken)+1)
	}
	if _, err := s.relay.Invoke(s.InvocationContext(t, timeout), []byte("{")); err == nil {
		t.Error("a malformed event is not an error")
	}
}
