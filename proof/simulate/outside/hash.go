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
	if o.platform == nil {
		return 0
	}
	lines := []string{fmt.Sprintln("platform", o.platform.Hash())}
	for key, late := range o.delayed {
		lines = append(lines, fmt.Sprintln("delayed", key, late.outcome, late.at.UnixNano()))
	}
	for key, until := range o.busyUntil {
		lines = append(lines, fmt.Sprintln("busy", key, until.UnixNano()))
	}
	for _, l := range o.lies {
		lines = append(lines, fmt.Sprintln("lie", l.kind, l.key, l.fault))
	}
	slices.Sort(lines)
	return hashLines(lines)
}

// Hash returns a hash of what the server received, in its order, and of its outages.
func (s *MerchantServer) Hash() uint64 {
	var lines []string
	for _, w := range s.Outages {
		lines = append(lines, fmt.Sprintln("window", w.From.UnixNano(), w.To.UnixNano(), w.Fault))
	}
	for _, r := range s.received {
		lines = append(lines, fmt.Sprintln("receipt", r.ID, r.Status, string(r.Body), r.At.UnixNano(), r.Fault))
	}
	return hashLines(lines)
}

func hashLines(lines []string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(strings.Join(lines, ""))) // a hash never fails
	return hash.Sum64()
}
