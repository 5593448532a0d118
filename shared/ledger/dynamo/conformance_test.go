package dynamo_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// ledgerStore has all methods of a store.
type ledgerStore interface {
	ledger.Writer
	ledger.Reader
	ledger.DueQueue
	ledger.DayIndex
	ledger.MessageIndex
}

// parallel is the number of writers that race for one key.
const parallel = 100

// TestConformance runs the suite on a DynamoDB, with one table for all cases.
func TestConformance(t *testing.T) {
	store, _ := newStore(t)
	checkConformance(t, func() ledgerStore { return store })
}

// TestConformanceOfModel runs the suite on the model of the tables, as the tests of other packages use it.
func TestConformanceOfModel(t *testing.T) {
	checkConformance(t, func() ledgerStore { return storetest.NewLedger(nil) })
}

// checkConformance runs the suite. open returns the store to test: empty at first, and possibly the same one for every
// case.
func checkConformance(t *testing.T, open func() ledgerStore) {
	t.Helper()
	cases := []struct {
		name string
		run  func(t *testing.T, s *harness)
	}{
		{"every field is stored, in memory of its own", everyFieldRoundTrips},
		{"empty fields stay empty", emptyFieldsStayEmpty},
		{"insert returns the existing entry", insertTaken},
		{"an own insert with a lost response counts as stored", insertAgain},
		{"an empty writer recognises nothing", emptyWriter},
		{"an expired entry frees its key", insertExpired},
		{"replace needs the version before", replaceVersion},
		{"an own replace with a lost response counts as stored", replaceAgain},
		{"a missing entry is nil, and its replace not found", replaceMissing},
		{"a reference belongs to its first charge", references},
		{"a reference expires with its charge", expiringReferences},
		{"receipts find their message in every order", messages},
		{"no receipt is lost while its message is bound", messageRace},
		{"of parallel inserts one wins", insertRace},
		{"of parallel replaces one wins", replaceRace},
		{"of parallel claims of a reference one wins", referenceRace},
		{"due keys are sparse, sharded and in order", dueKeys},
		{"a due time moves without decoding", moveDue},
		{"a day lists page by page", dayPages},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, &harness{ledgerStore: open(), test: t.Name()}) })
	}
}

// harness is a store under test. It makes new keys for it.
type harness struct {
	ledgerStore
	test string
	keys int
}

// key returns a new key.
func (h *harness) key(kind ledger.Kind) ledger.Key {
	h.keys++
	return ledger.Key{Kind: kind, ID: h.test + "_" + strconv.Itoa(h.keys)}
}

// reserved returns a small first reservation.
func (h *harness) reserved(kind ledger.Kind, writer string) *ledger.Entry {
	lease := ledgertest.Now().Add(25 * time.Second)
	e := &ledger.Entry{
		Key: h.key(kind), Merchant: ledger.Merchant{ID: "m-" + writer}, Route: ledger.Route{Operator: "sandbox"},
		Call: ledger.Call{LeaseUntil: lease},
	}
	e.BeginReservation(writer, ledgertest.Now())
	e.Writer = writer
	return e
}

// following returns the next version of an entry by a writer.
func following(e *ledger.Entry, writer string) *ledger.Entry {
	next := e.Clone()
	next.Version, next.Writer = e.Version+1, writer
	return next
}

func mustInsert(t *testing.T, s *harness, e *ledger.Entry) {
	t.Helper()
	existing, err := s.Insert(context.Background(), e, ledger.Reserve)
	requireStored(t, existing, err)
}

func mustReplace(t *testing.T, s *harness, e *ledger.Entry) {
	t.Helper()
	existing, err := s.Replace(context.Background(), e, ledger.Reschedule)
	requireStored(t, existing, err)
}

func requireStored(t *testing.T, existing *ledger.Entry, err error) {
	t.Helper()
	if err != nil || existing != nil {
		t.Fatalf("got the existing entry %v and error %v, want the new one stored", existing, err)
	}
}

// requireExisting fails unless a write was refused, with the stored entry as its result.
func requireExisting(t *testing.T, want *ledger.Entry) func(existing *ledger.Entry, err error) {
	return func(existing *ledger.Entry, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, existing, want)
	}
}

