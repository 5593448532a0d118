package session

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/output"
)

// Show writes a result: with --json as JSON, else as a table. That of a dry run is marked: a program must not take it
// for a change.
func (s *Session) Show(value any, rows output.Table) error {
	if s.JSON && s.isDryRun {
		return output.WriteJSON(s.Stdout, markDryRun(value))
	}
	if s.JSON {
		return output.WriteJSON(s.Stdout, value)
	}
	heading := ""
	if s.isDryRun {
		heading = "With --yes this would be:\n"
	}
	return rows.Write(s.Stdout, heading)
}

// markDryRun returns an object with "dry_run": true as its first member. Another value stays as it is.
func markDryRun(value any) any {
	var encoded bytes.Buffer
	err := output.WriteJSON(&encoded, value)
	members, isObject := strings.CutPrefix(encoded.String(), "{\n")
	if err != nil || !isObject {
		return value
	}
	return json.RawMessage(`{"dry_run":true,` + members)
}

// ShowView writes one view. Its fields with a row tag are the rows of the table, unless they are empty.
func (s *Session) ShowView(view any) error { return s.Show(view, output.Rows(view)) }

// ShowList writes a list of views. Their fields with a col tag are the columns of the table.
func ShowList[T any](s *Session, views []T) error {
	if len(views) == 0 && !s.JSON {
		_, err := fmt.Fprintln(s.Stderr, "There is none.")
		return err
	}
	return s.Show(append([]T{}, views...), output.ListRows(views))
}

// RevealSecret returns the secret if it was really issued, else a placeholder.
func (s *Session) RevealSecret(secret string) string {
	return s.IfApplied(secret, "(shown with --yes)")
}

// IfApplied returns the first text for a change that is made, the second one for a dry run.
func (s *Session) IfApplied(applied, dryRun string) string {
	if s.Yes {
		return applied
	}
	return dryRun
}

// Limits of an audit record's texts, in bytes.
const (
	maxReasonBytes = 500
	maxCauseBytes  = 500
)

// Execute makes one command's change: with --yes between the two writes of its audit record, else as a dry run on
// readOnly stores. done describes the result, also of a change that failed half way. No text has a secret.
func (s *Session) Execute(action, subject string, change func() (done string, err error)) error {
	if s.Yes && s.Reason == "" {
		return output.UsageError("--yes needs --reason: the audit record keeps it")
	}
	if err := s.OpenStores(); err != nil {
		return err
	}
	if s.isDryRun = !s.Yes; s.isDryRun {
		done, err := change()
		if err == nil {
			fmt.Fprintf(s.Stderr, "Dry run: this would %s, %s: %s. Nothing was changed; "+
				"apply it with --yes --reason REASON.\n", action, subject, done)
		}
		return err
	}
	return s.Audited(action, subject, change)
}

// ExecuteAndShow is Execute, and then shows the result.
func (s *Session) ExecuteAndShow(
	action, subject string, change func() (done string, err error), show func() error,
) error {
	if err := s.Execute(action, subject, change); err != nil {
		return err
	}
	return show()
}

// failureDetail describes a failed change and its cause, which it truncates. Errors contain no secret (see the
// package).
func failureDetail(done string, failed error) string {
	cause := output.ReplaceControlCharacters(failed.Error())
	if len(cause) > maxCauseBytes {
		cause = strings.ToValidUTF8(cause[:maxCauseBytes], "") + "..."
	}
	if done == "" {
		return "failed: " + cause
	}
	return done + "; failed: " + cause
}

// Audited makes a change, or reads what must leave a trace, between its two audit records.
func (s *Session) Audited(action, subject string, change func() (done string, err error)) error {
	if len(s.Reason) > maxReasonBytes {
		return output.UsageError("--reason is longer than %d bytes: shorten it", maxReasonBytes)
	}
	if s.Stores.AuditCopies == nil {
		return auditlog.ErrNoCopies
	}
	record, err := s.newRecord(action, subject)
	if err == nil {
		err = s.appendRecord(s, record)
	}
	if err != nil {
		return fmt.Errorf("nothing was done, because the audit record could not be written: %w", err)
	}
	done, failed := change()
	record.Outcome, record.Detail = auditlog.OutcomeDone, done
	if failed != nil {
		record.Outcome, record.Detail = auditlog.OutcomeFailed, failureDetail(done, failed)
	}
	record.Detail = output.MaskQueries(record.Detail)
	record.CompletedAt = s.Now().UTC().Truncate(time.Millisecond)
	// An interrupt must not leave the record incomplete.
	if err := s.appendRecord(context.WithoutCancel(s), record); err != nil {
		return errors.Join(failed,
			fmt.Errorf("the change was attempted, but its audit record %s could not be completed: %w", record.ID, err))
	}
	return failed
}

func (s *Session) newRecord(action, subject string) (auditlog.Record, error) {
	who, err := s.Stores.Caller(s)
	at := s.Now().UTC().Truncate(time.Millisecond)
	random := make([]byte, 6)
	_, _ = io.ReadFull(s.Rand, random) // it only distinguishes changes of one millisecond
	return auditlog.Record{
		ID: at.Format("20060102T150405.000Z") + "-" + hex.EncodeToString(random), At: at, Who: who,
		Credential: s.Getenv("AWS_ACCESS_KEY_ID"), What: action,
		Subject: output.MaskQueries(subject), Why: output.MaskQueries(s.Reason),
		Outcome: auditlog.OutcomeStarted, Detail: s.Plan,
	}, err
}

// appendRecord stores a record, and then its copy. If this ends between the two, audit verify reports the record until
// the next one has a copy.
func (s *Session) appendRecord(ctx context.Context, r auditlog.Record) error {
	item, err := s.Stores.Audit.Append(ctx, r)
	if err != nil {
		return err
	}
	return s.Stores.AuditCopies.Write(ctx, s.Now(), item.Document)
}

// AuditedChanges returns auditlog.Changes of all records.
func (s *Session) AuditedChanges() ([]auditlog.Record, error) {
	if err := s.OpenStores(); err != nil {
		return nil, err
	}
	items, err := s.Stores.Audit.Items(s)
	if err != nil {
		return nil, err
	}
	return auditlog.Changes(items), nil
}
