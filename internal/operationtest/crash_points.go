package operationtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// CrashingWriter is the world's ledger with a trap before and after each of its writes, where a function may die.
type CrashingWriter struct {
	ledger.Writer
	mutex      sync.Mutex
	crashPoint string
	onCrash    func()
}

// SetCrashPoint sets what happens the next time that a point is reached: "before Insert", "after Replace". It happens once.
func (s *CrashingWriter) SetCrashPoint(point string, onCrash func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.crashPoint, s.onCrash = point, onCrash
}

func (s *CrashingWriter) hitCrashPoint(point string) {
	s.mutex.Lock()
	onCrash := s.onCrash
	if s.crashPoint != point {
		onCrash = nil
	} else {
		s.onCrash = nil
	}
	s.mutex.Unlock()
	if onCrash != nil {
		onCrash()
	}
}

// Insert is ledger.Writer's.
func (s *CrashingWriter) Insert(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	s.hitCrashPoint("before Insert")
	defer s.hitCrashPoint("after Insert")
	return s.Writer.Insert(ctx, e)
}

// Replace is ledger.Writer's.
func (s *CrashingWriter) Replace(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	s.hitCrashPoint("before Replace")
	defer s.hitCrashPoint("after Replace")
	return s.Writer.Replace(ctx, e)
}

// ClaimReference is ledger.Writer's.
func (s *CrashingWriter) ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (string, error) {
	s.hitCrashPoint("before ClaimReference")
	defer s.hitCrashPoint("after ClaimReference")
	return s.Writer.ClaimReference(ctx, merchantID, referenceCode, chargeID)
}

// CheckCrashPoints lets the function die before and after each write of a store, once by a panic and once by a call that comes
// back only when all is over. The lease lapses and the merchant retries: that is answered 201, or 409 with a Location
// where an SMS had been stored as sent, and there is one effect under one key.
func CheckCrashPoints(t *testing.T, newFixture func(testing.TB) *Fixture, loadEvent func(testing.TB) *Event, effect string, writes ...string) {
	t.Helper()
	for _, write := range writes {
		for _, point := range []string{"before " + write, "after " + write} {
			t.Run("crash points: a panic "+point, func(t *testing.T) {
				w := newFixture(t)
				w.Writer.SetCrashPoint(point, func() { panic("the function died") })
				w.Send(t, loadEvent(t)).AssertStatus(t, 500)
				checkRetry(t, w, loadEvent(t), effect)
			})
			t.Run("crash points: no return "+point, func(t *testing.T) {
				w, e := newFixture(t), loadEvent(t)
				reached, release, delayed := make(chan struct{}), make(chan struct{}), make(chan Response)
				w.Writer.SetCrashPoint(point, func() { close(reached); <-release })
				go func() { delayed <- w.Send(t, e) }()
				<-reached
				checkRetry(t, w, loadEvent(t), effect)
				close(release)
				<-delayed
				w.AssertSingleEffect(t, effect, len(w.Driver.Calls()))
			})
		}
	}
}

// checkRetry lets the lease lapse and sends the request again.
func checkRetry(t *testing.T, w *Fixture, e *Event, effect string) {
	t.Helper()
	w.Clock.Advance(time.Minute)
	response := w.Send(t, e)
	if response.Status != 201 && (response.Status != 409 || response.Header["Location"] == "") {
		t.Errorf("the retry is answered %d %s", response.Status, response.Body)
	}
	w.AssertSingleEffect(t, effect, len(w.Driver.Calls()))
}
