package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/gatewayctl/reconcile/result"
)

// reconciled is what reconcile --json writes.
type reconciled struct {
	result.Summary
	Differences []result.Row `json:"differences"`
}

// stubPlatformNames are the platforms by the prefixes of their stubs, but that of messages.
var stubPlatformNames = map[string]string{
	"mtn": "mtn-momo", "pawapay": "pawapay", "wave": "wave-checkout", "orangewebpay": "orange-webpay",
	"orangecm": "orange-cm", "flouci": "flouci-checkout",
}

// isOpen reports whether a difference is a transaction of ours that is pending or unknown: it waits for its operator or
// for a person. A transaction may also be on either side of midnight.
func isOpen(row result.Row) bool {
	switch row.Class {
	case result.OtherDay:
		return true
	case result.OursAlone, result.TheirsAlone:
		return row.ID != "" && (row.OurStatus == "pending" || row.OurStatus == "unknown")
	}
	return false
}

// reconcileStubs compares the journal of each stub with the ledger, to the unit. Only what is open may differ.
func (e *ctlSession) reconcileStubs(day time.Time) {
	for prefix, platform := range stubPlatformNames {
		e.t.Run(platform, func(t *testing.T) {
			text, _, err := harness.Call(context.Background(), http.MethodGet,
				e.target.StubsURL+"/"+prefix+"/stub/v1/statement", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "statement.csv")
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, stderr := e.withT(t).runCommand(fmt.Sprintf(
				"reconcile --platform %s --day %s --decimal point --statement %s", platform, day.Format(time.DateOnly),
				path))
			var found reconciled
			if err := json.Unmarshal([]byte(out), &found); err != nil || code > 1 {
				t.Fatalf("exit %d: %v: %s", code, err, stderr)
			}
			if found.Counts[result.Equal]+found.Counts[result.OtherDay] == 0 {
				t.Errorf("nothing is equal: %v", found.Counts)
			}
			for _, row := range found.Differences {
				if !isOpen(row) {
					t.Errorf("%s of %s: %+v", row.Class, platform, row)
				}
			}
			t.Logf("%v %+v", found.Counts, found.Totals)
		})
	}
}
