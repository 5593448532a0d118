package outside

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/sandbox"
)

// The kinds of effects.
const (
	KindCharge   = "charge"
	KindPayment  = kit.KindPayment
	KindSMS      = kit.KindSMS
	KindPayerSMS = "payer-sms" // the SMS to the payer after a payment
	// KindLookup is a getStatus call, which has no effect. Only outages use it.
	KindLookup = "getstatus"
)

const (
	// DefaultKeyWindow is how long a platform recognizes a repeated key, as the operator table declares it.
	DefaultKeyWindow = 24 * time.Hour
	// keySigns end the merchant's name in an operator's key: "." before a clientCorrelator, "~" before a referenceCode,
	// "!" before a hash, "_" in an order_id.
	keySigns = ".~!_"
)

// Operator runs the platform of the specification's protocol, package sandbox, in the time of its caller. It draws what
// the platform does, adds the faults of the transport, and keeps the truth: effects, ends of payments, and lies. Set
// its fields before the first call.
type Operator struct {
	// Name is the operator's name in the operator table.
	Name string
	// Faults are the rates of the history; required.
	Faults *Faults
	// Outages overrule the rates.
	Outages []Outage
	// AccessTokens are the valid bearer tokens; at least one. They may change at any time.
	AccessTokens []string
	// KeyWindow is how long a key is recognized; 0 is DefaultKeyWindow. After it a repeat is a new effect.
	KeyWindow time.Duration
	// ForgetsRefusals treats a repeat of a refused charge or SMS as a new call.
	ForgetsRefusals bool
	// Trace receives one line for each call, effect and injected fault; nil discards them.
	Trace func(string)
	// OnCall receives each call with an effect and its response; nil discards them.
	OnCall func(kind, key string, response Exchange)
	// OnOtherContent receives each call under a key that has come with another content; nil discards them.
	OnOtherContent func(kind, key string)
	// OnEffect receives each effect after it was counted; nil discards them.
	OnEffect func(Effect)

	platform *sandbox.Sandbox // made at the first call
	now      time.Time
	timers   []timer
	posted   []Callback
	serving  *served // nil between two calls
	random   counter
	drawn    int // outcomes
	truth
}

// truth is what happened at an operator, by key.
type truth struct {
	contents  map[effectKey]content   // of the first call that came
	accepted  map[effectKey]end       // what was drawn for the last accepted call
	busyUntil map[effectKey]time.Time // repeats are conflicts until then
	effects   map[effectKey]*Effect
	delayed   map[effectKey]delayed // requests that arrive later
	lies      []lie
}

type effectKey struct{ kind, key string }

// Effect is what a key did at the operator. The facts are those of the first effect.
type Effect struct {
	Kind, Key string
	// Count is the number of effects; more than one is a violation of the gateway's promise.
	Count       int
	AmountMinor int64 // 0 for an SMS
	Currency    string
	Merchant    string // the name in front of the key
	MSISDN      string // of the payer or the recipient; an alias for a charge and an SMS
	Text        string // of an SMS
	At, LastAt  time.Time
}

// lie is a false statement of the operator about a key.
type lie struct {
	effectKey
	fault Fault
}

// end is the true final status of a payment and its time, zero for none. isPayers is true if the payer decided it.
type end struct {
	status   string
	at       time.Time
	isPayers bool
}

// delayed is a request on its way, with the outcome that it will have.
type delayed struct {
	at      time.Time
	outcome kit.Outcome
}

// served is the call that the platform serves.
type served struct {
	effectKey
	content
	choose  Chooser
	fault   Fault
	isEarly bool         // its callbacks come before its response
	outcome *kit.Outcome // of a delayed request
}

// Serve handles one request of the gateway that reaches the operator now.
func (o *Operator) Serve(now time.Time, request *http.Request, body []byte, c Chooser) Exchange {
	o.Advance(now)
	in := &served{content: readContent(request.Header, body), choose: c}
	response := o.serve(request, body, in)
	switch {
	case in.kind == "":
		o.trace("refused a request", effectKey{})
	case in.kind == KindLookup:
	default:
		if in.fault == HangLate && !o.knows(in.effectKey) {
			o.delay(in, request.Clone(context.Background()), body)
		}
		if in.fault != ConnectRefused {
			o.compareContent(in)
		}
		if o.OnCall != nil {
			o.OnCall(in.kind, in.key, response)
		}
	}
	return response
}

