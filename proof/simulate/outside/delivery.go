package outside

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
)

// timer is a later event of the platform.
type timer struct {
	at  time.Time
	run func()
}

// after sets a timer. Timers of one time run in the order in which they were set.
func (o *Operator) after(wait time.Duration, run func()) {
	at := o.now.Add(wait)
	place, _ := slices.BinarySearchFunc(o.timers, at, func(t timer, at time.Time) int {
		return cmp.Or(t.at.Compare(at), -1)
	})
	o.timers = slices.Insert(o.timers, place, timer{at, run})
}

// Advance lets everything happen at the operator that is due now. Due returns the requests that it sends.
func (o *Operator) Advance(now time.Time) {
	for len(o.timers) > 0 && !o.timers[0].at.After(now) {
		next := o.timers[0]
		o.timers = o.timers[1:]
		if o.now.Before(next.at) {
			o.now = next.at
		}
		next.run()
	}
	o.now = now
}

// Next returns the time of the operator's next own event: a callback, a delayed request or a payer's decision. It
// returns false if there is none.
func (o *Operator) Next() (time.Time, bool) {
	switch {
	case len(o.posted) > 0:
		return o.now, true
	case len(o.timers) > 0:
		return o.timers[0].at, true
	}
	return time.Time{}, false
}

// Callback is a request that the operator sends to the gateway: a payment callback or an SMS receipt.
type Callback struct {
	Kind   string // KindPayment or KindSMS
	Key    string
	Status string // that the body claims
	URL    string
	Body   []byte
	SentAt time.Time
	// Content is the fault of the callback, or NoFault. CallbackForged comes from an attacker without the callback key.
	Content Fault

	done func(status int, err error)
}

// post takes a callback of the platform.
func (o *Operator) post(out kit.Outgoing, done func(status int, err error)) {
	content := Fault(out.Hazard)
	if out.Hazard == kit.CallbackForgedKey {
		content = CallbackForged
	}
	o.trace(strings.TrimSpace("sends "+out.Status+" "+string(content)), effectKey{out.Kind, out.Key})
	o.posted = append(o.posted, Callback{
		Kind: out.Kind, Key: out.Key, Status: out.Status, URL: out.URL, Body: out.Body, Content: content, done: done,
	})
}

// Due returns the callbacks that the operator sends now, in its order, and removes them. Report the outcome of each one
// with Report, or it is never retried.
func (o *Operator) Due(now time.Time) []Callback {
	o.Advance(now)
	due := o.posted
	o.posted = nil
	return due
}

var errNoResponse = errors.New("no response")

// Report records the status of the response to a callback, 0 for none. The platform retries one without a 2xx response.
func (o *Operator) Report(now time.Time, callback Callback, status int) {
	o.now = now
	if status == 0 {
		callback.done(0, errNoResponse)
		return
	}
	callback.done(status, nil)
}
