package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// bench is a book over an in-memory store, with a clock that the test sets.
type bench struct {
	*ledger.Book
	store *storetest.Ledger
	clock atomic.Int64 // milliseconds after start
}

func newBench(t storetest.Test) *bench {
	b := &bench{store: storetest.NewLedger(t)}
	b.Book = &ledger.Book{Store: b.store, Reader: b.store, Now: b.now, Rand: &counter{}}
	return b
}

func (b *bench) now() time.Time { return start.Add(time.Duration(b.clock.Load()) * time.Millisecond) }

func (b *bench) wait(d time.Duration) { b.clock.Add(d.Milliseconds()) }

// counter is a random source that never repeats itself.
type counter struct{ n atomic.Uint64 }

func (c *counter) Read(p []byte) (int, error) {
	return copy(p, fmt.Sprintf("%0*d", len(p), c.n.Add(1))), nil
}

// request is a new entry as a flow prepares it, with a lease of half a minute from now.
func (b *bench) request(kind ledger.Kind, fingerprint string) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: kind, ID: "Shop_1"}, Merchant: ledger.Merchant{ID: "m"},
		Route: ledger.Route{Operator: "sandbox"}, Request: ledger.Request{Fingerprint: fingerprint},
		Call: ledger.Call{LeaseUntil: b.now().Add(30 * time.Second)},
	}
}

func anHour(*ledger.Entry) time.Duration { return time.Hour }

func (b *bench) reserve(t *testing.T, kind ledger.Kind, fingerprint string, want ledger.Verdict) *ledger.Entry {
	t.Helper()
	return b.reserveRequest(t, b.request(kind, fingerprint), want)
}

func (b *bench) reserveRequest(t *testing.T, request *ledger.Entry, want ledger.Verdict) *ledger.Entry {
	t.Helper()
	e, verdict, err := b.Reserve(context.Background(), request, anHour)
	if err != nil || verdict != want {
		t.Fatalf("Reserve = %v, %v; want %v", verdict, err, want)
	}
	return e
}

// transitionOf is the transition of a function that stores an outcome of a call.
func transitionOf(o ledger.CallOutcome) ledger.Transition {
	switch {
	case o.State == ledger.Done:
		return ledger.RecordSuccess
	case o.State == ledger.Refused:
		return ledger.RecordRefusal
	case o.State == ledger.Unknown:
		return ledger.RecordUnknown
	case o.UnbindBody:
		return ledger.ReleaseUncalled
	}
	return ledger.RecordNotApplied
}

func (b *bench) storeOutcome(t *testing.T, e *ledger.Entry, s ledger.CallOutcome) *ledger.Entry {
	t.Helper()
	updated, err := b.StoreOutcome(context.Background(), e, transitionOf(s), s)
	if err != nil {
		t.Fatal(err)
	}
	return updated
}

type faults []storetest.Fault

const (
	sentAgain  = storetest.RetriedAfterLostResponse
	concurrent = storetest.ConcurrentWrite
	lost       = storetest.LostResponse
	failed     = storetest.FailedBeforeApply
)

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("no entropy") }
