package deliverytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/operator"
)

// Operator is a driver with a status lookup and the payer's SMS, whose responses a test sets. Its embedded Driver
// is nil: no test here calls an operation.
type Operator struct {
	operator.Driver
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

// StatusLookup is one getStatus request.
type StatusLookup struct {
	operator.StatusCall
	CalledAt time.Time
}

// SetStatus sets the status in getStatus responses, without an amount.
func (o *Operator) SetStatus(status string) {
	o.SetLookupResult(operator.StatusResponse{StatusKnown: true, OperatorStatus: status})
}

// SetLookupResult sets the getStatus response.
func (o *Operator) SetLookupResult(response operator.StatusResponse) {
	o.SetLookupFunc(func(operator.StatusCall) operator.StatusResponse { return response })
}

// NoResponse is the result of a getStatus request without a response.
func NoResponse() operator.StatusResponse {
	return operator.StatusResponse{Cause: errors.New("no response")}
}

// NoSuchOrder is the getStatus response for an unknown order.
func NoSuchOrder() operator.StatusResponse {
	return operator.StatusResponse{OrderNotFound: true, Cause: errors.New("404")}
}

// SetLookupFunc sets the function that returns getStatus responses. It may be called concurrently.
func (o *Operator) SetLookupFunc(respond func(operator.StatusCall) operator.StatusResponse) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.lookupFunc = respond
}

// SetUserSMSFunc sets the function that returns the results of the payer's SMS; nil means success. It may be called
// concurrently.
func (o *Operator) SetUserSMSFunc(result func(operator.UserSMSCall) operator.Result) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.userSMSFunc = result
}

// Lookups returns the getStatus requests so far.
func (o *Operator) Lookups() []StatusLookup {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.lookups)
}

// UserSMSCalls returns the attempts to send a payer's SMS so far.
func (o *Operator) UserSMSCalls() []operator.UserSMSCall {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.userSMSCalls)
}

// LookUpPayment implements operator.StatusLookup. By default there is no response.
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

// SendUserSMS implements operator.UserSMSSender.
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

// MinimalDriver is a driver without a status lookup and without the payer's SMS.
type MinimalDriver struct{ operator.Driver }
