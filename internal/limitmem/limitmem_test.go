package limitmem_test

import (
	"context"
	"errors"
	"testing"

	"mobilegateway/internal/limitmem"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/limit/limittest"
)

func TestMemory(t *testing.T) {
	limittest.Run(t, func(*testing.T) limittest.Store { return &limitmem.Store{} })
}

func TestFaults(t *testing.T) {
	s, how := &limitmem.Store{}, limitmem.Error
	s.SetFaults(func() limitmem.Fault { return how })
	transfer := limit.Transfer{Spend: limit.Spend{MerchantID: "m", Currency: "XOF", Day: "d", Key: "k"}, To: 5, Fence: 1, Most: 10}
	for _, c := range []struct {
		fault limitmem.Fault
		err   error
		sum   int64
	}{{limitmem.Error, limitmem.ErrInjected, 0}, {limitmem.Conflict, limit.ErrConflict, 0}, {limitmem.LostAnswer, limitmem.ErrInjected, 5}} {
		how = c.fault
		if _, err := s.Transfer(context.Background(), transfer); !errors.Is(err, c.err) || s.Sum("m", "XOF") != c.sum {
			t.Errorf("%v: %v, %d", c.fault, err, s.Sum("m", "XOF"))
		}
	}
}
