package sweep_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/internal/limitmem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
)

// decision "merchant-limits": what a lookup ends as not applied is given back, if its day is not over.
func TestGivenBack(t *testing.T) {
	for word, want := range map[string]int64{"successful": 500, "failed": 0, "cancelled": 0, "pending": 500} {
		t.Run(word, func(t *testing.T) {
			s := kit(t)
			e := s.Payment("DemoShop_1", func(e *ledger.Entry) { e.Limited = true })
			if err := s.Desk.Amounts.Count(context.Background(), e, e.Version, limit.Unlimited); err != nil {
				t.Fatal(err)
			}
			s.Operator.Says(word)
			s.untilDue(t, e)
			if got := s.Limits.Sum("demo0001", "XOF"); got != want {
				t.Errorf("counted %d, want %d", got, want)
			}
		})
	}
	t.Run("a table that does not answer", func(t *testing.T) {
		s := kit(t)
		e := s.Payment("DemoShop_1", func(e *ledger.Entry) { e.Limited = true })
		s.Limits.SetFaults(func() limitmem.Fault { return limitmem.Error })
		s.Operator.Says("failed")
		s.untilDue(t, e)
		if s.Get(t, e).Status != ledger.Failed || s.Lines.Sum("LimitFailures") != 1 {
			t.Errorf("%s, lines %s", s.Get(t, e).Status, s.Lines)
		}
	})
	t.Run("a day that is over", func(t *testing.T) {
		s := kit(t)
		e := s.Payment("DemoShop_1", func(e *ledger.Entry) { e.Limited = true })
		s.Clock.Advance(16 * time.Hour)
		s.Operator.Says("failed")
		s.run(t)
		if s.Get(t, e).Status != ledger.Failed || s.Limits.Transfers() != 0 {
			t.Errorf("%s, %d transfers", s.Get(t, e).Status, s.Limits.Transfers())
		}
	})
}
