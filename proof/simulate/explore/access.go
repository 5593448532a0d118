package explore

import (
	"strings"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/shared/ledger"
	model "mobilegateway/world/dynamodb"
)

// resources is a set of things that the calls of a world share.
type resources uint

// The resources: an entry's own item, its reference, the limits, the health of endpoints, the order's call at the
// operator, the SMS to the payer, and the merchant's server.
const (
	resourceEntry resources = 1 << iota
	resourceReference
	resourceLimit
	resourceHealth
	resourceOperator
	resourcePayerSMS
	resourceMerchant
)

// access is what a call, or an actor, reads and writes.
type access struct{ reads, writes resources }

// meets reports whether two accesses may not change places.
func (a access) meets(b access) bool {
	return a.writes&(b.reads|b.writes) != 0 || a.reads&b.writes != 0
}

// tableAccess is what a call reads or writes.
func tableAccess(call model.Call) access {
	var all resources
	for _, target := range call.Items {
		kind, _, _ := strings.Cut(target.Key, "#")
		switch {
		case target.Table == fixture.LimitTable:
			all |= resourceLimit
		case kind == string(ledger.Reference):
			all |= resourceReference
		case kind == "endpoint" || kind == "server":
			all |= resourceHealth
		default:
			all |= resourceEntry
		}
	}
	if call.Writes {
		return access{writes: all}
	}
	return access{reads: all}
}
