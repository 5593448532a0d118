package settlement_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/settlement"
)

func TestAsk(t *testing.T) {
	report := settlement.Report{Status: ledger.Successful, Amount: "500", Currency: "XOF", OperatorReference: "op-1", MSISDN: "07"}
	cases := []struct {
		name string
		told operator.StatusAnswer
		want settlement.Answer
	}{
		{"final", operator.StatusAnswer{Known: true, Status: "Success", Amount: "500", Currency: "XOF", OperatorReference: "op-1", MSISDN: "07"},
			settlement.Answer{Offered: true, Answered: true, Final: true, Report: report}},
		{"pending", operator.StatusAnswer{Known: true, Status: "LOADED"},
			settlement.Answer{Offered: true, Answered: true, Report: settlement.Report{Status: ledger.Pending}}},
		{"no such order", operator.StatusAnswer{NotFound: true}, settlement.Answer{Offered: true, Answered: true, NotFound: true}},
		{"silent", operator.StatusAnswer{}, settlement.Answer{Offered: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			k.Operator.Tells(c.told)
			got := k.Settlement.Ask(context.Background(), k.Payment("DemoShop_1"))
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("an unknown word is no answer, and the log says why", func(t *testing.T) {
		k := deliverytest.New(t)
		k.Operator.Says("exploded")
		if got := k.Settlement.Ask(context.Background(), k.Payment("DemoShop_1")); got.Answered || got.Cause == nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("not offered", func(t *testing.T) {
		o := &deliverytest.Operator{}
		k := deliverytest.With(t, o, deliverytest.Mute{Driver: o})
		if got := k.Settlement.Ask(context.Background(), k.Payment("DemoShop_1")); got != (settlement.Answer{}) {
			t.Errorf("%+v", got)
		}
	})
}

// deadline remembers how long a lookup was given.
type deadline struct {
	*deliverytest.Operator
	left time.Duration
}

func (d *deadline) PaymentStatus(ctx context.Context, _ operator.StatusCall) operator.StatusAnswer {
	until, _ := ctx.Deadline()
	d.left = time.Until(until)
	return operator.StatusAnswer{}
}

func TestTheLookupIsBounded(t *testing.T) {
	o := &deliverytest.Operator{}
	driver := &deadline{Operator: o}
	k := deliverytest.With(t, o, driver)
	k.Settlement.Ask(context.Background(), k.Payment("DemoShop_1"))
	if driver.left <= 0 || driver.left > 5*time.Second {
		t.Errorf("given %s", driver.left)
	}
}

func TestResolution(t *testing.T) {
	cases := []struct {
		name, amount string
		exponent     int
		has          bool
		minor        int64
	}{
		{"none", "", 0, false, 0},
		{"whole", "500", 0, true, 500},
		{"with zeros", "500.000", 0, true, 500},
		{"dinars", "1.5", 3, true, 1500},
		{"too fine is not ours", "500.5", 0, true, -1},
		{"zero is not ours", "0", 0, true, -1},
		{"no amount is not ours", "lots", 0, true, -1},
		{"an exponent is not ours", "5e2", 0, true, -1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			e := k.Payment("DemoShop_1", func(e *ledger.Entry) { e.Exponent = c.exponent })
			r := k.Settlement.Resolution(e, settlement.Report{Status: ledger.Failed, Amount: c.amount, Currency: "XOF"}, settlement.SourceStatus)
			if r.HasAmount != c.has || r.Minor != c.minor || r.Source != "getStatus" || !r.UserSMS || r.Currency != "XOF" {
				t.Errorf("%+v", r)
			}
		})
	}
	o := &deliverytest.Operator{}
	k := deliverytest.With(t, o, deliverytest.Mute{Driver: o})
	if r := k.Settlement.Resolution(k.Payment("DemoShop_1"), settlement.Report{}, settlement.SourceCallback); r.UserSMS {
		t.Error("an SMS is owed that nobody can send")
	}
}
