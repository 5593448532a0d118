// Package pawapay is a stub of pawaPay's Merchant API, version 2: the deposit, its lookup and its callback. Package
// kit describes the control paths and the steering by number.
//
// A deposit is ACCEPTED, one second later PROCESSING, and after two seconds COMPLETED or FAILED. The callback goes to
// the one address of the account. It is sent again until it gets a status from 200 to 299.
//
// docs/operators/stubs.md lists the choices that no document states.
package pawapay

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
)

const (
	processingDelay    = time.Second     // ACCEPTED to PROCESSING
	decisionDelay      = 2 * time.Second // the request to the final status
	reconciliationTime = 30 * time.Second
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
	shortCode  string // what a payer with a manual prompt dials
}

var providers = map[string]provider{
	"MTN_MOMO_CIV":      {"CIV", "225", []string{"XOF"}, false, "*133#"},
	"ORANGE_CIV":        {"CIV", "225", []string{"XOF"}, false, "#120#"},
	"MTN_MOMO_CMR":      {"CMR", "237", []string{"XAF"}, false, ""},
	"ORANGE_CMR":        {"CMR", "237", []string{"XAF"}, false, ""},
	"VODACOM_MPESA_COD": {"COD", "243", []string{"CDF", "USD"}, false, ""},
	"AIRTEL_COD":        {"COD", "243", []string{"CDF", "USD"}, false, ""},
	"ORANGE_COD":        {"COD", "243", []string{"CDF", "USD"}, false, ""},
	"ORANGE_SEN":        {"SEN", "221", []string{"XOF"}, false, "#144#"},
	"FREE_SEN":          {"SEN", "221", []string{"XOF"}, false, "#150#"},
	"MOOV_BFA":          {"BFA", "226", []string{"XOF"}, false, "*555*6#"},
	"ORANGE_BFA":        {"BFA", "226", []string{"XOF"}, true, ""},
}

var withoutDecimals = map[string]bool{"XOF": true, "XAF": true}

