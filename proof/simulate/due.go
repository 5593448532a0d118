package simulate

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

// firstDue is the earliest time at which an entry is due, zero for none.
func (w *World) firstDue() time.Time {
	c := w.checker
	for ; len(c.due) > 0; c.due = c.due[1:] {
		first := c.due[0]
		if e := c.entries[first.key]; e != nil && e.DueAt.Equal(first.at) {
			return first.at
		}
	}
	return time.Time{}
}

// isShardEmpty reports whether no entry of a shard is due within the next minutes, which covers every clock skew.
func (w *World) isShardEmpty(shard string) bool {
	if w.undecodable && strconv.Itoa(ledger.DueShard(ledger.Key{Kind: ledger.Charge, ID: undecodableID})) == shard {
		return false
	}
	latest := time.Now().Add(2 * time.Minute)
	for _, due := range w.checker.due {
		e := w.checker.entries[due.key]
		isDue := e != nil && e.DueAt.Before(latest) && e.DueAt.Equal(due.at)
		if isDue && strconv.Itoa(ledger.DueShard(e.Key)) == shard {
			return false
		}
	}
	return true
}
