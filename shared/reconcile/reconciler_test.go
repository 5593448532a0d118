package reconcile_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/reconcile"
)

func TestLookUp(t *testing.T) {
	report := reconcile.OperatorReport{Status: ledger.Successful, Amount: "500", Currency: "XOF", OperatorReference: "op-1", MSISDN: "07"}
	cases := []struct {
		name string
		told operator.StatusResponse
		want reconcile.LookupResult
	}{
		{"final", operator.StatusResponse{StatusKnown: true, OperatorStatus: "Success", Amount: "500", Currency: "XOF", OperatorReference: "op-1", MSISDN: "07"},
			reconcile.LookupResult{Supported: true, Responded: true, StatusFinal: true, Report: report}},
		{"pending", operator.StatusResponse{StatusKnown: true, OperatorStatus: "LOADED"},
			reconcile.LookupResult{Supported: true, Responded: true, Report: reconcile.OperatorReport{Status: ledger.Pending}}},
		{"no such order", operator.StatusResponse{OrderNotFound: true}, reconcile.LookupResult{Supported: true, Responded: true, NotFound: true}},
		{"silent", operator.StatusResponse{}, reconcile.LookupResult{Supported: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			k.Operator.SetLookupResult(c.told)
			got := k.Reconciler.LookUp(context.Background(), k.StorePendingPayment("DemoShop_1"))
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("an unknown word is no answer, and the log says why", func(t *testing.T) {
		k := deliverytest.New(t)
		k.Operator.SetStatus("exploded")
		if got := k.Reconciler.LookUp(context.Background(), k.StorePendingPayment("DemoShop_1")); got.Responded || got.Cause == nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("not offered", func(t *testing.T) {
		o := &deliverytest.Operator{}
		k := deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o})
		if got := k.Reconciler.LookUp(context.Background(), k.StorePendingPayment("DemoShop_1")); got != (reconcile.LookupResult{}) {
			t.Errorf("%+v", got)
		}
	})
}

// deadlineReader remembers how long a lookup was given.
type deadlineReader struct {
	*deliverytest.Operator
	remaining time.Duration
}

func (d *deadlineReader) LookUpPayment(ctx context.Context, _ operator.StatusCall) operator.StatusResponse {
	until, _ := ctx.Deadline()
	d.remaining = time.Until(until)
	return operator.StatusResponse{}
}

func TestLookUpTimeout(t *testing.T) {
	o := &deliverytest.Operator{}
	driver := &deadlineReader{Operator: o}
	k := deliverytest.NewWithDriver(t, o, driver)
	k.Reconciler.LookUp(context.Background(), k.StorePendingPayment("DemoShop_1"))
	if driver.remaining <= 0 || driver.remaining > 5*time.Second {
		t.Errorf("given %s", driver.remaining)
	}
}

func TestNewStatusReport(t *testing.T) {
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
			e := k.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) { e.Exponent = c.exponent })
			r := k.Reconciler.NewStatusReport(e, reconcile.OperatorReport{Status: ledger.Failed, Amount: c.amount, Currency: "XOF"}, reconcile.SourceStatus)
			if r.HasAmount != c.has || r.AmountMinor != c.minor || r.Source != "getStatus" || !r.UserSMS || r.Currency != "XOF" {
				t.Errorf("%+v", r)
			}
		})
	}
	o := &deliverytest.Operator{}
	k := deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o})
	if r := k.Reconciler.NewStatusReport(k.StorePendingPayment("DemoShop_1"), reconcile.OperatorReport{}, reconcile.SourceCallback); r.UserSMS {
		t.Error("an SMS is owed that nobody can send")
	}
}
