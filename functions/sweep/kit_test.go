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

// service is a kit with a sweep.
type service struct {
	*deliverytest.Kit
	sweep *sweep.Sweep
}

func serve(k *deliverytest.Kit) *service {
	return &service{k, &sweep.Sweep{
		Queue: k.Ledger, Book: k.Book, Settlement: k.Settlement, Courier: k.Courier, PollSchedule: deliverytest.PollSchedule(),
		Lifetime: deliverytest.Lifetime, RetrySilent: deliverytest.RetrySilent, Interval: deliverytest.Interval,
		Now: k.Clock.Now, Log: k.Lines, Stack: stack,
	}}
}

func kit(t testing.TB) *service {
	t.Helper()
	return serve(deliverytest.New(t))
}

// run runs one sweep.
func (s *service) run(t testing.TB) {
	t.Helper()
	if _, err := s.sweep.Invoke(s.Context(t, timeout), nil); err != nil {
		t.Errorf("the sweep failed: %v", err)
	}
}

// after moves the clock and runs one sweep.
func (s *service) after(t testing.TB, wait time.Duration) {
	t.Helper()
	s.Clock.Advance(wait)
	s.run(t)
}

// untilDue moves the clock to the time that an entry is due at, not before, and runs one sweep. It gives the wait.
func (s *service) untilDue(t testing.TB, e *ledger.Entry) time.Duration {
	t.Helper()
	due := s.Get(t, e).Due
	if due.IsZero() {
		t.Fatalf("%s is not due", e.Key)
	}
	wait := due.Sub(s.Clock.Now())
	s.after(t, max(wait, 0))
	return wait
}

// runWhileHanging runs a sweep whose other servers hang until release is closed, and sees that one merchant's entry is told
// meanwhile.
func (s *service) runWhileHanging(t testing.TB, other *ledger.Entry, release chan struct{}) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(t)
	}()
	for deadline := time.Now().Add(10 * time.Second); len(s.Get(t, other).Told) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the other merchant is not told while the servers hang")
			break
		}
	}
	close(release)
	<-done
}
