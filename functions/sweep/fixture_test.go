package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/functions/sweep"
	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
)

// timeout is the function's.
const timeout = time.Minute

// stack is what the lines name.
const stack = "gateway-dev"

// sweepFixture is a kit with a sweep.
type sweepFixture struct {
	*deliverytest.DeliveryFixture
	sweep *sweep.Sweep
}

func serveSweep(k *deliverytest.DeliveryFixture) *sweepFixture {
	return &sweepFixture{k, &sweep.Sweep{
		Queue: k.Ledger, Book: k.Book, Reconciler: k.Reconciler, DailyAmounts: k.Pipeline.DailyAmounts, Courier: k.Courier, PollSchedule: deliverytest.PollSchedule(),
		PaymentLifetime: deliverytest.PaymentLifetime, UnresponsiveRetry: deliverytest.UnresponsiveRetry, SweepInterval: deliverytest.SweepInterval,
		Now: k.Clock.Now, Log: k.LogLines, StackName: stack,
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

// runSweepAfter moves the clock and runs one sweep.
func (s *sweepFixture) runSweepAfter(t testing.TB, wait time.Duration) {
	t.Helper()
	s.Clock.Advance(wait)
	s.runSweep(t)
}

// advanceUntilDue moves the clock to the time that an entry is due at, not before, and runs one sweep. It gives the wait.
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

// runWhileHanging runs a sweep whose other servers hang until release is closed, and sees that one merchant's entry is told
// meanwhile.
func (s *sweepFixture) runWhileHanging(t testing.TB, other *ledger.Entry, release chan struct{}) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.runSweep(t)
	}()
	for deadline := time.Now().Add(10 * time.Second); len(s.MustGet(t, other).Delivered) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the other merchant is not told while the servers hang")
			break
		}
	}
	close(release)
	<-done
}
