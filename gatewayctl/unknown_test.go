package gatewayctl

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// addUnknownSMS stores an SMS whose outcome is unknown.
func (d *testTool) addUnknownSMS(shop onboardingResult, correlator string) ledger.Key {
	return d.addUnknown(shop, &ledger.Entry{
		Key:        ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(shop.ID, correlator)},
		Correlator: correlator, NotifyURL: "https://shop.example/r",
	})
}

// addUnknownPayment stores a payment whose outcome is unknown.
func (d *testTool) addUnknownPayment(shop onboardingResult) ledger.Key {
	e := d.addDeliveredPayment(shop, 1, d.now)
	e.State, e.Status, e.FinalAt, e.Delivered, e.PollAt = ledger.Unknown, ledger.Pending, time.Time{}, nil,
		d.now.Add(time.Minute)
	e.Reschedule()
	d.ledger.Overwrite(e)
	return e.Key
}

// useSandboxOperator sets an account of the sandbox whose address refuses connections.
func (d *testTool) useSandboxOperator() {
	d.input = credentialsOf(d.t, "sandbox", "a1", newAccount(d.t, "sandbox", "http://127.0.0.1:1", "t"))
	d.apply("operator set -")
}

// resolution is the part of an entry that a manual resolution sets.
type resolution struct {
	State          ledger.State
	Status         ledger.Status
	ResponseStatus int
	Notifications  int
	Outcome, Who   string
	Reason         string
}

func resolutionOf(e *ledger.Entry) resolution {
	return resolution{e.State, e.Status, e.ResponseStatus, len(e.Outbox), e.Manual.Outcome, e.Manual.Who,
		e.Manual.Reason}
}

func TestUnknownList(t *testing.T) {
	d, shop := newShopTool(t)
	d.addUnknownCharge(shop, "c1")
	d.addUnknownPayment(shop)
	d.addDeliveredPayment(shop, 2, d.now)
	for line, want := range map[string]int{
		"unknown list": 2, "unknown list ShopA --from 2026-03-01 --to 2026-03-01": 2,
		"unknown list ShopA --from 2026-03-02 --to 2026-03-02": 0,
	} {
		checkEqual(t, line, len(query[[]unknownView](d, line)), want)
	}
	for _, view := range query[[]unknownView](d, "unknown list") {
		checkEqual(t, "lookup of a "+string(view.Kind), view.LookupSupported, view.Kind == ledger.Payment)
	}
	d.expectExit("unknown list ShopA", ExitUsage, "--from")
	d.expectExit("unknown list --from 2026-03-01 --to 2026-03-01", ExitUsage, "<merchant>")
}

// decision "unknown-by-hand".
func TestUnknown(t *testing.T) {
	d, shop := newShopTool(t)
	charge, payment := d.addUnknownCharge(shop, "c1"), d.addUnknownPayment(shop)
	d.addDeliveredPayment(shop, 2, d.now)
	d.useSandboxOperator()
	d.expectExit("unknown resolve pay ShopA_1 --timeout 1s", ExitFailed, "reported no status of ShopA_1")
	d.expectExit("unknown resolve pay ShopA_1 --as applied", ExitUsage, "applied")
	d.expectExit("unknown resolve pay ShopA_2", ExitFailed, "outcome is known: successful")
	d.expectExit("unknown resolve pay ShopA_2 --as failed"+confirmFlags, ExitFailed, "outcome is known: successful")
	d.expectExit("unknown resolve pay ShopA_9", ExitFailed, "no payment")
	d.expectExit("unknown resolve charge "+charge.ID, ExitUsage, "no operator has a status lookup for a charge")
	d.expectExit("unknown resolve charge "+charge.ID+" --as failed", ExitUsage, "charge")
	d.mustRun("unknown resolve pay ShopA_1 --as successful", nil)
	checkEqual(t, "a dry run made the status final", d.mustReadEntry(payment).StatusFinal(), false)
	d.expectExit("unknown resolve pay ShopA_1 --as successful --yes", ExitUsage, "--reason")
	d.apply("unknown resolve pay ShopA_1 --as successful")
	e := d.mustReadEntry(payment)
	checkEqual(t, "payment", resolutionOf(e), resolution{ledger.Done, ledger.Successful, 201, 1, "successful",
		"local:ama@host", "test"})
	checkEqual(t, "SMS to the payer", e.UserSMS, ledger.UserSMSDue)
	d.expectOutput("payment show ShopA_1", "resolved manually", "successful, by local:ama@host: test")
	d.expectExit("unknown resolve charge "+charge.ID+" --as not-applied", ExitDone, "ShopA: refused. Nothing")
	d.apply("unknown resolve charge " + charge.ID + " --as not-applied")
	e = d.mustReadEntry(charge)
	checkEqual(t, "charge", resolutionOf(e),
		resolution{ledger.Refused, "", 400, 0, "not-applied", "local:ama@host", "test"})
	checkEqual(t, "charge is due", e.DueAt, time.Time{})
	if !strings.Contains(string(e.ResponseBody), "SVC0270") {
		t.Errorf("the stored response of the charge lacks SVC0270: %s", e.ResponseBody)
	}
	d.expectExit("unknown resolve charge "+charge.ID+" --as applied"+confirmFlags, ExitFailed,
		"outcome is known: refused")
	checkEqual(t, "unknown entries left", len(query[[]unknownView](d, "unknown list")), 0)
}

