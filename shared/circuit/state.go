package circuit

import "time"

// State is the state of one circuit, as all processes share it. The zero value is closed.
//
// All its times are milliseconds since 1970, 0 for none: it is linked into each function, and numbers are small.
type State struct {
	// SuspectUntil is how long processes write their results.
	SuspectUntil int64
	// OpenedAt is when the circuit opened, 0 for a closed one. It takes probes from ProbesAt on, and is closed from
	// EndsAt on. ByPerson is 1 if a person opened it.
	OpenedAt, ProbesAt, EndsAt, ByPerson int64
	// Successes counts the probes that succeeded since ProbesAt. Probes has the times at which the outstanding ones
	// lapse.
	Successes int64
	Probes    []int64
	// Results are those of the last window, by slot. While the circuit is open they are those that opened it. They
	// decide nothing then, and only people read them.
	Results []Results

	writer int64 // random: who wrote the state
}

// Results are the results of one slot of five seconds since 1970. Slow counts the calls that are slower than SlowAfter
// and still wait. A late success takes back what an earlier write counted, so a process may report negative numbers.
type Results struct{ Slot, Failures, Successes, Slow int64 }

func slotOf(now int64) int64 { return now / slotLength }

// Phase returns the phase at a time.
func (s *State) Phase(now time.Time) Phase { return s.phase(now.UnixMilli()) }

// phase is Phase. An open state whose start is far ahead was written by a wrong clock: it is closed.
func (s *State) phase(now int64) Phase {
	isOpen := s.OpenedAt != 0 && s.OpenedAt <= now+maxClockSkew && now < s.EndsAt
	switch {
	case isOpen && now < s.ProbesAt:
		return Open
	case isOpen:
		return HalfOpen
	case now < s.SuspectUntil && s.SuspectUntil < now+suspectTime+maxClockSkew:
		return Suspect
	}
	return Closed
}

// isUsable reports whether the times of a state fit together.
func (s *State) isUsable() bool {
	if s.OpenedAt == 0 {
		return s.ProbesAt == 0 && s.EndsAt == 0
	}
	longest := openTime
	if s.ByPerson != 0 {
		longest = MaxOpenTime.Milliseconds()
	}
	open, probing := s.ProbesAt-s.OpenedAt, s.EndsAt-s.ProbesAt
	return open >= 0 && open <= longest && probing >= 0 && probing <= probeTime
}

// OpenedByPerson returns the state of a circuit that a person opens for a time, at most MaxOpenTime. Then it takes
// probes. A person closes a circuit by the zero State.
func OpenedByPerson(now time.Time, wait time.Duration) State {
	s := State{ByPerson: 1}
	s.open(now.UnixMilli(), min(max(wait, 0), MaxOpenTime).Milliseconds())
	return s
}

// open opens a circuit for a time, in milliseconds. It forgets results and probes.
func (s *State) open(now, wait int64) {
	*s = State{OpenedAt: now, ProbesAt: now + wait, EndsAt: now + wait + probeTime, ByPerson: s.ByPerson}
}

// report is what a process has learned: results, and the end of a probe.
type report struct {
	results []Results
	probe   int64    // when it would have lapsed; 0 for none
	began   int64    // the probe
	outcome Evidence // of the probe
}

// hasFailure reports whether results have a failure that is not taken back.
func hasFailure(all []Results) bool {
	for _, r := range all {
		if r.Failures > 0 {
			return true
		}
	}
	return false
}

// apply changes the state by a report, and reports whether it changed. A state that ended by itself begins again. While
// the circuit is open only the end of an outstanding probe changes it: a lapsed probe's end has no effect.
func (s *State) apply(r *report, now, maxSlow int64) bool {
	switch s.phase(now) {
	case Open:
		return false
	case HalfOpen:
		return s.endProbe(r, now)
	}
	if s.OpenedAt != 0 {
		s.Results = nil // they opened the circuit
	}
	s.Results = merge(s.Results, r.results, now)
	for i := range s.Results { // a success took back what no write has counted
		one := &s.Results[i]
		one.Failures, one.Successes, one.Slow = max(0, one.Failures), max(0, one.Successes), max(0, one.Slow)
	}
	*s = State{SuspectUntil: s.SuspectUntil, Results: s.Results}
	if hasFailure(r.results) {
		s.SuspectUntil = now + suspectTime
	}
	if results := s.Results; s.mustOpen(now, maxSlow) {
		s.open(now, openTime)
		s.Results = results
	}
	return len(r.results) > 0
}

