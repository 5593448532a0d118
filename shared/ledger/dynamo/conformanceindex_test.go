package dynamo_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/ledger"
)

// manyKeys exceeds the suite's entries in one shard of the due index.
const manyKeys = 1000

// due lists those of the given keys that are due in a shard.
func due(t *testing.T, s *harness, shard int, before time.Time, of []ledger.Key) []ledger.Key {
	t.Helper()
	var keys []ledger.Key
	query := ledger.DueQuery{Shard: shard, Before: before, Limit: manyKeys}
	for more := true; more; more = query.Cursor != "" {
		page, next, err := s.DueKeys(context.Background(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range page {
			if slices.Contains(of, found.Key) {
				keys = append(keys, found.Key)
			}
		}
		query.Cursor = next
	}
	return keys
}

func dueKeys(t *testing.T, s *harness) {
	late, early := s.reserved(ledger.Payment, "late"), s.reserved(ledger.Payment, "early")
	for ledger.DueShard(early.Key) != ledger.DueShard(late.Key) {
		early.Key = s.key(ledger.Payment)
	}
	late.DueAt, early.DueAt = ledgertest.Now().Add(9*time.Second), ledgertest.Now().Add(-time.Second)
	mustInsert(t, s, late)
	mustInsert(t, s, early)
	shard := ledger.DueShard(late.Key)
	both := []ledger.Key{early.Key, late.Key}

	steps := []struct {
		name   string
		before time.Time
		want   []ledger.Key
	}{
		{"before any", early.DueAt.Add(-time.Millisecond), nil},
		{"at the first's time", early.DueAt, both[:1]},
		{"after both, the oldest first", late.DueAt.Add(time.Hour), both},
	}
	for _, step := range steps {
		if got := due(t, s, shard, step.before, both); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
	if got := due(t, s, (shard+1)%ledger.DueShards, late.DueAt, both); len(got) != 0 {
		t.Errorf("another shard lists %v", got)
	}
	one := ledger.DueQuery{Shard: shard, Before: late.DueAt, Limit: 1}
	if keys, next, err := s.DueKeys(context.Background(), one); err != nil || len(keys) != 1 || next == "" {
		t.Errorf("limit 1 gives %v, cursor %q, %v", keys, next, err)
	}
	dueFrom(t, s, early, late)
	cleared := following(early, "cleared")
	cleared.DueAt = time.Time{}
	mustReplace(t, s, cleared)
	if got := due(t, s, shard, late.DueAt, both); !slices.Equal(got, both[1:]) {
		t.Errorf("after the first is cleared: %v", got)
	}
}

// dueFrom checks a query with a start, its due times, and its pages of one key.
func dueFrom(t *testing.T, s *harness, early, late *ledger.Entry) {
	t.Helper()
	query := ledger.DueQuery{Shard: ledger.DueShard(late.Key), From: early.DueAt, Before: late.DueAt, Limit: 1}
	var got []ledger.DueKey
	for more := true; more; more = query.Cursor != "" {
		page, next, err := s.DueKeys(context.Background(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range page {
			if found.Key == early.Key || found.Key == late.Key {
				got = append(got, found)
			}
		}
		query.Cursor = next
	}
	want := []ledger.DueKey{{Key: early.Key, DueAt: early.DueAt}, {Key: late.Key, DueAt: late.DueAt}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages of one key from the first's time (-want +got):\n%s", diff)
	}
	query.From, query.Cursor, query.Limit = early.DueAt.Add(time.Millisecond), "", manyKeys
	page, _, err := s.DueKeys(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(page, func(found ledger.DueKey) bool { return found.Key == early.Key }) {
		t.Errorf("a query that starts after %s lists it", early.DueAt)
	}
}

// moveDue checks that only a due item is moved, and that its entry stays as it is.
func moveDue(t *testing.T, s *harness) {
	e := s.reserved(ledger.Payment, "moved")
	e.DueAt = ledgertest.Now().Add(time.Second)
	mustInsert(t, s, e)
	later, ctx := ledgertest.Now().Add(time.Hour), context.Background()
	for _, step := range []struct {
		name      string
		now, want time.Time
	}{
		{"not due yet", ledgertest.Now(), e.DueAt}, {"due", e.DueAt, later}, {"moved before", e.DueAt, later},
	} {
		if err := s.MoveDue(ctx, e.Key, step.now, later); err != nil {
			t.Fatal(err)
		}
		want := e.Clone()
		want.DueAt = step.want
		requireEqual(t, get(t, s, e.Key), want)
	}
	if err := s.MoveDue(ctx, s.key(ledger.Payment), later, later); err != nil {
		t.Errorf("an item that does not exist: %v", err)
	}
}

func dayPages(t *testing.T, s *harness) {
	merchant := s.key(ledger.Reference).ID
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var want []ledger.Key
	at := func(kind ledger.Kind, created time.Time, listed bool) {
		e := s.reserved(kind, strconv.Itoa(len(want)))
		e.Merchant.ID, e.CreatedAt = merchant, created
		mustInsert(t, s, e)
		if listed {
			want = append(want, e.Key)
		}
	}
	at(ledger.Charge, day.Add(-time.Millisecond), false)
	at(ledger.SMS, day, true)
	at(ledger.Charge, day.Add(time.Hour), true)
	at(ledger.Payment, day.Add(2*time.Hour), true)
	at(ledger.Payment, day.Add(2*time.Hour), true) // in the same millisecond
	at(ledger.Charge, day.Add(24*time.Hour-time.Millisecond), true)
	at(ledger.Charge, day.Add(24*time.Hour), false)

	for _, limit := range []int{1, 2, 3, 100} {
		var got []ledger.Key
		cursor := ""
		for page := 0; page == 0 || cursor != ""; page++ {
			keys, next, err := s.Day(context.Background(), merchant, day.Add(5*time.Hour), cursor, limit)
			if err != nil || len(keys) > limit || page > len(want) {
				t.Fatalf("limit %d, page %d: %v, %v", limit, page, keys, err)
			}
			got = append(got, keys...)
			cursor = next
		}
		sameTime := func(a, b ledger.Key) int { return strings.Compare(a.ID, b.ID) }
		if len(got) == len(want) {
			slices.SortFunc(got[2:4], sameTime)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keys of the day with limit %d (-want +got):\n%s", limit, diff)
		}
	}
	if keys, _, err := s.Day(context.Background(), merchant+"x", day, "", 10); err != nil || len(keys) != 0 {
		t.Errorf("another merchant: %v, %v", keys, err)
	}
}

func sharesNoMemory(t *testing.T, s *harness) {
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
}
