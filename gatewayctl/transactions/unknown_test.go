package transactions_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

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
	return resolution{e.State, e.Status, e.Response.Status, len(e.Outbox.Waiting), e.Manual.Outcome, e.Manual.Who,
		e.Manual.Reason}
}

func TestUnknownList(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddUnknownCharge(shop, "c1")
	d.AddUnknownPayment(shop)
	d.AddDeliveredPayment(shop, 2, d.Now)
	for line, want := range map[string]int{
		"unknown list": 2, "unknown list ShopA --from 2026-03-01 --to 2026-03-01": 2,
		"unknown list ShopA --from 2026-03-02 --to 2026-03-02": 0,
	} {
		d.ExpectCount(line, line, want)
	}
	for _, view := range gatewayctltest.Query[[]transactions.UnknownView](d, "unknown list") {
		d.Equal("lookup of a "+string(view.Kind), view.LookupSupported, view.Kind == ledger.Payment)
	}
	d.ExpectExit("unknown list ShopA", gatewayctl.ExitUsage, "--from")
	d.ExpectExit("unknown list --from 2026-03-01 --to 2026-03-01", gatewayctl.ExitUsage, "<merchant>")
}

// decision "unknown-by-hand".
func TestUnknown(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	charge, payment := d.AddUnknownCharge(shop, "c1"), d.AddUnknownPayment(shop)
	d.AddDeliveredPayment(shop, 2, d.Now)
	d.UseSandboxOperator()
	d.ExpectExit("unknown resolve pay ShopA_1 --timeout 1s", gatewayctl.ExitFailed, "reported no status of ShopA_1")
	d.ExpectExit("unknown resolve pay ShopA_1 --as applied", gatewayctl.ExitUsage, "applied")
	d.ExpectExit("unknown resolve pay ShopA_2", gatewayctl.ExitFailed, "outcome is known: successful")
	d.ExpectFailed("unknown resolve pay ShopA_2 --as failed", "outcome is known: successful")
	d.ExpectExit("unknown resolve pay ShopA_9", gatewayctl.ExitFailed, "no payment")
	d.ExpectExit("unknown resolve charge "+charge.ID, gatewayctl.ExitUsage,
		"no operator has a status lookup for a charge")
	d.ExpectExit("unknown resolve charge "+charge.ID+" --as failed", gatewayctl.ExitUsage, "charge")
	type marked struct {
		IsDryRun bool            `json:"dry_run"`
		Final    *entries.Final  `json:"final"`
		Timeline []entries.Event `json:"timeline"`
	}
	const resolve = "unknown resolve pay ShopA_1 --as successful"
	dryRun := gatewayctltest.Query[marked](d, resolve)
	d.Equal("the dry run is marked", dryRun.IsDryRun && dryRun.Final != nil && len(dryRun.Timeline) > 0, true)
	d.ExpectOutput(resolve, "With --yes this would be:", "resolution")
	d.Equal("nothing was changed", d.MustReadEntry(payment).State, ledger.Unknown)
	d.Equal("a change is not marked", gatewayctltest.Change[marked](d, resolve).IsDryRun, false)
	e := d.MustReadEntry(payment)
	d.Equal("payment", resolutionOf(e), resolution{ledger.Done, ledger.Successful, 201, 1, "successful",
		"local:ama@host", "test"})
	d.Equal("SMS to the payer", e.UserSMS.State, ledger.UserSMSDue)
	d.ExpectOutput("payment show ShopA_1", "resolution",
		"successful, test; operator's reference: none, by local:ama@host")
	d.ExpectExit("unknown resolve charge "+charge.ID+" --as not-applied", gatewayctl.ExitDone,
		"ShopA: refused. Nothing")
	d.Apply("unknown resolve charge " + charge.ID + " --as not-applied")
	e = d.MustReadEntry(charge)
	d.Equal("charge", resolutionOf(e), resolution{ledger.Refused, "", 400, 0, "not-applied", "local:ama@host", "test"})
	d.Equal("charge is due", e.DueAt, time.Time{})
	if !strings.Contains(string(e.Response.Body), "SVC0270") {
		t.Errorf("the stored response of the charge lacks SVC0270: %s", e.Response.Body)
	}
	d.ExpectFailed("unknown resolve charge "+charge.ID+" --as applied", "outcome is known: refused")
	d.ExpectCount("unknown entries left", "unknown list", 0)
}

