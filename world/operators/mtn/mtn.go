// Package mtn is a stub of MTN MoMo Collections: the token call, request to pay, its lookup and its callback. Package
// kit describes the control paths and the steering by number.
//
// A payment is CREATED, one second later PENDING, and after two seconds SUCCESSFUL or FAILED. Its callback comes once.
// Only the numbers 1006 and 1007 of the kit get more than one callback. MTN has no such numbers.
//
// The sandbox's numbers 46733123450 to 46733123464 act as MTN's table says. Those of an error at the request are
// refused with HTTP 500, and nothing is applied. The quirk measured_numbers makes them act as third parties measured.
//
// Above 10 lookups a second and 5 at once, the lookups of a target environment get 429.
//
// docs/operators/stubs.md lists the choices that no document states.
package mtn

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
)

const (
	createdDelay      = time.Second      // CREATED to PENDING
	decisionDelay     = 2 * time.Second  // the request to the final status
	delayedDecision   = 25 * time.Second // the number of a delayed payment
	earlyNotFoundTime = 5 * time.Second  // quirk early_not_found
	maxNote           = 160              // characters of payerMessage and payeeNote
	maxLookups        = 15               // of a target environment in a second: 10, and a burst of 5
	environmentHeader = "X-Target-Environment"
)

// Credentials are those that the stub accepts.
type Credentials struct {
	APIUser, APIKey  string
	SubscriptionKeys [2]string // primary and secondary; both are valid
	// CallbackHost is the registered host of callbacks, without a port. "" accepts every host.
	CallbackHost string
}

// DefaultCredentials are for the local run.
func DefaultCredentials() Credentials {
	return Credentials{ //nolint:gosec // the stub's own, and no real account has them
		APIUser: "c72025f5-5cd1-4630-99e4-8ba4722fad56", APIKey: "stub-mtn-api-key",
		SubscriptionKeys: [2]string{"stub-mtn-primary", "stub-mtn-secondary"},
	}
}

// environment is the currency of a target environment and its decimals.
type environment struct {
	currency string
	decimals bool
}

var environments = map[string]environment{
	"sandbox": {"EUR", true}, "mtnivorycoast": {"XOF", false}, "mtncameroon": {"XAF", false},
}

// reasons are the reasons of failures that all stubs know.
var reasons = map[kit.Result]string{kit.Refused: "APPROVAL_REJECTED", kit.NoFunds: "NOT_ENOUGH_FUNDS"}

// sandboxPrefix and two digits are the sandbox's test numbers.
const (
	sandboxPrefix = "467331234"
	delayedNumber = sandboxPrefix + "54"
)

// numbers are the test numbers whose payment is accepted.
var numbers = map[string]kit.Outcome{
	sandboxPrefix + "50": {Result: "INTERNAL_PROCESSING_ERROR"},
	sandboxPrefix + "51": {Result: kit.Refused},
	sandboxPrefix + "52": {Result: "EXPIRED"},
	sandboxPrefix + "53": {Result: kit.Undecided},
	delayedNumber:        {Result: kit.Paid},
	sandboxPrefix + "63": {Result: "COULD_NOT_PERFORM_TRANSACTION"},
}

// refusedNumbers are the test numbers whose request is refused, with the code.
var refusedNumbers = map[string]string{
	sandboxPrefix + "55": "PAYER_NOT_FOUND",
	sandboxPrefix + "56": "PAYEE_NOT_ALLOWED_TO_RECEIVE",
	sandboxPrefix + "57": "NOT_ALLOWED",
	sandboxPrefix + "58": "NOT_ALLOWED_TARGET_ENVIRONMENT",
	sandboxPrefix + "59": "INVALID_CALLBACK_URL_HOST",
	sandboxPrefix + "60": "INVALID_CURRENCY",
	sandboxPrefix + "61": "INTERNAL_PROCESSING_ERROR",
	sandboxPrefix + "62": "SERVICE_UNAVAILABLE",
	sandboxPrefix + "64": "INTERNAL_PROCESSING_ERROR",
}

type stub struct {
	*kit.Platform
	Credentials
	lookups map[string][]time.Time // within the last second, by target environment; the platform's lock guards them
}

