package deliverytest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
)

// Operator is a driver with a status lookup and the payer's SMS, whose responses a test sets. Its embedded Driver
// is nil: no test here calls an operation.
type Operator struct {
	operator.Driver

	// LookupFunc returns the getStatus responses, UserSMSFunc the results of the payer's SMS. nil: there is no
	// response to a lookup, and every SMS succeeds. Set them between invocations. They may be called concurrently.
	LookupFunc  func(operator.StatusCall) operator.StatusResponse
	UserSMSFunc func(operator.UserSMSCall) operator.Result

	mutex        sync.Mutex
	now          func() time.Time
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
	o.SetLookupResult(LookupResponse(status, operator.StatusReport{}))
}

// LookupResponse is the getStatus response with a status text, and the other values of report.
func LookupResponse(status string, report operator.StatusReport) operator.StatusResponse {
	parsed, known := operator.ParsePaymentStatus(status)
	if !known {
		return operator.StatusResponse{Cause: operator.ErrUnknownStatus}
	}
	report.Status = parsed
	return operator.StatusResponse{StatusReport: report}
}

// ReadPaymentCallback implements operator.PaymentCallbackReader in the specification's own form.
func (o *Operator) ReadPaymentCallback(body []byte) operator.CallbackReport {
	return (*carrierapi.Driver)(nil).ReadPaymentCallback(body)
}

// The account with a static address, and the secret in it.
const (
	CallbackAccount = "sn"
	CallbackSecret  = "Yx0mP7cT1fZqR4uWnB8vKd2sLhJ6gA3e"
)

// VerifyStaticCallback implements operator.StaticCallbackVerifier.
func (o *Operator) VerifyStaticCallback(_ context.Context, callback operator.StaticCallback) (bool, error) {
	return callback.AccountID == CallbackAccount && callback.PathSecret == CallbackSecret, nil
}

// ReadReceipt implements operator.ReceiptReader. A receipt is {"id":"...","status":"DeliveredToTerminal"}.
func (o *Operator) ReadReceipt(body []byte) (reference string, statuses []ledger.Status, ok bool) {
	var receipt struct{ ID, Status string }
	_ = json.Unmarshal(body, &receipt)
	status, known := operator.ParseDeliveryStatus(receipt.Status)
	return receipt.ID, []ledger.Status{status}, known
}

// SetLookupResult sets the getStatus response.
func (o *Operator) SetLookupResult(response operator.StatusResponse) {
	o.LookupFunc = func(operator.StatusCall) operator.StatusResponse { return response }
}

// NoResponse is the result of a getStatus request without a response.
func NoResponse() operator.StatusResponse {
	return operator.StatusResponse{Cause: logsafe.New("no response")}
}

// NoSuchOrder is the getStatus response for an unknown order.
func NoSuchOrder() operator.StatusResponse {
	return operator.StatusResponse{OrderNotFound: true, Cause: logsafe.New("404")}
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
	o.mutex.Unlock()
	if o.LookupFunc == nil {
		return NoResponse()
	}
	return o.LookupFunc(call)
}

// SendUserSMS implements operator.UserSMSSender.
func (o *Operator) SendUserSMS(_ context.Context, call operator.UserSMSCall) operator.Result {
	o.mutex.Lock()
	o.userSMSCalls = append(o.userSMSCalls, call)
	o.mutex.Unlock()
	if o.UserSMSFunc == nil {
		return operator.Result{Outcome: operator.Succeeded}
	}
	return o.UserSMSFunc(call)
}

// MinimalDriver is a driver without a status lookup and without the payer's SMS.
type MinimalDriver struct{ operator.Driver }

// ReadPaymentCallback implements operator.PaymentCallbackReader in the specification's own form.
func (MinimalDriver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	return (*carrierapi.Driver)(nil).ReadPaymentCallback(body)
}
