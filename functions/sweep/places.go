package sweep

import (
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/ledger"
)

const (
	// maxPlaces bounds all outside calls of a pass that run at once.
	maxPlaces = 256
	// maxWaiting bounds the keys that wait for a place of one dependency; further ones are postponed.
	maxWaiting = 1000
	// slowCallThreshold is the duration from which an outside call counts as slow.
	slowCallThreshold = 3 * time.Second
)

// dependencyKind is the kind of a system that an outside call depends on.
type dependencyKind string

// The dependencies: an operator's status lookup and SMS, a merchant's server, and all servers of one merchant.
const (
	lookupOf   dependencyKind = "lookup"
	userSMSOf  dependencyKind = "sms"
	serverOf   dependencyKind = "server"
	merchantOf dependencyKind = "merchant"
)

// dependency is one system with places of its own.
type dependency struct {
	kind dependencyKind
	name string
}

// placeCounts are the places of a dependency in a pass: before its first quick call, after one, and while it is slow.
// It is slow after slowCalls slow calls.
type placeCounts struct{ unproven, proven, slow, slowCalls int }

// counts returns the places of the kind. A merchant can use a new server, without known health, for each order: so all
// its servers have few together once some of them were slow.
func (k dependencyKind) counts() placeCounts {
	if k == merchantOf {
		return placeCounts{unproven: 16, proven: 64, slow: 8, slowCalls: 8}
	}
	return placeCounts{unproven: 8, proven: 32, slow: 2, slowCalls: 1}
}

// need is what an outside call needs: a place of each dependency. most bounds the places of the first one further, by
// its stored health; 0 for no further bound. The zero need is for an act without an outside call.
type need struct {
	dependencies []dependency
	most         int
}

// usage is the state of a dependency in a pass.
type usage struct {
	running int
	proven  bool
	slow    int
}

func (u *usage) isSlow(counts placeCounts) bool { return u.slow >= counts.slowCalls }

// waitingLine has the keys that wait for a need, the oldest first.
type waitingLine struct {
	need need
	keys []ledger.Key
}

// placeTable bounds the outside calls of a pass, so that a system that hangs costs only its own places. No caller
// waits: a key without a place is queued if the system is well, and refused otherwise.
type placeTable struct {
	mutex   sync.Mutex
	running int
	usages  map[dependency]*usage
	lines   []*waitingLine // those with keys, in the order in which they get places
}

// place is one place in use.
type place struct{ need need }

// matches reports whether a place is one of a need.
func (p *place) matches(n need) bool {
	return p != nil && slices.Equal(p.need.dependencies, n.dependencies)
}

// placement is the result of a request for a place.
type placement int

// The placements.
const (
	refused placement = iota // the dependency is slow, or too many wait: postpone the act
	queued                   // the key gets a place later in this pass
	granted
)

// acquire requests a place for the next act of a key.
func (p *placeTable) acquire(key ledger.Key, n need) (*place, placement) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.available(n) {
		return p.take(n), granted
	}
	at := slices.IndexFunc(p.lines, func(l *waitingLine) bool { return l.need.dependencies[0] == n.dependencies[0] })
	switch {
	case p.limited(n), at >= 0 && len(p.lines[at].keys) >= maxWaiting:
		return nil, refused
	case at < 0:
		p.lines = append(p.lines, &waitingLine{need: n, keys: []ledger.Key{key}})
	default:
		p.lines[at].keys = append(p.lines[at].keys, key)
	}
	return nil, queued
}

// available reports whether a need has a free place.
func (p *placeTable) available(n need) bool {
	if p.running >= maxPlaces {
		return false
	}
	for i, d := range n.dependencies {
		counts, used := d.kind.counts(), p.usage(d)
		limit := counts.unproven
		switch {
		case used.isSlow(counts):
			limit = counts.slow
		case used.proven:
			limit = counts.proven
		}
		if i == 0 && n.most > 0 {
			limit = min(limit, n.most)
		}
		if used.running >= limit {
			return false
		}
	}
	return true
}

// limited reports whether a dependency is slow in this pass, or not well by its stored health.
func (p *placeTable) limited(n need) bool {
	return n.most > 0 || slices.ContainsFunc(n.dependencies, func(d dependency) bool {
		return p.usage(d).isSlow(d.kind.counts())
	})
}

func (p *placeTable) usage(d dependency) *usage {
	used := p.usages[d]
	if used == nil {
		if p.usages == nil {
			p.usages = map[dependency]*usage{}
		}
		used = &usage{}
		p.usages[d] = used
	}
	return used
}

func (p *placeTable) take(n need) *place {
	p.running++
	for _, d := range n.dependencies {
		p.usage(d).running++
	}
	return &place{n}
}

// reservation is a place that a waiting key has got.
type reservation struct {
	key   ledger.Key
	place *place
}

// noCall is the duration of a place that was freed without a call.
const noCall time.Duration = -1

// release frees a place after a call of this duration, or noCall. It returns the waiting keys that get places now, and
// those that must be postponed because their dependency turned out to be slow.
func (p *placeTable) release(freed *place, elapsed time.Duration) (next []reservation, postponed []ledger.Key) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.running--
	for _, d := range freed.need.dependencies {
		used := p.usage(d)
		used.running--
		switch {
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
	return p.assignPlaces()
}

// assignPlaces assigns free places to the lines in turn, and empties the lines of slow dependencies.
func (p *placeTable) assignPlaces() (next []reservation, postponed []ledger.Key) {
	for at := 0; at < len(p.lines); {
		line := p.lines[at]
		switch {
		case p.limited(line.need):
			postponed = append(postponed, line.keys...)
			p.lines = slices.Delete(p.lines, at, at+1)
		case !p.available(line.need):
			at++
		default:
			next = append(next, reservation{line.keys[0], p.take(line.need)})
			line.keys = line.keys[1:]
			p.lines = slices.Delete(p.lines, at, at+1)
			if len(line.keys) > 0 {
				p.lines = append(p.lines, line) // behind the others
			}
		}
	}
	return next, postponed
}
