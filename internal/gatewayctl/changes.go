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

// Action is one command that changes something, as the audit record names it: what is done, and to which merchant,
// transaction or secret. It holds no secret.
type Action struct {
	Name    string
	Subject string
}

// changes is all that a command can change. There are two: live, which does it, and dry, which tries it and stores nothing.
// A command is written once and does not know which hand it has.
type changes interface {
	// execute runs one command's changes. done says in words what became of them, also where it failed half way.
	execute(a Action, change func() (done string, err error)) error
	createMerchant(p *merchant.Profile) error
	updateMerchant(p *merchant.Profile) error
	putSecret(current StoredSecret, value []byte) error
	changeEntry(key ledger.Key, change func(*ledger.Entry) error) (*ledger.Entry, error)
	// resolveEntry is changeEntry, and keeps the merchant's amount of the day in step. uncounted is why that could not be given back.
	resolveEntry(key ledger.Key, change func(*ledger.Entry) error) (resolved *ledger.Entry, limitRefundErr, err error)
	saveEndpointState(h webhook.Health) error
	bookSlot(at *slotClient, requested slot) (slot, error)
	freeSlot(at *slotClient, id string) error
	// revealSecret gives the text of a secret where it is really issued.
	revealSecret(secret string) string
}

// Limits of an audit record's texts, in bytes.
const (
	maxReasonBytes = 500
	maxCauseBytes  = 500
)

// applied does what it is told, between the two halves of an audit record.
type applied struct{ *session }

func (l *applied) execute(a Action, change func() (string, error)) error {
	if l.Reason == "" {
		return usageError("--yes needs --reason: the reason is kept with the change")
	}
	if len(l.Reason) > maxReasonBytes {
		return usageError("--reason is longer than %d bytes: it is kept with the change", maxReasonBytes)
	}
	stores, err := l.openStores()
	if err != nil {
		return err
	}
	record := newRecord(l.session, a)
	if err := stores.Audit.Record(l, record); err != nil {
		return fmt.Errorf("nothing was changed, as no audit record could be written: %w", err)
	}
	done, failed := change()
	record.Outcome, record.Detail = OutcomeDone, done
	if failed != nil {
		record.Outcome, record.Detail = OutcomeFailed, failureDetail(done, failed)
	}
	// An interrupt must not leave the record half written.
	if err := stores.Audit.Record(context.WithoutCancel(l), record); err != nil {
		return errors.Join(failed, fmt.Errorf("it was tried, but its audit record %s could not be completed: %w", record.ID, err))
	}
	return failed
}

// failureDetail says what became of an act that failed, and why. An error holds no secret (see the package), and of one that
// quotes much the beginning is kept.
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

func (l *applied) changeEntry(key ledger.Key, change func(*ledger.Entry) error) (*ledger.Entry, error) {
	return l.ledgerBook(l.stores).Change(l, key, change)
}

func (l *applied) resolveEntry(key ledger.Key, change func(*ledger.Entry) error) (resolved *ledger.Entry, limitRefundErr, err error) {
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
		return errors.New("the endpoint was changed by another hand: try again")
	}
	return err
}

func (l *applied) bookSlot(at *slotClient, requested slot) (slot, error) { return at.book(requested) }

func (l *applied) freeSlot(at *slotClient, id string) error { return at.free(id) }

func (l *applied) revealSecret(secret string) string { return secret }

// dryRun reads what is there and finds out whether the change would be refused. It stores nothing.
type dryRun struct{ *session }

func (d *dryRun) execute(a Action, change func() (string, error)) error {
	if _, err := d.openStores(); err != nil {
		return err
	}
	done, err := change()
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Stderr, "Dry run: %s, %s: %s. Nothing was changed; --yes --reason REASON does it.\n", a.Name, a.Subject, done)
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

func (d *dryRun) putSecret(StoredSecret, []byte) error { return nil }

func (d *dryRun) changeEntry(key ledger.Key, change func(*ledger.Entry) error) (*ledger.Entry, error) {
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

func (d *dryRun) resolveEntry(key ledger.Key, change func(*ledger.Entry) error) (resolved *ledger.Entry, limitRefundErr, err error) {
	resolved, err = d.changeEntry(key, change)
	return resolved, nil, err
}

func (d *dryRun) saveEndpointState(webhook.Health) error { return nil }

func (d *dryRun) bookSlot(at *slotClient, requested slot) (slot, error) {
	return requested, at.checkBookable(requested)
}

func (d *dryRun) freeSlot(at *slotClient, id string) error { return at.checkExists(id) }

func (d *dryRun) revealSecret(string) string { return "(shown with --yes)" }
