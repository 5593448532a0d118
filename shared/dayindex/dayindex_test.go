package dayindex_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/shared/dayindex"
	"mobilegateway/shared/ledger"
)

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// index has the keys of each partition, in order. It returns two keys at a time, and an empty page at the end.
type index struct {
	shards  [][]ledger.DayKey
	err     error
	queries atomic.Int64
}

func (x *index) Day(_ context.Context, q ledger.DayQuery) ([]ledger.DayKey, string, error) {
	x.queries.Add(1)
	keys := x.shards[q.Shard]
	at := slices.IndexFunc(keys, func(k ledger.DayKey) bool { return k.Cursor() == q.Cursor }) + 1
	page := keys[at:min(at+2, len(keys))]
	next := ""
	if len(page) > 0 {
		next = page[len(page)-1].Cursor()
	}
	return page, next, x.err
}

// newIndex spreads payments over partitions, three of each second.
func newIndex(shards, count int) *index {
	x := &index{shards: make([][]ledger.DayKey, shards)}
	for i := range count {
		key := ledger.Key{Kind: ledger.Payment, ID: fmt.Sprintf("S_%03d", i)}
		at := (i*7 + i/3) % shards
		created := day.Add(time.Duration(i/3) * time.Second)
		x.shards[at] = append(x.shards[at], ledger.DayKey{Key: key, CreatedAt: created})
	}
	return x
}

func of(shards int) dayindex.Day {
	return dayindex.Day{MerchantID: "m", Day: day, Shards: shards, PageSize: 2}
}

// take takes up to count keys from a cursor on.
func take(t *testing.T, x *index, shards int, cursor string, count int) (ids []string, next string, ended bool) {
	t.Helper()
	r, err := dayindex.NewReader(x, of(shards), cursor)
	if err != nil {
		t.Fatal(err)
	}
	for len(ids) < count {
		key, found, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			return ids, r.Cursor(), true
		}
		ids = append(ids, key.ID)
	}
	return ids, r.Cursor(), r.Ended()
}

func TestReader(t *testing.T) {
	for _, shards := range []int{1, 2, 5} {
		for _, count := range []int{1, 3, 100} {
			x, cursor, ended := newIndex(shards, 41), "", false
			var all []string
			for !ended {
				var ids []string
				ids, cursor, ended = take(t, x, shards, cursor, count)
				all = append(all, ids...)
			}
			if len(all) != 41 || !slices.IsSorted(all) {
				t.Errorf("%d partitions, %d at once: %v", shards, count, all)
			}
		}
	}
	if ids, _, ended := take(t, newIndex(3, 0), 3, "", 5); len(ids) > 0 || !ended {
		t.Errorf("an empty day: %v, ended %v", ids, ended)
	}
}

// A cursor of fewer partitions begins the others at their start.
func TestMorePartitions(t *testing.T) {
	x := newIndex(1, 9)
	first, cursor, _ := take(t, x, 1, "", 4)
	x.shards = append(x.shards, []ledger.DayKey{{Key: ledger.Key{Kind: ledger.SMS, ID: "new"}, CreatedAt: day}})
	rest, _, _ := take(t, x, 2, cursor, 100)
	if len(first)+len(rest) != 10 || rest[0] != "new" {
		t.Errorf("%v, then %v", first, rest)
	}
}

func TestCursors(t *testing.T) {
	x := newIndex(2, 5)
	for _, cursor := range []string{
		"x", "10:00:00.000", "10:00:00.000#", "10:00:00.000#pay", "10:00:00.000#pay#", "25:00:00.000#pay#S_1",
		",,", "10:00:00.000#pay#S_1,x", "1:00:00.000#pay#S_1", "10:00:00.000#token#S_1", "10:00:00.000#pay#S\xff",
		"10:00:00.000#pay#" + strings.Repeat("1", 256),
	} {
		if _, err := dayindex.NewReader(x, of(2), cursor); !errors.Is(err, dayindex.ErrCursor) {
			t.Errorf("%q: %v, want ErrCursor", cursor, err)
		}
	}
	for _, cursor := range []string{
		"", ",", "10:00:00.000#pay#S_1,", ",10:00:00.000#sms#x", "10:00:00.000#charge#" + strings.Repeat("1", 255),
	} {
		if _, err := dayindex.NewReader(x, of(2), cursor); err != nil {
			t.Errorf("%q: %v", cursor, err)
		}
	}
}

func TestFailedQuery(t *testing.T) {
	x := newIndex(2, 5)
	x.err = errors.New("no table")
	r, err := dayindex.NewReader(x, of(2), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := r.Next(t.Context()); found || !errors.Is(err, x.err) {
		t.Errorf("found %v, %v", found, err)
	}
}
