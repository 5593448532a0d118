package wave

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mobilegateway/internal/operatorstub"
)

// failures are the codes of the failed payments that all stubs know.
var failures = map[operatorstub.Result]string{
	operatorstub.Refused: "payment-failure", operatorstub.NoFunds: "insufficient-funds",
}

// payer reads the form of the page.
func payer(body []byte) (action, msisdn string) {
	form, _ := url.ParseQuery(string(body))
	return form.Get("action"), digits(form.Get("msisdn"))
}

func (s *Stub) identifyPayer(r *http.Request, body []byte) operatorstub.Keys {
	keys := s.keys(r.PathValue("id"))
	if action, msisdn := payer(body); action == "confirm" {
		keys.MSISDN = msisdn
	}
	return keys
}

// page shows the page of a session. It is not found unless the URL is used as given.
func (s *Stub) page(c *operatorstub.Call) operatorstub.Response {
	t := s.find(c.Request.PathValue("id"))
	if t == nil || c.Request.URL.RawQuery != t.Details["query"] {
		return operatorstub.HTML(http.StatusNotFound, "This payment link is wrong.")
	}
	return show(t, http.StatusOK, "")
}

func show(t *operatorstub.Transaction, status int, notice string) operatorstub.Response {
	page := operatorstub.Page{
		Title: "Pay " + t.Details["business_name"] + " with Wave", Amount: t.Amount, Currency: t.Currency,
		OrderID: t.Details["client_reference"], Notice: notice,
	}
	if t.Status != "open" {
		page.Done, page.Notice = true, "This session is "+t.Status+"."
	}
	return page.Render(status)
}

// confirm serves the buttons of the page.
func (s *Stub) confirm(c *operatorstub.Call) operatorstub.Response {
	if page := s.page(c); page.Status != http.StatusOK {
		return page
	}
	t := s.find(c.Request.PathValue("id"))
	action, msisdn := payer(c.Body)
	switch {
	case t.Status != "open":
		return show(t, http.StatusOK, "")
	case action == "cancel":
		s.close(t, "expired", "cancelled")
		return redirect(t.Details["error_url"])
	case action == "close":
		return operatorstub.HTML(http.StatusOK, "You may close this window.")
	case action != "confirm" || msisdn == "":
		return show(t, http.StatusBadRequest, "Type a phone number with its country code.")
	}
	return s.pay(t, msisdn)
}

func redirect(address string) operatorstub.Response {
	return operatorstub.Response{Status: http.StatusSeeOther, Header: map[string]string{"Location": address}}
}

// pay is the payer's attempt to pay. A failed attempt leaves the session open.
func (s *Stub) pay(t *operatorstub.Transaction, msisdn string) operatorstub.Response {
	outcome := s.platform.OutcomeFor(msisdn)
	code := failures[outcome.Result]
	if restricted := t.Details["payer"]; restricted != "" && restricted != "+"+msisdn {
		code = "payer-mobile-mismatch"
	}
	switch {
	case code != "":
		t.Details["error"] = code
		s.sendLater(t, []operatorstub.Callback{s.event(t, operatorstub.Refused)})
		return show(t, http.StatusOK, "The payment failed: "+code+". You may try again.")
	case outcome.Result == operatorstub.Undecided:
		return show(t, http.StatusOK, "The payment is in progress.")
	}
	t.Outcome, t.MSISDN, t.Details["transaction_id"] = outcome, msisdn, "T"+strings.ToUpper(s.platform.NewID(5))
	s.close(t, "complete", "succeeded")
	made := map[operatorstub.Result]operatorstub.Callback{} // a webhook that comes again has the same id
	callbacks := s.platform.Decide(t, func(r operatorstub.Result) operatorstub.Callback {
		if _, ok := made[r]; !ok {
			made[r] = s.event(t, r)
		}
		return made[r]
	})
	response := redirect(t.Details["success_url"])
	if outcome.CallbackFirst {
		response.First = callbacks
		return response
	}
	s.sendLater(t, callbacks)
	return response
}

func (s *Stub) sendLater(t *operatorstub.Transaction, callbacks []operatorstub.Callback) {
	s.platform.After(webhookDelay, func() { s.platform.Send(t, callbacks) })
}

// event is the webhook of a payment that succeeded or failed.
func (s *Stub) event(t *operatorstub.Transaction, result operatorstub.Result) operatorstub.Callback {
	for _, w := range s.credentials.Wallets {
		if w.APIKey != t.Details["wallet"] {
			continue
		}
		if result == operatorstub.Paid {
			return s.webhook(w, "checkout.session.completed", s.view(t))
		}
		view := s.view(t) // as it was: open and not paid
		maps.Copy(view, map[string]any{"checkout_status": "open", "payment_status": "processing",
			"transaction_id": nil, "when_completed": nil})
		if view["last_payment_error"] == nil {
			view["last_payment_error"] = apiError("payment-failure")
		}
		return s.webhook(w, "checkout.session.payment_failed", view)
	}
	return operatorstub.Callback{}
}

func (s *Stub) sendTestEvent(*operatorstub.Call) operatorstub.Response {
	for _, w := range s.credentials.Wallets {
		event := s.webhook(w, "test.test_event", map[string]any{"test_key": "test_value"})
		s.sendLater(&operatorstub.Transaction{}, []operatorstub.Callback{event})
	}
	return operatorstub.Response{Status: http.StatusNoContent}
}

// webhook makes a webhook of a wallet. Each attempt is signed with its own time.
func (s *Stub) webhook(w Wallet, kind string, data map[string]any) operatorstub.Callback {
	body := operatorstub.JSON(0, map[string]any{"id": "EV_" + s.platform.NewID(6), "type": kind, "data": data}).Body
	shared := s.platform.Quirk("shared_secret")
	return operatorstub.Callback{
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