// serve lets the platform serve a call, and adds the faults of the transport.
func (o *Operator) serve(request *http.Request, body []byte, in *served) Exchange {
	o.start()
	o.platform.SetTokens(o.AccessTokens...)
	o.serving = in
	made := o.platform.Serve(request, body)
	o.serving = nil
	if row := faultTable[in.fault]; row.response != nil && row.mode == "" {
		return *row.response
	}
	response := Exchange{Status: made.Status, Header: http.Header{"Content-Type": {made.Type}}, Body: made.Body}
	for name, value := range made.Header {
		response.Header.Set(name, value)
	}
	switch {
	case in.fault == TruncatedAfter:
		response.Failure = TruncatedBody
	case in.fault == SlowAfter && in.kind == KindLookup:
		response.Delay = choose(in.choose, "operator: delay of getStatus", 3*time.Second, 9*time.Second, 70*time.Second)
	case in.fault == SlowAfter:
		response.Delay = choose(in.choose, "operator: delay", 3*time.Second, 11*time.Second, 25*time.Second,
			70*time.Second)
		o.busyUntil[in.effectKey] = o.now.Add(response.Delay)
	case in.isEarly:
		response.Delay = earlyCallbackLead
	}
	return response
}

// start makes the platform.
func (o *Operator) start() {
	if o.platform != nil {
		return
	}
	o.truth = truth{
		contents: map[effectKey]content{}, accepted: map[effectKey]end{}, busyUntil: map[effectKey]time.Time{},
		effects: map[effectKey]*Effect{}, delayed: map[effectKey]delayed{},
	}
	platform, err := sandbox.New(sandbox.Config{
		Tokens: o.AccessTokens, BaseURL: "https://operator.example.com", Config: kit.Config{
			Now: func() time.Time { return o.now }, After: o.after, Rand: &o.random, Draw: o.drawOutcome,
			Post: o.post, Applied: o.recordEffect, Hazards: kit.Hazards{ForgetsRefusals: o.ForgetsRefusals,
				KeyWindow: cmp.Or(o.KeyWindow, DefaultKeyWindow), Pick: o.pickHazard},
		},
	})
	if err != nil {
		panic(err)
	}
	o.platform = platform
}

// pickHazard draws what happens to a call that the platform accepts, as a mode of the platform.
func (o *Operator) pickHazard(operation string, k kit.Keys, isKnown bool) kit.Hazard {
	in := o.serving
	if in.outcome != nil {
		return "" // a delayed request
	}
	in.effectKey, in.payer = effectKey{kindOf(operation, k.Key), k.Key}, k.MSISDN
	if operation == KindLookup {
		return o.pickLookupHazard(effectKey{KindPayment, k.Key})
	}
	if o.now.Before(o.busyUntil[in.effectKey]) {
		o.trace("repeat while the first call is in progress", in.effectKey)
		return "409"
	}
	in.fault = o.pickFault(in.kind, in.choose, OperatorCalls)
	if in.fault == LieDuplicate && isKnown {
		in.fault = NoFault
	}
	if faultTable[in.fault].lies {
		o.lies = append(o.lies, lie{in.effectKey, in.fault})
	}
	return faultTable[in.fault].hazard()
}

// pickLookupHazard draws what happens to a getStatus.
func (o *Operator) pickLookupHazard(key effectKey) kit.Hazard {
	in := o.serving
	in.fault = o.pickFault(KindLookup, in.choose, Lookups)
	isKnown, hazard := o.knows(key), faultTable[in.fault].hazard()
	if in.fault == LieNotFound && isKnown {
		o.lies = append(o.lies, lie{key, in.fault})
	}
	if hazard == "" && isKnown && o.Faults.pick(in.choose, LookupContents) == LookupOther {
		others := []kit.Hazard{kit.OtherAmount, kit.OtherCurrency}
		hazard = others[in.choose.Choose("operator: part of another payment", len(others))]
	}
	return hazard
}

// pickFault returns the fault of an outage, or draws one of the group.
func (o *Operator) pickFault(kind string, c Chooser, group Group) Fault {
	var fault Fault
	at := slices.IndexFunc(o.Outages, func(outage Outage) bool {
		return cmp.Or(outage.Kind, kind) == kind && outage.Contains(o.now)
	})
	if at >= 0 {
		if fault = o.Outages[at].next(); fault != NoFault {
			o.Faults.count(group, fault)
		}
	} else {
		fault = o.Faults.pick(c, group)
	}
	if fault != NoFault {
		o.trace("fault: "+string(fault), o.serving.effectKey)
	}
	return fault
}

// next is the fault of the next call.
func (o *Outage) next() Fault {
	o.met++
	if o.SparedOf > 0 && o.met%o.SparedOf == 0 {
		return NoFault
	}
	return o.Fault
}

