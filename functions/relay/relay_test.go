package relay_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/functions/notif"
	"mobilegateway/functions/relay"
	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

// timeout is the function's.
const timeout = 20 * time.Second

// relayFixture is a kit with a relay.
type relayFixture struct {
	*deliverytest.DeliveryFixture
	relay *relay.Relay
}

func newFixture(t testing.TB) *relayFixture {
	t.Helper()
	k := deliverytest.New(t)
	return &relayFixture{k, &relay.Relay{Book: k.Book, Courier: k.Courier, DecodeImage: dynamo.DecodeImage, Now: k.Clock.Now, Log: k.LogLines, StackName: stack}}
}

// stack is what the lines name.
const stack = "gateway-dev"

// relayEntries hands a batch over and checks that it is taken whole.
func (s *relayFixture) relayEntries(t testing.TB, entries ...*ledger.Entry) {
	t.Helper()
	s.invoke(t, deliverytest.StreamEvent(t, entries...))
}

func (s *relayFixture) invoke(t testing.TB, event []byte) {
	t.Helper()
	response, err := s.relay.Invoke(s.InvocationContext(t, timeout), event)
	if err != nil || string(response) != `{"batchItemFailures":[]}` {
		t.Errorf("%s, %v", response, err)
	}
}

func webhookEndpoint(s *relayFixture, path string) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: s.MerchantServer.URL + path}
}

func withNotifyPath(s *relayFixture, path string) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.NotifyURL = s.MerchantServer.URL + path }
}

// One write tells the merchant, the purchaser's SMS included.
func TestNotificationDelivered(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
	s.relayEntries(t, e)
	after := s.MustGet(t, e)
	if len(after.Delivered) != 1 || after.Delivered[0].Attempts != 1 || after.UserSMS != ledger.UserSMSSent || !after.DueAt.IsZero() || after.WakesRelay() {
		t.Errorf("%+v", after)
	}
	if s.Ledger.CallCount(ledgermem.Replace) != 1 || s.Ledger.CallCount(ledgermem.Get) != 0 || s.HealthStore.Writes() != 0 {
		t.Errorf("%d writes, %d reads of the ledger, %d writes of health", s.Ledger.CallCount(ledgermem.Replace), s.Ledger.CallCount(ledgermem.Get), s.HealthStore.Writes())
	}
	if len(s.MerchantServer.Received("")) != 1 || len(s.Operator.UserSMSCalls()) != 1 || s.LogLines.SumMetric("DeliveredNotifications") != 1 {
		t.Errorf("%d posts, %d SMS", len(s.MerchantServer.Received("")), len(s.Operator.UserSMSCalls()))
	}
	if !strings.Contains(s.LogLines.String(), `"Stack":"`+stack+`","Operation":"relay"`) {
		t.Errorf("the line does not name the stack: %s", s.LogLines)
	}
}

