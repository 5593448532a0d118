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
			e := reserved(ledger.SMS)
			e.ApplyOutcome("owner", done, start)
			if e.ApplyReceipt(first.status, start) != ledger.Applied {
				t.Fatalf("%s was not applied", first.status)
			}
			want, status, delivered := ledger.Unchanged, first.status, 1
			if second.rank > first.rank {
				want, status, delivered = ledger.Applied, second.status, 2
			}
			if got := e.ApplyReceipt(second.status, start); got != want || e.Status != status || len(e.Outbox) != delivered {
				t.Errorf("%s then %s: %v, %s, %d notifications", first.status, second.status, got, e.Status, len(e.Outbox))
			}
			if final := !e.FinalAt.IsZero(); final != e.Status.Final() {
				t.Errorf("%s: final at %s", e.Status, e.FinalAt)
			}
		}
	}
}

func TestReceiptsAreDeliveredInOrder(t *testing.T) {
	e := reserved(ledger.SMS)
	e.ApplyOutcome("owner", done, start)
	for _, s := range []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal} {
		e.ApplyReceipt(s, start)
	}
	for _, want := range []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal} {
		head := e.OutboxHead()
		if head.Status != want || !e.WakesRelay() || !e.DueAt.Equal(start.Add(ledger.FastLease)) {
			t.Fatalf("head %+v, want %s", head, want)
		}
		e.MarkDelivered(head.ID, start)
	}
	if e.OutboxHead() != nil || !e.DueAt.IsZero() || len(e.Delivered) != 3 {
		t.Errorf("after all: %+v", e)
	}
}

func TestReceiptInEveryState(t *testing.T) {
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		now    time.Time
		state  ledger.State
	}{
		{"before our own answer", func(*ledger.Entry) {}, start, ledger.Reserved},
		{"after the lease", func(*ledger.Entry) {}, start.Add(time.Hour), ledger.Done},
		{"unknown", func(e *ledger.Entry) { e.ApplyOutcome("owner", unknown, start) }, start, ledger.Done},
		{"released", func(e *ledger.Entry) { e.ApplyOutcome("owner", released, start) }, start, ledger.Done},
		{"refused", func(e *ledger.Entry) { e.ApplyOutcome("owner", refused, start) }, start, ledger.Refused},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := reserved(ledger.SMS)
			c.before(e)
			if e.ApplyReceipt(ledger.DeliveredToNetwork, c.now) != ledger.Applied || e.State != c.state || len(e.Outbox) != 1 {
				t.Fatalf("%+v", e)
			}
		})
	}
}

func TestReceiptOfNothing(t *testing.T) {
	if got := reserved(ledger.Payment).ApplyReceipt(ledger.DeliveredToTerminal, start); got != ledger.Unchanged {
		t.Errorf("a payment: %v", got)
	}
	if got := reserved(ledger.SMS).ApplyReceipt("Delivered", start); got != ledger.Unchanged {
		t.Errorf("no such status: %v", got)
	}
	e := reserved(ledger.SMS)
	e.NotifyURL = ""
	if e.ApplyReceipt(ledger.DeliveredToTerminal, start) != ledger.Applied || len(e.Outbox) != 0 {
		t.Errorf("without an address: %+v", e)
	}
}
