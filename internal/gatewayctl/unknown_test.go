package gatewayctl

import (
	"context"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// addUnknownSMS places an SMS whose outcome is unknown.
func (d *testTool) addUnknownSMS(shop onboardingResult, correlator string) ledger.Key {
	key := ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(shop.ID, correlator)}
	e := &ledger.Entry{
		Key: key, MerchantID: shop.ID, Merchant: shop.Name, Owner: "o", State: ledger.Unknown, EverUnknown: true, CreatedAt: d.now, Version: 2,
		Correlator: correlator, PollAt: d.now.Add(time.Hour), Operator: "sandbox", NotifyURL: "https://shop.example/r",
	}
	e.Reschedule()
	d.ledger.Overwrite(e)
	return key
}

// addUnknownPayment places a payment whose outcome is unknown.
func (d *testTool) addUnknownPayment(shop onboardingResult, number int) ledger.Key {
	e := d.addDeliveredPayment(shop, number, d.now)
	e.State, e.Status, e.FinalAt, e.Delivered, e.PollAt = ledger.Unknown, ledger.Pending, time.Time{}, nil, d.now.Add(time.Minute)
	e.Reschedule()
	d.ledger.Overwrite(e)
	return e.Key
}

// useSandboxOperator gives the sandbox an account that nobody answers at.
func (d *testTool) useSandboxOperator() {
	d.input = `{"sandbox":{"current":"a1","accounts":{"a1":{"base_url":"http://127.0.0.1:1","access_token":"t"}}}}`
	d.mustRun("operator set -"+confirmFlags, nil)
}

// decision "unknown-by-hand".
func TestUnknown(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	charge, lost := d.addUnknownCharge(shop, "c1"), d.addUnknownPayment(shop, 1)
	d.addDeliveredPayment(shop, 2, d.now)
	d.useSandboxOperator()
	var views []unknownView
	d.mustRun("unknown list", &views)
	if len(views) != 2 {
		t.Fatalf("list: %+v", views)
	}
	d.mustRun("unknown list --merchant ShopA --from 2026-03-01 --to 2026-03-01", &views)
	if len(views) != 2 {
		t.Fatalf("list of a day: %+v", views)
	}
	d.mustRun("unknown list --merchant ShopA --from 2026-03-02 --to 2026-03-02", &views)
	if len(views) != 0 {
		t.Fatalf("list of another day: %+v", views)
	}
	d.expectFailure("unknown list --merchant ShopA", ExitUsage, "--from")
	d.expectFailure("unknown resolve pay ShopA_1 --timeout 1s", ExitFailed, "did not answer")
	d.expectFailure("unknown resolve pay ShopA_1 --as applied", ExitUsage, "applied")
	d.expectFailure("unknown resolve pay ShopA_2", ExitFailed, "outcome is known: successful")
	d.expectFailure("unknown resolve pay ShopA_2 --as failed"+confirmFlags, ExitFailed, "outcome is known: successful")
	d.expectFailure("unknown resolve pay ShopA_9", ExitFailed, "no payment")
	d.expectFailure("unknown resolve charge "+charge.ID, ExitUsage, "asked")
	d.expectFailure("unknown resolve charge "+charge.ID+" --as failed", ExitUsage, "charge")
	d.mustRun("unknown resolve pay ShopA_1 --as successful", nil)
	if d.mustReadEntry(lost).StatusFinal() {
		t.Error("a dry run settled a payment")
	}
	d.expectFailure("unknown resolve pay ShopA_1 --as successful --yes", ExitUsage, "--reason")
	d.mustRun("unknown resolve pay ShopA_1 --as successful"+confirmFlags, nil)
	if e := d.mustReadEntry(lost); e.Status != ledger.Successful || len(e.Outbox) != 1 || e.UserSMS != ledger.UserSMSDue {
		t.Errorf("settled: %+v", e)
	}
	if _, out, _ := d.run("payment show ShopA_1"); !strings.Contains(out, "successful, says ama@desk: test") {
		t.Errorf("the history does not tell who: %s", out)
	}
	d.mustRun("unknown resolve charge "+charge.ID+" --as not-applied"+confirmFlags, nil)
	if e := d.mustReadEntry(charge); e.State != ledger.Refused || e.ResponseStatus != 400 || !strings.Contains(string(e.ResponseBody), "SVC0270") || !e.DueAt.IsZero() {
		t.Errorf("refused: %+v", e)
	}
	d.expectFailure("unknown resolve charge "+charge.ID+" --as applied"+confirmFlags, ExitFailed, "outcome is known: refused")
	d.mustRun("unknown list", &views)
	if len(views) != 0 {
		t.Errorf("left: %+v", views)
	}
}

