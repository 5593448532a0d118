package resend_test

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/resend"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

func newFixture(t testing.TB) *operationtest.Fixture {
	t.Helper()
	w := operationtest.New(t)
	handler := &resend.Handler{
		Merchants: w.Merchants, RateLimiter: w.Pipeline.RateLimiter, Book: w.Pipeline.Book, Days: w.Ledger,
		Now: w.Clock.Now,
	}
	w.Serve("resend", handler.Route())
	return w.UpdateDemo(func(p *merchant.Profile) { p.Operations = merchant.Operations() })
}

// request is a resend of a webhook-id with query parameters.
func request(t testing.TB, webhookID string, query map[string]string) *operationtest.Event {
	t.Helper()
	return operationtest.LoadEvent(t, "testdata/event.json").SetPathParameter("webhookId", webhookID).
		SetField("queryStringParameters", query)
}

// newEntry is a finished transaction of DemoShop.
func newEntry(w *operationtest.Fixture, kind ledger.Kind, id string) *ledger.Entry {
	demo := operationtest.DemoProfile()
	return &ledger.Entry{
		Key: ledger.Key{Kind: kind, ID: id}, Merchant: ledger.Merchant{ID: demo.ID, Name: demo.Name},
		Call: ledger.Call{State: ledger.Done}, Version: 2, CreatedAt: w.Clock.Now(), UpdatedAt: w.Clock.Now(),
		Route:  ledger.Route{Country: "CI", Operator: "orange", Account: "a1"},
		Outbox: ledger.Outbox{URL: "https://shop.example.com/n"},
	}
}

// The states of a notification in a test.
const (
	delivered = "delivered"
	dead      = "dead-letter"
	waiting   = "waiting"
	parked    = "parked"
)

// add adds a notification of a status in a state, and returns its webhook-id.
func add(w *operationtest.Fixture, e *ledger.Entry, status ledger.Status, state string) string {
	n := ledger.Notification{
		ID: ledger.NotificationID(e.Key, status), Status: status, At: w.Clock.Now(), Attempts: 3,
		Parked: state == parked, NextAttemptAt: w.Clock.Now().Add(time.Hour),
	}
	e.Status = status
	switch state {
	case delivered:
		n.NextAttemptAt, n.DeliveredAt = time.Time{}, w.Clock.Now()
		e.Outbox.Delivered = append(e.Outbox.Delivered, n)
		return n.ID
	case dead:
		n.NextAttemptAt, n.DeadReason = time.Time{}, "attempts"
	}
	e.Outbox.Waiting = append(e.Outbox.Waiting, n)
	return n.ID
}

// sms is an SMS with notifications in these states, of MessageWaiting, DeliveredToNetwork and DeliveredToTerminal.
func sms(w *operationtest.Fixture, states ...string) (e *ledger.Entry, ids []string) {
	e = newEntry(w, ledger.SMS, "0f8fad5b-d9cb-869f-a165-70867728950e")
	all := []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal}
	for i, state := range states {
		ids = append(ids, add(w, e, all[i], state))
	}
	return e, ids
}

