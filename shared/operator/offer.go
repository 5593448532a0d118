package operator

import (
	"context"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
)

// Charger is implemented by drivers whose platforms offer charges.
type Charger interface {
	Charge(ctx context.Context, call ChargeCall) Result
}

// PaymentSender is implemented by drivers whose platforms offer payments.
type PaymentSender interface {
	Pay(ctx context.Context, call PayCall) PayResponse
}

// MessageSender is implemented by drivers whose platforms offer messages.
type MessageSender interface {
	SendSMS(ctx context.Context, call SMSCall) Result
}

// Charge sends a charge with a platform's driver. Without a Charger it is certainly not applied.
func Charge(ctx context.Context, driver Driver, call ChargeCall) Result {
	if charger, offers := driver.(Charger); offers {
		return charger.Charge(ctx, call)
	}
	return notOffered()
}

// Pay sends a payment with a platform's driver. Without a PaymentSender it is certainly not applied.
func Pay(ctx context.Context, driver Driver, call PayCall) PayResponse {
	if sender, offers := driver.(PaymentSender); offers {
		return sender.Pay(ctx, call)
	}
	return PayResponse{Result: notOffered()}
}

// SendSMS sends a message with a platform's driver. Without a MessageSender it is certainly not applied.
func SendSMS(ctx context.Context, driver Driver, call SMSCall) Result {
	if sender, offers := driver.(MessageSender); offers {
		return sender.SendSMS(ctx, call)
	}
	return notOffered()
}

// notOffered is the result of an operation that a platform does not offer.
func notOffered() Result {
	cause := logsafe.New("the platform does not offer the operation")
	return Result{Outcome: NotApplied, Fault: &fault.Fault{Kind: fault.IntegrationRejected, Cause: cause}}
}
