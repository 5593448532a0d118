package gatewayctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

// Action names one change for the audit record: what is done to which merchant, transaction or secret. It has no
// secret.
type Action struct {
	Name    string
	Subject string
}

// entryChange changes an entry, or returns why it refuses to. ledger.ErrUnchanged leaves the entry as it is.
type entryChange func(*ledger.Entry) error

// changes is the set of writes a command may make. applied performs them; dryRun validates them and stores nothing. A
// command is written once for both.
type changes interface {
	// execute runs one command's change. done describes the result, also of a change that failed half way.
	execute(a Action, change func() (done string, err error)) error
	createMerchant(p *merchant.Profile) error
	updateMerchant(p *merchant.Profile) error
	putSecret(current StoredSecret, value []byte) error
	changeEntry(key ledger.Key, change entryChange) (*ledger.Entry, error)
	// resolveEntry is changeEntry, and adjusts the merchant's daily amount. limitRefundErr is why a refund failed: the
	// entry is changed all the same.
	resolveEntry(
		key ledger.Key, change entryChange,
	) (resolved *ledger.Entry, limitRefundErr, err error)
	saveEndpointState(h webhook.Health) error
	bookSlot(at *slotClient, requested slot) (slot, error)
	freeSlot(at *slotClient, id string) error
	// revealSecret returns the secret if it was really issued, else a placeholder.
	revealSecret(secret string) string
}

// Limits of an audit record's texts, in bytes.
const (
	maxReasonBytes = 500
	maxCauseBytes  = 500
)

var errEndpointChanged = errors.New("the endpoint was changed meanwhile: run the command again")

// applied performs changes, each between the two writes of its audit record.
type applied struct{ *session }

func (l *applied) execute(a Action, change func() (string, error)) error {
	if l.Reason == "" {
		return usageError("--yes needs --reason: the audit record keeps it")
	}
	if len(l.Reason) > maxReasonBytes {
		return usageError("--reason is longer than %d bytes: shorten it", maxReasonBytes)
	}
	stores, err := l.openStores()
	if err != nil {
		return err
	}
	record := newRecord(l.session, a)
	if err := stores.Audit.Record(l, record); err != nil {
		return fmt.Errorf("nothing was changed, because the audit record could not be written: %w", err)
	}
	done, failed := change()
	record.Outcome, record.Detail = OutcomeDone, done
	if failed != nil {
		record.Outcome, record.Detail = OutcomeFailed, failureDetail(done, failed)
	}
	// An interrupt must not leave the record incomplete.
	if err := stores.Audit.Record(context.WithoutCancel(l), record); err != nil {
		return errors.Join(failed,
			fmt.Errorf("the change was attempted, but its audit record %s could not be completed: %w", record.ID, err))
	}
	return failed
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

func (l *applied) createMerchant(p *merchant.Profile) error { return l.stores.Merchants.Create(l, p) }

func (l *applied) updateMerchant(p *merchant.Profile) error { return l.stores.Merchants.Update(l, p) }

func (l *applied) putSecret(current StoredSecret, value []byte) error {
	return l.stores.Secrets.Put(l, current, value)
}

func (l *applied) changeEntry(key ledger.Key, change entryChange) (*ledger.Entry, error) {
	book := &ledger.Book{Store: l.stores.Ledger, Reader: l.stores.Ledger, Now: l.Now, Rand: l.Rand}
	return book.Change(l, key, change)
}

func (l *applied) resolveEntry(
	key ledger.Key, change entryChange,
) (resolved *ledger.Entry, limitRefundErr, err error) {
	var refused error
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) {
		return l.changeEntry(key, func(e *ledger.Entry) error {
			if !change(e) {
				return ledger.ErrUnchanged
			}
			return nil
		})
	}
	resolved, limitRefundErr, err = l.stores.LimitCounter.StoreChange(l, store, func(e *ledger.Entry) bool {
		refused = change(e)
		return refused == nil
	})
	if refused != nil && !errors.Is(refused, ledger.ErrUnchanged) {
		return nil, nil, refused
	}
	return resolved, limitRefundErr, err
}

func (l *applied) saveEndpointState(h webhook.Health) error {
	saved, err := l.stores.EndpointHealth.SaveDisabled(l, h)
	if err == nil && !saved {
		return errEndpointChanged
	}
	return err
}

func (l *applied) bookSlot(at *slotClient, requested slot) (slot, error) { return at.book(requested) }

func (l *applied) freeSlot(at *slotClient, id string) error { return at.free(id) }

func (l *applied) revealSecret(secret string) string { return secret }

// dryRun validates changes: it returns the error of a change that would be refused, and stores nothing.
type dryRun struct{ *session }

func (d *dryRun) execute(a Action, change func() (string, error)) error {
	if _, err := d.openStores(); err != nil {
		return err
	}
	done, err := change()
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Stderr, "Dry run: %s, %s: %s. Nothing was changed; apply it with --yes --reason REASON.\n",
		a.Name, a.Subject, done)
	return nil
}

func (d *dryRun) createMerchant(p *merchant.Profile) error {
	holder, err := d.stores.Merchants.IDByName(d, p.Name)
	if err == nil && holder != "" {
		return merchant.ErrNameTaken
	}
	return err
}

func (d *dryRun) updateMerchant(p *merchant.Profile) error {
	stored, err := d.stores.Merchants.Profile(d, p.ID)
	switch {
	case err != nil:
		return err
	case stored == nil:
		return merchant.ErrNotFound
	case stored.Version != p.Version:
		return merchant.ErrVersionConflict
	}
	return nil
}

func (d *dryRun) putSecret(current StoredSecret, _ []byte) error {
	return d.stores.Secrets.CheckPut(d, current)
}

func (d *dryRun) changeEntry(key ledger.Key, change entryChange) (*ledger.Entry, error) {
	entry, err := d.stores.Ledger.Get(d, key)
	switch {
	case err != nil:
		return nil, err
	case entry == nil || entry.PastRetention(d.Now()):
		return nil, ledger.ErrNotFound
	}
	if err := change(entry); err != nil && !errors.Is(err, ledger.ErrUnchanged) {
		return nil, err
	}
	return entry, nil
}

func (d *dryRun) resolveEntry(
	key ledger.Key, change entryChange,
) (resolved *ledger.Entry, limitRefundErr, err error) {
	resolved, err = d.changeEntry(key, change)
	return resolved, nil, err
}

func (d *dryRun) saveEndpointState(h webhook.Health) error {
	stored, err := d.stores.EndpointHealth.Health(d, h.Endpoint)
	if err == nil && stored.DisabledVersion != h.DisabledVersion {
		return errEndpointChanged
	}
	return err
}

func (d *dryRun) bookSlot(at *slotClient, requested slot) (slot, error) {
	return requested, at.checkBookable(requested)
}

func (d *dryRun) freeSlot(at *slotClient, id string) error { return at.checkExists(id) }

func (d *dryRun) revealSecret(string) string { return "(shown with --yes)" }
