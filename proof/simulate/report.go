package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/shared/ledger"
)

// Report sums up histories. The zero value is an empty report.
type Report struct {
	Histories  int
	Violations int
	Counts     history.Counts
	Hours      float64 // of simulated time, which can be more than a time.Duration has
	Faults     map[string]int
	Sites      history.Sites
	Rows       map[string]int
}

// Add adds the result of a history.
func (r *Report) Add(result Result) {
	if r.Faults == nil {
		r.Faults, r.Sites, r.Rows = map[string]int{}, history.Sites{}, map[string]int{}
	}
	r.Histories++
	if result.Violation != nil {
		r.Violations++
	}
	r.Hours += result.Simulated.Hours()
	r.Counts.Steps += result.Counts.Steps
	r.Counts.Requests += result.Counts.Requests
	r.Counts.Sweeps += result.Counts.Sweeps
	r.Counts.Batches += result.Counts.Batches
	r.Counts.Commands += result.Counts.Commands
	for kind, number := range result.Faults {
		r.Faults[kind] += number
	}
	for name, number := range result.Rows {
		r.Rows[name] += number
	}
	for _, site := range result.Sites {
		total := r.Sites.Of(site.Function, site.Call)
		total.Calls += site.Calls
		total.Before += site.Before
		total.After += site.After
	}
}

// String is the report as Markdown tables: the totals, the faults by kind, and the outside calls with their crashes.
func (r *Report) String() string {
	var text strings.Builder
	years := r.Hours / 24 / 365
	before, after := 0, 0
	for _, site := range r.Sites {
		before += min(site.Before, 1)
		after += min(site.After, 1)
	}
	row := func(name string, value any) { fmt.Fprintf(&text, "| %s | %v |\n", name, value) }
	text.WriteString("\n| | |\n|---|---:|\n")
	row("histories", r.Histories)
	row("violations", r.Violations)
	row("simulated years", fmt.Sprintf("%.1f", years))
	row("steps", r.Counts.Steps)
	row("requests", r.Counts.Requests)
	row("sweeps", r.Counts.Sweeps)
	row("stream batches", r.Counts.Batches)
	row("commands of gatewayctl", r.Counts.Commands)
	row("outside calls crashed before", fmt.Sprintf("%d of %d", before, len(r.Sites)))
	row("outside calls crashed after", fmt.Sprintf("%d of %d", after, len(r.Sites)))
	text.WriteString("\n| Fault | Injected |\n|---|---:|\n")
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		row(kind, r.Faults[kind])
	}
	text.WriteString("\n| Row of a write (TestSeeds: the first that allows it) | Writes |\n|---|---:|\n")
	for _, t := range ledger.Rows() { // in TestSeeds, the narrow rows hide wide ones
		if t.Changes != ledger.OtherItem {
			row(t.Name, r.Rows[t.Name])
		}
	}
	text.WriteString("\n| Function | Outside call | Calls | Crashes before | Crashes after |\n")
	text.WriteString("|---|---|---:|---:|---:|\n")
	for _, site := range slices.SortedFunc(maps.Values(r.Sites), history.ByName) {
		fmt.Fprintf(&text, "| %s | %s | %d | %d | %d |\n",
			site.Function, site.Call, site.Calls, site.Before, site.After)
	}
	return text.String()
}
