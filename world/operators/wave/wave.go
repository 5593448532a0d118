// Package wave is a stub of Wave's Checkout API for businesses: sessions, search, the page where the payer pays, and
// signed webhooks. Package kit describes the control paths and the steering by number.
//
// Each wallet has one country, one API key and one webhook. A session is open for 30 minutes. Two requests make two
// sessions, also with one client_reference, and each can be paid: then the effects list two payments. The key of an
// effect is the client_reference, or the session's id without one.
//
// The payer opens wave_launch_url, types a number, and confirms, cancels or closes. The number selects the outcome.
// 1001 and 1002 have the webhook payment_failed and leave the session open for another try. 1003 stays in progress
// until the session expires. 1007 completes, and has a late payment_failed. The faults are those of the page.
//
// With restrict_payer_mobile that number also selects the fault of the request. An Idempotency-Key has no effect. There
// are no test numbers, no tokens and no refunds.
//
// POST /portal/test-event sends test.test_event to all webhooks, as the button of Wave's portal does.
//
// docs/operators/stubs.md lists the choices that no document states.
package wave

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
)

const (
	sessionLife  = 30 * time.Minute
	maxSignedAge = 5 * time.Minute
	maxReference = 255             // characters of client_reference
	lateSearch   = 5 * time.Second // quirk search_late
	webhookDelay = time.Second
	timeFormat   = "2006-01-02T15:04:05Z"
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

type stub struct {
	*kit.Platform
	Credentials
}

// New makes a stub of one Wave platform.
func New(config kit.Config, credentials Credentials) *kit.Platform {
	const sessions = "/v1/checkout/sessions"
	s := &stub{Credentials: credentials}
	s.Platform = kit.New(config, kit.Spec{
		Operator: "wave", Authorize: s.authorize, ErrorForm: s.errorForm, Callback: s.event,
		Operations: []kit.Operation{
			{Pattern: "POST " + sessions, Name: "create", Key: "client_reference", MSISDN: "restrict_payer_mobile",
				Check: s.checkCreate, Serve: s.create},
			{Pattern: "GET " + sessions + "/search", Name: "search", Key: "query:client_reference", Serve: s.search},
			{Pattern: "GET " + sessions + "/{id}", Name: "status", Key: "page:id", Check: s.checkSession,
				Serve: s.status},
			{Pattern: "GET " + sessions, Name: "find", Check: s.checkSession, Serve: s.status},
			{Pattern: "POST " + sessions + "/{id}/expire", Name: "expire", Key: "page:id", Check: s.checkSession,
				Serve: s.expire},
			{Pattern: "POST /portal/test-event", Name: "test_event", Open: true, Serve: s.sendTestEvent},
		},
		// The first code of a status is that of the fault with its name.
		Errors: slices.Concat(
			kit.Errors(http.StatusBadRequest, "request-validation-error"),
			kit.Errors(http.StatusUnauthorized, "no-matching-api-key", "api-key-revoked", "missing-auth-header",
				"invalid-auth", "api-key-not-provided"),
			kit.Errors(http.StatusForbidden, "disabled-wallet"),
			kit.Errors(http.StatusNotFound, "checkout-session-not-found"),
			kit.Errors(http.StatusConflict, "idempotency-mismatch", "checkout-session-final"),
			kit.Errors(http.StatusTooManyRequests, "rate-limit-exceeded"),
			kit.Errors(http.StatusInternalServerError, "internal-server-error"),
			kit.Errors(http.StatusServiceUnavailable, "service-unavailable"),
		),
		Hosted: &kit.Hosted{
			Path: "/c/{id}", Life: sessionLife, Short: "session_3s", Open: "open", Expired: "expired", Page: page,
			Cancel: s.cancel, Confirm: s.confirm,
		},
		Quirks: []string{
			"nested_error",  // errors are {"error":{"code","message"}}
			"shared_secret", // webhooks show Authorization: Bearer with the first secret instead of a signature
			"search_late",   // the search finds a session after 5 seconds: until then an empty list means "not yet"
		},
	})
	return s.Platform
}

func apiError(code string) map[string]string {
	return map[string]string{"code": code, "message": strings.ReplaceAll(code, "-", " ")}
}

func (s *stub) errorForm(e kit.Error, _ string) kit.Response {
	if s.Quirk("nested_error") {
		return kit.JSON(e.Status, map[string]any{"error": apiError(e.Name)})
	}
	return kit.JSON(e.Status, apiError(e.Name))
}

// wallet returns the wallet with this key, or nil.
func (s *stub) wallet(key string) *Wallet {
	for _, w := range s.Wallets {
		if w.APIKey == key {
			return &w
		}
	}
	return nil
}

func keyOf(c *kit.Call) string {
	return strings.TrimSpace(strings.TrimPrefix(c.Request.Header.Get("Authorization"), "Bearer"))
}

func (s *stub) authorize(c *kit.Call) kit.Response {
	header := c.Request.Header.Get("Authorization")
	w := s.wallet(keyOf(c))
	return kit.FirstOf(
		kit.If(header == "", s.Error("missing-auth-header", "")),
		kit.If(!strings.HasPrefix(header+" ", "Bearer "), s.Error("invalid-auth", "")),
		kit.If(keyOf(c) == "", s.Error("api-key-not-provided", "")),
		kit.If(w == nil, s.Error("no-matching-api-key", "")),
		kit.If(w != nil && w.RequestSecret != "" && !s.signed(w.RequestSecret, c), s.Error("invalid-auth", "")),
	)
}

// signed reports whether the request has a fresh signature of its time and raw body.
func (s *stub) signed(secret string, c *kit.Call) bool {
	stamp, signature, _ := strings.Cut(c.Request.Header.Get("Wave-Signature"), ",v1=")
	stamp, _ = strings.CutPrefix(stamp, "t=")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	return err == nil && s.Now().Sub(time.Unix(seconds, 0)).Abs() <= maxSignedAge &&
		hmac.Equal([]byte(signature), []byte(sign(secret, stamp, c.Body)))
}

// sign returns the HMAC-SHA256 over the time directly followed by the body, in hexadecimal digits.
func sign(secret, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// fields are those of a request. All are texts.
var fields = []string{"amount", "currency", "success_url", "error_url", "client_reference", "restrict_payer_mobile",
	"aggregated_merchant_id"}

// checkCreate refuses unknown fields, values of another type and wrong values.
func (s *stub) checkCreate(c *kit.Call) kit.Response {
	known := true
	for name, value := range c.Fields {
		_, isText := value.(string)
		known = known && slices.Contains(fields, name) && (value == nil || isText)
	}
	isURL := func(name string) bool {
		u, err := url.Parse(c.Text(name))
		return err == nil && u.Host != "" && (u.Scheme == "https" || s.LocalURLs && u.Scheme == "http")
	}
	payer := c.Text("restrict_payer_mobile")
	valid := known && kit.IsWholeAmount(c.Text("amount")) && c.Text("currency") == "XOF" && isURL("success_url") &&
		isURL("error_url") && len([]rune(c.Key)) <= maxReference &&
		(payer == "" || payer == "+"+kit.ReadDigits(payer, 8, 15))
	return kit.If(!valid, s.Error("request-validation-error", ""))
}

func (s *stub) create(c *kit.Call) kit.Response {
	w := s.wallet(keyOf(c))
	t := s.Add(c, &kit.Transaction{
		Amount: c.Text("amount"), Currency: c.Text("currency"), CallbackURL: w.WebhookURL, Status: "open",
		PageID:    "cos-" + s.NewID(7),
		PageQuery: url.Values{"a": {c.Text("amount")}, "c": {"XOF"}, "m": {w.Name}}.Encode(),
		Details:   map[string]string{"wallet": w.APIKey, "payment_status": "processing", "business_name": w.Name},
	})
	if t.Key == "" {
		t.Key = t.PageID
	}
	t.Details["when_expires"] = t.EndsAt.Format(timeFormat)
	return kit.JSON(http.StatusOK, s.view(t))
}

func (s *stub) search(c *kit.Call) kit.Response {
	if c.Key == "" {
		return s.Error("request-validation-error", "")
	}
	views := []kit.Fields{}
	for _, t := range s.All(func(t *kit.Transaction) bool {
		return t.Details["wallet"] == keyOf(c) && t.Sent.Text("client_reference") == c.Key
	}) {
		if !s.Quirk("search_late") || s.Now().Sub(t.CreatedAt) >= lateSearch {
			views = append(views, s.view(t))
		}
	}
	return kit.JSON(http.StatusOK, map[string]any{"result": views})
}

// session returns the session of the call's wallet by its id, or by ?transaction_id=, or nil.
func (s *stub) session(c *kit.Call) *kit.Transaction {
	id, transaction := c.Request.PathValue("id"), c.Request.URL.Query().Get("transaction_id")
	return s.First(func(t *kit.Transaction) bool {
		isNamed := id != "" && t.PageID == id || id == "" && t.Reference == transaction
		return t.Details["wallet"] == keyOf(c) && isNamed
	})
}

func (s *stub) checkSession(c *kit.Call) kit.Response {
	unnamed := c.Request.PathValue("id") == "" && c.Request.URL.Query().Get("transaction_id") == ""
	return kit.FirstOf(
		kit.If(unnamed, s.Error("request-validation-error", "")),
		kit.If(s.session(c) == nil, s.Error("checkout-session-not-found", "")),
	)
}

func (s *stub) status(c *kit.Call) kit.Response { return kit.JSON(http.StatusOK, s.view(s.session(c))) }

func (s *stub) expire(c *kit.Call) kit.Response {
	t := s.session(c)
	if t.Status != "open" {
		return s.Error("checkout-session-final", "")
	}
	s.close(t, "expired", "processing")
	return kit.Response{Status: http.StatusOK}
}

// close ends an open session.
func (s *stub) close(t *kit.Transaction, status, paymentStatus string) {
	t.Status, t.Details["payment_status"] = status, paymentStatus
	t.Details["when_completed"] = s.Now().Format(timeFormat)
}

// view is a session as the API and the webhooks show it.
func (s *stub) view(t *kit.Transaction) kit.Fields {
	view := kit.Fields{
		"id": t.PageID, "checkout_status": t.Status, "payment_status": t.Details["payment_status"],
		"business_name": t.Details["business_name"], "when_expires": t.Details["when_expires"],
		"when_completed": textOrNull(t.Details["when_completed"]), "when_created": t.CreatedAt.Format(timeFormat),
		"last_payment_error": nil, "transaction_id": textOrNull(t.Reference),
		"wave_launch_url": fmt.Sprintf("%s/c/%s?%s", s.PageURL, t.PageID, t.PageQuery),
	}
	for _, name := range fields {
		view[name] = textOrNull(t.Sent.Text(name))
	}
	if view["restrict_payer_mobile"] == nil {
		delete(view, "restrict_payer_mobile")
	}
	if view["when_completed"] == nil && t.Status == "expired" {
		view["when_completed"] = t.Details["when_expires"]
	}
	if code := t.Details["error"]; code != "" {
		view["last_payment_error"] = apiError(code)
	}
	return view
}

func textOrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// failures are the codes of the failed payments that all stubs know.
var failures = map[kit.Result]string{kit.Refused: "payment-failure", kit.NoFunds: "insufficient-funds"}

func page(t *kit.Transaction) kit.Page {
	title := "Pay " + t.Details["business_name"] + " with Wave"
	return kit.Page{Title: title, OrderID: t.Sent.Text("client_reference")}
}

func (s *stub) cancel(t *kit.Transaction, _ *kit.Call) kit.Response {
	s.close(t, "expired", "cancelled")
	return kit.Redirect(t.Sent.Text("error_url"))
}

// confirm is the payer's attempt to pay. A failed attempt leaves the session open.
func (s *stub) confirm(t *kit.Transaction, c *kit.Call) kit.Response {
	outcome := s.OutcomeFor(c.MSISDN)
	code := failures[outcome.Result]
	if restricted := t.Sent.Text("restrict_payer_mobile"); restricted != "" && restricted != "+"+c.MSISDN {
		code = "payer-mobile-mismatch"
	}
	switch {
	case code != "":
		t.Details["error"] = code
		s.SendAfter(webhookDelay, t, []kit.Callback{s.event(t, kit.Refused)})
		return s.ShowPage(t, http.StatusOK, "The payment failed: "+code+". You may try again.")
	case outcome.Result == kit.Undecided:
		return s.ShowPage(t, http.StatusOK, "The payment is in progress.")
	}
	t.Outcome, t.MSISDN, t.Reference = outcome, c.MSISDN, "T"+strings.ToUpper(s.NewID(5))
	s.close(t, "complete", "succeeded")
	response, webhooks := kit.Redirect(t.Sent.Text("success_url")), s.Decide(t)
	if outcome.CallbackFirst {
		s.SendFirst(&response, t, webhooks)
		return response
	}
	s.SendAfter(webhookDelay, t, webhooks)
	return response
}

// event is the webhook of a payment that succeeded or failed.
func (s *stub) event(t *kit.Transaction, result kit.Result) kit.Callback {
	w, view := s.wallet(t.Details["wallet"]), s.view(t)
	if result == kit.Paid {
		return s.webhook(*w, "checkout.session.completed", view)
	}
	maps.Copy(view, kit.Fields{"checkout_status": "open", "payment_status": "processing",
		"transaction_id": nil, "when_completed": nil}) // as it was: open and not paid
	if view["last_payment_error"] == nil {
		view["last_payment_error"] = apiError("payment-failure")
	}
	return s.webhook(*w, "checkout.session.payment_failed", view)
}

func (s *stub) sendTestEvent(*kit.Call) kit.Response {
	for _, w := range s.Wallets {
		event := s.webhook(w, "test.test_event", kit.Fields{"test_key": "test_value"})
		s.SendAfter(webhookDelay, &kit.Transaction{}, []kit.Callback{event})
	}
	return kit.Response{Status: http.StatusNoContent}
}

// webhook makes a webhook of a wallet. Each attempt is signed with its own time.
func (s *stub) webhook(w Wallet, kind string, data kit.Fields) kit.Callback {
	body := kit.Marshal(map[string]any{"id": "EV_" + s.NewID(6), "type": kind, "data": data})
	shared := s.Quirk("shared_secret")
	return kit.Callback{
		Method: http.MethodPost, URL: w.WebhookURL, Body: body,
		Retries: []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute},
		Sign: func(at time.Time) map[string]string {
			if shared && len(w.WebhookSecrets) > 0 {
				return map[string]string{"Authorization": "Bearer " + w.WebhookSecrets[0]}
			}
			stamp := fmt.Sprint(at.Unix())
			header := "t=" + stamp
			for _, secret := range w.WebhookSecrets {
				header += ",v1=" + sign(secret, stamp, body)
			}
			return map[string]string{"Wave-Signature": header}
		},
	}
}
