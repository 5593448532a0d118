package sweep

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/ledger"
)

// The limits are those of all sweeps of a minute together. Each has its part of them (slotTable.part).
const (
	// maxSlots bounds all outside calls that run at once.
	maxSlots = 256
	// maxWaiting bounds the keys that wait for a slot of one dependency; further ones are postponed. It is more than
	// what slots of a quick system can call in a pass: a key costs 100 bytes to wait, and two writes to be postponed.
	maxWaiting = 100_000
	// slowCallThreshold is the duration from which an outside call counts as slow.
	slowCallThreshold = 3 * time.Second
)

// dependencyKind is the kind of a system that an outside call depends on.
type dependencyKind string

// The dependencies: the rate of an account's lookups, an operator's status lookup and SMS, a merchant's server, and all
// servers of one merchant.
const (
	rateOf     dependencyKind = "rate"
	lookupOf   dependencyKind = "lookup"
	userSMSOf  dependencyKind = "sms"
	serverOf   dependencyKind = "server"
	merchantOf dependencyKind = "merchant"
)

// dependency is one system with slots of its own.
type dependency struct {
	kind dependencyKind
	name string
}

// slotCounts are the slots of a dependency: before its first quick call, after one, and while it is slow.
// It is slow after slowCalls slow calls.
type slotCounts struct{ unproven, proven, slow, slowCalls int }

// counts returns the slots of the kind. A merchant can use a new server, without known health, for each order: so all
// its servers have few together once some of them were slow.
func (k dependencyKind) counts() slotCounts {
	switch k {
	case merchantOf:
		return slotCounts{unproven: 16, proven: 64, slow: 8, slowCalls: 8}
	case rateOf: // only its lookups bound it
		return slotCounts{unproven: maxSlots, proven: maxSlots, slowCalls: math.MaxInt}
	}
	return slotCounts{unproven: 8, proven: 32, slow: 2, slowCalls: 1}
}

// requirement is what an outside call requires: a slot of each dependency. most bounds the slots of the first one
// further, by its stored health; 0 for no further bound. If startsSlow, a platform that is not proven has the slots of
// a slow one, because the circuit of the account is open. rate is that of the first one, if it is a rate of lookups.
// The zero requirement is for a job without an outside call.
type requirement struct {
	dependencies []dependency
	most         int
	startsSlow   bool
	rate         lookupRate
}

// maxLine is how many keys may wait for a requirement.
func (t *slotTable) maxLine(r requirement) int { return cmp.Or(r.rate.capacity, t.part(maxWaiting)) }

// usage is the state of a dependency in a pass.
type usage struct {
	running int
	proven  bool
	slow    int
	// lookups are those of a rate that were taken and not used. takesBatches is true while more are taken. behind are
	// the keys that were postponed to their share.
	lookups      int
	takesBatches bool
	behind       int
}

// waitingLine has the keys that wait for a requirement, the oldest first.
type waitingLine struct {
	requirement
	keys []ledger.Key
}

// slotTable bounds the outside calls of a pass, so that a system that hangs costs only its own slots. No caller
// waits: a key without a slot is queued if the system is well, and refused otherwise.
type slotTable struct {
	sweeps  int // that share the limits; 0 is 1
	mutex   sync.Mutex
	running int
	usages  map[dependency]*usage
	lines   []*waitingLine // those with keys, in the order in which they get slots
}

// part is the part of a limit that one of the sweeps has, at least 1.
func (t *slotTable) part(limit int) int { return max(limit/max(t.sweeps, 1), 1) }

// slot is one slot in use: the dependencies that it is a slot of. nil is none.
type slot []dependency

// matches reports whether a slot is one of a requirement.
func (s slot) matches(r requirement) bool { return slices.Equal(s, r.dependencies) }

// grant is the result of a request for a slot.
type grant int

// The grants.
const (
	refused grant = iota // the dependency is slow, or too many wait: postpone the job
	late                 // the rate has no lookup for it in this pass: postpone the job to its share
	queued               // the key gets a slot later in this pass
	granted
)

