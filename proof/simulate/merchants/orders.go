package merchants

import (
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/money"
)

// Order is what a merchant wants: one charge, payment or SMS, under one idempotency key.
type Order struct {
	Shop     *fixture.Shop
	Function string
	Number   int
	Wanted   outside.Request
	Start    time.Time // of the first request
	// Responses are those to requests with the order's own body, and Calls are all requests.
	Responses []outside.Response
	Calls     []*Call

	event     []byte
	otherBody []byte // the same key with another body
	isDropped bool
}

// Call is one request of an order, and its response.
type Call struct {
	Body       int // OwnBody or AnotherBody
	Start, End int // kernel steps
	// HasCome is true if the gateway responded, and IsLost if the client got no response.
	HasCome, IsLost bool
	Response        outside.Response
	By              deployment.Invocation // that responded; none without one
	// Refusal is why it had to be refused, "" if it had not.
	Refusal string
}

// The bodies of an order's requests.
const (
	OwnBody     = 0
	AnotherBody = 1 // under the same key
)

// Kinds are the kinds of orders that a merchant may have.
type Kinds struct {
	OtherAmounts bool // the other body of some orders has another amount, not another text
	SharedKeys   bool // two merchants use the same keys for some orders
	LargeAmounts bool // some amounts are more than half of the daily limit, or the whole of it
}

// largeAmountInterval is the interval of the numbers whose orders are for more than half of the merchant's daily limit.
// The countries of these orders have one currency, so that two of them do not fit into one day. Every third of these
// orders is for the whole limit.
const largeAmountInterval = 3

// newOrder makes an order. number selects its content. The other body has another text, or another amount.
func (k Kinds) newOrder(s *fixture.Shop, function string, number int) *Order {
	build := map[string]func(int) outside.Request{
		deployment.Charge: s.Charge, deployment.Pay: s.Pay, deployment.SMS: s.SMS,
	}
	o := &Order{Shop: s, Function: function, Number: number, Wanted: build[function](number)}
	if k.LargeAmounts && s.Limited && number%largeAmountInterval == 0 && function != deployment.SMS {
		amount := fixture.DailyLimit/2 + int64(number)
		if number/largeAmountInterval%largeAmountInterval == 1 {
			amount = fixture.DailyLimit
		}
		o.Wanted.Amount = money.Format(amount, o.Wanted.Country.Exponent)
	}
	o.encode(k.OtherAmounts)
	return o
}

// encode makes the events of the order's requests from what it wants.
func (o *Order) encode(hasOtherAmounts bool) {
	other := o.Wanted
	if hasOtherAmounts && o.Number%2 == 1 && o.Function != deployment.SMS {
		other.Amount = "1" + other.Amount
	} else {
		other.Text += "2"
	}
	o.event, o.otherBody = o.Wanted.Event(o.Shop.Token), other.Event(o.Shop.Token)
}

// Event is the event of a request with the order's own body.
func (o *Order) Event() []byte { return o.event }

// Key is the key of the order's entry.
func (o *Order) Key() ledger.Key {
	merchantID := o.Shop.Profile.ID
	switch o.Function {
	case deployment.Charge:
		return ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(merchantID, o.Wanted.Key, o.Wanted.Reference)}
	case deployment.Pay:
		return ledger.Key{Kind: ledger.Payment, ID: o.Wanted.Key}
	}
	return ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(merchantID, o.Wanted.Key)}
}
