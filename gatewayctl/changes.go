package gatewayctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
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
	if s.isDryRun = !s.Yes; s.isDryRun {
		done, err := change()
		if err == nil {
			fmt.Fprintf(s.Stderr, "Dry run: this would %s, %s: %s. Nothing was changed; "+
				"apply it with --yes --reason REASON.\n", action, subject, done)
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
	return s.ifApplied(secret, "(shown with --yes)")
}

// ifApplied returns the first text for a change that is made, the second one for a dry run.
func (s *session) ifApplied(applied, dryRun string) string {
	if s.Yes {
		return applied
	}
	return dryRun
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

func changeEntry(s *session, key ledger.Key, change entryChange) (*ledger.Entry, error) {
	book := &ledger.Book{Store: s.stores.Ledger, Reader: s.stores.Ledger, Now: s.Now, Rand: s.Rand}
	return book.Change(s, key, change)
}

// resolveEntry is changeEntry, and adjusts the merchant's daily amount. limitRefundErr is why a refund failed: the
// entry is changed all the same.
func resolveEntry(
	s *session, key ledger.Key, change entryChange,
) (resolved *ledger.Entry, limitRefundErr, err error) {
	var refused error
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) {
		return changeEntry(s, key, changeIf(change))
	}
	stored, err := s.stores.DailyAmounts.StoreChange(s, store, func(e *ledger.Entry) bool {
		refused = change(e)
		return refused == nil
	})
	if refused != nil && !errors.Is(refused, ledger.ErrUnchanged) {
		return nil, nil, refused
	}
	return stored.Entry, stored.RefundErr, err
}

// readOnly returns the stores of a dry run. Each write that a command makes returns the refusal that the real write
// would return, and stores nothing. A dry run writes no audit record.
func (s Stores) readOnly() *Stores {
	s.Merchants, s.Ledger = readOnlyMerchants{s.Merchants}, readOnlyLedger{s.Ledger}
	s.EndpointHealth, s.Secrets = readOnlyHealth{s.EndpointHealth}, readOnlySecrets{s.Secrets}
	if s.DailyAmounts != nil {
		amounts := *s.DailyAmounts
		amounts.Store = readOnlyAmounts{}
		s.DailyAmounts = &amounts
	}
	return &s
}

type readOnlyMerchants struct{ merchant.Registry }

// Create checks that the name is free.
func (m readOnlyMerchants) Create(ctx context.Context, p *merchant.Profile) error {
	holder, err := m.IDByName(ctx, p.Name)
	if err == nil && holder != "" {
		return merchant.ErrNameTaken
	}
	return err
}

// Update checks that the stored profile has the version that was read.
func (m readOnlyMerchants) Update(ctx context.Context, p *merchant.Profile) error {
	stored, err := m.Profile(ctx, p.ID)
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

type readOnlyLedger struct{ Ledger }

// Replace accepts every entry: the caller has just read it.
func (readOnlyLedger) Replace(context.Context, *ledger.Entry) (*ledger.Entry, error) { return nil, nil }

type readOnlyHealth struct{ webhook.HealthStore }

// SaveHealth accepts every health: a real write that came too late is harmless.
func (readOnlyHealth) SaveHealth(context.Context, webhook.Health) (bool, error) { return true, nil }

// SaveDisabled checks that the stored health has the version that was read.
func (r readOnlyHealth) SaveDisabled(ctx context.Context, h webhook.Health) (bool, error) {
	stored, err := r.Health(ctx, h.Endpoint)
	return stored.DisabledVersion == h.DisabledVersion, err
}

type readOnlySecrets struct{ SecretStore }

// Put checks that the secret has not changed since it was read.
func (r readOnlySecrets) Put(ctx context.Context, current StoredSecret, _ []byte) error {
	stored, err := r.Get(ctx, current.Name)
	if err == nil && stored.Revision != current.Revision {
		err = secretChangedError(current.Name)
	}
	return err
}

type readOnlyAmounts struct{}

// Adjust accepts every adjustment.
func (readOnlyAmounts) Adjust(context.Context, dailyamount.Adjustment) (dailyamount.AdjustmentResult, error) {
	return dailyamount.AdjustmentResult{Applied: true}, nil
}
