package hazards

import (
	"time"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
)

// planHangingOperator lets the calls of one kind at an operator hang for days.
func planHangingOperator(w *world.World, length time.Duration) {
	w.Operators.DrawOutage(tape.Draw(w.Tape, "operator", w.Operators.Names...), length)
}

// planShortRetention lets SMS expire within the history, and operators remember keys for longer.
func planShortRetention(w *world.World, _ time.Duration) {
	setSMSRetention(w, tape.Draw(w.Tape, "retention of SMS", time.Hour, 30*time.Hour))
}

func setSMSRetention(w *world.World, retention time.Duration) {
	w.SMSRetention = retention
	w.Operators.Each(func(o *outside.Operator) { o.KeyWindow = 60 * 24 * time.Hour })
}

// planForgottenRefusals lets operators forget the refusals of charges and SMS: a repeat may be applied. The gateway
// cannot store some of them. No function freezes, because a call that is sent after its order was refused would be
// applied too, and the gateway does not forget SMS sooner.
func planForgottenRefusals(w *world.World, _ time.Duration) {
	if w.SMSRetention != 0 {
		return
	}
	w.Rates.Freeze, w.Operators.LosesRefusals = 0, true
	w.Faults.Set(outside.OperatorCalls, outside.FinalRefusal, 200)
	w.Operators.Each(func(o *outside.Operator) { o.ForgetsRefusals = true })
}

// planOtherLookups lets lookups report the success of a payment with another amount or currency.
func planOtherLookups(w *world.World, _ time.Duration) {
	w.Faults.Set(outside.LookupContents, outside.LookupOther, 400)
	w.Faults.Set(outside.CallbackTimes, outside.CallbackNever, 300)
	w.Faults.Set(outside.Payers, outside.PayerFails, 300)
}

// planDeniedPayments lets operators deny payments that they applied, and call back for them without JSON.
func planDeniedPayments(w *world.World, _ time.Duration) {
	w.Faults.Set(outside.OperatorCalls, outside.LieUnavailable, 400)
	w.Faults.Set(outside.CallbackContents, outside.CallbackGarbage, 500)
	w.Faults.Set(outside.Payers, outside.PayerFails, 300)
}
