package gatewayctl

import (
	"context"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"time"
)

// The outcomes in audit records.
const (
	OutcomeStarted = "started" // written before the change; if it stays, it is unknown whether the change was made
	OutcomeDone    = "done"
	OutcomeFailed  = "failed"
)

// Record is an audit record: who changed what, when and why. Every command with --yes has one: the item "audit#<ID>" of
// the merchant table. IDs sort by time. The field Who is the --who flag or the user of the machine. Credential is the
// id of the access key that signed the requests, which is also in AWS's own log.
type Record struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at" col:"AT"`
	Who        string    `json:"who" col:"WHO"`
	Credential string    `json:"credential,omitempty"`
	What       string    `json:"what" col:"WHAT"`
	Subject    string    `json:"subject" col:"SUBJECT"`
	Why        string    `json:"why" col:"WHY"`
	Outcome    string    `json:"outcome" col:"OUTCOME"`
	Detail     string    `json:"detail,omitempty" col:"DETAIL"`
}

// AuditLog stores audit records.
type AuditLog interface {
	// Record stores a record under its id. A started record must be the first of its id; any other replaces the started
	// record of the same change. Everything else is an error.
	Record(ctx context.Context, r Record) error
	// Records returns all records in no order.
	Records(ctx context.Context) ([]Record, error)
}

func newRecord(s *session, action, subject string) Record {
	at := s.Now().UTC().Truncate(time.Millisecond)
	random := make([]byte, 6)
	_, _ = io.ReadFull(s.Rand, random) // it only distinguishes changes of one millisecond
	return Record{
		ID: at.Format("20060102T150405.000Z") + "-" + hex.EncodeToString(random), At: at, Who: s.auditUser(),
		Credential: s.Getenv("AWS_ACCESS_KEY_ID"), What: action,
		Subject: maskQueries(subject), Why: maskQueries(s.Reason),
		Outcome: OutcomeStarted,
	}
}

type auditCommand struct {
	Subject string `placeholder:"TEXT" help:"Only records whose subject has this text: a merchant's name, an order_id."`
	Since   utcDay `placeholder:"DAY" help:"Only records from this UTC day on, such as 2026-03-01."`
}

// Run lists the records, the oldest first.
func (c *auditCommand) Run(s *session) error {
	if err := s.openStores(); err != nil {
		return err
	}
	records, err := s.stores.Audit.Records(s)
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(r Record) bool {
		return r.At.Before(c.Since.Time) || !strings.Contains(strings.ToLower(r.Subject), strings.ToLower(c.Subject))
	})
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	return showList(s, records)
}