// From the request to "told" a payment costs four writes: reserve, settle, final, told.
func TestWriteCount(t *testing.T) {
	s := newFixture(t)
	inbox := &notif.CallbackHandler{Verifier: s.CallbackKeys, Book: s.Book, Reconciler: s.Reconciler, DailyAmounts: s.Pipeline.DailyAmounts, ClaimRecheckDelay: deliverytest.ClaimRecheckDelay, Now: s.Clock.Now}
	s.Serve("notif", inbox.Route())
	ctx := s.InvocationContext(t, timeout)

	reservation, verdict, err := s.Book.Reserve(ctx, s.NewReservedPayment("DemoShop_1001"), nil)
	if err != nil || verdict != ledger.NewReservation {
		t.Fatal(verdict, err)
	}
	if _, err := s.Book.StoreOutcome(ctx, reservation, ledger.CallOutcome{State: ledger.Done, Status: ledger.Pending, ResponseStatus: 201, ResponseBody: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	s.Operator.SetStatus("Successful")
	ring, err := s.CallbackKeys.Ring(ctx)
	if err != nil {
		t.Fatal(err)
	}
	event := operationtest.LoadEvent(t, "../notif/testdata/event.json").SetPathParameter("token", ring.Sign(callback.PaymentPath("sandbox", "DemoShop_1001")))
	s.Send(t, event).AssertStatus(t, 200)
	s.relayEntries(t, s.MustGet(t, reservation))
	if writes := s.Ledger.WriteCount(); writes != 4 || len(s.MustGet(t, reservation).Delivered) != 1 || s.MustGet(t, reservation).UserSMS != ledger.UserSMSSent {
		t.Errorf("%d writes, %+v", writes, s.MustGet(t, reservation))
	}
}

// The golden event is a batch as DynamoDB Streams hands it over.
func TestGoldenEvent(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.NotifyURL = "https://shop.example.com/notif" })
	operationtest.Golden(t, "testdata/event.json", deliverytest.StreamEvent(t, e))
	event, err := os.ReadFile("testdata/event.json")
	if err != nil {
		t.Fatal(err)
	}
	s.invoke(t, []byte(strings.ReplaceAll(string(event), "https://shop.example.com/notif", s.MerchantServer.URL+"/demo")))
	if posts := s.MerchantServer.Received("/demo"); len(posts) != 1 || posts[0].ID() != e.OutboxHead().ID {
		t.Errorf("posts %+v", posts)
	}
}

func TestLeftToTheSweep(t *testing.T) {
	fresh := func(s *relayFixture) *ledger.Entry { return s.StoreFinalPayment("DemoShop_1", ledger.Failed) }
	cases := []struct {
		name   string
		entry  func(*relayFixture) *ledger.Entry
		before func(*relayFixture)
	}{
		{"an image of which less than 20 s of the lease are left", fresh, func(s *relayFixture) { s.Clock.Advance(ledger.FastLease - ledger.FastMargin + time.Millisecond) }},
		{"an image long overdue", fresh, func(s *relayFixture) { s.Clock.Advance(time.Hour) }},
		{"one that was tried", func(s *relayFixture) *ledger.Entry {
			e := fresh(s)
			e.RecordFailedAttempt(e.OutboxHead().ID, ledger.FailedAttempt{Number: 1, HTTPStatus: 500, Reason: "server"}, s.Clock.Now().Add(time.Hour))
			return s.StoreEntry(e)
		}, nil},
		{"one that is parked", func(s *relayFixture) *ledger.Entry {
			e := fresh(s)
			e.Park()
			return s.StoreEntry(e)
		}, nil},
		{"one that is dead", func(s *relayFixture) *ledger.Entry {
			e := fresh(s)
			e.DeadLetter(e.OutboxHead().ID, "server")
			return s.StoreEntry(e)
		}, nil},
		{"nothing in the outbox", func(s *relayFixture) *ledger.Entry { return s.StorePendingPayment("DemoShop_1") }, nil},
		{"a closed fast path", fresh, func(s *relayFixture) {
			s.HealthStore.StoreHealth(webhook.Health{Endpoint: webhookEndpoint(s, "/demo"), Version: 1, Failures: 5})
		}},
		{"a disabled endpoint", fresh, func(s *relayFixture) {
			s.HealthStore.StoreHealth(webhook.Health{Endpoint: webhookEndpoint(s, "/demo"), Version: 1, DisabledAt: s.Clock.Now()})
		}},
		{"health that cannot be read", fresh, func(s *relayFixture) { s.HealthStore.SetError(errors.New("down")) }},
		{"secrets that cannot be had", fresh, func(s *relayFixture) { s.ProfileStore.SetError(errors.New("down")) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			e := c.entry(s)
			if c.before != nil {
				c.before(s)
			}
			s.relayEntries(t, e)
			if after := s.MustGet(t, e); after.Version != e.Version || len(s.MerchantServer.Received("")) != 0 || s.Ledger.WriteCount() != 0 {
				t.Errorf("%d posts, %+v", len(s.MerchantServer.Received("")), after)
			}
		})
	}
	t.Run("at exactly 20 s left it posts", func(t *testing.T) {
		s := newFixture(t)
		e := fresh(s)
		s.Clock.Advance(ledger.FastLease - ledger.FastMargin)
		s.relayEntries(t, e)
		if len(s.MustGet(t, e).Delivered) != 1 {
			t.Errorf("%+v", s.MustGet(t, e))
		}
	})
	t.Run("the purchaser's SMS goes all the same", func(t *testing.T) {
		s := newFixture(t)
		s.ProfileStore.SetError(errors.New("down"))
		e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
		s.relayEntries(t, e)
		if after := s.MustGet(t, e); after.UserSMS != ledger.UserSMSSent || len(after.Outbox) != 1 || after.OutboxHead().Attempts != 0 {
			t.Errorf("%+v", after)
		}
	})
}

