// Package orangewebpay is a stub of Orange Money Web Payment: the token call, the payment, its lookup, its page and its
// notification. On the page the payer types a number and a code. Package kit describes the control paths and
// the steering by number.
//
// Each country is a segment of the path with its own account and merchant key. A payment is INITIATED until the payer
// confirms it, then PENDING, and two seconds later SUCCESS or FAILED. Its page and its pay_token live for 10 minutes.
// After that a payment without a confirmation is EXPIRED, also if the payer cancelled it. An order_id is never free
// again: a repeat is refused with code 1204. The key of an effect is the order_id.
//
// The number on the page selects the outcome. Its faults are those of the button, because the API has none. A code
// has six digits; 000000 is wrong. There are no test numbers.
//
// The notification has no order_id and comes once. It is not sent to plain http on an IP address, except with
// Credentials.LocalURLs.
//
// Faults of scripts are HTTP statuses, or codes: "42" is 401 with code 42. incomplete is 201 without a pay_token.
//
// docs/operators/stubs.md lists the choices that no document states.
package orangewebpay

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
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
	for name := range currencies {
		c.Accounts[name] = Account{"stub-" + name, "stub-" + name + "-secret", "stub-" + name + "-key"}
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
			{Pattern: base + "webpayment", Name: "webpayment", Key: "order_id", Check: s.checkCreate,
				Serve: s.create},
			{Pattern: base + "transactionstatus", Name: "transactionstatus", Key: "order_id", Check: s.checkStatus,
				Serve: s.status},
		},
		Faults: map[string]kit.Response{
			"405":        kit.HTML(http.StatusMethodNotAllowed, "Method Not Allowed"),
			"415":        kit.HTML(http.StatusUnsupportedMediaType, "Unsupported Media Type"),
			"incomplete": kit.JSON(http.StatusCreated, map[string]any{"status": http.StatusCreated, "message": "OK"}),
		},
		Hosted: &kit.Hosted{
			Path: "/payment/pay_token/{id}", Life: pageLife, Short: "page_3s", Open: "INITIATED", Expired: expired,
			Page: func(t *kit.Transaction) kit.Page {
				return kit.Page{Title: "Orange Money: pay " + t.Sent.Text("reference"), OrderID: t.Key, Code: true}
			},
			Cancel: func(t *kit.Transaction, _ *kit.Call) kit.Response {
				return kit.Redirect(t.Sent.Text("cancel_url"))
			},
			Confirm: s.confirm, Late: s.notifyExpired,
		},
		Quirks: []string{
			"nested_error",      // errors are {"error":{"code","message","description"}}
			"no_notification",   // no notification is sent
			"failure_word",      // the notification says FAILURE instead of FAILED
			"notify_expired",    // a confirmation after the page's life is notified as EXPIRED
			"same_debit_failed", // a second payment of one number and amount within 10 minutes is FAILED
		},
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
	contentType := c.Request.Header.Get("Content-Type")
	return kit.FirstOf(
		kit.If(owner == "", s.Error("41", "")),
		kit.If(!valid, s.Error("42", "")),
		kit.If(owner != s.Accounts[segment(c)].ClientID, s.Error("60", "")),
		kit.If(!strings.HasPrefix(contentType, "application/json"),
			kit.HTML(http.StatusUnsupportedMediaType, "Unsupported Media Type")),
		kit.If(c.Fields == nil, s.Error("22", "")),
	)
}

// segment returns the country in the path of a call.
func segment(c *kit.Call) string { return c.Request.PathValue("segment") }

// limits are the required texts of a payment and their longest lengths in characters.
var limits = []struct {
	name string
	max  int
}{
	{"merchant_key", 100}, {"currency", 3}, {"order_id", 30}, {"return_url", 120}, {"cancel_url", 120},
	{"notif_url", 120}, {"lang", 2}, {"reference", 30},
}

// missing refuses the first field that is absent or empty, in the words of a Go validator.
func (s *stub) missing(object string, fields kit.Fields, names ...string) kit.Response {
	for _, name := range names {
		if fields[name] != nil && fields[name] != "" {
			continue
		}
		field := ""
		for word := range strings.SplitSeq(name, "_") {
			field += strings.ToUpper(word[:1]) + word[1:]
		}
		return s.Error("23", fmt.Sprintf("Key: '%s.%s' Error:Field validation for '%s' failed on the 'required' tag",
			object, field, field))
	}
	return kit.Response{}
}

// amountOf returns a whole positive amount, or "".
func amountOf(fields kit.Fields) string {
	number, _ := fields["amount"].(json.Number)
	if text := number.String(); kit.IsAmount(text) && kit.IsDigits(text) {
		return text
	}
	return ""
}

