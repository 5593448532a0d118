package limitmem_test

import (
	"context"
	"errors"
	"testing"

	"mobilegateway/internal/limitmem"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/limit/limittest"
)

func TestMemory(t *testing.T) {
	limittest.Run(t, func(*testing.T) limittest.Store { return &limitmem.Store{} })
}

func TestFaults(t *testing.T) {
	s, injected := &limitmem.Store{}, limitmem.Error
	s.SetFaults(func() limitmem.Fault { return injected })
	adjustment := dailyamount.Adjustment{
		Key:       dailyamount.Key{MerchantID: "m", Currency: "XOF", Day: "d", TransactionKey: "k"},
		NewAmount: 5, Fence: 1, MaxSumBefore: 10,
	}
	for _, c := range []struct {
		fault limitmem.Fault
		err   error
		sum   int64
	}{
		{limitmem.Error, limitmem.ErrInjected, 0},
		{limitmem.Conflict, dailyamount.ErrConflict, 0},
		{limitmem.LostResponse, limitmem.ErrInjected, 5},
	} {
		injected = c.fault
		if _, err := s.Adjust(context.Background(), adjustment); !errors.Is(err, c.err) {
			t.Errorf("fault %v: error %v, want %v", c.fault, err, c.err)
		}
		if sum := s.Sum("m", "XOF"); sum != c.sum {
			t.Errorf("fault %v: sum %d, want %d", c.fault, sum, c.sum)
		}
	}
}
