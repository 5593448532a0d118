// Package wave is a stub of Wave's Checkout API for businesses: sessions, search, the page where the payer pays, and
// signed webhooks. Package operatorstub describes the control paths and the steering by number.
//
// Each wallet has one country, one API key and one webhook. A session is open for 30 minutes. Two requests make two
// sessions, also with one client_reference, and each can be paid: then the effects list two payments. The key of an
// effect is the client_reference, or the session's id without one.
//
// The payer opens wave_launch_url, types a number, and confirms, cancels or closes. The number selects the outcome:
//
//	1001, 1002   the payment fails, webhook payment_failed; the session stays open for another try
//	1003         the payment stays in progress, and the session expires
//	1007         webhook completed, then a late payment_failed
//	others       as operatorstub lists; the faults are those of the page
//
// With restrict_payer_mobile that number also selects the fault of the request. An Idempotency-Key has no effect. There
// are no test numbers, no tokens and no refunds.
//
// POST /portal/test-event sends test.test_event to all webhooks, as the button of Wave's portal does.
//
// What no document states is in docs/operators/stubs.md.
package wave

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	kit "mobilegateway/internal/operatorstub"
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
				Serve: s.create},
			{Pattern: "GET " + sessions + "/search", Name: "search", Key: "query:client_reference", Serve: s.search},
			{Pattern: "GET " + sessions + "/{id}", Name: "status", Key: "page:id", Serve: s.status},
			{Pattern: "GET " + sessions, Name: "find", Serve: s.status},
			{Pattern: "POST " + sessions + "/{id}/expire", Name: "expire", Key: "page:id", Serve: s.expire},
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
	if i := slices.IndexFunc(s.Wallets, func(w Wallet) bool { return w.APIKey == key }); i >= 0 {
		return &s.Wallets[i]
	}
	return nil
}

func keyOf(c *kit.Call) string {
	return strings.TrimSpace(strings.TrimPrefix(c.Request.Header.Get("Authorization"), "Bearer"))
}

func (s *stub) authorize(c *kit.Call) kit.Response {
	header := c.Request.Header.Get("Authorization")
	w := s.wallet(keyOf(c))
	switch {
	case header == "":
		return s.Error("missing-auth-header", "")
	case !strings.HasPrefix(header+" ", "Bearer "):
		return s.Error("invalid-auth", "")
	case keyOf(c) == "":
		return s.Error("api-key-not-provided", "")
	case w == nil:
		return s.Error("no-matching-api-key", "")
	case w.RequestSecret != "" && !s.signed(w.RequestSecret, c):
		return s.Error("invalid-auth", "")
	}
	return kit.Response{}
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

func (s *stub) valid(c *kit.Call) bool {
	for name, value := range c.Fields {
		if _, isText := value.(string); !slices.Contains(fields, name) || value != nil && !isText {
			return false
		}
	}
	isURL := func(name string) bool {
		u, err := url.Parse(c.Text(name))
		return err == nil && u.Host != "" && (u.Scheme == "https" || s.LocalURLs && u.Scheme == "http")
	}
	payer := c.Text("restrict_payer_mobile")
	return kit.IsWholeAmount(c.Text("amount")) && c.Text("currency") == "XOF" && isURL("success_url") &&
		isURL("error_url") && len([]rune(c.Key)) <= maxReference &&
		(payer == "" || payer == "+"+kit.ReadDigits(payer, 8, 15))
}

func (s *stub) create(c *kit.Call) kit.Response {
	if !s.valid(c) {
		return s.Error("request-validation-error", "")
	}
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

// find returns the sessions of the call's wallet that fit.
func (s *stub) find(c *kit.Call, fits func(t *kit.Transaction) bool) []*kit.Transaction {
	return s.All(func(t *kit.Transaction) bool { return t.Details["wallet"] == keyOf(c) && fits(t) })
}

func (s *stub) search(c *kit.Call) kit.Response {
	if c.Key == "" {
		return s.Error("request-validation-error", "")
	}
	views := []kit.Fields{}
	for _, t := range s.find(c, func(t *kit.Transaction) bool { return t.Sent.Text("client_reference") == c.Key }) {
		if !s.Quirk("search_late") || s.Now().Sub(t.CreatedAt) >= lateSearch {
			views = append(views, s.view(t))
		}
	}
	return kit.JSON(http.StatusOK, map[string]any{"result": views})
}

// status serves a session by its id, or by ?transaction_id=.
func (s *stub) status(c *kit.Call) kit.Response {
	id, transaction := c.Request.PathValue("id"), c.Request.URL.Query().Get("transaction_id")
	if id == "" && transaction == "" {
		return s.Error("request-validation-error", "")
	}
	found := s.find(c, func(t *kit.Transaction) bool {
		return id != "" && t.PageID == id || id == "" && t.Reference == transaction
	})
	if len(found) == 0 {
		return s.Error("checkout-session-not-found", "")
	}
	return kit.JSON(http.StatusOK, s.view(found[0]))
}

func (s *stub) expire(c *kit.Call) kit.Response {
	found := s.find(c, func(t *kit.Transaction) bool { return t.PageID == c.Request.PathValue("id") })
	switch {
	case len(found) == 0:
		return s.Error("checkout-session-not-found", "")
	case found[0].Status != "open":
		return s.Error("checkout-session-final", "")
	}
	s.close(found[0], "expired", "processing")
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
		"id": t.PageID, "checkout_status": t.Status, "last_payment_error": nil, "transaction_id": nil,
		"when_completed": nil, "when_created": t.CreatedAt.Format(timeFormat),
		"wave_launch_url": fmt.Sprintf("%s/c/%s?%s", s.PageURL, t.PageID, t.PageQuery),
	}
	for _, name := range fields {
		if text := t.Sent.Text(name); text != "" {
			view[name] = text
		} else if name != "restrict_payer_mobile" {
			view[name] = nil
		}
	}
	for _, name := range []string{"business_name", "payment_status", "when_expires", "when_completed"} {
		if text := t.Details[name]; text != "" {
			view[name] = text
		}
	}
	if view["when_completed"] == nil && t.Status == "expired" {
		view["when_completed"] = view["when_expires"]
	}
	if code := t.Details["error"]; code != "" {
		view["last_payment_error"] = apiError(code)
	}
	if t.Reference != "" {
		view["transaction_id"] = t.Reference
	}
	return view
}
