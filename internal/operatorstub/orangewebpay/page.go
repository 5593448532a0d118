package orangewebpay

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"mobilegateway/internal/operatorstub"
)

// find returns the payment of a pay_token, or nil. It expires a payment without a confirmation in time.
func (s *Stub) find(token string) *operatorstub.Transaction {
	t := s.platform.First(func(t *operatorstub.Transaction) bool { return t.Details["pay_token"] == token })
	if t != nil && t.Status == "INITIATED" && !s.platform.Now().Before(t.EndsAt) {
		t.Status = "EXPIRED"
	}
	return t
}

// form is the posted form of the page. A wrong number or code is "".
type form struct{ action, msisdn, code string }

func readForm(body []byte) form {
	values, _ := url.ParseQuery(string(body))
	digits := func(name string, shortest, longest int) string {
		text := strings.TrimPrefix(strings.ReplaceAll(values.Get(name), " ", ""), "+")
		if len(text) < shortest || len(text) > longest || strings.Trim(text, "0123456789") != "" {
			return ""
		}
		return text
	}
	return form{values.Get("action"), digits("msisdn", 8, 15), digits("code", 6, 6)}
}

func (s *Stub) identifyPayer(r *http.Request, body []byte) (keys operatorstub.Keys) {
	if t := s.find(r.PathValue("token")); t != nil {
		keys.Key = t.Key
	}
	if f := readForm(body); f.action == "confirm" {
		keys.MSISDN = f.msisdn
	}
	return keys
}

func (s *Stub) page(c *operatorstub.Call) operatorstub.Response {
	t := s.find(c.Request.PathValue("token"))
	if t == nil {
		return operatorstub.HTML(http.StatusNotFound, "Unknown payment")
	}
	return show(t, http.StatusOK, "")
}

func show(t *operatorstub.Transaction, status int, notice string) operatorstub.Response {
	page := operatorstub.Page{Title: "Orange Money: pay " + t.Details["reference"], Amount: t.Amount,
		Currency: t.Currency, OrderID: t.Key, Notice: notice, Code: true}
	switch {
	case t.Status != "INITIATED":
		page.Done, page.Notice = true, "This payment is "+strings.ToLower(t.Status)+"."
	case t.Details["cancelled"] != "":
		page.Done, page.Notice = true, "This payment is cancelled."
	}
	return page.Render(status)
}

// confirm serves the buttons of the page.
func (s *Stub) confirm(c *operatorstub.Call) operatorstub.Response {
	t, f := s.find(c.Request.PathValue("token")), readForm(c.Body)
	switch {
	case t == nil:
		return s.page(c)
	case t.Status == "EXPIRED" && f.action == "confirm" && s.platform.Quirk("notify_expired"):
		s.platform.Send(t, []operatorstub.Callback{s.notification(t, "EXPIRED")})
		return s.page(c)
	case t.Status != "INITIATED" || t.Details["cancelled"] != "":
		return s.page(c)
	case f.action == "cancel":
		t.Details["cancelled"] = "yes"
		return redirect(t.Details["cancel_url"])
	case f.action == "close":
		return operatorstub.HTML(http.StatusOK, "You may close this window.")
	case f.action != "confirm" || f.msisdn == "" || f.code == "" || f.code == "000000":
		return show(t, http.StatusBadRequest, "The number or the code is wrong.")
	}
	t.Status, t.MSISDN, t.Outcome = "PENDING", f.msisdn, s.platform.OutcomeFor(f.msisdn)
	if s.platform.Quirk("same_debit_failed") && s.repeatsDebit(t) {
		t.Outcome = operatorstub.Outcome{Result: operatorstub.Refused}
	}
	response := redirect(t.Details["return_url"])
	if t.Outcome.CallbackFirst {
		response.First = s.decide(t)
		return response
	}
	s.platform.After(decisionDelay, func() { s.platform.Send(t, s.decide(t)) })
	return response
}

func redirect(address string) operatorstub.Response {
	return operatorstub.Response{Status: http.StatusSeeOther, Header: map[string]string{"Location": address}}
}

// repeatsDebit reports whether the payer has paid the same amount a short time ago.
func (s *Stub) repeatsDebit(t *operatorstub.Transaction) bool {
	return s.platform.First(func(other *operatorstub.Transaction) bool {
		return other.Result == operatorstub.Paid && other.MSISDN == t.MSISDN && other.Amount == t.Amount &&
			other.Currency == t.Currency && s.platform.Now().Sub(other.EndsAt) < sameDebitTime
	}) != nil
}

// decide ends a confirmed payment, unless its outcome is undecided.
func (s *Stub) decide(t *operatorstub.Transaction) []operatorstub.Callback {
	words := map[bool]string{true: "SUCCESS", false: "FAILED"}
	if t.Outcome.Result != operatorstub.Undecided {
		t.Status = words[t.Outcome.Result == operatorstub.Paid]
		t.Reference = "MP" + s.platform.Now().Format("060102.1504") + ".A" + s.platform.NewDigits(5)
	}
	return s.platform.Decide(t, func(r operatorstub.Result) operatorstub.Callback {
		return s.notification(t, words[r == operatorstub.Paid])
	})
}

// notification has no order_id: its notif_token is the only proof.
func (s *Stub) notification(t *operatorstub.Transaction, word string) operatorstub.Callback {
	if word == "FAILED" && s.platform.Quirk("failure_word") {
		word = "FAILURE"
	}
	u, err := url.Parse(t.CallbackURL)
	plainIP := err == nil && u.Scheme == "http" && net.ParseIP(u.Hostname()) != nil
	if s.platform.Quirk("no_notification") || plainIP && !s.credentials.LocalURLs {
		return operatorstub.Callback{}
	}
	return operatorstub.Callback{Method: http.MethodPost, URL: t.CallbackURL, Body: operatorstub.JSON(0,
		map[string]string{"status": word, "notif_token": t.Details["notif_token"], "txnid": t.Reference}).Body}
}
