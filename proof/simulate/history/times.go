package history

import "time"

const (
	// QuietTime is the time without faults at the end of a history: longer than all deliveries and lookups.
	QuietTime = 11 * 24 * time.Hour
	// MaxSkew is the greatest difference between two clocks.
	MaxSkew = 40 * time.Second
)

// Start is the time at which each bubble of testing/synctest begins.
var Start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Times are the times at which the parts of a history end.
type Times struct {
	FaultsEnd time.Time
	CalmFrom  time.Time // nothing is broken any more
	LastRound time.Time // of the engineer; zero without one
	End       time.Time
}

// Begin sets the length of the faults.
func (t *Times) Begin(length time.Duration) {
	t.FaultsEnd = Start.Add(length)
	t.End = t.FaultsEnd.Add(QuietTime)
}

// FaultsOn reports whether faults may still happen.
func (t *Times) FaultsOn() bool { return time.Now().Before(t.FaultsEnd) }

// BrokenUntil records that something is broken until a time.
func (t *Times) BrokenUntil(at time.Time) { t.CalmFrom = Latest(t.CalmFrom, at) }

// Latest is the last of some times, zero for none.
func Latest(times ...time.Time) time.Time {
	var last time.Time
	for _, at := range times {
		if at.After(last) {
			last = at
		}
	}
	return last
}