// acquire requests a slot for the next job of a key.
func (t *slotTable) acquire(key ledger.Key, r requirement) (slot, grant) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.available(r) {
		return t.take(r), granted
	}
	at := t.lineOf(r)
	isFull := at >= 0 && len(t.lines[at].keys) >= t.maxLine(r)
	switch {
	case t.limited(r), isFull && r.rate.batch == 0:
		return nil, refused
	case isFull:
		return nil, late
	case at < 0:
		t.lines = append(t.lines, &waitingLine{requirement: r, keys: []ledger.Key{key}})
	default:
		t.lines[at].keys = append(t.lines[at].keys, key)
	}
	return nil, queued
}

// available reports whether a requirement has a free slot.
func (t *slotTable) available(r requirement) bool {
	if t.running >= t.part(maxSlots) {
		return false
	}
	for i, d := range r.dependencies {
		counts, used := d.kind.counts(), t.usage(d)
		limit := counts.unproven
		if r.startsSlow && d.kind == lookupOf {
			limit = counts.slow
		}
		switch {
		case t.isSlow(d):
			limit = counts.slow
		case used.proven:
			limit = counts.proven
		}
		if i == 0 && r.most > 0 {
			limit = min(limit, r.most)
		}
		if used.running >= t.part(limit) || d.kind == rateOf && used.lookups == 0 {
			return false
		}
	}
	return true
}

// limited reports whether a dependency is slow in this pass, or not well by its stored health.
func (t *slotTable) limited(r requirement) bool {
	return r.most > 0 || slices.ContainsFunc(r.dependencies, func(d dependency) bool {
		return t.isSlow(d)
	})
}

// isSlow reports whether a dependency has had so many slow calls in this pass that it counts as slow.
func (t *slotTable) isSlow(d dependency) bool {
	return t.usage(d).slow >= t.part(d.kind.counts().slowCalls)
}

func (t *slotTable) usage(d dependency) *usage {
	if t.usages == nil {
		t.usages = map[dependency]*usage{}
	}
	if t.usages[d] == nil {
		t.usages[d] = &usage{}
	}
	return t.usages[d]
}

func (t *slotTable) take(r requirement) slot {
	t.running++
	for _, d := range r.dependencies {
		used := t.usage(d)
		used.running++
		if d.kind == rateOf {
			used.lookups--
		}
	}
	return r.dependencies
}

// assignment is a slot that a waiting key has got.
type assignment struct {
	key  ledger.Key
	slot slot
}

// noCall is the duration of a slot that was freed without a call.
const noCall time.Duration = -1

// release frees a slot after a call of this duration, or noCall. It returns the waiting keys that get slots now, and
// those that must be postponed because their dependency turned out to be slow.
func (t *slotTable) release(freed slot, elapsed time.Duration) (next []assignment, postponed []ledger.Key) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.running--
	for _, d := range freed {
		used := t.usage(d)
		used.running--
		switch {
		case elapsed == noCall && d.kind == rateOf:
			used.lookups++
		case elapsed == noCall:
		case elapsed > slowCallThreshold:
			used.slow++
		default:
			used.proven = true
			if d.kind != merchantOf {
				used.slow = 0
			}
		}
	}
	return t.assignSlots()
}

// assignSlots assigns free slots to the lines in turn, and empties the lines of slow dependencies.
func (t *slotTable) assignSlots() (next []assignment, postponed []ledger.Key) {
	for at := 0; at < len(t.lines); {
		line := t.lines[at]
		switch {
		case t.limited(line.requirement):
			postponed = append(postponed, line.keys...)
			t.lines = slices.Delete(t.lines, at, at+1)
		case !t.available(line.requirement):
			at++
		default:
			next = append(next, assignment{line.keys[0], t.take(line.requirement)})
			line.keys = line.keys[1:]
			t.lines = slices.Delete(t.lines, at, at+1)
			if len(line.keys) > 0 {
				t.lines = append(t.lines, line) // behind the others
			}
		}
	}
	return next, postponed
}
