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

// SentCall is one call that reached the driver. One of Charge, Pay and SMS is filled in, by Kind; Call is its common part.
type SentCall struct {
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
	mutex      sync.Mutex
	behaviours []Behaviour
	sent       []SentCall
	effects    []string
	account    string
	accountErr error
}

var _ operator.Driver = (*Driver)(nil)

// SetBehaviours sets what the next calls do, in order.
func (d *Driver) SetBehaviours(steps ...Behaviour) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.behaviours = steps
}

// SetAccount changes the account of new calls, or why there is none.
func (d *Driver) SetAccount(account string, failure error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.account, d.accountErr = account, failure
}

// Calls are the calls so far.
func (d *Driver) Calls() []SentCall {
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

// CurrentAccountID is operator.Driver's.
func (d *Driver) CurrentAccountID(context.Context, string) (string, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.account, d.accountErr
}

// Charge is operator.Driver's.
func (d *Driver) Charge(ctx context.Context, call operator.ChargeCall) operator.Result {
	return d.handle(ctx, SentCall{Kind: "charge", Call: call.Call, Charge: call})
}

// Pay is operator.Driver's.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	response := operator.PayResponse{Result: d.handle(ctx, SentCall{Kind: "pay", Call: call.Call, Pay: call})}
	if call.Channel == "web" && response.Outcome == operator.Succeeded {
		response.PayToken = "pt-" + call.IdempotencyKey
		response.PaymentURL = "https://pay.example.com/page?a=1&token=pt-" + call.IdempotencyKey
		response.NotifToken = "nt-" + call.IdempotencyKey
	}
	return response
}

// SendSMS is operator.Driver's.
func (d *Driver) SendSMS(ctx context.Context, call operator.SMSCall) operator.Result {
	return d.handle(ctx, SentCall{Kind: "sms", Call: call.Call, SMS: call})
}

func (d *Driver) handle(ctx context.Context, sent SentCall) operator.Result {
	sent.Deadline, _ = ctx.Deadline()
	d.mutex.Lock()
	behaviour := Succeed
	if len(d.behaviours) > 0 {
		behaviour, d.behaviours = d.behaviours[0], d.behaviours[1:]
	}
	d.sent = append(d.sent, sent)
	d.mutex.Unlock()

	result := behaviour(func() { d.recordEffect(sent) })
	if result.Outcome == operator.Succeeded {
		result.OperatorReference = "op-" + sent.Call.IdempotencyKey
	}
	return result
}

func (d *Driver) recordEffect(sent SentCall) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	effect := sent.Kind + " " + sent.Call.IdempotencyKey
	if !slices.Contains(d.effects, effect) {
		d.effects = append(d.effects, effect)
	}
}

// Succeed applies the call and says so.
func Succeed(apply func()) operator.Result {
	apply()
	return operator.Result{Outcome: operator.Succeeded}
}

// LoseResponse applies the call, and the answer is lost.
func LoseResponse(apply func()) operator.Result {
	apply()
	return LoseRequest(apply)
}

// LoseRequest does not apply the call, and there is no answer.
func LoseRequest(func()) operator.Result {
	return operator.Result{Fault: &fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.New("cut")}}
}

// RespondUnavailable says 503: nothing was applied.
func RespondUnavailable(func()) operator.Result {
	return operator.Result{Outcome: operator.NotApplied, Fault: fault.New(fault.OperatorUnavailable)}
}

// RejectCredentials refuses the gateway's own credentials: nothing was applied.
func RejectCredentials(func()) operator.Result {
	return operator.Result{Outcome: operator.NotApplied, Fault: fault.New(fault.IntegrationRejected)}
}

// ReportDuplicate is an operator that says that it has seen the key.
func ReportDuplicate(func()) operator.Result {
	return operator.Result{DuplicateKey: true, Fault: fault.New(fault.OutcomeUnknown)}
}

// RefuseFinally refuses for good with an exception of the OneAPI family.
func RefuseFinally(id string, variables ...string) Behaviour {
	return func(func()) operator.Result {
		return operator.Result{Outcome: operator.Refused, Fault: operatorError(id, 403, variables)}
	}
}

// RejectRequest says that the request was bad and nothing was applied.
func RejectRequest(id string, variables ...string) Behaviour {
	return func(func()) operator.Result {
		return operator.Result{Outcome: operator.NotApplied, Fault: operatorError(id, 400, variables)}
	}
}

func operatorError(id string, status int, variables []string) *fault.Fault {
	return &fault.Fault{Kind: fault.OperatorError, OperatorException: &fault.OperatorException{
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

// BlockUntilReleased tells entered that the call is there, waits for release, and goes on as then says.
func BlockUntilReleased(entered chan<- struct{}, release <-chan struct{}, next Behaviour) Behaviour {
	return func(apply func()) operator.Result {
		entered <- struct{}{}
		<-release
		return next(apply)
	}
}
