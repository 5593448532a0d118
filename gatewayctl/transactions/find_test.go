package transactions_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// findFixture is a deployment with a payment, a charge and an SMS of ShopA which is found by any of its values.
func findFixture(t *testing.T) (d *gatewayctltest.Tool, pay, charge, sms *ledger.Entry) {
	t.Helper()
	d, shop := gatewayctltest.NewShop(t)
	d.Apply("merchant add ShopB --country ci --operator sandbox")
	pay = d.AddDeliveredPayment(shop, 1, d.Now, func(e *ledger.Entry) {
		e.Request.TransactionID, e.Request.Reference = ledger.PaymentTransactionID(e.ID), "INV 9"
		e.OperatorReference = "OP-77"
	})
	charge = d.Update(d.AddUnknownCharge(shop, "c1"), func(e *ledger.Entry) {
		e.Route.UpstreamKey = ledger.UpstreamKey("ShopA", "c1", "")
	})
	if _, err := d.Ledger.ClaimReference(context.Background(), charge); err != nil {
		t.Fatal(err)
	}
	sms = d.Update(d.AddUnknownSMS(shop, "m1"), func(e *ledger.Entry) { e.Request.CallbackData = "cb-1" })
	return d, pay, charge, sms
}

// A transaction that does not exist is named as it was typed.
func TestShowNamesTheTypedKey(t *testing.T) {
	d, _, _, _ := findFixture(t)
	d.ExpectExit("charge show --merchant ShopB --correlator c9", gatewayctl.ExitFailed,
		"there is no charge c9 of ShopB: gatewayctl find")
	d.ExpectExit("charge show --merchant ShopA --reference r9", gatewayctl.ExitFailed, "there is no charge r9 of ShopA")
	d.ExpectExit("sms show --merchant ShopA --correlator c9", gatewayctl.ExitFailed, "there is no SMS c9 of ShopA")
	d.ExpectExit("sms show s9", gatewayctl.ExitFailed, "there is no SMS s9:")
}

// The logs mask the digits of a key: no search finds such a value, however many days it reads.
func TestFindOfMaskedValue(t *testing.T) {
	d, _, _, _ := findFixture(t)
	d.ExpectExit("find first-********62", gatewayctl.ExitFailed, "its digits are masked")
}

func TestFind(t *testing.T) {
	d, pay, charge, sms := findFixture(t)
	d.AddDeliveredPayment(merchants.Onboarding{View: merchants.View{ID: pay.Merchant.ID, Name: "ShopA"}}, 2, d.Now)
	other := d.AddDeliveredPayment(merchants.Onboarding{View: merchants.View{ID: pay.Merchant.ID, Name: "ShopA"}}, 3,
		d.Now, func(e *ledger.Entry) { e.Request.MSISDN = "0707079999" })
	for _, c := range []struct {
		value, by string
		want      []*ledger.Entry
		walks     bool
	}{
		{"ShopA_1", "order_id", []*ledger.Entry{pay}, false},
		{charge.ID, "id", []*ledger.Entry{charge}, false},
		{sms.ID, "id", []*ledger.Entry{sms}, false},
		{"c1", "clientCorrelator", []*ledger.Entry{charge}, false},
		{"m1", "clientCorrelator", []*ledger.Entry{sms}, false},
		{"ShopA.c1", "clientCorrelator", []*ledger.Entry{charge}, false},
		{"=1+1", "referenceCode", []*ledger.Entry{charge}, false},
		{strings.ToUpper(charge.ID), "id", []*ledger.Entry{charge}, false},
		{strings.ToUpper(pay.Request.TransactionID), "Transaction-id", []*ledger.Entry{pay}, true},
		{pay.Request.TransactionID, "Transaction-id", []*ledger.Entry{pay}, true},
		{"OP-77", "operator's reference", []*ledger.Entry{pay}, true},
		{"INV 9", "reference", []*ledger.Entry{pay}, true},
		{pay.Outbox.Delivered[0].ID, "webhook-id", []*ledger.Entry{pay}, true},
		{"+225 07 07 07 99 99", "MSISDN", []*ledger.Entry{other}, true},
		{"cb-1", "callbackData", []*ledger.Entry{sms}, true},
	} {
		d.Ledger.InjectFaults(func(call storetest.Call) storetest.Fault {
			if call.Operation == storetest.Day && !c.walks {
				t.Errorf("%s: the days are read, although a key has it", c.value)
			}
			return storetest.NoFault
		})
		var found transactions.FindResult
		code, out, stderr := d.ExecArguments("find", c.value, "--json")
		if code != gatewayctl.ExitDone {
			t.Errorf("find %s: exit %d: %s", c.value, code, stderr)
			continue
		}
		gatewayctltest.Decode(t, out, &found)
		var ids, want []string
		for _, match := range found.Matches {
			ids = append(ids, match.ID+" by "+match.FoundBy)
		}
		for _, e := range c.want {
			want = append(want, e.ID+" by "+c.by)
		}
		d.Equal("find "+c.value, ids, want)
		if walked := strings.Contains(stderr, "the days from 2026-02-22"); walked != c.walks {
			t.Errorf("find %s says that it read the days: %v, want %v: %s", c.value, walked, c.walks, stderr)
		}
	}
}

