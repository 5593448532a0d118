package outside

import (
	"fmt"
	"net/http"
	"strconv"

	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
)

const (
	endUser    = "acr:OperatorAPIToken"
	channelWeb = "web"
)

// Shop is a merchant's client. It makes valid requests; the number of a request selects its content and its keys.
type Shop struct {
	Name          string // the merchant's name, which its order_ids begin with
	ServiceID     string
	ApplicationID string
	ContactID     string
	OnBehalfOf    string
	SenderName    string
	// NotifyURL is the address of notifications; "" for payments at the provisioned address and SMS without receipts.
	NotifyURL string
	// Operators are the values of mno-name; the number of a payment selects one.
	Operators []string
	// Countries are the alpha-2 codes that the merchant may use; the number of a request selects one.
	Countries []string
}

// Request is a charge, a payment or an SMS of a merchant. A test of repeats changes a field of a copy.
type Request struct {
	Shop    Shop
	Kind    string // KindCharge, KindPayment or KindSMS
	Key     string // clientCorrelator or order_id; "" for a charge without a clientCorrelator
	Country market.Country
	// Payer is the alias of the end user; of a payment the MSISDN, optional on the web channel.
	Payer string
	// Text is the description of a charge, the state of a payment, or the escaped message of an SMS.
	Text string
	// Amount and Currency are of a charge and a payment.
	Amount, Currency string
	// Reference is the referenceCode of a charge.
	Reference string
	// Operator and Channel are of a payment.
	Operator, Channel string
}

// texts are contents that need escaping in JSON or in logs.
var texts = []string{"A song", "Café & \"thé\" <1>", "ligne\u20281", "日本", "100 %"}

// newRequest returns the common part of a request. Every fourth amount without decimals is written with two.
func (s Shop) newRequest(kind string, number int) Request {
	country, _ := market.ByAlpha2(s.Countries[number%len(s.Countries)])
	r := Request{
		Shop: s, Kind: kind, Country: country, Payer: fmt.Sprintf("alias-%d", number), Text: texts[number%len(texts)],
		Amount: money.Format(int64(100+number%900), country.Exponent), Currency: country.Currency,
	}
	if number%4 == 1 && country.Exponent == 0 {
		r.Amount += ".00"
	}
	return r
}

// Charge returns the charge with a number. Every fifth one has no clientCorrelator.
func (s Shop) Charge(number int) Request {
	r := s.newRequest(KindCharge, number)
	r.Reference = fmt.Sprintf("REF-%d", number)
	if number%5 != 4 {
		r.Key = fmt.Sprintf("c-%d", number)
	}
	if r.Country.ChargesInMinorUnits {
		r.Amount = strconv.Itoa(100 + number%900)
	}
	return r
}

// Pay returns the payment with a number, on the web channel, tpe and ussd in turn.
func (s Shop) Pay(number int) Request {
	r := s.newRequest(KindPayment, number)
	r.Key = s.Name + "_" + strconv.Itoa(number)
	r.Operator, r.Channel = s.Operators[number%len(s.Operators)], []string{channelWeb, "tpe", "ussd"}[number%3]
	r.Payer = ""
	if r.Channel != channelWeb || number%2 == 0 {
		prefix := "7"
		if r.Country.KeepsLeadingZero {
			prefix = "07"
		}
		digits := r.Country.NationalLengths[0] - len(prefix)
		r.Payer = fmt.Sprintf("+%s%s%0*d", r.Country.CallingCode, prefix, digits, number)
	}
	return r
}

// SMS returns the SMS with a number.
func (s Shop) SMS(number int) Request {
	r := s.newRequest(KindSMS, number)
	r.Key = fmt.Sprintf("s-%d", number)
	r.Text = []string{"Bonjour%20%C3%A0%20tous", "1+1=2", "plain"}[number%3]
	return r
}

// Event makes the event of the function for a request. token is the merchant's access token, "" for none.
func (r Request) Event(token string) []byte {
	headers := []string{"Authorization", bearer(token)}
	endUserHeaders := append(headers, "gw-token", "gw-token-"+r.Payer, "gw-alias", r.Payer,
		"X-Operator-MCO", r.Country.MCO)
	switch r.Kind {
	case KindCharge:
		return newEvent(http.MethodPost, "/payment/v1/{endUserId}/transactions/amount", mustMarshal(r.chargeBody()),
			[]string{"endUserId", endUser}, endUserHeaders)
	case KindPayment:
		return newEvent(http.MethodPost, "/mobilemoney/v1", mustMarshal(r.paymentBody()), nil, append(headers,
			"mno-name", r.Operator, "country-code", r.Country.Alpha2, "channel", r.Channel, "lang", "fr"))
	default:
		return newEvent(http.MethodPost, "/smsmessaging/v1/outbound/{senderAddress}/requests",
			mustMarshal(r.smsBody()), []string{"senderAddress", r.sender()}, append(endUserHeaders,
				"X-OAPI-Application-Id", r.Shop.ApplicationID, "X-OAPI-Contact-Id", r.Shop.ContactID,
				"X-OAPI-Resource-Type", "SMS_OSM", "X-Operator-ISE2", r.Payer))
	}
}

// StatusEvent makes the event of a lookup of the request's transaction. id is the id of a charge or an SMS.
func (r Request) StatusEvent(token, id string) []byte {
	switch r.Kind {
	case KindCharge:
		return ChargeStatusEvent(token, id)
	case KindPayment:
		return PaymentStatusEvent(token, r.Key)
	default:
		return DeliveryInfosEvent(token, r.sender(), id)
	}
}

func (r Request) chargeBody() object {
	return object{"amountTransaction": withoutEmpty(object{
		"endUserId": endUser,
		"paymentAmount": object{
			"chargingInformation": object{"amount": r.Amount, "currency": r.Currency, "description": r.Text},
			"chargingMetaData":    object{"onBehalfOf": r.Shop.OnBehalfOf, "serviceId": r.Shop.ServiceID},
		},
		"transactionOperationStatus": "Charged",
		"referenceCode":              r.Reference,
		"clientCorrelator":           r.Key,
	})}
}

// OneTimeCode is the otp_code of all payments. No number and no UUID contains it by chance.
const OneTimeCode = "9142X3"

func (r Request) paymentBody() object {
	otp := OneTimeCode
	if r.Channel == channelWeb {
		otp = ""
	}
	return withoutEmpty(object{
		"currency": r.Currency, "order_id": r.Key, "amount": r.Amount,
		"return_url": "https://shop.example.com/return", "cancel_url": "https://shop.example.com/cancel",
		"notif_url": r.Shop.NotifyURL, "reference": r.Shop.Name, "user_msisdn": r.Payer, "otp_code": otp,
		"state": r.Text,
	})
}

func (r Request) smsBody() object {
	message := object{
		"address": []string{"acr:X-Operator-ISE2"}, "senderAddress": r.sender(), "senderName": r.Shop.SenderName,
		"outboundSMSTextMessage": object{"message": r.Text}, "clientCorrelator": r.Key,
	}
	if r.Shop.NotifyURL != "" {
		message["receiptRequest"] = object{"notifyURL": r.Shop.NotifyURL, "callbackData": r.Key}
	}
	return object{"outboundSMSMessageRequest": message}
}

func (r Request) sender() string { return r.Country.SenderPrefix() + "0000" }
