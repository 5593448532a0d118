package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mobilegateway/bench/page"
	"mobilegateway/world/lambda"
	"mobilegateway/world/template"
)

// report is the measurements of all kinds of work.
type report struct {
	entries               int // of each kind
	loadBefore, loadAfter string
	results               []result
}

// resultMarks and boundMarks return the marks of the generated sections of docs/scale.md and docs/reliability.md.
func resultMarks() page.Marks { return page.NewMarks("capacity") }

func boundMarks() page.Marks { return page.NewMarks("capacity bound") }

// markdown is the section of docs/scale.md.
func (r *report) markdown() string {
	var b strings.Builder
	var engine float64
	for _, m := range r.results {
		engine = max(engine, millisPer(m.engine, m.done))
	}
	fmt.Fprintf(&b, "Measured with %s: %d entries of each kind.\n", page.Machine(), r.entries)
	fmt.Fprintf(&b, "The machine's load was %s before and %s after it.\n", r.loadBefore, r.loadAfter)
	fmt.Fprintf(&b, "Each call waits before it is handled: DynamoDB %v, operators and merchants %v.\n",
		tableDelay, outsideDelay)
	fmt.Fprintf(&b, "The quota has a period of %v.\n", period)
	fmt.Fprintf(&b, "Outside of it, the database took at most %.2f ms of a processor for an entry.\n\n", engine)
	b.WriteString(r.table())
	return b.String()
}

func (r *report) table() string {
	var b strings.Builder
	columns := []string{
		"Work", "Memory, MB", "Entries", "CPU, ms", "DynamoDB calls", "dials", "Operator and merchant calls", "dials",
		"Full handshakes", "Entries a second at its whole share", "as measured", "of its share used", "Peak memory, MB",
	}
	fmt.Fprintf(&b, "| %s |\n|---%s|\n", strings.Join(columns, " | "), strings.Repeat("|---:", len(columns)-1))
	for _, m := range r.results {
		of := func(count int64) float64 { return float64(count) / float64(m.done) }
		fmt.Fprintf(&b, "| %s | %d | %d | %.2f | %.2f | %.3f | %.2f | %.3f | %.3f ", m.name, m.memoryMB, m.done,
			millisPer(m.cpu, m.done), of(m.tables.calls), of(m.tables.dials), of(m.outside.calls), of(m.outside.dials),
			of(m.tables.fullHandshakes+m.outside.fullHandshakes))
		fmt.Fprintf(&b, "| %.0f | %.0f | %.0f %% | %.1f |\n", 1000*share(m.memoryMB)/millisPer(m.cpu, m.done),
			float64(m.done)/m.wall.Seconds(), 100*m.cpu.Seconds()/m.wall.Seconds()/share(m.memoryMB),
			float64(m.memory)/1e6)
	}
	return b.String()
}

// millisPer is the part of a duration that one of several entries has, in milliseconds.
func millisPer(d time.Duration, entries int) float64 {
	return float64(d) / float64(time.Millisecond) / float64(entries)
}

// publish writes both sections.
func (r *report) publish(out io.Writer, docs string, deployment *template.Template) error {
	text := r.markdown()
	costs, err := parseCosts(text)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s\n%s\n", text, bound(costs, deployment))
	return errors.Join(err,
		resultMarks().Replace(filepath.Join(docs, "scale.md"), text),
		boundMarks().Replace(filepath.Join(docs, "reliability.md"), bound(costs, deployment)))
}

// costRow matches a row of the table up to its CPU time.
var costRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| \d+ \| \d+ \| (\d+\.\d+) \|`)

// parseCosts reads the milliseconds of a processor that an entry costs, by the kind of work, from the table.
func parseCosts(text string) (map[string]float64, error) {
	costs := map[string]float64{}
	for _, row := range costRow.FindAllStringSubmatch(text, -1) {
		costs[row[1]], _ = strconv.ParseFloat(row[2], 64) // the pattern allows only a number
	}
	for _, w := range works() {
		if costs[w.name] == 0 {
			return nil, fmt.Errorf("the table has no cost of %q", w.name)
		}
	}
	return costs, nil
}

// The backlog of the bound, in entries and minutes.
const (
	backlog       = 100_000
	backlogWithin = 2
)

// sweepCounts are the numbers of sweeps of a minute that the parameter Sweeps of template.yaml allows.
func sweepCounts() []int { return []int{1, 2, 4} }

// startMargin is the end of its time in which a sweep begins nothing (functions/sweep).
const startMargin = 20 * time.Second

// bound is the section of docs/reliability.md: what the costs mean for the functions as they are deployed.
func bound(costs map[string]float64, deployment *template.Template) string {
	sweep, relay := deployment.Function("sweep"), deployment.Function("relay")
	name, cost := costliest(costs, "sweep")
	window := (sweep.Timeout - startMargin).Seconds()
	needed := backlog * cost / 1000 // seconds of a processor
	var b strings.Builder
	fmt.Fprintf(&b, "%s due entries of the costliest kind (%s) take %.0f seconds of a processor.\n",
		thousands(backlog), name, needed)
	fmt.Fprintf(&b, "A sweep of %s MB has %.2f of one, and begins work in the first %.0f seconds of a minute.\n",
		thousands(sweep.MemoryMB), share(sweep.MemoryMB), window)
	fmt.Fprintf(&b, "For %d minutes the sweeps need %s MB together:\n\n",
		backlogWithin, thousands(int(math.Ceil(needed/window/backlogWithin*lambda.ProcessorMB))))
	fmt.Fprintf(&b, "| Sweeps of a minute | Memory together, MB | %s entries take | In %d minutes they process |\n"+
		"|---:|---:|---:|---:|\n", thousands(backlog), backlogWithin)
	for _, sweeps := range sweepCounts() {
		processors := float64(sweeps) * share(sweep.MemoryMB)
		minutes := math.Ceil(needed / processors / window)
		entries := backlogWithin * window * processors / cost // thousands
		fmt.Fprintf(&b, "| %d | %s | %.0f min | %s |\n", sweeps, thousands(sweeps*sweep.MemoryMB), minutes,
			thousands(int(entries)*1000))
	}
	name, cost = costliest(costs, "relay")
	lanes := float64(relay.Streams[0].ParallelizationFactor)
	fmt.Fprintf(&b, "\nThe relay of %d MB processes up to %s records a second for each shard of the stream (%s).\n",
		relay.MemoryMB, thousands(int(lanes*share(relay.MemoryMB)/cost*1000)), name)
	return b.String()
}

// costliest returns the kind of work of a function that costs most, and the milliseconds that it costs.
func costliest(costs map[string]float64, function string) (name string, cost float64) {
	for _, w := range works() {
		if w.function == function && costs[w.name] > cost {
			name, cost = w.name, costs[w.name]
		}
	}
	return strings.TrimPrefix(name, function+": "), cost
}

// thousands writes a number with a comma before each three digits.
func thousands(number int) string {
	text := strconv.Itoa(number)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
