package deliverytest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
)

// EntrySummary has the facts of an entry that tests compare. Outbox, Delivered and Conflicts are counts.
type EntrySummary struct {
	State     ledger.State
	Status    ledger.Status
	Claim     ledger.Status
	Outbox    int
	Delivered int
	Conflicts int
	UserSMS   ledger.UserSMSState
	Due       bool
}

// AssertEntry compares the stored version of an entry with a summary, and returns it.
func (k *DeliveryFixture) AssertEntry(t testing.TB, e *ledger.Entry, want EntrySummary) *ledger.Entry {
	t.Helper()
	stored := k.MustGet(t, e)
	got := EntrySummary{
		stored.State, stored.Status, stored.Claim.Status,
		len(stored.Outbox.Waiting), len(stored.Outbox.Delivered), len(stored.Conflicts), stored.UserSMS.State,
		!stored.DueAt.IsZero(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, stored entry (-want +got):\n%s", e.Key, diff)
	}
	return stored
}

// AssertDelivered checks that each entry has exactly one delivered notification and an empty outbox.
func (k *DeliveryFixture) AssertDelivered(t testing.TB, entries ...*ledger.Entry) {
	t.Helper()
	for _, e := range entries {
		if stored := k.MustGet(t, e); len(stored.Outbox.Delivered) != 1 || len(stored.Outbox.Waiting) != 0 {
			t.Errorf("%s: %d notifications delivered, want 1; outbox %+v", e.Key, len(stored.Outbox.Delivered),
				stored.Outbox.Waiting)
		}
	}
}

// AssertReceived checks the number of notifications that the merchant's server received.
func (k *DeliveryFixture) AssertReceived(t testing.TB, want int) {
	t.Helper()
	operationtest.AssertEqual(t, "received notifications", len(k.MerchantServer.Received("")), want)
}

// AssertLookups checks the number of getStatus requests.
func (k *DeliveryFixture) AssertLookups(t testing.TB, want int) {
	t.Helper()
	operationtest.AssertEqual(t, "lookups", len(k.Operator.Lookups()), want)
}

// AssertUserSMSCalls checks the number of attempts to send a payer's SMS.
func (k *DeliveryFixture) AssertUserSMSCalls(t testing.TB, want int) {
	t.Helper()
	operationtest.AssertEqual(t, "sent SMS", len(k.Operator.UserSMSCalls()), want)
}

// AssertMetric checks the sum of a metric over all log lines.
func (k *DeliveryFixture) AssertMetric(t testing.TB, metric string, want int) {
	t.Helper()
	if got := k.LogLines.SumMetric(metric); got != want {
		t.Errorf("%s: counted %d, want %d; lines:\n%s", metric, got, want, k.LogLines)
	}
}

// AssertCommitted sends a callback and checks that it is acknowledged.
func (k *DeliveryFixture) AssertCommitted(t testing.TB, e *operationtest.Event) {
	t.Helper()
	if response := k.Send(t, e); response.Status != 200 || response.Body != `{"status":"OK"}` {
		t.Errorf("response %d %s, want the acknowledgement with 200", response.Status, response.Body)
	}
}

// SignPath returns the token of a callback path.
func (k *DeliveryFixture) SignPath(t testing.TB, path string) string {
	t.Helper()
	ring, err := k.CallbackKeys.Ring(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return ring.Sign(path)
}