// endProbe is apply for a half-open circuit.
func (s *State) endProbe(r *report, now int64) bool {
	isOutstanding := false
	var others []int64
	for _, lapse := range s.Probes {
		if lapse == r.probe {
			isOutstanding = true
		} else {
			others = append(others, lapse)
		}
	}
	if !isOutstanding {
		return false
	}
	s.Probes = others
	switch r.outcome {
	case Failed:
		s.ByPerson = 0
		s.open(now, openTime-min(max(0, now-r.began), openTime)) // the platform may be back since the probe began
	case Responded:
		if s.Successes++; s.Successes >= closingProbes {
			*s = State{}
		}
	}
	return true
}

// mustOpen reports whether the results open a closed circuit. Both rules count calls that wait, for different times:
// the share from SlowAfter on, because they use concurrency. The failures count them only once they may no longer be
// normal: an account whose responses always take 4 seconds has calls that wait, and no failure.
func (s *State) mustOpen(now, maxSlow int64) bool {
	sum := s.sum(now)
	failures := sum.Failures - s.recentlySlow(now)
	return failures >= minFailures && failures >= sum.Successes || sum.Slow > maxSlow
}

// recentlySlow adds up the calls that wait and became slow lately, or after now by a clock that is ahead.
func (s *State) recentlySlow(now int64) (sum int64) {
	for _, r := range s.Results {
		if age := slotOf(now) - r.Slot; -windowSlots <= age && age < patienceSlots {
			sum += r.Slow
		}
	}
	return sum
}

// sum adds up the results of the window at a time, and the slow calls that may still hold concurrency. Its slot is the
// first one with a failure.
func (s *State) sum(now int64) (sum Results) {
	for _, r := range s.Results {
		age := slotOf(now) - r.Slot
		if age >= windowSlots || age < -windowSlots {
			continue
		}
		if r.Failures > 0 && (sum.Slot == 0 || r.Slot < sum.Slot) {
			sum.Slot = r.Slot
		}
		sum.Failures, sum.Successes = sum.Failures+r.Failures, sum.Successes+r.Successes
		if age < waitSlots {
			sum.Slow += r.Slow
		}
	}
	return sum
}

// takeProbe adds a probe unless too many are outstanding, and returns when it lapses; 0 for none. A lapsed probe makes
// room for the new one; until then its end still counts, because clocks differ.
func (s *State) takeProbe(now, wait int64) (lapse int64) {
	lapse = now + wait
	var kept []int64
	room := maxProbes - len(s.Probes)
	for _, other := range s.Probes {
		switch {
		case room <= 0 && other <= now:
			room++
			continue
		case other >= lapse && other < lapse+maxProbes:
			lapse = other + 1 // the lapse names the probe
		}
		kept = append(kept, other)
	}
	if room <= 0 {
		return 0
	}
	s.Probes = append(kept, lapse)
	return lapse
}

// merge adds up results by slot, and drops those outside the window and those without a number.
func merge(known, added []Results, now int64) []Results {
	var merged []Results
	for i := range len(known) + len(added) {
		r := Results{}
		if i < len(known) {
			r = known[i]
		} else {
			r = added[i-len(known)]
		}
		if age := slotOf(now) - r.Slot; age >= windowSlots || age < -windowSlots {
			continue
		}
		at := 0
		for at < len(merged) && merged[at].Slot != r.Slot {
			at++
		}
		if at == len(merged) {
			merged = append(merged, Results{Slot: r.Slot})
		}
		sum := &merged[at]
		sum.Failures, sum.Successes, sum.Slow = sum.Failures+r.Failures, sum.Successes+r.Successes, sum.Slow+r.Slow
	}
	kept := merged[:0]
	for _, r := range merged {
		if r.Failures != 0 || r.Successes != 0 || r.Slow != 0 {
			kept = append(kept, r)
		}
	}
	return kept
}