// --merchant and --since narrow and widen a search.
func TestFindRange(t *testing.T) {
	d, pay, charge, _ := findFixture(t)
	d.ExpectOutput("find ShopA_1", "FOUND BY", "order_id", "gatewayctl payment show ShopA_1")
	d.ExpectExit("find ShopA_1 --merchant ShopB", gatewayctl.ExitFailed, "no transaction has this value")
	d.ExpectExit("find ShopA_1 --merchant ShopX", gatewayctl.ExitFailed, "no merchant")
	d.Now = d.Now.Add(30 * session.Day)
	d.ExpectExit("find OP-77", gatewayctl.ExitFailed, "--since")
	found := gatewayctltest.Query[transactions.FindResult](d, "find OP-77 --since 2026-02-01 --merchant shopa")
	d.Equal("found in old days", len(found.Matches), 1)
	// With --since the days are read also if a key has the value: the payment's reference is the charge's key.
	pay.Request.Reference = "c1"
	d.Ledger.Overwrite(pay)
	d.Equal("by key only", len(gatewayctltest.Query[transactions.FindResult](d, "find c1").Matches), 1)
	d.Equal("by key and in the days",
		len(gatewayctltest.Query[transactions.FindResult](d, "find c1 --since 2026-03-01").Matches), 2)
	d.Equal("shown once",
		gatewayctltest.Query[transactions.FindResult](d, "find "+charge.ID+" --since 2026-03-01").Matches[0].FoundBy,
		"id")
	d.ExpectWithout("find 0707072000 --since 2026-03-01", gatewayctl.ExitDone, "0707072000")
}

// No table has request ids: the command that finds their log lines is printed.
func TestFindRequestID(t *testing.T) {
	d, _, _, _ := findFixture(t)
	const id = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
	d.ExpectExit("find "+id, gatewayctl.ExitFailed, `"/$S/$f"`) // without a stack's table
	d.Variables["LEDGER_TABLE"] = "mobile-gateway-prod-LedgerTable-1ABC"
	d.ExpectExit("find "+id, gatewayctl.ExitFailed, `--log-group-name "/mobile-gateway-prod/$f" --filter-pattern `+
		`'{ $.RequestID = "`+id+`" }' --start-time `+"1771718400000")
	d.ExpectExit("find "+id+" --since 2026-03-01", gatewayctl.ExitFailed, "--start-time 1772323200000")
	d.ExpectExit("find "+strings.ToUpper(id), gatewayctl.ExitFailed, `$.RequestID = "`+id)
	d.ExpectWithout("find OP-77", gatewayctl.ExitDone, "request id")
}

// show lists each attempt with its time, outcome, cause, the operator's status and what the merchant was sent.
func TestShowCallAttempts(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	e := d.MustReadEntry(d.AddUnknownCharge(shop, "c1"))
	e.SentAt, e.ReservedAt = d.Now.Add(2*time.Minute), d.Now.Add(2*time.Minute)
	e.Call.Attempts = []ledger.CallAttempt{
		{At: d.Now, Outcome: ledger.CallNotSent, Reason: "limit-store", Response: 503},
		{At: d.Now.Add(time.Minute), Millis: 1200, Outcome: ledger.CallNotApplied, Reason: "unavailable",
			HTTPStatus: 503, Response: 503},
		{At: d.Now.Add(2 * time.Minute), Millis: 20000, Outcome: ledger.CallUnknown, Reason: "timeout",
			Response: 504},
		{At: d.Now.Add(3 * time.Minute), Outcome: ledger.CallLapsed},
	}
	d.Ledger.Overwrite(e)
	d.Now = d.Now.Add(time.Hour)
	d.ExpectOutput("charge show "+e.ID,
		"first sent", "2026-03-01T12:01:00Z",
		"no lookup", "may send the same request again until 2026-03-02T11:52:00Z",
		"listed for a person at 2026-03-01T13:00:00Z", "request", "1.50 USD",
		"call", "not-sent, limit-store, the merchant was sent 503",
		"not-applied, unavailable, after 1.2 s, the operator responded 503, the merchant was sent 503",
		"unknown, timeout, after 20.0 s, the merchant was sent 504", "no outcome was recorded")
	d.Now = d.Now.Add(48 * time.Hour)
	history := gatewayctltest.Query[entries.History](d, "charge show "+e.ID)
	d.Equal("attempts", len(history.CallAttempts), 4)
	d.Equal("reason of no lookup", history.NoLookup, "no operator has a status lookup for it: "+
		"get the outcome from the operator by the upstream key")
	d.AddDeliveredPayment(shop, 1, d.Now)
	d.ExpectOutput("payment show ShopA_1", "no lookup", "its status is final", "call",
		"succeeded, the merchant was sent 201")
}

