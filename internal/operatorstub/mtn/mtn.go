// Package mtn is a stub of MTN MoMo Collections: the token call, request to pay, its lookup and its callback. Package
// operatorstub describes the control paths and the steering by number.
//
// A payment is CREATED, one second later PENDING, and after two seconds SUCCESSFUL or FAILED. Its callback comes once.
// Only the numbers 1006 and 1007 of the kit get more than one callback. MTN has no such numbers.
//
// The sandbox's numbers 46733123450 to 46733123464 act as MTN's table says. Those of an error at the request are
// refused with HTTP 500, and nothing is applied. The quirk measured_numbers makes them act as third parties measured.
//
// Quirks:
//
//	callback_put                the callback is a PUT instead of a POST
//	callback_without_reference  the callback lacks referenceId, so that only externalId is left
//	reason_object               reason is {"code","message"} instead of a text
//	amount_number               amount is a JSON number
//	early_not_found             the lookup is 404 in the first five seconds
//	measured_numbers            the sandbox's numbers as measured
//
// These choices are inferred, because no document states them:
//
//	wrong Basic credentials           401 in the form of the API gateway
//	order of checks                   keys, token, reference, body, environment, currency, callback host, repeat
//	an amount with decimals in XOF    400 without a body; the same for XAF
//	externalId with a space           400 without a body
//	X-Reference-Id of the API user    400 without a body
//	number 46733123464                500 INTERNAL_PROCESSING_ERROR
package mtn

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/internal/operatorstub"
)

