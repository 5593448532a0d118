package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/functions/sweep"
	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/pause"
)

// stack is the stack name in the log lines, timeout the function's.
const (
	stack   = "gateway-dev"
	timeout = time.Minute
)

// summary is the summary of an entry.
type summary = deliverytest.EntrySummary

// deliveredFailure is the summary of a failed payment whose notification was delivered.
var deliveredFailure = summary{State: ledger.Done, Status: ledger.Failed, Delivered: 1}

// sweepFixture is a fixture with a sweep.
type sweepFixture struct {
	*deliverytest.DeliveryFixture
	sweep *sweep.Sweep
}

func serveSweep(k *deliverytest.DeliveryFixture) *sweepFixture {
	return &sweepFixture{k, &sweep.Sweep{
		Queue: k.Ledger, Book: k.Book, Messages: k.Ledger, Confirmer: k.Confirmer,
		Courier: k.Courier, PollSchedule: deliverytest.PollSchedule(),
		PaymentLifetime: deliverytest.PaymentLifetime, UnresponsiveRetry: deliverytest.UnresponsiveRetry,
		SweepInterval: deliverytest.SweepInterval, Sleep: pause.For, Now: k.Clock.Now, Log: k.LogLines,
		StackName: stack,
	}}
}

func newFixture(t testing.TB) *sweepFixture {
	t.Helper()
	return serveSweep(deliverytest.New(t))
}

// runSweep runs one sweep.
func (s *sweepFixture) runSweep(t testing.TB) {
	t.Helper()
	if _, err := s.sweep.Invoke(s.InvocationContext(t, timeout), nil); err != nil {
		t.Errorf("the sweep failed: %v", err)
	}
}

// runSweepAfter advances the clock and runs one sweep.
func (s *sweepFixture) runSweepAfter(t testing.TB, wait time.Duration) {
	t.Helper()
	s.Clock.Advance(wait)
	s.runSweep(t)
}

// advanceUntilDue advances the clock until an entry is due and runs one sweep. It returns the wait.
func (s *sweepFixture) advanceUntilDue(t testing.TB, e *ledger.Entry) time.Duration {
	t.Helper()
	due := s.MustGet(t, e).DueAt
	if due.IsZero() {
		t.Fatalf("%s is not due", e.Key)
	}
	wait := due.Sub(s.Clock.Now())
	s.runSweepAfter(t, max(wait, 0))
	return wait
}

// runWhileHanging runs a sweep while servers hang, and checks that another merchant's entry is delivered meanwhile. It
// then closes release and waits for the end of the sweep.
func (s *sweepFixture) runWhileHanging(t testing.TB, other *ledger.Entry, release chan struct{}) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.runSweep(t)
	}()
	deadline := time.Now().Add(10 * time.Second)
	for ; len(s.MustGet(t, other).Outbox.Delivered) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the other merchant's notification is not delivered while the servers hang")
			break
		}
	}
	close(release)
	<-done
}

// assertWait checks the time between a sweep and the next due time.
func assertWait(t *testing.T, got, want time.Duration) {
	t.Helper()
	if got != want {
		t.Errorf("due after %s, want %s", got, want)
	}
}
