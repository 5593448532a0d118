package delivery_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// sendUserSMS makes one try at the purchaser's SMS, after as many as the entry says, and gives the entry as it is then.
func sendUserSMS(k *deliverytest.DeliveryFixture, e *ledger.Entry) *ledger.Entry {
	changed := e.Clone()
	k.Courier.SendUserSMS(context.Background(), e)(changed)
	return changed
}

// The wording is the operator's, in the payment's language; the number is in E.164, the key the order_id.
func TestUserSMSText(t *testing.T) {
	cases := []struct {
		operator, lang, text string
	}{
		{"sandbox", "fr", "Sandbox : votre paiement de 500 XOF à DemoShop est confirmé. Réf. DemoShop_1"},
		{"sandbox", "en", "Sandbox: your payment of 500 XOF to DemoShop is confirmed. Ref. DemoShop_1"},
		{"orange", "fr", "Orange Money : votre paiement de 500 XOF à DemoShop est confirmé. Réf. DemoShop_1"},
		{"mtn", "en", "MTN MoMo: your payment of 500 XOF to DemoShop is confirmed. Ref. DemoShop_1"},
	}
	for _, c := range cases {
		k := deliverytest.New(t)
		e := k.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.Operator, e.Lang = c.operator, c.lang })
		if after := sendUserSMS(k, e); after.UserSMS != ledger.UserSMSSent {
			t.Errorf("%s %s: %q", c.operator, c.lang, after.UserSMS)
		}
		call := k.Operator.UserSMSCalls()[0]
		if call.Text != c.text || call.MSISDN != "+225"+deliverytest.MSISDN || call.IdempotencyKey != "DemoShop_1" || call.Operator != c.operator ||
			call.AccountID != "a1" || call.MCO != "OCI" || call.Country != "CI" || call.MayRepeat || call.GWToken != "" || call.GWAlias != "" {
			t.Errorf("%+v", call)
		}
	}
	k := deliverytest.New(t)
	dinars := k.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
		e.Country, e.Currency, e.Exponent, e.AmountMinor, e.MSISDN = "TN", "TND", 3, 1500, "20123456"
	})
	sendUserSMS(k, dinars)
	if call := k.Operator.UserSMSCalls()[0]; !strings.Contains(call.Text, "1.500 TND") || call.MSISDN != "+21620123456" {
		t.Errorf("%+v", call)
	}
	k = deliverytest.New(t)
	foreignNumber := k.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.Country, e.MSISDN = "SN", "+2250700008837" })
	sendUserSMS(k, foreignNumber)
	if call := k.Operator.UserSMSCalls()[0]; call.MSISDN != "+2250700008837" || call.Country != "SN" {
		t.Errorf("a number of another country: %+v", call)
	}
}

func TestUserSMSOutcomes(t *testing.T) {
	schedule := deliverytest.PollSchedule()
	result := func(o operator.Outcome, duplicate bool) operator.Result {
		return operator.Result{Outcome: o, DuplicateKey: duplicate}
	}
	cases := []struct {
		name   string
		result operator.Result
		tried  int
		want   ledger.UserSMSState
		wait   time.Duration
	}{
		{"sent", result(operator.Succeeded, false), 0, ledger.UserSMSSent, 0},
		{"refused", result(operator.Refused, false), 0, ledger.UserSMSFailed, 0},
		{"a duplicate at the first try is not understood", result(operator.Unknown, true), 0, ledger.UserSMSDue, schedule[0]},
		{"a duplicate later was ours", result(operator.Unknown, true), 1, ledger.UserSMSSent, 0},
		{"released", result(operator.NotApplied, false), 0, ledger.UserSMSDue, schedule[0]},
		{"unknown again", result(operator.Unknown, false), 2, ledger.UserSMSDue, schedule[2]},
		{"the schedule's last wait", result(operator.Unknown, false), len(schedule) - 1, ledger.UserSMSDue, schedule[len(schedule)-1]},
		{"released at the end", result(operator.NotApplied, false), len(schedule), ledger.UserSMSFailed, 0},
		{"unknown at the end", result(operator.Unknown, false), len(schedule), ledger.UserSMSUnknown, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			k.Operator.SetUserSMSFunc(func(operator.UserSMSCall) operator.Result { return c.result })
			e := k.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.UserSMSAttempts = c.tried })
			after := sendUserSMS(k, e)
			if after.UserSMS != c.want || c.wait > 0 && !after.UserSMSAt.Equal(k.Clock.Now().Add(c.wait)) {
				t.Errorf("%q at %s", after.UserSMS, after.UserSMSAt)
			}
			if call := k.Operator.UserSMSCalls()[0]; call.MayRepeat != (c.tried > 0) {
				t.Errorf("Resend %v", call.MayRepeat)
			}
		})
	}
}

func TestUserSMSWithoutRecipient(t *testing.T) {
	t.Run("a payment without a number owes none", func(t *testing.T) {
		k := deliverytest.New(t)
		e := k.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) { e.Channel, e.MSISDN = "web", "" })
		e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Successful, UserSMS: true}, k.Clock.Now())
		if e.UserSMS != "" {
			t.Errorf("%q", e.UserSMS)
		}
	})
	t.Run("the number that the operator gave", func(t *testing.T) {
		k := deliverytest.New(t)
		e := k.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) { e.Channel, e.MSISDN = "web", "" })
		e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Successful, UserSMS: true, MSISDN: "2250701020304"}, k.Clock.Now())
		if sendUserSMS(k, e).UserSMS != ledger.UserSMSSent || k.Operator.UserSMSCalls()[0].MSISDN != "+2250701020304" {
			t.Errorf("%+v", k.Operator.UserSMSCalls())
		}
	})
	t.Run("a number that is none is given up", func(t *testing.T) {
		k := deliverytest.New(t)
		e := k.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.MSISDN = "12" })
		if after := sendUserSMS(k, e); after.UserSMS != ledger.UserSMSFailed || len(k.Operator.UserSMSCalls()) != 0 {
			t.Errorf("%q", after.UserSMS)
		}
	})
	t.Run("an operator that sends it itself", func(t *testing.T) {
		o := &deliverytest.Operator{}
		k := deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o})
		e := k.StoreFinalPayment("DemoShop_1", ledger.Successful)
		if after := sendUserSMS(k, e); after.UserSMS != ledger.UserSMSFailed || len(o.UserSMSCalls()) != 0 {
			t.Errorf("%q", after.UserSMS)
		}
	})
}
