package gatewayctl

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

func (d *testTool) mustReadEntry(key ledger.Key) *ledger.Entry {
	d.t.Helper()
	e, err := d.ledger.Get(context.Background(), key)
	if err != nil || e == nil {
		d.t.Fatalf("%v: %v, %v", key, e, err)
	}
	return e
}

// addUnknownCharge stores a charge whose outcome is unknown.
func (d *testTool) addUnknownCharge(shop onboardingResult, correlator string) ledger.Key {
	return d.addUnknown(shop, &ledger.Entry{
		Key:         ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(shop.ID, correlator, "")},
		AmountMinor: 150, Exponent: 2, Currency: "USD", Correlator: correlator, ReferenceCode: "=1+1",
	})
}

// addUnknown stores an entry whose outcome is unknown.
func (d *testTool) addUnknown(shop onboardingResult, e *ledger.Entry) ledger.Key {
	e.MerchantID, e.Merchant, e.Owner, e.Operator = shop.ID, shop.Name, "o", "sandbox"
	e.State, e.EverUnknown, e.Version = ledger.Unknown, true, 2
	e.CreatedAt, e.SentAt, e.ReservedAt, e.PollAt = d.now, d.now, d.now, d.now.Add(time.Hour)
	e.Reschedule()
	d.ledger.Overwrite(e)
	return e.Key
}

func TestShowAndList(t *testing.T) {
	d, shop := newShopTool(t)
	e := d.addDeliveredPayment(shop, 1, d.now)
	e.Conflicts = []ledger.Conflict{{Status: ledger.Failed, Reason: "final", Source: "callback",
		At: d.now.Add(3 * time.Second)}}
	e.Outbox = []ledger.Notification{{
		ID: "w2", Status: "late", At: d.now.Add(4 * time.Second), Attempts: 2, DeadReason: "410", LastReason: "gone",
		LastStatus: 410,
	}}
	e.NotifToken, e.MerchantState = "NOTIFTOKEN", "STATE"
	d.ledger.Overwrite(e)
	failed := d.addDeliveredPayment(shop, 2, d.now)
	failed.Status, failed.FailureReason = ledger.Failed, ledger.NotEnoughFunds
	d.ledger.Overwrite(failed)
	d.expectOutput("payment show ShopA_2", "failure reason", "not-enough-funds")
	d.addUnknownCharge(shop, "c1")
	d.expectOutput("payment show ShopA_1", "1000", "********00", "created", "first sent", "with account a1", "final",
		"delivered", "conflict", "dead letter: 410", "response stored for repeats")
	if _, out, _ := d.run("payment show ShopA_1"); strings.Contains(out, "0707072000") || strings.Contains(out,
		"NOTIFTOKEN") {
		t.Errorf("payment show shows a number or a token: %s", out)
	}
	charge := query[entryHistory](d, "charge show --merchant ShopA --correlator c1")
	checkEqual(t, "state of the charge", charge.State, ledger.Unknown)
	checkEqual(t, "amount of the charge", charge.Amount, "1.50")
	checkEqual(t, "charge by id", query[entryHistory](d, "charge show "+charge.ID), charge)
	d.expectExit("payment show ShopA_9", ExitFailed, "no payment ShopA_9")
	d.expectExit("sms show 1", ExitFailed, "no SMS 1")
	d.expectExit("sms show", ExitUsage, "correlator")
}

// list shows today, a day or a range of days.
func TestList(t *testing.T) {
	d, shop := newShopTool(t)
	d.addDeliveredPayment(shop, 1, d.now)
	d.addDeliveredPayment(shop, 2, d.now.Add(day))
	d.addUnknownCharge(shop, "c1")
	for line, want := range map[string]int{
		"list ShopA": 2, "list shopa --day 2026-03-01": 2, "list " + shop.ID + " --day 2026-03-02": 1,
		"list ShopA --from 2026-03-01 --to 2026-03-02": 3, "list ShopA --day 2026-03-03": 0,
		"list ShopA --status unknown": 1, "list ShopA --kind charge": 1, "list ShopA --kind sms": 0,
	} {
		checkEqual(t, line, len(query[[]entryView](d, line)), want)
	}
	for _, invalid := range []string{"bogus", "Pending", "DONE"} {
		d.expectExit("list ShopA --status "+invalid, ExitUsage, "pending, successful, failed")
	}
	for _, valid := range []string{"pending", "MessageWaiting", "DeliveryNotificationNotSupported", "reserved",
		"released"} {
		d.mustRun("list ShopA --status "+valid, nil)
	}
	d.expectExit("list ShopA --day 2026-03-01 --from 2026-03-01 --to 2026-03-02", ExitUsage, "--day excludes")
	d.expectExit("list ShopA --from 2026-03-01", ExitUsage, "--to")
	d.expectExit("list", ExitUsage, "<merchant>")
}

