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
	message = "8d6f0c52-0000-8000-8000-000000000001"
	root    = "deliveryInfoNotification"
	info    = root + ".deliveryInfo"
)

func kit(t testing.TB) *deliverytest.Kit {
	t.Helper()
	k := deliverytest.New(t)
	inbox := &receipt.Inbox{Callbacks: k.Callbacks, Book: k.Book, Now: k.Clock.Now}
	k.Serve("receipt", inbox.Route())
	return k
}

// event is the golden receipt with a good token.
func event(t testing.TB, k *deliverytest.Kit) *operationtest.Event {
	t.Helper()
	return addressed(t, k, "sandbox", message)
}

func addressed(t testing.TB, k *deliverytest.Kit, name, id string) *operationtest.Event {
	t.Helper()
	ring, err := k.Callbacks.Ring(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	e := operationtest.Load(t, "testdata/event.json")
	return e.Param("operator", name).Param("requestId", id).Param("token", ring.Sign(callback.ReceiptPath(name, id)))
}

// word is a receipt with one status.
func word(t testing.TB, k *deliverytest.Kit, status string) *operationtest.Event {
	t.Helper()
	return event(t, k).Set(info+".deliveryStatus", status)
}

func committed(t testing.TB, k *deliverytest.Kit, e *operationtest.Event) {
	t.Helper()
	if answer := k.Do(t, e).Succeeds(t, 200); answer.Body != `{"status":"OK"}` {
		t.Errorf("body %s", answer.Body)
	}
}

// queued are the statuses in an entry's outbox, in order.
func queued(e *ledger.Entry) []ledger.Status {
	var statuses []ledger.Status
	for _, n := range e.Outbox {
		statuses = append(statuses, n.Status)
	}
	return statuses
}

func TestForms(t *testing.T) {
	cases := map[string]string{
		"an object":              `{"deliveryStatus":"DeliveredToTerminal"}`,
		"an array":               `[{"deliveryStatus":"DeliveredToTerminal"}]`,
		"with what else comes":   `{"address":"tel:+2250709998877","deliveryStatus":"DeliveredToTerminal","x":[1]}`,
		"without regard to case": `{"deliveryStatus":"DELIVEREDtoterminal"}`,
	}
	for name, form := range cases {
		t.Run(name, func(t *testing.T) {
			k := kit(t)
			e := k.Message(message)
			committed(t, k, event(t, k).Raw(`{"deliveryInfoNotification":{"callbackData":"theirs","deliveryInfo":`+form+`}}`))
			if after := k.Get(t, e); after.Status != ledger.DeliveredToTerminal || len(after.Outbox) != 1 {
				t.Errorf("%+v", after)
			}
		})
	}
	t.Run("an array in its order", func(t *testing.T) {
		k := kit(t)
		e := k.Message(message)
		committed(t, k, event(t, k).Raw(`{"deliveryInfoNotification":{"deliveryInfo":[
			{"deliveryStatus":"MessageWaiting"},{"deliveryStatus":"DeliveredToNetwork"},{"deliveryStatus":"DeliveredToTerminal"}]}}`))
		want := []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal}
		if after := k.Get(t, e); !slices.Equal(queued(after), want) {
			t.Errorf("%v", queued(after))
		}
	})
}

// progress orders the six statuses; the last four end a message (decision "sms-receipts").
var progress = map[ledger.Status]int{
	ledger.MessageWaiting: 1, ledger.DeliveredToNetwork: 2, ledger.DeliveredToTerminal: 3, ledger.DeliveryUncertain: 3,
	ledger.DeliveryImpossible: 3, ledger.NotificationNotSupp: 3,
}

// Every pair of statuses, one after the other: forward is applied and told, the same, a step back and what comes after
// the end are dropped.
func TestOrder(t *testing.T) {
	for first := range progress {
		for second := range progress {
			t.Run(fmt.Sprintf("%s then %s", first, second), func(t *testing.T) {
				k := kit(t)
				e := k.Message(message)
				committed(t, k, word(t, k, string(first)))
				committed(t, k, word(t, k, string(second)))
				want := []ledger.Status{first}
				if progress[second] > progress[first] {
					want = append(want, second)
				}
				after := k.Get(t, e)
				if !slices.Equal(queued(after), want) || after.Status != want[len(want)-1] || after.FinalAt.IsZero() == after.Settled() {
					t.Errorf("%s, queued %v, want %v", after.Status, queued(after), want)
				}
				if after.Version != e.Version+int64(len(want)) {
					t.Errorf("%d writes for %d changes", after.Version-e.Version, len(want))
				}
			})
		}
	}
}

