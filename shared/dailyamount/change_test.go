package dailyamount_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
)

// setState is a change that stores a state.
func setState(state ledger.State) func(*ledger.Entry) ledger.Transition {
	return func(e *ledger.Entry) ledger.Transition {
		e.State = state
		return ledger.EndPayment
	}
}

// A change that ends a payment as not applied refunds its amount, and a late success counts it again.
func TestStoreChange(t *testing.T) {
	errStore := errors.New("the ledger does not respond")
	cases := []struct {
		name          string
		before, after ledger.State
		winner        ledger.State // the state that another write stores before a late success
		ledger        error
		table         storetest.Fault
		wantErr       error
		wantRefundErr error
		want          int64
	}{
		{name: "released", before: ledger.Unknown, after: ledger.Released},
		{name: "done", before: ledger.Unknown, after: ledger.Done, want: 600},
		{name: "not stored", before: ledger.Unknown, after: ledger.Released, ledger: errStore,
			wantErr: errStore, want: 600},
		{name: "not refunded", before: ledger.Unknown, after: ledger.Released, table: storetest.FailedBeforeApply,
			wantRefundErr: storetest.ErrInjected, want: 600},
		{name: "late success", before: ledger.Released, after: ledger.Done, want: 600},
		{name: "late success that is not counted", before: ledger.Released, after: ledger.Done,
			table: storetest.FailedBeforeApply, wantErr: dailyamount.ErrNotReserved},
		{name: "late success after another write", before: ledger.Released, after: ledger.Done, winner: ledger.Refused},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newCounterFixture()
			stored := f.entry("a", 600)
			f.mustReserve(t, stored, 1000)
			stored.State = c.before
			if err := f.Refund(context.Background(), stored); err != nil {
				t.Fatal(err)
			}
			f.store.InjectFaults(func(storetest.Call) storetest.Fault { return c.table })
			attempts := 0
			store := func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error) {
				if attempts++; attempts == 2 && c.winner != "" {
					stored.State, stored.Version = c.winner, stored.Version+1
					return stored, nil
				}
				if next := changed(stored, change); c.ledger == nil {
					stored = next
				}
				return stored, c.ledger
			}
			change, err := f.StoreChange(context.Background(), store, setState(c.after))
			if !errors.Is(err, c.wantErr) || !errors.Is(change.RefundErr, c.wantRefundErr) {
				t.Errorf("error %v, of the refund %v; want %v, %v", err, change.RefundErr, c.wantErr, c.wantRefundErr)
			}
			f.assertSum(t, c.want)
			if err == nil && c.after == ledger.Done && c.before == ledger.Released && c.winner == "" {
				f.store.InjectFaults(nil)
				f.mustRefund(t, f.entry("a", 600)) // a delayed refund by the version before the success
				f.assertSum(t, c.want)
			}
		})
	}
}

// The write of a refusal was stored, its response was lost, and another write came first. The change is then applied
// again, to an entry that is refused already. The amount is refunded all the same.
func TestStoreChangeAfterALostResponse(t *testing.T) {
	f := newCounterFixture()
	stored := f.entry("a", 600)
	f.mustReserve(t, stored, 1000)
	refuse := func(e *ledger.Entry) ledger.Transition {
		changed := e.State != ledger.Refused
		e.State = ledger.Refused
		return ledger.RecordRefusal.If(changed)
	}
	store := func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error) {
		change(stored)
		stored.Version += 2 // the refusal, and the other write
		if change(stored) != ledger.NoTransition {
			t.Error("the entry was refused twice")
		}
		return stored, nil
	}
	if change, err := f.StoreChange(context.Background(), store, refuse); err != nil || change.RefundErr != nil {
		t.Fatal(err, change.RefundErr)
	}
	f.assertSum(t, 0)
}

// The late success of a released payment was counted. Before it was stored, a retry took the payment over and was
// released too, with a refund. The success is counted once more, and is then stored.
func TestLateSuccessAfterAnotherRelease(t *testing.T) {
	f := newCounterFixture()
	stored := f.entry("a", 600)
	f.mustReserve(t, stored, 1000)
	stored.State = ledger.Released
	f.mustRefund(t, stored)
	writes := 0
	store := func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error) {
		if writes++; writes == 2 {
			stored.Version += 2 // the retry's reservation and its release
			f.mustReserve(t, stored, 1000)
			f.mustRefund(t, stored)
		}
		stored = changed(stored, change)
		return stored, nil
	}
	change, err := f.StoreChange(context.Background(), store, setState(ledger.Done))
	if err != nil || change.RefundErr != nil || change.Entry.State != ledger.Done || writes != 3 {
		t.Fatalf("%v after %d writes: %+v", err, writes, change)
	}
	f.assertSum(t, 600)
}

// If such releases do not end, the success is not stored: the operator repeats its callback, or a lookup finds it.
func TestLateSuccessAmongReleases(t *testing.T) {
	f := newCounterFixture()
	stored := f.entry("a", 600)
	stored.State = ledger.Released
	store := func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error) {
		stored.Version++
		if change(stored.Clone()) != ledger.NoTransition {
			t.Error("a success was stored uncounted")
		}
		return stored, nil
	}
	_, err := f.StoreChange(context.Background(), store, setState(ledger.Done))
	if !errors.Is(err, dailyamount.ErrNotReserved) {
		t.Errorf("error %v, want %v", err, dailyamount.ErrNotReserved)
	}
}

// lastAdjustment is a store that keeps the last adjustment.
type lastAdjustment struct {
	dailyamount.Store
	dailyamount.Adjustment
}

// Adjust implements dailyamount.Store.
func (s *lastAdjustment) Adjust(
	ctx context.Context, a dailyamount.Adjustment,
) (dailyamount.AdjustmentResult, error) {
	s.Adjustment = a
	return s.Store.Adjust(ctx, a)
}

func TestItemsExpireTwoDaysAfterTheirDay(t *testing.T) {
	c := newCounterFixture()
	store := &lastAdjustment{Store: c.store}
	c.Store = store
	c.mustReserve(t, c.entry("a", 1), 10)
	if want := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC); !store.ExpireAt.Equal(want) {
		t.Errorf("the items expire at %s, want %s", store.ExpireAt, want)
	}
}
