package attention

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/keys"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// addEntry adds what waits for a person in one transaction.
func (a *attention) addEntry(e *ledger.Entry) {
	a.addAccountUse(e)
	view := View{Since: e.ReservedAt, What: waitsUnknown, Merchant: e.Merchant.Name, Subject: e.Key.String()}
	if view.Detail = a.unknownReason(e); view.Detail != "" {
		a.add(view, entries.ResolveArguments(e, a.Now())...)
	}
	closing := session.ConfirmArguments("attention", "close", string(e.Kind), e.ID)
	closedAt := a.closed[closeSubject(e)]
	if a.lostCallback(e, closedAt) {
		view.What = waitsCallback
		view.Detail = fmt.Sprintf("the key of its callback address was revoked: contact operator %s, %s",
			e.Route.Operator, e.Route.UpstreamKey)
		a.add(view, closing...)
	}
	if conflicts := openConflicts(e, closedAt); len(conflicts) > 0 {
		last := conflicts[len(conflicts)-1]
		view.Since, view.What = conflicts[0].At, waitsConflict
		view.Detail = fmt.Sprintf("%s reported %s (%s), we have %s; operator's reference %s", last.Source, last.Status,
			last.Reason, cmp.Or(string(e.Status), string(e.State)), cmp.Or(e.Reference(), "none"))
		a.add(view, closing...)
	}
	for _, n := range openDeadLetters(e, closedAt) {
		a.deadLetters[e.Merchant.Name] = append(a.deadLetters[e.Merchant.Name], deadLetter{e.ID, n.At})
	}
	if head := e.Outbox.Head(); head != nil && head.Parked {
		a.parked[endpointKey{e.Merchant.ID, e.Outbox.URL}]++
	}
}

// lostCallback reports whether no callback and no lookup can end an entry, because the key of its address was revoked.
func (a *attention) lostCallback(e *ledger.Entry, closedAt time.Time) bool {
	return entries.AwaitsCallback(e) && !e.Unknowable() && !entries.ComesByLookup(e) && closedAt.Before(e.ReservedAt) &&
		a.callbacks != nil && callback.MayHaveLost(a.callbacks, e, a.SecretCache)
}

// unknownReason returns why only a person ends an unknown outcome, "" if the gateway may still end it. It is what
// StaleUnknownsAlarm counts, except payments within their lifetime: lookups end those.
func (a *attention) unknownReason(e *ledger.Entry) string {
	now := a.Now()
	age := now.Sub(e.ReservedAt)
	row := operator.CapabilitiesOf(e)
	switch {
	case e.Leased(now):
		return ""
	case e.ClaimFlagged(now):
		return "the operator claimed successful at " + output.FormatTime(e.Claim.At) + ", and no lookup confirms it"
	case age < ledger.StaleAfter, e.Unknowable(), e.Kind != ledger.Payment && !e.OutcomeUncertain(now):
		return ""
	case e.Kind != ledger.Payment && entries.HasKeyAtOperator(e, row):
		return entries.ResendAdvice(e, row, now) + ", " + e.Route.UpstreamKey
	case e.Kind != ledger.Payment:
		return entries.ResendAdvice(e, row, now)
	case !entries.ComesByLookup(e) && e.OutcomeUncertain(now):
		return entries.WhyNoLookup(e)
	case !entries.PastLifetime(a.Session, e) || age < a.PaymentLifetime+ledger.StaleAfter ||
		e.Claim.Status == ledger.Successful:
		return ""
	case e.Claim.Status != "":
		return fmt.Sprintf("the operator claimed %s, and no lookup confirms it", e.Claim.Status)
	case len(e.Conflicts) > 0:
		return "the operator reports another " + e.Conflicts[len(e.Conflicts)-1].Reason
	}
	return "past its lifetime, and no lookup has ended it"
}

// openConflicts are an entry's conflicts since it was closed, or since a person resolved it.
func openConflicts(e *ledger.Entry, closedAt time.Time) []ledger.Conflict {
	closedAt = session.Latest(closedAt, e.Manual.At)
	return slices.DeleteFunc(slices.Clone(e.Conflicts), func(c ledger.Conflict) bool { return !c.At.After(closedAt) })
}

