package outside

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The kinds of effects.
const (
	KindCharge   = "charge"
	KindPayment  = "payment"
	KindSMS      = "sms"
	KindPayerSMS = "payer-sms" // the SMS to the payer after a payment
	// KindLookup is a getStatus call, which has no effect. Only outages use it.
	KindLookup = "getstatus"
)

// DefaultKeyWindow is how long a platform recognizes a repeated key, as the operator table declares it.
const DefaultKeyWindow = 24 * time.Hour

// Outage is a time in which every call of a kind meets a fault, without a choice.
type Outage struct {
	Kind     string // one of the kinds; "" is every kind, also lookups
	Fault    Fault
	From, To time.Time
}

// Operator is an operator's platform behind the protocol of carrierapi. Set its fields before the first call.
type Operator struct {
	// Name is the operator's name in the operator table.
	Name string
	// Faults are the rates of the history; required.
	Faults *Faults
	// Outages overrule the rates.
	Outages []Outage
	// AccessTokens are the valid bearer tokens. Without one, every token is valid.
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

	count        int // of transactions, for their ids
	transactions map[effectKey]*transaction
	contents     map[effectKey]string // of the first call that came
	arrivals     []arrival
	undecided    []*transaction // payments without an effect yet
	queue        []Callback
	queued       int // number of callbacks ever queued
	effects      map[effectKey]*Effect
	lies         []Lie
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

// Lie is a false statement of the operator about a key.
type Lie struct {
	Kind, Key string
	Fault     Fault
	At        time.Time
}

// transaction is a call that the operator accepted.
type transaction struct {
	call
	plan
	id         string
	number     int
	notifToken string // on the web channel
	createdAt  time.Time
	busyUntil  time.Time // repeats are conflicts until then
	finalAt    time.Time // of a payment; zero: never
	reversedAt time.Time // until then a reversed payment is reported as successful
	response   Exchange
}

// arrival is a delayed request.
type arrival struct {
	at   time.Time
	call call
	plan plan
}

// Serve handles one request of the gateway that reaches the operator now.
func (o *Operator) Serve(now time.Time, request *http.Request, body []byte, c Chooser) Exchange {
	o.Advance(now)
	path := request.URL.EscapedPath()
	_, orderID, isLookup := strings.Cut(path, "/mobilemoney/v1/getStatus/")
	token := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
	switch {
	case len(o.AccessTokens) > 0 && !slices.Contains(o.AccessTokens, token):
		o.trace("refused an access token", effectKey{})
		return requestError(http.StatusUnauthorized, "900901", "")
	case isLookup && request.Method == http.MethodGet:
		return o.serveLookup(now, orderID, c)
	case request.Method == http.MethodPost:
		if in, ok := readCall(path, request.Header, body); ok {
			response := o.serveCall(now, in, c)
			if response.Failure != ConnectionRefused {
				o.compareContent(in)
			}
			if o.OnCall != nil {
				o.OnCall(in.kind, in.key, response)
			}
			return response
		}
	}
	o.trace("refused a malformed request to "+path, effectKey{})
	return requestError(http.StatusBadRequest, "SVC0002", "request")
}

// compareContent compares a call with the first one under its key.
func (o *Operator) compareContent(in call) {
	key := effectKey{in.kind, in.key}
	first, found := o.contents[key]
	switch {
	case !found && o.contents == nil:
		o.contents = map[effectKey]string{key: in.details}
	case !found:
		o.contents[key] = in.details
	case first != in.details && o.OnOtherContent != nil:
		o.OnOtherContent(in.kind, in.key)
	}
}

// serveCall handles a charge, a payment or an SMS.
func (o *Operator) serveCall(now time.Time, in call, c Chooser) Exchange {
	key := effectKey{in.kind, in.key}
	known := o.find(key, now)
	if known != nil && now.Before(known.busyUntil) {
		o.trace("repeat while the first call is in progress", key)
		return requestError(http.StatusConflict, "SVC0005", in.key, "Retry-After", "1")
	}
	if o.ForgetsRefusals && known != nil && known.refusal != "" && in.kind != KindPayment {
		known = nil
	}
	fault := o.pickFault(now, in.kind, c, OperatorCalls)
	if fault == LieDuplicate && known != nil {
		fault = NoFault
	}
	row := faultTable[fault]
	if row.lies {
		o.lies = append(o.lies, Lie{in.kind, in.key, fault, now})
	}
	if fault != NoFault {
		o.trace("fault: "+string(fault), key)
	}
	isRepeat := known != nil
	switch {
	case isRepeat:
	case row.effect == effectNow:
		known = o.accept(now, in, o.drawPlan(in, fault, c))
	case row.effect == effectLate:
		delay := choose(c, "operator: time of the late effect", 40*time.Second, 5*time.Minute, 3*time.Hour)
		o.arrivals = append(o.arrivals, arrival{now.Add(delay), in, o.drawPlan(in, NoFault, c)})
	}
	if row.response != nil {
		return *row.response
	}
	return o.correctResponse(now, known, in, isRepeat, fault, c)
}

// correctResponse is the protocol's response to an accepted call or its repeat, with the transport's faults.
func (o *Operator) correctResponse(
	now time.Time, t *transaction, in call, isRepeat bool, fault Fault, c Chooser,
) Exchange {
	response := t.response
	isDuplicate := t.kind == KindPayment && t.fingerprint != in.fingerprint
	isSMS := t.kind == KindSMS || t.kind == KindPayerSMS
	switch {
	case !isRepeat || t.refusal != "":
	case isDuplicate:
		response = requestError(http.StatusConflict, "SVC0005", in.key)
	case isSMS:
		location := t.response.Header.Get("Location")
		response = requestError(http.StatusConflict, "SVC0005", in.key, "Location", location)
	default:
		t.callbackURL = cmp.Or(in.callbackURL, t.callbackURL) // its signature changes with the gateway's key
		o.trace("repeat gets the first response", effectKey{t.kind, t.key})
	}
	switch {
	case fault == TruncatedAfter:
		response.Failure = TruncatedBody
	case fault == SlowAfter:
		response.Delay = choose(c, "operator: delay", 3*time.Second, 11*time.Second, 25*time.Second, 70*time.Second)
		t.busyUntil = now.Add(response.Delay)
	case t.timing == CallbackEarly && !isRepeat:
		response.Delay = earlyCallbackLead
	}
	return response
}

// pickFault returns the fault of an outage, or draws one of the group.
func (o *Operator) pickFault(now time.Time, kind string, c Chooser, group Group) Fault {
	for _, outage := range o.Outages {
		matches := outage.Kind == "" || outage.Kind == kind
		if matches && !now.Before(outage.From) && now.Before(outage.To) {
			o.Faults.count(group, outage.Fault)
			return outage.Fault
		}
	}
	return o.Faults.pick(c, group)
}

// choose draws one of the durations; the first is the normal one.
func choose(c Chooser, label string, durations ...time.Duration) time.Duration {
	return durations[c.Choose(label, len(durations))]
}

// find returns the transaction of a key within the window, or nil.
func (o *Operator) find(key effectKey, now time.Time) *transaction {
	t := o.transactions[key]
	if t == nil || !now.Before(t.createdAt.Add(cmp.Or(o.KeyWindow, DefaultKeyWindow))) {
		return nil
	}
	return t
}

// accept records a new transaction, with its effect unless the payer decides first, and queues its callbacks.
func (o *Operator) accept(now time.Time, in call, p plan) *transaction {
	o.count++
	t := &transaction{call: in, plan: p, number: o.count, id: transactionID(in.kind, o.count), createdAt: now}
	if in.channel == channelWeb {
		t.notifToken = "notif-" + t.id
	}
	t.response = t.successResponse()
	if o.transactions == nil {
		o.transactions, o.effects = map[effectKey]*transaction{}, map[effectKey]*Effect{}
	}
	o.transactions[effectKey{in.kind, in.key}] = t
	switch {
	case p.refusal != "":
		status := http.StatusForbidden
		if strings.HasPrefix(p.refusal, "SVC") {
			status = http.StatusBadRequest
		}
		t.response = requestError(status, p.refusal, "Not enough credit")
		t.finalAt, t.finalStatus = now, statusFailed
		o.trace("refused finally with "+p.refusal, effectKey{in.kind, in.key})
		return t
	case in.kind != KindPayment:
		o.recordEffect(t, now)
	case p.finalStatus != "":
		t.finalAt = now.Add(p.decidesAfter)
		t.reversedAt = t.finalAt.Add(p.reversedAfter)
		o.undecided = append(o.undecided, t)
		o.trace("accepted a payment that ends as "+p.finalStatus+" after "+p.decidesAfter.String(),
			effectKey{in.kind, in.key})
		if p.reversedAfter > 0 {
			o.lies = append(o.lies, Lie{in.kind, in.key, LieReversed, now})
		}
	}
	o.queueCallbacks(t)
	return t
}

func (o *Operator) recordEffect(t *transaction, at time.Time) {
	key := effectKey{t.kind, t.key}
	effect := o.effects[key]
	if effect == nil {
		merchant := t.key
		if end := strings.IndexAny(t.key, keySigns); end >= 0 {
			merchant = t.key[:end]
		}
		effect = &Effect{
			Kind: t.kind, Key: t.key, AmountMinor: t.minor, Currency: t.currency, Merchant: merchant,
			MSISDN: t.msisdn, Text: t.text, At: at,
		}
		o.effects[key] = effect
	}
	effect.Count++
	effect.LastAt = at
	o.trace("effect", key)
	if o.OnEffect != nil {
		o.OnEffect(*effect)
	}
}

// Advance applies what happened at the operator until now: delayed requests and decisions of payers.
func (o *Operator) Advance(now time.Time) {
	slices.SortStableFunc(o.arrivals, func(a, b arrival) int { return a.at.Compare(b.at) })
	for len(o.arrivals) > 0 && !o.arrivals[0].at.After(now) {
		next := o.arrivals[0]
		o.arrivals = o.arrivals[1:]
		key := effectKey{next.call.kind, next.call.key}
		if o.find(key, next.at) == nil {
			o.trace("a delayed request arrived", key)
			o.accept(next.at, next.call, next.plan)
		}
	}
	o.undecided = slices.DeleteFunc(o.undecided, func(t *transaction) bool {
		decided := !t.finalAt.After(now)
		if decided && t.finalStatus == statusSuccessful {
			o.recordEffect(t, t.finalAt)
		}
		return decided
	})
}

// Next returns the time of the operator's next own event: a callback, a delayed request or a payer's decision. It
// returns false if there is none.
func (o *Operator) Next() (time.Time, bool) {
	var next time.Time
	consider := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, a := range o.arrivals {
		consider(a.at)
	}
	for _, t := range o.undecided {
		consider(t.finalAt)
	}
	for _, q := range o.queue {
		consider(q.at)
	}
	return next, !next.IsZero()
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

// Lies lists the operator's false statements in their order.
func (o *Operator) Lies() []Lie { return slices.Clone(o.lies) }

// IsDelayed reports whether a request of a key is still on its way to the operator.
func (o *Operator) IsDelayed(kind, key string) bool {
	return slices.ContainsFunc(o.arrivals, func(a arrival) bool { return a.call.kind == kind && a.call.key == key })
}

// LiedAbout reports whether the operator has lied about a key.
func (o *Operator) LiedAbout(key string) bool {
	return slices.ContainsFunc(o.lies, func(lie Lie) bool { return lie.Key == key })
}

// FinalStatus returns the true final status of a payment and its time, also if the time is in the future. It returns
// false if the operator has no such payment, or its payer never decides.
func (o *Operator) FinalStatus(orderID string) (status string, at time.Time, ok bool) {
	if o == nil { // a name without a platform of its own
		return "", time.Time{}, false
	}
	t := o.transactions[effectKey{KindPayment, orderID}]
	if t == nil || t.finalAt.IsZero() {
		return "", time.Time{}, false
	}
	return t.finalStatus, t.finalAt, true
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