// decision "unknown-by-hand".
func TestUnknownChargeAndMessages(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	charge, sent, unsent := d.AddUnknownCharge(shop, "c1"), d.AddUnknownSMS(shop, "m1"), d.AddUnknownSMS(shop, "m2")
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
		d.Apply("unknown resolve " + string(c.key.Kind) + " " + c.key.ID + " --as " + c.as)
		d.Equal(c.key.String()+" as "+c.as, resolutionOf(d.MustReadEntry(c.key)), c.want)
	}
	line := "unknown resolve sms " + unsent.ID + " --as applied" + gatewayctltest.Confirm
	d.ExpectExit(line, gatewayctl.ExitFailed, "outcome is known: DeliveryImpossible")
}

// addOrangeSMS stores an SMS whose outcome is unknown at a platform that gets no key of ours.
func addOrangeSMS(d *gatewayctltest.Tool, shop merchants.Onboarding) *ledger.Entry {
	return d.Update(d.AddUnknownSMS(shop, "m1"), func(e *ledger.Entry) {
		e.Route.Operator, e.Route.Account, e.Request.Sender = "orange", "orange-sms/main", "tel:+2250000"
		e.Route.UpstreamKey, e.Poll.At = "ShopA.m1", d.Now.Add(ledger.StaleAfter)
		e.Reschedule()
	})
}

// An SMS whose platform got no key of ours names what its operator can search for. A person may close it: it stays
// unknown, and nothing lists it.
func TestUnknowable(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	e, kept := addOrangeSMS(d, shop), d.MustReadEntry(d.AddUnknownSMS(shop, "m2"))
	charge := d.AddUnknownCharge(shop, "c1")
	d.Now = d.Now.Add(ledger.StaleAfter)
	advice := "operator orange got no key of it. Search its records by the time 2026-03-01T12:00:00Z, the sender " +
		"tel:+2250000 and the recipient, which the merchant knows (operator's reference: none). " +
		"Otherwise close it as unknowable"
	lines := d.Attend("attention --no-lookup", gatewayctl.ExitWaiting)
	at := slices.IndexFunc(lines, func(line gatewayctltest.Line) bool { return line.Subject == e.Key.String() })
	d.Equal("attention", lines[at].Detail, advice)
	d.ExpectOutput("sms show "+e.ID, "no lookup", advice)
	e.OperatorReference = "ref-7"
	d.Ledger.Overwrite(e)
	d.ExpectOutput("sms show "+e.ID, "(operator's reference: ref-7)")
	d.ExpectExit("unknown resolve charge "+charge.ID+" --as unknowable", gatewayctl.ExitUsage,
		"cannot be resolved as unknowable")
	d.ExpectBoth("unknown resolve sms "+kept.ID+" --as unknowable", gatewayctl.ExitFailed,
		"the merchant may send the same request again until 2026-03-02T11:50:00Z")

	line := "unknown resolve sms " + e.ID + " --as unknowable"
	d.Apply(line)
	closed := d.MustReadEntry(e.Key)
	d.Equal("SMS", resolutionOf(closed), resolution{ledger.Unknown, "", 0, 0, "unknowable", "local:ama@host", "test"})
	d.Equal("due", closed.DueAt, time.Time{})
	d.Equal("audit", d.Audit.Outcomes[len(d.Audit.Outcomes)-1], auditlog.OutcomeDone)
	listed := func(key ledger.Key) (listed bool) {
		for _, view := range gatewayctltest.Query[[]transactions.UnknownView](d,
			"unknown list ShopA --from 2026-03-01 --to 2026-03-01") {
			listed = listed || view.ID == key.ID
		}
		for _, line := range d.Attend("attention --no-lookup", gatewayctl.ExitWaiting) {
			listed = listed || line.Subject == key.String()
		}
		return listed
	}
	d.Equal("listed after it was closed", listed(e.Key), false)
	d.Equal("another SMS is listed", listed(kept.Key), true)
	d.Apply(line+" --operator-reference OS-77", line)
	d.Equal("reference after a second decision", d.MustReadEntry(e.Key).Manual.Reference, "OS-77")
	d.ExpectOutput("sms show "+e.ID, "closed as unknowable", "resolution",
		"unknowable, test; operator's reference: OS-77, by local:ama@host")
	d.Apply("unknown resolve sms " + e.ID + " --as applied")
	d.Equal("a later statement of the operator", d.MustReadEntry(e.Key).State, ledger.Done)
}

