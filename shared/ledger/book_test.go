package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

func TestReserveAndStoreOutcomeCountTheirCalls(t *testing.T) {
	b := newBench(t)
	e := b.reserve(t, ledger.Charge, "f", ledger.NewReservation)
	if e.Version != 1 || e.Writer == "" || e.State != ledger.Reserved || !e.CreatedAt.Equal(start) {
		t.Errorf("reservation: version %d, %s", e.Version, summary(e))
	}
	b.reserve(t, ledger.Charge, "f", ledger.InFlight)
	updated := b.storeOutcome(t, e, done)
	if updated.Version != 2 || updated.Writer == e.Writer || updated.Owner != e.Owner {
		t.Errorf("stored: version %d, %s", updated.Version, summary(updated))
	}
	before := b.store.WriteCount() + b.store.CallCount(storetest.Get)
	again := b.reserve(t, ledger.Charge, "g", ledger.StoredResponse)
	if string(again.Response.Body) != "done" {
		t.Errorf("stored response: %s", summary(again))
	}
	if calls := b.store.WriteCount() + b.store.CallCount(storetest.Get) - before; calls != 1 {
		t.Errorf("a repeat cost %d calls, want 1", calls)
	}
	if b.store.CallCount(storetest.Replace) != 1 {
		t.Errorf("%d replaces", b.store.CallCount(storetest.Replace))
	}
}

func TestReserveTakesOver(t *testing.T) {
	b := newBench(t)
	first := b.reserve(t, ledger.Charge, "f", ledger.NewReservation)
	b.wait(30 * time.Second)
	b.reserve(t, ledger.Charge, "g", ledger.StillUnknown)
	second := b.reserve(t, ledger.Charge, "f", ledger.TakenOver)
	if second.Version != 2 || second.Owner == first.Owner || !second.EverUnknown || !second.CreatedAt.Equal(start) {
		t.Errorf("taken over: version %d, %s", second.Version, summary(second))
	}
	b.reserve(t, ledger.Charge, "f", ledger.InFlight)
	if e := b.storeOutcome(t, second, released); e.State != ledger.Unknown {
		t.Errorf("a release after an unknown: %s", e.State)
	}
	b.wait(time.Hour)
	b.reserve(t, ledger.Charge, "f", ledger.StillUnknown)
}

func TestReserveWithoutWindowOrLease(t *testing.T) {
	b := newBench(t)
	e := b.reserve(t, ledger.Charge, "f", ledger.NewReservation)
	b.storeOutcome(t, e, unknown)
	if _, verdict, err := b.Reserve(context.Background(), b.request(ledger.Charge, "f"), nil); err != nil ||
		verdict != ledger.StillUnknown {
		t.Errorf("Reserve = %v, %v", verdict, err)
	}
	request := b.request(ledger.Charge, "f")
	request.LeaseUntil = b.now()
	if _, _, err := b.Reserve(context.Background(), request, anHour); err == nil {
		t.Error("a lease in the past was accepted")
	}
	b.Rand = failing{}
	if _, _, err := b.Reserve(context.Background(), b.request(ledger.Charge, "f"), anHour); err == nil {
		t.Error("a failing random source was accepted")
	}
	if _, err := b.StoreOutcome(context.Background(), e, ledger.RecordSuccess, done); err == nil {
		t.Error("a failing random source was accepted")
	}
}

func TestReserveLeavesTheRequestUnchanged(t *testing.T) {
	b := newBench(t)
	request := b.request(ledger.Charge, "f")
	before := request.Clone()
	b.reserveRequest(t, request, ledger.NewReservation)
	if diff := cmp.Diff(before, request); diff != "" {
		t.Errorf("the request was changed:\n%s", diff)
	}
}

