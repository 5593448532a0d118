package notif_test

import (
	"context"
	"testing"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/limitmem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
)

// counted stores a payment whose amount the merchant's day has counted.
func counted(t *testing.T, k *deliverytest.Kit, changes ...func(*ledger.Entry)) {
	t.Helper()
	e := k.Payment(order, append([]func(*ledger.Entry){func(e *ledger.Entry) { e.Limited = true }}, changes...)...)
	if err := k.Desk.Amounts.Count(context.Background(), e, e.Version, limit.Unlimited); err != nil {
		t.Fatal(err)
	}
}

// decision "merchant-limits": a payment that ends otherwise than successfully is given back, once.
func TestGivenBack(t *testing.T) {
	for word, want := range map[string]int64{"successful": 500, "failed": 0, "cancelled": 0, "expired": 0} {
		t.Run(word, func(t *testing.T) {
			k := kit(t)
			counted(t, k)
			k.Operator.Says(word)
			for range 3 {
				committed(t, k, event(t, k).Set("status", word))
			}
			if got := k.Limits.Sum("demo0001", "XOF"); got != want {
				t.Errorf("counted %d, want %d", got, want)
			}
		})
	}
	t.Run("a table that does not answer costs no callback", func(t *testing.T) {
		k := kit(t)
		counted(t, k)
		k.Operator.Says("failed")
		k.Limits.SetFaults(func() limitmem.Fault { return limitmem.Error })
		committed(t, k, event(t, k).Set("status", "failed"))
		if k.Limits.Sum("demo0001", "XOF") != 500 || k.LastLine(t)["LimitFailures"] != 1.0 {
			t.Errorf("line %v", k.LastLine(t))
		}
	})
	t.Run("without a limit nothing is asked", func(t *testing.T) {
		k := kit(t)
		k.Payment(order)
		k.Operator.Says("failed")
		committed(t, k, event(t, k).Set("status", "failed"))
		if k.Limits.Transfers() != 0 {
			t.Error("the table of limits was asked")
		}
	})
}

// The late success of a released payment, which was given back, is counted again before it is stored; where it cannot be,
// the operator comes again.
func TestALateSuccessCounts(t *testing.T) {
	k := kit(t)
	counted(t, k, func(e *ledger.Entry) { e.State, e.AnswerStatus, e.AnswerBody = ledger.Released, 0, nil })
	if err := k.Desk.Amounts.GiveBack(context.Background(), k.Ledger.All()[0]); err != nil {
		t.Fatal(err)
	}
	k.Operator.Says("successful")
	k.Limits.SetFaults(func() limitmem.Fault { return limitmem.Error })
	k.Do(t, event(t, k)).Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
	if stored := k.Ledger.All()[0]; stored.Status == ledger.Successful {
		t.Error("stored, and not counted")
	} else if stored.Claim.Status != ledger.Successful || stored.Due.IsZero() {
		t.Error("lost, should the operator not come again")
	}
	k.Limits.SetFaults(nil)
	committed(t, k, event(t, k))
	if stored := k.Ledger.All()[0]; stored.Status != ledger.Successful || k.Limits.Sum("demo0001", "XOF") != 500 {
		t.Errorf("%s, counted %d", stored.Status, k.Limits.Sum("demo0001", "XOF"))
	}
}
