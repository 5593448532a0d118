package gatewayctl

import (
	"fmt"
	"time"
)

const day = 24 * time.Hour

// utcDay is a flag's UTC day, as the time at which it begins.
type utcDay struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *utcDay) UnmarshalText(text []byte) (err error) {
	if d.Time, err = time.Parse(time.DateOnly, string(text)); err != nil {
		return fmt.Errorf("%q is not a day such as 2026-03-01", text)
	}
	return nil
}

// sinceDay is the flag --since: a UTC day, yesterday or today. Only from knows which day that is.
type sinceDay struct {
	utcDay
	daysAgo int // of a named day
	isNamed bool
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *sinceDay) UnmarshalText(text []byte) error {
	d.daysAgo, d.isNamed = namedDays[string(text)]
	if d.isNamed {
		return nil
	}
	if d.utcDay.UnmarshalText(text) != nil {
		return fmt.Errorf("%q is not a day such as 2026-03-01, yesterday or today", text)
	}
	return nil
}

// namedDays are the names of days, and how many days ago they are. It is never changed.
var namedDays = map[string]int{"today": 0, "yesterday": 1}

// isSet reports whether the flag was given.
func (d sinceDay) isSet() bool { return d.isNamed || !d.IsZero() }

// from returns when the day begins, zero if the flag was not given.
func (d sinceDay) from(now time.Time) time.Time {
	if d.isNamed {
		return now.UTC().Truncate(day).AddDate(0, 0, -d.daysAgo)
	}
	return d.Time
}

// moment is a flag's UTC day or RFC 3339 time.
type moment struct {
	time.Time
	wholeDay bool
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *moment) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.DateOnly, string(text))
	m.wholeDay = err == nil
	if err != nil {
		at, err = time.Parse(time.RFC3339, string(text))
	}
	if err != nil {
		return fmt.Errorf("%q is neither a day such as 2026-03-01 nor a time such as 2026-03-01T12:00:00Z", text)
	}
	m.Time = at.UTC()
	return nil
}

// dayRange are the flags of a range of UTC days.
type dayRange struct {
	From utcDay `placeholder:"DAY" help:"The first UTC day of creation, such as 2026-03-01."`
	To   utcDay `placeholder:"DAY" help:"The last UTC day of creation."`
}

// times returns the range as times: its last day is in it.
func (r dayRange) times() timeRange {
	return timeRange{moment{r.From.Time, true}, moment{r.To.Time, true}}
}

// timeRange are the flags of a range of times.
type timeRange struct {
	From moment `placeholder:"TIME" help:"The first UTC day, or RFC 3339 time, of the statuses."`
	To   moment `placeholder:"TIME" help:"The last UTC day, or the RFC 3339 time before which the range ends."`
}

// end returns when the range ends. A day as the end is in the range, a time is not.
func (r timeRange) end() time.Time {
	if r.To.wholeDay {
		return r.To.Add(day)
	}
	return r.To.Time
}

// contains reports whether a time is in the range. A flag that is not given leaves it open.
func (r timeRange) contains(at time.Time) bool {
	return !at.Before(r.From.Time) && (r.To.IsZero() || at.Before(r.end()))
}

// bounds returns when the range begins and when it ends, if it has both and is not empty.
func (r timeRange) bounds() (from, to time.Time, err error) {
	if r.From.IsZero() || r.To.IsZero() {
		return from, to, usageError("missing flags: a range needs --from and --to")
	}
	if !r.end().After(r.From.Time) {
		return from, to, usageError("the range is empty: --to must be after --from %s", formatTime(r.From.Time))
	}
	return r.From.Time, r.end(), nil
}
