package orangewebpay

import (
	"bytes"
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
	tokenLife     = 90 * 24 * time.Hour
	pageLife      = 10 * time.Minute
	shortLife     = 3 * time.Second // quirk page_3s
	decisionDelay = 2 * time.Second // the confirmation to the final status
	sameDebitTime = 10 * time.Minute
	webpayment    = "webpayment"
)

// Account is the application and the contract of one country.
type Account struct{ ClientID, ClientSecret, MerchantKey string }

// Credentials are those that the stub accepts, and its settings.
type Credentials struct {
	// Accounts are by the segment of the path: ci, bf, cm, sn or dev.
	Accounts map[string]Account
	// PageURL is the public address of the stub with its prefix, without a slash at the end.
	PageURL string
	// LocalURLs accepts the addresses of a local run: localhost, and notifications to plain http on an IP address.
	LocalURLs bool
}

// currencies are the segments with their currencies.
var currencies = map[string]string{"ci": "XOF", "bf": "XOF", "sn": "XOF", "cm": "XAF", "dev": "OUV"}

// DefaultCredentials are for the local run, which sets PageURL and LocalURLs.
func DefaultCredentials() Credentials {
	c := Credentials{Accounts: map[string]Account{}}
	for segment := range currencies {
		c.Accounts[segment] = Account{"stub-" + segment, "stub-" + segment + "-secret", "stub-" + segment + "-key"}
	}
	return c
}

// errorCode is a code of Orange with its HTTP status.
type errorCode struct {
	code, status int
	message      string
}

var errorCodes = []errorCode{
	{1, http.StatusInternalServerError, "Internal error"},
	{5, http.StatusServiceUnavailable, "The service is temporarily unavailable"},
	{22, http.StatusBadRequest, "Invalid body"},
	{23, http.StatusBadRequest, "Missing body field"},
	{42, http.StatusUnauthorized, "Expired credentials"},
	{41, http.StatusUnauthorized, "Invalid credentials"},
	{50, http.StatusForbidden, "Access denied"},
	{51, http.StatusForbidden, "Forbidden requester"},
	{53, http.StatusTooManyRequests, "Too many requests"},
	{60, http.StatusNotFound, "Resource not found"},
	{1204, http.StatusBadRequest, "order id already exists"},
}

// Stub is one platform for all segments.
type Stub struct {
	platform    *operatorstub.Platform
	credentials Credentials
	issued      map[string]bool // tokens, so that an expired one differs from an unknown one
}

// New makes a stub.
func New(config operatorstub.Config, credentials Credentials) *Stub {
	faults := map[string]operatorstub.Response{
		"405": operatorstub.HTML(http.StatusMethodNotAllowed, "Method Not Allowed"),
		"415": operatorstub.HTML(http.StatusUnsupportedMediaType, "Unsupported Media Type"),
		"incomplete": operatorstub.JSON(http.StatusCreated, map[string]any{
			"status": http.StatusCreated, "message": "OK"}),
	}
	for _, e := range errorCodes {
		response := operatorstub.JSON(e.status, e.body(""))
		faults[strconv.Itoa(e.code)] = response
		if name := strconv.Itoa(e.status); faults[name].Status == 0 {
			faults[name] = response
		}
	}
	return &Stub{credentials: credentials, issued: map[string]bool{}, platform: operatorstub.New(config,
		operatorstub.Spec{Operator: "orangewebpay", Faults: faults, TokenLife: tokenLife,
			Quirks: []string{"nested_error", "no_notification", "failure_word", "notify_expired", "same_debit_failed",
				"page_3s"},
		})}
}

