package restore_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// TestUnreadableLogs: a file without log lines of this ledger refuses the run. Its keys would count as checked.
func TestUnreadableLogs(t *testing.T) {
	line := logLine("pay", "ShopA", "ShopA_1", lostAt)
	message, err := json.Marshal(map[string]string{"message": line})
	if err != nil {
		t.Fatal(err)
	}
	ofStack := func(name string) string {
		return strings.Replace(line, `"Operation"`, `"Stack":"`+name+`","Operation"`, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"wrapped in JSON": {string(message), "write one message of a function in each line"},
		"UTF-16":          {"\x00" + strings.Join(strings.Split(line, ""), "\x00"), "is not UTF-8 text"},
		"packed":          {"\x1f\x8b\x08\x00\x00\x00", "is not UTF-8 text"},
		"of two stacks": {ofStack("prod") + "\n" + ofStack("staging"),
			"the log line is of the stack staging, not prod"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newLoss(t)
			log := file(t, "lines.log", logLine("pay", "ShopA", "ShopA_2", lostAt), c.text)
			d.ExpectFailed(check(log), c.want)
			d.Equal("entries", len(d.Ledger.All()), 0)
		})
	}
}

// A second list of a merchant must not replace its first one silently.
func TestTwoListsOfAMerchant(t *testing.T) {
	d, _ := newLoss(t)
	list := file(t, "list.csv", "kind,id", "pay,ShopA_1")
	d.ExpectExit("restore check --at "+moment+" --list ShopA="+list+" --list ShopA="+list, gatewayctl.ExitUsage,
		"ShopA has two lists: put their rows into one file")
	d.ExpectExit("restore check --at "+moment+" --list ShopA", gatewayctl.ExitUsage, "MERCHANT=FILE")
}

// A misspelt column would lose its values: a charge without its referenceCode can be charged again.
func TestColumnsOfAList(t *testing.T) {
	for heading, want := range map[string]string{
		"kind,client_correlator,reference-code": `it has the column "reference-code", which is not known: remove it, ` +
			`or use one of kind, id, transaction_id`,
		"kind,client_correlator,":     `it has the column "", which is not known`,
		"kind,client_correlator,kind": `it has the column "kind" twice`,
		"Kind,client_correlator,id":   `it has the column "Kind", which is not known`,
		"id,client_correlator,amount": "it has no column kind",
	} {
		d, _ := newLoss(t)
		list := file(t, "list.csv", heading, "charge,c-1,REF-1")
		d.ExpectFailed("restore check --at "+moment+" --list ShopA="+list, want)
		d.Equal("entries", len(d.Ledger.All()), 0)
	}
	d, _ := newLoss(t)
	list := file(t, "list.csv", strings.Join(transactions.ExportColumns(), ", "))
	d.MustRun("restore check --at "+moment+" --list ShopA="+list+" --json", nil)
}

// A moment after that of the restore would count the keys between the two as present. Log lines from before it show
// that: their requests were stored.
func TestMomentAfterTheRestore(t *testing.T) {
	before := lostAt.Add(-time.Hour)
	refused := strings.Replace(logLine("pay", "ShopA", "ShopA_2", before), `"Status":201`, `"Status":400`, 1)
	for name, c := range map[string]struct{ line, want string }{
		"a payment": {logLine("pay", "ShopA", "ShopA_2", before), "--at 2026-03-01T11:00:00Z is too late: the ledger " +
			"lacks the keys of 1 log line from before it, such as ShopA_2 of ShopA at 2026-03-01T10:30:00Z"},
		"a charge":                               {logLine("charge", "ShopA", "c-2", before), "such as c-2 of ShopA"},
		"an SMS":                                 {logLine("sms", "ShopA", "s-2", before), "such as s-2 of ShopA"},
		"one that it has":                        {logLine("pay", "ShopA", "ShopA_1", before), ""},
		"a charge that it has, by its reference": {logLine("charge", "ShopA", "REF-3", before), ""},
		"a refused request":                      {refused, ""},
		"a masked key":                           {logLine("charge", "ShopA", "tel-0707070707", before), ""},
		"a callback":                             {logLine("notif", "ShopA", "ShopA_9", before), ""},
		"within the margin":                      {logLine("pay", "ShopA", "ShopA_9", lostAt.Add(-32*time.Minute)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, shop := newLoss(t)
			d.AddDeliveredPayment(shop, 1, before)
			d.AddDeliveredPayment(shop, 3, before, func(e *ledger.Entry) {
				e.Key = ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(shop.ID, "", "REF-3")}
			})
			log := file(t, "lines.log", c.line, logLine("pay", "ShopA", "ShopA_4", lostAt))
			if c.want != "" {
				d.ExpectFailed(check(log)+gatewayctltest.Confirm, c.want)
				d.Equal("entries", len(d.Ledger.All()), 2)
				return
			}
			d.MustRun(check(log)+" --json", nil)
		})
	}
}

// The output shows what the ledger has next to the moment, so that a wrong one is seen without log lines too.
func TestNeighboursOfTheMoment(t *testing.T) {
	at := lostAt.Add(-30 * time.Minute)
	for name, c := range map[string]struct {
		created []time.Duration // from the moment
		want    string
		warns   bool
	}{
		"none": {nil, "no transaction of the two days before --at", false},
		"before": {[]time.Duration{-2 * time.Hour, -time.Second}, "before --at is of 2026-03-01T10:59:59Z",
			false},
		"the day before": {[]time.Duration{-20 * time.Hour}, "before --at is of 2026-02-28T15:00:00Z", false},
		"after": {[]time.Duration{-time.Second, 5 * time.Minute, 10 * time.Minute},
			"the ledger has a transaction of 2026-03-01T11:05:00Z, after --at", true},
	} {
		t.Run(name, func(t *testing.T) {
			d, shop := newLoss(t)
			for number, since := range c.created {
				d.AddDeliveredPayment(shop, number+1, at.Add(since))
			}
			log := file(t, "lines.log", logLine("pay", "ShopA", "ShopA_8", lostAt))
			for range 2 { // what the first run stores does not count
				code, _, stderr := d.Exec(check(log) + gatewayctltest.Confirm)
				if code != gatewayctl.ExitDone || !strings.Contains(stderr, c.want) ||
					strings.Contains(stderr, "after --at") != c.warns {
					t.Errorf("exit %d: %s", code, stderr)
				}
			}
		})
	}
}