// requireEqual fails unless two entries are equal, apart from Extra.
func requireEqual(t *testing.T, got, want *ledger.Entry) {
	t.Helper()
	if got == nil {
		t.Fatal("got no entry")
	}
	a, b := got.Clone(), want.Clone()
	a.Extra, b.Extra = nil, nil
	if diff := cmp.Diff(b, a); diff != "" {
		t.Fatalf("entry differs (-want +got):\n%s", diff)
	}
}

func get(t *testing.T, s *harness, k ledger.Key) *ledger.Entry {
	t.Helper()
	e, err := s.Get(context.Background(), k)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// everyFieldRoundTrips checks that a store keeps every field, and shares no memory with its callers.
func everyFieldRoundTrips(t *testing.T, s *harness) {
	e := ledgertest.Full(t)
	e.Key, e.Version = s.key(ledger.Payment), 1
	want := e.Clone()
	mustInsert(t, s, e)
	scribble := func(e *ledger.Entry) {
		e.Response.Body[0], e.Outbox.Waiting[0].ID, e.Outbox.Delivered[0].ID, e.Conflicts[0].Reason = '!', "!", "!", "!"
		e.Outbox.FailedAttempts[0].Reason, e.Outbox.Replays[0].DeadReason = "!", "!"
	}
	scribble(e)
	first := get(t, s, e.Key)
	requireEqual(t, first, want)
	scribble(first)
	requireEqual(t, get(t, s, e.Key), want)
	next := following(want, "second")
	mustReplace(t, s, next)
	requireEqual(t, get(t, s, e.Key), next)
}

func emptyFieldsStayEmpty(t *testing.T, s *harness) {
	e := &ledger.Entry{
		Key: s.key(ledger.Charge), Version: 1, Writer: "w", Call: ledger.Call{State: ledger.Done},
		UpdatedAt: ledgertest.Now(),
	}
	mustInsert(t, s, e)
	requireEqual(t, get(t, s, e.Key), e)
}

func insertTaken(t *testing.T, s *harness) {
	first := ledgertest.Full(t)
	first.Key, first.Version, first.ExpireAt = s.key(ledger.Payment), 1, time.Time{}
	mustInsert(t, s, first)
	second := s.reserved(ledger.Payment, "other")
	second.Key = first.Key
	requireExisting(t, first)(s.Insert(context.Background(), second, ledger.Reserve))
	requireEqual(t, get(t, s, first.Key), first)
}

func insertAgain(t *testing.T, s *harness) {
	e := s.reserved(ledger.Charge, "ours")
	mustInsert(t, s, e)
	mustInsert(t, s, e)
	later := following(e, "later")
	mustReplace(t, s, later)
	requireExisting(t, later)(s.Insert(context.Background(), e, ledger.Reserve))
}

func emptyWriter(t *testing.T, s *harness) {
	e := s.reserved(ledger.Charge, "")
	mustInsert(t, s, e)
	requireExisting(t, e)(s.Insert(context.Background(), e, ledger.Reserve))
}

func insertExpired(t *testing.T, s *harness) {
	first := s.reserved(ledger.SMS, "first")
	first.ExpireAt = ledgertest.Now().Add(90 * 24 * time.Hour)
	mustInsert(t, s, first)
	second := s.reserved(ledger.SMS, "second")
	second.Key = first.Key
	second.UpdatedAt = first.ExpireAt.Add(-time.Millisecond)
	requireExisting(t, first)(s.Insert(context.Background(), second, ledger.Reserve))
	second.UpdatedAt = first.ExpireAt
	mustInsert(t, s, second)
	requireEqual(t, get(t, s, first.Key), second)
}

func replaceVersion(t *testing.T, s *harness) {
	e := s.reserved(ledger.Charge, "first")
	mustInsert(t, s, e)
	second := following(e, "second")
	mustReplace(t, s, second)
	requireExisting(t, second)(s.Replace(context.Background(), following(e, "stale"), ledger.Reschedule))
	skipping := following(second, "skipping")
	skipping.Version++
	requireExisting(t, second)(s.Replace(context.Background(), skipping, ledger.Reschedule))
}

func replaceAgain(t *testing.T, s *harness) {
	e := s.reserved(ledger.Charge, "first")
	mustInsert(t, s, e)
	second := following(e, "second")
	mustReplace(t, s, second)
	mustReplace(t, s, second)
	third := following(second, "third")
	mustReplace(t, s, third)
	requireExisting(t, third)(s.Replace(context.Background(), second, ledger.Reschedule))
}

func replaceMissing(t *testing.T, s *harness) {
	e := following(s.reserved(ledger.Charge, "first"), "second")
	if found := get(t, s, e.Key); found != nil {
		t.Fatalf("found before any write: %+v", found)
	}
	if _, err := s.Replace(context.Background(), e, ledger.Reschedule); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatalf("error = %v, want ErrNotFound", err)
	}
	if found := get(t, s, e.Key); found != nil {
		t.Fatalf("it was stored: %+v", found)
	}
}

