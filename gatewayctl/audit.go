package gatewayctl

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// The outcomes in audit records.
const (
	OutcomeStarted = "started" // written before the change; if it stays, it is unknown whether the change was made
	OutcomeDone    = "done"
	OutcomeFailed  = "failed"
	// outcomeMalformed is shown for an item that is not a record.
	outcomeMalformed = "malformed"
)

// Record is an audit record: who changed what, when and why. A change has two records with one ID: the started one, and
// the one that completes it. IDs sort by time. The field Who is the identity that AWS returned for the credentials; on
// a local run it is "local:" and the user of the machine. Credential is the id of the access key that signed the
// requests, which is also in AWS's own log. Sequence and Previous are the record's place in the chain (decision
// "audit-chain"). Records of the older form have neither, and one record for each change.
type Record struct {
	Sequence    int64     `json:"sequence,omitempty"`
	Previous    string    `json:"previous,omitempty"`
	ID          string    `json:"id"`
	At          time.Time `json:"at" col:"AT"`
	CompletedAt time.Time `json:"completed_at,omitzero"`
	Who         string    `json:"who" col:"WHO"`
	Credential  string    `json:"credential,omitempty"`
	What        string    `json:"what" col:"WHAT"`
	Subject     string    `json:"subject" col:"SUBJECT"`
	Why         string    `json:"why" col:"WHY"`
	Outcome     string    `json:"outcome" col:"OUTCOME"`
	Detail      string    `json:"detail,omitempty" col:"DETAIL"`
}

// AuditItem is a stored record: its key, and its text, which may be damaged.
type AuditItem struct{ Key, Document string }

// AuditLog stores audit records. Nothing replaces a stored record.
type AuditLog interface {
	// Append stores a record behind the last one of the chain, and returns the item.
	Append(ctx context.Context, r Record) (AuditItem, error)
	// Items returns all items in no order, damaged ones too.
	Items(ctx context.Context) ([]AuditItem, error)
}

// AuditCopies keeps a copy of each record outside the tables. The writer cannot change or delete a copy.
type AuditCopies interface {
	// Write stores the document of a record that was written at a time.
	Write(ctx context.Context, at time.Time, document string) error
	// Documents returns all copies.
	Documents(ctx context.Context) ([]string, error)
}

// audited makes a change, or reads what must leave a trace, between its two audit records.
func (s *session) audited(action, subject string, act func() (done string, err error)) error {
	if len(s.Reason) > maxReasonBytes {
		return usageError("--reason is longer than %d bytes: shorten it", maxReasonBytes)
	}
	if s.stores.AuditCopies == nil {
		return errNoAuditCopies
	}
	record, err := s.newRecord(action, subject)
	if err == nil {
		err = s.appendRecord(s, record)
	}
	if err != nil {
		return fmt.Errorf("nothing was done, because the audit record could not be written: %w", err)
	}
	done, failed := act()
	record.Outcome, record.Detail = OutcomeDone, done
	if failed != nil {
		record.Outcome, record.Detail = OutcomeFailed, failureDetail(done, failed)
	}
	record.Detail = maskQueries(record.Detail)
	record.CompletedAt = s.Now().UTC().Truncate(time.Millisecond)
	// An interrupt must not leave the record incomplete.
	if err := s.appendRecord(context.WithoutCancel(s), record); err != nil {
		return errors.Join(failed,
			fmt.Errorf("the change was attempted, but its audit record %s could not be completed: %w", record.ID, err))
	}
	return failed
}

func (s *session) newRecord(action, subject string) (Record, error) {
	who, err := s.stores.Caller(s)
	at := s.Now().UTC().Truncate(time.Millisecond)
	random := make([]byte, 6)
	_, _ = io.ReadFull(s.Rand, random) // it only distinguishes changes of one millisecond
	return Record{
		ID: at.Format("20060102T150405.000Z") + "-" + hex.EncodeToString(random), At: at, Who: who,
		Credential: s.Getenv("AWS_ACCESS_KEY_ID"), What: action,
		Subject: maskQueries(subject), Why: maskQueries(s.Reason),
		Outcome: OutcomeStarted, Detail: s.plan,
	}, err
}

// appendRecord stores a record, and then its copy. If this ends between the two, audit verify reports the record until
// the next one has a copy.
func (s *session) appendRecord(ctx context.Context, r Record) error {
	item, err := s.stores.Audit.Append(ctx, r)
	if err != nil {
		return err
	}
	return s.stores.AuditCopies.Write(ctx, s.Now(), item.Document)
}