// decision "unknown-by-hand".
func TestUnknownChargeAndMessages(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	charge, sent, unsent := d.addUnknownCharge(shop, "c1"), d.addUnknownSMS(shop, "m1"), d.addUnknownSMS(shop, "m2")
	d.mustRun("unknown resolve charge "+charge.ID+" --as applied"+confirmFlags, nil)
	if e := d.mustReadEntry(charge); e.State != ledger.Done || e.ResponseStatus != 0 || e.Manual.Reason != "test" || e.Manual.Who != "ama@desk" {
		t.Errorf("applied: %+v", e)
	}
	d.mustRun("unknown resolve sms "+sent.ID+" --as applied"+confirmFlags, nil)
	if e := d.mustReadEntry(sent); e.State != ledger.Done || e.Status != ledger.MessageWaiting || len(e.Outbox) != 0 {
		t.Errorf("sent: %+v", e)
	}
	d.mustRun("unknown resolve sms "+unsent.ID+" --as not-applied"+confirmFlags, nil)
	if e := d.mustReadEntry(unsent); e.State != ledger.Done || e.Status != ledger.DeliveryImpossible || len(e.Outbox) != 1 {
		t.Errorf("not sent: %+v", e)
	}
	d.expectFailure("unknown resolve sms "+unsent.ID+" --as applied"+confirmFlags, ExitFailed, "outcome is known: DeliveryImpossible")
}

// racingLedger is a ledger in which another hand writes just after our last read before a write.
type racingLedger struct {
	*ledgermem.Store
	reads int
	other *ledger.Entry
}

// Get implements ledger.Reader.
func (r *racingLedger) Get(ctx context.Context, key ledger.Key) (*ledger.Entry, error) {
	e, err := r.Store.Get(ctx, key)
	if r.reads++; r.reads == 2 {
		r.other.Version = e.Version + 1
		r.Overwrite(r.other)
	}
	return e, err
}

// TestResolveIsFenced: the person's word is judged anew on what another hand has stored since it was read.
func TestResolveIsFenced(t *testing.T) {
	d := newTestTool(t)
	lost := d.addUnknownPayment(d.onboardShop(), 1)
	d.useSandboxOperator()
	other := d.mustReadEntry(lost)
	other.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Failed, Source: "getStatus"}, d.now)
	race := &racingLedger{Store: d.ledger, other: other}
	d.connect = func(System, Deployment) (*Stores, error) {
		return d.storesWith(race), nil
	}
	d.expectFailure("unknown resolve pay ShopA_1 --as successful"+confirmFlags, ExitFailed, "outcome is known: failed")
	if e := d.mustReadEntry(lost); e.Status != ledger.Failed || e.Manual.Outcome != "" || len(e.Conflicts) != 0 || race.reads != 2 {
		t.Errorf("%d reads, %+v", race.reads, e)
	}
}

// decision "merchant-limits": what a person finds not applied no longer counts against the day.
func TestResolveRefundsDailyLimit(t *testing.T) {
	d := newTestTool(t)
	key := d.addUnknownCharge(d.onboardShop(), "c1")
	e := d.mustReadEntry(key)
	e.CountsDailyAmount, e.SentAt = true, d.now
	d.ledger.Overwrite(e)
	amounts := d.storesWith(d.ledger).LimitCounter
	limitedTo := func(minor int64) *merchant.Profile {
		return &merchant.Profile{DailyAmounts: map[string]int64{e.Currency: minor}}
	}
	over := func(limit int64) error {
		other := d.mustReadEntry(key)
		other.ID, other.Version, other.EverUnknown = other.ID+"-other", 1, false
		return amounts.Reserve(t.Context(), limitedTo(limit), other)
	}
	if err := amounts.Reserve(t.Context(), limitedTo(e.AmountMinor), e); err != nil || over(e.AmountMinor) == nil {
		t.Fatalf("the day is not full: %v", err)
	}
	d.mustRun("unknown resolve charge "+key.ID+" --as not-applied", nil)
	if over(e.AmountMinor) == nil {
		t.Error("a dry run gave the amount back")
	}
	d.mustRun("unknown resolve charge "+key.ID+" --as not-applied"+confirmFlags, nil)
	if err := over(e.AmountMinor); err != nil {
		t.Errorf("the amount was not given back: %v", err)
	}
	again := d.addUnknownCharge(onboardingResult{merchantView: merchantView{ID: e.MerchantID, Name: e.Merchant}}, "c2")
	limited := d.mustReadEntry(again)
	limited.CountsDailyAmount = true
	d.ledger.Overwrite(limited)
	d.connect = func(System, Deployment) (*Stores, error) {
		stores := d.storesWith(d.ledger)
		stores.LimitCounter = nil
		return stores, nil
	}
	d.expectFailure("unknown resolve charge "+again.ID+" --as not-applied"+confirmFlags, ExitUsage, "LIMIT_TABLE")
	if entry := d.mustReadEntry(again); entry.State != ledger.Unknown || entry.Manual.Outcome != "" {
		t.Errorf("settled without the table: %+v", entry)
	}
}

func TestResolvePaymentThatMayStillFinish(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	d.useSandboxOperator()
	e := d.addDeliveredPayment(shop, 1, d.now)
	e.Status, e.FinalAt, e.Delivered, e.PollAt, e.ReservedAt = ledger.Pending, time.Time{}, nil, d.now.Add(time.Minute), d.now
	e.Reschedule()
	d.ledger.Overwrite(e)
	d.expectFailure("unknown resolve pay ShopA_1 --as failed"+confirmFlags, ExitFailed, "may still end it")
	d.now = d.now.Add(25 * time.Hour)
	d.mustRun("unknown resolve pay ShopA_1 --as failed"+confirmFlags, nil)
	if got := d.mustReadEntry(e.Key); got.Status != ledger.Failed || len(got.Outbox) != 1 {
		t.Errorf("%+v", got)
	}
}