func references(t *testing.T, s *harness) {
	merchant, code := s.key(ledger.Reference).ID, "ref#1 é"
	claim := func(merchantID, referenceCode, chargeID, want string) {
		t.Helper()
		owner, err := s.ClaimReference(context.Background(), chargeOf(merchantID, referenceCode, chargeID))
		if err != nil || owner != want {
			t.Fatalf("ClaimReference(%s) = %q, %v; want %q", chargeID, owner, err, want)
		}
	}
	claim(merchant, code, "charge-1", "charge-1")
	claim(merchant, code, "charge-1", "charge-1")
	claim(merchant, code, "charge-2", "charge-1")
	claim(merchant, code+"x", "charge-2", "charge-2")
	claim(merchant+"x", code, "charge-3", "charge-3")
}

// expiringReferences checks that a reference expires with its charge, which the table deletes later.
func expiringReferences(t *testing.T, s *harness) {
	merchant := s.key(ledger.Reference).ID
	expireAt := ledgertest.Now().Add(time.Hour)
	for _, step := range []struct {
		name, chargeID string
		now, expireAt  time.Time
		want           string
	}{
		{"first", "charge-1", ledgertest.Now(), expireAt, "charge-1"},
		{"before it expires", "charge-2", expireAt.Add(-time.Second), time.Time{}, "charge-1"},
		{"once it has expired", "charge-2", expireAt, time.Time{}, "charge-2"},
		{"without an end", "charge-1", expireAt.Add(1000 * time.Hour), expireAt, "charge-2"},
	} {
		charge := chargeOf(merchant, "reference", step.chargeID)
		charge.UpdatedAt, charge.ExpireAt = step.now, step.expireAt
		if owner, err := s.ClaimReference(context.Background(), charge); err != nil || owner != step.want {
			t.Errorf("%s: %q, %v, want %q", step.name, owner, err, step.want)
		}
	}
}

// chargeOf is a charge with a referenceCode.
func chargeOf(merchantID, referenceCode, chargeID string) *ledger.Entry {
	key := ledger.Key{Kind: ledger.Charge, ID: chargeID}
	return &ledger.Entry{
		Key: key, Merchant: ledger.Merchant{ID: merchantID}, Request: ledger.Request{ReferenceCode: referenceCode},
		UpdatedAt: ledgertest.Now(),
	}
}

// race runs parallel writers at once, and fails unless exactly one of them won.
func race(t *testing.T, write func(i int) (won bool, err error)) {
	t.Helper()
	var group sync.WaitGroup
	var winners atomic.Int32
	for i := range parallel {
		group.Go(func() {
			won, err := write(i)
			if err != nil {
				t.Error(err)
			}
			if won {
				winners.Add(1)
			}
		})
	}
	group.Wait()
	if won := winners.Load(); won != 1 {
		t.Fatalf("%d of %d parallel writers won, want 1", won, parallel)
	}
}

func insertRace(t *testing.T, s *harness) {
	first := s.reserved(ledger.Charge, "")
	race(t, func(i int) (bool, error) {
		e := first.Clone()
		e.Writer = "w" + strconv.Itoa(i)
		existing, err := s.Insert(context.Background(), e, ledger.Reserve)
		return existing == nil, err
	})
}

func replaceRace(t *testing.T, s *harness) {
	e := s.reserved(ledger.Charge, "first")
	mustInsert(t, s, e)
	race(t, func(i int) (bool, error) {
		existing, err := s.Replace(context.Background(), following(e, "w"+strconv.Itoa(i)), ledger.Reschedule)
		return existing == nil, err
	})
	if version := get(t, s, e.Key).Version; version != 2 {
		t.Fatalf("version %d after one of them won, want 2", version)
	}
}

func referenceRace(t *testing.T, s *harness) {
	merchant := s.key(ledger.Reference).ID
	race(t, func(i int) (bool, error) {
		id := "charge-" + strconv.Itoa(i)
		owner, err := s.ClaimReference(context.Background(), chargeOf(merchant, "reference", id))
		return owner == id, err
	})
}
