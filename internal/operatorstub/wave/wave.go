package wave

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/internal/operatorstub"
)

const (
	sessionLife  = 30 * time.Minute
	shortLife    = 3 * time.Second // quirk session_3s
	maxSignedAge = 5 * time.Minute
	maxReference = 255 // characters of client_reference
	webhookDelay = time.Second
	minDigits    = 8 // of a payer's number
	maxDigits    = 15
	timeFormat   = "2006-01-02T15:04:05Z"
	session      = "session"
)

// Wallet is one business wallet. Its API key sees only its own sessions.
type Wallet struct {
	APIKey string
	Name   string // business_name
	// RequestSecret signs requests; "" requires no signature.
	RequestSecret string
	// WebhookURL is the registered address; "" sends nothing. Every one of WebhookSecrets signs.
	WebhookURL     string
	WebhookSecrets []string
}

// Credentials are those that the stub accepts, and the settings of the account.
type Credentials struct {
	Wallets []Wallet
	// PageURL is the public address of the stub with its prefix, without a slash at the end.
	PageURL string
	// LocalURLs accepts success_url and error_url without https, for the local run.
	LocalURLs bool
}

// DefaultCredentials are for the local run, which sets PageURL, LocalURLs and the addresses of the webhooks.
func DefaultCredentials() Credentials {
	var c Credentials
	for _, country := range []string{"sn", "ci", "bf"} {
		c.Wallets = append(c.Wallets, Wallet{
			APIKey: "wave_" + country + "_prod_stub", Name: "Stub shop " + strings.ToUpper(country),
			WebhookSecrets: []string{"wave_" + country + "_WHS_stub"},
		})
	}
	return c
}

type errorCode struct {
	code   string
	status int
}

// errorCodes are the codes with their HTTP statuses. The first code of a status is that of the fault with its name.
var errorCodes = []errorCode{
	{"request-validation-error", http.StatusBadRequest},
	{"no-matching-api-key", http.StatusUnauthorized},
	{"api-key-revoked", http.StatusUnauthorized},
	{"missing-auth-header", http.StatusUnauthorized},
	{"invalid-auth", http.StatusUnauthorized},
	{"api-key-not-provided", http.StatusUnauthorized},
	{"disabled-wallet", http.StatusForbidden},
	{"checkout-session-not-found", http.StatusNotFound},
	{"idempotency-mismatch", http.StatusConflict},
	{"checkout-session-final", http.StatusConflict},
	{"rate-limit-exceeded", http.StatusTooManyRequests},
	{"internal-server-error", http.StatusInternalServerError},
	{"service-unavailable", http.StatusServiceUnavailable},
}

// Stub is one Wave platform.
type Stub struct {
	platform    *operatorstub.Platform
	credentials Credentials
}

// New makes a stub.
func New(config operatorstub.Config, credentials Credentials) *Stub {
	faults := map[string]operatorstub.Response{}
	for _, e := range errorCodes {
		faults[e.code] = operatorstub.JSON(e.status, apiError(e.code))
		if name := strconv.Itoa(e.status); faults[name].Status == 0 {
			faults[name] = faults[e.code]
		}
	}
	return &Stub{credentials: credentials, platform: operatorstub.New(config, operatorstub.Spec{
		Operator: "wave", Faults: faults, Quirks: []string{"nested_error", "shared_secret", "session_3s"},
	})}
}

// Handler serves the stub from the root.
func (s *Stub) Handler() http.Handler {
	const sessions = "/v1/checkout/sessions"
	byID := func(r *http.Request, _ []byte) operatorstub.Keys { return s.keys(r.PathValue("id")) }
	byReference := func(r *http.Request, _ []byte) operatorstub.Keys {
		return operatorstub.Keys{Key: r.URL.Query().Get("client_reference")}
	}
	return s.platform.Handler(
		operatorstub.Operation{Pattern: "POST " + sessions, Name: "create", Identify: identify, Serve: s.create},
		operatorstub.Operation{Pattern: "GET " + sessions + "/search", Name: "search", Identify: byReference,
			Serve: s.search},
		operatorstub.Operation{Pattern: "GET " + sessions + "/{id}", Name: "status", Identify: byID, Serve: s.status},
		operatorstub.Operation{Pattern: "GET " + sessions, Name: "find", Identify: byReference, Serve: s.status},
		operatorstub.Operation{Pattern: "POST " + sessions + "/{id}/expire", Name: "expire", Identify: byID,
			Serve: s.expire},
		operatorstub.Operation{Pattern: "GET /c/{id}", Name: "page", Identify: byID, Serve: s.page},
		operatorstub.Operation{Pattern: "POST /c/{id}", Name: "confirm", Identify: s.identifyPayer, Serve: s.confirm},
		operatorstub.Operation{Pattern: "POST /portal/test-event", Name: "test_event", Identify: byReference,
			Serve: s.sendTestEvent},
	)
}