// decision "unknown-by-hand".
func TestUnknownChargeAndMessages(t *testing.T) {
	d, shop := newShopTool(t)
	charge, sent, unsent := d.addUnknownCharge(shop, "c1"), d.addUnknownSMS(shop, "m1"), d.addUnknownSMS(shop, "m2")
	for _, c := range []struct {
		key  ledger.Key
		as   string
		want resolution
	}{
		{charge, "applied", resolution{State: ledger.Done}},
		{sent, "applied", resolution{
			State: ledger.Done, Status: ledger.MessageWaiting, ResponseStatus: 201, Notifications: 1,
		}},
		{unsent, "not-applied", resolution{State: ledger.Done, Status: ledger.DeliveryImpossible, Notifications: 1}},
	} {
		c.want.Outcome, c.want.Who, c.want.Reason = c.as, "local:ama@host", "test"
		d.apply("unknown resolve " + string(c.key.Kind) + " " + c.key.ID + " --as " + c.as)
		checkEqual(t, c.key.String()+" as "+c.as, resolutionOf(d.mustReadEntry(c.key)), c.want)
	}
	line := "unknown resolve sms " + unsent.ID + " --as applied" + confirmFlags
	d.expectExit(line, ExitFailed, "outcome is known: DeliveryImpossible")
}

// addOrangeSMS stores an SMS whose outcome is unknown at a platform that gets no key of ours.
func (d *testTool) addOrangeSMS(shop onboardingResult) *ledger.Entry {
	e := d.mustReadEntry(d.addUnknownSMS(shop, "m1"))
	e.Operator, e.Account, e.Sender, e.UpstreamKey = "orange", "orange-sms/main", "tel:+2250000", "ShopA.m1"
	e.ReservedAt, e.SentAt, e.PollAt = d.now, d.now, d.now.Add(ledger.StaleAfter)
	e.Reschedule()
	d.ledger.Overwrite(e)
	return e
}

// An SMS whose platform got no key of ours names what its operator can search for. A person may close it: it stays
// unknown, and nothing lists it.
func TestUnknowable(t *testing.T) {
	d, shop := newQuietTool(t)
	e, kept := d.addOrangeSMS(shop), d.mustReadEntry(d.addUnknownSMS(shop, "m2"))
	kept.SentAt = d.now
	d.ledger.Overwrite(kept)
	charge := d.addUnknownCharge(shop, "c1")
	d.now = d.now.Add(ledger.StaleAfter)
	advice := "operator orange got no key of it. Search its records by the time 2026-03-01T12:00:00Z, the sender " +
		"tel:+2250000 and the recipient, which the merchant knows (operator's reference: none). " +
		"Otherwise close it as unknowable"
	lines := d.mustAttend("attention --no-lookup", ExitWaiting)
	at := slices.IndexFunc(lines, func(line attentionLine) bool { return line.Subject == e.Key.String() })
	checkEqual(t, "attention", lines[at].Detail, advice)
	d.expectOutput("sms show "+e.ID, "no lookup", advice)
	e.OperatorReference = "ref-7"
	d.ledger.Overwrite(e)
	d.expectOutput("sms show "+e.ID, "(operator's reference: ref-7)")
	d.expectExit("unknown resolve charge "+charge.ID+" --as unknowable", ExitUsage, "cannot be resolved as unknowable")
	d.expectBoth("unknown resolve sms "+kept.ID+" --as unknowable", ExitFailed,
		"the merchant may send the same request again until 2026-03-02T11:50:00Z")

	line := "unknown resolve sms " + e.ID + " --as unknowable"
	d.expectExit(line+" --yes", ExitUsage, "--reason")
	d.mustRun(line, nil)
	checkEqual(t, "closed by a dry run", d.mustReadEntry(e.Key).Unknowable(), false)
	d.apply(line)
	closed := d.mustReadEntry(e.Key)
	checkEqual(t, "SMS", resolutionOf(closed),
		resolution{ledger.Unknown, "", 0, 0, "unknowable", "local:ama@host", "test"})
	checkEqual(t, "due", closed.DueAt, time.Time{})
	checkEqual(t, "audit", d.audit.outcomes[len(d.audit.outcomes)-1], OutcomeDone)
	listed := func(key ledger.Key) (listed bool) {
		for _, view := range query[[]unknownView](d, "unknown list ShopA --from 2026-03-01 --to 2026-03-01") {
			listed = listed || view.ID == key.ID
		}
		for _, line := range d.mustAttend("attention --no-lookup", ExitWaiting) {
			listed = listed || line.Subject == key.String()
		}
		return listed
	}
	checkEqual(t, "listed after it was closed", listed(e.Key), false)
	checkEqual(t, "another SMS is listed", listed(kept.Key), true)
	d.apply(line+" --operator-reference OS-77", line)
	checkEqual(t, "reference after a second decision", d.mustReadEntry(e.Key).ManualReference, "OS-77")
	d.expectOutput("sms show "+e.ID, "closed as unknowable", "resolved manually", "unknowable, by local:ama@host: test")
	d.apply("unknown resolve sms " + e.ID + " --as applied")
	checkEqual(t, "a later statement of the operator", d.mustReadEntry(e.Key).State, ledger.Done)
}

