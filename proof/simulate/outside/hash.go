package outside

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// Hash returns a hash of the platform's state for exhaustive mode. Equal states have equal hashes, also if they came
// about in another order of keys.
func (o *Operator) Hash() uint64 {
	var lines []string
	for _, t := range o.transactions {
		lines = append(lines, fmt.Sprintln("transaction", t.kind, t.key, t.plan, t.fingerprint, t.callbackURL,
			t.createdAt.UnixNano(), t.busyUntil.UnixNano()))
	}
	for _, a := range o.arrivals {
		lines = append(lines, fmt.Sprintln("arrival", a.call.kind, a.call.key, a.plan, a.at.UnixNano()))
	}
	for _, q := range o.queue {
		lines = append(lines, fmt.Sprintln("callback", q.Kind, q.Key, q.Status, q.Content, q.attempts,
			q.at.UnixNano()))
	}
	for _, e := range o.effects {
		lines = append(lines, fmt.Sprintln("effect", e.Kind, e.Key, e.Count, e.LastAt.UnixNano()))
	}
	for _, lie := range o.lies {
		lines = append(lines, fmt.Sprintln("lie", lie.Kind, lie.Key, lie.Fault))
	}
	slices.Sort(lines)
	return hashLines(lines)
}

// Hash returns a hash of what the server received, in its order, and of its health windows.
func (s *MerchantServer) Hash() uint64 {
	var lines []string
	for _, w := range s.Windows {
		lines = append(lines, fmt.Sprintln("window", w.From.UnixNano(), w.To.UnixNano(), w.Fault))
	}
	for _, r := range s.received {
		lines = append(lines, fmt.Sprintln("receipt", r.ID, r.Status, r.BodyHash, r.At.UnixNano(), r.Fault))
	}
	return hashLines(lines)
}

func hashLines(lines []string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(strings.Join(lines, ""))) // a hash never fails
	return hash.Sum64()
}
