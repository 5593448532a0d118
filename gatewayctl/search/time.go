package search

import (
	"fmt"
	"time"

	"mobilegateway/gatewayctl/session"
)

const day = session.Day

// Span is the time that a text means: a UTC day, or a moment, which ends when it begins.
type Span struct{ Begin, End time.Time }

// momentLayouts are the forms of a time in UTC without a zone, and of RFC 3339.
var momentLayouts = []string{
	"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05", time.RFC3339,
}

// ParseSpan reads a UTC day (2026-03-01, yesterday, today), a time of today in UTC (10:30), or a time of a day in UTC
// or with a zone (2026-03-01T10:30, 2026-03-01T10:30:00+01:00).
func ParseSpan(text string, now time.Time) (Span, error) {
	begin, err := session.ParseDay(text, now)
	if err != nil {
		return parseMoment(text, now.UTC().Truncate(day))
	}
	return Span{begin, begin.Add(day)}, nil
}

func parseMoment(text string, today time.Time) (Span, error) {
	for _, layout := range []string{"15:04", "15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			at = today.Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute +
				time.Duration(at.Second())*time.Second)
			return Span{at, at}, nil
		}
	}
	for _, layout := range momentLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return Span{at.UTC(), at.UTC()}, nil
		}
	}
	return Span{}, fmt.Errorf("%q is not a day such as 2026-03-01, yesterday or today, nor a time (UTC) such as 10:30 "+
		"or 2026-03-01T10:30", text)
}

// Range is when transactions were created: from Since on, and before Until.
type Range struct{ Since, Until time.Time }

// ParseRange reads the texts of both ends, "" for one that is not given. Without a beginning the range is from the
// beginning of its end's day, so that the range of two empty texts is today. Without an end it ends now.
func ParseRange(since, until string, now time.Time) (r Range, err error) {
	begin, end := Span{}, Span{}
	if since != "" {
		if begin, err = ParseSpan(since, now); err != nil {
			return r, fmt.Errorf("since: %w", err)
		}
	}
	r.Until = now.UTC().Truncate(time.Millisecond).Add(time.Millisecond) // an entry of this millisecond is in it
	if until != "" {
		if end, err = ParseSpan(until, now); err != nil {
			return r, fmt.Errorf("until: %w", err)
		}
		if end.End.Before(r.Until) {
			r.Until = end.End
		}
	}
	if r.Since = begin.Begin; since == "" {
		r.Since = r.Until.Add(-time.Millisecond).Truncate(day)
	}
	if !r.Since.Before(r.Until) {
		return r, fmt.Errorf("the time range is empty: it begins at %s and ends at %s. "+
			"A time without a day is of today (UTC)", r.Since.Format(time.RFC3339), r.Until.Format(time.RFC3339))
	}
	return r, nil
}
