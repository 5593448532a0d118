package receipt_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"mobilegateway/functions/receipt"
	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
)

const (
	message  = "8d6f0c52-0000-8000-8000-000000000001"
	root     = "deliveryInfoNotification"
	infoPath = root + ".deliveryInfo"
)

func newFixture(t testing.TB) *deliverytest.DeliveryFixture {
	t.Helper()
	k := deliverytest.New(t)
	handler := &receipt.ReceiptHandler{Verifier: k.CallbackKeys, Book: k.Book, Now: k.Clock.Now}
	k.Serve("receipt", handler.Route())
	return k
}

// newEvent is the golden receipt with a good token.
func newEvent(t testing.TB, k *deliverytest.DeliveryFixture) *operationtest.Event {
	t.Helper()
	return newEventFor(t, k, "sandbox", message)
}

func newEventFor(t testing.TB, k *deliverytest.DeliveryFixture, name, id string) *operationtest.Event {
	t.Helper()
	callbackRing, err := k.CallbackKeys.Ring(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	e := operationtest.LoadEvent(t, "testdata/event.json")
	return e.SetPathParameter("operator", name).SetPathParameter("requestId", id).SetPathParameter("token", callbackRing.Sign(callback.ReceiptPath(name, id)))
}

// eventWithStatus is a receipt with one status.
func eventWithStatus(t testing.TB, k *deliverytest.DeliveryFixture, status string) *operationtest.Event {
	t.Helper()
	return newEvent(t, k).SetBodyPart(infoPath+".deliveryStatus", status)
}

func assertCommitted(t testing.TB, k *deliverytest.DeliveryFixture, e *operationtest.Event) {
	t.Helper()
	if answer := k.Send(t, e).AssertStatus(t, 200); answer.Body != `{"status":"OK"}` {
		t.Errorf("body %s", answer.Body)
	}
}

// queuedStatuses are the statuses in an entry's outbox, in order.
func queuedStatuses(e *ledger.Entry) []ledger.Status {
	var statuses []ledger.Status
	for _, n := range e.Outbox {
		statuses = append(statuses, n.Status)
	}
	return statuses
}

func TestObjectOrArray(t *testing.T) {
	cases := map[string]string{
		"an object":              `{"deliveryStatus":"DeliveredToTerminal"}`,
		"an array":               `[{"deliveryStatus":"DeliveredToTerminal"}]`,
		"with what else comes":   `{"address":"tel:+2250709998877","deliveryStatus":"DeliveredToTerminal","x":[1]}`,
		"without regard to case": `{"deliveryStatus":"DELIVEREDtoterminal"}`,
	}
	for name, form := range cases {
		t.Run(name, func(t *testing.T) {
			k := newFixture(t)
			e := k.StoreMessage(message)
			assertCommitted(t, k, newEvent(t, k).SetRawBody(`{"deliveryInfoNotification":{"callbackData":"theirs","deliveryInfo":`+form+`}}`))
			if after := k.MustGet(t, e); after.Status != ledger.DeliveredToTerminal || len(after.Outbox) != 1 {
				t.Errorf("%+v", after)
			}
		})
	}
	t.Run("an array in its order", func(t *testing.T) {
		k := newFixture(t)
		e := k.StoreMessage(message)
		assertCommitted(t, k, newEvent(t, k).SetRawBody(`{"deliveryInfoNotification":{"deliveryInfo":[
			{"deliveryStatus":"MessageWaiting"},{"deliveryStatus":"DeliveredToNetwork"},{"deliveryStatus":"DeliveredToTerminal"}]}}`))
		want := []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal}
		if after := k.MustGet(t, e); !slices.Equal(queuedStatuses(after), want) {
			t.Errorf("%v", queuedStatuses(after))
		}
	})
}

// statusOrder orders the six statuses; the last four end a message (decision "sms-receipts").
var statusOrder = map[ledger.Status]int{
	ledger.MessageWaiting: 1, ledger.DeliveredToNetwork: 2, ledger.DeliveredToTerminal: 3, ledger.DeliveryUncertain: 3,
	ledger.DeliveryImpossible: 3, ledger.NotificationNotSupp: 3,
}

// Every pair of statuses, one after the other: forward is applied and told, the same, a step back and what comes after
// the end are dropped.
func TestStatusOrder(t *testing.T) {
	for first := range statusOrder {
		for second := range statusOrder {
			t.Run(fmt.Sprintf("%s then %s", first, second), func(t *testing.T) {
				k := newFixture(t)
				e := k.StoreMessage(message)
				assertCommitted(t, k, eventWithStatus(t, k, string(first)))
				assertCommitted(t, k, eventWithStatus(t, k, string(second)))
				want := []ledger.Status{first}
				if statusOrder[second] > statusOrder[first] {
					want = append(want, second)
				}
				after := k.MustGet(t, e)
				if !slices.Equal(queuedStatuses(after), want) || after.Status != want[len(want)-1] || after.FinalAt.IsZero() == after.StatusFinal() {
					t.Errorf("%s, queued %v, want %v", after.Status, queuedStatuses(after), want)
				}
				if after.Version != e.Version+int64(len(want)) {
					t.Errorf("%d writes for %d changes", after.Version-e.Version, len(want))
				}
			})
		}
	}
}

