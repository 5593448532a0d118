package operationtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// Store is the world's ledger with a trap before and after each of its writes, where a function may die.
type Store struct {
	ledger.Writer
	mutex sync.Mutex
	at    string
	trap  func()
}

// Trap sets what happens the next time that a point is reached: "before Insert", "after Replace". It happens once.
func (s *Store) Trap(at string, trap func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.at, s.trap = at, trap
}

func (s *Store) reach(at string) {
	s.mutex.Lock()
	trap := s.trap
	if s.at != at {
		trap = nil
	} else {
		s.trap = nil
	}
	s.mutex.Unlock()
	if trap != nil {
		trap()
	}
}

// Insert is ledger.Writer's.
func (s *Store) Insert(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	s.reach("before Insert")
	defer s.reach("after Insert")
	return s.Writer.Insert(ctx, e)
}

// Replace is ledger.Writer's.
func (s *Store) Replace(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	s.reach("before Replace")
	defer s.reach("after Replace")
	return s.Writer.Replace(ctx, e)
}

// ClaimReference is ledger.Writer's.
func (s *Store) ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (string, error) {
	s.reach("before ClaimReference")
	defer s.reach("after ClaimReference")
	return s.Writer.ClaimReference(ctx, merchantID, referenceCode, chargeID)
}

// Crash lets the function die before and after each write of a store, once by a panic and once by a call that comes
// back only when all is over. The lease lapses and the merchant retries: that is answered 201, or 409 with a Location
// where an SMS had been stored as sent, and there is one effect under one key.
func Crash(t *testing.T, world func(testing.TB) *World, load func(testing.TB) *Event, effect string, writes ...string) {
	t.Helper()
	for _, write := range writes {
		for _, at := range []string{"before " + write, "after " + write} {
			t.Run("crash points: a panic "+at, func(t *testing.T) {
				w := world(t)
				w.Store.Trap(at, func() { panic("the function died") })
				w.Do(t, load(t)).Succeeds(t, 500)
				retried(t, w, load(t), effect)
			})
			t.Run("crash points: no return "+at, func(t *testing.T) {
				w, e := world(t), load(t)
				reached, release, late := make(chan struct{}), make(chan struct{}), make(chan Answer)
				w.Store.Trap(at, func() { close(reached); <-release })
				go func() { late <- w.Do(t, e) }()
				<-reached
				retried(t, w, load(t), effect)
				close(release)
				<-late
				w.OneEffect(t, effect, len(w.Driver.Calls()))
			})
		}
	}
}

// retried lets the lease lapse and sends the request again.
func retried(t *testing.T, w *World, e *Event, effect string) {
	t.Helper()
	w.Clock.Advance(time.Minute)
	answer := w.Do(t, e)
	if answer.Status != 201 && (answer.Status != 409 || answer.Header["Location"] == "") {
		t.Errorf("the retry is answered %d %s", answer.Status, answer.Body)
	}
	w.OneEffect(t, effect, len(w.Driver.Calls()))
}
