package storetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
)

func TestInjectedFaults(t *testing.T) {
	entry := func() *ledger.Entry {
		e := &ledger.Entry{
			Key:  ledger.Key{Kind: ledger.Charge, ID: "1"},
			Call: ledger.Call{LeaseUntil: ledgertest.Now().Add(time.Minute)},
		}
		e.BeginReservation("owner", ledgertest.Now())
		e.Writer = "writer"
		return e
	}
	cases := []struct {
		name   string
		fault  storetest.Fault
		failed bool
		stored bool
	}{
		{"none", storetest.NoFault, false, true},
		{"error applies nothing", storetest.FailedBeforeApply, true, false},
		{"a call with a lost response is applied", storetest.LostResponse, true, true},
		{"a repeated write recognises itself", storetest.RetriedAfterLostResponse, false, true},
		{"a conflict is for replaces", storetest.ConcurrentWrite, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store := storetest.NewLedger(t)
			store.InjectFaults(func(storetest.Call) storetest.Fault { return c.fault })
			existing, err := store.Insert(context.Background(), entry(), ledger.Reserve)
			if existing != nil || errors.Is(err, storetest.ErrInjected) != c.failed {
				t.Fatalf("Insert = %v, %v", existing, err)
			}
			if stored := len(store.All()) == 1; stored != c.stored {
				t.Fatalf("stored = %v", stored)
			}
		})
	}
}

func TestConcurrentWritePrecedesReplace(t *testing.T) {
	store := storetest.NewLedger(t)
	e := &ledger.Entry{Key: ledger.Key{Kind: ledger.Charge, ID: "1"}, Version: 1, Writer: "first"}
	e.CreatedAt = time.Unix(1_800_000_000, 0)
	store.Overwrite(e)
	store.FailNext(storetest.Replace, storetest.ConcurrentWrite)
	next := e.Clone()
	next.Version, next.Writer = 2, "second"
	existing, err := store.Replace(context.Background(), next, ledger.Reschedule)
	if err != nil || existing == nil || existing.Version != 2 || existing.Writer == "second" {
		t.Fatalf("Replace = %+v, %v; want the other's version", existing, err)
	}
	next.Version = 3
	if existing, err = store.Replace(context.Background(), next, ledger.Reschedule); err != nil || existing != nil {
		t.Fatalf("Replace = %+v, %v; want stored", existing, err)
	}
	if store.WriteCount() != 2 {
		t.Fatalf("writes = %d", store.WriteCount())
	}
}

func TestFaultsOfLimits(t *testing.T) {
	s, injected := storetest.NewLimits(), storetest.FailedBeforeApply
	s.InjectFaults(func(storetest.Call) storetest.Fault { return injected })
	adjustment := dailyamount.Adjustment{
		Key:       dailyamount.Key{MerchantID: "m", Currency: "XOF", Day: "d", TransactionKey: "k"},
		NewAmount: 5, Fence: 1, MaxSumBefore: 10,
	}
	for _, c := range []struct {
		fault storetest.Fault
		err   error
		sum   int64
	}{
		{storetest.FailedBeforeApply, storetest.ErrInjected, 0},
		{storetest.ConcurrentWrite, dailyamount.ErrConflict, 0},
		{storetest.LostResponse, storetest.ErrInjected, 5},
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

// endedTest keeps what a test has reported at its end.
type endedTest struct {
	end      func()
	reported []any
}

func (e *endedTest) Cleanup(end func())  { e.end = end }
func (e *endedTest) Error(errors ...any) { e.reported = append(e.reported, errors...) }

// A write that differs from its row fails the test, also where the code under test recovers or retries.
func TestViolationIsReported(t *testing.T) {
	test := &endedTest{}
	store := storetest.NewLedger(test)
	e := &ledger.Entry{Key: ledger.Key{Kind: ledger.Charge, ID: "1"}, Version: 1}
	e.CreatedAt = time.Unix(1_800_000_000, 0)
	store.Overwrite(e)
	store.FailNext(storetest.Replace, storetest.RetriedAfterLostResponse)
	e.Version, e.Writer, e.State = 2, "second", ledger.Refused
	if existing, err := store.Replace(t.Context(), e, ledger.LeaseLookup); err != nil || existing != nil {
		t.Fatal(existing, err)
	}
	if test.end(); len(test.reported) != 1 {
		t.Errorf("reported %q, want one violation", test.reported)
	}
}
