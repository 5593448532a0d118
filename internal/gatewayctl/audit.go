package gatewayctl

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The outcomes of an act in its audit record.
const (
	OutcomeStarted = "begun" // written before the change: where it stays, nobody knows whether it was done
	OutcomeDone    = "done"
	OutcomeFailed  = "failed"
)

// Record is an audit record: who did what, when and why. One is kept for every act with --yes, as the item "audit#<ID>"
// of the merchant table, beside what most acts change; ids sort by time. Who is what the tool was told or found on the
// machine; Credential is the id of the access key that the requests were signed with, which AWS's own log knows.
type Record struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Who        string    `json:"who"`
	Credential string    `json:"credential,omitempty"`
	What       string    `json:"what"`
	Subject    string    `json:"subject"`
	Why        string    `json:"why"`
	Outcome    string    `json:"outcome"`
	Detail     string    `json:"detail,omitempty"`
}

// AuditLog keeps audit records.
type AuditLog interface {
	// Record stores a record under its id: one whose outcome is begun where there is none, and any other in the place of its
	// own first half. It is an error where another record stands there.
	Record(ctx context.Context, r Record) error
	// Records reads all records, in no order.
	Records(ctx context.Context) ([]Record, error)
}

// newRecord begins the record of an act.
func newRecord(s *session, a Action) Record {
	at := s.Now().UTC().Truncate(time.Millisecond)
	random := make([]byte, 6)
	_, _ = io.ReadFull(s.Rand, random) // it tells acts of one millisecond apart, no more
	return Record{
		ID: at.Format("20060102T150405.000Z") + "-" + hex.EncodeToString(random), At: at, Who: s.auditUser(),
		Credential: s.Getenv("AWS_ACCESS_KEY_ID"), What: a.Name, Subject: a.Subject, Why: s.Reason, Outcome: OutcomeStarted,
	}
}

type auditCommand struct {
	Subject string `placeholder:"TEXT" help:"Only records whose subject has this text: a merchant's name, an order_id."`
	Since   string `placeholder:"DAY" help:"Only records from this UTC day on (2006-01-02)."`
}

// Run lists the records, the oldest first.
func (c *auditCommand) Run(s *session) error {
	var since time.Time
	if c.Since != "" {
		day, err := parseDay(c.Since)
		if err != nil {
			return err
		}
		since = day
	}
	stores, err := s.openStores()
	if err != nil {
		return err
	}
	records, err := stores.Audit.Records(s)
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(r Record) bool {
		return r.At.Before(since) || !strings.Contains(strings.ToLower(r.Subject), strings.ToLower(c.Subject))
	})
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	rows := table{{"AT", "WHO", "WHAT", "SUBJECT", "WHY", "OUTCOME", "DETAIL"}}
	for _, r := range records {
		rows = append(rows, []string{formatTime(r.At), r.Who, r.What, r.Subject, r.Why, r.Outcome, r.Detail})
	}
	return s.show(records, rows)
}

// parseDay reads a UTC day.
func parseDay(text string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, usageError("%q is not a day such as 2026-03-01", text)
	}
	return day, nil
}

// parseMoment reads a UTC day or a moment of RFC 3339.
func parseMoment(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err == nil {
		return at.UTC(), nil
	}
	at, err = time.Parse(time.DateOnly, text)
	if err != nil {
		return at, usageError("%q is neither a day such as 2026-03-01 nor a moment such as 2026-03-01T12:00:00Z", text)
	}
	return at, nil
}

// parseRange reads --from and --to as days or moments, to the moment before which it ends: a day of --to is in the range.
func parseRange(first, last string) (from, to time.Time, err error) {
	if from, err = parseMoment(first); err != nil {
		return from, to, err
	}
	if to, err = parseMoment(last); err != nil {
		return from, to, err
	}
	if len(last) == len(time.DateOnly) {
		to = to.Add(day)
	}
	if !to.After(from) {
		return from, to, usageError("nothing lies between --from %s and --to %s", first, last)
	}
	return from, to, nil
}

// parseDays is parseRange for days alone.
func parseDays(first, last string) (from, to time.Time, err error) {
	for _, text := range []string{first, last} {
		if _, err := parseDay(text); err != nil {
			return from, to, err
		}
	}
	return parseRange(first, last)
}

// plural writes a number of things.
func plural(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(thing, "y"))
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
