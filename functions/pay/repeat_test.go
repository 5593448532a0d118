package pay_test

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
)

// lease is longer than any reservation lives.
const lease = time.Minute

// decision "pay-repeat" and "fingerprint".
func TestRepeat(t *testing.T) {
	for name, change := range map[string]func(*operationtest.Event) *operationtest.Event{
		"the same": func(e *operationtest.Event) *operationtest.Event { return e },
		"another case of names": func(e *operationtest.Event) *operationtest.Event {
			return e.Header("mno-name", "ORANGE").Header("country-code", "CI")
		},
		"another language":       func(e *operationtest.Event) *operationtest.Event { return e.Header("lang", "en") },
		"another unknown header": func(e *operationtest.Event) *operationtest.Event { return e.Header("X-Trace", "2") },
	} {
		t.Run("decision pay-repeat: "+name+" replays", func(t *testing.T) {
			w := shop(t)
			first := w.Do(t, web(t)).Succeeds(t, 201)
			w.Clock.Advance(time.Hour)
			w.Do(t, change(web(t))).Replays(t, first)
			w.OneEffect(t, effect, 1)
		})
	}
	for name, e := range map[string]*operationtest.Event{
		"amount":       web(t).Set("amount", 1501),
		"state":        web(t).Set("state", "x"),
		"user_msisdn":  web(t).Set("user_msisdn", operationtest.MSISDN),
		"an extra":     web(t).Set("extra", 1),
		"mno-name":     web(t).Header("mno-name", "mtn"),
		"country-code": web(t).Header("country-code", "sn"),
		"channel":      ussd(t),
		"notif_url":    web(t).Set("notif_url", "https://shop.example.com/other"),
	} {
		t.Run("decision pay-repeat: another "+name+" is 409", func(t *testing.T) {
			w := shop(t)
			w.Do(t, web(t)).Succeeds(t, 201)
			answer := w.Do(t, e)
			answer.Fails(t, 409, "SVC0005", order, "order_id")
			if answer.Header["Retry-After"] != "" {
				t.Errorf("Retry-After %s", answer.Header["Retry-After"])
			}
			w.OneEffect(t, effect, 1)
		})
	}
}

// decision "fingerprint": each part of the routing decides alone; the country stands in TestRepeat.
func TestFingerprint(t *testing.T) {
	for header, value := range map[string]string{"channel": "tpe", "mno-name": "mtn"} {
		t.Run("decision fingerprint: another "+header+" with the same body", func(t *testing.T) {
			w := shop(t)
			w.Do(t, ussd(t)).Succeeds(t, 201)
			w.Do(t, ussd(t).Header(header, value)).Fails(t, 409, "SVC0005", order, "order_id")
			w.OneEffect(t, effect, 1)
		})
	}
}

// decision "pay-otp".
func TestOTP(t *testing.T) {
	t.Run("decision pay-otp: a replay echoes the code in hand", func(t *testing.T) {
		w := shop(t)
		first := w.Do(t, ussd(t)).Succeeds(t, 201)
		for _, code := range []string{"111222", ""} {
			e := ussd(t).Set("otp_code", code)
			if code == "" {
				e.Remove("otp_code")
			}
			again := w.Do(t, e).Succeeds(t, 201)
			if again.Text("otp_code") != code || again.Header["Idempotent-Replayed"] != "true" || again.Text("Transaction-id") != first.Text("Transaction-id") {
				t.Errorf("replay with %q: %s", code, again.Body)
			}
		}
		w.OneEffect(t, effect, 1)
	})
	t.Run("decision pay-otp: sent to the operator, stored nowhere", func(t *testing.T) {
		w := shop(t)
		w.Do(t, ussd(t)).Succeeds(t, 201)
		if w.Driver.Calls()[0].Pay.OTP != operationtest.OTP || strings.Contains(string(w.Only(t, ledger.Payment).AnswerBody), "otp") {
			t.Error("not sent, or stored")
		}
	})
	t.Run("decision pay-otp: unused on the web", func(t *testing.T) {
		w := shop(t)
		answer := w.Do(t, web(t).Set("otp_code", operationtest.OTP)).Succeeds(t, 201)
		if strings.Contains(answer.Body, "otp") || w.Driver.Calls()[0].Pay.OTP != "" {
			t.Errorf("used: %s", answer.Body)
		}
	})
	t.Run("decision pay-otp: with HTML in it", func(t *testing.T) {
		answer := shop(t).Do(t, ussd(t).Set("otp_code", `<&"\`)).Succeeds(t, 201)
		if answer.Text("otp_code") != `<&"\` {
			t.Errorf("echo %s", answer.Raw("otp_code"))
		}
	})
	t.Run("decision pay-otp: not in a refusal", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.Refuse("POL1000"))
		if answer := w.Do(t, ussd(t)); strings.Contains(answer.Body, "otp") {
			t.Errorf("told: %s", answer.Body)
		}
	})
}

