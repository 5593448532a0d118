// Package smoke checks a gateway that is reachable, also production: it sends requests that every gateway refuses, or
// that only read. They move no money and store nothing; a token that they get is in no store and expires.
package smoke

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// Merchant has a merchant's credentials, and the constants that its requests send. Without an access token, a client
// id and a client secret only the checks without credentials are made.
type Merchant struct {
	Name, OnBehalfOf                    string
	AccessToken, ClientID, ClientSecret string
	ServiceID, ApplicationID, ContactID string
}

// CanSign reports whether the merchant has all credentials.
func (m Merchant) CanSign() bool {
	return m.Name != "" && m.AccessToken != "" && m.ClientID != "" && m.ClientSecret != ""
}

// Check is one request and its expected response.
type Check struct {
	Name string
	// Group is what the check needs: nothing, or credentials.
	Group        string
	method, path string
	header       map[string]string // names in the specification's spelling
	body         string
	want         want
}

// The groups of checks.
const (
	Open        = "without credentials"
	Credentials = "with credentials"
)

// want is the expected response: its status, and either an error of the contract or members of a JSON object.
type want struct {
	status    int
	errorID   string
	variables []string
	json      map[string]string // "*" for any value that is not empty
	header    map[string]string // each value begins with this text
}

func refusal(status int, errorID string, variables ...string) want {
	return want{status: status, errorID: errorID, variables: variables}
}

// The operations of the specification.
const (
	chargePath = "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"
	payPath    = "/mobilemoney/v1"
	smsPath    = "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"
	lookupPath = "/mobilemoney/v1/getStatus/"
	// unknownToken has the form of a long-lived token, and belongs to no merchant.
	unknownToken = "gwl_aaaaaaaaaaaaaaaa_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_00000000"
	// unknownCallback ends in an address that no gateway signed.
	unknownCallback = "/sandbox/none/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	tooLong         = 70_000 // characters; a body has at most 64 KiB
)

// charge is the specification's example request. reference is its referenceCode.
func charge(m Merchant, id, endUser, reference string) Check {
	return Check{method: http.MethodPost, path: chargePath,
		header: map[string]string{"Content-Type": "application/json", "gw-token": "smoke", "gw-alias": "smoke"},
		body: fmt.Sprintf(`{"amountTransaction":{%s"paymentAmount":{"chargingInformation":{"amount":"500",`+
			`"currency":"XOF","description":"A song"},"chargingMetaData":{"onBehalfOf":%q,"serviceId":%q}},`+
			`"transactionOperationStatus":"Charged","referenceCode":%q,"clientCorrelator":%q}}`,
			endUser, m.OnBehalfOf, m.ServiceID, reference, id)}
}

func payment(m Merchant, order, currency string) Check {
	return Check{method: http.MethodPost, path: payPath,
		header: map[string]string{"Content-Type": "application/json", "mno-name": "sandbox", "country-code": "CI",
			"channel": "ussd", "lang": "fr"},
		body: fmt.Sprintf(`{%s"order_id":%q,"amount":"1000","return_url":"https://shop.example.com/return",`+
			`"cancel_url":"https://shop.example.com/cancel","reference":%q,"state":"cart%%3D42",`+
			`"user_msisdn":"+2250700002000"}`, currency, order, m.Name)}
}

func sms(m Merchant, id string) Check {
	return Check{method: http.MethodPost, path: smsPath,
		header: map[string]string{"Content-Type": "application/json", "X-OAPI-Application-Id": m.ApplicationID,
			"X-OAPI-Contact-Id": m.ContactID, "X-OAPI-Resource-Type": "SMS_OSM", "gw-alias": "smoke",
			"gw-token":       "smoke",
			"X-Operator-MCO": "OCI", "X-Operator-ISE2": "smoke"},
		body: fmt.Sprintf(`{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],`+
			`"senderAddress":"tel:+2250000","outboundSMSTextMessage":{"message":"Bonjour"},"senderName":"Demo",`+
			`"clientCorrelator":%q}}`, id)}
}

func lookup(path string) Check {
	return Check{method: http.MethodGet, path: path, header: map[string]string{}}
}

