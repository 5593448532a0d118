package circuit

import "time"

// Summary is what a person reads of a state. A time is zero if there is none.
type Summary struct {
	Phase Phase
	// Since is when the phase began. That of a suspect circuit is the first failure of the window, to a slot.
	Since time.Time
	// ProbesAt is when an open circuit takes probes. EndsAt is when a circuit that is not closed is closed without new
	// evidence.
	ProbesAt, EndsAt time.Time
	ByPerson         bool
	// Results are those of the window of a suspect circuit, and those that opened an open one. They are zero if a
	// person opened it, or a probe that failed. Slow counts the calls that may still wait.
	Results Results
	// Probes counts the outstanding probes that have not lapsed, and Succeeded those that succeeded.
	Probes, Succeeded int
}

// Summarize returns the summary of a state at a time.
func (s *State) Summarize(at time.Time) Summary {
	now := at.UnixMilli()
	all := Summary{Phase: s.phase(now)}
	switch all.Phase {
	case Closed:
		return all
	case Suspect:
		all.Results, all.EndsAt = s.sum(now), time.UnixMilli(s.SuspectUntil)
		all.Since = time.UnixMilli(s.SuspectUntil - suspectTime)
		if first := all.Results.Slot; first != 0 {
			all.Since = time.UnixMilli(first * slotLength)
		}
		return all
	}
	all.Since, all.ProbesAt = time.UnixMilli(s.OpenedAt), time.UnixMilli(s.ProbesAt)
	all.EndsAt = time.UnixMilli(s.EndsAt)
	if all.Phase == HalfOpen {
		all.Since = all.ProbesAt
	}
	all.ByPerson, all.Results, all.Succeeded = s.ByPerson != 0, s.sum(s.OpenedAt), int(s.Successes)
	for _, lapse := range s.Probes {
		if lapse > now {
			all.Probes++
		}
	}
	return all
}
