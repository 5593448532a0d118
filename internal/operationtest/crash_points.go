package operationtest

import (
	"context"
	"sync"
	"testing"

	"mobilegateway/shared/ledger"
)

// CrashingWriter is the fixture's ledger with a crash point before and after each of its writes.
type CrashingWriter struct {
	ledger.Writer
	mutex   sync.Mutex
	onCrash map[string]func()
}

// SetCrashPoint sets a function that runs once, the next time that a point is reached: "before Insert", "after
// Replace".
func (s *CrashingWriter) SetCrashPoint(point string, onCrash func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.onCrash = map[string]func(){point: onCrash}
}

func (s *CrashingWriter) hitCrashPoint(point string) {
	s.mutex.Lock()
	onCrash := s.onCrash[point]
	delete(s.onCrash, point)
	s.mutex.Unlock()
	if onCrash != nil {
		onCrash()
	}
}

// Insert implements ledger.Writer.
func (s *CrashingWriter) Insert(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	s.hitCrashPoint("before Insert")
	defer s.hitCrashPoint("after Insert")
	return s.Writer.Insert(ctx, e)
}

// Replace implements ledger.Writer.
func (s *CrashingWriter) Replace(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	s.hitCrashPoint("before Replace")
	defer s.hitCrashPoint("after Replace")
	return s.Writer.Replace(ctx, e)
}

// ClaimReference implements ledger.Writer.
func (s *CrashingWriter) ClaimReference(ctx context.Context, charge *ledger.Entry) (string, error) {
	s.hitCrashPoint("before ClaimReference")
	defer s.hitCrashPoint("after ClaimReference")
	return s.Writer.ClaimReference(ctx, charge)
}

// checkCrashPoints lets the function crash before and after each write of the ledger, once by a panic and once by a
// call that returns only after the retry.
func (s Suite) checkCrashPoints(t *testing.T) {
	t.Helper()
	for _, write := range s.Writes {
		for _, point := range []string{"before " + write, "after " + write} {
			t.Run("crash points: a panic "+point, func(t *testing.T) {
				w := s.NewFixture(t)
				w.Writer.SetCrashPoint(point, func() { panic("the function crashed") })
				w.Send(t, s.NewEvent(t)).AssertStatus(t, 500)
				s.checkRetry(t, w)
			})
			t.Run("crash points: no return "+point, func(t *testing.T) {
				w, e := s.NewFixture(t), s.NewEvent(t)
				reached, release, delayed := make(chan struct{}), make(chan struct{}), make(chan Response)
				w.Writer.SetCrashPoint(point, func() { close(reached); <-release })
				go func() { delayed <- w.Send(t, e) }()
				<-reached
				s.checkRetry(t, w)
				close(release)
				<-delayed
				w.AssertSingleEffect(t, s.Effect, len(w.Driver.Calls()))
			})
		}
	}
}
