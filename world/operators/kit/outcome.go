package kit

import (
	"cmp"
	"time"
)

// Result is the end of a transaction: Paid, Undecided, or a failure. A failure is one of the constants or an operator's
// own word, which the stub understands.
type Result string

// The results that all stubs know.
const (
	Undecided Result = ""
	Paid      Result = "paid"
	Refused   Result = "refused"
	NoFunds   Result = "no_funds"
)

// Outcome is what happens to a transaction of a number.
type Outcome struct {
	// Mode is the mode of the first call; "" is ok.
	Mode string `json:"mode,omitempty"`
	// Result is the end. Undecided never ends.
	Result Result `json:"result,omitempty"`
	// Callbacks are the results that callbacks report, in order; nil reports Result once.
	Callbacks []Result `json:"callbacks"`
	// CallbackFirst sends the callbacks before the response.
	CallbackFirst bool `json:"callback_first,omitempty"`

	// The rest is for Config.Draw, and only the sandbox knows it. Refusal is the message id of a refusal of the call.
	Refusal string `json:"refusal,omitempty"`
	// DecidesAfter is the time from the acceptance to the end.
	DecidesAfter time.Duration `json:"decides_after,omitempty"`
	// Reports are the callbacks with their times, order and contents; nil for those of Callbacks.
	Reports []Report `json:"reports,omitempty"`
	// Overtaking lets a report not wait for those before it.
	Overtaking bool `json:"overtaking,omitempty"`
	// OtherSpellings writes the statuses as some platforms do.
	OtherSpellings bool `json:"other_spellings,omitempty"`
	// ReversedAfter reports a failure as a success for so long.
	ReversedAfter time.Duration `json:"reversed_after,omitempty"`
}

// Report is one callback of an outcome.
type Report struct {
	// Result is the result that it claims, or the delivery status of an SMS.
	Result Result `json:"result"`
	// After is the time after the end of a payment or the acceptance of an SMS, and with Early after the acceptance.
	After time.Duration `json:"after,omitempty"`
	Early bool          `json:"early,omitempty"`
	// Hazard is the fault of its content.
	Hazard Hazard `json:"hazard,omitempty"`
}

// Results returns the results that callbacks report, in order.
func (o Outcome) Results() []Result {
	if o.Callbacks == nil {
		return []Result{o.Result}
	}
	return o.Callbacks
}

// outcomes are the outcomes by the last four digits of the payer's number. A mode with "-applied" takes effect before
// the fault. Callbacks after the first repeat it or contradict it; an empty list is a lost callback.
var outcomes = map[string]Outcome{
	"1001": {Result: Refused},
	"1002": {Result: NoFunds},
	"1003": {Result: Undecided},
	"1004": {Result: Paid, Mode: "slow"},
	"1005": {Result: Paid, Mode: "cut-applied"},
	"1006": {Result: Paid, Callbacks: []Result{Paid, Paid, Paid}},
	"1007": {Result: Paid, Callbacks: []Result{Paid, Refused}},
	"1008": {Result: Paid, CallbackFirst: true},
	"1009": {Result: Paid, Mode: "503"},
	"1010": {Result: Paid, Mode: "garbage-applied"},
	"1011": {Result: Paid, Callbacks: []Result{}},
}

// OutcomeFor returns the outcome of a payer's number: the Spec's test numbers first, then the last four digits. Where
// Config.Draw decides, no number has an outcome of its own.
func (p *steering) OutcomeFor(msisdn string) Outcome {
	if p.config.Draw != nil {
		return Outcome{Result: Paid}
	}
	if o, ok := p.spec.Numbers[msisdn]; ok {
		return o
	}
	if o, ok := outcomes[msisdn[max(len(msisdn)-4, 0):]]; ok {
		if o.Mode == "503" {
			o.Mode = cmp.Or(p.spec.Down, o.Mode)
		}
		return o
	}
	return Outcome{Result: Paid}
}

// NewOutcome returns the outcome of a new transaction: Config.Draw's, or that of its payer's number.
func (p *steering) NewOutcome(kind string, k Keys) Outcome {
	if p.config.Draw != nil {
		return p.config.Draw(kind, k)
	}
	return p.OutcomeFor(k.MSISDN)
}

// IsDrawn reports whether Config.Draw decides, so that no payer does.
func (p *steering) IsDrawn() bool { return p.config.Draw != nil }

// Decide ends a transaction with its outcome's result, once, and records the effect of a success. It returns the
// callbacks in their order. Callbacks with one result are equal.
func (p *Platform) Decide(t *Transaction) []Callback {
	if t.Result != Undecided {
		return nil
	}
	if p.spec.End != nil {
		p.spec.End(t)
	}
	if t.Outcome.Result == Undecided {
		return nil
	}
	t.Result, t.EndsAt = t.Outcome.Result, p.Now()
	if t.Result == Paid {
		p.AddEffect(t)
	}
	made := map[Result]Callback{}
	var callbacks []Callback
	for _, r := range t.Outcome.Results() {
		if _, ok := made[r]; !ok {
			made[r] = p.spec.Callback(t, r)
		}
		callbacks = append(callbacks, made[r])
	}
	return callbacks
}

// DecideAfter decides a transaction d after its response, or before it with Outcome.CallbackFirst. It returns the
// response. Speed divides d.
func (p *Platform) DecideAfter(d time.Duration, t *Transaction, response Response) Response {
	if t.Outcome.CallbackFirst {
		p.SendFirst(&response, t, p.Decide(t))
		return response
	}
	p.After(d, func() { p.send(t, p.Decide(t)) })
	return response
}
