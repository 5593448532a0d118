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
	mutex   sync.Mutex
	now     func() time.Time
	status  func(operator.StatusCall) operator.StatusAnswer
	sms     func(operator.UserSMSCall) operator.Result
	lookups []Lookup
	sent    []operator.UserSMSCall
}

var (
	_ operator.StatusReader = (*Operator)(nil)
	_ operator.UserNotifier = (*Operator)(nil)
)

// Lookup is one call of getStatus.
type Lookup struct {
	operator.StatusCall
	At time.Time
}

// Says makes getStatus answer with a status and our amount.
func (o *Operator) Says(status string) { o.Tells(operator.StatusAnswer{Known: true, Status: status}) }

// Tells makes getStatus answer so.
func (o *Operator) Tells(answer operator.StatusAnswer) {
	o.Asked(func(operator.StatusCall) operator.StatusAnswer { return answer })
}

// Silent is a getStatus that did not answer.
func Silent() operator.StatusAnswer { return operator.StatusAnswer{Cause: errors.New("silent")} }

// NoSuchOrder is a getStatus that knows no such order.
func NoSuchOrder() operator.StatusAnswer {
	return operator.StatusAnswer{NotFound: true, Cause: errors.New("404")}
}

// Asked makes getStatus answer by a function, which may be called in parallel.
func (o *Operator) Asked(answer func(operator.StatusCall) operator.StatusAnswer) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.status = answer
}

// Sends makes the purchaser's SMS end by a function, which may be called in parallel; nil sends it.
func (o *Operator) Sends(result func(operator.UserSMSCall) operator.Result) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.sms = result
}

// Lookups are the calls of getStatus so far.
func (o *Operator) Lookups() []Lookup {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.lookups)
}

// SMS are the purchasers' SMS that were tried.
func (o *Operator) SMS() []operator.UserSMSCall {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.sent)
}

// PaymentStatus is operator.StatusReader's. It is silent where no test has set anything.
func (o *Operator) PaymentStatus(_ context.Context, call operator.StatusCall) operator.StatusAnswer {
	o.mutex.Lock()
	o.lookups = append(o.lookups, Lookup{StatusCall: call, At: o.now()})
	answer := o.status
	o.mutex.Unlock()
	if answer == nil {
		return Silent()
	}
	return answer(call)
}

// UserSMS is operator.UserNotifier's.
func (o *Operator) UserSMS(_ context.Context, call operator.UserSMSCall) operator.Result {
	o.mutex.Lock()
	o.sent = append(o.sent, call)
	result := o.sms
	o.mutex.Unlock()
	if result == nil {
		return operator.Result{Outcome: operator.Done}
	}
	return result(call)
}

// Account is operator.Driver's.
func (o *Operator) Account(context.Context, string) (string, error) { return "a1", nil }

// Charge is operator.Driver's; nobody calls it here.
func (o *Operator) Charge(context.Context, operator.ChargeCall) operator.Result {
	return operator.Result{}
}

// Pay is operator.Driver's; nobody calls it here.
func (o *Operator) Pay(context.Context, operator.PayCall) operator.PayAnswer {
	return operator.PayAnswer{}
}

// SendSMS is operator.Driver's; nobody calls it here.
func (o *Operator) SendSMS(context.Context, operator.SMSCall) operator.Result {
	return operator.Result{}
}

// Mute is a driver without a status lookup and without the purchaser's SMS.
type Mute struct{ operator.Driver }