// New makes a stub of one MTN platform for all target environments.
func New(config kit.Config, credentials Credentials) *kit.Platform {
	s := &stub{Credentials: credentials, lookups: map[string][]time.Time{}}
	s.Platform = kit.New(config, kit.Spec{
		Operator: "mtn", Numbers: numbers, TokenLife: time.Hour, Authorize: s.authorize, Callback: s.callback,
		End: func(t *kit.Transaction) { t.Status = "PENDING" },
		Operations: []kit.Operation{
			{Pattern: "POST /collection/token/{$}", Name: "token", Open: true, Check: s.checkToken,
				Serve: s.token},
			{Pattern: "POST /collection/v1_0/requesttopay", Name: "requesttopay", Key: "header:X-Reference-Id",
				OrderID: "externalId", MSISDN: "payer.partyId", Check: s.checkPay, Serve: s.pay},
			{Pattern: "GET /collection/v1_0/requesttopay/{id}", Name: "status", Key: "path:id", Check: s.checkStatus,
				Serve: s.status},
		},
		Faults: map[string]kit.Response{
			"400": {Status: http.StatusBadRequest},
			"401": unauthorized("Access denied due to invalid subscription key."),
			"403": gatewayError(http.StatusForbidden, "Forbidden"),
			"429": tooMany(),
		},
		Errors: slices.Concat(kit.Errors(http.StatusInternalServerError, "INTERNAL_PROCESSING_ERROR", "PAYER_NOT_FOUND",
			"PAYEE_NOT_ALLOWED_TO_RECEIVE", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT",
			"INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY"),
			kit.Errors(http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE"), []kit.Error{
				kit.NewError("RESOURCE_ALREADY_EXIST", http.StatusConflict,
					"Duplicated reference id. Creation of resource failed."),
				kit.NewError("RESOURCE_NOT_FOUND", http.StatusNotFound, "Requested resource was not found."),
			}),
		ErrorForm: func(e kit.Error, _ string) kit.Response {
			return kit.JSON(e.Status, map[string]string{"code": e.Name, "message": e.Message})
		},
		Quirks: []string{
			"callback_put",               // the callback is a PUT instead of a POST
			"callback_without_reference", // the callback lacks referenceId, so that only externalId is left
			"reason_object",              // reason is {"code","message"} instead of a text
			"amount_number",              // amount is a JSON number
			"early_not_found",            // the lookup is 404 in the first five seconds
			"measured_numbers",           // the sandbox's numbers as measured
		},
	})
	return s.Platform
}

// gatewayError is an error of the API gateway in front of the platform.
func gatewayError(status int, message string) kit.Response {
	return kit.JSON(status, map[string]any{"statusCode": status, "message": message})
}

func tooMany() kit.Response {
	return gatewayError(http.StatusTooManyRequests, "Rate limit is exceeded.")
}

func unauthorized(message string) kit.Response { return gatewayError(http.StatusUnauthorized, message) }

func (s *stub) checkToken(c *kit.Call) kit.Response {
	header := c.Request.Header
	isForm := strings.HasPrefix(header.Get("Content-Type"), "application/x-www-form-urlencoded")
	return kit.FirstOf(
		kit.If(len(c.Body) == 0 && header.Get("Content-Length") == "",
			kit.HTML(http.StatusLengthRequired, "Length Required")),
		kit.If(isForm && len(c.Body) > 0, kit.HTML(http.StatusOK, "Request Rejected")),
		kit.If(!s.knowsSubscription(c), unauthorized("Access denied due to invalid subscription key.")),
	)
}

func (s *stub) token(c *kit.Call) kit.Response {
	return s.Grant(c, kit.Grant{
		Clients:   map[string]string{s.APIUser: s.APIKey},
		BadClient: unauthorized("Access denied due to invalid credentials."),
		Fields:    kit.Fields{"token_type": "access_token"},
	})
}

func (s *stub) knowsSubscription(c *kit.Call) bool {
	key := c.Request.Header.Get("Ocp-Apim-Subscription-Key")
	return key != "" && slices.Contains(s.SubscriptionKeys[:], key)
}

func (s *stub) authorize(c *kit.Call) kit.Response {
	_, valid := s.TokenOwner(c)
	return kit.FirstOf(
		kit.If(!s.knowsSubscription(c), unauthorized("Access denied due to invalid subscription key.")),
		kit.If(!valid, unauthorized("Unauthorized. Access token is missing or invalid.")),
	)
}

// checkPay refuses a payment that is not stored.
func (s *stub) checkPay(c *kit.Call) kit.Response {
	target, callbacks := environments[c.Request.Header.Get(environmentHeader)], c.Request.Header["X-Callback-Url"]
	callback, isCents := strings.Join(callbacks, ""), strings.Contains(c.Text("amount"), ".")
	bad := kit.Response{Status: http.StatusBadRequest}
	return kit.FirstOf(
		kit.If(!kit.IsUUIDv4(c.Key) || c.Key == s.APIUser || !valid(c), bad),
		kit.If(len(callbacks) > 0 && callback == "", bad),
		kit.If(target.currency == "", s.Error("NOT_ALLOWED_TARGET_ENVIRONMENT", "")),
		kit.If(c.Text("currency") != target.currency, s.Error("INVALID_CURRENCY", "")),
		kit.If(isCents && !target.decimals, bad),
		kit.If(callback != "" && !s.registered(callback), s.Error("INVALID_CALLBACK_URL_HOST", "")),
		kit.If(s.Find(c.Key) != nil, s.Error("RESOURCE_ALREADY_EXIST", "")),
	)
}

