package main

import (
	"encoding/json"
	"fmt"
	"maps"

	"mobilegateway/local"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
)

// requestKind is a kind of request to measure, with the calls that it may make.
type requestKind struct {
	name     string
	function string
	newEvent func(s *fixture, number int) []byte
	// repeated sends each request once before it is measured.
	repeated bool
	// status is the expected status of the response; 0 accepts any.
	status int
	// calls are those of one request, once its process has read merchant and secrets.
	calls callCounts
}

// requests lists the kinds, with the numbers of calls that docs/architecture.md promises.
func requests() []requestKind {
	first, repeated := callCounts{operator: 1, writes: 2}, callCounts{writes: 1}
	firstCharge := callCounts{operator: 1, writes: 3}
	return []requestKind{
		{name: baseline, function: baseline, newEvent: func(*fixture, int) []byte { return []byte("{}") }},
		{name: "charge, first", function: "charge", newEvent: charge, status: 201, calls: firstCharge},
		{name: "charge, repeated", function: "charge", newEvent: charge, repeated: true, status: 201, calls: repeated},
		{name: "pay (web), first", function: "pay", newEvent: pay("sandbox", "web"), status: 201, calls: first},
		{name: "pay (ussd), first", function: "pay", newEvent: pay("sandbox", "ussd"), status: 201, calls: first},
		{name: "pay (mtn-momo), first", function: "pay", newEvent: pay("mtn", "ussd"), status: 201, calls: first},
		{
			name: "pay (ussd), repeated", function: "pay", newEvent: pay("sandbox", "ussd"), repeated: true,
			status: 201, calls: repeated,
		},
		{name: "sms, first", function: "sms", newEvent: sms, status: 201, calls: first},
		{name: "sms, repeated", function: "sms", newEvent: sms, repeated: true, status: 409, calls: repeated},
	}
}

func (s *fixture) proxyEvent(resource, path string, parameters, headers map[string]string, body []byte) []byte {
	all := map[string]string{"Authorization": "Bearer " + s.merchant.AccessToken, "Content-Type": "application/json"}
	maps.Copy(all, headers)
	multi := map[string][]string{}
	for name, value := range all {
		multi[name] = []string{value}
	}
	event, _ := json.Marshal(map[string]any{
		"resource": resource, "path": path, "httpMethod": "POST", "headers": all, "multiValueHeaders": multi,
		"queryStringParameters": nil, "pathParameters": parameters, "body": string(body), "isBase64Encoded": false,
		"requestContext": map[string]any{
			"requestId": "bench", "domainName": "bench.execute-api.eu-west-1.amazonaws.com", "stage": "dev",
			"resourcePath": resource, "httpMethod": "POST",
		},
	})
	return event
}

func charge(s *fixture, number int) []byte {
	return s.proxyEvent(
		"/payment/v1/{endUserId}/transactions/amount", resource.ChargesPath,
		map[string]string{"endUserId": "acr%3AOperatorAPIToken"},
		map[string]string{"gw-token": "user-token", "gw-alias": "2250700000000"},
		chargeBody(s.merchant, fmt.Sprintf("charge-%d", number)))
}

// chargeBody is the body of a charge of 500 XOF under an idempotency key.
func chargeBody(merchant local.MerchantCredentials, key string) []byte {
	return resource.Charge{
		PaymentAmount: resource.PaymentAmount{
			ChargingInformation: resource.ChargingInformation{
				Amount: json.RawMessage(`"500"`), Currency: "XOF", Description: "A song",
			},
			ChargingMetaData: &resource.ChargingMetaData{
				OnBehalfOf: merchant.OnBehalfOf, ServiceID: merchant.ServiceID,
			},
		},
		TransactionOperationStatus: resource.StatusCharged, ReferenceCode: "REF-" + key, ClientCorrelator: key,
	}.Body()
}

func pay(operator, channel string) func(*fixture, int) []byte {
	return func(s *fixture, number int) []byte {
		return s.proxyEvent("/mobilemoney/v1", "/mobilemoney/v1", nil,
			map[string]string{"mno-name": operator, "country-code": "CI", "channel": channel, "lang": "fr"},
			strictjson.Marshal(map[string]string{
				"currency": "XOF", "order_id": fmt.Sprintf("%s_%d", s.merchant.Merchant, number), "amount": "500",
				"return_url": "http://127.0.0.1/return", "cancel_url": "http://127.0.0.1/cancel",
				"reference": s.merchant.Merchant, "user_msisdn": "0700000000", "state": "s",
			}))
	}
}

func sms(s *fixture, number int) []byte {
	return s.proxyEvent(
		"/smsmessaging/v1/outbound/{senderAddress}/requests", "/smsmessaging/v1/outbound/tel%3A%2B22500/requests",
		map[string]string{"senderAddress": "tel%3A%2B22500"},
		map[string]string{
			"X-OAPI-Application-Id": s.merchant.ApplicationID, "X-OAPI-Contact-Id": s.merchant.ContactID,
			"X-OAPI-Resource-Type": "SMS_OSM", "gw-alias": "2250700000000", "gw-token": "user-token",
			"X-Operator-MCO": "OCI", "X-Operator-ISE2": "2250700000000",
		},
		resource.Message{
			Address: []string{"acr:X-Operator-ISE2"}, SenderAddress: "tel:+22500", SenderName: "Bench",
			OutboundSMSTextMessage: resource.TextMessage{Message: "Your%20order%20is%20paid"},
			ClientCorrelator:       fmt.Sprintf("sms-%d", number),
		}.Body())
}
