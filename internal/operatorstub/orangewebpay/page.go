package orangewebpay

import (
	"net"
	"net/http"
	"net/url"

	kit "mobilegateway/internal/operatorstub"
)

func page(t *kit.Transaction) kit.Page {
	return kit.Page{Title: "Orange Money: pay " + t.Sent.Text("reference"), Amount: t.Amount, Currency: t.Currency,
		OrderID: t.Key, Code: true}
}

func cancel(t *kit.Transaction, _ *kit.Call) kit.Response {
	return kit.Redirect(t.Sent.Text("cancel_url"))
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

// confirmLate notifies a confirmation after the page's life.
func (s *stub) confirmLate(t *kit.Transaction) {
	if t.Status == "EXPIRED" && s.Quirk("notify_expired") {
		s.SendAfter(0, t, []kit.Callback{s.notify(t, t.Status)})
	}
}

// repeatsDebit reports whether the payer has paid the same amount a short time ago.
func (s *stub) repeatsDebit(t *kit.Transaction) bool {
	return s.First(func(other *kit.Transaction) bool {
		return other.Result == kit.Paid && other.MSISDN == t.MSISDN && other.Amount == t.Amount &&
			other.Currency == t.Currency && s.Now().Sub(other.EndsAt) < sameDebitTime
	}) != nil
}

func word(result kit.Result) string {
	if result == kit.Paid {
		return "SUCCESS"
	}
	return "FAILED"
}

// end sets the words of a confirmed payment, unless its outcome is undecided.
func (s *stub) end(t *kit.Transaction) {
	if t.Outcome.Result != kit.Undecided {
		t.Status = word(t.Outcome.Result)
		t.Reference = "MP" + s.Now().Format("060102.1504") + ".A" + s.NewDigits(5)
	}
}

func (s *stub) notification(t *kit.Transaction, result kit.Result) kit.Callback {
	if result != kit.Paid && s.Quirk("failure_word") {
		return s.notify(t, "FAILURE")
	}
	return s.notify(t, word(result))
}

// notify makes a notification. It has no order_id: its notif_token is the only proof.
func (s *stub) notify(t *kit.Transaction, status string) kit.Callback {
	u, err := url.Parse(t.CallbackURL)
	plainIP := err == nil && u.Scheme == "http" && net.ParseIP(u.Hostname()) != nil
	if s.Quirk("no_notification") || plainIP && !s.LocalURLs {
		return kit.Callback{}
	}
	return t.Post(map[string]string{"status": status, "notif_token": t.Details["notif_token"], "txnid": t.Reference})
}