func TestReserveOverAnExpiredMessage(t *testing.T) {
	b := newBench(t)
	request := b.request(ledger.SMS, "f")
	request.ExpireAt = start.Add(time.Hour)
	e := b.reserveRequest(t, request, ledger.NewReservation)
	b.storeOutcome(t, e, done)
	b.wait(time.Hour - time.Millisecond)
	b.reserve(t, ledger.SMS, "f", ledger.KeyTaken)
	b.wait(time.Millisecond)
	if found, err := b.Find(context.Background(), e.Key); found != nil || err != nil {
		t.Errorf("Find = %v, %v", found, err)
	}
	if _, err := b.Change(context.Background(), e.Key, nil); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Change: %v", err)
	}
	b.reserve(t, ledger.SMS, "g", ledger.NewReservation)
}

// A writer that outlives the retention of an SMS does not write over the one that has its key now, with a lower version
// or with a higher one.
func TestChangeOfAnExpiredMessage(t *testing.T) {
	for _, changes := range []int{0, 1, 2, 3} {
		b := newBench(t)
		request := b.request(ledger.SMS, "f")
		request.ExpireAt = start.Add(time.Hour)
		former := b.reserveRequest(t, request, ledger.NewReservation)
		former = b.storeOutcome(t, former, done)
		b.wait(time.Hour)
		present := b.reserve(t, ledger.SMS, "g", ledger.NewReservation)
		for range changes {
			b.wait(time.Second)
			present = b.takeOver(t, present)
		}
		stored, _, err := b.ChangeKnown(t.Context(), former, func(e *ledger.Entry) (ledger.Transition, error) {
			return ledger.AddReceipt.After(e.ApplyReceipt(ledger.DeliveredToTerminal, b.now())), nil
		})
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("after %d changes: stored %v, %v, want ErrNotFound", changes, stored, err)
		}
		after, err := b.Find(t.Context(), present.Key)
		if diff := cmp.Diff(present, after); diff != "" || err != nil {
			t.Errorf("after %d changes, the SMS of today (-want +got), %v:\n%s", changes, err, diff)
		}
	}
}

// takeOver lets a retry take a lapsed reservation over.
func (b *bench) takeOver(t *testing.T, e *ledger.Entry) *ledger.Entry {
	t.Helper()
	b.wait(time.Minute)
	return b.reserve(t, e.Kind, e.Request.Fingerprint, ledger.TakenOver)
}

// TestReserveRace: of many retries of a lapsed reservation one takes over, and all others must wait.
func TestReserveRace(t *testing.T) {
	b := newBench(t)
	b.reserve(t, ledger.Charge, "f", ledger.NewReservation)
	b.wait(time.Minute)
	var takenOver, inFlight atomic.Int32
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			_, verdict, err := b.Reserve(context.Background(), b.request(ledger.Charge, "f"), anHour)
			switch {
			case err != nil:
				t.Error(err)
			case verdict == ledger.TakenOver:
				takenOver.Add(1)
			case verdict == ledger.InFlight:
				inFlight.Add(1)
			}
		})
	}
	group.Wait()
	if takenOver.Load() != 1 || inFlight.Load() != 49 {
		t.Errorf("%d took over, want 1; %d in flight, want 49", takenOver.Load(), inFlight.Load())
	}
}

func TestReserveUnderFaults(t *testing.T) {
	lapse := func(t *testing.T, b *bench) {
		b.reserve(t, ledger.Charge, "f", ledger.NewReservation)
		b.wait(time.Minute)
	}
	cases := []struct {
		name   string
		before func(*testing.T, *bench)
		on     storetest.Operation
		faults faults
		want   ledger.Verdict
		failed bool
	}{
		{"insert sent again", nil, storetest.Insert, faults{sentAgain}, ledger.NewReservation, false},
		{"insert fails", nil, storetest.Insert, faults{failed}, 0, true},
		{"insert with a lost response", nil, storetest.Insert, faults{lost}, 0, true},
		{"takeover sent again", lapse, storetest.Replace, faults{sentAgain}, ledger.TakenOver, false},
		{"takeover after another write", lapse, storetest.Replace, faults{concurrent}, ledger.TakenOver, false},
		{"takeover after two writes", lapse, storetest.Replace, faults{concurrent, concurrent}, ledger.InFlight, false},
		{"takeover fails", lapse, storetest.Replace, faults{failed}, 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			if c.before != nil {
				c.before(t, b)
			}
			b.store.FailNext(c.on, c.faults...)
			_, verdict, err := b.Reserve(context.Background(), b.request(ledger.Charge, "f"), anHour)
			if verdict != c.want || errors.Is(err, storetest.ErrInjected) != c.failed {
				t.Fatalf("Reserve = %v, %v; want %v", verdict, err, c.want)
			}
		})
	}
}

