package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// deliveries are the six statuses and where each stands in a message's progress.
var deliveries = []struct {
	status ledger.Status
	rank   int
}{
	{ledger.MessageWaiting, 1}, {ledger.DeliveredToNetwork, 2}, {ledger.DeliveredToTerminal, 3}, {ledger.DeliveryUncertain, 3},
	{ledger.DeliveryImpossible, 3}, {ledger.NotificationNotSupp, 3},
}

func TestReceiptsOnlyGoForward(t *testing.T) {
	for _, first := range deliveries {
		for _, second := range deliveries {
			e := held(ledger.SMS)
			e.Settle("owner", done, start)
			if e.Receipt(first.status, start) != ledger.Applied {
				t.Fatalf("%s was not applied", first.status)
			}
			want, status, told := ledger.Same, first.status, 1
			if second.rank > first.rank {
				want, status, told = ledger.Applied, second.status, 2
			}
			if got := e.Receipt(second.status, start); got != want || e.Status != status || len(e.Outbox) != told {
				t.Errorf("%s then %s: %v, %s, %d notifications", first.status, second.status, got, e.Status, len(e.Outbox))
			}
			if final := !e.FinalAt.IsZero(); final != e.Status.Final() {
				t.Errorf("%s: final at %s", e.Status, e.FinalAt)
			}
		}
	}
}

func TestReceiptsAreDeliveredInOrder(t *testing.T) {
	e := held(ledger.SMS)
	e.Settle("owner", done, start)
	for _, s := range []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal} {
		e.Receipt(s, start)
	}
	for _, want := range []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal} {
		head := e.Head()
		if head.Status != want || !e.Fast() || !e.Due.Equal(start.Add(ledger.FastLease)) {
			t.Fatalf("head %+v, want %s", head, want)
		}
		e.Delivered(head.ID, start)
	}
	if e.Head() != nil || !e.Due.IsZero() || len(e.Told) != 3 {
		t.Errorf("after all: %+v", e)
	}
}

func TestReceiptWhateverTheState(t *testing.T) {
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		now    time.Time
		state  ledger.State
	}{
		{"before our own answer", func(*ledger.Entry) {}, start, ledger.Reserved},
		{"after the lease", func(*ledger.Entry) {}, start.Add(time.Hour), ledger.Done},
		{"unknown", func(e *ledger.Entry) { e.Settle("owner", unknown, start) }, start, ledger.Done},
		{"released", func(e *ledger.Entry) { e.Settle("owner", released, start) }, start, ledger.Done},
		{"refused", func(e *ledger.Entry) { e.Settle("owner", refused, start) }, start, ledger.Refused},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := held(ledger.SMS)
			c.before(e)
			if e.Receipt(ledger.DeliveredToNetwork, c.now) != ledger.Applied || e.State != c.state || len(e.Outbox) != 1 {
				t.Fatalf("%+v", e)
			}
		})
	}
}

func TestReceiptOfNothing(t *testing.T) {
	if got := held(ledger.Payment).Receipt(ledger.DeliveredToTerminal, start); got != ledger.Same {
		t.Errorf("a payment: %v", got)
	}
	if got := held(ledger.SMS).Receipt("Delivered", start); got != ledger.Same {
		t.Errorf("no such status: %v", got)
	}
	e := held(ledger.SMS)
	e.NotifyURL = ""
	if e.Receipt(ledger.DeliveredToTerminal, start) != ledger.Applied || len(e.Outbox) != 0 {
		t.Errorf("without an address: %+v", e)
	}
}
