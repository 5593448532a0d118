package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/reconcile"
	"mobilegateway/shared/secret"
)

// accountUse is what the stored transactions show about an account.
type accountUse struct {
	acceptedAt time.Time   // the last call that the operator did not reject, or change of the credentials
	rejected   []time.Time // the calls that it rejected because of our credentials
	waiting    int         // payments whose lookups are in progress
	oldest     *ledger.Entry
}

// rejectedSince returns since when each call with the account was rejected, zero if the last one was not.
func (u *accountUse) rejectedSince() (first time.Time, count int) {
	for _, at := range u.rejected {
		if at.After(u.acceptedAt) {
			if count++; first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return first, count
}

// addAccountUse adds what a transaction shows about its account.
func (a *attention) addAccountUse(e *ledger.Entry) {
	key := pinRef(operator.PinOf(e))
	use := a.accounts[key]
	if use == nil {
		use = &accountUse{acceptedAt: a.closed[credentialsSubject]}
		a.accounts[key] = use
	}
	for _, attempt := range callAttemptViews(e) {
		switch {
		case attempt.Reason == ledger.ReasonRejected:
			use.rejected = append(use.rejected, attempt.At)
		case attempt.HTTPStatus != 0 || attempt.Outcome == ledger.CallSucceeded:
			use.acceptedAt = latestTime(use.acceptedAt, attempt.At)
		}
	}
	if e.Kind != ledger.Payment || e.PollAt.IsZero() || a.Now().Sub(e.ReservedAt) < ledger.StaleAfter {
		return
	}
	if use.waiting++; use.oldest == nil || e.ReservedAt.Before(use.oldest.ReservedAt) {
		use.oldest = e
	}
}

// addOperators adds the accounts that are rejected or cannot be used, and those whose lookups fail.
func (c *attentionList) addOperators(a *attention, merchants []*merchant.Profile) error {
	credentials, err := readSecret(a.session, a.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err != nil {
		return err
	}
	directory := drivers.NewDirectory(secret.Static(credentials.Value), nil, a.Now)
	a.addUnusableAccounts(directory, merchants)
	reconciler := &reconcile.Reconciler{Operators: directory, LookupTimeout: c.Timeout}
	for key, use := range a.accounts {
		subject := key.operator + " " + key.id
		if since, count := use.rejectedSince(); count > 0 {
			a.add(attentionView{
				Since: since, What: waitsCredentials, Subject: subject,
				Detail: plural(count, "call") + " rejected, none accepted since",
			}, confirmArguments("operator", "rotate-token", key.operator, "FILE", "--account", key.id)...)
		}
		if c.NoLookup || use.oldest == nil {
			continue
		}
		if response := reconciler.LookUp(a, use.oldest); response.Supported && !response.Responded {
			a.add(attentionView{
				Since: use.oldest.ReservedAt, What: waitsLookups, Subject: subject,
				Detail: fmt.Sprintf("%s; %s waiting, such as %s", response.Cause, plural(use.waiting, "payment"),
					use.oldest.ID),
			}, "operator", "check", key.operator)
		}
	}
	return nil
}

// addUnusableAccounts adds the accounts of active merchants' operators that cannot be used: those of routes, and the
// current ones of the operators' own platforms.
func (a *attention) addUnusableAccounts(directory *operator.DriverDirectory, merchants []*merchant.Profile) {
	routes, _ := directory.Routes(a) // if they cannot be read, no account can: FindAccount returns the same error
	used := map[operator.Pin]bool{}
	for _, p := range merchants {
		if !p.Active() {
			continue
		}
		for _, name := range p.Operators {
			_, _, ownPlatform := directory.Driver(name)
			if ownPlatform && (len(routes.ByOperator[name]) == 0 || slices.Contains(routes.Platforms, name)) {
				used[operator.Pin{Platform: name}] = true
			}
			for _, route := range routes.ByOperator[name] {
				used[operator.ParsePin(route.To, name)] = true
			}
		}
	}
	for pin := range used {
		err := unknownPlatformError(pin.Platform)
		if driver, _, found := directory.Driver(pin.Platform); found {
			_, err = driver.FindAccount(a, pin.Platform, pin.Account)
		}
		if err != nil {
			subject := strings.TrimSpace(pin.Platform + " " + pin.Account)
			a.add(attentionView{
				What: waitsCredentials, Subject: subject, Detail: cmp.Or(errors.Unwrap(err), err).Error(),
			}, confirmArguments("operator", "set", "FILE")...)
		}
	}
}

// addKeys adds the key rings without a key, and those whose newest key is too old.
func (c *attentionList) addKeys(a *attention) error {
	for _, name := range []string{ringTokens, ringCallbacks, ringWebhooks} {
		stored, err := ringArgument{name}.ProvideRing(a.session)
		if err != nil {
			return err
		}
		view := attentionView{What: waitsKey, Subject: "ring " + name, Detail: "it has no key"}
		if len(stored.private.Value) > 0 {
			keys, err := stored.views(a.session, stored.private.Value)
			if err != nil {
				return err
			}
			keys = slices.DeleteFunc(keys, func(k keyView) bool { return !k.Revoked.IsZero() })
			newest := keys[len(keys)-1] // a ring has at least one live key
			view.Since = newest.Added.Add(c.KeyAge)
			view.Detail = fmt.Sprintf("key %d was added at %s", newest.Number, formatTime(newest.Added))
			if a.Now().Before(view.Since) {
				continue
			}
		}
		a.add(view, confirmArguments("keys", "add", name)...)
	}
	return nil
}