func TestReplayOfARange(t *testing.T) {
	d, shop := newShopTool(t)
	const count = 1000
	for i := range count {
		d.addDeliveredPayment(shop, i, d.now.Add(time.Duration(i)*time.Second))
	}
	before := d.addDeliveredPayment(shop, 9000, d.now.Add(-time.Hour))
	waiting := d.addDeliveredPayment(shop, 9001, d.now)
	waiting.Outbox, waiting.Delivered = waiting.Delivered, nil
	waiting.Outbox[0].DeliveredAt, waiting.Outbox[0].NextAttemptAt = time.Time{}, d.now.Add(time.Hour)
	d.ledger.Overwrite(waiting)
	d.now = d.now.Add(time.Hour)
	code, _, stderr := d.run("deliveries replay --merchant ShopA --from 2026-03-01T12:00:00Z --to 2026-03-02" +
		confirmFlags)
	if code != ExitDone || !strings.Contains(stderr, "900 of 1000") {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	for _, e := range d.ledger.All() {
		replayed := len(e.Outbox) == 1 && len(e.Delivered) == 0 && e.WakesRelay()
		if other := e.ID == before.ID || e.ID == waiting.ID; replayed == other && e.ID != waiting.ID {
			t.Fatalf("%s was replayed: %v, want %v", e.ID, replayed, !other)
		}
	}
	checkEqual(t, "version of the waiting payment", d.mustReadEntry(waiting.Key).Version, waiting.Version)
	result := query[resendResult](d, "deliveries replay "+before.ID+confirmFlags)
	checkEqual(t, "replay by id", result, resendResult{1, []string{}, toShop(1)})
	d.expectExit("deliveries replay "+before.ID+confirmFlags, ExitFailed, "nothing to send again")
	d.expectExit("deliveries replay ShopA_99999", ExitFailed, "no payment")
	d.expectExit("deliveries replay --merchant ShopA", ExitUsage, "--from")
	d.expectExit("deliveries replay --merchant ShopA --from x --to 2026-03-02", ExitUsage, "neither a day")
}

func TestPartiallyFailedReplay(t *testing.T) {
	d, shop := newShopTool(t)
	for i := range 3 {
		d.addDeliveredPayment(shop, i, d.now)
	}
	d.ledger.InjectFaults(func(c storetest.Call) storetest.Fault {
		if c.Operation == storetest.Replace && c.Key.ID == "ShopA_1" {
			return storetest.FailedBeforeApply
		}
		return storetest.NoFault
	})
	d.expectExit("deliveries replay --merchant ShopA --from 2026-03-01 --to 2026-03-02"+confirmFlags, ExitFailed,
		"pay#ShopA_1")
	for _, r := range d.audit.records {
		if r.What == "replay deliveries" && (r.Outcome != OutcomeFailed || !strings.Contains(r.Detail, "2 of 3")) {
			t.Errorf("audit record of the partial replay: %s: %s", r.Outcome, r.Detail)
		}
	}
}

// Each flag of a day takes yesterday and today, which are UTC days.
func TestNamedDays(t *testing.T) {
	d := newTestTool(t)
	d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	d.now = d.now.Add(day)
	for line, found := range map[string]string{
		"find ShopA_1 --since yesterday":                                 "2026-03-01 on",
		"find ShopA_1 --since today":                                     "2026-03-02 on",
		"list ShopA --day yesterday":                                     "ShopA_1",
		"list ShopA --from yesterday --to today":                         "ShopA_1",
		"deliveries list ShopA --from yesterday --to yesterday":          "ShopA_1",
		"deliveries replay --merchant ShopA --from yesterday --to today": "1",
		"audit --since yesterday":                                        "add a merchant",
		"endpoint list ShopA --since yesterday":                          "https://",
	} {
		if code, out, stderr := d.run(line); code != ExitDone || !strings.Contains(out+stderr, found) {
			t.Errorf("%s: exit %d, without %q: %s%s", line, code, found, out, stderr)
		}
	}
	d.expectExit("deliveries send --merchant ShopA --since yesterday", ExitFailed, "nothing waits")
	d.expectExit("find ShopA_1 --since tomorrow", ExitUsage, "yesterday or today")
	d.expectExit("audit --since", ExitUsage, "--since")
}

func TestTimeRangesAreConsistent(t *testing.T) {
	d := newTestTool(t)
	d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	file := filepath.Join(t.TempDir(), "out")
	for _, command := range []string{
		"list ShopA", "deliveries list ShopA", "deliveries replay --merchant ShopA", "unknown list ShopA",
		"export ShopA --output " + file,
	} {
		d.mustRun(command+" --from 2026-03-01 --to 2026-03-01", nil)
		d.expectExit(command+" --from 2026-03-02 --to 2026-03-01", ExitUsage, "range is empty")
		d.expectExit(command+" --from 2026-03-02 --to 2026-3-2", ExitUsage, "2026-3-2")
		d.expectExit(command+" --from 2026-03-02", ExitUsage, "--to")
	}
	for _, command := range []string{"deliveries list ShopA", "deliveries replay --merchant ShopA"} {
		d.expectExit(command+" --from 2026-03-01T12:00:00Z --to 2026-03-01T12:00:00Z", ExitUsage, "range is empty")
	}
}