func TestWhateverBecameOfOurCall(t *testing.T) {
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		state  ledger.State
	}{
		{"before our own answer", func(*ledger.Entry) {}, ledger.Reserved},
		{"unknown", func(e *ledger.Entry) { e.Settle("owner", ledger.Settlement{State: ledger.Unknown}, e.CreatedAt) }, ledger.Done},
		{"released", func(e *ledger.Entry) { e.Settle("owner", ledger.Settlement{State: ledger.Released}, e.CreatedAt) }, ledger.Done},
		{"its owner died", func(e *ledger.Entry) { e.LeaseUntil = e.CreatedAt }, ledger.Done},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := kit(t)
			held := k.NewMessage(message)
			c.before(held)
			k.Store(held)
			committed(t, k, event(t, k))
			after := k.Get(t, held)
			if after.State != c.state || after.Status != ledger.DeliveredToTerminal || len(after.Outbox) != 1 {
				t.Fatalf("%+v", after)
			}
			if c.state != ledger.Reserved {
				return
			}
			settled, err := k.Book.Settle(context.Background(), held, ledger.Settlement{State: ledger.Done, AnswerStatus: 201, AnswerBody: []byte("{}")})
			if err != nil || settled.State != ledger.Done || settled.AnswerStatus != 201 || settled.Status != ledger.DeliveredToTerminal || len(settled.Outbox) != 1 {
				t.Errorf("%v, %+v", err, settled)
			}
		})
	}
}

// The merchant's own callbackData goes back, never what the operator sent; without a notifyURL nothing is queued.
func TestWhatTheMerchantIsTold(t *testing.T) {
	k := kit(t)
	e := k.Message(message)
	committed(t, k, event(t, k))
	after := k.Get(t, e)
	operationtest.Golden(t, "testdata/notification.json", delivery.Body(after, after.Outbox[0]))

	k = kit(t)
	silent := k.NewMessage(message)
	silent.NotifyURL = ""
	k.Store(silent)
	committed(t, k, event(t, k))
	if after := k.Get(t, silent); after.Status != ledger.DeliveredToTerminal || len(after.Outbox) != 0 {
		t.Errorf("%+v", after)
	}
}

