package sweep_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/internal/limitmem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
)

// decision "merchant-limits": what a lookup ends as not applied is given back, if its day is not over.
func TestDailyAmountRefunded(t *testing.T) {
	for statusText, want := range map[string]int64{"successful": 500, "failed": 0, "cancelled": 0, "pending": 500} {
		t.Run(statusText, func(t *testing.T) {
			s := newFixture(t)
			e := s.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) { e.CountsDailyAmount = true })
			if err := s.Pipeline.DailyAmounts.Reserve(context.Background(), operationtest.DemoProfile(), e); err != nil {
				t.Fatal(err)
			}
			s.Operator.SetStatus(statusText)
			s.advanceUntilDue(t, e)
			if got := s.LimitStore.Sum("demo0001", "XOF"); got != want {
				t.Errorf("counted %d, want %d", got, want)
			}
		})
	}
	t.Run("a table that does not answer", func(t *testing.T) {
		s := newFixture(t)
		e := s.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) { e.CountsDailyAmount = true })
		s.LimitStore.SetFaults(func() limitmem.Fault { return limitmem.Error })
		s.Operator.SetStatus("failed")
		s.advanceUntilDue(t, e)
		if s.MustGet(t, e).Status != ledger.Failed || s.LogLines.SumMetric("LimitStoreFailures") != 1 {
			t.Errorf("%s, lines %s", s.MustGet(t, e).Status, s.LogLines)
		}
	})
	t.Run("a day that is over", func(t *testing.T) {
		s := newFixture(t)
		e := s.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) { e.CountsDailyAmount = true })
		s.Clock.Advance(16 * time.Hour)
		s.Operator.SetStatus("failed")
		s.runSweep(t)
		if s.MustGet(t, e).Status != ledger.Failed || s.LimitStore.AmountWrites() != 0 {
			t.Errorf("%s, %d transfers", s.MustGet(t, e).Status, s.LimitStore.AmountWrites())
		}
	})
}
