package restore_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mobilegateway/gatewayctl"
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