// amountForm has at most two decimals, and no zero in front or as the last decimal.
var amountForm = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]?[1-9])?$`)

// failureCodes are the codes of the failures that all stubs know.
var failureCodes = map[kit.Result]string{kit.Refused: "PAYMENT_NOT_APPROVED", kit.NoFunds: "INSUFFICIENT_BALANCE"}

// numbers are pawaPay's test numbers. A stuck deposit stays PROCESSING.
var numbers = map[string]kit.Outcome{
	"22602345048":  {Result: kit.NoFunds},
	"22602345068":  {Result: "UNSPECIFIED_FAILURE"},
	"22602345138":  {Result: kit.Undecided},
	"22602345678":  {Result: kit.Paid},
	"22607345128":  {Result: kit.Undecided},
	"22607345148":  {Result: kit.Refused},
	"22607345678":  {Result: kit.Paid},
	"237653456029": {Result: "PAYER_NOT_FOUND"},
	"237653456039": {Result: kit.Refused},
	"237653456049": {Result: kit.NoFunds},
	"237653456069": {Result: "UNSPECIFIED_FAILURE"},
	"237653456129": {Result: kit.Undecided},
	"237653456789": {Result: kit.Paid},
}

type stub struct {
	*kit.Platform
	Credentials
}

// New makes a stub of one pawaPay account.
func New(config kit.Config, credentials Credentials) *kit.Platform {
	s := &stub{Credentials: credentials}
	s.Platform = kit.New(config, kit.Spec{
		Operator: "pawapay", Numbers: numbers, NamesKey: true, Down: "PROVIDER_TEMPORARILY_UNAVAILABLE",
		Authorize: s.authorize, Callback: s.callback,
		Quirks: []string{
			"amount_decimals",   // amounts come back with two decimals, as in "500.00"
			"in_reconciliation", // a deposit is IN_RECONCILIATION for 30 seconds before its final status
		},
		Operations: []kit.Operation{
			{Pattern: "POST /v2/deposits", Name: "deposit", Key: "depositId", OrderID: "clientReferenceId",
				MSISDN: "payer.accountDetails.phoneNumber", Check: s.checkDeposit, Serve: s.deposit},
			{Pattern: "GET /v2/active-conf", Name: "active-conf", Serve: activeConf},
			{Pattern: "GET /v2/deposits/{id}", Name: "status", Key: "path:id", Serve: s.status},
		},
		Errors: slices.Concat(
			kit.Errors(http.StatusUnauthorized, "NO_AUTHENTICATION"),
			kit.Errors(http.StatusForbidden, "AUTHENTICATION_ERROR", "AUTHORISATION_ERROR", "HTTP_SIGNATURE_ERROR",
				"DEPOSITS_NOT_ALLOWED"),
			kit.Errors(http.StatusBadRequest, "INVALID_INPUT", "MISSING_PARAMETER", "UNSUPPORTED_PARAMETER",
				"INVALID_PARAMETER", "DUPLICATE_METADATA_FIELD"),
			kit.Errors(http.StatusOK, "INVALID_AMOUNT", "AMOUNT_OUT_OF_BOUNDS", "INVALID_CURRENCY", "INVALID_PROVIDER",
				"INVALID_PHONE_NUMBER", "PROVIDER_TEMPORARILY_UNAVAILABLE", "PAYMENT_IN_PROGRESS",
				"WALLET_LIMIT_REACHED"),
			kit.Errors(http.StatusInternalServerError, "UNKNOWN_ERROR"),
		),
		ErrorForm: func(e kit.Error, id string) kit.Response {
			body := kit.Fields{"status": "REJECTED", "failureReason": failure(e.Name)}
			if id != "" {
				body["depositId"] = id
			}
			return kit.JSON(e.Status, body)
		},
	})
	return s.Platform
}

func failure(code string) map[string]string {
	message := strings.ToLower(strings.ReplaceAll(code, "_", " "))
	return map[string]string{"failureCode": code, "failureMessage": message}
}

func (s *stub) authorize(c *kit.Call) kit.Response {
	authorization := c.Request.Header.Get("Authorization")
	return kit.FirstOf(
		kit.If(authorization == "", s.Error("NO_AUTHENTICATION", c.Text("depositId"))),
		kit.If(authorization != "Bearer "+s.APIToken, s.Error("AUTHENTICATION_ERROR", c.Text("depositId"))),
	)
}

// checkDeposit refuses a deposit that is not stored. A repeat gets DUPLICATE_IGNORED, and nothing is compared.
func (s *stub) checkDeposit(c *kit.Call) kit.Response {
	name, amount, currency := c.Text("payer.accountDetails.provider"), c.Text("amount"), c.Text("currency")
	p, known := providers[name]
	_, isText := c.Fields["amount"].(string)
	message := len(c.Text("customerMessage"))
	absent := c.Key == "" || amount == "" || currency == "" || c.MSISDN+name == ""
	return kit.FirstOf(
		s.refuse(c, c.Fields == nil || c.Fields["amount"] != nil && !isText, "INVALID_INPUT"),
		s.refuse(c, absent || p.preAuth && c.Text("preAuthorisationCode") == "", "MISSING_PARAMETER"),
		s.refuse(c, !kit.IsUUIDv4(c.Key) || c.Text("payer.type") != "MMO", "INVALID_PARAMETER"),
		s.refuse(c, message > 0 && (message < 4 || message > 22), "INVALID_PARAMETER"),
		accepted(s.Find(c.Key), "DUPLICATE_IGNORED"),
		s.refuse(c, !known, "INVALID_PROVIDER"),
		s.refuse(c, !slices.Contains(p.currencies, currency), "INVALID_CURRENCY"),
		s.refuse(c, !isAmount(amount, currency), "INVALID_AMOUNT"),
		s.refuse(c, !strings.HasPrefix(c.MSISDN, p.prefix) || !kit.IsDigits(c.MSISDN), "INVALID_PHONE_NUMBER"),
	)
}

func isAmount(amount, currency string) bool {
	isWhole := !strings.Contains(amount, ".")
	return amountForm.MatchString(amount) && amount != "0" && (isWhole || !withoutDecimals[currency])
}

func (s *stub) refuse(c *kit.Call, refuses bool, code string) kit.Response {
	return kit.If(refuses, s.Error(code, c.Key))
}

// accepted is the response to a stored deposit, and the zero Response for nil.
func accepted(t *kit.Transaction, status string) kit.Response {
	if t == nil {
		return kit.Response{}
	}
	return kit.JSON(http.StatusOK, map[string]string{
		"depositId": t.Key, "status": status, "created": t.CreatedAt.Format(time.RFC3339),
	})
}

// deposit stores a deposit and sets the timers of its life.
func (s *stub) deposit(c *kit.Call) kit.Response {
	t := s.Add(c, &kit.Transaction{Amount: c.Text("amount"), Currency: c.Text("currency"), CallbackURL: s.CallbackURL,
		Status: "ACCEPTED", Reference: s.NewDigits(12)})
	s.After(processingDelay, func() { t.Status = "PROCESSING" })
	delay := decisionDelay
	if s.Quirk("in_reconciliation") {
		s.After(decisionDelay, func() { t.Status = "IN_RECONCILIATION" })
		delay += reconciliationTime
	}
	return s.DecideAfter(delay, t, accepted(t, "ACCEPTED"))
}

// activeConf serves the configuration of the account: the wallets, their bounds, and how their payers approve.
func activeConf(*kit.Call) kit.Response {
	countries := []kit.Fields{}
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		p, currencies := providers[name], []kit.Fields{}
		deposit := kit.Fields{"authType": "PROVIDER_AUTH", "pinPrompt": "AUTOMATIC", "status": "OPERATIONAL",
			"minAmount": "1", "maxAmount": "2000000"}
		switch {
		case p.preAuth:
			deposit["authType"], deposit["pinPrompt"] = "PREAUTH", nil
		case p.shortCode != "":
			deposit["pinPrompt"] = "MANUAL"
			deposit["pinPromptInstructions"] = kit.Fields{"channels": []kit.Fields{{"type": "USSD",
				"variables": kit.Fields{"shortCode": p.shortCode}}}}
		}
		for _, currency := range p.currencies {
			wallet := maps.Clone(deposit)
			if wallet["decimalsInAmount"] = "TWO_PLACES"; withoutDecimals[currency] {
				wallet["decimalsInAmount"] = "NONE"
			}
			currencies = append(currencies, kit.Fields{"currency": currency,
				"operationTypes": kit.Fields{"DEPOSIT": wallet}})
		}
		countries = append(countries, kit.Fields{"country": p.country, "providers": []kit.Fields{{"provider": name,
			"currencies": currencies}}})
	}
	return kit.JSON(http.StatusOK, kit.Fields{"companyName": "Stub", "countries": countries})
}

func (s *stub) callback(t *kit.Transaction, result kit.Result) kit.Callback {
	view := s.view(t, result)
	delete(view, "clientReferenceId")
	return t.Post(view, time.Minute, 4*time.Minute, 10*time.Minute)
}

func (s *stub) status(c *kit.Call) kit.Response {
	t := s.Find(c.Key)
	if t == nil {
		return kit.JSON(http.StatusOK, map[string]string{"status": "NOT_FOUND"})
	}
	return kit.JSON(http.StatusOK, map[string]any{"status": "FOUND", "data": s.view(t, t.Result)})
}

// view is a deposit with this result, in a lookup or a callback.
func (s *stub) view(t *kit.Transaction, result kit.Result) kit.Fields {
	metadata := kit.Fields{}
	list, _ := t.Sent["metadata"].([]any)
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		maps.Copy(metadata, fields)
	}
	view := kit.Fields{
		"depositId": t.Key, "status": t.Status, "amount": t.Amount, "currency": t.Currency, "payer": t.Sent["payer"],
		"country": providers[t.Sent.Text("payer.accountDetails.provider")].country,
		"created": t.CreatedAt.Format(time.RFC3339), "metadata": metadata,
	}
	if s.Quirk("amount_decimals") {
		whole, fraction, _ := strings.Cut(t.Amount, ".")
		view["amount"] = whole + "." + (fraction + "00")[:max(2, len(fraction))]
	}
	for _, name := range []string{"clientReferenceId", "customerMessage"} {
		if text := t.Sent.Text(name); text != "" {
			view[name] = text
		}
	}
	switch result {
	case kit.Undecided:
	case kit.Paid:
		view["status"], view["providerTransactionId"] = "COMPLETED", t.Reference
	default:
		view["status"] = "FAILED"
		view["failureReason"] = failure(cmp.Or(failureCodes[result], string(result)))
	}
	return view
}