// decision "charge-notif": off without the flag. With it a resolved charge is notified, and its notification is shown
// and replayed by the charge's id.
func TestChargeNotif(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	off, on := d.AddUnknownCharge(shop, "c1"), d.AddUnknownCharge(shop, "c2")
	d.Apply("unknown resolve charge "+off.ID+" --as applied", "merchant change ShopA --charge-notif on")
	d.Equal("notifications without the flag", len(d.MustReadEntry(off).Outbox.Waiting), 0)
	d.Apply("unknown resolve charge " + on.ID + " --as not-applied")
	e := d.MustReadEntry(on)
	d.Equal("notifications", len(e.Outbox.Waiting), 1)
	d.Equal("address", e.Outbox.URL, "https://shop.example/n")
	d.ExpectOutput("deliveries show "+on.ID, "https://shop.example/n", "failed", "waiting")
	e.Outbox.MarkDelivered(on.ID, d.Now)
	d.Ledger.Overwrite(e)
	d.Apply("deliveries replay " + on.ID)
	d.Equal("replays", len(d.MustReadEntry(on).Outbox.Replays), 1)
	d.Apply("merchant change ShopA --charge-notif off")
	d.ExpectExit("merchant add ShopB --country ci --operator sandbox --charge-notif on"+gatewayctltest.Confirm,
		gatewayctl.ExitUsage,
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
	d := gatewayctltest.New(t)
	payment := d.AddUnknownPayment(d.Onboard("ShopA"))
	d.UseSandboxOperator()
	other := d.MustReadEntry(payment)
	other.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Failed, Source: "getStatus"}, d.Now)
	race := &racingLedger{Ledger: d.Ledger, other: other}
	d.ChangeStores(func(s *deployment.Stores) { s.Ledger = race })
	d.ExpectFailed("unknown resolve pay ShopA_1 --as successful", "outcome is known: failed")
	e := d.MustReadEntry(payment)
	d.Equal("resolution", resolutionOf(e), resolution{ledger.Done, ledger.Failed, 201, 1, "", "", ""})
	d.Equal("conflicts", len(e.Conflicts), 0)
	d.Equal("reads before the change", race.reads, 2)
}

// A statement of the operator is about the attempts before it. A retry of the merchant may have been applied since.
func TestResolveIsNotForALaterAttempt(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	charge := d.AddUnknownCharge(shop, "c1")
	later := d.MustReadEntry(charge)
	later.Owner = "later"
	d.ChangeStores(func(s *deployment.Stores) { s.Ledger = &racingLedger{Ledger: d.Ledger, other: later} })
	d.ExpectFailed("unknown resolve charge "+charge.ID+" --as not-applied", "a later attempt")
	d.Equal("resolution", resolutionOf(d.MustReadEntry(charge)), resolution{State: ledger.Unknown})
}

// decision "merchant-limits": an amount that was not applied is refunded to the daily limit.
func TestResolveRefundsDailyLimit(t *testing.T) {
	d := gatewayctltest.New(t)
	key := d.AddUnknownCharge(d.Onboard("ShopA"), "c1")
	e := d.Update(key, func(e *ledger.Entry) { e.Amount.CountsDaily = true })
	amounts := d.Stores().DailyAmounts
	limitedTo := func(minor int64) *merchant.Profile {
		return &merchant.Profile{Limits: merchant.Limits{DailyAmounts: map[string]int64{e.Amount.Currency: minor}}}
	}
	over := func(limit int64) error {
		other := d.MustReadEntry(key)
		other.ID, other.Version, other.EverUnknown = other.ID+"-other", 1, false
		return amounts.Reserve(t.Context(), limitedTo(limit), other)
	}
	if err := amounts.Reserve(t.Context(), limitedTo(e.Amount.Minor), e); err != nil || over(e.Amount.Minor) == nil {
		t.Fatalf("the day is not full: %v", err)
	}
	d.MustRun("unknown resolve charge "+key.ID+" --as not-applied", nil)
	if over(e.Amount.Minor) == nil {
		t.Error("a dry run refunded the amount")
	}
	d.Apply("unknown resolve charge " + key.ID + " --as not-applied")
	if err := over(e.Amount.Minor); err != nil {
		t.Errorf("the amount was not refunded: %v", err)
	}
	again := d.AddUnknownCharge(merchants.Onboarding{View: merchants.View{ID: e.Merchant.ID, Name: e.Merchant.Name}},
		"c2")
	d.Update(again, func(e *ledger.Entry) { e.Amount.CountsDaily = true })
	d.ChangeStores(func(s *deployment.Stores) { s.DailyAmounts = nil })
	d.ExpectExit("unknown resolve charge "+again.ID+" --as not-applied"+gatewayctltest.Confirm, gatewayctl.ExitUsage,
		"LIMIT_TABLE")
	d.Equal("resolved without LIMIT_TABLE", resolutionOf(d.MustReadEntry(again)), resolution{State: ledger.Unknown})
}

