package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report sums up histories. The zero value is an empty report.
type Report struct {
	Histories  int
	Violations int
	Counts     Counts
	Hours      float64 // of simulated time, which can be more than a time.Duration has
	Faults     map[string]int
	sites      map[siteName]*Site
}

// Add adds the result of a history.
func (r *Report) Add(result Result) {
	if r.Faults == nil {
		r.Faults, r.sites = map[string]int{}, map[siteName]*Site{}
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
	for _, site := range result.Sites {
		total := siteOf(r.sites, site.Function, site.Call)
		total.Calls += site.Calls
		total.Before += site.Before
		total.After += site.After
	}
}

// Sites returns all outside calls in the order of their names.
func (r *Report) Sites() []*Site {
	return slices.SortedFunc(maps.Values(r.sites), func(a, b *Site) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Call, b.Call))
	})
}

// String is the report as Markdown tables: the totals, the faults by kind, and the outside calls with their crashes.
func (r *Report) String() string {
	var text strings.Builder
	years := r.Hours / 24 / 365
	before, after := 0, 0
	for _, site := range r.sites {
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
	row("outside calls crashed before", fmt.Sprintf("%d of %d", before, len(r.sites)))
	row("outside calls crashed after", fmt.Sprintf("%d of %d", after, len(r.sites)))
	text.WriteString("\n| Fault | Injected |\n|---|---:|\n")
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		row(kind, r.Faults[kind])
	}
	text.WriteString("\n| Function | Outside call | Calls | Crashes before | Crashes after |\n")
	text.WriteString("|---|---|---:|---:|---:|\n")
	for _, site := range r.Sites() {
		fmt.Fprintf(&text, "| %s | %s | %d | %d | %d |\n",
			site.Function, site.Call, site.Calls, site.Before, site.After)
	}
	return text.String()
}