// decision "charge-notif": off without the flag. With it a resolved charge is notified, and its notification is shown
// and replayed by the charge's id.
func TestChargeNotif(t *testing.T) {
	d, shop := newShopTool(t)
	off, on := d.addUnknownCharge(shop, "c1"), d.addUnknownCharge(shop, "c2")
	d.apply("unknown resolve charge "+off.ID+" --as applied", "merchant change ShopA --charge-notif on")
	checkEqual(t, "notifications without the flag", len(d.mustReadEntry(off).Outbox), 0)
	d.mustRun("unknown resolve charge "+on.ID+" --as not-applied --reason test", nil)
	checkEqual(t, "notifications of a dry run", len(d.mustReadEntry(on).Outbox), 0)
	d.apply("unknown resolve charge " + on.ID + " --as not-applied")
	e := d.mustReadEntry(on)
	checkEqual(t, "notifications", len(e.Outbox), 1)
	checkEqual(t, "address", e.NotifyURL, "https://shop.example/n")
	d.expectOutput("deliveries show "+on.ID, "https://shop.example/n", "failed", "waiting")
	e.MarkDelivered(on.ID, d.now)
	d.ledger.Overwrite(e)
	d.apply("deliveries replay " + on.ID)
	checkEqual(t, "replays", len(d.mustReadEntry(on).Replays), 1)
	d.apply("merchant change ShopA --charge-notif off")
	d.expectExit("merchant add ShopB --country ci --operator sandbox --charge-notif on"+confirmFlags, ExitUsage,
		"charge-notif needs a notif_url")
}

// racingLedger is a ledger in which another process writes just after our last read before a write.
type racingLedger struct {
	*storetest.Ledger
	reads int
	other *ledger.Entry
}

// Get implements ledger.Reader.
func (r *racingLedger) Get(ctx context.Context, key ledger.Key) (*ledger.Entry, error) {
	e, err := r.Ledger.Get(ctx, key)
	if r.reads++; r.reads == 2 {
		r.other.Version = e.Version + 1
		r.Overwrite(r.other)
	}
	return e, err
}

// A manual resolution is checked again on an entry that another process changed since it was read.
func TestResolveIsFenced(t *testing.T) {
	d := newTestTool(t)
	payment := d.addUnknownPayment(d.onboardShop())
	d.useSandboxOperator()
	other := d.mustReadEntry(payment)
	other.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Failed, Source: "getStatus"}, d.now)
	race := &racingLedger{Ledger: d.ledger, other: other}
	d.changeStores(func(s *Stores) { s.Ledger = race })
	d.expectExit("unknown resolve pay ShopA_1 --as successful"+confirmFlags, ExitFailed, "outcome is known: failed")
	e := d.mustReadEntry(payment)
	checkEqual(t, "resolution", resolutionOf(e), resolution{ledger.Done, ledger.Failed, 201, 1, "", "", ""})
	checkEqual(t, "conflicts", len(e.Conflicts), 0)
	checkEqual(t, "reads before the change", race.reads, 2)
}