func TestReceiptForEveryState(t *testing.T) {
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		state  ledger.State
	}{
		{"before our own answer", func(*ledger.Entry) {}, ledger.Reserved},
		{"unknown", func(e *ledger.Entry) { e.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Unknown}, e.CreatedAt) }, ledger.Done},
		{"released", func(e *ledger.Entry) {
			e.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Released}, e.CreatedAt)
		}, ledger.Done},
		{"its owner died", func(e *ledger.Entry) { e.LeaseUntil = e.CreatedAt }, ledger.Done},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t)
			reservation := k.NewMessage(message)
			c.before(reservation)
			k.StoreEntry(reservation)
			assertCommitted(t, k, newEvent(t, k))
			after := k.MustGet(t, reservation)
			if after.State != c.state || after.Status != ledger.DeliveredToTerminal || len(after.Outbox) != 1 {
				t.Fatalf("%+v", after)
			}
			if c.state != ledger.Reserved {
				return
			}
			updated, err := k.Book.StoreOutcome(context.Background(), reservation, ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")})
			if err != nil || updated.State != ledger.Done || updated.ResponseStatus != 201 || updated.Status != ledger.DeliveredToTerminal || len(updated.Outbox) != 1 {
				t.Errorf("%v, %+v", err, updated)
			}
		})
	}
}

// The merchant's own callbackData goes back, never what the operator sent; without a notifyURL nothing is queued.
func TestNotificationContents(t *testing.T) {
	k := newFixture(t)
	e := k.StoreMessage(message)
	assertCommitted(t, k, newEvent(t, k))
	after := k.MustGet(t, e)
	operationtest.Golden(t, "testdata/notification.json", delivery.NotificationBody(after, after.Outbox[0]))

	k = newFixture(t)
	unresponsive := k.NewMessage(message)
	unresponsive.NotifyURL = ""
	k.StoreEntry(unresponsive)
	assertCommitted(t, k, newEvent(t, k))
	if after := k.MustGet(t, unresponsive); after.Status != ledger.DeliveredToTerminal || len(after.Outbox) != 0 {
		t.Errorf("%+v", after)
	}
}