// The operator's reference of a manual resolution is stored, shown, found and exported. No merchant gets it. A warning
// names the end of the time in which the merchant's own retry may decide it.
func TestResolveWithOperatorReference(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	charge := d.AddUnknownCharge(shop, "c1")
	line := "unknown resolve charge " + charge.ID + " --operator-reference OM-77"
	d.ExpectBoth(line, gatewayctl.ExitUsage, "give it with --as")
	d.ExpectBoth("unknown resolve charge "+charge.ID+" --as applied --operator-reference "+strings.Repeat("7", 101),
		gatewayctl.ExitUsage, "at most 100 characters")
	const warning = "Warning: until 2026-03-02T11:50:00Z the merchant may send the same request again"
	d.ExpectBoth(line+" --as applied", gatewayctl.ExitDone, warning)
	e := d.MustReadEntry(charge)
	d.Equal("stored", e.Manual.Reference, "OM-77")
	d.Equal("what the merchant gets", e.OperatorReference, "")
	d.ExpectOutput("charge show "+charge.ID, "operator's reference", "OM-77", "test; operator's reference: OM-77")
	d.ExpectOutput("find OM-77", charge.ID)
	d.ExpectOutput("export ShopA --from 2026-03-01 --to 2026-03-01", charge.ID, "OM-77")

	late := d.AddUnknownCharge(shop, "c2")
	d.Update(late, func(e *ledger.Entry) { e.SentAt = d.Now.Add(-24 * time.Hour) })
	d.ExpectWithout("unknown resolve charge "+late.ID+" --as applied", gatewayctl.ExitDone, "Warning")
}

func TestResolvePaymentThatMayStillFinish(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.UseSandboxOperator()
	e := d.AddPendingPayment(shop, 1, d.Now)
	d.ExpectFailed("unknown resolve pay ShopA_1 --as failed", ledger.ErrStillPending.Error())
	d.Now = d.Now.Add(25 * time.Hour)
	d.Apply("unknown resolve pay ShopA_1 --as failed")
	d.Equal("payment", resolutionOf(d.MustReadEntry(e.Key)),
		resolution{ledger.Done, ledger.Failed, 201, 1, "failed", "local:ama@host", "test"})
}

// decision "lookup-rate": a command's lookup waits for the rate of its account, and is not made without it. Without
// LIMIT_TABLE nothing is limited.
func TestResolveByLookupAtRate(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.UseSandboxOperator()
	e := d.AddPendingPayment(shop, 1, d.Now)
	d.Update(e.Key, func(e *ledger.Entry) { e.Route.Operator, e.Route.Account = "mtn", "mtn-momo/ci" })
	rates := limit.NewRateLimiter(storetest.NewLimits(), func() time.Time { return d.Now })
	confirmer, account := confirm.Confirmer{LookupRates: rates}, operator.Pin{Platform: "mtn-momo", Account: "ci"}
	takeAll := func() {
		if _, _, err := confirmer.TakeLookups(t.Context(), account, 100); err != nil {
			t.Fatal(err)
		}
	}
	const line, atRate = "unknown resolve pay ShopA_1 --as lookup", "as many lookups in a second"
	slept := time.Duration(0)
	d.ChangeStores(func(s *deployment.Stores) {
		s.LookupRates = rates
		s.Sleep = func(context.Context, time.Duration) error { return context.DeadlineExceeded }
	})
	takeAll()
	d.ExpectFailed(line, atRate)
	d.ChangeStores(func(s *deployment.Stores) {
		s.LookupRates = rates
		s.Sleep = func(_ context.Context, wait time.Duration) error {
			d.Now, slept = d.Now.Add(wait), slept+wait
			return nil
		}
	})
	takeAll()
	d.ExpectWithout(line, gatewayctl.ExitFailed, atRate)
	if slept != 100*time.Millisecond {
		t.Errorf("waited %s for a lookup", slept)
	}
	takeAll()
	d.ChangeStores(func(s *deployment.Stores) { s.LookupRates = nil })
	d.ExpectFailed(line, "reported no status")
}
