package check

import (
	"strings"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

const finalOutcomes invariant = "2: A final state or status never changes. Each write raises the version by one. An " +
	"older version of the program keeps what a newer one stored. Nothing that a merchant learned from a response, a " +
	"read or a notification is taken back. An outcome is stored before a response reports it"

// finality checks that outcomes are final.
type finality struct{ *base }

// isReadable checks that an entry is there, and can be decoded.
func (c *finality) isReadable(change mirror.Change) bool {
	switch {
	case change.Err != nil:
		c.fail(finalOutcomes, "%s cannot be decoded: %s", change.Key, change.Err)
	case change.After == nil && !change.Expired:
		c.fail(finalOutcomes, "%s was deleted", change.Key)
	}
	return change.After != nil
}

// keepsNewer checks that an older version of the program keeps what a newer one stored.
func (c *finality) keepsNewer(change mirror.Change) {
	if change.Old()[deployment.NewerAttribute] != nil && change.New()[deployment.NewerAttribute] == nil {
		c.fail(finalOutcomes, "%s: an older version lost the attribute of a newer one", change.Key)
	}
}

// changed checks a change of an entry.
func (c *finality) changed(t transition) {
	before, after := t.before, t.after
	if after.Version != before.Version+1 {
		c.fail(finalOutcomes, "%s: version %d follows %d", t.key, after.Version, before.Version)
	}
	if before.StatusFinal() && after.Status != before.Status {
		c.fail(finalOutcomes, "%s: the final status %s became %s", t.key, before.Status, after.Status)
	}
	final := before.State == ledger.Done || before.State == ledger.Refused
	if final && after.State != before.State {
		c.fail(finalOutcomes, "%s: the state %s became %s", t.key, before.State, after.State)
	}
	mayRepin := before.State == ledger.Released && before.Request.Fingerprint == ""
	if !mayRepin && (after.Route.Account != before.Route.Account ||
		after.Route.UpstreamKey != before.Route.UpstreamKey) {
		c.fail(finalOutcomes, "%s: its account and its key at the operator were %q %q, and are %q %q", t.key,
			before.Route.Account, before.Route.UpstreamKey, after.Route.Account, after.Route.UpstreamKey)
	}
}

// responded checks that the entry has the outcome that leaves the gateway: the response, or for the location of an SMS
// its end. A response may repeat the code (decision "pay-otp"). The key of an expired SMS may come again.
func (c *finality) responded(o *merchants.Order, r outside.Response) {
	if c.reusesKeys(o.Function) {
		return
	}
	e := c.Entries.Of(o.Key().String())
	isStored := e != nil && e.Response.Status == r.Status &&
		(strings.Contains(r.Body, outside.OneTimeCode) || string(e.Response.Body) == r.Body)
	hasEnd := e != nil && e.Kind == ledger.SMS && r.Location != "" &&
		(e.State == ledger.Done || r.Status == 409 && (e.State == ledger.Refused || e.Status != ""))
	if !isStored && !hasEnd {
		c.fail(finalOutcomes, "%s was reported with %d %s, which its entry has not stored", o.Key(), r.Status,
			r.MessageID)
	}
}
