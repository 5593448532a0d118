package gatewayctl

import (
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"
)

const day = 24 * time.Hour

// utcDay is a flag's UTC day, as the time at which it begins.
type utcDay struct{ time.Time }

// moment is a flag's UTC day or RFC 3339 time.
type moment struct {
	time.Time
	wholeDay bool
}

// decodeTime decodes a utcDay or a moment. A day is also yesterday or today (UTC). It implements kong.MapperFunc.
func (t *Tool) decodeTime(c *kong.DecodeContext, target reflect.Value) (err error) {
	var text string
	if err := c.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	today := t.env.now().UTC().Truncate(day)
	at, named := map[string]time.Time{"today": today, "yesterday": today.Add(-day)}[text]
	if !named {
		at, err = time.Parse(time.DateOnly, text)
	}
	switch to := target.Addr().Interface().(type) {
	case *utcDay:
		if to.Time = at; err != nil {
			err = fmt.Errorf("%q is not a day such as 2026-03-01, yesterday or today", text)
		}
	case *moment:
		if to.wholeDay = err == nil; err != nil {
			at, err = time.Parse(time.RFC3339, text)
		}
		if to.Time = at.UTC(); err != nil {
			err = fmt.Errorf("%q is neither a day such as 2026-03-01, yesterday or today, "+
				"nor a time such as 2026-03-01T12:00:00Z", text)
		}
	}
	return err
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
