package check

import (
	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

const nothingAfterReturn invariant = "13: Nothing of an invocation runs or calls after its return. A post that the " +
	"relay cut off spends no attempt. Each of its attempts at the payer's SMS without a final outcome counts as maybe sent"

// invocations checks that invocations end when they return, and what the relay stores of calls that it cut off.
type invocations struct{ *base }

// Outlived reports what an invocation does after its return.
func (c *invocations) Outlived(i *deployment.Instance, what string) {
	c.fail(nothingAfterReturn, "%s has returned, and %s", i.Name, what)
}

// changed checks what the relay stores. It has less time than an attempt's own timeout, so each of its posts without a
// response was cut off. It sends without a lease: a record that the stream repeats may follow an attempt without a
// trace.
func (c *invocations) changed(t transition) {
	if !t.writer.Is(deployment.Relay) {
		return
	}
	failed := t.after.Outbox.FailedAttempts
	if count := len(failed); count > len(t.before.Outbox.FailedAttempts) &&
		failed[count-1].Reason == webhook.ReasonTimeout {
		c.fail(nothingAfterReturn, "%s: attempt %d at the notification of %s was cut off, and is spent", t.key,
			failed[count-1].Number, failed[count-1].Status)
	}
	sms := t.after.UserSMS
	if sms.State == ledger.UserSMSDue && sms.Attempts > t.before.UserSMS.Attempts && !sms.MaybeSent {
		c.fail(nothingAfterReturn, "%s: attempt %d at the payer's SMS has no final outcome, and counts as certainly not "+
			"sent", t.key, sms.Attempts)
	}
}
