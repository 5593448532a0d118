package delivery_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// sendUserSMS makes one attempt to send the payer's SMS, and returns the changed entry.
func sendUserSMS(k *deliverytest.DeliveryFixture, e *ledger.Entry) *ledger.Entry {
	changed := e.Clone()
	k.Courier.SendUserSMS(context.Background(), e, e.UserSMSClaim())(changed)
	return changed
}

// The operator defines the text, in the payment's language; the number is in E.164, the idempotency key the order_id.
func TestUserSMSText(t *testing.T) {
	cases := []struct {
		operator, lang, text string
	}{
		{"sandbox", "fr", "Sandbox : votre paiement de 500 XOF à DemoShop est confirmé. Réf. DemoShop_1"},
		{"sandbox", "en", "Sandbox: your payment of 500 XOF to DemoShop is confirmed. Ref. DemoShop_1"},
		{"orange", "fr", "Orange Money : votre paiement de 500 XOF à DemoShop est confirmé. Réf. DemoShop_1"},
		{"mtn", "en", "MTN MoMo: your payment of 500 XOF to DemoShop is confirmed. Ref. DemoShop_1"},
	}
	assertCall := func(t *testing.T, want operator.UserSMSCall, change func(*ledger.Entry)) {
		t.Helper()
		k := deliverytest.New(t)
		e := k.StoreFinalPayment("DemoShop_1", ledger.Successful, change)
		if after := sendUserSMS(k, e); after.UserSMS.State != ledger.UserSMSSent {
			t.Errorf("the SMS is %q, want sent", after.UserSMS.State)
		}
		want.Platform, want.UpstreamKey, want.OrderID, want.AccountID = want.Operator, "DemoShop_1", "DemoShop_1", "a1"
		if diff := cmp.Diff(want, k.Operator.UserSMSCalls()[0]); diff != "" {
			t.Errorf("call of the operator (-want +got):\n%s", diff)
		}
	}
	for _, c := range cases {
		assertCall(t, operator.UserSMSCall{
			Call:   operator.Call{Operator: c.operator, MCO: "OCI", Country: "CI"},
			MSISDN: "+225" + deliverytest.MSISDN, Text: c.text,
		}, func(e *ledger.Entry) { e.Route.Operator, e.Request.Lang = c.operator, c.lang })
	}
	assertCall(t, operator.UserSMSCall{
		Call:   operator.Call{Operator: "sandbox", MCO: "OTN", Country: "TN"},
		MSISDN: "+21620123456",
		Text:   "Sandbox : votre paiement de 1.500 TND à DemoShop est confirmé. Réf. DemoShop_1",
	}, func(e *ledger.Entry) {
		e.Route.Country, e.Amount.Currency, e.Amount.Exponent, e.Amount.Minor, e.Request.MSISDN = "TN", "TND", 3, 1500,
			"20123456"
	})
	assertCall(t, operator.UserSMSCall{
		Call:   operator.Call{Operator: "sandbox", MCO: "OSN", Country: "SN"},
		MSISDN: "+2250700008837", // a number of another country
		Text:   "Sandbox : votre paiement de 500 XOF à DemoShop est confirmé. Réf. DemoShop_1",
	}, func(e *ledger.Entry) { e.Route.Country, e.Request.MSISDN = "SN", "+2250700008837" })
}

func TestUserSMSOutcomes(t *testing.T) {
	schedule := deliverytest.PollSchedule()
	last := len(schedule)
	duplicate := operator.Result{DuplicateKey: true}
	cases := []struct {
		name         string
		result       operator.Result
		attemptsMade int
		want         ledger.UserSMSState
		wait         time.Duration
	}{
		{"sent", operator.Result{Outcome: operator.Succeeded}, 0, ledger.UserSMSSent, 0},
		{"refused", operator.Result{Outcome: operator.Refused}, 0, ledger.UserSMSFailed, 0},
		{"a duplicate on the first attempt is unknown", duplicate, 0, ledger.UserSMSDue, schedule[0]},
		{"a duplicate on a retry was sent before", duplicate, 1, ledger.UserSMSSent, 0},
		{"not applied", operator.Result{Outcome: operator.NotApplied}, 0, ledger.UserSMSDue, schedule[0]},
		{"unknown again", operator.Result{}, 2, ledger.UserSMSDue, schedule[2]},
		{"the last wait of the schedule", operator.Result{}, last - 1, ledger.UserSMSDue, schedule[last-1]},
		{"unproven earlier, not applied at the end", operator.Result{Outcome: operator.NotApplied}, last,
			ledger.UserSMSUnknown, 0},
		{"unknown at the end", operator.Result{}, last, ledger.UserSMSUnknown, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			k.Operator.UserSMSFunc = func(operator.UserSMSCall) operator.Result { return c.result }
			after := sendUserSMS(k, k.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
				e.UserSMS.Attempts, e.UserSMS.MaybeSent = c.attemptsMade, c.attemptsMade > 0
			}))
			if after.UserSMS.State != c.want {
				t.Errorf("the SMS is %q, want %q", after.UserSMS.State, c.want)
			}
			if wait := after.UserSMS.At.Sub(k.Clock.Now()); c.wait > 0 && wait != c.wait {
				t.Errorf("retried after %s, want %s", wait, c.wait)
			}
			if call := k.Operator.UserSMSCalls()[0]; call.MayRepeat != (c.attemptsMade > 0) {
				t.Errorf("MayRepeat %v after %d attempts", call.MayRepeat, c.attemptsMade)
			}
		})
	}
}