func TestShowAndList(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	e := d.AddDeliveredPayment(shop, 1, d.Now)
	e.Conflicts = []ledger.Conflict{{Status: ledger.Failed, Reason: "final", Source: "callback",
		At: d.Now.Add(3 * time.Second)}}
	e.Outbox.Waiting = []ledger.Notification{{
		ID: "w2", Status: "late", At: d.Now.Add(4 * time.Second), Attempts: 2, DeadReason: "410", LastReason: "gone",
		LastStatus: 410,
	}}
	e.Outbox.NotifToken, e.Request.State = "NOTIFTOKEN", "STATE"
	d.Ledger.Overwrite(e)
	d.AddDeliveredPayment(shop, 2, d.Now, func(e *ledger.Entry) {
		e.Status, e.FailureReason = ledger.Failed, ledger.NotEnoughFunds
	})
	d.ExpectOutput("payment show ShopA_2", "failure reason", "not-enough-funds")
	d.AddUnknownCharge(shop, "c1")
	d.ExpectOutput("payment show ShopA_1", "1000", "********00", "request", "first send", "with account a1",
		"response", "stored for repeats", "final", "delivered", "conflict", "dead letter: 410")
	d.ExpectWithout("payment show ShopA_1", gatewayctl.ExitDone, "0707072000", "NOTIFTOKEN")
	charge := gatewayctltest.Query[entries.History](d, "charge show --merchant ShopA --correlator c1")
	d.Equal("state of the charge", charge.State, ledger.Unknown)
	d.Equal("amount of the charge", charge.Amount, "1.50")
	d.ExpectJSON("charge by id", "charge show "+charge.ID, charge)
	d.ExpectExit("payment show ShopA_9", gatewayctl.ExitFailed, "no payment ShopA_9")
	d.ExpectExit("sms show 1", gatewayctl.ExitFailed, "no SMS 1")
	d.ExpectExit("sms show", gatewayctl.ExitUsage, "correlator")
}

// list shows today, a day or a range of days.
func TestList(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddDeliveredPayment(shop, 1, d.Now)
	d.AddDeliveredPayment(shop, 2, d.Now.Add(session.Day))
	d.AddUnknownCharge(shop, "c1")
	for line, want := range map[string]int{
		"list ShopA": 2, "list shopa --day 2026-03-01": 2, "list " + shop.ID + " --day 2026-03-02": 1,
		"list ShopA --from 2026-03-01 --to 2026-03-02": 3, "list ShopA --day 2026-03-03": 0,
		"list ShopA --status unknown": 1, "list ShopA --kind charge": 1, "list ShopA --kind sms": 0,
	} {
		d.ExpectCount(line, line, want)
	}
	for _, invalid := range []string{"bogus", "Pending", "DONE"} {
		d.ExpectExit("list ShopA --status "+invalid, gatewayctl.ExitUsage, "pending, successful, failed")
	}
	for _, valid := range []string{"pending", "MessageWaiting", "DeliveryNotificationNotSupported", "reserved",
		"released"} {
		d.MustRun("list ShopA --status "+valid, nil)
	}
	d.ExpectExit("list ShopA --day 2026-03-01 --from 2026-03-01 --to 2026-03-02", gatewayctl.ExitUsage,
		"--day excludes")
	d.ExpectExit("list ShopA --from 2026-03-01", gatewayctl.ExitUsage, "--to")
	d.ExpectExit("list", gatewayctl.ExitUsage, "<merchant>")
}
