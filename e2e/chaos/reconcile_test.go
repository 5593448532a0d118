//go:build linux

package chaos

import "mobilegateway/e2e/harness"

// reconcile compares the sandbox's journal, written as a statement, with the ledger. To the minor unit only what is
// open may differ: it is listed for a person.
func (r *run) reconcile() {
	program, err := harness.BuildProgram(r.Context(), r.TempDir(), "gatewayctl")
	if err != nil {
		r.Fatal(err)
	}
	found, err := harness.Books{
		Program: program, LocalDir: r.gateway.dir, Platform: "sandbox", Day: r.began,
		StatementURL: r.gateway.SandboxURL + "/sandbox/v1/statement",
	}.Reconcile(r.Context(), r.TempDir())
	if err != nil {
		r.Fatal(err)
	}
	if err := found.Explain(nil); err != nil {
		r.Error(err)
	}
	r.printf("reconciled: %v", found.Counts)
	for _, total := range found.Totals {
		r.printf("  %v", total)
	}
}