// decision "pay-unknown".
func TestUnknown(t *testing.T) {
	t.Run("decision pay-unknown: a terminal is answered 201 pending, never sent again", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		first := w.Do(t, ussd(t)).Succeeds(t, 201)
		if first.Text("status") != "pending" || first.Raw("extTransaction-id") != `""` || first.Text("otp_code") != operationtest.OTP {
			t.Errorf("answer %s", first.Body)
		}
		stored := w.Only(t, ledger.Payment)
		if stored.State != ledger.Unknown || !stored.Due.Equal(w.Clock.Now().Add(firstPoll)) {
			t.Errorf("decision pay-poll: state %s, due %s", stored.State, stored.Due)
		}
		w.Do(t, ussd(t)).Replays(t, first)
		w.OneEffect(t, effect, 1)
	})
	t.Run("decision pay-unknown: the web is answered 504, and may retry", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer, operationtest.Down)
		for range 2 {
			answer := w.Do(t, web(t))
			answer.Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
			if answer.Header["Retry-After"] == "" {
				t.Error("no Retry-After")
			}
		}
		first := w.Do(t, web(t)).Succeeds(t, 201)
		w.Do(t, web(t)).Replays(t, first)
		w.OneEffect(t, effect, 3)
	})
	t.Run("decision pay-unknown: refused at once", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.Refuse("POL1000"))
		first := w.Do(t, ussd(t))
		first.Fails(t, 403, "POL1000")
		stored := w.Only(t, ledger.Payment)
		if stored.Status != ledger.Failed || len(stored.Outbox) != 0 || stored.State != ledger.Refused {
			t.Errorf("stored %+v", stored)
		}
		w.Do(t, ussd(t)).Replays(t, first)
		w.Do(t, ussd(t).Set("amount", 1)).Fails(t, 409, "SVC0005", order, "order_id")
	})
	t.Run("decision repeat-window: the web never sends after it", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		w.Do(t, web(t)).Succeeds(t, 504)
		w.Clock.Advance(24 * time.Hour)
		w.Do(t, web(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		w.OneEffect(t, effect, 1)
	})
	t.Run("decision pay-unknown: another body while unknown", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		w.Do(t, web(t)).Succeeds(t, 504)
		w.Do(t, web(t).Set("amount", 1)).Fails(t, 409, "SVC0005", order, "order_id")
	})
	t.Run("decision pay-unknown: a callback settled it meanwhile", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		w.Do(t, web(t)).Succeeds(t, 504)
		settled := w.Only(t, ledger.Payment)
		settled.Resolve(ledger.Resolution{Status: ledger.Successful, Source: "callback"}, w.Clock.Now())
		w.Ledger.Put(settled)
		w.Do(t, web(t)).Fails(t, 409, "SVC0005", order, "order_id")
		w.OneEffect(t, effect, 1)
	})
}

// decision "released".
func TestReleased(t *testing.T) {
	for _, channel := range []string{"web", "ussd"} {
		t.Run("decision released: the same request takes over on "+channel, func(t *testing.T) {
			w := shop(t)
			w.Driver.Script(operationtest.Down, operationtest.RefuseUs, operationtest.Reject("SVC0002", "x"))
			w.Do(t, load(t, channel)).Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
			w.Do(t, load(t, channel).Set("amount", 1)).Fails(t, 409, "SVC0005", order, "order_id")
			w.Do(t, load(t, channel)).Fails(t, 502, "SVC0001", "PDK_SMSW_0002")
			w.Do(t, load(t, channel)).Fails(t, 400, "SVC0002", "x")
			w.Do(t, load(t, channel)).Succeeds(t, 201)
			w.OneEffect(t, effect, 4)
		})
	}
}