// openDeadLetters are an entry's dead letters since it was closed. One died with the last failed attempt, or without
// an outcome at any time until the last write.
func openDeadLetters(e *ledger.Entry, closedAt time.Time) []ledger.Notification {
	return slices.DeleteFunc(slices.Clone(e.Outbox.Waiting), func(n ledger.Notification) bool {
		diedAt := n.At
		for _, failed := range e.Outbox.FailedAttempts {
			if failed.Status == n.Status {
				diedAt = session.Latest(diedAt, failed.At)
			}
		}
		if n.DeadReason == ledger.ReasonNoOutcome {
			diedAt = e.UpdatedAt
		}
		return n.DeadReason == "" || !diedAt.After(closedAt)
	})
}

// maxListedIDs is how many ids of dead letters a line has.
const maxListedIDs = 3

// addDeadLetters adds one line for each merchant: one replay sends all its dead letters again.
func (a *attention) addDeadLetters() {
	byTime := func(x, y deadLetter) int { return x.at.Compare(y.at) }
	for name, letters := range a.deadLetters {
		first, last := slices.MinFunc(letters, byTime).at, slices.MaxFunc(letters, byTime).at
		ids := slices.Compact(output.MapAll(letters, func(d deadLetter) string { return d.id }))
		detail := output.JoinComma(ids[:min(len(ids), maxListedIDs)])
		if more := len(ids) - maxListedIDs; more > 0 {
			detail += fmt.Sprintf(" and %d more", more)
		}
		arguments := []string{"deliveries", "replay", ids[0]}
		if len(ids) > 1 {
			arguments = []string{"deliveries", "replay", "--merchant", name, "--from", first.Format(time.DateOnly),
				"--to", last.Format(time.DateOnly), "--dead-letters"}
		}
		a.add(View{
			Since: first, What: waitsDeadLetter, Merchant: name, Subject: output.Plural(len(letters), "notification"),
			Detail: detail,
		}, session.ConfirmArguments(arguments...)...)
	}
}

// addEndpoints adds the disabled URLs of the merchants: the provisioned ones, and those of parked notifications. A
// notification that is parked although its URL is enabled is queued by the sweep.
func (a *attention) addEndpoints(profiles []*merchant.Profile) error {
	for _, p := range profiles {
		urls := map[string]bool{p.NotifURL: true}
		for key := range a.parked {
			if key.merchantID == p.ID {
				urls[key.url] = true
			}
		}
		delete(urls, "")
		healths, err := merchants.EndpointHealths(a.Session, p, slices.Sorted(maps.Keys(urls)))
		if err != nil {
			return err
		}
		for _, health := range healths {
			if health.Enabled() {
				continue
			}
			parked := a.parked[endpointKey{p.ID, health.URL}]
			a.add(View{
				Since: health.DisabledAt, What: waitsEndpoint, Merchant: p.Name, Subject: health.URL,
				Detail: strings.TrimSpace(fmt.Sprintf("%s %d: %s parked", health.LastReason, health.LastStatus,
					output.Plural(parked, "notification"))),
			}, session.ConfirmArguments("endpoint", "enable", p.Name, "--url", health.URL)...)
		}
	}
	return nil
}

// addKeys adds the key rings without a key, and those whose newest key is too old.
func (c *attentionList) addKeys(a *attention) error {
	for _, name := range []string{keys.Tokens, keys.Callbacks, keys.Webhooks} {
		stored, err := keys.RingArgument{Ring: name}.ProvideRing(a.Session)
		if err != nil {
			return err
		}
		view := View{What: waitsKey, Subject: "ring " + name, Detail: "it has no key"}
		if len(stored.Private.Value) > 0 {
			live, err := stored.Views(a.Session, stored.Private.Value)
			if err != nil {
				return err
			}
			live = slices.DeleteFunc(live, func(k keys.View) bool { return !k.Revoked.IsZero() })
			newest := live[len(live)-1] // a ring has at least one live key
			view.Since = newest.Added.Add(c.KeyAge)
			view.Detail = fmt.Sprintf("key %d was added at %s", newest.Number, output.FormatTime(newest.Added))
			if a.Now().Before(view.Since) {
				continue
			}
		}
		a.add(view, session.ConfirmArguments("keys", "add", name)...)
	}
	return nil
}

