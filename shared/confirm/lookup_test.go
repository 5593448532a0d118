package confirm_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func TestLookUp(t *testing.T) {
	report := operator.StatusReport{
		Status: ledger.Successful, Amount: "500", Currency: "XOF", OperatorReference: "op-1", MSISDN: "07",
		Reason: ledger.NotEnoughFunds,
	}
	cases := []struct {
		name     string
		response operator.StatusResponse
		want     confirm.LookupResult
	}{
		{"final", deliverytest.LookupResponse("Success", report),
			confirm.LookupResult{Supported: true, Responded: true, StatusFinal: true, Report: report}},
		{"pending", deliverytest.LookupResponse("LOADED", operator.StatusReport{}), confirm.LookupResult{
			Supported: true, Responded: true, Report: operator.StatusReport{Status: ledger.Pending},
		}},
		{"no such order", operator.StatusResponse{OrderNotFound: true},
			confirm.LookupResult{Supported: true, Responded: true, NotFound: true}},
		{"no response", operator.StatusResponse{}, confirm.LookupResult{Supported: true}},
		{"an unknown status counts as no response, with a cause",
			deliverytest.LookupResponse("exploded", operator.StatusReport{}),
			confirm.LookupResult{Supported: true, Cause: operator.ErrUnknownStatus}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			k.Operator.SetLookupResult(c.response)
			got := k.Confirmer.LookUp(context.Background(), k.StorePendingPayment("DemoShop_1"))
			if diff := cmp.Diff(c.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("lookup result (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("not supported", func(t *testing.T) {
		o := &deliverytest.Operator{}
		k := deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o})
		got := k.Confirmer.LookUp(context.Background(), k.StorePendingPayment("DemoShop_1"))
		if diff := cmp.Diff(confirm.LookupResult{}, got); diff != "" {
			t.Errorf("lookup result (-want +got):\n%s", diff)
		}
	})
}

// deadlineReader records the time that a lookup has.
type deadlineReader struct {
	*deliverytest.Operator
	remaining time.Duration
}

func (d *deadlineReader) LookUpPayment(ctx context.Context, _ operator.StatusCall) operator.StatusResponse {
	deadline, _ := ctx.Deadline()
	d.remaining = time.Until(deadline)
	return operator.StatusResponse{}
}

func TestLookUpTimeout(t *testing.T) {
	o := &deliverytest.Operator{}
	driver := &deadlineReader{Operator: o}
	k := deliverytest.NewWithDriver(t, o, driver)
	k.Confirmer.LookUp(context.Background(), k.StorePendingPayment("DemoShop_1"))
	if driver.remaining <= 0 || driver.remaining > 5*time.Second {
		t.Errorf("the lookup has %s, want at most 5 s", driver.remaining)
	}
}

func TestNewStatusReport(t *testing.T) {
	cases := []struct {
		name, amount string
		exponent     int
		hasAmount    bool
		minor        int64
	}{
		{"none", "", 0, false, 0},
		{"whole", "500", 0, true, 500},
		{"with zeros", "500.000", 0, true, 500},
		{"dinars", "1.5", 3, true, 1500},
		{"too many decimals are unreadable", "500.5", 0, true, -1},
		{"zero is unreadable", "0", 0, true, -1},
		{"a word is unreadable", "lots", 0, true, -1},
		{"an exponent is unreadable", "5e2", 0, true, -1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			e := k.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) { e.Amount.Exponent = c.exponent })
			report := operator.StatusReport{
				Status: ledger.Failed, Amount: c.amount, Currency: "XOF", Reason: ledger.NotEnoughFunds,
			}
			got := k.Confirmer.NewStatusReport(e, report, ledger.SourceLookup)
			want := ledger.StatusReport{
				Status: ledger.Failed, Source: "getStatus", Currency: "XOF", UserSMS: true,
				FailureReason: ledger.NotEnoughFunds, HasAmount: c.hasAmount, AmountMinor: c.minor,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("status report (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an operator without a user SMS", func(t *testing.T) {
		o := &deliverytest.Operator{}
		k := deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o})
		e := k.StorePendingPayment("DemoShop_1")
		if k.Confirmer.NewStatusReport(e, operator.StatusReport{}, ledger.SourceCallback).UserSMS {
			t.Error("an SMS is owed that the operator cannot send")
		}
	})
}
