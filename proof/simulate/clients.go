package simulate

import (
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/money"
)

// order is what a merchant wants: one charge, payment or SMS, under one idempotency key.
type order struct {
	shop      *shop
	function  string
	number    int
	wanted    outside.Request
	start     time.Time // of the first request
	event     []byte
	otherBody []byte // the same key with another body
	attempts  int
	isDropped bool
	responses []outside.Response // to requests with the order's own body
	calls     []*call
	facts     []fact // what the merchant has learned about the order's end
}

// retryWaits are the waits of a client between two requests.
var retryWaits = []time.Duration{
	2 * time.Second, 0, 30 * time.Second, 5 * time.Minute, time.Hour, 20 * time.Hour, 26 * time.Hour,
}

// maxRequests bounds the requests of one order.
const maxRequests = 6

// drawOrder draws an order, and schedules its first request and its duplicates.
func (w *World) drawOrder(number int, length time.Duration) {
	w.drawOrderOf(tape.Draw(w.Tape, "kind of order", functionCharge, functionPay, functionSMS), number, length)
}

// drawOrderOf draws an order of one function.
func (w *World) drawOrderOf(kind string, number int, length time.Duration) {
	w.drawOrderOfShop(tape.Draw(w.Tape, "shop", w.shops...), kind, number, length)
}

// drawOrderOfShop draws an order of one function and merchant.
func (w *World) drawOrderOfShop(s *shop, kind string, number int, length time.Duration) {
	if w.hasDeniedAddresses && w.Tape.Choose("denied address", 2) == 1 {
		denied, addresses := *s, deniedAddresses
		if kind == functionPay {
			addresses = append(addresses, foreignAddresses...)
		}
		denied.NotifyURL = tape.Draw(w.Tape, "address", addresses...)
		s = &denied
	}
	o := w.newOrder(s, kind, 10*number+w.Tape.Choose("content", 10))
	start := history.Start.Add(tape.Draw(w.Tape, "start", 0, length/4, length/2, length*3/4))
	start = start.Add(time.Duration(w.Tape.Choose("second of the start", 60)) * time.Second)
	o.start = start
	w.Kernel.At(start, "order", func() { w.request(o, ownBody) })
	if w.hasSharedKeys && kind != functionPay && o.number%10 >= firstSharedKey {
		twin := w.newOrder(w.otherShop(s), kind, o.number)
		twin.start = start
		w.Kernel.At(start, "order under the same key", func() { w.request(twin, ownBody) })
	}
	for range w.Tape.Choose("duplicates", 3) {
		body := ownBody
		if w.Tape.Choose("another body", 4) == 3 {
			body = anotherBody
		}
		at := start.Add(tape.Draw(w.Tape, "time of the duplicate", retryWaits...))
		w.Kernel.At(at, "duplicate", func() { w.request(o, body) })
	}
}

// firstSharedKey is the last digit of an order's number from which another merchant has a charge or an SMS under the
// same clientCorrelator and referenceCode. A charge with the digit 9 has no clientCorrelator.
const firstSharedKey = 8

// otherShop is another merchant.
func (w *World) otherShop(s *shop) *shop {
	for _, other := range w.shops {
		if other.Name != s.Name {
			return other
		}
	}
	return s
}

// deniedAddresses are addresses to which the gateway must never send a notification. foreignAddresses are those to
// which it must send no notification of a payment: their hosts are not registered.
var (
	deniedAddresses = []string{
		"https://169.254.169.254/latest/meta-data", "https://127.0.0.1/", "https://[::1]/n", "https://10.0.0.7/n",
		"http://OpenShop.example.com/notify", "https://OpenShop.example.com@10.0.0.7/n", "https://localhost/n",
		"https://[::ffff:10.0.0.7]/n", "https://OpenShop.example.com:8443/notify", "https://2130706433/n",
	}
	foreignAddresses = []string{
		"https://other.example.com/n", "https://OpenShop.example.com.evil.example.net/n",
	}
)

// The bodies of an order's requests.
const (
	ownBody     = 0
	anotherBody = 1 // under the same key
)

// largeAmountInterval is the interval of the numbers whose orders are for more than half of the merchant's daily limit.
// The countries of these orders have one currency, so that two of them do not fit into one day.
const largeAmountInterval = 3

