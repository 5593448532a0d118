package transactions_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// addPartitioned stores payments of a day from a number on, one each second, as functions do that know this number of
// partitions. It returns their ids.
func addPartitioned(d *gatewayctltest.Tool, shop merchants.Onboarding, first, count, shards int) (ids []string) {
	for i := first; i < first+count; i++ {
		e := d.AddDeliveredPayment(shop, i, d.Now.Add(time.Duration(i)*time.Second), func(e *ledger.Entry) {
			e.Merchant.DayShard = ledger.DayShardAmong(e.Key, shards)
		})
		ids = append(ids, e.ID)
	}
	return ids
}

// decision "day-shards": lists and exports have the transactions of all partitions in the order of creation, also
// those from before the merchant had more, and from when it had most.
func TestListsMergePartitions(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	const each = 3*entries.PageSize + 7
	ids := addPartitioned(d, shop, 0, each, 1)
	d.Apply("merchant change ShopA --day-shards 5")
	ids = append(ids, addPartitioned(d, shop, each, 2*each, 5)...)
	d.Apply("merchant change ShopA --day-shards 2")
	ids = append(ids, addPartitioned(d, shop, 3*each, each, 2)...)
	d.ExpectOutput("merchant show ShopA", "partitions of a day", "2", "partitions read", "5")

	line := "export ShopA --from 2026-03-01 --to 2026-03-01 --format csv"
	_, whole, _ := d.Exec(line)
	d.Equal("exported", output.JoinComma(exportedIDs(t, "csv", whole)), output.JoinComma(ids))
	d.ExpectOutput("list ShopA --from 2026-03-01 --to 2026-03-01 --json", `"`+ids[0]+`"`, `"`+ids[each]+`"`,
		`"`+ids[len(ids)-1]+`"`)

	failEveryRead(d, 7)
	var parts []string
	cursor, runs := "", 0
	for code := gatewayctl.ExitFailed; code != gatewayctl.ExitDone; runs++ {
		var part, stderr string
		code, part, stderr = d.Exec(line + cursor)
		parts = append(parts, exportedIDs(t, "csv", part)...)
		if _, rest, found := strings.Cut(stderr, "--cursor "); found {
			cursor = " --cursor " + strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0])
		} else if code == gatewayctl.ExitFailed && runs > 20 {
			t.Fatalf("no progress: %s", stderr)
		}
	}
	d.Equal("exported in parts", output.JoinComma(parts), output.JoinComma(ids))
	if runs < 2 {
		t.Error("the export was not interrupted")
	}
	d.Ledger.InjectFaults(nil)
	d.ExpectExit(line+" --cursor 2026-03-01/"+strings.Repeat(",", 5), gatewayctl.ExitFailed, "more partitions")
}

// A file whose export was interrupted before the merchant had more partitions is continued: each transaction once.
func TestExportContinuesWithMorePartitions(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	const each = 2 * entries.PageSize
	ids := addPartitioned(d, shop, 0, each, 1)
	file := filepath.Join(t.TempDir(), "out")
	line := "export ShopA --from 2026-03-01 --to 2026-03-01 --format csv --output " + file
	failEveryRead(d, 2)
	d.ExpectExit(line, gatewayctl.ExitFailed, "injected")
	d.Ledger.InjectFaults(nil)
	d.Apply("merchant change ShopA --day-shards 3")
	ids = append(ids, addPartitioned(d, shop, each, each, 3)...)
	d.ExpectExit(line, gatewayctl.ExitDone, "Resuming")
	exported := exportedIDs(t, "csv", gatewayctltest.ReadFile(t, file))
	seen := map[string]bool{}
	for _, id := range exported {
		if seen[id] {
			t.Errorf("%s is exported twice", id)
		}
		seen[id] = true
	}
	if len(exported) != len(ids) {
		t.Errorf("%s exported, want %s", strconv.Itoa(len(exported)), strconv.Itoa(len(ids)))
	}
}
