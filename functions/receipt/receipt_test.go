package receipt_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/functions/receipt"
	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
)

const (
	message    = "8d6f0c52-0000-8000-8000-000000000001"
	infoPath   = "deliveryInfoNotification.deliveryInfo"
	statusPath = infoPath + ".deliveryStatus"
)

// delivered is the summary of a message after the receipt DeliveredToTerminal.
var delivered = deliverytest.EntrySummary{State: ledger.Done, Status: ledger.DeliveredToTerminal, Outbox: 1, Due: true}

func newFixture(t testing.TB) *deliverytest.DeliveryFixture {
	t.Helper()
	k := deliverytest.New(t)
	handler := &receipt.ReceiptHandler{Verifier: k.CallbackKeys, Book: k.Book, Now: k.Clock.Now}
	k.Serve("receipt", handler.Routes()...)
	return k
}

// newEvent returns the golden receipt, DeliveredToTerminal, with a valid token.
func newEvent(t testing.TB, k *deliverytest.DeliveryFixture) *operationtest.Event {
	t.Helper()
	return newEventFor(t, k, "sandbox", message)
}

func newEventFor(t testing.TB, k *deliverytest.DeliveryFixture, name, id string) *operationtest.Event {
	t.Helper()
	e := operationtest.LoadEvent(t, "testdata/event.json").SetPathParameter("operator", name)
	return e.SetPathParameter("requestId", id).SetPathParameter("token", k.SignPath(t, callback.ReceiptPath(name, id)))
}

// assertQueued compares the statuses in the stored outbox of an entry.
func assertQueued(t testing.TB, k *deliverytest.DeliveryFixture, e *ledger.Entry, want ...ledger.Status) {
	t.Helper()
	var got []ledger.Status
	for _, n := range k.MustGet(t, e).Outbox.Waiting {
		got = append(got, n.Status)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses in the outbox (-want +got):\n%s", diff)
	}
}

func TestObjectOrArray(t *testing.T) {
	cases := map[string]string{
		"an object":           `{"deliveryStatus":"DeliveredToTerminal"}`,
		"an array":            `[{"deliveryStatus":"DeliveredToTerminal"}]`,
		"with unknown fields": `{"address":"tel:+2250709998877","deliveryStatus":"DeliveredToTerminal","x":[1]}`,
		"in another case":     `{"deliveryStatus":"DELIVEREDtoterminal"}`,
		"as many as allowed": `[` + strings.Repeat(`{"deliveryStatus":"DeliveredToTerminal"},`, 15) +
			`{"deliveryStatus":"DeliveredToTerminal"}]`,
	}
	for name, form := range cases {
		t.Run(name, func(t *testing.T) {
			k := newFixture(t)
			e := k.StoreMessage(message)
			body := `{"deliveryInfoNotification":{"callbackData":"theirs","deliveryInfo":` + form + `}}`
			k.AssertCommitted(t, newEvent(t, k).SetRawBody(body))
			k.AssertEntry(t, e, delivered)
		})
	}
	t.Run("an array in its order", func(t *testing.T) {
		k := newFixture(t)
		e := k.StoreMessage(message)
		k.AssertCommitted(t, newEvent(t, k).SetRawBody(`{"deliveryInfoNotification":{"deliveryInfo":[
			{"deliveryStatus":"MessageWaiting"},{"deliveryStatus":"DeliveredToNetwork"},
			{"deliveryStatus":"DeliveredToTerminal"}]}}`))
		assertQueued(t, k, e, ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal)
		if got := k.MustGet(t, e).Timeline; got != "rd" { // decision "order-timeline"
			t.Errorf("the timeline %q, want that of the last status", got)
		}
	})
}

// The notification has the merchant's own callbackData, never the operator's.
func TestNotificationContents(t *testing.T) {
	k := newFixture(t)
	e := k.StoreMessage(message)
	k.AssertCommitted(t, newEvent(t, k))
	after := k.MustGet(t, e)
	operationtest.Golden(t, "testdata/notification.json", delivery.NotificationBody(after, after.Outbox.Waiting[0], ""))
}

func TestForgedAndForeignReceipts(t *testing.T) {
	deliverytest.CheckForged(t, func(t testing.TB) *deliverytest.DeliveryFixture {
		k := newFixture(t)
		k.StoreMessage(message)
		return k
	}, deliverytest.ForgedCallback{
		NewEvent: newEventFor, ID: message, IDParameter: "requestId",
		Path: callback.ReceiptPath, OtherPath: callback.PaymentPath,
	})
}