// decision "resend".
func TestResend(t *testing.T) {
	for _, c := range []struct {
		name    string
		states  []string // of the notifications of an SMS
		resend  int      // which one
		refusal string   // "" for 202
	}{
		{"delivered", []string{delivered}, 0, ""},
		{"a dead letter", []string{dead}, 0, ""},
		{"the last of several", []string{delivered, delivered, delivered}, 2, ""},
		{"a dead letter after a delivered one", []string{delivered, dead}, 1, ""},
		{"the latest after a dead letter", []string{dead, delivered}, 1, ""},
		{"before a dead letter: both go again", []string{delivered, dead}, 0, ""},
		{"it waits", []string{waiting}, 0, "outstanding"},
		{"it is parked", []string{parked}, 0, "outstanding"},
		{"a later one waits", []string{delivered, waiting}, 0, "outstanding"},
		{"a later one is parked", []string{dead, parked}, 0, "outstanding"},
		{"a later one was delivered", []string{delivered, delivered}, 0, "later-status-delivered"},
		{"a dead letter, a later one was delivered", []string{dead, delivered}, 0, "later-status-delivered"},
		{"a later one was delivered, behind a dead letter", []string{delivered, dead, delivered}, 0,
			"later-status-delivered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t)
			e, ids := sms(w, c.states...)
			w.Ledger.Overwrite(e)
			response := w.Send(t, request(t, ids[c.resend], nil))
			if c.refusal != "" {
				response.AssertError(t, 409, "SVC0005", ids[c.resend], "webhook-id")
				response.AssertHeader(t, "X-Error-Reason", c.refusal)
				if _, waits := response.Header["Retry-After"]; waits != (c.refusal == "outstanding") {
					t.Errorf("the headers are %v", response.Header)
				}
				w.AssertNoSideEffects(t)
				return
			}
			response.AssertStatus(t, 202)
			response.AssertText(t, "operation", "sms")
			response.AssertText(t, "id", e.ID)
			response.AssertText(t, "notification.webhook_id", ids[c.resend])
			response.AssertText(t, "notification.state", waiting)
			w.AssertCallCounts(t, 0, 0, 1, 0)
			stored := w.OnlyEntry(t, ledger.SMS)
			head, wakes := stored.Outbox.Head(), stored.Outbox.WakesRelay()
			if head.ID != ids[c.resend] || head.Attempts != 0 || !wakes {
				t.Errorf("the head is %+v, wakes the relay: %v", head, wakes)
			}
			w.Send(t, request(t, ids[c.resend], nil)).AssertHeader(t, "X-Error-Reason", "outstanding")
			w.AssertCallCounts(t, 0, 0, 1, 0)
		})
	}
}

func TestGolden(t *testing.T) {
	w := newFixture(t)
	e := newEntry(w, ledger.Payment, "DemoShop_1001")
	id := add(w, e, ledger.Successful, dead)
	w.Ledger.Overwrite(e)
	operationtest.GoldenResponse(t, "testdata/queued.json", w.Send(t, request(t, strings.ToUpper(id), nil)))
}

// The address follows the profile again, as after an engineer's replay without a flag.
func TestAddress(t *testing.T) {
	for from, want := range map[ledger.AddressSource]ledger.AddressSource{
		ledger.AddressOfRequest: ledger.AddressOfRequest, ledger.AddressFormer: ledger.AddressOfProfile,
		ledger.AddressOfProfile: ledger.AddressOfProfile,
	} {
		w := newFixture(t)
		e := newEntry(w, ledger.Payment, "DemoShop_1001")
		id := add(w, e, ledger.Failed, delivered)
		e.Outbox.From = from
		w.Ledger.Overwrite(e)
		w.Send(t, request(t, id, nil)).AssertStatus(t, 202)
		if got := w.OnlyEntry(t, ledger.Payment).Outbox.From; got != want {
			t.Errorf("from %q: %q, want %q", from, got, want)
		}
	}
}

// After each delivery the merchant may resend again, until half of the remembered replays are used up.
func TestResendsAreBounded(t *testing.T) {
	w := newFixture(t)
	e := newEntry(w, ledger.Payment, "DemoShop_1001")
	id := add(w, e, ledger.Successful, delivered)
	w.Ledger.Overwrite(e)
	for range ledger.MaxResends {
		w.Send(t, request(t, id, nil)).AssertStatus(t, 202)
		e = w.OnlyEntry(t, ledger.Payment)
		e.Outbox.MarkDelivered(id, w.Clock.Now())
		w.Ledger.Overwrite(e)
	}
	response := w.Send(t, request(t, id, nil))
	response.AssertError(t, 409, "SVC0005", id, "webhook-id")
	response.AssertHeader(t, "X-Error-Reason", "resent-too-often")
}

