package simulate

import (
	"container/heap"
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

// Len implements heap.Interface.
func (l dueList) Len() int { return len(l) }

// Less implements heap.Interface.
func (l dueList) Less(i, j int) bool { return l[i].at.Before(l[j].at) }

// Swap implements heap.Interface.
func (l dueList) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push implements heap.Interface.
func (l *dueList) Push(value any) { *l = append(*l, value.(dueTime)) }

// Pop implements heap.Interface.
func (l *dueList) Pop() any {
	last := len(*l) - 1
	value := (*l)[last]
	*l = (*l)[:last]
	return value
}

func (l *dueList) add(key string, at time.Time) {
	if !at.IsZero() {
		heap.Push(l, dueTime{at, key})
	}
}

// firstDue is the earliest time at which an entry is due, zero for none.
func (w *World) firstDue() time.Time {
	c := w.checker
	for len(c.due) > 0 {
		first := c.due[0]
		if e := c.entries[first.key]; e != nil && e.DueAt.Equal(first.at) {
			return first.at
		}
		heap.Pop(&c.due)
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