// TestStoreOutcomeAfterACallback: the callback's write came between the reservation and its outcome, and each keeps
// what the other wrote. The callback did not take the reservation over, although it wrote the next version.
func TestStoreOutcomeAfterACallback(t *testing.T) {
	for _, fault := range (faults{storetest.NoFault, sentAgain, concurrent}) {
		b := newBench(t)
		request := b.request(ledger.Payment, "f")
		request.Outbox.URL = "https://shop.example/"
		e := b.reserveRequest(t, request, ledger.NewReservation)
		callback := func(e *ledger.Entry) (ledger.Transition, error) {
			finalStatus(ledger.Successful)(e)
			return ledger.EndPayment, nil
		}
		if _, err := b.Change(context.Background(), e.Key, callback); err != nil {
			t.Fatal(err)
		}
		b.store.FailNext(storetest.Replace, storetest.NoFault, fault)
		updated := b.storeOutcome(t, e, done)
		assertSummary(t, fmt.Sprint("fault ", fault), updated, "done successful 201:done notify:successful due:1m0s")
	}
}

func TestStoreOutcomeUnderFaults(t *testing.T) {
	many := slices.Repeat(faults{concurrent}, 100)
	cases := []struct {
		name   string
		faults faults
		want   error
	}{
		{"sent again", faults{sentAgain}, nil},
		{"after other writes", faults{concurrent, concurrent, sentAgain}, nil},
		{"after too many writes", many, ledger.ErrContended},
		{"fails", faults{failed}, storetest.ErrInjected},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			e := b.reserve(t, ledger.Charge, "f", ledger.NewReservation)
			b.store.FailNext(storetest.Replace, c.faults...)
			updated, err := b.StoreOutcome(context.Background(), e, ledger.RecordSuccess, done)
			if !errors.Is(err, c.want) || (err == nil && updated.State != ledger.Done) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
		})
	}
	t.Run("again after a lost response", func(t *testing.T) {
		b := newBench(t)
		e := b.reserve(t, ledger.Charge, "f", ledger.NewReservation)
		b.store.FailNext(storetest.Replace, lost)
		_, err := b.StoreOutcome(context.Background(), e, ledger.RecordSuccess, done)
		if !errors.Is(err, storetest.ErrInjected) {
			t.Fatal(err)
		}
		if updated := b.storeOutcome(t, e, done); updated.State != ledger.Done || updated.Version != 2 {
			t.Fatalf("version %d, %s", updated.Version, summary(updated))
		}
	})
}

func TestStoreOutcomeOfAFormerOwner(t *testing.T) {
	b := newBench(t)
	first := b.reserve(t, ledger.Charge, "f", ledger.NewReservation)
	b.wait(time.Minute)
	second := b.reserve(t, ledger.Charge, "f", ledger.TakenOver)
	if e := b.storeOutcome(t, first, refused); e.Owner != second.Owner {
		t.Errorf("a former owner's refusal: owner %q, want %q", e.Owner, second.Owner)
	}
	assertSummary(t, "a former owner's refusal", b.storeOutcome(t, first, refused), "reserved ever-unknown due:2m30s")
	assertSummary(t, "a former owner's success", b.storeOutcome(t, first, done), "done 201:done ever-unknown")
	assertSummary(t, "its successor's unknown", b.storeOutcome(t, second, unknown), "done 201:done ever-unknown")
}

