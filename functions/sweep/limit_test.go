package sweep_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// decision "merchant-limits": the amount of a payment that a lookup ends without success is refunded on the same day.
func TestDailyAmountRefunded(t *testing.T) {
	counted := func(e *ledger.Entry) { e.Amount.CountsDaily = true }
	for statusText, want := range map[string]int64{"successful": 500, "failed": 0, "cancelled": 0, "pending": 500} {
		t.Run(statusText, func(t *testing.T) {
			s := newFixture(t)
			e := s.StorePendingPayment("DemoShop_1", counted)
			err := s.Pipeline.DailyAmounts.Reserve(context.Background(), operationtest.DemoProfile(), e)
			if err != nil {
				t.Fatal(err)
			}
			s.Operator.SetStatus(statusText)
			s.advanceUntilDue(t, e)
			s.AssertDailySum(t, want)
		})
	}
	t.Run("the table does not respond", func(t *testing.T) {
		s := newFixture(t)
		e := s.StorePendingPayment("DemoShop_1", counted)
		s.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
		s.Operator.SetStatus("failed")
		s.advanceUntilDue(t, e)
		s.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Failed, Outbox: 1, Due: true})
		s.AssertMetric(t, "LimitStoreFailures", 1)
	})
	t.Run("on the next day nothing is refunded", func(t *testing.T) {
		s := newFixture(t)
		e := s.StorePendingPayment("DemoShop_1", counted)
		s.Clock.Advance(16 * time.Hour)
		s.Operator.SetStatus("failed")
		s.runSweep(t)
		s.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Failed, Outbox: 1, Due: true})
		if writes := s.LimitStore.CallCount(storetest.Adjust); writes != 0 {
			t.Errorf("%d writes of amounts, want none", writes)
		}
	})
}
