package pay_test

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
)

// decision "pay-repeat" and "fingerprint".
func TestRepeat(t *testing.T) {
	for name, e := range map[string]*operationtest.Event{
		"the same":               webEvent(t),
		"another case of names":  webEvent(t).SetHeader("mno-name", "ORANGE").SetHeader("country-code", "CI"),
		"another language":       webEvent(t).SetHeader("lang", "en"),
		"another unknown header": webEvent(t).SetHeader("X-Trace", "2"),
	} {
		t.Run("decision pay-repeat: "+name+" replays", func(t *testing.T) {
			w, first := webSuite.SendFirst(t)
			w.Clock.Advance(time.Hour)
			w.Send(t, e).AssertRepeatOf(t, first)
			w.AssertSingleEffect(t, expectedEffect, 1)
		})
	}
	for name, e := range map[string]*operationtest.Event{
		"amount":       webEvent(t).SetBodyPart("amount", 1501),
		"state":        webEvent(t).SetBodyPart("state", "x"),
		"user_msisdn":  webEvent(t).SetBodyPart("user_msisdn", operationtest.MSISDN),
		"an extra":     webEvent(t).SetBodyPart("extra", 1),
		"mno-name":     webEvent(t).SetHeader("mno-name", "mtn"),
		"country-code": webEvent(t).SetHeader("country-code", "sn"),
		"channel":      ussdEvent(t),
		"notif_url":    webEvent(t).SetBodyPart("notif_url", "https://shop.example.com/other"),
	} {
		t.Run("decision pay-repeat: another "+name+" is 409", func(t *testing.T) {
			w, _ := webSuite.SendFirst(t)
			response := w.Send(t, e)
			response.AssertError(t, 409, "SVC0005", order, "order_id")
			response.AssertHeader(t, "Retry-After", "")
			w.AssertSingleEffect(t, expectedEffect, 1)
		})
	}
}

// decision "fingerprint": each part of the routing changes the fingerprint; TestRepeat covers operator and country.
func TestFingerprint(t *testing.T) {
	w := newFixture(t)
	w.Send(t, ussdEvent(t)).AssertStatus(t, 201)
	w.Send(t, ussdEvent(t).SetHeader("channel", "tpe")).AssertError(t, 409, "SVC0005", order, "order_id")
	w.AssertSingleEffect(t, expectedEffect, 1)
}

// decision "pay-otp".
func TestOTP(t *testing.T) {
	t.Run("decision pay-otp: a replay echoes the code of its own request", func(t *testing.T) {
		w := newFixture(t)
		first := w.Send(t, ussdEvent(t)).AssertStatus(t, 201)
		for _, code := range []string{"111222", ""} {
			e := ussdEvent(t).SetBodyPart("otp_code", code)
			if code == "" {
				e.RemoveBodyPart("otp_code")
			}
			again := w.Send(t, e).AssertStatus(t, 201)
			again.AssertText(t, "otp_code", code)
			again.AssertText(t, "Transaction-id", first.Text("Transaction-id"))
			again.AssertHeader(t, "Idempotent-Replayed", "true")
		}
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision pay-otp: sent to the operator, stored nowhere", func(t *testing.T) {
		w := newFixture(t)
		w.Send(t, ussdEvent(t)).AssertStatus(t, 201)
		if sent := w.Driver.Calls()[0].Pay.OTP; sent != operationtest.OTP {
			t.Errorf("the operator gets the code %q", sent)
		}
		if stored := string(w.OnlyEntry(t, ledger.Payment).Response.Body); strings.Contains(stored, "otp") {
			t.Errorf("the code is stored: %s", stored)
		}
	})
	t.Run("decision pay-otp: unused on the web", func(t *testing.T) {
		w := newFixture(t)
		response := w.Send(t, webEvent(t).SetBodyPart("otp_code", operationtest.OTP)).AssertStatus(t, 201)
		if strings.Contains(response.Body, "otp") || w.Driver.Calls()[0].Pay.OTP != "" {
			t.Errorf("the code is used: %s", response.Body)
		}
	})
	t.Run("decision pay-otp: with HTML in it", func(t *testing.T) {
		response := newFixture(t).Send(t, ussdEvent(t).SetBodyPart("otp_code", `<&"\`)).AssertStatus(t, 201)
		response.AssertText(t, "otp_code", `<&"\`)
	})
	t.Run("decision pay-otp: not in a refusal", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.RefuseFinally("POL1000"))
		if response := w.Send(t, ussdEvent(t)); strings.Contains(response.Body, "otp") {
			t.Errorf("the refusal contains the code: %s", response.Body)
		}
	})
}