func TestChange(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	if _, err := b.Change(ctx, ledger.Key{Kind: ledger.Charge, ID: "none"}, nil); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("nothing there: %v", err)
	}
	e := b.reserve(t, ledger.Payment, "f", ledger.NewReservation)
	writes := b.store.WriteCount()
	same, err := b.ApplyChange(ctx, e, func(*ledger.Entry) ledger.Transition { return ledger.NoTransition })
	if err != nil || same.Version != 1 || b.store.WriteCount() != writes {
		t.Errorf("unchanged: version %d, %v", same.Version, err)
	}
	wrong := errors.New("wrong")
	failing := func(e *ledger.Entry) (ledger.Transition, error) {
		e.State = ledger.Done
		return ledger.RecordSuccess, wrong
	}
	if _, err := b.Change(ctx, e.Key, failing); !errors.Is(err, wrong) {
		t.Errorf("its own error: %v", err)
	}
	b.wait(time.Second)
	b.store.FailNext(storetest.Replace, concurrent)
	times := 0
	changed, err := b.Change(ctx, e.Key, func(e *ledger.Entry) (ledger.Transition, error) {
		times++
		e.Conflicts = append(e.Conflicts, ledger.Conflict{Reason: "final", At: b.now()})
		return ledger.KeepConflict, nil
	})
	if err != nil || times != 2 || len(changed.Conflicts) != 1 || changed.Version != 3 ||
		!changed.UpdatedAt.Equal(b.now()) {
		t.Errorf("after a conflict: %d times, version %d, %s, %v", times, changed.Version, summary(changed), err)
	}
	b.store.FailNext(storetest.Get, failed)
	if _, err := b.Change(ctx, e.Key, nil); !errors.Is(err, storetest.ErrInjected) {
		t.Errorf("a read that fails: %v", err)
	}
}

// TestEveryTimeIsStoredAsTimestamp sets every time of an entry by reflection, so that a new one cannot be forgotten.
func TestEveryTimeIsStoredAsTimestamp(t *testing.T) {
	odd := time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.FixedZone("east", 3600))
	b := newBench(nil)
	e := b.reserve(t, ledger.Payment, "f", ledger.NewReservation)
	changed, err := b.Change(context.Background(), e.Key, func(e *ledger.Entry) (ledger.Transition, error) {
		full := ledgertest.Full(t)
		e.Conflicts, e.Outbox.Waiting, e.Outbox.Delivered = full.Conflicts, full.Outbox.Waiting, full.Outbox.Delivered
		e.Outbox.FailedAttempts, e.Outbox.Replays = full.Outbox.FailedAttempts, full.Outbox.Replays
		created := e.CreatedAt
		eachTime(reflect.ValueOf(e).Elem(), func(t *time.Time) { *t = odd })
		e.CreatedAt = created // never changes: it is in the condition of the write
		return ledger.Reserve, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	eachTime(reflect.ValueOf(changed).Elem(), func(at *time.Time) {
		count++
		if !at.IsZero() && (at.Location() != time.UTC || at.Nanosecond()%int(time.Millisecond) != 0) {
			t.Errorf("the time %d is %s", count, at)
		}
	})
	if count < 30 {
		t.Errorf("only %d times were checked", count)
	}
	if !changed.ExpireAt.Equal(odd.Truncate(time.Second)) {
		t.Errorf("ExpireAt = %s", changed.ExpireAt)
	}
}

// eachTime visits every time within a value.
func eachTime(v reflect.Value, visit func(*time.Time)) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		visit(v.Addr().Interface().(*time.Time))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			eachTime(v.Field(i), visit)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			eachTime(v.Index(i), visit)
		}
	}
}
