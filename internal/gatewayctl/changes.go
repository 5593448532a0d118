package gatewayctl

import (
	"errors"
	"fmt"
	"strings"

	"mobilegateway/shared/ledger"
)

// Limits of an audit record's texts, in bytes.
const (
	maxReasonBytes = 500
	maxCauseBytes  = 500
)

// execute makes one command's change: with --yes between the two writes of its audit record, else as a dry run on
// readOnly stores. done describes the result, also of a change that failed half way. No text has a secret.
func (s *session) execute(action, subject string, change func() (done string, err error)) error {
	if s.Yes && s.Reason == "" {
		return usageError("--yes needs --reason: the audit record keeps it")
	}
	if err := s.openStores(); err != nil {
		return err
	}
	if !s.Yes {
		done, err := change()
		if err == nil {
			fmt.Fprintf(s.Stderr, "Dry run: %s, %s: %s. Nothing was changed; apply it with --yes --reason REASON.\n",
				action, subject, done)
		}
		return err
	}
	return s.audited(action, subject, change)
}

func (s *session) executeAndShow(
	action, subject string, change func() (done string, err error), show func() error,
) error {
	if err := s.execute(action, subject, change); err != nil {
		return err
	}
	return show()
}

// failureDetail describes a failed change and its cause, which it truncates. Errors contain no secret (see the
// package).
func failureDetail(done string, failed error) string {
	cause := replaceControlCharacters(failed.Error())
	if len(cause) > maxCauseBytes {
		cause = strings.ToValidUTF8(cause[:maxCauseBytes], "") + "..."
	}
	if done == "" {
		return "failed: " + cause
	}
	return done + "; failed: " + cause
}

// revealSecret returns the secret if it was really issued, else a placeholder.
func (s *session) revealSecret(secret string) string {
	if s.Yes {
		return secret
	}
	return "(shown with --yes)"
}

// entryChange changes an entry, or returns why it refuses to. ledger.ErrUnchanged leaves the entry as it is.
type entryChange func(*ledger.Entry) error

// changeIf is the entryChange that leaves an entry as it is if change returns false.
func changeIf(change func(*ledger.Entry) bool) entryChange {
	return func(e *ledger.Entry) error {
		if change(e) {
			return nil
		}
		return ledger.ErrUnchanged
	}
}

// changeEntry changes a stored entry and returns it.
func (s *session) changeEntry(key ledger.Key, change entryChange) (*ledger.Entry, error) {
	book := &ledger.Book{Store: s.stores.Ledger, Reader: s.stores.Ledger, Now: s.Now, Rand: s.Rand}
	return book.Change(s, key, change)
}

// resolveEntry is changeEntry, and adjusts the merchant's daily amount. limitRefundErr is why a refund failed: the
// entry is changed all the same.
func (s *session) resolveEntry(
	key ledger.Key, change entryChange,
) (resolved *ledger.Entry, limitRefundErr, err error) {
	var refused error
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) {
		return s.changeEntry(key, changeIf(change))
	}
	resolved, limitRefundErr, err = s.stores.DailyAmounts.StoreChange(s, store, func(e *ledger.Entry) bool {
		refused = change(e)
		return refused == nil
	})
	if refused != nil && !errors.Is(refused, ledger.ErrUnchanged) {
		return nil, nil, refused
	}
	return resolved, limitRefundErr, err
}
