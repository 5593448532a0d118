package outside

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// proxyEvent is an event of API Gateway (REST API, payload format 1.0), with the fields that a function may read.
type proxyEvent struct {
	Resource          string              `json:"resource"`
	Path              string              `json:"path"`
	Method            string              `json:"httpMethod"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	PathParameters    map[string]string   `json:"pathParameters"`
	Query             map[string]string   `json:"queryStringParameters,omitempty"`
	MultiValueQuery   map[string][]string `json:"multiValueQueryStringParameters,omitempty"`
	RequestContext    requestContext      `json:"requestContext"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

type requestContext struct {
	Stage      string `json:"stage"`
	DomainName string `json:"domainName"`
	RequestID  string `json:"requestId"`
}

// The domain and the stage of the simulated API.
const (
	apiDomain = "abc123.execute-api.eu-west-1.amazonaws.com"
	apiStage  = "prod"
)

// APIBaseURL is the base address of the simulated API: callback URLs begin with it.
const APIBaseURL = "https://" + apiDomain + "/" + apiStage

// newEvent makes an event for a resource. parameters are pairs of names and values, which are escaped. headers are
// pairs of names and values; an empty value is left out.
func newEvent(method, resource string, body []byte, parameters, headers []string) []byte {
	return mustMarshal(makeEvent(method, resource, body, parameters, headers))
}

func makeEvent(method, resource string, body []byte, parameters, headers []string) proxyEvent {
	e := proxyEvent{
		Resource: resource, Path: resource, Method: method, Body: string(body),
		Headers: map[string]string{"Content-Type": "application/json"}, MultiValueHeaders: map[string][]string{},
		PathParameters: map[string]string{},
	}
	for i := 0; i+1 < len(parameters); i += 2 {
		escaped := url.QueryEscape(parameters[i+1])
		e.PathParameters[parameters[i]] = escaped
		e.Path = strings.Replace(e.Path, "{"+parameters[i]+"}", escaped, 1)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			e.Headers[headers[i]] = headers[i+1]
		}
	}
	for name, value := range e.Headers {
		e.MultiValueHeaders[name] = []string{value}
	}
	e.RequestContext = requestContext{Stage: apiStage, DomainName: apiDomain, RequestID: "simulated-request"}
	return e
}

// CallbackEvent makes the event of the notif or the receipt function for a callback by POST. It returns an error if the
// URL is not one of the gateway's callback URLs.
func CallbackEvent(address string, body []byte) ([]byte, error) {
	return CallbackRequest(http.MethodPost, address, body)
}

// CallbackRequest does the same for any method, with further headers as pairs of names and values.
func CallbackRequest(method, address string, body []byte, headers ...string) ([]byte, error) {
	_, path, found := strings.Cut(address, "/callbacks/v1/")
	segments := strings.Split(path, "/")
	if found && len(segments) == 5 && segments[0] == "accounts" {
		resource := "/callbacks/v1/accounts/" + segments[1] + "/{platform}/{account}/{secret}"
		return newEvent(method, resource, body,
			[]string{"platform", segments[2], "account", segments[3], "secret", segments[4]}, headers), nil
	}
	if !found || len(segments) != 4 {
		return nil, fmt.Errorf("outside: %s is not a callback URL: check the base URL of the gateway", address)
	}
	resource, idName := "/callbacks/v1/payments/{operator}/{orderId}/{token}", "orderId"
	if segments[0] == "receipts" {
		resource, idName = "/callbacks/v1/receipts/{operator}/{requestId}/{token}", "requestId"
	}
	parameters := []string{"operator", "", idName, "", "token", ""}
	for i, segment := range segments[1:] {
		value, err := url.PathUnescape(segment)
		if err != nil {
			return nil, fmt.Errorf("outside: unescape a callback URL: %w", err)
		}
		parameters[2*i+1] = value
	}
	return newEvent(method, resource, body, parameters, headers), nil
}