func token(basic, form string) Check {
	header := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	if basic != "" {
		header["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(basic))
	}
	return Check{method: http.MethodPost, path: "/token", header: header, body: form}
}

// named completes a check.
func (c Check) named(name string, expected want) Check {
	c.Name, c.want = name, expected
	return c
}

// without returns the check without a header, and with returns it with another one.
func (c Check) without(name string) Check {
	delete(c.header, name)
	return c
}

func (c Check) with(name, value string) Check {
	c.header[name] = value
	return c
}

// The members of a body that some checks leave out.
const (
	endUser  = `"endUserId":"acr:OperatorAPIToken",`
	currency = `"currency":"XOF",`
)

// Checks returns all checks that a merchant's credentials allow. id is in every key, so that no run meets the key of
// another one: digits, at most 20.
func Checks(m Merchant, id string) []Check {
	if m.Name == "" {
		m.Name = "Nobody" // a name that no merchant has
	}
	if m.OnBehalfOf == "" {
		m.OnBehalfOf = m.Name
	}
	all := openChecks(m, id)
	for i := range all {
		all[i].Group = Open
	}
	if !m.CanSign() {
		return all
	}
	signed := signedChecks(m, id)
	for i := range signed {
		signed[i].Group = Credentials
		if signed[i].header["Authorization"] == "" {
			signed[i].header["Authorization"] = "Bearer " + m.AccessToken
		}
	}
	return append(all, signed...)
}

// openChecks are refused before credentials are read, or because there are none (decisions "order-of-refusals",
// "error-shape", "authentication" and "callbacks").
func openChecks(m Merchant, id string) []Check {
	notFound, missing := refusal(http.StatusNotFound, "900906"), refusal(http.StatusUnauthorized, "900902")
	challenged := missing
	challenged.header = map[string]string{"Www-Authenticate": `Bearer realm="gateway"`}
	wrong := refusal(http.StatusUnauthorized, "900901")
	wrong.header = challenged.header
	order := m.Name + "_" + id
	post := func(path string) Check {
		return Check{method: http.MethodPost, path: path, header: map[string]string{}}
	}
	put, remove := lookup(payPath), lookup(chargePath)
	put.method, remove.method = http.MethodPut, http.MethodDelete
	return []Check{
		lookup("/").named("the root", notFound),
		lookup("/nothing/here").named("an unknown path", notFound),
		lookup("/nothing/here").with("Authorization", "Bearer "+unknownToken).named("an unknown path, a token",
			notFound),
		put.named("an unknown method of pay", notFound),
		remove.named("an unknown method of charge", notFound),
		post("/mobilemoney/v2").with("Authorization", "Bearer "+unknownToken).named("an unknown version", notFound),
		charge(m, id, endUser, "REF").named("charge needs credentials", challenged),
		payment(m, order, currency).named("pay needs credentials", missing),
		sms(m, id).named("SMS needs credentials", missing),
		lookup(chargePath+"/none").named("the lookup of a charge needs credentials", missing),
		lookup(lookupPath+"none").named("the lookup of a payment needs credentials", missing),
		lookup("/mobilemoney/getstatus/v1/none").named("the older lookup needs credentials", missing),
		lookup(smsPath+"/none/deliveryInfos").named("the lookup of an SMS needs credentials", missing),
		charge(m, id, endUser, "REF").with("Authorization", "Bearer "+unknownToken).named("an unknown token", wrong),
		token("", "grant_type=client_credentials").named("a token needs credentials",
			want{status: http.StatusUnauthorized, json: map[string]string{"error": "invalid_client"}}),
		charge(m, id, endUser, strings.Repeat("x", tooLong)).named("a body that is too large",
			refusal(http.StatusRequestEntityTooLarge, "SVC0002", "body")),
		post("/callbacks/v1/payments"+unknownCallback).named("a forged callback of a payment", notFound),
		post("/callbacks/v1/receipts"+unknownCallback).named("a forged receipt of an SMS", notFound),
	}
}

// signedChecks have valid credentials and change nothing (decisions "order-of-refusals", "token-endpoint" and
// "pay-getstatus"). The last ones find that the ones before stored nothing.
func signedChecks(m Merchant, id string) []Check {
	order, basic := m.Name+"_"+id, m.ClientID+":"+m.ClientSecret
	invalid := func(part string) want { return refusal(http.StatusBadRequest, "SVC0002", part) }
	wrongType := refusal(http.StatusUnsupportedMediaType, "SVC0002", "Content-Type")
	absent := refusal(http.StatusNotFound, "SVC0002", "order_id")
	cut := charge(m, id, endUser, "REF")
	cut.body = `{"amountTransaction":`
	return []Check{
		token(basic, "grant_type=client_credentials").named("a token", want{status: http.StatusOK,
			json:   map[string]string{"token_type": "Bearer", "access_token": "*", "expires_in": "*"},
			header: map[string]string{"Cache-Control": "no-store"}}),
		lookup(lookupPath+order).with("Authorization", issuedToken).named("a lookup with that token", absent),
		token(basic+"x", "grant_type=client_credentials").named("a wrong client secret",
			want{status: http.StatusUnauthorized, json: map[string]string{"error": "invalid_client"},
				header: map[string]string{"Www-Authenticate": "Basic"}}),
		token(basic, "grant_type=password").named("another grant type",
			want{status: http.StatusBadRequest, json: map[string]string{"error": "unsupported_grant_type"}}),
		charge(m, id, endUser, "REF").with("Content-Type", "text/plain").named("charge: another media type", wrongType),
		payment(m, order, currency).with("Content-Type", "application/xml").named("pay: another media type", wrongType),
		sms(m, id).with("Content-Type", "text/plain").named("SMS: another media type", wrongType),
		charge(m, id, "", "REF").named("charge: no endUserId", invalid("amountTransaction.endUserId")),
		cut.named("charge: a body that is cut", invalid("body")),
		payment(m, order, currency).without("mno-name").named("pay: no mno-name", invalid("mno-name")),
		payment(m, order, "").named("pay: no currency", invalid("currency")),
		sms(m, id).without("X-OAPI-Application-Id").named("SMS: no application id", invalid("X-OAPI-Application-Id")),
		lookup(lookupPath+order).named("the lookup of an unknown payment", absent),
		lookup("/mobilemoney/getstatus/v1/"+order).named("its older lookup", absent),
		lookup(chargePath+"/none").named("the lookup of an unknown charge",
			refusal(http.StatusNotFound, "SVC0002", "transactionId")),
	}
}
