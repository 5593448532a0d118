package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"mobilegateway/local"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
	world "mobilegateway/world/dynamodb"
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
	// before are the requests of the same number that are made before each measured one, by other processes.
	before []requestKind
	// calls are those of one request, once its process has read merchant and secrets.
	calls callCounts
	// units are what DynamoDB bills for one request, with PackResponses=yes.
	units units
}

// isDelivery reports whether a kind is a part of a payment from request to delivered.
func isDelivery(name string) bool {
	return strings.HasPrefix(name, "pay (ussd), ") && !strings.HasSuffix(name, "repeated")
}

// requests lists the kinds, with the numbers of calls that docs/architecture.md promises.
func requests() []requestKind {
	first, repeated := callCounts{operator: 1, writes: 2}, callCounts{writes: 1}
	firstCharge := callCounts{operator: 1, writes: 3}
	started, again := units{tables: 2, day: 1, due: 3}, units{tables: 1}
	paid := requestKind{
		name: "pay (ussd), first", function: "pay", newEvent: pay("sandbox", "ussd"), status: 201, calls: first,
		units: started,
	}
	called := requestKind{
		name: "pay (ussd), callback", function: "notif", newEvent: callback, status: 200, before: []requestKind{paid},
		calls: callCounts{reads: 1, operator: 1, writes: 1}, units: units{tables: 1, due: 2, reads: 1},
	}
	return []requestKind{
		{name: baseline, function: baseline, newEvent: func(*fixture, int) []byte { return []byte("{}") }},
		{
			name: "charge, first", function: "charge", newEvent: charge, status: 201, calls: firstCharge,
			units: units{tables: 3, day: 1, due: 2},
		},
		{
			name: "charge, repeated", function: "charge", newEvent: charge, repeated: true, status: 201,
			calls: repeated, units: again,
		},
		{
			name: "pay (web), first", function: "pay", newEvent: pay("sandbox", "web"), status: 201, calls: first,
			units: started,
		},
		paid,
		called,
		{
			name: "pay (ussd), notification", function: "relay", newEvent: streamed,
			before: []requestKind{paid, called},
			calls:  callCounts{reads: 2, operator: 1, merchant: 1, writes: 1},
			units:  units{tables: 1, due: 1, reads: 2},
		},
		{
			name: "pay (mtn-momo), first", function: "pay", newEvent: pay("mtn", "ussd"), status: 201, calls: first,
			units: started,
		},
		{
			name: "pay (ussd), repeated", function: "pay", newEvent: pay("sandbox", "ussd"), repeated: true,
			status: 201, calls: repeated, units: again,
		},
		{
			name: "sms, first", function: "sms", newEvent: sms, status: 201, calls: first,
			units: units{tables: 2, day: 1, due: 2},
		},
		{
			name: "sms, repeated", function: "sms", newEvent: sms, repeated: true, status: 409, calls: repeated,
			units: again,
		},
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
				"currency": "XOF", "order_id": s.orderID(number), "amount": "500",
				"return_url": "http://127.0.0.1/return", "cancel_url": "http://127.0.0.1/cancel",
				"reference": s.merchant.Merchant, "user_msisdn": "0700000000", "state": "s",
			}))
	}
}

func (s *fixture) orderID(number int) string {
	return fmt.Sprintf("%s_%d", s.merchant.Merchant, number)
}

// callback is the sandbox's callback of a payment, which the payer approves now. It is nil if there is none.
func callback(s *fixture, number int) []byte {
	sent, found := s.payer.approve(s.orderID(number))
	if !found {
		return nil
	}
	address, _ := url.Parse(sent.URL) // the gateway made it
	parts := strings.Split(strings.TrimPrefix(address.EscapedPath(), "/dev"), "/")
	parameters := map[string]string{"operator": parts[4], "orderId": parts[5], "token": parts[6]}
	return s.proxyEvent("/callbacks/v1/payments/{operator}/{orderId}/{token}", address.Path, parameters, nil, sent.Body)
}

// streamed is the event of the stream with a payment's newest image. It is nil if there is none.
func streamed(s *fixture, number int) []byte {
	store := ledgerdynamo.New(s.client.DynamoDB(), s.deployment.References["LedgerTable"])
	entry, err := store.Get(context.Background(), ledger.Key{Kind: ledger.Payment, ID: s.orderID(number)})
	if err != nil || entry == nil {
		return nil
	}
	image, err := ledgerdynamo.Encode(entry)
	if err != nil {
		return nil
	}
	const event = `{"Records":[{"eventID":"%d","dynamodb":{"NewImage":%s}}]}`
	return fmt.Appendf(nil, event, number, world.ItemJSON(image))
}

// prepare makes the requests that come before a measured one, and returns its event.
func (s *fixture) prepare(ctx context.Context, kind requestKind, number int) ([]byte, error) {
	for _, earlier := range kind.before {
		f := s.steps[earlier.function]
		if f == nil {
			var err error
			if f, err = s.newFunction(earlier.function, true); err != nil {
				return nil, err
			}
			s.steps[earlier.function] = f
		}
		if _, err := invokeAndCheck(ctx, f, earlier.newEvent(s, number), earlier.status); err != nil {
			return nil, fmt.Errorf("%s: %w", earlier.name, err)
		}
	}
	event := kind.newEvent(s, number)
	if event == nil {
		return nil, fmt.Errorf("%s: the payment %d has no callback, or is not stored", kind.name, number)
	}
	return event, nil
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