// How the transaction of a webhook-id is found, and what that reads.
func TestFind(t *testing.T) {
	const chargeID = "f3e4995f-bbef-855d-87f6-5224d16525bd"
	byDay, byID := map[string]string{"day": "2096-11-14"}, map[string]string{"id": "DemoShop_1"}
	for _, c := range []struct {
		name    string
		kind    ledger.Kind
		id      string
		age     time.Duration
		query   map[string]string
		status  int
		queries int
	}{
		{"a charge", ledger.Charge, chargeID, 300 * 24 * time.Hour, nil, 202, 0},
		{"a payment of today", ledger.Payment, "DemoShop_1", 0, nil, 202, 1},
		{"a payment of 6 days ago", ledger.Payment, "DemoShop_1", 6 * 24 * time.Hour, nil, 202, 7},
		{"a payment of 7 days ago", ledger.Payment, "DemoShop_1", 7 * 24 * time.Hour, nil, 404, 7},
		{"by its day", ledger.Payment, "DemoShop_1", 7 * 24 * time.Hour, byDay, 202, 1},
		{"by another day", ledger.Payment, "DemoShop_1", 0, byDay, 404, 1},
		{"by the first day", ledger.Payment, "DemoShop_1", 0, map[string]string{"day": "0001-01-01"}, 404, 1},
		{"by its id", ledger.Payment, "DemoShop_1", 900 * 24 * time.Hour, byID, 202, 0},
		{"an SMS by its id", ledger.SMS, chargeID, 0, map[string]string{"id": chargeID}, 202, 0},
		{"by another id", ledger.Payment, "DemoShop_1", 0, map[string]string{"id": "DemoShop_2"}, 404, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t)
			e := newEntry(w, c.kind, c.id)
			e.CreatedAt = w.Clock.Now().Add(-c.age)
			status := ledger.Successful
			if c.kind == ledger.SMS {
				status = ledger.DeliveryImpossible
			}
			id := add(w, e, status, delivered)
			w.Ledger.Overwrite(e)
			w.Send(t, request(t, id, c.query)).AssertStatus(t, c.status)
			if got := w.Ledger.CallCount(storetest.Day); got != c.queries {
				t.Errorf("%d queries of the index, want %d", got, c.queries)
			}
		})
	}
}

// A merchant with more transactions than a search reads must name the transaction.
func TestSearchIsBounded(t *testing.T) {
	w := newFixture(t)
	w.UpdateDemo(func(p *merchant.Profile) { p.SetDayShards(merchant.MaxDayShards) })
	unknown := "0f8fad5b-d9cb-869f-a165-70867728950e"
	w.Send(t, request(t, unknown, nil)).AssertError(t, 400, "SVC0002", "id")
	w.Send(t, request(t, unknown, map[string]string{"id": "DemoShop_1"})).AssertError(t, 404, "SVC0002", "webhook-id")
	w.Send(t, request(t, unknown, map[string]string{"day": "2096-11-20"})).
		AssertError(t, 404, "SVC0002", "webhook-id")
}

// Unknown, another merchant's, expired and malformed look the same.
func TestNotFound(t *testing.T) {
	w := newFixture(t)
	missing := func(why, webhookID string, query map[string]string) {
		t.Helper()
		t.Log(why)
		w.Send(t, request(t, webhookID, query)).AssertError(t, 404, "SVC0002", "webhook-id")
	}
	missing("an unknown one", "0f8fad5b-d9cb-869f-a165-70867728950e", nil)
	for _, malformed := range []string{"x", "é", "'--", " ", "0f8fad5b-d9cb-869f-a165-70867728950g",
		"0f8fad5bd9cb869fa16570867728950e", "DemoShop_1", strings.Repeat("a", 300)} {
		missing("a malformed one", malformed, nil)
	}
	e := newEntry(w, ledger.Payment, "OtherShop_1")
	id := add(w, e, ledger.Successful, delivered)
	e.Merchant.ID = operationtest.OtherProfile().ID
	w.Ledger.Overwrite(e)
	missing("another merchant's", id, nil)
	missing("another merchant's", id, map[string]string{"id": "OtherShop_1"})
	foreign := newEntry(w, ledger.Charge, "f3e4995f-bbef-855d-87f6-5224d16525bd")
	add(w, foreign, ledger.Successful, delivered)
	foreign.Merchant.ID = operationtest.OtherProfile().ID
	w.Ledger.Overwrite(foreign)
	missing("another merchant's charge", foreign.ID, nil)
	expired := newEntry(w, ledger.Payment, "DemoShop_2")
	expiredID := add(w, expired, ledger.Successful, delivered)
	expired.ExpireAt = w.Clock.Now()
	w.Ledger.Overwrite(expired)
	missing("one past its retention", expiredID, nil)
	none := newEntry(w, ledger.Payment, "DemoShop_3")
	none.Status = ledger.Failed
	w.Ledger.Overwrite(none)
	missing("a status that was never notified", ledger.NotificationID(none.Key, ledger.Failed), nil)
	w.AssertNoSideEffects(t)
}

