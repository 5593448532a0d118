package check

import (
	"net/http"

	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

const trueReasons invariant = "12: The gateway refuses no valid request as an invalid one. A payment that its payer " +
	"refused is reported with this reason"

// reasons checks that what a merchant learns about a failure is true.
type reasons struct{ *base }

// invalidInput is the message of the gateway about a value that breaks a rule. A value that no route serves has
// another one.
const invalidInput = "SVC0002"

// responded checks that the gateway takes in each order. An operator may refuse it as invalid. The address of a
// notification may be denied.
func (c *reasons) responded(o *merchants.Order, r outside.Response) {
	isRefused := r.Status == http.StatusBadRequest && r.MessageID == invalidInput
	if isRefused && c.Entries.Of(o.Key().String()) == nil && !c.merchants.HasDeniedAddresses {
		c.fail(trueReasons, "%s is refused as invalid: %s", o.Key(), r.Body)
	}
}

// failed checks the reason in a notification or in a status. A person may have resolved the payment.
func (c *reasons) failed(order string, body []byte) {
	e := c.Entries.Payment(order)
	if e == nil || e.Status != ledger.Failed || e.Manual.Outcome != "" || c.operators.HasLied(e.Route.UpstreamKey) {
		return
	}
	text := outside.ParseDocument(body).Text
	reason := ledger.FailureReason(text("failureReason"))
	if text("status") == string(ledger.Failed) && reason != ledger.RefusedByPayer && c.operators.IsPayersRefusal(e) {
		c.fail(trueReasons, "%s was refused by its payer, and is reported as failed because of %q", e.Key, reason)
	}
}
