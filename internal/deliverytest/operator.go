package deliverytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/operator"
)

// Operator is a driver whose getStatus and SMS say what a test sets. It can do everything; Mute cannot.
type Operator struct {
	mutex        sync.Mutex
	now          func() time.Time
	lookupFunc   func(operator.StatusCall) operator.StatusResponse
	userSMSFunc  func(operator.UserSMSCall) operator.Result
	lookups      []StatusLookup
	userSMSCalls []operator.UserSMSCall
}

var (
	_ operator.StatusLookup  = (*Operator)(nil)
	_ operator.UserSMSSender = (*Operator)(nil)
)

// StatusLookup is one call of getStatus.
type StatusLookup struct {
	operator.StatusCall
	CalledAt time.Time
}

// SetStatus makes getStatus answer with a status and our amount.
func (o *Operator) SetStatus(status string) {
	o.SetLookupResult(operator.StatusResponse{StatusKnown: true, OperatorStatus: status})
}

// SetLookupResult makes getStatus answer so.
func (o *Operator) SetLookupResult(respond operator.StatusResponse) {
	o.SetLookupFunc(func(operator.StatusCall) operator.StatusResponse { return respond })
}

// NoResponse is a getStatus that did not answer.
func NoResponse() operator.StatusResponse {
	return operator.StatusResponse{Cause: errors.New("silent")}
}

// NoSuchOrder is a getStatus that knows no such order.
func NoSuchOrder() operator.StatusResponse {
	return operator.StatusResponse{OrderNotFound: true, Cause: errors.New("404")}
}

// SetLookupFunc makes getStatus answer by a function, which may be called in parallel.
func (o *Operator) SetLookupFunc(respond func(operator.StatusCall) operator.StatusResponse) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.lookupFunc = respond
}

// SetUserSMSFunc makes the purchaser's SMS end by a function, which may be called in parallel; nil sends it.
func (o *Operator) SetUserSMSFunc(result func(operator.UserSMSCall) operator.Result) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.userSMSFunc = result
}

// Lookups are the calls of getStatus so far.
func (o *Operator) Lookups() []StatusLookup {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.lookups)
}

// UserSMSCalls are the purchasers' SMS that were tried.
func (o *Operator) UserSMSCalls() []operator.UserSMSCall {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.userSMSCalls)
}

// LookUpPayment is operator.StatusLookup's. It is silent where no test has set anything.
func (o *Operator) LookUpPayment(_ context.Context, call operator.StatusCall) operator.StatusResponse {
	o.mutex.Lock()
	o.lookups = append(o.lookups, StatusLookup{StatusCall: call, CalledAt: o.now()})
	respond := o.lookupFunc
	o.mutex.Unlock()
	if respond == nil {
		return NoResponse()
	}
	return respond(call)
}

// SendUserSMS is operator.UserSMSSender's.
func (o *Operator) SendUserSMS(_ context.Context, call operator.UserSMSCall) operator.Result {
	o.mutex.Lock()
	o.userSMSCalls = append(o.userSMSCalls, call)
	result := o.userSMSFunc
	o.mutex.Unlock()
	if result == nil {
		return operator.Result{Outcome: operator.Succeeded}
	}
	return result(call)
}

// CurrentAccountID is operator.Driver's.
func (o *Operator) CurrentAccountID(context.Context, string) (string, error) { return "a1", nil }

// Charge is operator.Driver's; nobody calls it here.
func (o *Operator) Charge(context.Context, operator.ChargeCall) operator.Result {
	return operator.Result{}
}

// Pay is operator.Driver's; nobody calls it here.
func (o *Operator) Pay(context.Context, operator.PayCall) operator.PayResponse {
	return operator.PayResponse{}
}

// SendSMS is operator.Driver's; nobody calls it here.
func (o *Operator) SendSMS(context.Context, operator.SMSCall) operator.Result {
	return operator.Result{}
}

// MinimalDriver is a driver without a status lookup and without the purchaser's SMS.
type MinimalDriver struct{ operator.Driver }