func apiError(code string) map[string]string {
	return map[string]string{"code": code, "message": strings.ReplaceAll(code, "-", " ")}
}

func (s *Stub) refuse(code string) operatorstub.Response {
	i := slices.IndexFunc(errorCodes, func(e errorCode) bool { return e.code == code })
	if s.platform.Quirk("nested_error") {
		return operatorstub.JSON(errorCodes[i].status, map[string]any{"error": apiError(code)})
	}
	return operatorstub.JSON(errorCodes[i].status, apiError(code))
}

// authorize returns the wallet of a call, or the code of its refusal.
func (s *Stub) authorize(c *operatorstub.Call) (Wallet, string) {
	header := c.Request.Header.Get("Authorization")
	key, isBearer := strings.CutPrefix(header+" ", "Bearer ")
	key = strings.TrimSpace(key)
	switch {
	case header == "":
		return Wallet{}, "missing-auth-header"
	case !isBearer:
		return Wallet{}, "invalid-auth"
	case key == "":
		return Wallet{}, "api-key-not-provided"
	}
	for _, w := range s.credentials.Wallets {
		if w.APIKey != key {
			continue
		}
		if w.RequestSecret != "" && !s.signed(w.RequestSecret, c) {
			return Wallet{}, "invalid-auth"
		}
		return w, ""
	}
	return Wallet{}, "no-matching-api-key"
}

// signed reports whether the request has a fresh signature of its time and raw body.
func (s *Stub) signed(secret string, c *operatorstub.Call) bool {
	stamp, signature, _ := strings.Cut(c.Request.Header.Get("Wave-Signature"), ",v1=")
	stamp, _ = strings.CutPrefix(stamp, "t=")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	return err == nil && s.platform.Now().Sub(time.Unix(seconds, 0)).Abs() <= maxSignedAge &&
		hmac.Equal([]byte(signature), []byte(sign(secret, stamp, c.Body)))
}

// sign returns the HMAC-SHA256 over the time directly followed by the body, in hexadecimal digits.
func sign(secret, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

type request struct {
	Amount     string  `json:"amount"`
	Currency   string  `json:"currency"`
	SuccessURL string  `json:"success_url"`
	ErrorURL   string  `json:"error_url"`
	Reference  string  `json:"client_reference"`
	Payer      string  `json:"restrict_payer_mobile"`
	Aggregated *string `json:"aggregated_merchant_id"`
}

func identify(_ *http.Request, body []byte) operatorstub.Keys {
	var r request
	_ = json.Unmarshal(body, &r) // create refuses it
	return operatorstub.Keys{Key: r.Reference, MSISDN: digits(r.Payer)}
}

// digits returns the digits of a number that a person typed, or "".
func digits(number string) string {
	number = strings.TrimPrefix(strings.ReplaceAll(number, " ", ""), "+")
	if len(number) < minDigits || len(number) > maxDigits || strings.Trim(number, "0123456789") != "" {
		return ""
	}
	return number
}

func (s *Stub) valid(r request) bool {
	isURL := func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && u.Host != "" && (u.Scheme == "https" || s.credentials.LocalURLs && u.Scheme == "http")
	}
	return operatorstub.IsAmount(r.Amount) && !strings.Contains(r.Amount, ".") && r.Amount[0] != '0' &&
		r.Currency == "XOF" && isURL(r.SuccessURL) && isURL(r.ErrorURL) && len([]rune(r.Reference)) <= maxReference &&
		(r.Payer == "" || r.Payer == "+"+digits(r.Payer))
}

func (s *Stub) create(c *operatorstub.Call) operatorstub.Response {
	wallet, code := s.authorize(c)
	if code != "" {
		return s.refuse(code)
	}
	var r request
	decoder := json.NewDecoder(bytes.NewReader(c.Body))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&r) != nil || !s.valid(r) {
		return s.refuse("request-validation-error")
	}
	life := sessionLife
	if s.platform.Quirk("session_3s") {
		life = shortLife
	}
	id := "cos-" + s.platform.NewID(7)
	t := s.platform.Add(&operatorstub.Transaction{
		Operation: session, Key: r.Reference, Amount: r.Amount, Currency: r.Currency, CallbackURL: wallet.WebhookURL,
		Status: "open", Reference: id, EndsAt: s.platform.Now().Add(life),
		Details: map[string]string{
			"wallet": wallet.APIKey, "client_reference": r.Reference, "payer": r.Payer, "payment_status": "processing",
			"success_url": r.SuccessURL, "error_url": r.ErrorURL, "business_name": wallet.Name,
			"query": url.Values{"a": {r.Amount}, "c": {r.Currency}, "m": {wallet.Name}}.Encode(),
		},
	})
	if t.Key == "" {
		t.Key = id
	}
	if r.Aggregated != nil {
		t.Details["aggregated_merchant_id"] = *r.Aggregated
	}
	t.Details["when_expires"] = t.EndsAt.Format(timeFormat)
	return operatorstub.JSON(http.StatusOK, s.view(t))
}

