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

// due lists those of the given keys that a query finds, page by page.
func due(t *testing.T, s *harness, query ledger.DueQuery, of []ledger.Key) []ledger.DueKey {
	t.Helper()
	var keys []ledger.DueKey
	for more := true; more; more = query.Cursor != "" {
		page, next, err := s.DueKeys(context.Background(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range page {
			if slices.Contains(of, found.Key) {
				keys = append(keys, found)
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
	want := []ledger.DueKey{{Key: early.Key, DueAt: early.DueAt}, {Key: late.Key, DueAt: late.DueAt}}

	all := ledger.DueQuery{Shard: shard, Before: late.DueAt.Add(time.Hour), Limit: manyKeys}
	assertDue := func(name string, change func(*ledger.DueQuery), want []ledger.DueKey) {
		t.Helper()
		query := all
		change(&query)
		if diff := cmp.Diff(want, due(t, s, query, both)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	assertDue("before any", func(q *ledger.DueQuery) { q.Before = early.DueAt.Add(-time.Millisecond) }, nil)
	assertDue("at the first's time", func(q *ledger.DueQuery) { q.Before = early.DueAt }, want[:1])
	assertDue("after both, the oldest first", func(*ledger.DueQuery) {}, want)
	assertDue("in another shard", func(q *ledger.DueQuery) { q.Shard = (shard + 1) % ledger.DueShards }, nil)
	assertDue("pages of one key from the first's time", func(q *ledger.DueQuery) {
		q.From, q.Before, q.Limit = early.DueAt, late.DueAt, 1
	}, want)
	assertDue("after the first's time", func(q *ledger.DueQuery) {
		q.From, q.Before = early.DueAt.Add(time.Millisecond), late.DueAt
	}, want[1:])
	one := ledger.DueQuery{Shard: shard, Before: late.DueAt, Limit: 1}
	if keys, next, err := s.DueKeys(context.Background(), one); err != nil || len(keys) != 1 || next == "" {
		t.Errorf("limit 1 gives %v, cursor %q, %v", keys, next, err)
	}
	cleared := following(early, "cleared")
	cleared.DueAt = time.Time{}
	mustReplace(t, s, cleared)
	assertDue("after the first is cleared", func(q *ledger.DueQuery) { q.Before = late.DueAt }, want[1:])
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
			keys, next, err := s.Day(context.Background(), ledger.DayQuery{
				MerchantID: merchant, Day: day.Add(5 * time.Hour), Cursor: cursor, Limit: limit,
			})
			if err != nil || len(keys) > limit || page > len(want) {
				t.Fatalf("limit %d, page %d: %v, %v", limit, page, keys, err)
			}
			for i, found := range keys {
				got = append(got, found.Key)
				if stored := get(t, s, found.Key); !found.CreatedAt.Equal(stored.CreatedAt) {
					t.Errorf("%s was created at %s, and is listed at %s", found.Key, stored.CreatedAt, found.CreatedAt)
				}
				if i == len(keys)-1 && next != "" && next != found.Cursor() {
					t.Errorf("cursor %q after the last key, want %q", next, found.Cursor())
				}
			}
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
	dayRanges(t, s, merchant, day, want)
	for _, other := range []ledger.DayQuery{
		{MerchantID: merchant + "x", Day: day}, {MerchantID: merchant, Day: day, Shard: 1},
	} {
		if keys, _, err := s.Day(context.Background(), other); err != nil || len(keys) != 0 {
			t.Errorf("another merchant, or another partition: %v, %v", keys, err)
		}
	}
	moved := s.reserved(ledger.Payment, "elsewhere")
	moved.Merchant.ID, moved.CreatedAt, moved.Merchant.DayShard = merchant, day.Add(time.Hour), 3
	mustInsert(t, s, moved)
	mustReplace(t, s, following(moved, "again")) // it stays in its partition
	third := ledger.DayQuery{MerchantID: merchant, Day: day, Shard: 3, Limit: 10}
	if keys, _, err := s.Day(context.Background(), third); err != nil || len(keys) != 1 || keys[0].Key != moved.Key {
		t.Errorf("the third partition: %v, %v", keys, err)
	}
}

// dayRanges reads parts of the day of dayPages from both ends. The order of keys with the same time is open.
func dayRanges(t *testing.T, s *harness, merchant string, day time.Time, all []ledger.Key) {
	twoHours := day.Add(2 * time.Hour)
	for name, c := range map[string]struct {
		query ledger.DayQuery
		want  []ledger.Key
	}{
		"whole":              {ledger.DayQuery{}, all},
		"from the second on": {ledger.DayQuery{From: day.Add(time.Hour)}, all[1:]},
		"up to the second":   {ledger.DayQuery{Last: day.Add(time.Hour)}, all[:2]},
		"between":            {ledger.DayQuery{From: day.Add(time.Millisecond), Last: twoHours}, all[1:4]},
		"nothing": {ledger.DayQuery{
			From: twoHours.Add(time.Millisecond), Last: twoHours.Add(time.Second),
		}, nil},
	} {
		for _, newest := range []bool{false, true} {
			query := c.query
			query.MerchantID, query.Day, query.Newest, query.Limit = merchant, day, newest, 1
			var got []ledger.DayKey
			for more := true; more; more = query.Cursor != "" {
				page, next, err := s.Day(context.Background(), query)
				if err != nil || len(got) > len(all) {
					t.Fatalf("%s, newest %t: %v, %v", name, newest, got, err)
				}
				got, query.Cursor = append(got, page...), next
			}
			isOrdered := slices.IsSortedFunc(got, func(a, b ledger.DayKey) int {
				if newest {
					a, b = b, a
				}
				return a.CreatedAt.Compare(b.CreatedAt)
			})
			sortedIDs := func(keys []ledger.Key) (ids []string) {
				for _, key := range keys {
					ids = append(ids, key.ID)
				}
				slices.Sort(ids)
				return ids
			}
			var keys []ledger.Key
			for _, found := range got {
				keys = append(keys, found.Key)
			}
			if !isOrdered || !slices.Equal(sortedIDs(keys), sortedIDs(c.want)) {
				t.Errorf("%s, newest %t: %v, want %v", name, newest, got, c.want)
			}
		}
	}
}