// TokenEvent makes the event of a request for a short-lived token.
func TokenEvent(clientID, clientSecret string) []byte {
	credentials := base64.StdEncoding.EncodeToString([]byte(clientID + ":" + clientSecret))
	return newEvent(http.MethodPost, "/token", []byte("grant_type=client_credentials"), nil,
		[]string{"Content-Type", "application/x-www-form-urlencoded", "Authorization", "Basic " + credentials})
}

// ResendEvent makes the event of a merchant's request to send a notification again. id names its transaction, "" for
// none.
func ResendEvent(token, webhookID, id string) []byte {
	e := makeEvent(http.MethodPost, "/notifications/v1/{webhookId}/resend", nil, []string{"webhookId", webhookID},
		[]string{"Authorization", bearer(token)})
	if id != "" {
		e.Query, e.MultiValueQuery = map[string]string{"id": id}, map[string][]string{"id": {id}}
	}
	return mustMarshal(e)
}

// PaymentStatusEvent makes the event of a merchant's getStatus.
func PaymentStatusEvent(token, orderID string) []byte {
	return newEvent(http.MethodGet, "/mobilemoney/v1/getStatus/{orderId}", nil, []string{"orderId", orderID},
		[]string{"Authorization", bearer(token)})
}

// ChargeStatusEvent makes the event of a GET of a charge's resourceURL. id is its serverReferenceCode.
func ChargeStatusEvent(token, id string) []byte {
	return newEvent(http.MethodGet, "/payment/v1/{endUserId}/transactions/amount/{transactionId}", nil,
		[]string{"endUserId", endUser, "transactionId", id}, []string{"Authorization", bearer(token)})
}

// DeliveryInfosEvent makes the event of a GET of an SMS's resourceURL. id is the request id in it.
func DeliveryInfosEvent(token, sender, id string) []byte {
	return newEvent(http.MethodGet, "/smsmessaging/v1/outbound/{senderAddress}/requests/{requestId}/deliveryInfos", nil,
		[]string{"senderAddress", sender, "requestId", id}, []string{"Authorization", bearer(token)})
}

// bearer is the Authorization header of a token, "" for no token.
func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// Response is a function's response as the merchant reads it.
type Response struct {
	Status     int
	MessageID  string // of an error; "" for none
	RetryAfter string
	Reason     string // X-Error-Reason
	Location   string
	Replayed   bool // Idempotent-Replayed
	Body       string
	// ID is the id of the transaction: serverReferenceCode, Transaction-id or the request id of an SMS. A web payment's
	// response has none.
	ID string
	// OperationStatus is the status of a charge, a payment or an SMS's delivery. The first response to an SMS has none,
	// and that of a web payment has "201".
	OperationStatus string
}

// ReadResponse reads the response of a function. It returns an error if it has not the form of API Gateway.
func ReadResponse(payload []byte) (Response, error) {
	var wire struct {
		Status  int               `json:"statusCode"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	if err := json.Unmarshal(payload, &wire); err != nil {
		return Response{}, fmt.Errorf("outside: not a response for API Gateway: %q: %w", payload, err)
	}
	d := ParseDocument([]byte(wire.Body))
	_, requestID, _ := strings.Cut(
		d.Text("outboundSMSMessageRequest.resourceURL")+d.Text("deliveryInfoList.resourceURL"), "/requests/")
	const exception = "Exception.messageId"
	return Response{
		Status: wire.Status, Body: wire.Body, RetryAfter: wire.Headers["Retry-After"],
		Reason:   wire.Headers["X-Error-Reason"],
		Location: wire.Headers["Location"], Replayed: wire.Headers["Idempotent-Replayed"] == "true",
		MessageID: d.Text("requestError.service"+exception) + d.Text("requestError.policy"+exception),
		ID: d.Text("amountTransaction.serverReferenceCode") + d.Text("Transaction-id") +
			strings.TrimSuffix(requestID, "/deliveryInfos"),
		OperationStatus: d.Text("amountTransaction.transactionOperationStatus") + d.Text("status") +
			d.Text("deliveryInfoList.deliveryInfo.deliveryStatus"),
	}, nil
}
