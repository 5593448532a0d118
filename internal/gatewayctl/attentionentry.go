package gatewayctl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/callback"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

// endpointKey is a merchant's URL.
type endpointKey struct{ merchantID, url string }

// deadLetters are the dead letters of one merchant.
type deadLetters struct {
	ids         []string
	count       int
	first, last time.Time // the times of their statuses
}

// addEntry adds what waits for a person in one transaction.
func (a *attention) addEntry(e *ledger.Entry) {
	a.addAccountUse(e)
	view := attentionView{Since: e.ReservedAt, What: waitsUnknown, Merchant: e.Merchant, Subject: e.Key.String()}
	if view.Detail = a.unknownReason(e); view.Detail != "" {
		a.add(view, resolveArguments(e, a.Now())...)
	}
	closing := confirmArguments("attention", "close", string(e.Kind), e.ID)
	closedAt := a.closed[closeSubject(e)]
	if a.lostCallback(e, closedAt) {
		view.What = waitsCallback
		view.Detail = "the key of its callback address was revoked: contact operator " + e.Operator + ", " + e.UpstreamKey
		a.add(view, closing...)
	}
	if conflicts := openConflicts(e, closedAt); len(conflicts) > 0 {
		last := conflicts[len(conflicts)-1]
		view.Since, view.What = conflicts[0].At, waitsConflict
		view.Detail = fmt.Sprintf("%s reported %s (%s), we have %s; operator's reference %s", last.Source, last.Status,
			last.Reason, cmp.Or(string(e.Status), string(e.State)), cmp.Or(e.OperatorReference, "none"))
		a.add(view, closing...)
	}
	for _, n := range openDeadLetters(e, closedAt) {
		d := a.deadLetters[e.Merchant]
		if d == nil {
			d = &deadLetters{first: n.At}
			a.deadLetters[e.Merchant] = d
		}
		if d.count++; !slices.Contains(d.ids, e.ID) {
			d.ids = append(d.ids, e.ID)
		}
		if n.At.Before(d.first) {
			d.first = n.At
		}
		d.last = latestTime(d.last, n.At)
	}
	if head := e.OutboxHead(); head != nil && head.Parked {
		a.parked[endpointKey{e.MerchantID, e.NotifyURL}]++
	}
}

// lostCallback reports whether no callback and no lookup can end an entry, because the key of its address was revoked.
func (s *session) lostCallback(e *ledger.Entry, closedAt time.Time) bool {
	return awaitsCallback(e) && !comesByLookup(e) && closedAt.Before(e.ReservedAt) &&
		s.callbackRing != nil && callback.MayHaveLost(s.callbackRing, e, s.SecretCache)
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
		return "the operator claimed successful at " + formatTime(e.Claim.At) + ", and no lookup confirms it"
	case age < ledger.StaleAfter:
		return ""
	case e.Kind != ledger.Payment && e.OutcomeUncertain(now):
		return resendAdvice(e, row, now) + ", " + e.UpstreamKey
	case e.Kind != ledger.Payment:
		return ""
	case !row.HasStatusLookup && e.OutcomeUncertain(now):
		return "operator " + e.Operator + " has no status lookup"
	case !a.pastLifetime(e) || age < a.PaymentLifetime+ledger.StaleAfter || e.Claim.Status == ledger.Successful:
		return ""
	case e.Claim.Status != "":
		return fmt.Sprintf("the operator claimed %s, and no lookup confirms it", e.Claim.Status)
	case len(e.Conflicts) > 0:
		return "the operator reports another " + e.Conflicts[len(e.Conflicts)-1].Reason
	}
	return "past its lifetime, and no lookup has ended it"
}

// resolveArguments are the arguments of the command that ends an unknown outcome. It is a lookup. It is a person's
// decision where no lookup can end it, or none has for ledger.ClaimFlagAfter.
func resolveArguments(e *ledger.Entry, now time.Time) []string {
	arguments := []string{"unknown", "resolve", string(e.Kind), e.ID}
	if !comesByLookup(e) || e.ClaimFlagged(now) {
		arguments = append(arguments, "--as", "OUTCOME")
	}
	return confirmArguments(arguments...)
}

// openConflicts are an entry's conflicts since it was closed, or since a person resolved it.
func openConflicts(e *ledger.Entry, closedAt time.Time) []ledger.Conflict {
	closedAt = latestTime(closedAt, e.Manual.At)
	return slices.DeleteFunc(slices.Clone(e.Conflicts), func(c ledger.Conflict) bool { return !c.At.After(closedAt) })
}

// openDeadLetters are an entry's dead letters since it was closed. One died with the last failed attempt, or without
// an outcome at any time until the last write.
func openDeadLetters(e *ledger.Entry, closedAt time.Time) []ledger.Notification {
	return slices.DeleteFunc(slices.Clone(e.Outbox), func(n ledger.Notification) bool {
		diedAt := n.At
		for _, failed := range e.FailedAttempts {
			if failed.Status == n.Status {
				diedAt = latestTime(diedAt, failed.At)
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
	for name, d := range a.deadLetters {
		detail := joinComma(d.ids[:min(len(d.ids), maxListedIDs)])
		if more := len(d.ids) - maxListedIDs; more > 0 {
			detail += fmt.Sprintf(" and %d more", more)
		}
		arguments := []string{"deliveries", "replay", d.ids[0]}
		if len(d.ids) > 1 {
			arguments = []string{"deliveries", "replay", "--merchant", name, "--from", d.first.Format(time.DateOnly),
				"--to", d.last.Format(time.DateOnly), "--dead-letters"}
		}
		a.add(attentionView{
			Since: d.first, What: waitsDeadLetter, Merchant: name, Subject: plural(d.count, "notification"),
			Detail: detail,
		}, confirmArguments(arguments...)...)
	}
}

// addEndpoints adds the disabled URLs of the merchants: the provisioned ones, and those of parked notifications. A
// notification that is parked although its URL is enabled is queued by the sweep.
func (a *attention) addEndpoints(merchants []*merchant.Profile) error {
	for _, p := range merchants {
		urls := []string{p.NotifURL}
		for key := range a.parked {
			if key.merchantID == p.ID {
				urls = append(urls, key.url)
			}
		}
		slices.Sort(urls)
		for _, url := range slices.Compact(urls) {
			if url == "" {
				continue
			}
			health, err := a.stores.EndpointHealth.Health(a, webhook.Endpoint{MerchantID: p.ID, URL: url})
			if err != nil {
				return err
			}
			if health.Enabled() {
				continue
			}
			parked := a.parked[endpointKey{p.ID, url}]
			a.add(attentionView{
				Since: health.DisabledAt, What: waitsEndpoint, Merchant: p.Name, Subject: url,
				Detail: strings.TrimSpace(fmt.Sprintf("%s %d: %s parked", health.LastReason, health.LastStatus,
					plural(parked, "notification"))),
			}, confirmArguments("endpoint", "enable", p.Name, "--url", url)...)
		}
	}
	return nil
}