// Handler serves the stub from the root.
func (s *Stub) Handler() http.Handler {
	const base, page = "/orange-money-webpay/{segment}/v1/", "/payment/pay_token/{token}"
	noKeys := func(*http.Request, []byte) operatorstub.Keys { return operatorstub.Keys{} }
	orderID := func(_ *http.Request, body []byte) operatorstub.Keys {
		id, _ := fieldsOf(body)["order_id"].(string)
		return operatorstub.Keys{Key: id}
	}
	return s.platform.Handler(
		operatorstub.Operation{Pattern: "POST /oauth/{version}/token", Name: "token", Identify: noKeys, Serve: s.token},
		operatorstub.Operation{Pattern: "POST " + base + "webpayment", Name: webpayment, Identify: orderID,
			Serve: s.create},
		operatorstub.Operation{Pattern: "POST " + base + "transactionstatus", Name: "transactionstatus",
			Identify: orderID, Serve: s.status},
		operatorstub.Operation{Pattern: "GET " + page, Name: "page", Identify: s.identifyPayer, Serve: s.page},
		operatorstub.Operation{Pattern: "POST " + page, Name: "confirm", Identify: s.identifyPayer, Serve: s.confirm},
	)
}

func (e errorCode) body(description string) map[string]any {
	return map[string]any{"code": e.code, "message": e.message, "description": description}
}

func (s *Stub) refuse(code int, description string) operatorstub.Response {
	e := errorCodes[slices.IndexFunc(errorCodes, func(e errorCode) bool { return e.code == code })]
	if s.platform.Quirk("nested_error") {
		return operatorstub.JSON(e.status, map[string]any{"error": e.body(description)})
	}
	return operatorstub.JSON(e.status, e.body(description))
}

func (s *Stub) token(c *operatorstub.Call) operatorstub.Response {
	form, err := url.ParseQuery(string(c.Body))
	if v := c.Request.PathValue("version"); v != "v2" && v != "v3" {
		return s.refuse(60, "")
	}
	if err != nil || form.Get("grant_type") != "client_credentials" {
		return s.refuse(22, "grant_type")
	}
	id, secret, _ := c.Request.BasicAuth()
	for _, a := range s.credentials.Accounts {
		if a.ClientID != id || a.ClientSecret != secret {
			continue
		}
		text, life := s.platform.IssueToken(id)
		s.issued[text] = true
		return operatorstub.JSON(http.StatusOK, map[string]any{
			"token_type": "Bearer", "access_token": text, "expires_in": life})
	}
	return s.refuse(41, "")
}

// authorize returns the code of a refusal, or 0.
func (s *Stub) authorize(r *http.Request) int {
	account, known := s.credentials.Accounts[r.PathValue("segment")]
	if known && s.platform.ValidToken(r, account.ClientID) {
		return 0
	}
	for _, other := range s.credentials.Accounts {
		if s.platform.ValidToken(r, other.ClientID) {
			return 60
		}
	}
	if s.issued[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] {
		return 42
	}
	return 41
}

// fieldsOf returns the fields of a JSON object, or nil. Numbers are json.Number.
func fieldsOf(body []byte) map[string]any {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&fields) != nil {
		return nil
	}
	return fields
}

// limits are the required texts of a payment and their longest lengths in characters.
var limits = []struct {
	name string
	max  int
}{
	{"merchant_key", 100}, {"currency", 3}, {"order_id", 30}, {"return_url", 120}, {"cancel_url", 120},
	{"notif_url", 120}, {"lang", 2}, {"reference", 30},
}

// missing returns the description of the first field that is absent or empty, in the words of a Go validator, or "".
func missing(object string, fields map[string]any, names ...string) string {
	for _, name := range names {
		if fields[name] != nil && fields[name] != "" {
			continue
		}
		words := strings.Split(name, "_")
		for i, w := range words {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
		field := strings.Join(words, "")
		return fmt.Sprintf("Key: '%s.%s' Error:Field validation for '%s' failed on the 'required' tag", object, field,
			field)
	}
	return ""
}

// amountOf returns a whole positive amount, or "".
func amountOf(fields map[string]any) string {
	number, _ := fields["amount"].(json.Number)
	if text := number.String(); operatorstub.IsAmount(text) && strings.Trim(text, "0123456789") == "" {
		return text
	}
	return ""
}

// invalid returns the name of the first field that is wrong, or "".
func (s *Stub) invalid(segment string, fields map[string]any) string {
	for _, limit := range limits {
		text, ok := fields[limit.name].(string)
		isURL := strings.HasSuffix(limit.name, "_url")
		if !ok || len([]rune(text)) > limit.max || isURL && !s.reachable(text) {
			return limit.name
		}
	}
	switch {
	case amountOf(fields) == "":
		return "amount"
	case fields["currency"] != currencies[segment]:
		return "currency"
	case fields["lang"] != "fr" && fields["lang"] != "en":
		return "lang"
	case fields["merchant_key"] != s.credentials.Accounts[segment].MerchantKey:
		return "merchant_key"
	}
	return ""
}

// reachable reports whether an address is one that Orange accepts.
func (s *Stub) reachable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return false
	}
	host := u.Hostname()
	return s.credentials.LocalURLs || host != "localhost" && host != "::1" && !strings.HasPrefix(host, "127.")
}