// firstAfter returns the first of the times after another one, zero for none, and how many there are.
func firstAfter(times []time.Time, after time.Time) (first time.Time, count int) {
	for _, at := range times {
		if at.After(after) {
			count++
			if first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return first, count
}

// addAccountUse adds what a transaction shows about its account.
func (a *attention) addAccountUse(e *ledger.Entry) {
	key := accounts.AccountKey(operator.PinOf(e))
	use := a.accounts[key]
	if use == nil {
		use = &accountUse{acceptedAt: a.closed[accounts.CredentialsSubject]}
		a.accounts[key] = use
	}
	for _, attempt := range entries.Calls(e) {
		switch {
		case attempt.Reason == ledger.ReasonRejected:
			use.rejected = append(use.rejected, attempt.At)
		case attempt.HTTPStatus != 0 || attempt.Outcome == ledger.CallSucceeded:
			use.acceptedAt = session.Latest(use.acceptedAt, attempt.At)
		}
		if attempt.Outcome == ledger.CallSucceeded || attempt.Outcome == ledger.CallRefused {
			use.workedAt = session.Latest(use.workedAt, attempt.At)
		} else if attempt.Outcome == ledger.CallUnknown || attempt.Reason == "unavailable" {
			use.failed = append(use.failed, attempt.At)
		}
	}
	if e.Manual.Outcome == "" {
		use.workedAt = session.Latest(use.workedAt, e.FinalAt)
	}
	if entries.MayCallOperator(e) {
		use.live++
	}
	if e.Kind != ledger.Payment || e.Poll.At.IsZero() || a.Now().Sub(e.ReservedAt) < ledger.StaleAfter {
		return
	}
	if use.oldest == nil || e.ReservedAt.Before(use.oldest.ReservedAt) {
		use.oldest = e
	}
}

// addOperators adds the accounts that are rejected or cannot be used, and those whose lookups fail.
func (c *attentionList) addOperators(a *attention, profiles []*merchant.Profile) error {
	credentials, err := session.ReadSecret(a.Session, a.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err != nil {
		return err
	}
	directory := accounts.NewDirectory(a.Session, credentials.Value)
	a.addUnusableAccounts(directory, profiles)
	confirmer := accounts.NewConfirmer(a.Session, directory, c.Timeout)
	for key, use := range a.accounts {
		subject := key.Platform + " " + key.Account
		if since, count := firstAfter(use.rejected, use.acceptedAt); count > 0 {
			a.add(View{
				Since: since, What: waitsCredentials, Subject: subject,
				Detail: output.Plural(count, "call") + " rejected, none accepted since",
			}, accounts.RenewArguments(key)...)
		}
		if c.NoLookup || use.oldest == nil {
			continue
		}
		if response := accounts.LookUp(a.Session, confirmer, use.oldest); response.Supported && !response.Responded {
			since, failed := firstAfter(use.failed, use.workedAt)
			detail := fmt.Sprint(response.Cause)
			if failed == 0 && !use.workedAt.IsZero() { // the outage began after it, at a time that nothing shows
				detail += "; the last proof that it works is of " + output.FormatTime(use.workedAt)
			}
			a.add(View{
				Since: since, What: waitsLookups, Subject: subject,
				Detail: fmt.Sprintf("%s; %s, such as %s", detail, output.Plural(use.live, "live transaction"),
					use.oldest.ID),
			}, "operator", "check", key.Platform)
		}
	}
	return nil
}

// addUnusableAccounts adds the accounts of active merchants' operators that cannot be used: those of routes, and the
// current ones of the operators' own platforms.
func (a *attention) addUnusableAccounts(directory *operator.DriverDirectory, profiles []*merchant.Profile) {
	routes, _ := directory.Routes(a) // if they cannot be read, no account can: FindAccount returns the same error
	used := map[operator.Pin]bool{}
	for _, p := range profiles {
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
		err := accounts.UnknownPlatformError(pin.Platform)
		if driver, _, found := directory.Driver(pin.Platform); found {
			_, err = driver.FindAccount(a, pin.Platform, pin.Account)
		}
		if err != nil {
			subject := strings.TrimSpace(pin.Platform + " " + pin.Account)
			a.add(View{
				What: waitsCredentials, Subject: subject, Detail: cmp.Or(errors.Unwrap(err), err).Error(),
			}, session.ConfirmArguments("operator", "set", "FILE")...)
		}
	}
}