// A failed delivery is noted, due on the schedule, and never a failed batch.
func TestFailedDelivery(t *testing.T) {
	s := newFixture(t)
	s.MerchantServer.RespondWith("/demo", 500)
	s.MerchantServer.RespondWith("/gone", 410)
	failed, disabled, well := s.StoreFinalPayment("DemoShop_1", ledger.Failed), s.StoreFinalPayment("DemoShop_2", ledger.Failed, withNotifyPath(s, "/gone")), s.StoreFinalPayment("DemoShop_3", ledger.Failed, withNotifyPath(s, "/well"))
	s.relayEntries(t, failed, disabled, well)
	notification := s.MustHead(t, failed)
	if wait := notification.NextAttemptAt.Sub(s.Clock.Now()); notification.Attempts != 1 || notification.LastStatus != 500 || wait < 4*time.Second || wait > 6*time.Second {
		t.Errorf("failed: %+v", notification)
	}
	if notification := s.MustHead(t, disabled); !notification.Parked || s.HealthStore.Stored(webhookEndpoint(s, "/gone")).Enabled() {
		t.Errorf("gone: %+v", notification)
	}
	if len(s.MustGet(t, well).Delivered) != 1 {
		t.Errorf("well: %+v", s.MustGet(t, well))
	}
}

// The records of a batch go side by side: no slow server delays another merchant.
func TestRecordsInParallel(t *testing.T) {
	s := newFixture(t)
	const records = 25
	var arrived sync.WaitGroup
	arrived.Add(records)
	all := make(chan struct{})
	go func() {
		arrived.Wait()
		close(all)
	}()
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		<-all // each answers when all have come
	})
	var entries []*ledger.Entry
	for i := range records {
		entries = append(entries, s.StoreFinalPayment("DemoShop_"+string(rune('a'+i)), ledger.Failed))
	}
	s.relayEntries(t, entries...)
	for _, e := range entries {
		if len(s.MustGet(t, e).Delivered) != 1 {
			t.Errorf("%+v", s.MustGet(t, e))
		}
	}
	if s.Ledger.WriteCount() != records {
		t.Errorf("%d writes for %d notifications", s.Ledger.WriteCount(), records)
	}
}

// The SMS goes beside the post, neither waits for the other.
func TestUserSMSInParallelWithPost(t *testing.T) {
	s := newFixture(t)
	postChange, smsChange := make(chan struct{}), make(chan struct{})
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) {
		close(postChange)
		<-smsChange
	})
	s.Operator.SetUserSMSFunc(func(operator.UserSMSCall) operator.Result {
		close(smsChange)
		<-postChange
		return operator.Result{Outcome: operator.Succeeded}
	})
	e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
	s.relayEntries(t, e)
	if after := s.MustGet(t, e); len(after.Delivered) != 1 || after.UserSMS != ledger.UserSMSSent || s.Ledger.WriteCount() != 1 {
		t.Errorf("%+v", after)
	}
}

