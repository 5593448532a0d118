package wave

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	kit "mobilegateway/internal/operatorstub"
)

// failures are the codes of the failed payments that all stubs know.
var failures = map[kit.Result]string{kit.Refused: "payment-failure", kit.NoFunds: "insufficient-funds"}

func page(t *kit.Transaction) kit.Page {
	return kit.Page{Title: "Pay " + t.Details["business_name"] + " with Wave", Amount: t.Amount, Currency: t.Currency,
		OrderID: t.Sent.Text("client_reference")}
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
		response.First = webhooks
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
