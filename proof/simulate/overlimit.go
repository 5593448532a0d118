package simulate

import (
	"strings"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/money"
)

// storedSum is the sum of a day from a step of the kernel on.
type storedSum struct {
	step int
	sum  int64
}

// isOverLimit reports whether a response refuses a request because of the merchant's daily amount.
func isOverLimit(r outside.Response) bool {
	return r.Status == 403 && strings.Contains(r.Body, "Daily amount limit exceeded")
}

// refusal checks a refusal because of the daily amount (invariant 6): the amount did not fit into the rest of its day,
// at some time since the request began. The day is that of the first send, or of the request. Clocks differ.
func (a *amounts) refusal(o *order, began int) {
	country := o.wanted.Country
	if country.ChargesInMinorUnits && o.function == functionCharge {
		country.Exponent = 0
	}
	amount, err := money.Parse(o.wanted.Amount, country.Exponent)
	if err != nil {
		a.checker.fail(6, "the amount %s: %s", o.wanted.Amount, err)
		return
	}
	sent := []time.Time{time.Now().Add(-history.MaxSkew - defaultTimeout), time.Now().Add(history.MaxSkew)}
	if e := a.checker.entries[o.key().String()]; e != nil {
		sent = append(sent, e.SentAt)
	}
	most := int64(0)
	for _, at := range sent {
		day := o.shop.profile.ID + "#" + o.wanted.Currency + "#" + at.UTC().Format(time.DateOnly)
		most = max(most, a.highestSum(day, began))
	}
	if most+amount <= dailyLimit {
		a.checker.fail(6, "%s was refused, and its amount %d fits: its day had at most %d", o.key(), amount, most)
	}
}

// highestSum is the highest sum that a day had since a step.
func (a *amounts) highestSum(day string, since int) int64 {
	highest := int64(0)
	for _, stored := range a.history[day] {
		if stored.step < since {
			highest = stored.sum
		} else {
			highest = max(highest, stored.sum)
		}
	}
	return highest
}
