package deployment

import (
	"time"

	"mobilegateway/proof/simulate/outside"
)

const (
	sweepInterval = time.Minute
	missingSweep  = 30 * time.Minute
)

// Schedule invokes the sweep.
type Schedule struct {
	*Deployment
	// Off is the time in which no sweep is scheduled, except a late one.
	Off outside.Window

	next time.Time // zero: none is scheduled
}

// Next schedules the next sweep for the first full minute at which an entry is due. A sweep over an empty index does
// nothing, so those are left out.
func (s *Schedule) Next() {
	due := s.Entries.FirstDue()
	if due.IsZero() {
		return
	}
	if due.Before(time.Now()) {
		due = time.Now()
	}
	at := due.Truncate(sweepInterval)
	if at.Before(due) || !at.After(time.Now()) {
		at = at.Add(sweepInterval)
	}
	if s.Off.Contains(at) {
		at = s.Off.To.Truncate(sweepInterval).Add(sweepInterval)
	}
	if at.After(s.End) || !s.next.IsZero() && !s.next.After(at) {
		return
	}
	if s.HappensNow("no sweep", s.Rates.NoSweep) {
		at = at.Add(missingSweep)
		s.Count("sweeps missing")
	}
	s.next = at
	s.Kernel.At(at, "sweep", func() {
		if !s.next.Equal(at) {
			return // an earlier one was scheduled since
		}
		s.next = time.Time{}
		s.sweep()
		if s.HappensNow("sweep twice", s.Rates.DoubleSweep) {
			s.Count("sweep twice")
			s.sweep()
		}
	})
}

// sweep invokes the sweep. The next one does not wait for its end.
func (s *Schedule) sweep() {
	s.Counts.Sweeps++
	at := time.Now()
	s.Invoke(Sweep, []byte(`{}`), func(r Result) {
		if r.Err != nil && time.Now().After(s.CalmFrom.Add(time.Minute)) {
			s.Fail("the sweep of %s failed without a fault: %s", at, r.Err)
		}
		s.Next()
	})
	s.Kernel.At(at.Add(time.Second), "next sweep", s.Next)
}
