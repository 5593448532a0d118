package operationtest

import "testing"

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