func TestForgedAndForeign(t *testing.T) {
	cases := []struct {
		name  string
		event func(*deliverytest.Kit) *operationtest.Event
		reads int
	}{
		{"no token", func(k *deliverytest.Kit) *operationtest.Event { return event(t, k).Param("token", "x") }, 0},
		{"another message's token", func(k *deliverytest.Kit) *operationtest.Event { return event(t, k).Param("requestId", "another") }, 0},
		{"another operator's token", func(k *deliverytest.Kit) *operationtest.Event { return event(t, k).Param("operator", "mtn") }, 0},
		{"a payment's token", func(k *deliverytest.Kit) *operationtest.Event {
			ring, err := k.Callbacks.Ring(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return event(t, k).Param("token", ring.Sign(callback.PaymentPath("sandbox", message)))
		}, 0},
		{"an operator it does not belong to", func(k *deliverytest.Kit) *operationtest.Event { return addressed(t, k, "mtn", message) }, 1},
		{"a message that is not there", func(k *deliverytest.Kit) *operationtest.Event { return addressed(t, k, "sandbox", "another") }, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := kit(t)
			before := k.Message(message)
			k.Do(t, c.event(k)).Fails(t, 404, "900906")
			if reads := k.Ledger.Calls(ledgermem.Get); reads != c.reads || k.Ledger.Writes() != 0 || k.Get(t, before).Version != before.Version {
				t.Errorf("%d reads, %d writes", reads, k.Ledger.Writes())
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
		{"a key twice", `{"deliveryInfoNotification":{"deliveryInfo":{"deliveryStatus":"MessageWaiting","deliveryStatus":"DeliveredToTerminal"}}}`, info + ".deliveryStatus"},
		{"nothing in it", `{}`, info},
		{"no info", `{"deliveryInfoNotification":{}}`, info},
		{"null", `{"deliveryInfoNotification":{"deliveryInfo":null}}`, info},
		{"an empty array", `{"deliveryInfoNotification":{"deliveryInfo":[]}}`, info},
		{"a text", `{"deliveryInfoNotification":{"deliveryInfo":"DeliveredToTerminal"}}`, info},
		{"a notification that is a text", `{"deliveryInfoNotification":"x"}`, info},
		{"an array in an array", `{"deliveryInfoNotification":{"deliveryInfo":[[]]}}`, info},
		{"too many", `{"deliveryInfoNotification":{"deliveryInfo":[` + strings.TrimSuffix(many, ",") + `]}}`, info},
		{"no status", `{"deliveryInfoNotification":{"deliveryInfo":{}}}`, info + ".deliveryStatus"},
		{"a status that is none", `{"deliveryInfoNotification":{"deliveryInfo":{"deliveryStatus":"Lost"}}}`, info + ".deliveryStatus"},
		{"a status that is a number", `{"deliveryInfoNotification":{"deliveryInfo":{"deliveryStatus":1}}}`, info + ".deliveryStatus"},
		{"one good and one bad", `{"deliveryInfoNotification":{"deliveryInfo":[{"deliveryStatus":"MessageWaiting"},{"deliveryStatus":"x"}]}}`, info + ".deliveryStatus"},
		{"names in another case", `{"DeliveryInfoNotification":{"deliveryInfo":{"deliveryStatus":"MessageWaiting"}}}`, info},
		{"two readings of one name", `{"deliveryInfoNotification":{"deliveryInfo":{"DeliveryStatus":"MessageWaiting"}}}`, info + ".deliveryStatus"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := kit(t)
			k.Message(message)
			k.Do(t, event(t, k).Raw(c.body)).Fails(t, 400, "SVC0002", c.part)
			if k.Ledger.Calls(ledgermem.Get)+k.Ledger.Writes() != 0 {
				t.Error("the ledger was asked")
			}
		})
	}
}

func TestNotCommitted(t *testing.T) {
	for _, operation := range []ledgermem.Operation{ledgermem.Get, ledgermem.Replace} {
		k := kit(t)
		e := k.Message(message)
		k.Lost(operation)
		k.Do(t, event(t, k)).Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
		committed(t, k, event(t, k))
		if after := k.Get(t, e); len(after.Outbox) != 1 {
			t.Errorf("%s: %+v", operation, after)
		}
	}
}

func TestRepeatedInParallel(t *testing.T) {
	const times = 20
	k := kit(t)
	e := k.Message(message)
	receipts := make([]*operationtest.Event, times)
	for i := range receipts {
		receipts[i] = event(t, k)
	}
	var group sync.WaitGroup
	for _, each := range receipts {
		group.Go(func() {
			if answer := k.Do(t, each); answer.Status != 200 {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		})
	}
	group.Wait()
	if after := k.Get(t, e); len(after.Outbox) != 1 || after.Version != e.Version+1 {
		t.Errorf("%+v", after)
	}
}

// FuzzReceipt sends arbitrary bodies with a genuine token: 200 or 400, and a status never goes back.
func FuzzReceipt(f *testing.F) {
	f.Add(operationtest.Load(f, "testdata/event.json").Body())
	f.Add(`{"deliveryInfoNotification":{"deliveryInfo":[{"deliveryStatus":"MessageWaiting"},{"deliveryStatus":"deliveryimpossible"}]}}`)
	f.Add(`{"deliveryInfoNotification":{"deliveryInfo":[null,{}]}}`)
	f.Add(`{"deliveryInfoNotification":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		k := kit(t)
		e := k.Message(message, ledger.DeliveredToNetwork)
		answer := k.Do(t, event(t, k).Raw(body))
		after := k.Get(t, e)
		if answer.Status != 200 && answer.Status != 400 && answer.Status != 413 {
			t.Errorf("%d %s", answer.Status, answer.Body)
		}
		if progress[after.Status] < progress[ledger.DeliveredToNetwork] || len(after.Outbox) > 2 {
			t.Errorf("%s, queued %v", after.Status, queued(after))
		}
	})
}