// newOrder makes an order. number selects its content. The other body has another text, or another amount.
func (w *World) newOrder(s *shop, function string, number int) *order {
	build := map[string]func(int) outside.Request{functionCharge: s.Charge, functionPay: s.Pay, functionSMS: s.SMS}
	o := &order{shop: s, function: function, number: number, wanted: build[function](number)}
	if w.hasLargeAmounts && s.limited && number%largeAmountInterval == 0 && function != functionSMS {
		o.wanted.Amount = money.Format(dailyLimit/2+int64(number), o.wanted.Country.Exponent)
	}
	o.event = o.wanted.Event(s.token)
	o.otherBody = o.other(w.hasOtherAmounts).Event(s.token)
	if function == functionPay {
		w.checker.addNumber(o.wanted.Payer)
	}
	o.isDropped = slices.Contains(w.without, len(w.orders))
	w.orders = append(w.orders, o)
	return o
}

// other is the request with another text, or with another amount.
func (o *order) other(hasOtherAmounts bool) outside.Request {
	other := o.wanted
	if hasOtherAmounts && o.number%2 == 1 && o.function != functionSMS {
		other.Amount = "1" + other.Amount
		return other
	}
	other.Text += "2"
	return other
}

// newEvent makes the event of a request. Every second request has the merchant's new token, if there is one.
func (w *World) newEvent(o *order, body int) (event []byte, token string) {
	token = w.changed[o.shop.Name].token
	switch {
	case token != "" && o.attempts%2 == 0 && body == ownBody:
		return o.wanted.Event(token), token
	case body == ownBody:
		return o.event, o.shop.token
	}
	return o.otherBody, o.shop.token
}

// request sends a request of an order. The merchant repeats it until it knows the outcome, or gives up.
func (w *World) request(o *order, body int) {
	if o.isDropped {
		return
	}
	o.attempts++
	w.Counts.Requests++
	own := body == ownBody
	w.Logf("%s requests %s %d (own body: %v)", o.shop.Name, o.function, o.number, own)
	made := &call{body: body, start: w.Kernel.Steps(), lost: true}
	o.calls = append(o.calls, made)
	event, token := w.newEvent(o, body)
	mustRefuse := w.mustRefuse(o.shop, token)
	w.invoke(o.function, event, func(r result) {
		lost := r.lost || w.HappensNow("response lost", w.Rates.LostResponse)
		response, _ := w.responseOf(o.function, r)
		if lost && !r.lost {
			w.Count("response lost")
		}
		w.Logf("%s %s %d: response %d %s, lost %v", o.shop.Name, o.function, o.number, response.Status,
			response.MessageID, lost)
		if !r.lost && isKnown(response) {
			if mustRefuse != "" && w.mustRefuse(o.shop, token) != "" {
				w.checker.fail(5, "a request got %d, and its token or merchant was %s", response.Status, mustRefuse)
			}
			w.checker.storedOutcome(o, response)
		}
		// A response may repeat the code (decision "pay-otp").
		echo := strings.ReplaceAll(response.Body, outside.OneTimeCode, "")
		w.checker.checkBody(o.shop, []byte(echo))
		w.checker.unaffectedResponse(o, r.lost, response)
		if !r.lost && own {
			w.checker.ownKey(o, response)
			if isOverLimit(response) {
				w.checker.amounts.refusal(o, made.start)
			}
		}
		made.end, made.lost, made.response = w.Kernel.Steps(), lost, response
		if !lost && own {
			w.checker.response(o, response)
			o.responses = append(o.responses, response)
			if p := w.platforms[platformHost]; p != nil {
				p.visit(o, response.Body)
			}
			w.checker.learn(o, 0, o.factOf(response)) // a repeat gets the first response, also after later ones
		}
		if own && (lost || needsRetry(response)) && o.attempts < maxRequests {
			wait := tape.Draw(w.Tape, "wait before the retry", retryWaits...)
			w.Kernel.At(time.Now().Add(wait), "retry", func() { w.request(o, body) })
		}
	})
}

// needsRetry reports whether a client sends the request again: the outcome is unknown, or the gateway requests it.
func needsRetry(r outside.Response) bool {
	return r.Status >= 500 || r.Status == 429 || r.Status == 409 && r.RetryAfter != ""
}
