package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"mobilegateway/bench/page"
	"mobilegateway/world/lambda"
)

// tableMarks and growthMarks return the marks of the two generated sections of bench/README.md.
func tableMarks() page.Marks { return page.NewMarks("tables") }

func growthMarks() page.Marks { return page.NewMarks("local run") }

// publish prints a section and, unless path is "", writes it between its marks in that file.
func publish(out io.Writer, path string, between page.Marks, text string) error {
	if _, err := io.WriteString(out, text+"\n"); err != nil || path == "" {
		return err
	}
	return between.Replace(path, text)
}

// smallMB is the memory of a small function. It has its part of a processor.
const smallMB = 128

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured with %s: %d starts of each program in turn, %d requests of each kind.\n",
		page.Machine(), r.starts, r.requests)
	fmt.Fprintf(&b, "Each call waits before it is handled: DynamoDB %v, Secrets Manager %v, the operator %v.\n\n",
		r.delays.table, r.delays.secrets, r.delays.operator)
	r.programTable(&b)
	r.requestTable(&b)
	b.WriteString(r.unitTable())
	charge := r.programs[slices.IndexFunc(r.programs, func(p programCost) bool { return p.name == "charge" })]
	fmt.Fprintf(&b, "The first charge of a new process takes %s ms if the init phase opened its connections, "+
		"else %s ms.\nThe init phase then costs %s ms more and the first request %s ms less.\n"+
		"No connection here uses TLS; with TLS an early connection saves far more.\n",
		millis(r.firstWarm), millis(r.firstCold), millis(charge.warm-charge.firstPoll), millis(r.firstCold-r.firstWarm))
	hot := r.kinds[slices.IndexFunc(r.kinds, func(k requestCost) bool { return k.name == "charge, first" })]
	fmt.Fprintf(&b,
		"\nThe CPU time of a charge takes %s ms of a function with %d MB, which has %d/%d of a processor.\n",
		millis(hot.cpu*lambda.ProcessorMB/smallMB), smallMB, smallMB, lambda.ProcessorMB)
	return b.String()
}

func (r *report) programTable(b *strings.Builder) {
	hello := r.programs[0]
	b.WriteString("| Program | Size, MB | to hello | Exec to first poll, ms | to hello " +
		"| with connections of the init phase, ms |\n|---|---|---|---|---|---|\n")
	for _, p := range r.programs {
		fmt.Fprintf(b, "| %s | %.2f | %.2f | %s | %.2f | %s |\n", p.name,
			float64(p.size)/1e6, float64(p.size)/float64(hello.size),
			millis(p.firstPoll), float64(p.firstPoll)/float64(hello.firstPoll), millis(p.warm))
	}
	b.WriteString("\n")
}

func (r *report) requestTable(b *strings.Builder) {
	circuits := 0
	columns := []string{
		"Request", "DynamoDB writes", "reads", "queries, scans", "operator calls", "p50, ms", "p99, ms",
		"of p50 waiting, ms", "CPU, ms", "peak memory, MB",
	}
	b.WriteString("| " + strings.Join(columns, " | ") + " |\n" + strings.Repeat("|---", len(columns)) + "|\n")
	for _, k := range r.kinds {
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %s | %s | %s | %s | %.1f |\n", k.name,
			k.calls.writes, k.calls.reads, k.calls.others, k.calls.operator,
			millis(k.p50), millis(k.p99), millis(k.waited), millis(k.cpu), float64(k.memory)/1e6)
		circuits += k.circuits
	}
	fmt.Fprintf(b, "\nBeside all these requests the processes read circuits %d times. "+
		"The tables do not count these reads.\n\n", circuits)
}

// unitTable has what DynamoDB bills for each kind of request with PackResponses=yes. For a payment with its callback
// and notification it has both values.
func (r *report) unitTable() string {
	var b strings.Builder
	b.WriteString("| DynamoDB bills for | write units | of them tables | index `day` | index `due` | read units |\n" +
		"|---|---|---|---|---|---|\n")
	row := func(name string, u units) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %.1f |\n", name, u.writes(), u.tables, u.day, u.due, u.reads)
	}
	var delivered units
	for _, k := range r.kinds {
		if k.name == baseline {
			continue
		}
		row(k.name, k.units)
		if isDelivery(k.name) {
			delivered = delivered.plus(k.units)
		}
	}
	row("payment, from request to delivered", delivered)
	row("the same with `PackResponses=no`", r.plain)
	return b.String() + "\n"
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }
