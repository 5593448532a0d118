// Package pawapay is a stub of pawaPay's Merchant API, version 2: the deposit, its lookup and its callback. Package
// operatorstub describes the control paths and the steering by number.
//
// A deposit is ACCEPTED, one second later PROCESSING, and after two seconds COMPLETED or FAILED. The callback goes to
// the one address of the account. It is sent again until it gets a status from 200 to 299.
//
// Quirks:
//
//	amount_decimals     amounts come back with two decimals, as in "500.00"
//	in_reconciliation   a deposit is IN_RECONCILIATION for 30 seconds before its final status
//
// pawaPay documents the request, the statuses, the failure codes with their HTTP statuses, and DUPLICATE_IGNORED. These
// choices are inferred, or come from client code:
//
//	lookup                             {"status":"FOUND","data"} or {"status":"NOT_FOUND"} (client code)
//	body of a callback                 the deposit, as in data; documented for other operations
//	body of 400, 401 and 403           depositId, status REJECTED, failureReason (client code)
//	metadata in the lookup             one object with all fields (client code)
//	order of checks                    token, body, depositId, repeat, provider, currency, amount, number
//	a repeat with another body         DUPLICATE_IGNORED, nothing is compared
//	a rejected deposit                 is not stored: the lookup is NOT_FOUND, and the depositId is free again
//	decimals                           XOF and XAF have none, CDF and USD have two
//	retries of callbacks               after 1, 4 and 10 minutes (documented as about 15 minutes in client notes)
//	signatures of callbacks            none: they are an option of the account
//	ORANGE_BFA                         needs preAuthorisationCode; any text is right
//	503 and 429                        without a JSON body
//	test numbers beyond Burkina Faso   Cameroon's, from client code
package pawapay

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/internal/operatorstub"
)

const (
	processingDelay    = time.Second     // ACCEPTED to PROCESSING
	decisionDelay      = 2 * time.Second // the request to the final status
	reconciliationTime = 30 * time.Second
	deposit            = "deposit"
)

// Credentials are those that the stub accepts, and the settings of the account.
type Credentials struct {
	APIToken string
	// CallbackURL is the account's address of deposit callbacks; "" sends none.
	CallbackURL string
}

// DefaultCredentials are for the local run.
func DefaultCredentials() Credentials {
	return Credentials{APIToken: "stub-pawapay-token"} //nolint:gosec // the stub's own, and no real account has it
}

// provider is a wallet.
type provider struct {
	country    string // ISO 3166-1 alpha-3
	prefix     string // of its numbers
	currencies []string
	preAuth    bool
}

var providers = map[string]provider{
	"MTN_MOMO_CIV":      {"CIV", "225", []string{"XOF"}, false},
	"ORANGE_CIV":        {"CIV", "225", []string{"XOF"}, false},
	"MOOV_CIV":          {"CIV", "225", []string{"XOF"}, false},
	"MTN_MOMO_CMR":      {"CMR", "237", []string{"XAF"}, false},
	"ORANGE_CMR":        {"CMR", "237", []string{"XAF"}, false},
	"VODACOM_MPESA_COD": {"COD", "243", []string{"CDF", "USD"}, false},
	"AIRTEL_COD":        {"COD", "243", []string{"CDF", "USD"}, false},
	"ORANGE_COD":        {"COD", "243", []string{"CDF", "USD"}, false},
	"ORANGE_SEN":        {"SEN", "221", []string{"XOF"}, false},
	"FREE_SEN":          {"SEN", "221", []string{"XOF"}, false},
	"MOOV_BFA":          {"BFA", "226", []string{"XOF"}, false},
	"ORANGE_BFA":        {"BFA", "226", []string{"XOF"}, true},
}

var withoutDecimals = map[string]bool{"XOF": true, "XAF": true}

// failureCodes are the codes of the failures that all stubs know.
var failureCodes = map[operatorstub.Result]string{
	operatorstub.Refused: "PAYMENT_NOT_APPROVED", operatorstub.NoFunds: "INSUFFICIENT_BALANCE",
}

// numbers are pawaPay's test numbers. A stuck deposit stays PROCESSING.
var numbers = map[string]operatorstub.Outcome{
	"22602345048":  {Result: operatorstub.NoFunds},
	"22602345068":  {Result: "UNSPECIFIED_FAILURE"},
	"22602345138":  {Result: operatorstub.Undecided},
	"22602345678":  {Result: operatorstub.Paid},
	"22607345128":  {Result: operatorstub.Undecided},
	"22607345148":  {Result: operatorstub.Refused},
	"22607345678":  {Result: operatorstub.Paid},
	"237653456029": {Result: "PAYER_NOT_FOUND"},
	"237653456039": {Result: operatorstub.Refused},
	"237653456049": {Result: operatorstub.NoFunds},
	"237653456069": {Result: "UNSPECIFIED_FAILURE"},
	"237653456129": {Result: operatorstub.Undecided},
	"237653456789": {Result: operatorstub.Paid},
}

// rejections are the HTTP statuses of the failure codes of a request.
var rejections = map[string]int{
	"NO_AUTHENTICATION":                http.StatusUnauthorized,
	"AUTHENTICATION_ERROR":             http.StatusForbidden,
	"AUTHORISATION_ERROR":              http.StatusForbidden,
	"INVALID_INPUT":                    http.StatusBadRequest,
	"MISSING_PARAMETER":                http.StatusBadRequest,
	"UNSUPPORTED_PARAMETER":            http.StatusBadRequest,
	"INVALID_PARAMETER":                http.StatusBadRequest,
	"INVALID_AMOUNT":                   http.StatusOK,
	"AMOUNT_OUT_OF_BOUNDS":             http.StatusOK,
	"INVALID_CURRENCY":                 http.StatusOK,
	"INVALID_PROVIDER":                 http.StatusOK,
	"INVALID_PHONE_NUMBER":             http.StatusOK,
	"PROVIDER_TEMPORARILY_UNAVAILABLE": http.StatusOK,
	"UNKNOWN_ERROR":                    http.StatusInternalServerError,
}

// Stub is one pawaPay account.
type Stub struct {
	platform    *operatorstub.Platform
	credentials Credentials
}

// New makes a stub.
func New(config operatorstub.Config, credentials Credentials) *Stub {
	faults := map[string]operatorstub.Response{
		"400": reject("", "INVALID_INPUT"), "401": reject("", "NO_AUTHENTICATION"),
		"403": reject("", "AUTHENTICATION_ERROR"), "500": reject("", "UNKNOWN_ERROR"),
	}
	for code := range rejections {
		faults[code] = reject("", code)
	}
	return &Stub{credentials: credentials, platform: operatorstub.New(config, operatorstub.Spec{
		Operator: "pawapay", Faults: faults, Numbers: numbers,
		Quirks: []string{"amount_decimals", "in_reconciliation"},
	})}
}

// Handler serves the stub from the root.
func (s *Stub) Handler() http.Handler {
	return s.platform.Handler(
		operatorstub.Operation{Pattern: "POST /v2/deposits", Name: deposit, Identify: identify, Serve: s.deposit},
		operatorstub.Operation{Pattern: "GET /v2/deposits/{id}", Name: "status",
			Identify: func(r *http.Request, _ []byte) operatorstub.Keys {
				return operatorstub.Keys{Key: r.PathValue("id")}
			}, Serve: s.status},
	)
}

type failure struct {
	Code    string `json:"failureCode"`
	Message string `json:"failureMessage"`
}

func failureOf(code string) *failure {
	return &failure{code, strings.ToLower(strings.ReplaceAll(code, "_", " "))}
}

// reject is the response to a request that is not accepted.
func reject(id, code string) operatorstub.Response {
	body := map[string]any{"status": "REJECTED", "failureReason": failureOf(code)}
	if id != "" {
		body["depositId"] = id
	}
	return operatorstub.JSON(rejections[code], body)
}

type account struct {
	PhoneNumber string `json:"phoneNumber"`
	Provider    string `json:"provider"`
}

type payer struct {
	Type           string  `json:"type"`
	AccountDetails account `json:"accountDetails"`
}

type request struct {
	DepositID            string           `json:"depositId"`
	Payer                payer            `json:"payer"`
	Amount               string           `json:"amount"`
	Currency             string           `json:"currency"`
	PreAuthorisationCode string           `json:"preAuthorisationCode"`
	ClientReferenceID    string           `json:"clientReferenceId"`
	CustomerMessage      string           `json:"customerMessage"`
	Metadata             []map[string]any `json:"metadata"`
}

func identify(_ *http.Request, body []byte) operatorstub.Keys {
	var r request
	_ = json.Unmarshal(body, &r) // deposit rejects it
	return operatorstub.Keys{Key: r.DepositID, OrderID: r.ClientReferenceID, MSISDN: r.Payer.AccountDetails.PhoneNumber}
}

// authenticationFailure returns the failure code of a call without the token, or "".
func (s *Stub) authenticationFailure(r *http.Request) string {
	switch r.Header.Get("Authorization") {
	case "Bearer " + s.credentials.APIToken:
		return ""
	case "":
		return "NO_AUTHENTICATION"
	}
	return "AUTHENTICATION_ERROR"
}

func (s *Stub) deposit(c *operatorstub.Call) operatorstub.Response {
	if code := s.authenticationFailure(c.Request); code != "" {
		return reject(c.Key, code)
	}
	var r request
	if json.Unmarshal(c.Body, &r) != nil {
		return reject("", "INVALID_INPUT")
	}
	if code := r.malformed(); code != "" {
		return reject(r.DepositID, code)
	}
	if known := s.platform.Find(deposit, r.DepositID); known != nil {
		return accepted(known, "DUPLICATE_IGNORED")
	}
	if code := r.impossible(); code != "" {
		return reject(r.DepositID, code)
	}
	return s.accept(r)
}

// malformed returns the failure code of a request that breaks the schema, or "".
func (r request) malformed() string {
	message := len(r.CustomerMessage)
	switch {
	case r.DepositID == "" || r.Amount == "" || r.Currency == "" || r.Payer.AccountDetails == account{}:
		return "MISSING_PARAMETER"
	case providers[r.Payer.AccountDetails.Provider].preAuth && r.PreAuthorisationCode == "":
		return "MISSING_PARAMETER"
	case !operatorstub.IsUUIDv4(r.DepositID) || r.Payer.Type != "MMO":
		return "INVALID_PARAMETER"
	case message > 0 && (message < 4 || message > 22):
		return "INVALID_PARAMETER"
	}
	return ""
}

// impossible returns the failure code of a well-formed request that the wallet cannot serve, or "".
func (r request) impossible() string {
	p, ok := providers[r.Payer.AccountDetails.Provider]
	number := r.Payer.AccountDetails.PhoneNumber
	switch {
	case !ok:
		return "INVALID_PROVIDER"
	case !slices.Contains(p.currencies, r.Currency):
		return "INVALID_CURRENCY"
	case !operatorstub.IsAmount(r.Amount) || withoutDecimals[r.Currency] && strings.Contains(r.Amount, "."):
		return "INVALID_AMOUNT"
	case !strings.HasPrefix(number, p.prefix) || strings.Trim(number, "0123456789") != "":
		return "INVALID_PHONE_NUMBER"
	}
	return ""
}

func accepted(t *operatorstub.Transaction, status string) operatorstub.Response {
	return operatorstub.JSON(http.StatusOK, map[string]any{
		"depositId": t.Key, "status": status, "created": t.CreatedAt.Format(time.RFC3339),
	})
}

// accept stores a deposit and sets the timers of its life.
func (s *Stub) accept(r request) operatorstub.Response {
	metadata := map[string]any{}
	for _, fields := range r.Metadata {
		maps.Copy(metadata, fields)
	}
	t := s.platform.Add(&operatorstub.Transaction{
		Operation: deposit, Key: r.DepositID, OrderID: r.ClientReferenceID, Amount: r.Amount, Currency: r.Currency,
		MSISDN: r.Payer.AccountDetails.PhoneNumber, CallbackURL: s.credentials.CallbackURL, Status: "ACCEPTED",
		Outcome: s.platform.OutcomeFor(r.Payer.AccountDetails.PhoneNumber), Reference: s.platform.NewDigits(12),
		Details: map[string]string{"provider": r.Payer.AccountDetails.Provider, "message": r.CustomerMessage,
			"metadata": string(operatorstub.JSON(0, metadata).Body)},
	})
	response := accepted(t, "ACCEPTED")
	if t.Outcome.CallbackFirst {
		response.First = s.decide(t)
		return response
	}
	s.platform.After(processingDelay, func() { t.Status = "PROCESSING" })
	delay := decisionDelay
	if s.platform.Quirk("in_reconciliation") {
		s.platform.After(decisionDelay, func() { t.Status = "IN_RECONCILIATION" })
		delay += reconciliationTime
	}
	s.platform.After(delay, func() { s.platform.Send(t, s.decide(t)) })
	return response
}

func (s *Stub) decide(t *operatorstub.Transaction) []operatorstub.Callback {
	return s.platform.Decide(t, func(r operatorstub.Result) operatorstub.Callback {
		return operatorstub.Callback{Method: http.MethodPost, URL: t.CallbackURL,
			Body:    operatorstub.JSON(0, s.view(t, r)).Body,
			Retries: []time.Duration{time.Minute, 4 * time.Minute, 10 * time.Minute}}
	})
}

func (s *Stub) status(c *operatorstub.Call) operatorstub.Response {
	if code := s.authenticationFailure(c.Request); code != "" {
		return operatorstub.JSON(rejections[code], map[string]any{"failureReason": failureOf(code)})
	}
	t := s.platform.Find(deposit, c.Key)
	if t == nil {
		return operatorstub.JSON(http.StatusOK, map[string]string{"status": "NOT_FOUND"})
	}
	return operatorstub.JSON(http.StatusOK, map[string]any{"status": "FOUND", "data": s.view(t, t.Result)})
}

// view is a deposit with this result, in a lookup or a callback.
func (s *Stub) view(t *operatorstub.Transaction, result operatorstub.Result) map[string]any {
	name := t.Details["provider"]
	view := map[string]any{
		"depositId": t.Key, "status": t.Status, "amount": t.Amount, "currency": t.Currency,
		"country": providers[name].country, "payer": payer{"MMO", account{t.MSISDN, name}},
		"created": t.CreatedAt.Format(time.RFC3339), "metadata": json.RawMessage(t.Details["metadata"]),
	}
	if s.platform.Quirk("amount_decimals") {
		whole, fraction, _ := strings.Cut(t.Amount, ".")
		view["amount"] = whole + "." + (fraction + "00")[:max(2, len(fraction))]
	}
	optional := map[string]string{"clientReferenceId": t.OrderID, "customerMessage": t.Details["message"]}
	for field, value := range optional {
		if value != "" {
			view[field] = value
		}
	}
	switch result {
	case operatorstub.Undecided:
	case operatorstub.Paid:
		view["status"], view["providerTransactionId"] = "COMPLETED", t.Reference
	default:
		code := failureCodes[result]
		if code == "" {
			code = string(result)
		}
		view["status"], view["failureReason"] = "FAILED", failureOf(code)
	}
	return view
}
