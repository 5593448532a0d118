package operatortest

import (
	"context"

	"mobilegateway/shared/operator"
)

// The private values of the sample calls: no fault may contain them.
const (
	SampleToken  = "gw-token-very-private"
	SampleAlias  = "gw-alias-very-private"
	SampleOTP    = "914263"
	SampleMSISDN = "+2250707070707"
)

// Operation is an operation that every driver supports, with a sample call.
type Operation struct {
	// Name is charge, web, tpe, ussd or sms.
	Name string
	// UpstreamKey is the upstream key of the sample call.
	UpstreamKey string
	// Call makes the sample call. The page's fields are set only for payments.
	Call func(ctx context.Context, driver operator.Driver) operator.PayResponse
}

// Operations returns the sample calls for an operator of the table, in the order charge, web, tpe, ussd, sms.
func Operations(operatorName, account string) []Operation {
	charge, sms := SampleCharge(operatorName, account), SampleSMS(operatorName, account)
	callCharge := func(ctx context.Context, d operator.Driver) operator.PayResponse {
		return operator.PayResponse{Result: d.Charge(ctx, charge)}
	}
	callSMS := func(ctx context.Context, d operator.Driver) operator.PayResponse {
		return operator.PayResponse{Result: d.SendSMS(ctx, sms)}
	}
	list := []Operation{{"charge", charge.UpstreamKey, callCharge}}
	for _, channel := range []string{"web", "tpe", "ussd"} {
		pay := SamplePay(operatorName, account, channel)
		callPay := func(ctx context.Context, d operator.Driver) operator.PayResponse { return d.Pay(ctx, pay) }
		list = append(list, Operation{channel, pay.UpstreamKey, callPay})
	}
	return append(list, Operation{"sms", sms.UpstreamKey, callSMS})
}

// sampleCall is the common part of all sample calls, in Ivory Coast.
func sampleCall(operatorName, account, key string) operator.Call {
	return operator.Call{
		Platform: operatorName, Operator: operatorName, AccountID: account, UpstreamKey: key, OrderID: key,
		MCO: "OCI", Country: "CI",
		GWToken: SampleToken, GWAlias: SampleAlias,
	}
}

// SampleCharge is a sample charge of 500 XOF.
func SampleCharge(operatorName, account string) operator.ChargeCall {
	return operator.ChargeCall{
		Call:          sampleCall(operatorName, account, "DemoShop.c-1"),
		ReferenceCode: "REF-1",
		Amount:        "500",
		Currency:      "XOF",
		Description:   `Café & "thé" <1>`,
		OnBehalfOf:    "Demo Shop",
	}
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
	return operator.SMSCall{
		Call:       sampleCall(operatorName, account, "DemoShop.s-1"),
		ISE2:       "ise2-very-private",
		Sender:     "tel:+2250000",
		SenderName: "Demo",
		Message:    "Bonjour%20%C3%A0%20tous",
		NotifyURL:  "https://gateway.example.com/callbacks/v1/receipts/" + operatorName + "/1/token",
	}
}

// SampleStatus is a sample status lookup.
func SampleStatus(operatorName, account string) operator.StatusCall {
	return operator.StatusCall{Call: sampleCall(operatorName, account, "DemoShop_42"), Channel: "tpe", Lang: "fr"}
}