func valid(c *kit.Call) bool {
	return kit.IsAmount(c.Text("amount")) && c.OrderID != "" && !strings.Contains(c.OrderID, " ") &&
		c.Text("payer.partyIdType") == "MSISDN" && kit.IsDigits(c.MSISDN) && !strings.HasPrefix(c.MSISDN, "00") &&
		len(c.Text("payerMessage")) <= maxNote && len(c.Text("payeeNote")) <= maxNote
}

func (s *stub) registered(callback string) bool {
	u, err := url.Parse(callback)
	return err == nil && (s.CallbackHost == "" || u.Hostname() == s.CallbackHost)
}

// pay stores a payment and sets the timers of its life.
func (s *stub) pay(c *kit.Call) kit.Response {
	if code := refusedNumbers[c.MSISDN]; code != "" && !s.Quirk("measured_numbers") {
		return s.Error(code, "")
	}
	t := s.Add(c, &kit.Transaction{
		Amount: c.Text("amount"), Currency: c.Text("currency"), CallbackURL: c.Request.Header.Get("X-Callback-Url"),
		Status: "CREATED", Reference: s.NewDigits(10),
		Details: map[string]string{"environment": c.Request.Header.Get(environmentHeader)},
	})
	if s.Quirk("early_not_found") {
		t.Details["hidden"] = "yes"
		s.After(earlyNotFoundTime, func() { delete(t.Details, "hidden") })
	}
	delay := decisionDelay
	switch {
	case t.MSISDN == delayedNumber:
		delay = delayedDecision
	case s.Quirk("measured_numbers") && t.Outcome.Result != kit.Paid:
		delay = 0
	default:
		s.After(createdDelay, func() { t.Status = "PENDING" })
	}
	return s.DecideAfter(delay, t, kit.Response{Status: http.StatusAccepted})
}

func (s *stub) callback(t *kit.Transaction, result kit.Result) kit.Callback {
	view := s.view(t, result)
	if !s.Quirk("callback_without_reference") {
		view["referenceId"] = t.Key
	}
	callback := t.Post(view)
	if s.Quirk("callback_put") {
		callback.Method = http.MethodPut
	}
	return callback
}

func (s *stub) checkStatus(c *kit.Call) kit.Response {
	t, name := s.Find(c.Key), c.Request.Header.Get(environmentHeader)
	found := t != nil && t.Details["hidden"] == "" && t.Details["environment"] == name
	return kit.FirstOf(
		kit.If(s.exceedsRate(name), tooMany()),
		kit.If(!kit.IsUUIDv4(c.Key), kit.Response{Status: http.StatusBadRequest}),
		kit.If(environments[name].currency == "", s.Error("NOT_ALLOWED_TARGET_ENVIRONMENT", "")),
		kit.If(!found, s.Error("RESOURCE_NOT_FOUND", "")),
	)
}

// exceedsRate counts a lookup of a target environment and reports whether it is above its rate.
func (s *stub) exceedsRate(environment string) bool {
	now := s.Now()
	isOld := func(at time.Time) bool { return now.Sub(at) >= time.Second }
	s.lookups[environment] = append(slices.DeleteFunc(s.lookups[environment], isOld), now)
	return len(s.lookups[environment]) > maxLookups
}

func (s *stub) status(c *kit.Call) kit.Response {
	t := s.Find(c.Key)
	return kit.JSON(http.StatusOK, s.view(t, t.Result))
}

// view is the body of a lookup or a callback of a payment with this result.
func (s *stub) view(t *kit.Transaction, result kit.Result) kit.Fields {
	amount := t.Amount
	if strings.Contains(amount, ".") {
		amount = strings.TrimSuffix(strings.TrimRight(amount, "0"), ".")
	}
	view := kit.Fields{
		"amount": amount, "currency": t.Currency, "externalId": t.OrderID, "status": t.Status,
		"payer":        map[string]string{"partyIdType": "MSISDN", "partyId": t.MSISDN},
		"payerMessage": t.Sent.Text("payerMessage"), "payeeNote": t.Sent.Text("payeeNote"),
	}
	if s.Quirk("amount_number") {
		view["amount"] = json.Number(amount)
	}
	switch result {
	case kit.Undecided:
	case kit.Paid:
		view["status"], view["financialTransactionId"] = "SUCCESSFUL", t.Reference
	default:
		reason := cmp.Or(reasons[result], string(result))
		view["status"], view["reason"] = "FAILED", reason
		if s.Quirk("reason_object") {
			view["reason"] = map[string]string{"code": reason, "message": strings.ToLower(reason)}
		}
	}
	return view
}