// refuseCall returns the refusal of a call whose token, type or fields are wrong, and whether there is one.
func (s *Stub) refuseCall(c *operatorstub.Call, object string, names ...string) (operatorstub.Response, bool) {
	if code := s.authorize(c.Request); code != 0 {
		return s.refuse(code, ""), true
	}
	if !strings.HasPrefix(c.Request.Header.Get("Content-Type"), "application/json") {
		return operatorstub.HTML(http.StatusUnsupportedMediaType, "Unsupported Media Type"), true
	}
	fields := fieldsOf(c.Body)
	if fields == nil {
		return s.refuse(22, ""), true
	}
	if description := missing(object, fields, names...); description != "" {
		return s.refuse(23, description), true
	}
	return operatorstub.Response{}, false
}

func (s *Stub) create(c *operatorstub.Call) operatorstub.Response {
	names := []string{"amount"}
	for _, limit := range limits {
		names = append(names, limit.name)
	}
	if refused, ok := s.refuseCall(c, "WebPayment", names...); ok {
		return refused
	}
	fields, segment := fieldsOf(c.Body), c.Request.PathValue("segment")
	if name := s.invalid(segment, fields); name != "" {
		return s.refuse(22, name)
	}
	if s.platform.First(func(t *operatorstub.Transaction) bool {
		return t.Key == c.Key && t.Details["segment"] == segment
	}) != nil {
		return s.refuse(1204, "")
	}
	life := pageLife
	if s.platform.Quirk("page_3s") {
		life = shortLife
	}
	t := &operatorstub.Transaction{
		Operation: webpayment, Key: c.Key, Amount: amountOf(fields), Status: "INITIATED",
		EndsAt: s.platform.Now().Add(life),
		Details: map[string]string{"segment": segment, "pay_token": "v1" + s.platform.NewID(24),
			"notif_token": s.platform.NewID(16)},
	}
	for _, limit := range limits {
		t.Details[limit.name], _ = fields[limit.name].(string)
	}
	t.Currency, t.CallbackURL = t.Details["currency"], t.Details["notif_url"]
	s.platform.Add(t)
	return operatorstub.JSON(http.StatusCreated, map[string]any{
		"status": http.StatusCreated, "message": "OK", "pay_token": t.Details["pay_token"],
		"payment_url": s.credentials.PageURL + "/payment/pay_token/" + t.Details["pay_token"],
		"notif_token": t.Details["notif_token"],
	})
}

// status is the lookup. It needs the order_id, the amount and the pay_token of one payment.
func (s *Stub) status(c *operatorstub.Call) operatorstub.Response {
	if refused, ok := s.refuseCall(c, "GetTransactionStatusInfo", "order_id", "amount", "pay_token"); ok {
		return refused
	}
	fields := fieldsOf(c.Body)
	token, _ := fields["pay_token"].(string)
	t := s.find(token)
	if t == nil || t.Key != c.Key || t.Amount != amountOf(fields) ||
		t.Details["segment"] != c.Request.PathValue("segment") {
		return s.refuse(22, "")
	}
	return operatorstub.JSON(http.StatusCreated, map[string]string{
		"status": t.Status, "order_id": t.Key, "txnid": t.Reference})
}