func TestForgedAndForeignReceipts(t *testing.T) {
	cases := []struct {
		name  string
		event func(*deliverytest.DeliveryFixture) *operationtest.Event
		reads int
	}{
		{"no token", func(k *deliverytest.DeliveryFixture) *operationtest.Event {
			return newEvent(t, k).SetPathParameter("token", "x")
		}, 0},
		{"another message's token", func(k *deliverytest.DeliveryFixture) *operationtest.Event {
			return newEvent(t, k).SetPathParameter("requestId", "another")
		}, 0},
		{"another operator's token", func(k *deliverytest.DeliveryFixture) *operationtest.Event {
			return newEvent(t, k).SetPathParameter("operator", "mtn")
		}, 0},
		{"a payment's token", func(k *deliverytest.DeliveryFixture) *operationtest.Event {
			callbackRing, err := k.CallbackKeys.Ring(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return newEvent(t, k).SetPathParameter("token", callbackRing.Sign(callback.PaymentPath("sandbox", message)))
		}, 0},
		{"an operator it does not belong to", func(k *deliverytest.DeliveryFixture) *operationtest.Event { return newEventFor(t, k, "mtn", message) }, 1},
		{"a message that is not there", func(k *deliverytest.DeliveryFixture) *operationtest.Event {
			return newEventFor(t, k, "sandbox", "another")
		}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t)
			before := k.StoreMessage(message)
			k.Send(t, c.event(k)).AssertError(t, 404, "900906")
			if reads := k.Ledger.CallCount(ledgermem.Get); reads != c.reads || k.Ledger.WriteCount() != 0 || k.MustGet(t, before).Version != before.Version {
				t.Errorf("%d reads, %d writes", reads, k.Ledger.WriteCount())
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	many := strings.Repeat(`{"deliveryStatus":"MessageWaiting"},`, 17)
	cases := []struct{ name, body, part string }{
		{"not JSON", "{", "body"},
		{"a list", "[]", "body"},
		{"empty", "", "body"},
		{"a key twice", `{"deliveryInfoNotification":{"deliveryInfo":{"deliveryStatus":"MessageWaiting","deliveryStatus":"DeliveredToTerminal"}}}`, infoPath + ".deliveryStatus"},
		{"nothing in it", `{}`, infoPath},
		{"no info", `{"deliveryInfoNotification":{}}`, infoPath},
		{"null", `{"deliveryInfoNotification":{"deliveryInfo":null}}`, infoPath},
		{"an empty array", `{"deliveryInfoNotification":{"deliveryInfo":[]}}`, infoPath},
		{"a text", `{"deliveryInfoNotification":{"deliveryInfo":"DeliveredToTerminal"}}`, infoPath},
		{"a notification that is a text", `{"deliveryInfoNotification":"x"}`, infoPath},
		{"an array in an array", `{"deliveryInfoNotification":{"deliveryInfo":[[]]}}`, infoPath},
		{"too many", `{"deliveryInfoNotification":{"deliveryInfo":[` + strings.TrimSuffix(many, ",") + `]}}`, infoPath},
		{"no status", `{"deliveryInfoNotification":{"deliveryInfo":{}}}`, infoPath + ".deliveryStatus"},
		{"a status that is none", `{"deliveryInfoNotification":{"deliveryInfo":{"deliveryStatus":"Lost"}}}`, infoPath + ".deliveryStatus"},
		{"a status that is a number", `{"deliveryInfoNotification":{"deliveryInfo":{"deliveryStatus":1}}}`, infoPath + ".deliveryStatus"},
		{"one good and one bad", `{"deliveryInfoNotification":{"deliveryInfo":[{"deliveryStatus":"MessageWaiting"},{"deliveryStatus":"x"}]}}`, infoPath + ".deliveryStatus"},
		{"names in another case", `{"DeliveryInfoNotification":{"deliveryInfo":{"deliveryStatus":"MessageWaiting"}}}`, infoPath},
		{"two readings of one name", `{"deliveryInfoNotification":{"deliveryInfo":{"DeliveryStatus":"MessageWaiting"}}}`, infoPath + ".deliveryStatus"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t)
			k.StoreMessage(message)
			k.Send(t, newEvent(t, k).SetRawBody(c.body)).AssertError(t, 400, "SVC0002", c.part)
			if k.Ledger.CallCount(ledgermem.Get)+k.Ledger.WriteCount() != 0 {
				t.Error("the ledger was asked")
			}
		})
	}
}

func TestStoreFailure(t *testing.T) {
	for _, operation := range []ledgermem.Operation{ledgermem.Get, ledgermem.Replace} {
		k := newFixture(t)
		e := k.StoreMessage(message)
		k.FailNextLedgerCall(operation)
		k.Send(t, newEvent(t, k)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
		assertCommitted(t, k, newEvent(t, k))
		if after := k.MustGet(t, e); len(after.Outbox) != 1 {
			t.Errorf("%s: %+v", operation, after)
		}
	}
}

func TestRepeatedInParallel(t *testing.T) {
	const times = 20
	k := newFixture(t)
	e := k.StoreMessage(message)
	receipts := make([]*operationtest.Event, times)
	for i := range receipts {
		receipts[i] = newEvent(t, k)
	}
	var group sync.WaitGroup
	for _, each := range receipts {
		group.Go(func() {
			if answer := k.Send(t, each); answer.Status != 200 {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		})
	}
	group.Wait()
	if after := k.MustGet(t, e); len(after.Outbox) != 1 || after.Version != e.Version+1 {
		t.Errorf("%+v", after)
	}
}

// FuzzReceipt sends arbitrary bodies with a genuine token: 200 or 400, and a status never goes back.
func FuzzReceipt(f *testing.F) {
	f.Add(operationtest.LoadEvent(f, "testdata/event.json").Body())
	f.Add(`{"deliveryInfoNotification":{"deliveryInfo":[{"deliveryStatus":"MessageWaiting"},{"deliveryStatus":"deliveryimpossible"}]}}`)
	f.Add(`{"deliveryInfoNotification":{"deliveryInfo":[null,{}]}}`)
	f.Add(`{"deliveryInfoNotification":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		k := newFixture(t)
		e := k.StoreMessage(message, ledger.DeliveredToNetwork)
		answer := k.Send(t, newEvent(t, k).SetRawBody(body))
		after := k.MustGet(t, e)
		if answer.Status != 200 && answer.Status != 400 && answer.Status != 413 {
			t.Errorf("%d %s", answer.Status, answer.Body)
		}
		if statusOrder[after.Status] < statusOrder[ledger.DeliveredToNetwork] || len(after.Outbox) > 2 {
			t.Errorf("%s, queued %v", after.Status, queuedStatuses(after))
		}
	})
}