// assertCalls checks the number of reads of the ledger, and that it was not written.
func assertCalls(t *testing.T, k *deliverytest.DeliveryFixture, reads int) {
	t.Helper()
	got := [2]int{k.Ledger.CallCount(storetest.Get), k.Ledger.WriteCount()}
	if want := [2]int{reads, 0}; got != want {
		t.Errorf("reads and writes of the ledger %v, want %v", got, want)
	}
}

// decision "unread-callbacks": a receipt that cannot be read gets 200, and changes nothing.
func TestUnreadReceipts(t *testing.T) {
	many := strings.Repeat(`{"deliveryStatus":"MessageWaiting"},`, 16) + `{"deliveryStatus":"MessageWaiting"}`
	info := func(value string) string { return `{"deliveryInfoNotification":{"deliveryInfo":` + value + `}}` }
	cases := []struct{ name, body string }{
		{"not JSON", "{"},
		{"a list", "[]"},
		{"empty", ""},
		{"a key twice", info(`{"deliveryStatus":"MessageWaiting","deliveryStatus":"DeliveredToTerminal"}`)},
		{"an empty object", `{}`},
		{"no info", `{"deliveryInfoNotification":{}}`},
		{"null", info(`null`)},
		{"an empty array", info(`[]`)},
		{"a text", info(`"DeliveredToTerminal"`)},
		{"a notification that is a text", `{"deliveryInfoNotification":"x"}`},
		{"an array in an array", info(`[[]]`)},
		{"too many", info(`[` + many + `]`)},
		{"no status", info(`{}`)},
		{"an unknown status", info(`{"deliveryStatus":"Lost"}`)},
		{"a status that is a number", info(`{"deliveryStatus":1}`)},
		{"one valid, one invalid", info(`[{"deliveryStatus":"MessageWaiting"},{"deliveryStatus":"x"}]`)},
		{"a root key in another case", `{"DeliveryInfoNotification":{"deliveryInfo":{}}}`},
		{"a status key in another case", info(`{"DeliveryStatus":"MessageWaiting"}`)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t)
			k.StoreMessage(message)
			k.AssertCommitted(t, newEvent(t, k).SetRawBody(c.body))
			k.AssertCounted(t, "UnreadCallbacks")
			assertCalls(t, k, 0)
		})
	}
}

func TestStoreFailure(t *testing.T) {
	for _, operation := range []storetest.Operation{storetest.Get, storetest.Replace} {
		k := newFixture(t)
		e := k.StoreMessage(message)
		k.Ledger.FailNext(operation, storetest.FailedBeforeApply)
		k.Send(t, newEvent(t, k)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
		k.AssertCommitted(t, newEvent(t, k))
		k.AssertEntry(t, e, delivered)
	}
}

func TestRepeatedInParallel(t *testing.T) {
	k := newFixture(t)
	e := k.StoreMessage(message)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { k.AssertCommitted(t, newEvent(t, k)) })
	}
	group.Wait()
	if after := k.AssertEntry(t, e, delivered); after.Version != e.Version+1 {
		t.Errorf("version %d after %d, want one write", after.Version, e.Version)
	}
}

// FuzzReceipt sends arbitrary bodies with a valid token. The response is 200, or 413, and a status
// never returns to an earlier one.
func FuzzReceipt(f *testing.F) {
	f.Add(operationtest.LoadEvent(f, "testdata/event.json").Body())
	f.Add(`{"deliveryInfoNotification":{"deliveryInfo":[{"deliveryStatus":"MessageWaiting"},
		{"deliveryStatus":"deliveryimpossible"}]}}`)
	f.Add(`{"deliveryInfoNotification":{"deliveryInfo":[null,{}]}}`)
	f.Add(`{"deliveryInfoNotification":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		k := newFixture(t)
		e := k.StoreMessage(message, ledger.DeliveredToNetwork)
		response := k.Send(t, newEvent(t, k).SetRawBody(body))
		if response.Status != 200 && response.Status != 413 {
			t.Errorf("response %d %s, want 200 or 413", response.Status, response.Body)
		}
		after := k.MustGet(t, e)
		if after.Status == ledger.MessageWaiting {
			t.Errorf("the status returned to %s", after.Status)
		}
		if len(after.Outbox.Waiting) > 2 {
			t.Errorf("%d notifications for at most 2 statuses", len(after.Outbox.Waiting))
		}
	})
}
