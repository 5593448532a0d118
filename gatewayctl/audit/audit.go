// Package audit has gatewayctl's commands for the record of all changes and exports.
package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// Commands are the commands below audit.
type Commands struct {
	List   auditList   `cmd:"" default:"withargs" help:"List the changes: who made them, when and why."`
	Verify auditVerify `cmd:"" help:"Find records that were changed, removed or moved."`
}

type auditList struct {
	Subject string         `placeholder:"TEXT" help:"Only subjects with this text: a merchant's name, an order_id."`
	Since   session.UTCDay `placeholder:"DAY" help:"Only records from this UTC day, yesterday or today on."`
}

// Run lists the changes, the oldest first. No filter hides what is malformed.
func (c *auditList) Run(s *session.Session) error {
	records, err := s.AuditedChanges()
	if err != nil {
		return err
	}
	since, subject := c.Since.Time, strings.ToLower(c.Subject)
	return session.ShowList(s, slices.DeleteFunc(records, func(r auditlog.Record) bool {
		return r.Outcome != auditlog.OutcomeMalformed &&
			(r.At.Before(since) || !strings.Contains(strings.ToLower(r.Subject), subject))
	}))
}

type auditVerify struct {
	Since session.UTCDay `placeholder:"DAY" help:"Only faults of records from this UTC day, yesterday or today on."`
}

// Run compares the chain with itself and with the copies.
func (c *auditVerify) Run(s *session.Session) error {
	if err := s.OpenStores(); err != nil {
		return err
	}
	if s.Stores.AuditCopies == nil {
		return auditlog.ErrNoCopies
	}
	items, copies, err := readAudit(s)
	if err != nil {
		return err
	}
	result := Verify(items, copies, s.Now())
	since := c.Since.Time
	result.Faults = slices.DeleteFunc(result.Faults, func(f Fault) bool {
		return !f.At.IsZero() && f.At.Before(since)
	})
	fmt.Fprintf(s.Stderr, "Compared %s with %s of the log: %s. %d without a copy, %d of the older form.\n",
		output.Plural(result.Records, "record"), output.Plural(result.Copies, "copy"), cmp.Or(
			map[int]string{0: "no fault"}[len(result.Faults)], output.Plural(len(result.Faults), "fault")),
		result.WithoutCopy, result.OlderForm)
	err = s.Show(result, output.ListRows(result.Faults))
	if len(result.Faults) > 0 {
		err = errors.Join(err, errors.New("the audit records have faults: docs/operations.md says what to do"))
	}
	return err
}

// readAudit returns all items and copies. Other commands may write meanwhile. It reads the copies before the items, so
// that each copy has its record. It reads them again after the items, for the records that the first reading missed.
func readAudit(s *session.Session) (items []auditlog.Item, copies []string, err error) {
	copies, err = s.Stores.AuditCopies.Documents(s)
	if err == nil {
		items, err = s.Stores.Audit.Items(s)
	}
	if err != nil {
		return nil, nil, err
	}
	later, err := s.Stores.AuditCopies.Documents(s)
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
