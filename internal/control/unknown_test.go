package control

import (
	"context"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/shared/ledger"
)

// unknownMessage places an SMS whose outcome is unknown.
func (d *desk) unknownMessage(shop onboarded, correlator string) ledger.Key {
	key := ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(shop.ID, correlator)}
	e := &ledger.Entry{
		Key: key, MerchantID: shop.ID, Merchant: shop.Name, Owner: "o", State: ledger.Unknown, EverUnknown: true, CreatedAt: d.now, Version: 2,
		Correlator: correlator, PollAt: d.now.Add(time.Hour), Operator: "sandbox", NotifyURL: "https://shop.example/r",
	}
	e.Reschedule()
	d.ledger.Put(e)
	return key
}

// unknownPayment places a payment whose outcome is unknown.
func (d *desk) unknownPayment(shop onboarded, number int) ledger.Key {
	e := d.payment(shop, number, d.now)
	e.State, e.Status, e.FinalAt, e.Told, e.PollAt = ledger.Unknown, ledger.Pending, time.Time{}, nil, d.now.Add(time.Minute)
	e.Reschedule()
	d.ledger.Put(e)
	return e.Key
}

// withOperator gives the sandbox an account that nobody answers at.
func (d *desk) withOperator() {
	d.input = `{"sandbox":{"current":"a1","accounts":{"a1":{"base_url":"http://127.0.0.1:1","access_token":"t"}}}}`
	d.do("operator set -"+yes, nil)
}

// decision "unknown-by-hand".
func TestUnknown(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	charge, lost := d.unknownCharge(shop, "c1"), d.unknownPayment(shop, 1)
	d.payment(shop, 2, d.now)
	d.withOperator()
	var views []unknownView
	d.do("unknown list", &views)
	if len(views) != 2 {
		t.Fatalf("list: %+v", views)
	}
	d.do("unknown list --merchant ShopA --from 2026-03-01 --to 2026-03-01", &views)
	if len(views) != 2 {
		t.Fatalf("list of a day: %+v", views)
	}
	d.do("unknown list --merchant ShopA --from 2026-03-02 --to 2026-03-02", &views)
	if len(views) != 0 {
		t.Fatalf("list of another day: %+v", views)
	}
	d.refused("unknown list --merchant ShopA", ExitUsage, "--from")
	d.refused("unknown resolve pay ShopA_1 --timeout 1s", ExitFailed, "did not answer")
	d.refused("unknown resolve pay ShopA_1 --as applied", ExitUsage, "applied")
	d.refused("unknown resolve pay ShopA_2", ExitFailed, "outcome is known: successful")
	d.refused("unknown resolve pay ShopA_2 --as failed"+yes, ExitFailed, "outcome is known: successful")
	d.refused("unknown resolve pay ShopA_9", ExitFailed, "no payment")
	d.refused("unknown resolve charge "+charge.ID, ExitUsage, "asked")
	d.refused("unknown resolve charge "+charge.ID+" --as failed", ExitUsage, "charge")
	d.do("unknown resolve pay ShopA_1 --as successful", nil)
	if d.entry(lost).Settled() {
		t.Error("a dry run settled a payment")
	}
	d.refused("unknown resolve pay ShopA_1 --as successful --yes", ExitUsage, "--why")
	d.do("unknown resolve pay ShopA_1 --as successful"+yes, nil)
	if e := d.entry(lost); e.Status != ledger.Successful || len(e.Outbox) != 1 || e.UserSMS != ledger.UserSMSDue {
		t.Errorf("settled: %+v", e)
	}
	if _, out, _ := d.run("payment show ShopA_1"); !strings.Contains(out, "successful, says ama@desk: test") {
		t.Errorf("the history does not tell who: %s", out)
	}
	d.do("unknown resolve charge "+charge.ID+" --as not-applied"+yes, nil)
	if e := d.entry(charge); e.State != ledger.Refused || e.AnswerStatus != 400 || !strings.Contains(string(e.AnswerBody), "SVC0270") || !e.Due.IsZero() {
		t.Errorf("refused: %+v", e)
	}
	d.refused("unknown resolve charge "+charge.ID+" --as applied"+yes, ExitFailed, "outcome is known: refused")
	d.do("unknown list", &views)
	if len(views) != 0 {
		t.Errorf("left: %+v", views)
	}
}