// delay lets a request arrive later, unless its key was accepted by then.
func (o *Operator) delay(in *served, request *http.Request, body []byte) {
	wait := choose(in.choose, "operator: time of the late effect", 40*time.Second, 5*time.Minute, 3*time.Hour)
	late := &served{effectKey: in.effectKey, content: in.content, choose: in.choose}
	outcome := o.draw(late)
	late.outcome = &outcome
	o.delayed[in.effectKey] = delayed{o.now.Add(wait), outcome}
	o.after(wait, func() {
		delete(o.delayed, in.effectKey)
		if !o.knows(in.effectKey) {
			o.trace("a delayed request arrived", in.effectKey)
			o.serve(request, body, late)
		}
	})
}

// compareContent compares a call with the first one under its key.
func (o *Operator) compareContent(in *served) {
	first, found := o.contents[in.effectKey]
	if !found {
		o.contents[in.effectKey] = in.content
	} else if first.details != in.details && o.OnOtherContent != nil {
		o.OnOtherContent(in.kind, in.key)
	}
}

// recordEffect counts an effect of the platform.
func (o *Operator) recordEffect(happened kit.Effect) {
	key := effectKey{kindOf(happened.Kind, happened.Key), happened.Key}
	effect := o.effects[key]
	if effect == nil {
		first := o.contents[key]
		if in := o.serving; in != nil {
			first = in.content
		}
		effect = &Effect{
			Kind: key.kind, Key: key.key, AmountMinor: minorOf(happened), Currency: happened.Currency,
			Merchant: key.key[:max(0, strings.IndexAny(key.key, keySigns))], MSISDN: first.payer,
			Text: first.text, At: o.now,
		}
		o.effects[key] = effect
	}
	effect.Count++
	effect.LastAt = o.now
	o.trace("effect", key)
	if o.OnEffect != nil {
		o.OnEffect(*effect)
	}
}

// minorOf is the amount of an effect in minor units; -1 for one that its currency does not allow.
func minorOf(happened kit.Effect) int64 {
	for _, country := range market.All() {
		if country.Currency != happened.Currency {
			continue
		}
		exponent := country.Exponent
		if happened.Kind == KindCharge && country.ChargesInMinorUnits {
			exponent = 0
		}
		if minor, err := money.Parse(happened.Amount, exponent); err == nil {
			return minor
		}
		return -1
	}
	return map[bool]int64{true: 0, false: -1}[happened.Amount == ""]
}

// kindOf is the kind of a call of an operation. The gateway sends a payer's SMS under the order_id.
func kindOf(operation, key string) string {
	if sign := strings.IndexAny(key, keySigns); operation == KindSMS && sign >= 0 && key[sign] == '_' {
		return KindPayerSMS
	}
	return operation
}

// Effects lists the effects until the last Serve, Due or Advance, sorted by kind and key.
func (o *Operator) Effects() []Effect {
	effects := make([]Effect, 0, len(o.effects))
	for _, effect := range o.effects {
		effects = append(effects, *effect)
	}
	slices.SortFunc(effects, func(a, b Effect) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	return effects
}

// EffectOf returns the effects of one key until the last Serve, Due or Advance.
func (o *Operator) EffectOf(kind, key string) (Effect, bool) {
	effect := o.effects[effectKey{kind, key}]
	if effect == nil {
		return Effect{}, false
	}
	return *effect, true
}

// LiedAbout reports whether the operator has lied about a key.
func (o *Operator) LiedAbout(key string) bool {
	return slices.ContainsFunc(o.lies, func(l lie) bool { return l.key == key })
}

// IsDelayed reports whether a request of a key is still on its way to the operator.
func (o *Operator) IsDelayed(kind, key string) bool {
	_, isDelayed := o.delayed[effectKey{kind, key}]
	return isDelayed
}

// FinalStatus returns the true final status of a payment and its time, also if the time is in the future. It returns
// false if the operator has no such payment, or its payer never decides.
func (o *Operator) FinalStatus(orderID string) (status string, at time.Time, ok bool) {
	if o == nil { // a name without a platform of its own
		return "", time.Time{}, false
	}
	e := o.accepted[effectKey{KindPayment, orderID}]
	return e.status, e.at, e.status != ""
}

func (o *Operator) knows(key effectKey) bool {
	_, isKnown := o.accepted[key]
	return isKnown
}

func (o *Operator) trace(text string, key effectKey) {
	switch {
	case o.Trace == nil:
	case key.key == "":
		o.Trace("operator " + o.Name + ": " + text)
	default:
		o.Trace("operator " + o.Name + ": " + key.kind + " " + key.key + ": " + text)
	}
}
