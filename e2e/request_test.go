package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"mobilegateway/local"
)

// requestBuilder is a request before it is sent. It is valid by default; the options of a command change it.
type requestBuilder struct {
	method, path string
	header       map[string]string // names in the specification's spelling
	body         map[string]any    // nil for none
	rawBody      []byte            // sent instead of body
	shop         local.MerchantCredentials
}

// options are the options of a command in order, each with its value.
type options [][2]string

// parseOptions parses -name value pairs.
func parseOptions(arguments []string) (options, error) {
	var found options
	for len(arguments) > 0 {
		name, isOption := strings.CutPrefix(arguments[0], "-")
		if !isOption || len(arguments) < 2 {
			return nil, fmt.Errorf("%q is not an option with a value", arguments[0])
		}
		found = append(found, [2]string{name, arguments[1]})
		arguments = arguments[2:]
	}
	return found, nil
}

// get returns an option's value, or the fallback.
func (o options) get(name, fallback string) string {
	for _, option := range o {
		if option[0] == name {
			return option[1]
		}
	}
	return fallback
}

// copyTo copies given options into a body, by option and path.
func (o options) copyTo(body map[string]any, paths map[string]string) {
	for option, path := range paths {
		if value := o.get(option, ""); value != "" {
			setPath(body, path, value)
		}
	}
}

// merchantFor returns the credentials for -as second or -as limited, else the first merchant's.
func (s *story) merchantFor(o options) local.MerchantCredentials {
	switch o.get("as", "") {
	case "second":
		return s.target.SecondMerchant
	case "limited":
		return s.target.LimitedMerchant
	}
	return s.target.MerchantCredentials
}

// setPath sets a value in nested objects by its path.
func setPath(body map[string]any, path string, value any) {
	parent, name := openPath(body, path)
	parent[name] = value
}

// deletePath deletes a value in nested objects by its path.
func deletePath(body map[string]any, path string) {
	parent, name := openPath(body, path)
	delete(parent, name)
}

// openPath returns the innermost object of a path and the last name. It adds missing objects.
func openPath(body map[string]any, path string) (parent map[string]any, name string) {
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		next, isObject := body[part].(map[string]any)
		if !isObject {
			next = map[string]any{}
			body[part] = next
		}
		body = next
	}
	return body, parts[len(parts)-1]
}

// applyOptions applies the options that every request accepts. own names the options that the operation has applied
// itself.
func (a *requestBuilder) applyOptions(s *story, o options, own ...string) error {
	for _, option := range o {
		name, value := option[0], option[1]
		key, text, _ := strings.Cut(value, "=")
		headerName, headerValue, _ := strings.Cut(value, ":")
		switch name {
		case "set": // -set path=text
			setPath(a.body, key, text)
		case "raw-json": // -raw-json path=JSON
			setPath(a.body, key, json.RawMessage(text))
		case "fill": // -fill path=number of characters
			count, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			setPath(a.body, key, strings.Repeat("x", count))
		case "drop": // -drop path
			deletePath(a.body, value)
		case "header": // -header 'Name: value'
			a.header[headerName] = strings.TrimSpace(headerValue)
		case "without": // -without Name
			delete(a.header, value)
		case "bearer": // -bearer token
			a.header["Authorization"] = "Bearer " + value
		case "body": // -body file
			text, err := os.ReadFile(s.script.MkAbs(value))
			if err != nil {
				return err
			}
			a.rawBody = bytes.TrimSuffix(text, []byte("\n"))
		case "path":
			a.path = value
		default:
			if name != "as" && !slices.Contains(own, name) {
				return fmt.Errorf("there is no option -%s", name)
			}
		}
	}
	return nil
}