// decision "unknown-by-hand".
func TestUnknownChargeAndMessages(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	charge, sent, unsent := d.unknownCharge(shop, "c1"), d.unknownMessage(shop, "m1"), d.unknownMessage(shop, "m2")
	d.do("unknown resolve charge "+charge.ID+" --as applied"+yes, nil)
	if e := d.entry(charge); e.State != ledger.Done || e.AnswerStatus != 0 || e.Word.Why != "test" || e.Word.Who != "ama@desk" {
		t.Errorf("applied: %+v", e)
	}
	d.do("unknown resolve sms "+sent.ID+" --as applied"+yes, nil)
	if e := d.entry(sent); e.State != ledger.Done || e.Status != ledger.MessageWaiting || len(e.Outbox) != 0 {
		t.Errorf("sent: %+v", e)
	}
	d.do("unknown resolve sms "+unsent.ID+" --as not-applied"+yes, nil)
	if e := d.entry(unsent); e.State != ledger.Done || e.Status != ledger.DeliveryImpossible || len(e.Outbox) != 1 {
		t.Errorf("not sent: %+v", e)
	}
	d.refused("unknown resolve sms "+unsent.ID+" --as applied"+yes, ExitFailed, "outcome is known: DeliveryImpossible")
}

// raced is a ledger in which another hand writes just after our last read before a write.
type raced struct {
	*ledgermem.Store
	reads int
	other *ledger.Entry
}

// Get implements ledger.Reader.
func (r *raced) Get(ctx context.Context, key ledger.Key) (*ledger.Entry, error) {
	e, err := r.Store.Get(ctx, key)
	if r.reads++; r.reads == 2 {
		r.other.Version = e.Version + 1
		r.Put(r.other)
	}
	return e, err
}

// TestResolveIsFenced: the person's word is judged anew on what another hand has stored since it was read.
func TestResolveIsFenced(t *testing.T) {
	d := newDesk(t)
	lost := d.unknownPayment(d.shop(), 1)
	d.withOperator()
	other := d.entry(lost)
	other.Resolve(ledger.Resolution{Status: ledger.Failed, Source: "getStatus"}, d.now)
	race := &raced{Store: d.ledger, other: other}
	d.connect = func(System, Places) (*Stores, error) {
		return d.stores(race), nil
	}
	d.refused("unknown resolve pay ShopA_1 --as successful"+yes, ExitFailed, "outcome is known: failed")
	if e := d.entry(lost); e.Status != ledger.Failed || e.Word.Said != "" || len(e.Conflicts) != 0 || race.reads != 2 {
		t.Errorf("%d reads, %+v", race.reads, e)
	}
}

// decision "merchant-limits": what a person finds not applied no longer counts against the day.
func TestResolveGivesBackTheAmountOfTheDay(t *testing.T) {
	d := newDesk(t)
	key := d.unknownCharge(d.shop(), "c1")
	e := d.entry(key)
	e.Limited, e.SentAt = true, d.now
	d.ledger.Put(e)
	amounts := d.stores(d.ledger).Amounts
	over := func(limit int64) error {
		other := d.entry(key)
		other.ID += "-other"
		return amounts.Count(t.Context(), other, 1, limit)
	}
	if err := amounts.Count(t.Context(), e, e.Version, e.Minor); err != nil || over(e.Minor) == nil {
		t.Fatalf("the day is not full: %v", err)
	}
	d.do("unknown resolve charge "+key.ID+" --as not-applied", nil)
	if over(e.Minor) == nil {
		t.Error("a dry run gave the amount back")
	}
	d.do("unknown resolve charge "+key.ID+" --as not-applied"+yes, nil)
	if err := over(e.Minor); err != nil {
		t.Errorf("the amount was not given back: %v", err)
	}
	again := d.unknownCharge(onboarded{merchantView: merchantView{ID: e.MerchantID, Name: e.Merchant}}, "c2")
	limited := d.entry(again)
	limited.Limited = true
	d.ledger.Put(limited)
	d.connect = func(System, Places) (*Stores, error) {
		stores := d.stores(d.ledger)
		stores.Amounts = nil
		return stores, nil
	}
	d.refused("unknown resolve charge "+again.ID+" --as not-applied"+yes, ExitUsage, "LIMIT_TABLE")
	if entry := d.entry(again); entry.State != ledger.Unknown || entry.Word.Said != "" {
		t.Errorf("settled without the table: %+v", entry)
	}
}

func TestAPaymentThatMayStillEnd(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	d.withOperator()
	e := d.payment(shop, 1, d.now)
	e.Status, e.FinalAt, e.Told, e.PollAt, e.ReservedAt = ledger.Pending, time.Time{}, nil, d.now.Add(time.Minute), d.now
	e.Reschedule()
	d.ledger.Put(e)
	d.refused("unknown resolve pay ShopA_1 --as failed"+yes, ExitFailed, "may still end it")
	d.now = d.now.Add(25 * time.Hour)
	d.do("unknown resolve pay ShopA_1 --as failed"+yes, nil)
	if got := d.entry(e.Key); got.Status != ledger.Failed || len(got.Outbox) != 1 {
		t.Errorf("%+v", got)
	}
}
