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

// service is a kit with a relay.
type service struct {
	*deliverytest.Kit
	relay *relay.Relay
}

func kit(t testing.TB) *service {
	t.Helper()
	k := deliverytest.New(t)
	return &service{k, &relay.Relay{Book: k.Book, Courier: k.Courier, Decode: dynamo.DecodeImage, Now: k.Clock.Now, Log: k.Lines, Stack: stack}}
}

// stack is what the lines name.
const stack = "gateway-dev"

// run hands a batch over and checks that it is taken whole.
func (s *service) run(t testing.TB, entries ...*ledger.Entry) {
	t.Helper()
	s.batch(t, deliverytest.Stream(t, entries...))
}

func (s *service) batch(t testing.TB, event []byte) {
	t.Helper()
	answer, err := s.relay.Invoke(s.Context(t, timeout), event)
	if err != nil || string(answer) != `{"batchItemFailures":[]}` {
		t.Errorf("%s, %v", answer, err)
	}
}

func endpoint(s *service, path string) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: s.Shop.URL + path}
}

func to(s *service, path string) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.NotifyURL = s.Shop.URL + path }
}

// One write tells the merchant, the purchaser's SMS included.
func TestTold(t *testing.T) {
	s := kit(t)
	e := s.Final("DemoShop_1", ledger.Successful)
	s.run(t, e)
	after := s.Get(t, e)
	if len(after.Told) != 1 || after.Told[0].Attempt != 1 || after.UserSMS != ledger.UserSMSSent || !after.Due.IsZero() || after.Fast() {
		t.Errorf("%+v", after)
	}
	if s.Ledger.Calls(ledgermem.Replace) != 1 || s.Ledger.Calls(ledgermem.Get) != 0 || s.Health.Writes() != 0 {
		t.Errorf("%d writes, %d reads of the ledger, %d writes of health", s.Ledger.Calls(ledgermem.Replace), s.Ledger.Calls(ledgermem.Get), s.Health.Writes())
	}
	if len(s.Shop.Posts("")) != 1 || len(s.Operator.SMS()) != 1 || s.Lines.Sum("Delivered") != 1 {
		t.Errorf("%d posts, %d SMS", len(s.Shop.Posts("")), len(s.Operator.SMS()))
	}
	if !strings.Contains(s.Lines.String(), `"Stack":"`+stack+`","Operation":"relay"`) {
		t.Errorf("the line does not name the stack: %s", s.Lines)
	}
}