// build returns the HTTP request, with header names in the specification's spelling.
func (a *requestBuilder) build(base string) (*http.Request, error) {
	content := a.rawBody
	if content == nil && a.body != nil {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(a.body); err != nil {
			return nil, err
		}
		content = bytes.TrimSpace(text.Bytes())
	}
	address := a.path
	if !strings.Contains(address, "://") {
		address = base + a.path
	}
	request, err := http.NewRequest(a.method, address, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	for name, value := range a.header {
		request.Header[name] = []string{value}
	}
	return request, nil
}

// send sends the request and records its response for the checks.
func (s *story) send(a *requestBuilder) error {
	responses, err := s.exchangeInParallel(a, 1)
	if err != nil {
		return err
	}
	s.record(responses[0])
	return nil
}

func newRequestBuilder(from local.MerchantCredentials, method, path string) *requestBuilder {
	return &requestBuilder{method: method, path: path, shop: from, body: map[string]any{}, header: map[string]string{
		"Authorization": "Bearer " + from.AccessToken, "Content-Type": "application/json",
	}}
}

// newLookup returns the lookup of a payment.
func newLookup(from local.MerchantCredentials, order string) *requestBuilder {
	a := newRequestBuilder(from, http.MethodGet, "/mobilemoney/v1/getStatus/"+order)
	a.body = nil
	return a
}

// chargePath is the path of the charge operation (specification, Endpoints).
const chargePath = "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"

// newCharge returns the specification's example charge.
func newCharge(from local.MerchantCredentials, key, alias string) *requestBuilder {
	a := newRequestBuilder(from, http.MethodPost, chargePath)
	a.header["gw-token"], a.header["gw-alias"] = from.GWToken, alias
	const information, meta = "amountTransaction.paymentAmount.chargingInformation.",
		"amountTransaction.paymentAmount.chargingMetaData."
	setPath(a.body, "amountTransaction.endUserId", "acr:OperatorAPIToken")
	setPath(a.body, information+"amount", "500")
	setPath(a.body, information+"currency", "XOF")
	setPath(a.body, information+"description", "A song")
	setPath(a.body, meta+"onBehalfOf", from.OnBehalfOf)
	setPath(a.body, meta+"serviceId", from.ServiceID)
	setPath(a.body, "amountTransaction.transactionOperationStatus", "Charged")
	setPath(a.body, "amountTransaction.referenceCode", "REF-"+key)
	setPath(a.body, "amountTransaction.clientCorrelator", key)
	return a
}

// charge sends a charge: charge -key K [-ref R] [-alias A] [-amount N] [-currency C] [-description D] [-mco M] and the
// options of every request. -key none omits the correlator.
func (s *story) charge(arguments []string) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	from, key := s.merchantFor(o), o.get("key", "")
	if key == "" {
		return errors.New("charge: -key is missing")
	}
	a := newCharge(from, key, o.get("alias", from.GWAlias))
	const information = "amountTransaction.paymentAmount.chargingInformation."
	o.copyTo(a.body, map[string]string{
		"amount": information + "amount", "currency": information + "currency",
		"description": information + "description", "ref": "amountTransaction.referenceCode",
	})
	if key == "none" {
		deletePath(a.body, "amountTransaction.clientCorrelator")
	}
	if mco := o.get("mco", ""); mco != "" {
		a.header["X-Operator-MCO"] = mco
	}
	if err := a.applyOptions(s, o, "key", "alias", "amount", "currency", "description", "ref", "mco"); err != nil {
		return err
	}
	return s.send(a)
}

// newPayment returns the specification's example payment.
func newPayment(from local.MerchantCredentials, order, channel, msisdn string) *requestBuilder {
	a := newRequestBuilder(from, http.MethodPost, "/mobilemoney/v1")
	a.header["mno-name"], a.header["country-code"], a.header["channel"], a.header["lang"] = "sandbox", "CI", channel,
		"fr"
	for name, value := range map[string]string{
		"currency": "XOF", "order_id": order, "amount": "1000", "return_url": "https://shop.example.com/return",
		"cancel_url": "https://shop.example.com/cancel", "reference": from.Merchant, "state": "cart%3D42",
		"user_msisdn": msisdn,
	} {
		if value != "" {
			a.body[name] = value
		}
	}
	return a
}

