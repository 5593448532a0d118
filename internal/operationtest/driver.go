package operationtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// Sent is one call that reached the driver. One of Charge, Pay and SMS is filled in, by Kind; Call is its common part.
type Sent struct {
	Kind     string // charge, pay or sms
	Call     operator.Call
	Charge   operator.ChargeCall
	Pay      operator.PayCall
	SMS      operator.SMSCall
	Deadline time.Time // of the call's context
}

// Behaviour is what the operator does with one call. apply makes the call's effect at the operator, which knows a key
// once however often it is applied.
type Behaviour func(apply func()) operator.Result

// Driver is an operator that does what a script says, and succeeds where the script has ended.
type Driver struct {
	mutex   sync.Mutex
	script  []Behaviour
	sent    []Sent
	effects []string
	account string
	failure error
}

var _ operator.Driver = (*Driver)(nil)

// Script sets what the next calls do, in order.
func (d *Driver) Script(steps ...Behaviour) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.script = steps
}

// SetAccount changes the account of new calls, or why there is none.
func (d *Driver) SetAccount(account string, failure error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.account, d.failure = account, failure
}

// Calls are the calls so far.
func (d *Driver) Calls() []Sent {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Clone(d.sent)
}

// Effects are what really happened at the operator: "charge DemoShop.c-1", once a key.
func (d *Driver) Effects() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Clone(d.effects)
}

// Account is operator.Driver's.
func (d *Driver) Account(context.Context, string) (string, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.account, d.failure
}

// Charge is operator.Driver's.
func (d *Driver) Charge(ctx context.Context, call operator.ChargeCall) operator.Result {
	return d.run(ctx, Sent{Kind: "charge", Call: call.Call, Charge: call})
}

// Pay is operator.Driver's.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayAnswer {
	answer := operator.PayAnswer{Result: d.run(ctx, Sent{Kind: "pay", Call: call.Call, Pay: call})}
	if call.Channel == "web" && answer.Outcome == operator.Done {
		answer.PayToken = "pt-" + call.Key
		answer.PaymentURL = "https://pay.example.com/page?a=1&token=pt-" + call.Key
		answer.NotifToken = "nt-" + call.Key
	}
	return answer
}

// SendSMS is operator.Driver's.
func (d *Driver) SendSMS(ctx context.Context, call operator.SMSCall) operator.Result {
	return d.run(ctx, Sent{Kind: "sms", Call: call.Call, SMS: call})
}

func (d *Driver) run(ctx context.Context, sent Sent) operator.Result {
	sent.Deadline, _ = ctx.Deadline()
	d.mutex.Lock()
	behave := Succeed
	if len(d.script) > 0 {
		behave, d.script = d.script[0], d.script[1:]
	}
	d.sent = append(d.sent, sent)
	d.mutex.Unlock()

	result := behave(func() { d.apply(sent) })
	if result.Outcome == operator.Done {
		result.OperatorReference = "op-" + sent.Call.Key
	}
	return result
}

func (d *Driver) apply(sent Sent) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	effect := sent.Kind + " " + sent.Call.Key
	if !slices.Contains(d.effects, effect) {
		d.effects = append(d.effects, effect)
	}
}

// Succeed applies the call and says so.
func Succeed(apply func()) operator.Result {
	apply()
	return operator.Result{Outcome: operator.Done}
}

// LoseAnswer applies the call, and the answer is lost.
func LoseAnswer(apply func()) operator.Result {
	apply()
	return Vanish(apply)
}

// Vanish does not apply the call, and there is no answer.
func Vanish(func()) operator.Result {
	return operator.Result{Fault: &fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.New("cut")}}
}

// Down says 503: nothing was applied.
func Down(func()) operator.Result {
	return operator.Result{Outcome: operator.Released, Fault: fault.Of(fault.OperatorDown)}
}

// RefuseUs refuses the gateway's own credentials: nothing was applied.
func RefuseUs(func()) operator.Result {
	return operator.Result{Outcome: operator.Released, Fault: fault.Of(fault.OperatorRefusedUs)}
}

// SayDuplicate is an operator that says that it has seen the key.
func SayDuplicate(func()) operator.Result {
	return operator.Result{Duplicate: true, Fault: fault.Of(fault.OutcomeUnknown)}
}

// Refuse refuses for good with an exception of the OneAPI family.
func Refuse(id string, variables ...string) Behaviour {
	return func(func()) operator.Result {
		return operator.Result{Outcome: operator.Refused, Fault: operatorError(id, 403, variables)}
	}
}

// Reject says that the request was bad and nothing was applied.
func Reject(id string, variables ...string) Behaviour {
	return func(func()) operator.Result {
		return operator.Result{Outcome: operator.Released, Fault: operatorError(id, 400, variables)}
	}
}

func operatorError(id string, status int, variables []string) *fault.Fault {
	return &fault.Fault{Kind: fault.OperatorError, Operator: &fault.OperatorFault{
		MessageID: id, Text: "the operator's own words", Variables: variables, HTTPStatus: status,
	}}
}

// PanicBefore breaks down before anything was applied, PanicAfter when it was.
func PanicBefore(func()) operator.Result { panic("the driver broke down") }

// PanicAfter applies the call and breaks down.
func PanicAfter(apply func()) operator.Result {
	apply()
	panic("the driver broke down")
}

// Hold tells entered that the call is there, waits for release, and goes on as then says.
func Hold(entered chan<- struct{}, release <-chan struct{}, then Behaviour) Behaviour {
	return func(apply func()) operator.Result {
		entered <- struct{}{}
		<-release
		return then(apply)
	}
}
