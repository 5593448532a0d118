package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// deliveryRanks are the six statuses and their ranks in a message's progress.
var deliveryRanks = map[ledger.Status]int{
	ledger.MessageWaiting: 1, ledger.DeliveredToNetwork: 2, ledger.DeliveredToTerminal: 3, ledger.DeliveryUncertain: 3,
	ledger.DeliveryImpossible: 3, ledger.NotificationNotSupp: 3,
}

func TestReceiptsOnlyGoForward(t *testing.T) {
	for first, firstRank := range deliveryRanks {
		for second, secondRank := range deliveryRanks {
			e := message()
			if e.ApplyReceipt(first, start) != ledger.Applied {
				t.Fatalf("%s was not applied", first)
			}
			want, status, notifications := ledger.Unchanged, first, 1
			if secondRank > firstRank {
				want, status, notifications = ledger.Applied, second, 2
			}
			if got := e.ApplyReceipt(second, start); got != want || e.Status != status ||
				len(e.Outbox.Waiting) != notifications {
				t.Errorf("%s then %s: %v, %s", first, second, got, summary(e))
			}
			if final := !e.FinalAt.IsZero(); final != e.Status.Final() {
				t.Errorf("%s: final at %s", e.Status, e.FinalAt)
			}
		}
	}
}

func TestReceiptInEveryState(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		now    time.Time
		state  ledger.State
	}{
		{"before the response to our call", func(*ledger.Entry) {}, start, ledger.Reserved},
		{"after the lease", func(*ledger.Entry) {}, start.Add(time.Hour), ledger.Done},
		{"unknown", outcome(unknown), start, ledger.Done},
		{"released", outcome(released), start, ledger.Done},
		{"refused", outcome(refused), start, ledger.Refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := entryAfter(ledger.SMS, c.before)
			if e.ApplyReceipt(ledger.DeliveredToNetwork, c.now) != ledger.Applied || e.State != c.state ||
				len(e.Outbox.Waiting) != 1 {
				t.Fatalf("%s, want %s with a notification", summary(e), c.state)
			}
		})
	}
}

func TestReceiptOfNothing(t *testing.T) {
	if got := reserved(ledger.Payment).ApplyReceipt(ledger.DeliveredToTerminal, start); got != ledger.Unchanged {
		t.Errorf("a payment: %v", got)
	}
	if got := reserved(ledger.SMS).ApplyReceipt("Delivered", start); got != ledger.Unchanged {
		t.Errorf("an unknown status: %v", got)
	}
	e := reserved(ledger.SMS)
	e.Outbox.URL = ""
	if e.ApplyReceipt(ledger.DeliveredToTerminal, start) != ledger.Applied || len(e.Outbox.Waiting) != 0 {
		t.Errorf("without a URL: %s", summary(e))
	}
}