const (
	createdDelay      = time.Second      // CREATED to PENDING
	decisionDelay     = 2 * time.Second  // the request to the final status
	delayedDecision   = 25 * time.Second // the number of a delayed payment
	earlyNotFoundTime = 5 * time.Second  // quirk early_not_found
	tokenLife         = time.Hour
	maxNote           = 160 // characters of payerMessage and payeeNote
	pay               = "requesttopay"
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
var reasons = map[operatorstub.Result]string{
	operatorstub.Refused: "APPROVAL_REJECTED", operatorstub.NoFunds: "NOT_ENOUGH_FUNDS",
}

// sandboxPrefix and two digits are the sandbox's test numbers.
const (
	sandboxPrefix = "467331234"
	delayedNumber = sandboxPrefix + "54"
)

// numbers are the test numbers whose payment is accepted.
var numbers = map[string]operatorstub.Outcome{
	sandboxPrefix + "50": {Result: "INTERNAL_PROCESSING_ERROR"},
	sandboxPrefix + "51": {Result: operatorstub.Refused},
	sandboxPrefix + "52": {Result: "EXPIRED"},
	sandboxPrefix + "53": {Result: operatorstub.Undecided},
	delayedNumber:        {Result: operatorstub.Paid},
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

// Stub is one MTN platform for all target environments.
type Stub struct {
	platform    *operatorstub.Platform
	credentials Credentials
}

// New makes a stub.
func New(config operatorstub.Config, credentials Credentials) *Stub {
	faults := map[string]operatorstub.Response{
		"400": {Status: http.StatusBadRequest},
		"401": gatewayError(http.StatusUnauthorized, "Access denied due to invalid subscription key."),
		"403": gatewayError(http.StatusForbidden, "Forbidden"),
		"409": codeError(http.StatusConflict, "RESOURCE_ALREADY_EXIST"),
		"429": gatewayError(http.StatusTooManyRequests, "Rate limit is exceeded."),
		"500": refusal("INTERNAL_PROCESSING_ERROR"),
		"503": refusal("SERVICE_UNAVAILABLE"),
	}
	for _, code := range refusedNumbers {
		faults[code] = refusal(code)
	}
	return &Stub{credentials: credentials, platform: operatorstub.New(config, operatorstub.Spec{
		Operator: "mtn", Faults: faults, Numbers: numbers, TokenLife: tokenLife,
		Quirks: []string{"callback_put", "callback_without_reference", "reason_object", "amount_number",
			"early_not_found", "measured_numbers"},
	})}
}

// Handler serves the stub from the root.
func (s *Stub) Handler() http.Handler {
	noKeys := func(*http.Request, []byte) operatorstub.Keys { return operatorstub.Keys{} }
	return s.platform.Handler(
		operatorstub.Operation{Pattern: "POST /collection/token/{$}", Name: "token", Identify: noKeys, Serve: s.token},
		operatorstub.Operation{Pattern: "POST /collection/v1_0/requesttopay", Name: pay, Identify: identify,
			Serve: s.pay},
		operatorstub.Operation{Pattern: "GET /collection/v1_0/requesttopay/{id}", Name: "status",
			Identify: func(r *http.Request, _ []byte) operatorstub.Keys {
				return operatorstub.Keys{Key: r.PathValue("id")}
			}, Serve: s.status},
	)
}

// gatewayError is an error of the API gateway in front of the platform.
func gatewayError(status int, message string) operatorstub.Response {
	return operatorstub.JSON(status, map[string]any{"statusCode": status, "message": message})
}

// codeError is an error of the platform.
func codeError(status int, code string) operatorstub.Response {
	message := map[string]string{
		"RESOURCE_ALREADY_EXIST": "Duplicated reference id. Creation of resource failed.",
		"RESOURCE_NOT_FOUND":     "Requested resource was not found.",
	}[code]
	if message == "" {
		message = strings.ToLower(strings.ReplaceAll(code, "_", " "))
	}
	return operatorstub.JSON(status, map[string]string{"code": code, "message": message})
}

// refusal is a business error: 503 for SERVICE_UNAVAILABLE, and 500 for every other code.
func refusal(code string) operatorstub.Response {
	if code == "SERVICE_UNAVAILABLE" {
		return codeError(http.StatusServiceUnavailable, code)
	}
	return codeError(http.StatusInternalServerError, code)
}

func (s *Stub) token(c *operatorstub.Call) operatorstub.Response {
	r := c.Request
	if len(c.Body) == 0 && r.Header.Get("Content-Length") == "" {
		return operatorstub.HTML(http.StatusLengthRequired, "Length Required")
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") && len(c.Body) > 0 {
		return operatorstub.HTML(http.StatusOK, "Request Rejected")
	}
	if !s.knowsSubscription(r) {
		return gatewayError(http.StatusUnauthorized, "Access denied due to invalid subscription key.")
	}
	user, key, _ := r.BasicAuth()
	if user != s.credentials.APIUser || key != s.credentials.APIKey {
		return gatewayError(http.StatusUnauthorized, "Access denied due to invalid credentials.")
	}
	token, life := s.platform.IssueToken(user)
	return operatorstub.JSON(http.StatusOK, map[string]any{
		"access_token": token, "token_type": "access_token", "expires_in": life,
	})
}

func (s *Stub) knowsSubscription(r *http.Request) bool {
	key := r.Header.Get("Ocp-Apim-Subscription-Key")
	return key != "" && slices.Contains(s.credentials.SubscriptionKeys[:], key)
}

// authorize returns a refusal, or false if the call shows both keys.
func (s *Stub) authorize(r *http.Request) (operatorstub.Response, bool) {
	switch {
	case !s.knowsSubscription(r):
		return gatewayError(http.StatusUnauthorized, "Access denied due to invalid subscription key."), true
	case !s.platform.ValidToken(r, s.credentials.APIUser):
		return gatewayError(http.StatusUnauthorized, "Unauthorized. Access token is missing or invalid."), true
	}
	return operatorstub.Response{}, false
}

type party struct {
	Type string `json:"partyIdType"`
	ID   string `json:"partyId"`
}

type payment struct {
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	ExternalID   string `json:"externalId"`
	Payer        party  `json:"payer"`
	PayerMessage string `json:"payerMessage"`
	PayeeNote    string `json:"payeeNote"`
}

func identify(r *http.Request, body []byte) operatorstub.Keys {
	var p payment
	_ = json.Unmarshal(body, &p) // pay refuses it
	return operatorstub.Keys{Key: r.Header.Get("X-Reference-Id"), OrderID: p.ExternalID, MSISDN: p.Payer.ID}
}

func (s *Stub) pay(c *operatorstub.Call) operatorstub.Response {
	if refused, ok := s.authorize(c.Request); ok {
		return refused
	}
	var p payment
	target := environments[c.Request.Header.Get("X-Target-Environment")]
	callbacks, hasCallback := c.Request.Header["X-Callback-Url"]
	switch {
	case !operatorstub.IsUUIDv4(c.Key) || c.Key == s.credentials.APIUser || hasCallback && callbacks[0] == "":
		return operatorstub.Response{Status: http.StatusBadRequest}
	case json.Unmarshal(c.Body, &p) != nil || !p.valid():
		return operatorstub.Response{Status: http.StatusBadRequest}
	case target.currency == "":
		return refusal("NOT_ALLOWED_TARGET_ENVIRONMENT")
	case p.Currency != target.currency:
		return refusal("INVALID_CURRENCY")
	case !target.decimals && strings.Contains(p.Amount, "."):
		return operatorstub.Response{Status: http.StatusBadRequest}
	case hasCallback && !s.registered(callbacks[0]):
		return refusal("INVALID_CALLBACK_URL_HOST")
	case s.platform.Find(pay, c.Key) != nil:
		return codeError(http.StatusConflict, "RESOURCE_ALREADY_EXIST")
	}
	if code := refusedNumbers[p.Payer.ID]; code != "" && !s.platform.Quirk("measured_numbers") {
		return refusal(code)
	}
	t := &operatorstub.Transaction{
		Operation: pay, Key: c.Key, OrderID: p.ExternalID, Amount: p.Amount, Currency: p.Currency, MSISDN: p.Payer.ID,
		CallbackURL: c.Request.Header.Get("X-Callback-Url"), Outcome: s.platform.OutcomeFor(p.Payer.ID),
		Details: map[string]string{"payerMessage": p.PayerMessage, "payeeNote": p.PayeeNote,
			"environment": c.Request.Header.Get("X-Target-Environment")},
	}
	return s.accept(t)
}

func (p payment) valid() bool {
	return operatorstub.IsAmount(p.Amount) && p.ExternalID != "" && !strings.Contains(p.ExternalID, " ") &&
		p.Payer.Type == "MSISDN" && p.Payer.ID != "" && strings.Trim(p.Payer.ID, "0123456789") == "" &&
		!strings.HasPrefix(p.Payer.ID, "00") && len(p.PayerMessage) <= maxNote && len(p.PayeeNote) <= maxNote
}

func (s *Stub) registered(callback string) bool {
	u, err := url.Parse(callback)
	return err == nil && (s.credentials.CallbackHost == "" || u.Hostname() == s.credentials.CallbackHost)
}

// accept stores a payment and sets the timers of its life.
func (s *Stub) accept(t *operatorstub.Transaction) operatorstub.Response {
	response := operatorstub.Response{Status: http.StatusAccepted}
	t.Reference = s.platform.NewDigits(10)
	s.platform.Add(t).Status = "CREATED"
	if s.platform.Quirk("early_not_found") {
		t.Details["hidden"] = "yes"
		s.platform.After(earlyNotFoundTime, func() { delete(t.Details, "hidden") })
	}
	if t.Outcome.CallbackFirst {
		response.First = s.decide(t)
		return response
	}
	delay := decisionDelay
	switch {
	case t.MSISDN == delayedNumber:
		delay = delayedDecision
	case s.platform.Quirk("measured_numbers") && t.Outcome.Result != operatorstub.Paid:
		delay = 0
	}
	if delay == decisionDelay {
		s.platform.After(createdDelay, func() {
			if t.Status == "CREATED" {
				t.Status = "PENDING"
			}
		})
	}
	s.platform.After(delay, func() { s.platform.Send(t, s.decide(t)) })
	return response
}

func (s *Stub) decide(t *operatorstub.Transaction) []operatorstub.Callback {
	if t.Outcome.Result == operatorstub.Undecided {
		t.Status = "PENDING"
	}
	callbacks := s.platform.Decide(t, func(r operatorstub.Result) operatorstub.Callback {
		view := s.view(t, r)
		if !s.platform.Quirk("callback_without_reference") {
			view["referenceId"] = t.Key
		}
		method := http.MethodPost
		if s.platform.Quirk("callback_put") {
			method = http.MethodPut
		}
		return operatorstub.Callback{Method: method, URL: t.CallbackURL, Body: operatorstub.JSON(0, view).Body}
	})
	return callbacks
}

func (s *Stub) status(c *operatorstub.Call) operatorstub.Response {
	if refused, ok := s.authorize(c.Request); ok {
		return refused
	}
	t := s.platform.Find(pay, c.Key)
	switch {
	case !operatorstub.IsUUIDv4(c.Key):
		return operatorstub.Response{Status: http.StatusBadRequest}
	case environments[c.Request.Header.Get("X-Target-Environment")].currency == "":
		return refusal("NOT_ALLOWED_TARGET_ENVIRONMENT")
	case t == nil || t.Details["hidden"] != "" ||
		t.Details["environment"] != c.Request.Header.Get("X-Target-Environment"):
		return codeError(http.StatusNotFound, "RESOURCE_NOT_FOUND")
	}
	return operatorstub.JSON(http.StatusOK, s.view(t, t.Result))
}

// view is the body of a lookup or a callback of a payment with this result.
func (s *Stub) view(t *operatorstub.Transaction, result operatorstub.Result) map[string]any {
	amount := t.Amount
	if strings.Contains(amount, ".") {
		amount = strings.TrimSuffix(strings.TrimRight(amount, "0"), ".")
	}
	view := map[string]any{
		"amount": amount, "currency": t.Currency, "externalId": t.OrderID, "payer": party{"MSISDN", t.MSISDN},
		"payerMessage": t.Details["payerMessage"], "payeeNote": t.Details["payeeNote"], "status": t.Status,
	}
	if s.platform.Quirk("amount_number") {
		view["amount"] = json.Number(amount)
	}
	switch result {
	case operatorstub.Undecided:
	case operatorstub.Paid:
		view["status"], view["financialTransactionId"] = "SUCCESSFUL", t.Reference
	default:
		reason := reasons[result]
		if reason == "" {
			reason = string(result)
		}
		view["status"], view["reason"] = "FAILED", reason
		if s.platform.Quirk("reason_object") {
			view["reason"] = map[string]string{"code": reason, "message": strings.ToLower(reason)}
		}
	}
	return view
}