// From the request to "told" a payment costs four writes: reserve, settle, final, told.
func TestFourWrites(t *testing.T) {
	s := kit(t)
	inbox := &notif.Inbox{Callbacks: s.Callbacks, Book: s.Book, Settlement: s.Settlement, Recheck: deliverytest.Recheck, Now: s.Clock.Now}
	s.Serve("notif", inbox.Route())
	ctx := s.Context(t, timeout)

	held, verdict, err := s.Book.Hold(ctx, s.Reserved("DemoShop_1001"), nil)
	if err != nil || verdict != ledger.Fresh {
		t.Fatal(verdict, err)
	}
	if _, err := s.Book.Settle(ctx, held, ledger.Settlement{State: ledger.Done, Status: ledger.Pending, AnswerStatus: 201, AnswerBody: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	s.Operator.Says("Successful")
	ring, err := s.Callbacks.Ring(ctx)
	if err != nil {
		t.Fatal(err)
	}
	event := operationtest.Load(t, "../notif/testdata/event.json").Param("token", ring.Sign(callback.PaymentPath("sandbox", "DemoShop_1001")))
	s.Do(t, event).Succeeds(t, 200)
	s.run(t, s.Get(t, held))
	if writes := s.Ledger.Writes(); writes != 4 || len(s.Get(t, held).Told) != 1 || s.Get(t, held).UserSMS != ledger.UserSMSSent {
		t.Errorf("%d writes, %+v", writes, s.Get(t, held))
	}
}

// The golden event is a batch as DynamoDB Streams hands it over.
func TestGoldenEvent(t *testing.T) {
	s := kit(t)
	e := s.Final("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.NotifyURL = "https://shop.example.com/notif" })
	operationtest.Golden(t, "testdata/event.json", deliverytest.Stream(t, e))
	event, err := os.ReadFile("testdata/event.json")
	if err != nil {
		t.Fatal(err)
	}
	s.batch(t, []byte(strings.ReplaceAll(string(event), "https://shop.example.com/notif", s.Shop.URL+"/demo")))
	if posts := s.Shop.Posts("/demo"); len(posts) != 1 || posts[0].ID() != e.Head().ID {
		t.Errorf("posts %+v", posts)
	}
}

func TestLeftToTheSweep(t *testing.T) {
	fresh := func(s *service) *ledger.Entry { return s.Final("DemoShop_1", ledger.Failed) }
	cases := []struct {
		name   string
		entry  func(*service) *ledger.Entry
		before func(*service)
	}{
		{"an image of which less than 20 s of the lease are left", fresh, func(s *service) { s.Clock.Advance(ledger.FastLease - ledger.FastMargin + time.Millisecond) }},
		{"an image long overdue", fresh, func(s *service) { s.Clock.Advance(time.Hour) }},
		{"one that was tried", func(s *service) *ledger.Entry {
			e := fresh(s)
			e.FailedAttempt(e.Head().ID, ledger.Attempt{Number: 1, Code: 500, Why: "server"}, s.Clock.Now().Add(time.Hour))
			return s.Store(e)
		}, nil},
		{"one that is parked", func(s *service) *ledger.Entry {
			e := fresh(s)
			e.Park()
			return s.Store(e)
		}, nil},
		{"one that is dead", func(s *service) *ledger.Entry {
			e := fresh(s)
			e.DeadLetter(e.Head().ID, "server")
			return s.Store(e)
		}, nil},
		{"nothing in the outbox", func(s *service) *ledger.Entry { return s.Payment("DemoShop_1") }, nil},
		{"a closed fast path", fresh, func(s *service) {
			s.Health.Set(webhook.Health{Endpoint: endpoint(s, "/demo"), Version: 1, Failures: 5})
		}},
		{"a disabled endpoint", fresh, func(s *service) {
			s.Health.Set(webhook.Health{Endpoint: endpoint(s, "/demo"), Version: 1, DisabledAt: s.Clock.Now()})
		}},
		{"health that cannot be read", fresh, func(s *service) { s.Health.Fail(errors.New("down")) }},
		{"secrets that cannot be had", fresh, func(s *service) { s.Profiles.Fail(errors.New("down")) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := kit(t)
			e := c.entry(s)
			if c.before != nil {
				c.before(s)
			}
			s.run(t, e)
			if after := s.Get(t, e); after.Version != e.Version || len(s.Shop.Posts("")) != 0 || s.Ledger.Writes() != 0 {
				t.Errorf("%d posts, %+v", len(s.Shop.Posts("")), after)
			}
		})
	}
	t.Run("at exactly 20 s left it posts", func(t *testing.T) {
		s := kit(t)
		e := fresh(s)
		s.Clock.Advance(ledger.FastLease - ledger.FastMargin)
		s.run(t, e)
		if len(s.Get(t, e).Told) != 1 {
			t.Errorf("%+v", s.Get(t, e))
		}
	})
	t.Run("the purchaser's SMS goes all the same", func(t *testing.T) {
		s := kit(t)
		s.Profiles.Fail(errors.New("down"))
		e := s.Final("DemoShop_1", ledger.Successful)
		s.run(t, e)
		if after := s.Get(t, e); after.UserSMS != ledger.UserSMSSent || len(after.Outbox) != 1 || after.Head().Attempt != 0 {
			t.Errorf("%+v", after)
		}
	})
}

// A failed delivery is noted, due on the schedule, and never a failed batch.
func TestFailedDelivery(t *testing.T) {
	s := kit(t)
	s.Shop.Answers("/demo", 500)
	s.Shop.Answers("/gone", 410)
	failed, gone, well := s.Final("DemoShop_1", ledger.Failed), s.Final("DemoShop_2", ledger.Failed, to(s, "/gone")), s.Final("DemoShop_3", ledger.Failed, to(s, "/well"))
	s.run(t, failed, gone, well)
	head := s.Head(t, failed)
	if wait := head.Next.Sub(s.Clock.Now()); head.Attempt != 1 || head.LastCode != 500 || wait < 4*time.Second || wait > 6*time.Second {
		t.Errorf("failed: %+v", head)
	}
	if head := s.Head(t, gone); !head.Parked || s.Health.Of(endpoint(s, "/gone")).Enabled() {
		t.Errorf("gone: %+v", head)
	}
	if len(s.Get(t, well).Told) != 1 {
		t.Errorf("well: %+v", s.Get(t, well))
	}
}

// The records of a batch go side by side: no slow server delays another merchant.
func TestSideBySide(t *testing.T) {
	s := kit(t)
	const records = 25
	var arrived sync.WaitGroup
	arrived.Add(records)
	all := make(chan struct{})
	go func() {
		arrived.Wait()
		close(all)
	}()
	s.Shop.Handle("/demo", func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		<-all // each answers when all have come
	})
	var entries []*ledger.Entry
	for i := range records {
		entries = append(entries, s.Final("DemoShop_"+string(rune('a'+i)), ledger.Failed))
	}
	s.run(t, entries...)
	for _, e := range entries {
		if len(s.Get(t, e).Told) != 1 {
			t.Errorf("%+v", s.Get(t, e))
		}
	}
	if s.Ledger.Writes() != records {
		t.Errorf("%d writes for %d notifications", s.Ledger.Writes(), records)
	}
}

// The SMS goes beside the post, neither waits for the other.
func TestSMSBesideThePost(t *testing.T) {
	s := kit(t)
	posted, sent := make(chan struct{}), make(chan struct{})
	s.Shop.Handle("/demo", func(http.ResponseWriter, *http.Request) {
		close(posted)
		<-sent
	})
	s.Operator.Sends(func(operator.UserSMSCall) operator.Result {
		close(sent)
		<-posted
		return operator.Result{Outcome: operator.Done}
	})
	e := s.Final("DemoShop_1", ledger.Successful)
	s.run(t, e)
	if after := s.Get(t, e); len(after.Told) != 1 || after.UserSMS != ledger.UserSMSSent || s.Ledger.Writes() != 1 {
		t.Errorf("%+v", after)
	}
}

func TestUserSMSThatFails(t *testing.T) {
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
			s := kit(t)
			s.Operator.Sends(func(operator.UserSMSCall) operator.Result { return c.result })
			e := s.Final("DemoShop_1", ledger.Successful)
			s.run(t, e)
			if after := s.Get(t, e); after.UserSMS != c.want || len(after.Told) != 1 || s.Lines.Sum("UserSMSFailures") != c.counted {
				t.Errorf("%+v", after)
			}
		})
	}
	t.Run("a driver that breaks down costs the merchant nothing", func(t *testing.T) {
		s := kit(t)
		s.Operator.Sends(func(operator.UserSMSCall) operator.Result { panic("canary") })
		e := s.Final("DemoShop_1", ledger.Successful)
		s.run(t, e)
		if after := s.Get(t, e); after.UserSMS != ledger.UserSMSDue || len(after.Told) != 1 {
			t.Errorf("%+v", after)
		}
	})
}

