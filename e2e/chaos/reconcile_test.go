//go:build linux

package chaos

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/gatewayctl/reconcile/result"
)

// reconcile compares the sandbox's journal, written as a statement, with the ledger. To the minor unit only what is
// open may differ: it is listed for a person. A transaction may be on either side of midnight.
func (r *run) reconcile() {
	text, _, err := harness.Call(r.Context(), http.MethodGet, r.gateway.SandboxURL+"/sandbox/v1/statement", "", nil)
	if err != nil {
		r.Fatal(err)
	}
	program, statement := filepath.Join(r.TempDir(), "gatewayctl"), filepath.Join(r.TempDir(), "statement.csv")
	if err := os.WriteFile(statement, text, 0o600); err != nil {
		r.Fatal(err)
	}
	if output, err := exec.Command("go", "build", "-o", program, "../../cmd/gatewayctl").CombinedOutput(); err != nil {
		r.Fatalf("%v\n%s", err, output)
	}
	command := exec.Command(program, "--local", "--json", "reconcile", "--platform", "sandbox", "--decimal", "point",
		"--day", r.began.UTC().Format(time.DateOnly), "--statement", statement)
	command.Env = append(os.Environ(), "LOCAL_DIR="+r.gateway.dir)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err = command.Run()
	var found struct {
		result.Summary
		Differences []result.Row `json:"differences"`
	}
	if command.ProcessState == nil || command.ProcessState.ExitCode() > 1 ||
		json.Unmarshal(out.Bytes(), &found) != nil {
		r.Fatalf("reconcile: %v: %s", err, problems.String())
	}
	for i, row := range found.Differences {
		isOpen := row.ID != "" && (row.OurStatus == "pending" || row.OurStatus == "unknown")
		if !isOpen && row.Class != result.OtherDay && i < maxReported {
			r.Errorf("%s: %+v", row.Class, row)
		}
	}
	r.printf("reconciled: %v", found.Counts)
	for _, total := range found.Totals {
		r.printf("  %q %s: theirs %s, ours %s, difference %s %v", total.Merchant, total.Currency, total.Theirs,
			total.Ours, total.Difference, total.Classes)
	}
}
