package simulate

import (
	"slices"
	"strings"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// smsPlatform is the platform of SMS. It has no key, so each send is another SMS, and all receipts come to one
// address with the platform's own id of the message.
const smsPlatform = "orange-sms"

// messages are the SMS at the platform. Each order has its own recipient.
type messages struct {
	sending *order
	entries map[string]string          // the stored keys, by the platform's id
	own     map[string][]ledger.Status // what its own receipts reported, by stored key
	stored  map[string][]ledger.Status // of these, what got 200
}

func newMessages() messages {
	return messages{
		entries: map[string]string{}, own: map[string][]ledger.Status{}, stored: map[string][]ledger.Status{},
	}
}

// begin notes the order of a request to send.
func (m *messages) begin(w *World, body []byte) {
	m.sending = nil
	recipient := strings.TrimPrefix(fieldsOf(body)("outboundSMSMessageRequest.address"), "tel:")
	for _, o := range w.orders {
		if o.function == functionSMS && o.wanted.Payer == recipient {
			m.sending = o
		}
	}
}

// sent is the effect of the request that began last, and its order. id is the platform's.
func (m *messages) sent(w *World, id string) (effect outside.Effect, order string) {
	if m.sending == nil {
		w.Fail("an SMS at %s has no order", smsPlatform)
		return effect, ""
	}
	key := m.sending.key().String()
	m.entries[id] = key
	effect.Kind, effect.Merchant = outside.KindSMS, m.sending.shop.Name
	if e := w.checker.entries[key]; e != nil {
		effect.Key = e.Route.UpstreamKey
	}
	return effect, key
}

// receipt notes a receipt with its statuses. isStored is true after 200.
func (m *messages) receipt(body []byte, isStored bool) {
	field := fieldsOf(body)
	key := m.entries[field("deliveryInfoNotification.callbackData")]
	status := ledger.Status(field("deliveryInfoNotification.deliveryInfo.deliveryStatus"))
	m.own[key] = append(m.own[key], status)
	if isStored {
		m.stored[key] = append(m.stored[key], status)
	}
}

// checkMessages checks at the end that each SMS has the furthest status of its stored receipts (invariant 8), and none
// that no receipt of its own account reported (invariant 5).
func (m *messages) checkMessages(c *checker) {
	for e := range c.all() {
		if e.State != ledger.Done || e.Manual.Outcome != "" {
			continue
		}
		key := e.Key.String()
		for _, status := range m.stored[key] {
			if progress[string(e.Status)] < progress[string(status)] {
				c.fail(8, "%s is %s, and its receipt %s got 200", key, e.Status, status)
			}
		}
		row, _ := platformRowOf(e)
		isReported := e.Status == ledger.MessageWaiting || slices.Contains(m.own[key], e.Status)
		if row.name == smsPlatform && !isReported {
			c.fail(5, "%s is %s, which no receipt of its account reported", key, e.Status)
		}
	}
}