func TestRefusals(t *testing.T) {
	w := newFixture(t)
	e := newEntry(w, ledger.Payment, "DemoShop_1")
	id := add(w, e, ledger.Successful, delivered)
	w.Ledger.Overwrite(e)
	w.Send(t, request(t, id, nil).SetHeader("Authorization")).AssertError(t, 401, "900902")
	w.Send(t, request(t, id, nil).SetHeader("Authorization", "Bearer unknown")).AssertError(t, 401, "900901")
	w.Send(t, request(t, id, nil).SetField("httpMethod", "GET")).AssertError(t, 404, "900906")
	// A profile from before has no entitlement. The refusal comes before any read.
	w.Send(t, request(t, id, nil).SetHeader("Authorization", operationtest.OtherToken)).AssertError(t, 403, "900908")
	for _, day := range []string{"", "x", "2096-02-30"} {
		w.Send(t, request(t, id, map[string]string{"day": day})).AssertError(t, 400, "SVC0002", "day")
	}
	w.Send(t, request(t, id, map[string]string{"id": strings.Repeat("a", 256)})).AssertError(t, 400, "SVC0002", "id")
	for _, name := range []string{"day", "id"} {
		twice := map[string][]string{name: {"a", "b"}}
		w.Send(t, request(t, id, nil).SetField("multiValueQueryStringParameters", twice)).
			AssertError(t, 400, "SVC0002", name)
	}
	w.AssertNoSideEffects(t)
	for _, operation := range []storetest.Operation{storetest.Get, storetest.Day, storetest.Replace} {
		w.FailEvery(operation)
		w.Send(t, request(t, id, nil)).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
	}
	w.FailEvery()
	w.Send(t, request(t, id, nil)).AssertStatus(t, 202)
}

// A write that comes between the read and ours is kept, and a delivered status of it counts.
func TestConcurrentWrite(t *testing.T) {
	w := newFixture(t)
	e, ids := sms(w, delivered)
	w.Ledger.Overwrite(e)
	first := true
	w.Ledger.InjectFaults(func(call storetest.Call) storetest.Fault {
		if call.Operation != storetest.Replace || !first {
			return storetest.NoFault
		}
		first = false
		return storetest.ConcurrentWrite
	})
	w.Send(t, request(t, ids[0], nil)).AssertStatus(t, 202)
	if stored := w.OnlyEntry(t, ledger.SMS); len(stored.Outbox.Replays) != 1 || stored.Version != 4 {
		t.Errorf("version %d with the replays %v, want our write after another", stored.Version, stored.Outbox.Replays)
	}
}

// decision "merchant-limits": a resend is a request too.
func TestRate(t *testing.T) {
	w := newFixture(t)
	w.UpdateDemo(func(p *merchant.Profile) { p.RequestsPerSecond, p.Burst = 1, 1 })
	unknown := "0f8fad5b-d9cb-869f-a165-70867728950e"
	w.Send(t, request(t, unknown, nil)).AssertError(t, 404, "SVC0002", "webhook-id")
	w.Send(t, request(t, unknown, nil)).AssertError(t, 429, "900800")
	w.AssertCounted(t, "RateLimitedRequests")
}

// FuzzTarget sends arbitrary ids: never a 5xx or a panic, and never a 202 for what no merchant has.
func FuzzTarget(f *testing.F) {
	f.Add("0f8fad5b-d9cb-869f-a165-70867728950e", "DemoShop_1", "2096-11-21")
	f.Add("%", "é", "2096-02-30")
	f.Fuzz(func(t *testing.T, webhookID, id, day string) {
		w := newFixture(t)
		response := w.Send(t, request(t, webhookID, map[string]string{"id": id, "day": day}))
		if response.Status != 404 && response.Status != 400 {
			t.Errorf("%d %s", response.Status, response.Body)
		}
	})
}
