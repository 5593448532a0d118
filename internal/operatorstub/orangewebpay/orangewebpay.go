package orangewebpay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	kit "mobilegateway/internal/operatorstub"
)

const (
	pageLife      = 10 * time.Minute
	decisionDelay = 2 * time.Second // the confirmation to the final status
	sameDebitTime = 10 * time.Minute
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

// errorCodes are the codes of Orange. The first code of a status is that of the fault with its name.
var errorCodes = []kit.Error{
	kit.NewError("1", http.StatusInternalServerError, "Internal error"),
	kit.NewError("5", http.StatusServiceUnavailable, "The service is temporarily unavailable"),
	kit.NewError("22", http.StatusBadRequest, "Invalid body"),
	kit.NewError("23", http.StatusBadRequest, "Missing body field"),
	kit.NewError("42", http.StatusUnauthorized, "Expired credentials"),
	kit.NewError("41", http.StatusUnauthorized, "Invalid credentials"),
	kit.NewError("50", http.StatusForbidden, "Access denied"),
	kit.NewError("51", http.StatusForbidden, "Forbidden requester"),
	kit.NewError("53", http.StatusTooManyRequests, "Too many requests"),
	kit.NewError("60", http.StatusNotFound, "Resource not found"),
	kit.NewError("1204", http.StatusBadRequest, "order id already exists"),
}

type stub struct {
	*kit.Platform
	Credentials
}

// New makes a stub of one platform for all segments.
func New(config kit.Config, credentials Credentials) *kit.Platform {
	const base = "POST /orange-money-webpay/{segment}/v1/"
	s := &stub{Credentials: credentials}
	s.Platform = kit.New(config, kit.Spec{
		Operator: "orangewebpay", TokenLife: 90 * 24 * time.Hour, Authorize: s.authorize, Errors: errorCodes,
		ErrorForm: s.errorForm, Callback: s.notification, End: s.end,
		Operations: []kit.Operation{
			{Pattern: "POST /oauth/{version}/token", Name: "token", Open: true, Serve: s.token},
			{Pattern: base + "webpayment", Name: "webpayment", Key: "order_id", Serve: s.create},
			{Pattern: base + "transactionstatus", Name: "transactionstatus", Key: "order_id", Serve: s.status},
		},
		Faults: map[string]kit.Response{
			"405":        kit.HTML(http.StatusMethodNotAllowed, "Method Not Allowed"),
			"415":        kit.HTML(http.StatusUnsupportedMediaType, "Unsupported Media Type"),
			"incomplete": kit.JSON(http.StatusCreated, map[string]any{"status": http.StatusCreated, "message": "OK"}),
		},
		Hosted: &kit.Hosted{
			Path: "/payment/pay_token/{id}", Life: pageLife, Short: "page_3s", Open: "INITIATED", Expired: "EXPIRED",
			Page: page, Cancel: cancel, Confirm: s.confirm, Late: s.confirmLate,
		},
		Quirks: []string{"nested_error", "no_notification", "failure_word", "notify_expired", "same_debit_failed"},
	})
	return s.Platform
}

func (s *stub) errorForm(e kit.Error, description string) kit.Response {
	body := map[string]any{"code": json.Number(e.Name), "message": e.Message, "description": description}
	if s.Quirk("nested_error") {
		body = map[string]any{"error": body}
	}
	return kit.JSON(e.Status, body)
}

func (s *stub) token(c *kit.Call) kit.Response {
	if v := c.Request.PathValue("version"); v != "v2" && v != "v3" {
		return s.Error("60", "")
	}
	clients := map[string]string{}
	for _, a := range s.Accounts {
		clients[a.ClientID] = a.ClientSecret
	}
	return s.Grant(c, kit.Grant{Clients: clients, BadClient: s.Error("41", ""), BadType: s.Error("22", "grant_type"),
		Fields: kit.Fields{"token_type": "Bearer"}})
}

func (s *stub) authorize(c *kit.Call) kit.Response {
	owner, valid := s.TokenOwner(c)
	account, known := s.Accounts[c.Request.PathValue("segment")]
	switch {
	case owner == "":
		return s.Error("41", "")
	case !valid:
		return s.Error("42", "")
	case !known || owner != account.ClientID:
		return s.Error("60", "")
	case !strings.HasPrefix(c.Request.Header.Get("Content-Type"), "application/json"):
		return kit.HTML(http.StatusUnsupportedMediaType, "Unsupported Media Type")
	case c.Fields == nil:
		return s.Error("22", "")
	}
	return kit.Response{}
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
func missing(object string, fields kit.Fields, names ...string) string {
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
func amountOf(fields kit.Fields) string {
	number, _ := fields["amount"].(json.Number)
	if text := number.String(); kit.IsAmount(text) && kit.IsDigits(text) {
		return text
	}
	return ""
}

// invalid returns the name of the first field that is wrong, or "".
func (s *stub) invalid(segment string, fields kit.Fields) string {
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
	case fields["merchant_key"] != s.Accounts[segment].MerchantKey:
		return "merchant_key"
	}
	return ""
}

// reachable reports whether an address is one that Orange accepts.
func (s *stub) reachable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return false
	}
	host := u.Hostname()
	return s.LocalURLs || host != "localhost" && host != "::1" && !strings.HasPrefix(host, "127.")
}

func (s *stub) create(c *kit.Call) kit.Response {
	names := []string{"amount"}
	for _, limit := range limits {
		names = append(names, limit.name)
	}
	segment := c.Request.PathValue("segment")
	if description := missing("WebPayment", c.Fields, names...); description != "" {
		return s.Error("23", description)
	}
	if name := s.invalid(segment, c.Fields); name != "" {
		return s.Error("22", name)
	}
	if s.First(func(t *kit.Transaction) bool { return t.Key == c.Key && t.Details["segment"] == segment }) != nil {
		return s.Error("1204", "")
	}
	t := s.Add(c, &kit.Transaction{
		Amount: amountOf(c.Fields), Currency: c.Text("currency"), CallbackURL: c.Text("notif_url"),
		Status: "INITIATED", PageID: "v1" + s.NewID(24),
		Details: map[string]string{"segment": segment, "notif_token": s.NewID(16)},
	})
	return kit.JSON(http.StatusCreated, map[string]any{
		"status": http.StatusCreated, "message": "OK", "pay_token": t.PageID,
		"payment_url": s.PageURL + "/payment/pay_token/" + t.PageID, "notif_token": t.Details["notif_token"],
	})
}

// status is the lookup. It needs the order_id, the amount and the pay_token of one payment.
func (s *stub) status(c *kit.Call) kit.Response {
	description := missing("GetTransactionStatusInfo", c.Fields, "order_id", "amount", "pay_token")
	if description != "" {
		return s.Error("23", description)
	}
	t := s.FindPage(c.Text("pay_token"))
	if t == nil || t.Key != c.Key || t.Amount != amountOf(c.Fields) ||
		t.Details["segment"] != c.Request.PathValue("segment") {
		return s.Error("22", "")
	}
	return kit.JSON(http.StatusCreated, map[string]string{"status": t.Status, "order_id": t.Key, "txnid": t.Reference})
}
