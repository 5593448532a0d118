package gatewayctl

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// findFixture is a deployment with a payment, a charge and an SMS of ShopA which is found by any of its values.
func findFixture(t *testing.T) (d *testTool, pay, charge, sms *ledger.Entry) {
	t.Helper()
	d, shop := newShopTool(t)
	d.apply("merchant add ShopB --country ci --operator sandbox")
	pay = d.addDeliveredPayment(shop, 1, d.now)
	pay.TransactionID, pay.OperatorReference, pay.MerchantReference = ledger.PaymentTransactionID(pay.ID), "OP-77",
		"INV 9"
	d.ledger.Overwrite(pay)
	charge = d.mustReadEntry(d.addUnknownCharge(shop, "c1"))
	charge.UpstreamKey = ledger.UpstreamKey("ShopA", "c1", "")
	d.ledger.Overwrite(charge)
	if _, err := d.ledger.ClaimReference(context.Background(), charge); err != nil {
		t.Fatal(err)
	}
	sms = d.mustReadEntry(d.addUnknownSMS(shop, "m1"))
	sms.CallbackData = "cb-1"
	d.ledger.Overwrite(sms)
	return d, pay, charge, sms
}

func TestFind(t *testing.T) {
	d, pay, charge, sms := findFixture(t)
	d.addDeliveredPayment(onboardingResult{merchantView: merchantView{ID: pay.MerchantID, Name: "ShopA"}}, 2, d.now)
	other := pay.Clone()
	other.ID, other.MSISDN = "ShopA_3", "0707079999"
	other.TransactionID, other.OperatorReference, other.MerchantReference, other.Delivered = "t3", "OP-3", "", nil
	d.ledger.Overwrite(other)
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
		{strings.ToUpper(pay.TransactionID), "Transaction-id", []*ledger.Entry{pay}, true},
		{pay.TransactionID, "Transaction-id", []*ledger.Entry{pay}, true},
		{"OP-77", "operator's reference", []*ledger.Entry{pay}, true},
		{"INV 9", "reference", []*ledger.Entry{pay}, true},
		{pay.Delivered[0].ID, "webhook-id", []*ledger.Entry{pay}, true},
		{"+225 07 07 07 99 99", "MSISDN", []*ledger.Entry{other}, true},
		{"cb-1", "callbackData", []*ledger.Entry{sms}, true},
	} {
		d.ledger.InjectFaults(func(call storetest.Call) storetest.Fault {
			if call.Operation == storetest.Day && !c.walks {
				t.Errorf("%s: the days are read, although a key has it", c.value)
			}
			return storetest.NoFault
		})
		var found findResult
		code, out, stderr := d.runArguments("find", c.value, "--json")
		if code != ExitDone {
			t.Errorf("find %s: exit %d: %s", c.value, code, stderr)
			continue
		}
		mustDecode(t, out, &found)
		var ids, want []string
		for _, match := range found.Matches {
			ids = append(ids, match.ID+" by "+match.FoundBy)
		}
		for _, e := range c.want {
			want = append(want, e.ID+" by "+c.by)
		}
		checkEqual(t, "find "+c.value, ids, want)
		if walked := strings.Contains(stderr, "the days from 2026-02-22"); walked != c.walks {
			t.Errorf("find %s says that it read the days: %v, want %v: %s", c.value, walked, c.walks, stderr)
		}
	}
}

// --merchant and --since narrow and widen a search.
func TestFindRange(t *testing.T) {
	d, pay, charge, _ := findFixture(t)
	d.expectOutput("find ShopA_1", "FOUND BY", "order_id", "gatewayctl payment show ShopA_1")
	d.expectExit("find ShopA_1 --merchant ShopB", ExitFailed, errNothingFound.Error())
	d.expectExit("find ShopA_1 --merchant ShopX", ExitFailed, "no merchant")
	d.now = d.now.Add(30 * day)
	d.expectExit("find OP-77", ExitFailed, "--since")
	found := query[findResult](d, "find OP-77 --since 2026-02-01 --merchant shopa")
	checkEqual(t, "found in old days", len(found.Matches), 1)
	// With --since the days are read also if a key has the value: the payment's reference is the charge's key.
	pay.MerchantReference = "c1"
	d.ledger.Overwrite(pay)
	checkEqual(t, "by key only", len(query[findResult](d, "find c1").Matches), 1)
	checkEqual(t, "by key and in the days", len(query[findResult](d, "find c1 --since 2026-03-01").Matches), 2)
	checkEqual(t, "shown once", query[findResult](d, "find "+charge.ID+" --since 2026-03-01").Matches[0].FoundBy, "id")
	if code, out, stderr := d.run("find 0707072000 --since 2026-03-01"); code != ExitDone ||
		strings.Contains(out+stderr, "0707072000") {
		t.Errorf("a number is shown: exit %d, %s%s", code, out, stderr)
	}
}

// No table has request ids: the command that finds their log lines is printed.
func TestFindRequestID(t *testing.T) {
	d, _, _, _ := findFixture(t)
	if _, _, stderr := d.run("find 3fa85f64-5717-4562-b3fc-2c963f66afa6"); !strings.Contains(stderr, `"/$S/$f"`) {
		t.Errorf("the log command without a stack's table: %s", stderr)
	}
	d.variables["LEDGER_TABLE"] = "mobile-gateway-prod-LedgerTable-1ABC"
	const id = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
	d.expectExit("find "+id, ExitFailed, `--log-group-name "/mobile-gateway-prod/$f" --filter-pattern `+
		`'{ $.RequestID = "`+id+`" }' --start-time `+"1771718400000")
	d.expectExit("find "+id+" --since 2026-03-01", ExitFailed, "--start-time 1772323200000")
	d.expectExit("find "+strings.ToUpper(id), ExitFailed, `$.RequestID = "`+id)
	if _, _, stderr := d.run("find OP-77"); strings.Contains(stderr, "request id") {
		t.Errorf("a reference counts as a request id: %s", stderr)
	}
}

func TestSameNumber(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0707072000", "+2250707072000", true}, {"002250707072000", "2250707072000", true},
		{"tel:+2250707072000", "0707072000", true}, {"0812345678", "+243812345678", true},
		{"0707072000", "0707072001", false}, {"2000", "0707072000", false}, {"", "", false},
		{"acr:OperatorAPIToken", "0707072000", false},
	} {
		if sameNumber(c.a, c.b) != c.want || sameNumber(c.b, c.a) != c.want {
			t.Errorf("%s and %s are one number: want %v", c.a, c.b, c.want)
		}
	}
}

func mustDecode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
