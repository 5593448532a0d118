package check

import (
	"slices"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/operators"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

const nothingAfterReturn invariant = "13: Nothing of an invocation runs or calls after its return. " +
	"A post that the relay cut off spends no attempt. Each of its attempts at the payer's SMS without a final " +
	"outcome counts as maybe sent"

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
		c.fail(nothingAfterReturn, "%s: attempt %d at the payer's SMS has no final outcome, and counts as "+
			"certainly not sent", t.key, sms.Attempts)
	}
}

const operatorsLimits invariant = "14: In a history without faults an account at a platform gets no more lookups in " +
	"a second than the rate and the burst of its row. The response to a callback comes within the platform's " +
	"patience, also if lookups are slow"

// rates checks what operators expect of our lookups and responses.
type rates struct {
	*base
	lookups map[string][]time.Time // of the last second, by platform and account
}

// LookedUp checks the lookups of an account in the last second.
func (c *rates) LookedUp(platform, account string) {
	row, _ := operator.FindCapabilities(platform)
	if row.LookupsPerSecond == 0 || !c.operators.IsSmooth() {
		return
	}
	key, now := platform+"/"+account, time.Now()
	isOld := func(at time.Time) bool { return now.Sub(at) >= time.Second }
	c.lookups[key] = append(slices.DeleteFunc(c.lookups[key], isOld), now)
	if count := len(c.lookups[key]); count > row.LookupsPerSecond+row.LookupBurst() {
		c.fail(operatorsLimits, "%d lookups of %s within a second", count, key)
	}
}

// calledBack checks how long the response to a callback took.
func (c *rates) calledBack(r operators.Report) {
	if r.Payment == nil || !c.operators.IsSmooth() {
		return
	}
	patience := operator.CapabilitiesOf(r.Payment).CallbackPatience
	if patience > 0 && r.Took > patience {
		c.fail(operatorsLimits, "%s: the response to a callback took %s", r.Payment.Key, r.Took)
	}
}

// attempted is what an invocation has done.
type attempted struct {
	key    circuit.Key
	probes []int64 // that it took, by their lapses
	wrote  bool    // an entry
	sent   bool
	failed bool // its last exchange failed
	// began is the begin of its call, and returned that of its outcome; zero for a call that has not ended, also of a
	// crashed instance. isCounted is true if one of its exchanges is a failure.
	began, returned time.Time
	isCounted       bool
	ended           bool // it ended its last exchange early
}

// waited is how long a call has waited for its outcome so far.
func (a *attempted) waited() time.Duration {
	if a.returned.IsZero() {
		return time.Since(a.began)
	}
	return a.returned.Sub(a.began)
}

// of returns what an invocation has done so far.
func (c *circuits) of(v deployment.Invocation) *attempted {
	if c.attempts[v] == nil {
		c.attempts[v] = &attempted{}
	}
	return c.attempts[v]
}
