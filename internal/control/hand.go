package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/settlement"
	"mobilegateway/shared/webhook"
)

// Act is one command that changes something, as the audit record names it: what is done, and to which merchant,
// transaction or secret. It holds no secret.
type Act struct {
	What    string
	Subject string
}

// hand is all that a command can change. There are two: live, which does it, and dry, which tries it and stores nothing.
// A command is written once and does not know which hand it has.
type hand interface {
	// act runs one command's changes. done says in words what became of them, also where it failed half way.
	act(a Act, change func() (done string, err error)) error
	createMerchant(p *merchant.Profile) error
	updateMerchant(p *merchant.Profile) error
	putSecret(held Held, value []byte) error
	changeEntry(key ledger.Key, change func(*ledger.Entry) error) (*ledger.Entry, error)
	// settle is changeEntry, and keeps the merchant's amount of the day in step. uncounted is why that could not be given back.
	settle(desk *settlement.Desk, key ledger.Key, change func(*ledger.Entry) error) (settled *ledger.Entry, uncounted, err error)
	saveDisabled(h webhook.Health) error
	bookSlot(at *calendar, wanted slot) (slot, error)
	freeSlot(at *calendar, id string) error
	// reveal gives the text of a secret where it is really issued.
	reveal(secret string) string
}

// Limits of an audit record's texts, in bytes.
const (
	maxWhy   = 500
	maxCause = 500
)

// live does what it is told, between the two halves of an audit record.
type live struct{ *session }

func (l *live) act(a Act, change func() (string, error)) error {
	if l.Why == "" {
		return usage("--yes needs --why: the reason is kept with the change")
	}
	if len(l.Why) > maxWhy {
		return usage("--why is longer than %d bytes: it is kept with the change", maxWhy)
	}
	stores, err := l.open()
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
		record.Outcome, record.Detail = OutcomeFailed, failedDetail(done, failed)
	}
	// An interrupt must not leave the record half written.
	if err := stores.Audit.Record(context.WithoutCancel(l), record); err != nil {
		return errors.Join(failed, fmt.Errorf("it was tried, but its audit record %s could not be completed: %w", record.ID, err))
	}
	return failed
}

// failedDetail says what became of an act that failed, and why. An error holds no secret (see the package), and of one that
// quotes much the beginning is kept.
func failedDetail(done string, failed error) string {
	cause := printable(failed.Error())
	if len(cause) > maxCause {
		cause = strings.ToValidUTF8(cause[:maxCause], "") + "..."
	}
	if done == "" {
		return "failed: " + cause
	}
	return done + "; failed: " + cause
}

func (l *live) createMerchant(p *merchant.Profile) error { return l.stores.Merchants.Create(l, p) }

func (l *live) updateMerchant(p *merchant.Profile) error { return l.stores.Merchants.Update(l, p) }

func (l *live) putSecret(held Held, value []byte) error { return l.stores.Secrets.Put(l, held, value) }

func (l *live) changeEntry(key ledger.Key, change func(*ledger.Entry) error) (*ledger.Entry, error) {
	return l.book(l.stores).Change(l, key, change)
}

func (l *live) settle(desk *settlement.Desk, key ledger.Key, change func(*ledger.Entry) error) (settled *ledger.Entry, uncounted, err error) {
	var refused error
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) {
		return l.changeEntry(key, func(e *ledger.Entry) error {
			if !change(e) {
				return ledger.ErrUnchanged
			}
			return nil
		})
	}
	settled, uncounted, err = desk.Keep(l, store, func(e *ledger.Entry) bool {
		refused = change(e)
		return refused == nil
	})
	if refused != nil && !errors.Is(refused, ledger.ErrUnchanged) {
		return nil, nil, refused
	}
	return settled, uncounted, err
}

func (l *live) saveDisabled(h webhook.Health) error {
	saved, err := l.stores.Health.SaveDisabled(l, h)
	if err == nil && !saved {
		return errors.New("the endpoint was changed by another hand: try again")
	}
	return err
}

func (l *live) bookSlot(at *calendar, wanted slot) (slot, error) { return at.book(wanted) }

func (l *live) freeSlot(at *calendar, id string) error { return at.free(id) }

func (l *live) reveal(secret string) string { return secret }

// dry reads what is there and finds out whether the change would be refused. It stores nothing.
type dry struct{ *session }

func (d *dry) act(a Act, change func() (string, error)) error {
	if _, err := d.open(); err != nil {
		return err
	}
	done, err := change()
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Notes, "Dry run: %s, %s: %s. Nothing was changed; --yes --why REASON does it.\n", a.What, a.Subject, done)
	return nil
}

func (d *dry) createMerchant(p *merchant.Profile) error {
	holder, err := d.stores.Merchants.IDOf(d, p.Name)
	if err == nil && holder != "" {
		return merchant.ErrNameTaken
	}
	return err
}

func (d *dry) updateMerchant(p *merchant.Profile) error {
	stored, err := d.stores.Merchants.Profile(d, p.ID)
	switch {
	case err != nil:
		return err
	case stored == nil:
		return merchant.ErrGone
	case stored.Version != p.Version:
		return merchant.ErrChanged
	}
	return nil
}

func (d *dry) putSecret(Held, []byte) error { return nil }

func (d *dry) changeEntry(key ledger.Key, change func(*ledger.Entry) error) (*ledger.Entry, error) {
	entry, err := d.stores.Ledger.Get(d, key)
	switch {
	case err != nil:
		return nil, err
	case entry == nil || entry.Expired(d.Now()):
		return nil, ledger.ErrGone
	}
	if err := change(entry); err != nil && !errors.Is(err, ledger.ErrUnchanged) {
		return nil, err
	}
	return entry, nil
}

func (d *dry) settle(_ *settlement.Desk, key ledger.Key, change func(*ledger.Entry) error) (settled *ledger.Entry, uncounted, err error) {
	settled, err = d.changeEntry(key, change)
	return settled, nil, err
}

func (d *dry) saveDisabled(webhook.Health) error { return nil }

func (d *dry) bookSlot(at *calendar, wanted slot) (slot, error) { return wanted, at.mayBook(wanted) }

func (d *dry) freeSlot(at *calendar, id string) error { return at.mayFree(id) }

func (d *dry) reveal(string) string { return "(shown with --yes)" }