// A batch that comes again posts under the same id, and writes nothing.
func TestRedelivered(t *testing.T) {
	s := kit(t)
	e := s.Final("DemoShop_1", ledger.Successful)
	s.run(t, e)
	before := s.Get(t, e)
	s.run(t, e)
	posts := s.Shop.Posts("")
	if after := s.Get(t, e); after.Version != before.Version || len(posts) != 2 || posts[0].ID() != posts[1].ID() || posts[0].Body != posts[1].Body {
		t.Errorf("%d posts, %+v", len(posts), after)
	}
}

// Another hand's write in between: what the attempt did is applied to what stands there now.
func TestChangedInBetween(t *testing.T) {
	s := kit(t)
	held := s.Reserved("DemoShop_1")
	early := held.Clone()
	early.Resolve(ledger.Resolution{Status: ledger.Failed, Source: "callback"}, s.Clock.Now())
	early.Version++
	s.Store(early)
	s.Shop.Handle("/demo", func(http.ResponseWriter, *http.Request) {
		// Our own answer is settled while the notification of the early callback is on its way.
		if _, err := s.Book.Settle(s.Context(t, timeout), held, ledger.Settlement{State: ledger.Done, AnswerStatus: 201, AnswerBody: []byte("{}")}); err != nil {
			t.Error(err)
		}
	})
	s.run(t, early)
	if after := s.Get(t, early); len(after.Told) != 1 || after.AnswerStatus != 201 || after.State != ledger.Done {
		t.Errorf("%+v", after)
	}
}

// A store that fails leaves the entry to the sweep, which posts again under the same id.
func TestStoringIsLost(t *testing.T) {
	s := kit(t)
	e := s.Final("DemoShop_1", ledger.Failed)
	s.Lost(ledgermem.Replace)
	s.run(t, e)
	if after := s.Get(t, e); len(after.Outbox) != 1 || after.Due.IsZero() || !strings.Contains(s.Lines.String(), `"Outcome":"left-to-sweep"`) {
		t.Errorf("%+v\n%s", after, s.Lines)
	}
}

// Records that cannot be read stop nobody; an event that cannot be read is an error.
func TestBrokenRecords(t *testing.T) {
	s := kit(t)
	e := s.Final("DemoShop_1", ledger.Failed)
	var event map[string][]json.RawMessage
	if err := json.Unmarshal(deliverytest.Stream(t, e), &event); err != nil {
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
	s.batch(t, payload)
	if len(s.Get(t, e).Told) != 1 || s.Lines.Count() != len(broken)+1 {
		t.Errorf("%d lines, %+v", s.Lines.Count(), s.Get(t, e))
	}
	if _, err := s.relay.Invoke(s.Context(t, timeout), []byte("{")); err == nil {
		t.Error("no error")
	}
}

// An attempt leaves time to store what came of it (decision "notifications").
func TestTimeIsLeftToStore(t *testing.T) {
	s := kit(t)
	over := make(chan struct{})
	s.Shop.Handle("/demo", func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) })
	e := s.Final("DemoShop_1", ledger.Failed)
	// The kit's clock stands in the future: this deadline is the real one, 4.3 s away, so 0.3 s for the attempt.
	ctx, cancel := contextIn(4300 * time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := s.relay.Invoke(ctx, deliverytest.Stream(t, e)); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	if head := s.Head(t, e); head.Attempt != 1 || head.LastWhy != webhook.WhyTimeout || time.Since(began) > 3*time.Second {
		t.Errorf("%+v after %s", head, time.Since(began))
	}
}
