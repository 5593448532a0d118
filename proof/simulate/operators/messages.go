package operators

import (
	"strings"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// Messages are the SMS at the platform.
type Messages struct {
	orders  map[string]message // what merchants order, by recipient
	sending message
	keys    map[string]string // of the entries, by the platform's id

	// Own is what receipts of the own account reported, by the entry's key. Stored is what of these got 200.
	Own, Stored map[string][]ledger.Status
}

// message is an SMS that a merchant orders. The zero value is none.
type message struct {
	key      ledger.Key
	merchant string
}

func newMessages() *Messages {
	return &Messages{
		orders: map[string]message{}, keys: map[string]string{}, Own: map[string][]ledger.Status{},
		Stored: map[string][]ledger.Status{},
	}
}

// Expect notes that a merchant orders an SMS. Each order has its own recipient.
func (m *Messages) Expect(recipient string, key ledger.Key, merchant string) {
	m.orders[recipient] = message{key, merchant}
}

// begin notes the order of a request to send.
func (m *Messages) begin(body []byte) {
	recipient := outside.ParseDocument(body).Text("outboundSMSMessageRequest.address")
	m.sending = m.orders[strings.TrimPrefix(recipient, "tel:")]
}

// sent is the effect of the request that began last, and the key of its entry, "" for none. id is the platform's.
func (m *Messages) sent(id string) (effect outside.Effect, key string) {
	if m.sending.merchant == "" {
		return effect, ""
	}
	key = m.sending.key.String()
	m.keys[id] = key
	return outside.Effect{Kind: outside.KindSMS, Merchant: m.sending.merchant}, key
}

// receipt notes a receipt with its statuses. isStored is true after 200.
func (m *Messages) receipt(body []byte, isStored bool) {
	field := outside.ParseDocument(body).Text
	key := m.keys[field("deliveryInfoNotification.callbackData")]
	status := ledger.Status(field("deliveryInfoNotification.deliveryInfo.deliveryStatus"))
	m.Own[key] = append(m.Own[key], status)
	if isStored {
		m.Stored[key] = append(m.Stored[key], status)
	}
}
