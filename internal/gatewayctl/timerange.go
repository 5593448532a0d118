package gatewayctl

import (
	"encoding"
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"
)

const day = 24 * time.Hour

// utcDay is a flag's UTC day, as the time at which it begins.
type utcDay struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *utcDay) UnmarshalText(text []byte) (err error) {
	if d.Time, err = time.Parse(time.DateOnly, string(text)); err != nil {
		return fmt.Errorf("%q is not a day such as 2026-03-01, yesterday or today", text)
	}
	return nil
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
		return fmt.Errorf("%q is neither a day such as 2026-03-01, yesterday or today, "+
			"nor a time such as 2026-03-01T12:00:00Z", text)
	}
	m.Time = at.UTC()
	return nil
}

// decodeTime decodes a utcDay or a moment, by its name or as yesterday or today (UTC). It implements kong.MapperFunc.
func (t *Tool) decodeTime(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := c.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	now := t.env.now().UTC()
	switch text {
	case "today":
		text = now.Format(time.DateOnly)
	case "yesterday":
		text = now.Add(-day).Format(time.DateOnly)
	}
	return target.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
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