// auditedChanges returns changesOf all records.
func (s *session) auditedChanges() ([]Record, error) {
	if err := s.openStores(); err != nil {
		return nil, err
	}
	items, err := s.stores.Audit.Items(s)
	if err != nil {
		return nil, err
	}
	return changesOf(items), nil
}

// changesOf returns a record for each change, the one that completes it if there is one, the oldest first. An item that
// is not a record becomes a line of its own.
func changesOf(items []AuditItem) []Record {
	changes := map[string]Record{}
	for _, item := range items {
		e := readAuditItem(item)
		id := e.ID
		if e.isMalformed || !e.isChained {
			id = item.Key // an item outside the chain must not hide a change of the same ID
		}
		switch stored, found := changes[id]; {
		case !found || stored.Outcome == OutcomeStarted:
			changes[id] = e.Record
		case e.Outcome != OutcomeStarted: // a second completion is forged, and must not hide the change either
			changes[item.Key] = e.Record
		}
	}
	return slices.SortedFunc(maps.Values(changes), func(a, b Record) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Sequence, b.Sequence), strings.Compare(a.ID, b.ID))
	})
}

type auditCommands struct {
	List   auditList   `cmd:"" default:"withargs" help:"List the changes: who made them, when and why."`
	Verify auditVerify `cmd:"" help:"Find records that were changed, removed or moved."`
}

type auditList struct {
	Subject string `placeholder:"TEXT" help:"Only subjects with this text: a merchant's name, an order_id."`
	Since   utcDay `placeholder:"DAY" help:"Only records from this UTC day, yesterday or today on."`
}

// Run lists the changes, the oldest first. No filter hides what is malformed.
func (c *auditList) Run(s *session) error {
	records, err := s.auditedChanges()
	if err != nil {
		return err
	}
	since, subject := c.Since.Time, strings.ToLower(c.Subject)
	return showList(s, slices.DeleteFunc(records, func(r Record) bool {
		return r.Outcome != outcomeMalformed &&
			(r.At.Before(since) || !strings.Contains(strings.ToLower(r.Subject), subject))
	}))
}

// readAudit returns all items and copies. Other commands may write meanwhile. It reads the copies before the items, so
// that each copy has its record. It reads them again after the items, for the records that the first reading missed.
func readAudit(s *session) (items []AuditItem, copies []string, err error) {
	copies, err = s.stores.AuditCopies.Documents(s)
	if err == nil {
		items, err = s.stores.Audit.Items(s)
	}
	if err != nil {
		return nil, nil, err
	}
	later, err := s.stores.AuditCopies.Documents(s)
	found := map[string]bool{}
	for _, document := range copies {
		found[document] = true
	}
	for _, item := range items {
		if !found[item.Document] && slices.Contains(later, item.Document) {
			copies = append(copies, item.Document)
		}
	}
	return items, copies, err
}

type auditVerify struct {
	Since utcDay `placeholder:"DAY" help:"Only faults of records from this UTC day, yesterday or today on."`
}

// Run compares the chain with itself and with the copies.
func (c *auditVerify) Run(s *session) error {
	if err := s.openStores(); err != nil {
		return err
	}
	if s.stores.AuditCopies == nil {
		return errNoAuditCopies
	}
	items, copies, err := readAudit(s)
	if err != nil {
		return err
	}
	result := verifyAudit(items, copies, s.Now())
	since := c.Since.Time
	result.Faults = slices.DeleteFunc(result.Faults, func(f auditFault) bool {
		return !f.At.IsZero() && f.At.Before(since)
	})
	fmt.Fprintf(s.Stderr, "Compared %s with %s of the log: %s. %d without a copy, %d of the older form.\n",
		plural(result.Records, "record"), plural(result.Copies, "copy"), cmp.Or(
			map[int]string{0: "no fault"}[len(result.Faults)], plural(len(result.Faults), "fault")),
		result.WithoutCopy, result.OlderForm)
	err = s.show(result, listRows(result.Faults))
	if len(result.Faults) > 0 {
		err = errors.Join(err, errors.New("the audit records have faults: docs/operations.md says what to do"))
	}
	return err
}

// auditFileVariable has the path of the file with the copies of a local run.
const auditFileVariable = "AUDIT_LOG_FILE"

// fileCopies are AuditCopies in a file of this machine, one line for each record. Only a local run uses it, because its
// user may change the file.
type fileCopies struct{ path string }

var _ AuditCopies = fileCopies{}

// Write implements AuditCopies.
func (f fileCopies) Write(_ context.Context, _ time.Time, document string) error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(document + "\n")
	return errors.Join(err, file.Close())
}

// Documents implements AuditCopies.
func (f fileCopies) Documents(context.Context) (documents []string, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		documents = append(documents, strings.TrimSuffix(line, "\n"))
	}
	return documents, err
}
