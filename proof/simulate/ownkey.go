package simulate

import (
	"slices"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// ownKey checks that each merchant has its own keys (invariant 3). A charge or an SMS cannot be a duplicate if its
// merchant has sent one body only. The operator may know the key of an expired SMS.
func (c *checker) ownKey(o *order, r outside.Response) {
	hasOtherBody := slices.ContainsFunc(o.calls, func(made *call) bool { return made.body != ownBody })
	isReused := o.function == functionSMS && c.world.smsRetention != 0
	isDuplicate := r.Status == 409 && r.Location == "" && r.RetryAfter == ""
	if !isDuplicate || hasOtherBody || isReused || o.function == functionPay {
		return
	}
	if upstream := ledger.UpstreamKey(o.shop.Name, o.wanted.Key, o.wanted.Reference); !c.world.lied(upstream) {
		c.fail(3, "%s %s %d is refused as a duplicate, and its merchant has sent no other body", o.shop.Name,
			o.function, o.number)
	}
}