// A duplicate proves nothing if no earlier attempt can have reached the operator: it may be another transaction's key.
func TestUserSMSDuplicateWithoutEarlierSend(t *testing.T) {
	k := deliverytest.New(t)
	k.Operator.UserSMSFunc = func(operator.UserSMSCall) operator.Result { return operator.Result{DuplicateKey: true} }
	e := k.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.Outbox.URL = "" })
	for range len(k.Courier.SMSRetryDelays) {
		if e = sendUserSMS(k, e); e.UserSMS.State != ledger.UserSMSDue {
			t.Fatalf("the SMS is %q after duplicates only, want due", e.UserSMS.State)
		}
	}
	if e = sendUserSMS(k, e); e.UserSMS.State != ledger.UserSMSUnknown {
		t.Errorf("the SMS is %q after the last attempt, want unknown", e.UserSMS.State)
	}
}

// decision "user-sms": the relay's attempt has no lease, so it may repeat one that sent the SMS and left no trace. Its
// response proves nothing about that one: after the resend window nothing is sent.
func TestUserSMSAfterAnAttemptWithoutTrace(t *testing.T) {
	for name, result := range map[string]operator.Result{
		"not applied":     {Outcome: operator.NotApplied},
		"a duplicate key": {DuplicateKey: true},
		"no response":     {},
	} {
		k := deliverytest.New(t)
		k.Operator.UserSMSFunc = func(operator.UserSMSCall) operator.Result { return result }
		e := k.StoreFinalPayment("DemoShop_1", ledger.Successful)
		if e = sendUserSMS(k, e); e.UserSMS.State != ledger.UserSMSDue || !e.UserSMS.MaybeSent {
			t.Errorf("%s: after the relay's attempt %+v, want it due and maybe sent", name, e.UserSMS)
		}
		k.Clock.Advance(24 * time.Hour)
		e.ClaimUserSMS(k.Clock.Now())
		if e = sendUserSMS(k, e); e.UserSMS.State != ledger.UserSMSUnknown {
			t.Errorf("%s: a day later %+v, want unknown", name, e.UserSMS)
		}
		k.AssertUserSMSCalls(t, 1)
	}
}

// decision "repeat-window": after the operator's resend window nothing is sent that may have been sent before.
func TestUserSMSResendWindow(t *testing.T) {
	for _, c := range []struct {
		name      string
		maybeSent bool
		age       time.Duration
		want      ledger.UserSMSState
		calls     int
	}{
		{"inside the window", true, 24*time.Hour - 10*time.Minute - time.Second, ledger.UserSMSSent, 1},
		{"ten minutes before its end", true, 24*time.Hour - 10*time.Minute, ledger.UserSMSUnknown, 0},
		{"a first send, at any age", false, 48 * time.Hour, ledger.UserSMSSent, 1},
	} {
		k := deliverytest.New(t)
		e := k.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
			e.UserSMS.MaybeSent = c.maybeSent
		})
		k.Clock.Advance(c.age)
		if after := sendUserSMS(k, e); after.UserSMS.State != c.want || len(k.Operator.UserSMSCalls()) != c.calls {
			t.Errorf("%s: %q after %d calls, want %q after %d",
				c.name, after.UserSMS.State, len(k.Operator.UserSMSCalls()), c.want, c.calls)
		}
	}
}

func TestUserSMSWithoutRecipient(t *testing.T) {
	o := &deliverytest.Operator{}
	withoutSMS := deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o})
	cases := []struct {
		name     string
		fixture  *deliverytest.DeliveryFixture
		msisdn   string // of the request
		reported string // by the operator
		want     ledger.UserSMSState
		sentTo   string
	}{
		{"a payment without a number has no SMS", deliverytest.New(t), "", "", "", ""},
		{"a reported number", deliverytest.New(t), "", "2250701020304", ledger.UserSMSSent, "+2250701020304"},
		{"an invalid number", deliverytest.New(t), "12", "", ledger.UserSMSFailed, ""},
		{"an operator that sends the SMS itself", withoutSMS, deliverytest.MSISDN, "", ledger.UserSMSFailed, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := c.fixture
			e := k.StorePendingPayment("DemoShop_1",
				func(e *ledger.Entry) { e.Request.Channel, e.Request.MSISDN = "web", c.msisdn })
			report := ledger.StatusReport{Status: ledger.Successful, UserSMS: true, MSISDN: c.reported}
			e.ApplyFinalStatus(report, k.Clock.Now())
			if e.UserSMS.State != "" {
				e = sendUserSMS(k, e)
			}
			if e.UserSMS.State != c.want {
				t.Errorf("the SMS is %q, want %q", e.UserSMS.State, c.want)
			}
			sentTo := ""
			for _, call := range k.Operator.UserSMSCalls() {
				sentTo = call.MSISDN
			}
			if sentTo != c.sentTo {
				t.Errorf("sent to %q, want %q", sentTo, c.sentTo)
			}
		})
	}
}
