package operatortest

import (
	"context"

	"mobilegateway/shared/operator"
)

// The private values of the sample calls: none of them may stand in a fault.
const (
	SampleToken  = "gw-token-very-private"
	SampleAlias  = "gw-alias-very-private"
	SampleOTP    = "914263"
	SampleMSISDN = "+2250707070707"
)

// Operation is one of the things that every driver can do.
type Operation struct {
	// Name is charge, web, tpe, ussd or sms.
	Name string
	// IdempotencyKey is the upstream key of its sample call.
	IdempotencyKey string
	// Call makes the sample call. Page is set for the web channel alone.
	Call func(ctx context.Context, driver operator.Driver) (result operator.Result, page operator.PayResponse)
}

// Operations are the sample calls for an operator of the table, in the order charge, web, tpe, ussd, sms.
func Operations(operatorName, account string) []Operation {
	list := []Operation{chargeOperation(SampleCharge(operatorName, account))}
	for _, channel := range []string{"web", "tpe", "ussd"} {
		list = append(list, payOperation(SamplePay(operatorName, account, channel)))
	}
	return append(list, smsOperation(SampleSMS(operatorName, account)))
}

func chargeOperation(call operator.ChargeCall) Operation {
	return Operation{Name: "charge", IdempotencyKey: call.IdempotencyKey, Call: func(ctx context.Context, driver operator.Driver) (operator.Result, operator.PayResponse) {
		return driver.Charge(ctx, call), operator.PayResponse{}
	}}
}

func payOperation(call operator.PayCall) Operation {
	return Operation{Name: call.Channel, IdempotencyKey: call.IdempotencyKey, Call: func(ctx context.Context, driver operator.Driver) (operator.Result, operator.PayResponse) {
		response := driver.Pay(ctx, call)
		return response.Result, response
	}}
}

func smsOperation(call operator.SMSCall) Operation {
	return Operation{Name: "sms", IdempotencyKey: call.IdempotencyKey, Call: func(ctx context.Context, driver operator.Driver) (operator.Result, operator.PayResponse) {
		return driver.SendSMS(ctx, call), operator.PayResponse{}
	}}
}

// sampleCall is what all sample calls share: the Ivory Coast.
func sampleCall(operatorName, account, key string) operator.Call {
	return operator.Call{Operator: operatorName, AccountID: account, IdempotencyKey: key, MCO: "OCI", Country: "CI"}
}

// SampleCharge is a sample charge of 500 XOF.
func SampleCharge(operatorName, account string) operator.ChargeCall {
	call := operator.ChargeCall{
		Call:          sampleCall(operatorName, account, "DemoShop.c-1"),
		ReferenceCode: "REF-1",
		Amount:        "500",
		Currency:      "XOF",
		Description:   `Café & "thé" <1>`,
		OnBehalfOf:    "Demo Shop",
	}
	call.GWToken, call.GWAlias = SampleToken, SampleAlias
	return call
}

// SamplePay is a sample payment of 1500 XOF on a channel.
func SamplePay(operatorName, account, channel string) operator.PayCall {
	return operator.PayCall{
		Call:      sampleCall(operatorName, account, "DemoShop_42"),
		Channel:   channel,
		Lang:      "fr",
		Amount:    "1500",
		Currency:  "XOF",
		ReturnURL: "https://shop.example.com/back?a=1&b=2",
		CancelURL: "https://shop.example.com/cancel",
		NotifyURL: "https://gateway.example.com/callbacks/v1/payments/" + operatorName + "/DemoShop_42/token",
		Reference: "Demo Shop",
		MSISDN:    SampleMSISDN,
		OTP:       SampleOTP,
		State:     "a%3D1%26b%3D<2>",
	}
}

// SampleSMS is a sample message with a receipt.
func SampleSMS(operatorName, account string) operator.SMSCall {
	call := operator.SMSCall{
		Call:       sampleCall(operatorName, account, "DemoShop.s-1"),
		ISE2:       "ise2-very-private",
		Sender:     "tel:+2250000",
		SenderName: "Demo",
		Message:    "Bonjour%20%C3%A0%20tous",
		NotifyURL:  "https://gateway.example.com/callbacks/v1/receipts/" + operatorName + "/1/token",
	}
	call.GWToken, call.GWAlias = SampleToken, SampleAlias
	return call
}

// SampleUserSMS is a sample of the purchaser's SMS.
func SampleUserSMS(operatorName, account string) operator.UserSMSCall {
	return operator.UserSMSCall{
		Call:   sampleCall(operatorName, account, "DemoShop_42"),
		MSISDN: SampleMSISDN,
		Text:   "Votre paiement de 1500 XOF à Demo+Shop est confirmé. Réf. DemoShop_42",
	}
}

// SampleStatus is a sample status lookup.
func SampleStatus(operatorName, account string) operator.StatusCall {
	return operator.StatusCall{Call: sampleCall(operatorName, account, "DemoShop_42"), Channel: "tpe", Lang: "fr"}
}