// A statement of the operator is about the attempts before it. A retry of the merchant may have been applied since.
func TestResolveIsNotForALaterAttempt(t *testing.T) {
	d, shop := newShopTool(t)
	charge := d.addUnknownCharge(shop, "c1")
	later := d.mustReadEntry(charge)
	later.Owner = "later"
	d.changeStores(func(s *Stores) { s.Ledger = &racingLedger{Ledger: d.ledger, other: later} })
	d.expectExit("unknown resolve charge "+charge.ID+" --as not-applied"+confirmFlags, ExitFailed, "a later attempt")
	checkEqual(t, "resolution", resolutionOf(d.mustReadEntry(charge)), resolution{State: ledger.Unknown})
}

// decision "merchant-limits": an amount that was not applied is refunded to the daily limit.
func TestResolveRefundsDailyLimit(t *testing.T) {
	d := newTestTool(t)
	key := d.addUnknownCharge(d.onboardShop(), "c1")
	e := d.mustReadEntry(key)
	e.CountsDailyAmount, e.SentAt = true, d.now
	d.ledger.Overwrite(e)
	amounts := d.stores().DailyAmounts
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
		t.Error("a dry run refunded the amount")
	}
	d.apply("unknown resolve charge " + key.ID + " --as not-applied")
	if err := over(e.AmountMinor); err != nil {
		t.Errorf("the amount was not refunded: %v", err)
	}
	again := d.addUnknownCharge(onboardingResult{merchantView: merchantView{ID: e.MerchantID, Name: e.Merchant}}, "c2")
	limited := d.mustReadEntry(again)
	limited.CountsDailyAmount = true
	d.ledger.Overwrite(limited)
	d.changeStores(func(s *Stores) { s.DailyAmounts = nil })
	d.expectExit("unknown resolve charge "+again.ID+" --as not-applied"+confirmFlags, ExitUsage, "LIMIT_TABLE")
	checkEqual(t, "resolved without LIMIT_TABLE", resolutionOf(d.mustReadEntry(again)),
		resolution{State: ledger.Unknown})
}

// The operator's reference of a manual resolution is stored, shown, found and exported. No merchant gets it. A warning
// names the end of the time in which the merchant's own retry may decide it.
func TestResolveWithOperatorReference(t *testing.T) {
	d, shop := newShopTool(t)
	charge := d.addUnknownCharge(shop, "c1")
	e := d.mustReadEntry(charge)
	e.SentAt = d.now
	d.ledger.Overwrite(e)
	line := "unknown resolve charge " + charge.ID + " --operator-reference OM-77"
	d.expectBoth(line, ExitUsage, "give it with --as")
	d.expectBoth("unknown resolve charge "+charge.ID+" --as applied --operator-reference "+strings.Repeat("7", 101),
		ExitUsage, "at most 100 characters")
	const warning = "Warning: until 2026-03-02T11:50:00Z the merchant may send the same request again"
	d.expectExit(line+" --as applied", ExitDone, warning)
	d.expectExit(line+" --as applied"+confirmFlags, ExitDone, warning)
	e = d.mustReadEntry(charge)
	checkEqual(t, "stored", e.ManualReference, "OM-77")
	checkEqual(t, "what the merchant gets", e.OperatorReference, "")
	d.expectOutput("charge show "+charge.ID, "operator's reference", "OM-77", "test; operator's reference: OM-77")
	d.expectOutput("find OM-77", charge.ID)
	d.expectOutput("export ShopA --from 2026-03-01 --to 2026-03-01", charge.ID, "OM-77")

	late := d.addUnknownCharge(shop, "c2")
	e = d.mustReadEntry(late)
	e.SentAt = d.now.Add(-24 * time.Hour)
	d.ledger.Overwrite(e)
	_, _, stderr := d.run("unknown resolve charge " + late.ID + " --as applied")
	if strings.Contains(stderr, "Warning") {
		t.Errorf("a warning after the end of the time: %s", stderr)
	}
}

func TestResolvePaymentThatMayStillFinish(t *testing.T) {
	d, shop := newShopTool(t)
	d.useSandboxOperator()
	e := d.addDeliveredPayment(shop, 1, d.now)
	e.Status, e.FinalAt, e.Delivered, e.PollAt, e.ReservedAt = ledger.Pending, time.Time{}, nil,
		d.now.Add(time.Minute), d.now
	e.Reschedule()
	d.ledger.Overwrite(e)
	d.expectExit("unknown resolve pay ShopA_1 --as failed"+confirmFlags, ExitFailed, ledger.ErrStillPending.Error())
	d.now = d.now.Add(25 * time.Hour)
	d.apply("unknown resolve pay ShopA_1 --as failed")
	checkEqual(t, "payment", resolutionOf(d.mustReadEntry(e.Key)),
		resolution{ledger.Done, ledger.Failed, 201, 1, "failed", "local:ama@host", "test"})
}
