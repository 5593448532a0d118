package ledgermem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/ledgertest"
)

func TestConformance(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledgertest.Store { return ledgermem.New() })
}

func TestInjectedFaults(t *testing.T) {
	entry := func() *ledger.Entry {
		e := &ledger.Entry{Key: ledger.Key{Kind: ledger.Charge, ID: "1"}, LeaseUntil: ledgertest.Now().Add(time.Minute)}
		e.BeginReservation("owner", ledgertest.Now())
		e.Writer = "writer"
		return e
	}
	cases := []struct {
		name   string
		fault  ledgermem.InjectedFault
		failed bool
		stored bool
	}{
		{"none", ledgermem.NoFault, false, true},
		{"error applies nothing", ledgermem.FailedBeforeApply, true, false},
		{"a call with a lost response is applied", ledgermem.LostResponse, true, true},
		{"a repeated write recognises itself", ledgermem.RetriedAfterLostResponse, false, true},
		{"a conflict is for replaces", ledgermem.ConcurrentWrite, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store := ledgermem.New()
			store.InjectFaults(func(ledgermem.Call) ledgermem.InjectedFault { return c.fault })
			existing, err := store.Insert(context.Background(), entry())
			if existing != nil || errors.Is(err, ledgermem.ErrInjected) != c.failed {
				t.Fatalf("Insert = %v, %v", existing, err)
			}
			if stored := len(store.All()) == 1; stored != c.stored {
				t.Fatalf("stored = %v", stored)
			}
		})
	}
}

func TestConcurrentWritePrecedesReplace(t *testing.T) {
	store := ledgermem.New()
	e := &ledger.Entry{Key: ledger.Key{Kind: ledger.Charge, ID: "1"}, Version: 1, Writer: "first"}
	store.Overwrite(e)
	once := true
	store.InjectFaults(func(ledgermem.Call) ledgermem.InjectedFault {
		if once {
			once = false
			return ledgermem.ConcurrentWrite
		}
		return ledgermem.NoFault
	})
	next := e.Clone()
	next.Version, next.Writer = 2, "second"
	existing, err := store.Replace(context.Background(), next)
	if err != nil || existing == nil || existing.Version != 2 || existing.Writer == "second" {
		t.Fatalf("Replace = %+v, %v; want the other's version", existing, err)
	}
	next.Version = 3
	if existing, err = store.Replace(context.Background(), next); err != nil || existing != nil {
		t.Fatalf("Replace = %+v, %v; want stored", existing, err)
	}
	if store.WriteCount() != 2 {
		t.Fatalf("writes = %d", store.WriteCount())
	}
}
