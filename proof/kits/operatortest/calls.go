package operatortest

import (
	"cmp"
	"context"
	"slices"

	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
)

// The private values of the sample calls: no fault may contain them.
const (
	SampleToken  = "gw-token-very-private"
	SampleAlias  = "gw-alias-very-private"
	SampleOTP    = "914263"
	SampleMSISDN = "+2250707070707"
	sampleDigits = "0707070" // in the sample numbers of all countries
	sampleUUID   = "f4401bd2-1568-4140-bf2d-eb77d2b2b639"
)

// sampleNumber is a payer's number of a country.
func sampleNumber(country string) string {
	numbers := map[string]string{"SN": "+221770707070", "CM": "+237670707070", "TN": "+21620707070"}
	return cmp.Or(numbers[country], SampleMSISDN)
}

// Operation is an operation of a platform, with a sample call.
type Operation struct {
	// Name is charge, web, tpe, ussd or sms.
	Name string
	// UpstreamKey is the upstream key of the sample call.
	UpstreamKey string
	// Call makes the sample call. The page's fields are set only for payments.
	Call func(ctx context.Context, driver operator.Driver) operator.PayResponse
}

// Operations returns the sample calls that a platform of the table offers, in the order charge, web, tpe, ussd, sms.
func Operations(platform, account string) []Operation {
	return operations(platform, account, "", false)
}

// operations are Operations with the driver's data of payments, and as repeats.
func operations(platform, account, driverData string, mayRepeat bool) []Operation {
	row := rowOf(platform)
	var list []Operation
	if slices.Contains(row.Operations, operator.AccountCharge) {
		charge := SampleCharge(platform, account)
		list = append(list, Operation{"charge", charge.UpstreamKey,
			func(ctx context.Context, d operator.Driver) operator.PayResponse {
				return operator.PayResponse{Result: operator.Charge(ctx, d, charge)}
			}})
	}
	for _, channel := range row.Channels {
		pay := SamplePay(platform, account, channel)
		pay.DriverData, pay.MayRepeat = driverData, mayRepeat
		callPay := func(ctx context.Context, d operator.Driver) operator.PayResponse {
			return operator.Pay(ctx, d, pay)
		}
		list = append(list, Operation{channel, pay.UpstreamKey, callPay})
	}
	if slices.Contains(row.Operations, operator.AccountSMS) {
		sms := SampleSMS(platform, account)
		sms.MayRepeat = mayRepeat
		list = append(list, Operation{"sms", sms.UpstreamKey,
			func(ctx context.Context, d operator.Driver) operator.PayResponse {
				return operator.PayResponse{Result: operator.SendSMS(ctx, d, sms)}
			}})
	}
	return list
}

// rowOf returns a platform's row. An unknown platform offers what the sandbox does.
func rowOf(platform string) operator.Capabilities {
	row, known := operator.FindCapabilities(platform)
	if !known {
		row, _ = operator.FindCapabilities("sandbox")
		row.Reach = []operator.Reach{{Operator: platform, Countries: row.Countries()}}
	}
	return row
}

// sampleCall is the common part of all sample calls: for the platform's first operator, in its first country.
func sampleCall(platform, account, key string) operator.Call {
	row, order := rowOf(platform), key
	reach := row.Reach[0]
	if row.KeyForm == operator.KeyUUID {
		key = sampleUUID
	}
	country, _ := market.ByAlpha2(reach.Countries[0])
	return operator.Call{
		Platform: platform, Operator: reach.Operator, AccountID: account, UpstreamKey: key, OrderID: order,
		MCO: country.MCO, Country: country.Alpha2,
		GWToken: SampleToken, GWAlias: SampleAlias,
	}
}

// SampleCharge is a sample charge of 500 XOF.
func SampleCharge(platform, account string) operator.ChargeCall {
	return operator.ChargeCall{
		Call:          sampleCall(platform, account, "DemoShop.c-1"),
		ReferenceCode: "REF-1",
		Amount:        "500",
		Currency:      "XOF",
		Description:   `Café & "thé" <1>`,
		OnBehalfOf:    "Demo Shop",
	}
}

// SamplePay is a sample payment of 1500 on a channel, in the currency of the country.
func SamplePay(platform, account, channel string) operator.PayCall {
	call := sampleCall(platform, account, "DemoShop_42")
	country, _ := market.ByAlpha2(call.Country)
	return operator.PayCall{
		Call:      call,
		Channel:   channel,
		Lang:      "fr",
		Amount:    "1500",
		Currency:  country.Currency,
		ReturnURL: "https://shop.example.com/back?a=1&b=2",
		CancelURL: "https://shop.example.com/cancel",
		NotifyURL: "https://gateway.example.com/callbacks/v1/payments/" + call.Operator + "/DemoShop_42/token",
		Reference: "Demo Shop",
		MSISDN:    sampleNumber(call.Country),
		OTP:       SampleOTP,
		State:     "a%3D1%26b%3D<2>",
	}
}

// SampleSMS is a sample message with a receipt.
func SampleSMS(platform, account string) operator.SMSCall {
	call, recipient := sampleCall(platform, account, "DemoShop.s-1"), "ise2-very-private"
	if len(rowOf(platform).Channels) == 0 { // a platform of messages takes numbers
		recipient = SampleMSISDN
	}
	return operator.SMSCall{
		Call:       call,
		ISE2:       recipient,
		Sender:     "tel:+2250000",
		SenderName: "Demo",
		Message:    "Bonjour%20%C3%A0%20tous",
		NotifyURL:  "https://gateway.example.com/callbacks/v1/receipts/" + call.Operator + "/1/token",
	}
}

// SampleStatus is a sample status lookup.
func SampleStatus(platform, account string) operator.StatusCall {
	pay := SamplePay(platform, account, "tpe")
	return operator.StatusCall{
		Call: pay.Call, Channel: pay.Channel, Lang: pay.Lang, Amount: pay.Amount, Currency: pay.Currency,
	}
}
