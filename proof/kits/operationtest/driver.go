package operationtest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// SentCall is one call to the driver. One of Charge, Pay and SMS is filled in, by Kind. Call is its
// common part.
type SentCall struct {
	Kind     string // charge, pay or sms
	Call     operator.Call
	Charge   operator.ChargeCall
	Pay      operator.PayCall
	SMS      operator.SMSCall
	Deadline time.Time // of the call's context
}

// Behaviour is the operator's reaction to one call. apply has the effect of the call at the operator, once for each
// key.
type Behaviour func(apply func()) operator.Result

// Driver is a stub operator with scripted behaviours. It succeeds after the last one.
type Driver struct {
	// Account is the account of new calls. AccountErr, if set, prevents them. Set both between requests.
	Account    string
	AccountErr error
	// Refused, if set, is what the platform does not take. Set it between requests.
	Refused *fault.Fault

	mutex      sync.Mutex
	behaviours []Behaviour
	sent       []SentCall
	effects    []string
}

var _ operator.Driver = (*Driver)(nil)

// SetBehaviours sets the behaviours of the next calls, in order.
func (d *Driver) SetBehaviours(steps ...Behaviour) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.behaviours = steps
}

// Calls returns the calls so far.
func (d *Driver) Calls() []SentCall {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Clone(d.sent)
}

// Effects returns the effects at the operator: "charge DemoShop.c-1", one for each key.
func (d *Driver) Effects() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Clone(d.effects)
}

// FindAccount implements operator.Driver.
func (d *Driver) FindAccount(_ context.Context, _, id string) (string, error) {
	return cmp.Or(id, d.Account), d.AccountErr
}

// CheckPayment implements operator.PaymentChecker.
func (d *Driver) CheckPayment(context.Context, operator.PayCall) *fault.Fault { return d.Refused }

// CheckMessage implements operator.MessageChecker.
func (d *Driver) CheckMessage(context.Context, operator.SMSCall) *fault.Fault { return d.Refused }

// Charge implements operator.Charger.
func (d *Driver) Charge(ctx context.Context, call operator.ChargeCall) operator.Result {
	return d.handle(ctx, SentCall{Kind: "charge", Call: call.Call, Charge: call})
}

// Pay implements operator.PaymentSender.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	response := operator.PayResponse{Result: d.handle(ctx, SentCall{Kind: "pay", Call: call.Call, Pay: call})}
	if call.Channel == "web" && response.Outcome == operator.Succeeded {
		response.PayToken = "pt-" + call.UpstreamKey
		response.PaymentURL = "https://pay.example.com/page?a=1&token=pt-" + call.UpstreamKey
		response.NotifToken, response.DriverData = "nt-"+call.UpstreamKey, "dd-"+call.UpstreamKey
	}
	return response
}

// SendSMS implements operator.MessageSender.
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
		result.OperatorReference = "op-" + sent.Call.UpstreamKey
	}
	return result
}

func (d *Driver) recordEffect(sent SentCall) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	effect := sent.Kind + " " + sent.Call.UpstreamKey
	if !slices.Contains(d.effects, effect) {
		d.effects = append(d.effects, effect)
	}
}

// Succeed applies the call and reports success.
func Succeed(apply func()) operator.Result {
	apply()
	return operator.Result{Outcome: operator.Succeeded}
}

// LoseResponse applies the call and loses the response.
func LoseResponse(apply func()) operator.Result {
	apply()
	return LoseRequest(apply)
}

// LoseRequest does not apply the call and sends no response.
func LoseRequest(func()) operator.Result {
	return operator.Result{Fault: &fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.New("cut")}}
}

// RespondUnavailable responds 503: the call was not applied.
func RespondUnavailable(func()) operator.Result {
	return operator.Result{Outcome: operator.NotApplied, Fault: fault.New(fault.OperatorUnavailable)}
}

// RejectCredentials refuses the gateway's own credentials: the call was not applied.
func RejectCredentials(func()) operator.Result {
	return operator.Result{Outcome: operator.NotApplied, Fault: fault.New(fault.IntegrationRejected)}
}

// ReportDuplicate reports that the operator has already seen the key.
func ReportDuplicate(func()) operator.Result {
	return operator.Result{DuplicateKey: true, Fault: fault.New(fault.OutcomeUnknown)}
}

// RefuseFinally refuses finally, with an exception of the OneAPI family.
func RefuseFinally(id string, variables ...string) Behaviour {
	return func(func()) operator.Result {
		return operator.Result{Outcome: operator.Refused, Fault: operatorError(id, 403, variables)}
	}
}

// RejectRequest rejects the request as invalid: it was not applied.
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

// PanicBefore panics and does not apply the call.
func PanicBefore(func()) operator.Result { panic("the driver panicked") }

// PanicAfter applies the call and panics.
func PanicAfter(apply func()) operator.Result {
	apply()
	panic("the driver panicked")
}