// sessions returns the sessions that fit. It expires those whose time is over.
func (s *Stub) sessions(fits func(t *operatorstub.Transaction) bool) []*operatorstub.Transaction {
	found := s.platform.All(fits)
	for _, t := range found {
		if t.Status == "open" && !s.platform.Now().Before(t.EndsAt) {
			t.Status, t.Details["when_completed"] = "expired", t.Details["when_expires"]
		}
	}
	return found
}

func (s *Stub) find(id string) *operatorstub.Transaction {
	found := s.sessions(func(t *operatorstub.Transaction) bool { return t.Reference == id })
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

func (s *Stub) keys(id string) operatorstub.Keys {
	if t := s.find(id); t != nil {
		return operatorstub.Keys{Key: t.Key}
	}
	return operatorstub.Keys{Key: id}
}

func (s *Stub) search(c *operatorstub.Call) operatorstub.Response {
	wallet, code := s.authorize(c)
	reference := c.Request.URL.Query().Get("client_reference")
	switch {
	case code != "":
		return s.refuse(code)
	case reference == "":
		return s.refuse("request-validation-error")
	}
	views := []map[string]any{}
	for _, t := range s.sessions(func(t *operatorstub.Transaction) bool {
		return t.Details["wallet"] == wallet.APIKey && t.Details["client_reference"] == reference
	}) {
		views = append(views, s.view(t))
	}
	return operatorstub.JSON(http.StatusOK, map[string]any{"result": views})
}

// status serves a session by its id, or by ?transaction_id=.
func (s *Stub) status(c *operatorstub.Call) operatorstub.Response {
	wallet, code := s.authorize(c)
	if code != "" {
		return s.refuse(code)
	}
	id, transaction := c.Request.PathValue("id"), c.Request.URL.Query().Get("transaction_id")
	if id == "" && transaction == "" {
		return s.refuse("request-validation-error")
	}
	found := s.sessions(func(t *operatorstub.Transaction) bool {
		return t.Details["wallet"] == wallet.APIKey &&
			(id != "" && t.Reference == id || id == "" && t.Details["transaction_id"] == transaction)
	})
	if len(found) == 0 {
		return s.refuse("checkout-session-not-found")
	}
	return operatorstub.JSON(http.StatusOK, s.view(found[0]))
}

func (s *Stub) expire(c *operatorstub.Call) operatorstub.Response {
	wallet, code := s.authorize(c)
	t := s.find(c.Request.PathValue("id"))
	switch {
	case code != "":
		return s.refuse(code)
	case t == nil || t.Details["wallet"] != wallet.APIKey:
		return s.refuse("checkout-session-not-found")
	case t.Status != "open":
		return s.refuse("checkout-session-final")
	}
	s.close(t, "expired", "processing")
	return operatorstub.Response{Status: http.StatusOK}
}

// close ends an open session.
func (s *Stub) close(t *operatorstub.Transaction, status, paymentStatus string) {
	t.Status, t.Details["payment_status"] = status, paymentStatus
	t.Details["when_completed"] = s.platform.Now().Format(timeFormat)
}

// view is a session as the API and the webhooks show it.
func (s *Stub) view(t *operatorstub.Transaction) map[string]any {
	view := map[string]any{
		"id": t.Reference, "amount": t.Amount, "currency": t.Currency, "checkout_status": t.Status,
		"last_payment_error": nil, "when_created": t.CreatedAt.Format(timeFormat),
		"wave_launch_url": fmt.Sprintf("%s/c/%s?%s", s.credentials.PageURL, t.Reference, t.Details["query"]),
	}
	for _, name := range []string{"success_url", "error_url", "business_name", "payment_status", "client_reference",
		"transaction_id", "aggregated_merchant_id", "when_expires", "when_completed"} {
		view[name] = nil
		if text := t.Details[name]; text != "" {
			view[name] = text
		}
	}
	if code := t.Details["error"]; code != "" {
		view["last_payment_error"] = apiError(code)
	}
	if payer := t.Details["payer"]; payer != "" {
		view["restrict_payer_mobile"] = payer
	}
	return view
}