// decision "pay-unknown".
func TestUnknownOutcome(t *testing.T) {
	t.Run("decision pay-unknown: a terminal gets 201 pending, and it is never sent again", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.LoseResponse)
		first := w.Send(t, ussdEvent(t)).AssertStatus(t, 201)
		first.AssertText(t, "status", "pending")
		first.AssertText(t, "otp_code", operationtest.OTP)
		if reference := first.RawJSON("extTransaction-id"); reference != `""` {
			t.Errorf("extTransaction-id %s, want an empty text", reference)
		}
		existing := w.OnlyEntry(t, ledger.Payment)
		if existing.State != ledger.Unknown || !existing.DueAt.Equal(w.Clock.Now().Add(firstPoll)) {
			t.Errorf("decision pay-poll: state %s, due %s", existing.State, existing.DueAt)
		}
		w.Send(t, ussdEvent(t)).AssertRepeatOf(t, first)
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision pay-unknown: the web gets 504, and may retry", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.LoseResponse, operationtest.RespondUnavailable)
		for range 2 {
			w.Send(t, webEvent(t)).AssertUnknown(t)
		}
		first := w.Send(t, webEvent(t)).AssertStatus(t, 201)
		w.Send(t, webEvent(t)).AssertRepeatOf(t, first)
		w.AssertSingleEffect(t, expectedEffect, 3)
	})
	t.Run("decision pay-unknown: refused at once", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.RefuseFinally("POL1000"))
		first := w.Send(t, ussdEvent(t))
		first.AssertError(t, 403, "POL1000")
		existing := w.OnlyEntry(t, ledger.Payment)
		if existing.Status != ledger.Failed || existing.State != ledger.Refused {
			t.Errorf("state %s, status %s; want refused, failed", existing.State, existing.Status)
		}
		if existing.FailureReason != ledger.NotEnoughFunds {
			t.Errorf("the failure reason is %q, want %q", existing.FailureReason, ledger.NotEnoughFunds)
		}
		if len(existing.Outbox.Waiting) != 0 {
			t.Errorf("the merchant has the response and is notified too: %+v", existing.Outbox.Waiting)
		}
		w.Send(t, ussdEvent(t)).AssertRepeatOf(t, first)
		w.Send(t, ussdEvent(t).SetBodyPart("amount", 1)).AssertError(t, 409, "SVC0005", order, "order_id")
	})
	t.Run("decision pay-unknown: another body while unknown", func(t *testing.T) {
		w := webSuite.LoseFirst(t)
		w.Send(t, webEvent(t).SetBodyPart("amount", 1)).AssertError(t, 409, "SVC0005", order, "order_id")
	})
	t.Run("decision pay-unknown: a callback ended it in the meantime", func(t *testing.T) {
		w := webSuite.LoseFirst(t)
		updated := w.OnlyEntry(t, ledger.Payment)
		updated.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Successful, Source: "callback"}, w.Clock.Now())
		w.Ledger.Overwrite(updated)
		w.Send(t, webEvent(t)).AssertError(t, 409, "SVC0005", order, "order_id")
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
}

// decision "released".
func TestReleased(t *testing.T) {
	for _, channel := range []string{"web", "ussd"} {
		t.Run("decision released: the same request takes over on "+channel, func(t *testing.T) {
			w := newFixture(t).WithBehaviours(operationtest.RespondUnavailable, operationtest.RejectCredentials,
				operationtest.RejectRequest("SVC0002", "x"))
			w.Send(t, loadEvent(t, channel)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
			w.Send(t, loadEvent(t, channel).SetBodyPart("amount", 1)).AssertError(t, 409, "SVC0005", order, "order_id")
			w.Send(t, loadEvent(t, channel)).AssertError(t, 502, "SVC0001", "PDK_SMSW_0002")
			w.Send(t, loadEvent(t, channel)).AssertError(t, 400, "SVC0002", "x")
			w.Send(t, loadEvent(t, channel)).AssertStatus(t, 201)
			w.AssertSingleEffect(t, expectedEffect, 4)
		})
	}
}

// decision "restored".
func TestRestored(t *testing.T) {
	for _, channel := range []string{"web", "ussd"} {
		newSuite(channel).CheckRestored(t, 409)
	}
}
