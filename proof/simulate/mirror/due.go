package mirror

import (
	"slices"
	"strconv"
	"time"

	"mobilegateway/shared/ledger"
)

// dueList has the due times of entries, the earliest first. An entry that changed leaves its old times in the list;
// they are dropped when they come first.
type dueList []dueTime

type dueTime struct {
	at  time.Time
	key string
}

func (l *dueList) add(key string, at time.Time) {
	if !at.IsZero() {
		place, _ := slices.BinarySearchFunc(*l, at, func(due dueTime, at time.Time) int { return due.at.Compare(at) })
		*l = slices.Insert(*l, place, dueTime{at, key})
	}
}

// first is the earliest time at which one of some entries is due, zero for none.
func (l *dueList) first(entries map[string]*ledger.Entry) time.Time {
	for ; len(*l) > 0; *l = (*l)[1:] {
		first := (*l)[0]
		if e := entries[first.key]; e != nil && e.DueAt.Equal(first.at) {
			return first.at
		}
	}
	return time.Time{}
}

// hasShard reports whether one of some entries in a shard is due within the next minutes, which covers every clock
// skew.
func (l dueList) hasShard(entries map[string]*ledger.Entry, shard string) bool {
	latest := time.Now().Add(2 * time.Minute)
	return slices.ContainsFunc(l, func(due dueTime) bool {
		e := entries[due.key]
		return e != nil && e.DueAt.Before(latest) && e.DueAt.Equal(due.at) && ShardOf(e.Key) == shard
	})
}

// ShardOf is the shard of the due index that an entry is in.
func ShardOf(key ledger.Key) string { return strconv.Itoa(ledger.DueShard(key)) }