func TestUserSMSFailure(t *testing.T) {
	cases := []struct {
		name    string
		result  operator.Result
		want    ledger.UserSMSState
		counted int
	}{
		{"unknown: due again", operator.Result{}, ledger.UserSMSDue, 0},
		{"refused: given up and counted", operator.Result{Outcome: operator.Refused}, ledger.UserSMSFailed, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			s.Operator.SetUserSMSFunc(func(operator.UserSMSCall) operator.Result { return c.result })
			e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
			s.relayEntries(t, e)
			if after := s.MustGet(t, e); after.UserSMS != c.want || len(after.Delivered) != 1 || s.LogLines.SumMetric("UserSMSFailures") != c.counted {
				t.Errorf("%+v", after)
			}
		})
	}
	t.Run("a driver that breaks down costs the merchant nothing", func(t *testing.T) {
		s := newFixture(t)
		s.Operator.SetUserSMSFunc(func(operator.UserSMSCall) operator.Result { panic("canary") })
		e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
		s.relayEntries(t, e)
		if after := s.MustGet(t, e); after.UserSMS != ledger.UserSMSDue || len(after.Delivered) != 1 {
			t.Errorf("%+v", after)
		}
	})
}

// A batch that comes again posts under the same id, and writes nothing.
func TestRedeliveredRecord(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
	s.relayEntries(t, e)
	before := s.MustGet(t, e)
	s.relayEntries(t, e)
	posts := s.MerchantServer.Received("")
	if after := s.MustGet(t, e); after.Version != before.Version || len(posts) != 2 || posts[0].ID() != posts[1].ID() || posts[0].Body != posts[1].Body {
		t.Errorf("%d posts, %+v", len(posts), after)
	}
}

// Another hand's write in between: what the attempt did is applied to what stands there now.
func TestEntryChangedDuringDelivery(t *testing.T) {
	s := newFixture(t)
	reservation := s.NewReservedPayment("DemoShop_1")
	earlier := reservation.Clone()
	earlier.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Failed, Source: "callback"}, s.Clock.Now())
	earlier.Version++
	s.StoreEntry(earlier)
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) {
		// Our own answer is settled while the notification of the early callback is on its way.
		if _, err := s.Book.StoreOutcome(s.InvocationContext(t, timeout), reservation, ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}); err != nil {
			t.Error(err)
		}
	})
	s.relayEntries(t, earlier)
	if after := s.MustGet(t, earlier); len(after.Delivered) != 1 || after.ResponseStatus != 201 || after.State != ledger.Done {
		t.Errorf("%+v", after)
	}
}

// A store that fails leaves the entry to the sweep, which posts again under the same id.
func TestStoreFailure(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	s.FailNextLedgerCall(ledgermem.Replace)
	s.relayEntries(t, e)
	if after := s.MustGet(t, e); len(after.Outbox) != 1 || after.DueAt.IsZero() || !strings.Contains(s.LogLines.String(), `"Outcome":"left-to-sweep"`) {
		t.Errorf("%+v\n%s", after, s.LogLines)
	}
}

// Records that cannot be read stop nobody; an event that cannot be read is an error.
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
	if len(s.MustGet(t, e).Delivered) != 1 || s.LogLines.LineCount() != len(broken)+1 {
		t.Errorf("%d lines, %+v", s.LogLines.LineCount(), s.MustGet(t, e))
	}
	if _, err := s.relay.Invoke(s.InvocationContext(t, timeout), []byte("{")); err == nil {
		t.Error("no error")
	}
}

// An attempt leaves time to store what came of it (decision "notifications").
func TestStoreMargin(t *testing.T) {
	s := newFixture(t)
	over := make(chan struct{})
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) })
	e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	// The kit's clock stands in the future: this deadline is the real one, 4.3 s away, so 0.3 s for the attempt.
	ctx, cancel := contextWithRemaining(4300 * time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := s.relay.Invoke(ctx, deliverytest.StreamEvent(t, e)); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	if notification := s.MustHead(t, e); notification.Attempts != 1 || notification.LastReason != webhook.ReasonTimeout || time.Since(began) > 3*time.Second {
		t.Errorf("%+v after %s", notification, time.Since(began))
	}
}