// successfulMSISDN is a number that is not a test number: its payment succeeds.
const successfulMSISDN = "+2250700002000"

// pay sends a payment: pay CHANNEL -order O [-msisdn N] [-amount N] [-currency C] [-otp C] [-state S] [-country CI]
// [-lang fr] [-operator sandbox]. -msisdn none omits the number, which is the default on the web channel.
func (s *story) pay(arguments []string) error {
	channel := arguments[0]
	o, err := parseOptions(arguments[1:])
	if err != nil {
		return err
	}
	number := successfulMSISDN
	if channel == "web" {
		number = ""
	}
	number = strings.TrimSuffix(o.get("msisdn", number), "none")
	a := newPayment(s.merchantFor(o), o.get("order", ""), channel, number)
	for option, name := range map[string]string{"country": "country-code", "lang": "lang", "operator": "mno-name"} {
		a.header[name] = o.get(option, a.header[name])
	}
	o.copyTo(a.body, map[string]string{"amount": "amount", "currency": "currency", "otp": "otp_code", "state": "state"})
	if err := a.applyOptions(s, o, "order", "msisdn", "country", "lang", "operator", "amount", "currency", "otp",
		"state"); err != nil {
		return err
	}
	if err := s.send(a); err != nil {
		return err
	}
	if address, err := s.last.textValue("payment_url"); err == nil {
		s.pageURL = address
	}
	return nil
}

// newSMS returns the specification's example SMS.
func newSMS(from local.MerchantCredentials, key, alias, sender string) *requestBuilder {
	a := newRequestBuilder(from, http.MethodPost, "/smsmessaging/v1/outbound/"+url.QueryEscape(sender)+"/requests")
	for name, value := range map[string]string{
		"X-OAPI-Application-Id": from.ApplicationID, "X-OAPI-Contact-Id": from.ContactID,
		"X-OAPI-Resource-Type": "SMS_OSM",
		"gw-alias":             from.GWAlias, "gw-token": from.GWToken, "X-Operator-MCO": "OCI",
		"X-Operator-ISE2": alias,
	} {
		a.header[name] = value
	}
	const root = "outboundSMSMessageRequest."
	setPath(a.body, root+"address", []string{"acr:X-Operator-ISE2"})
	setPath(a.body, root+"senderAddress", sender)
	setPath(a.body, root+"outboundSMSTextMessage.message", "Bonjour%20%C3%A0%20tous")
	setPath(a.body, root+"senderName", "Demo")
	setPath(a.body, root+"clientCorrelator", key)
	return a
}

// sms sends an SMS: sms -key K [-alias A] [-sender tel:+2250000] [-message M] [-mco OCI] [-notify URL] [-data D].
func (s *story) sms(arguments []string) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	from := s.merchantFor(o)
	a := newSMS(from, o.get("key", ""), o.get("alias", from.GWAlias), o.get("sender", "tel:+2250000"))
	const root = "outboundSMSMessageRequest."
	o.copyTo(a.body, map[string]string{
		"message": root + "outboundSMSTextMessage.message", "notify": root + "receiptRequest.notifyURL",
		"data": root + "receiptRequest.callbackData",
	})
	a.header["X-Operator-MCO"] = o.get("mco", "OCI")
	if err := a.applyOptions(s, o, "key", "alias", "sender", "message", "mco", "notify", "data"); err != nil {
		return err
	}
	return s.send(a)
}

// http sends any request: http GET PATH [-bearer T] [-as second] [-body file] [-header 'Name: value']. It has
// credentials only with -bearer or with -as, which uses the merchant's access token.
func (s *story) http(arguments []string) error {
	o, err := parseOptions(arguments[2:])
	if err != nil {
		return err
	}
	a := newRequestBuilder(s.merchantFor(o), arguments[0], arguments[1])
	a.body = nil
	if o.get("as", "") == "" {
		delete(a.header, "Authorization")
	}
	if err := a.applyOptions(s, o); err != nil {
		return err
	}
	return s.send(a)
}