// checkCreate refuses a payment: first a missing field, then a wrong one, then a repeat.
func (s *stub) checkCreate(c *kit.Call) kit.Response {
	names, wrong := []string{"amount"}, kit.Response{}
	for _, limit := range limits {
		names = append(names, limit.name)
		text, ok := c.Fields[limit.name].(string)
		unreachable := strings.HasSuffix(limit.name, "_url") && !s.reachable(text)
		wrong = kit.FirstOf(wrong,
			kit.If(!ok || len([]rune(text)) > limit.max || unreachable, s.Error("22", limit.name)))
	}
	lang := c.Text("lang")
	repeated := s.First(func(t *kit.Transaction) bool { return t.Key == c.Key && t.Details["segment"] == segment(c) })
	return kit.FirstOf(
		s.missing("WebPayment", c.Fields, names...),
		wrong,
		kit.If(amountOf(c.Fields) == "", s.Error("22", "amount")),
		kit.If(c.Text("currency") != currencies[segment(c)], s.Error("22", "currency")),
		kit.If(lang != "fr" && lang != "en", s.Error("22", "lang")),
		kit.If(c.Text("merchant_key") != s.Accounts[segment(c)].MerchantKey, s.Error("22", "merchant_key")),
		kit.If(repeated != nil, s.Error("1204", "")),
	)
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
	t := s.Add(c, &kit.Transaction{
		Amount: amountOf(c.Fields), Currency: c.Text("currency"), CallbackURL: c.Text("notif_url"),
		Status: "INITIATED", PageID: "v1" + s.NewID(24),
		Details: map[string]string{"segment": segment(c), "notif_token": s.NewID(16)},
	})
	return kit.JSON(http.StatusCreated, map[string]any{
		"status": http.StatusCreated, "message": "OK", "pay_token": t.PageID,
		"payment_url": s.PageURL + "/payment/pay_token/" + t.PageID, "notif_token": t.Details["notif_token"],
	})
}

// status is the lookup. It needs the order_id, the amount and the pay_token of one payment.
func (s *stub) status(c *kit.Call) kit.Response {
	t := s.FindPage(c.Text("pay_token"))
	if t == nil || t.Key != c.Key || t.Amount != amountOf(c.Fields) || t.Details["segment"] != segment(c) {
		return s.Error("22", "")
	}
	return kit.JSON(http.StatusCreated, map[string]string{"status": t.Status, "order_id": t.Key, "txnid": t.Reference})
}

func (s *stub) checkStatus(c *kit.Call) kit.Response {
	return s.missing("GetTransactionStatusInfo", c.Fields, "order_id", "amount", "pay_token")
}

func (s *stub) confirm(t *kit.Transaction, c *kit.Call) kit.Response {
	if code := kit.ReadDigits(c.Form("code"), 6, 6); code == "" || code == "000000" {
		return s.ShowPage(t, http.StatusBadRequest, "The code is wrong.")
	}
	t.Status, t.MSISDN, t.Outcome = "PENDING", c.MSISDN, s.OutcomeFor(c.MSISDN)
	if s.Quirk("same_debit_failed") && s.repeatsDebit(t) {
		t.Outcome = kit.Outcome{Result: kit.Refused}
	}
	return s.DecideAfter(decisionDelay, t, kit.Redirect(t.Sent.Text("return_url")))
}

// repeatsDebit reports whether the payer has paid the same amount a short time ago.
func (s *stub) repeatsDebit(t *kit.Transaction) bool {
	return s.First(func(other *kit.Transaction) bool {
		return other.Result == kit.Paid && other.MSISDN == t.MSISDN && other.Amount == t.Amount &&
			other.Currency == t.Currency && s.Now().Sub(other.EndsAt) < sameDebitTime
	}) != nil
}

// expired is the status of a payment that was not confirmed in time.
const expired = "EXPIRED"

// words are the statuses of the results.
var words = map[kit.Result]string{
	kit.Paid: "SUCCESS", kit.Refused: "FAILED", kit.NoFunds: "FAILED", expired: expired,
}

// end sets the words of a confirmed payment, unless its outcome is undecided.
func (s *stub) end(t *kit.Transaction) {
	if t.Outcome.Result != kit.Undecided {
		t.Status = words[t.Outcome.Result]
		t.Reference = "MP" + s.Now().Format("060102.1504") + ".A" + s.NewDigits(5)
	}
}

// notification has no order_id: its notif_token is the only proof.
func (s *stub) notification(t *kit.Transaction, result kit.Result) kit.Callback {
	status := words[result]
	if status == "FAILED" && s.Quirk("failure_word") {
		status = "FAILURE"
	}
	u, err := url.Parse(t.CallbackURL)
	plainIP := err == nil && u.Scheme == "http" && net.ParseIP(u.Hostname()) != nil
	if s.Quirk("no_notification") || plainIP && !s.LocalURLs {
		return kit.Callback{}
	}
	return t.Post(map[string]string{"status": status, "notif_token": t.Details["notif_token"], "txnid": t.Reference})
}

// notifyExpired notifies a confirmation after the page's life.
func (s *stub) notifyExpired(t *kit.Transaction) {
	if t.Status == expired && s.Quirk("notify_expired") {
		s.SendAfter(0, t, []kit.Callback{s.notification(t, expired)})
	}
}
