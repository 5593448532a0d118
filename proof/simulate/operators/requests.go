package operators

import (
	"bytes"
	"cmp"
	"strings"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/world/operators/kit"
)

// requests are what the platforms got, and what they applied.
type requests struct {
	*gateway
	messages *Messages
	sent     map[string]outside.Effect // what was requested, by the stub's key
	bodies   map[string][]byte         // the first ones, by the stub's key
	orders   map[string]string         // the merchant's order_id, by the stub's key
	effects  map[string]outside.Effect // by upstream key
	byOrder  map[string]int            // number of effects by order_id
}

func newRequests(g *gateway, m *Messages) *requests {
	return &requests{
		gateway: g, messages: m, sent: map[string]outside.Effect{}, bodies: map[string][]byte{},
		orders: map[string]string{}, effects: map[string]outside.Effect{}, byOrder: map[string]int{},
	}
}

// remember keeps what was requested under a key first.
func (r *requests) remember(row Row, reference string, body []byte) {
	text := outside.ParseDocument(body).Text
	key, upstreamKey, currency := reference, reference, cmp.Or(row.onlyCurrency, text("currency"))
	if row.key != "" {
		key, upstreamKey = text(row.key), text(row.upstreamKey)
	}
	if first, found := r.bodies[row.prefix+key]; found {
		if !bytes.Equal(first, body) {
			r.observer.OtherContent(outside.KindPayment, key)
		}
		return
	}
	exponent := 0
	for _, country := range market.All() {
		if country.Currency == currency && !row.isMinor {
			exponent = country.Exponent
		}
	}
	minor, err := money.Parse(text("amount"), exponent)
	if err != nil {
		r.Fail("a request to %s has the amount %q: %s", row.Name, text("amount"), err)
		return
	}
	order, payer := text(row.order), strings.TrimPrefix(text(row.payer), "+")
	if payer != "" {
		payer = "+" + row.payerPrefix + payer
	}
	name, _, _ := strings.Cut(order, "_")
	r.bodies[row.prefix+key], r.orders[row.prefix+key] = body, order
	r.sent[row.prefix+key] = outside.Effect{
		Kind: outside.KindPayment, Key: upstreamKey, AmountMinor: minor, Currency: currency, Merchant: name,
		MSISDN: payer,
	}
}

// applied passes an effect of a stub on. An order has one number of effects under all its keys.
func (r *requests) applied(happened kit.Effect) {
	row := rowOfPath("/" + happened.Operator + "/")
	effect, order := r.sent[row.prefix+happened.Key], r.orders[row.prefix+happened.Key]
	if row.Name == SMSPlatform {
		if effect, order = r.messages.sent(happened.Key); order == "" {
			r.Fail("an SMS at %s has no order", row.Name)
		}
		if e := r.Entries.Of(order); e != nil {
			effect.Key = e.Route.UpstreamKey
		}
	}
	r.byOrder[order]++
	effect.Count, effect.At, effect.LastAt = r.byOrder[order], happened.At, happened.At
	e := r.Entries.AtOperator(effect.Kind, effect.Key)
	if e != nil && effect.MSISDN == "" {
		effect.MSISDN = e.Request.MSISDN // the payer paid on a page
	}
	r.effects[effect.Key] = effect
	r.Logf("platform %s: effect %d of %s", row.Name, effect.Count, order)
	r.observer.Applied(row.Name, effect)
}
