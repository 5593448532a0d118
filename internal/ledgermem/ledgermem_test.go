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

func TestFaults(t *testing.T) {
	entry := func() *ledger.Entry {
		e := &ledger.Entry{Key: ledger.Key{Kind: ledger.Charge, ID: "1"}, LeaseUntil: ledgertest.Now().Add(time.Minute)}
		e.Begin("owner", ledgertest.Now())
		e.Writer = "writer"
		return e
	}
	cases := []struct {
		name   string
		fault  ledgermem.Fault
		failed bool
		stored bool
	}{
		{"none", ledgermem.None, false, true},
		{"error applies nothing", ledgermem.Error, true, false},
		{"a lost answer is applied", ledgermem.LostAnswer, true, true},
		{"a repeated write recognises itself", ledgermem.Repeated, false, true},
		{"a conflict is for replaces", ledgermem.Conflict, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store := ledgermem.New()
			store.SetFaults(func(ledgermem.Call) ledgermem.Fault { return c.fault })
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

func TestConflictComesBeforeTheReplace(t *testing.T) {
	store := ledgermem.New()
	e := &ledger.Entry{Key: ledger.Key{Kind: ledger.Charge, ID: "1"}, Version: 1, Writer: "first"}
	store.Put(e)
	once := true
	store.SetFaults(func(ledgermem.Call) ledgermem.Fault {
		if once {
			once = false
			return ledgermem.Conflict
		}
		return ledgermem.None
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
	if store.Writes() != 2 {
		t.Fatalf("writes = %d", store.Writes())
	}
}
