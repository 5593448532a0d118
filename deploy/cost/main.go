// Command cost writes the table of docs/deploy.md: what a million of each operation costs, from the calls that bench
// counts and AWS's list prices. `go run ./deploy/cost` after `make bench`; a test compares.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// The page, the marks of the table in it, and where the calls are counted.
const (
	page   = "docs/deploy.md"
	begin  = "<!-- cost: begin -->"
	end    = "<!-- cost: end -->"
	counts = "bench/README.md"
)

// Millionths of a US dollar, which are dollars for a million: us-east-1, AWS's public list prices as known on 2026-11-21; free tiers and volume steps left out.
const (
	apiRequest    = 3.50       // API Gateway, REST
	invocation    = 0.20       // Lambda
	gigabyteMS    = 0.01333334 // Lambda, arm64: 0.0000133334 dollars a GB second
	writeUnit     = 0.625      // DynamoDB on demand, of 1 KB
	readUnit      = 0.125      // DynamoDB on demand, of 4 KB, consistent
	loggedKB      = 0.50       // CloudWatch Logs taken in: 0.50 dollars a GB
	outgoingKB    = 0.09       // to the internet: 0.09 dollars a GB
	keyUse        = 3.00       // KMS, a request: 0.03 dollars for 10,000
	keyUsesShared = 0.01       // KMS requests a call of DynamoDB: it keeps the table's key for five minutes
)

// What the formula assumes where nothing is counted.
const (
	memoryGB    = 0.25 // template.yaml: MemorySize
	ownMS       = 10.0 // a function's own work, at its share of a processor
	databaseMS  = 5.0  // one call of DynamoDB
	operatorMS  = 500. // one call of an operator
	merchantMS  = 200. // one notification
	lineKB      = 2.0  // the lines of one invocation: ours, and Lambda's own
	accessKB    = 0.4  // the access log's line
	exchangedKB = 1.5  // an answer, or what we send: headers and body
)

// calls are what one run of a function makes.
type calls struct{ writes, reads, operator, merchant float64 }

// run is one run of a function within an operation.
type run struct {
	calls
	overAPI bool // it answers a request
}

// operation is a row of the table: all runs from the request to the end, and what bench does not count.
type operation struct {
	name string
	runs []run
	// itemUnits is what a write of its item takes: the size in KB, rounded up. indexUnits are those of the two indexes, over
	// the operation's life: "day" once, "due" for each time that the due date comes, changes (2) or goes.
	itemUnits, indexUnits float64
	// more are calls that a run of another row makes besides, where its merchant has limits.
	more calls
}

// operations are the rows. counted gives what bench counted of a request.
func operations(counted map[string]calls) []operation {
	// A notification's write tells that it was delivered; with the callback's that makes the four writes of a payment which
	// functions/relay counts in TestFourWrites.
	callback := run{calls{writes: 1, reads: 1, operator: 1}, true}
	receipt := run{calls{writes: 1, reads: 1}, true}
	relay := run{calls{writes: 1, merchant: 1}, false}
	first := func(name string) run { return run{counted[name], true} }
	return []operation{
		{"charge", []run{first("charge, first")}, 2, 3, calls{}},
		{"payment, with callback and notification", []run{first("pay (ussd), first"), callback, relay}, 2, 7, calls{}},
		{"SMS", []run{first("sms, first")}, 1, 3, calls{}},
		{"SMS, with two receipts and their notifications", []run{first("sms, first"), receipt, relay, receipt, relay}, 1, 7, calls{}},
		{"a repeat", []run{first("pay (ussd), repeated")}, 2, 0, calls{}},
		{"a lookup", []run{{calls{reads: 1}, true}}, 0, 0, calls{}},
		{"a token", []run{{calls{}, true}}, 0, 0, calls{}},
		{"under a rate limit: a request, besides", nil, 1, 0, calls{writes: 1}},
		// One transaction that writes the day's sum and the charge's mark; a transaction takes twice the units.
		{"under an amount limit: a charge or payment, besides", nil, 4, 0, calls{writes: 1}},
	}
}

// cost is a row's parts, in dollars a million.
type cost struct{ api, lambda, database, logs, rest float64 }

func (c cost) sum() float64 { return c.api + c.lambda + c.database + c.logs + c.rest }

// cost prices an operation.
func (o operation) cost() cost {
	var c cost
	for _, r := range o.runs {
		milliseconds := ownMS + databaseMS*(r.writes+r.reads) + operatorMS*r.operator + merchantMS*r.merchant
		c.lambda += invocation + gigabyteMS*memoryGB*milliseconds
		c.database += writeUnit*r.writes*o.itemUnits + readUnit*r.reads
		c.logs += loggedKB * lineKB
		c.rest += keyUse*keyUsesShared*(r.writes+r.reads) + outgoingKB*exchangedKB*(1+r.operator+r.merchant)
		if r.overAPI {
			c.api += apiRequest
			c.logs += loggedKB * accessKB
		}
	}
	c.database += writeUnit * (o.indexUnits + o.more.writes*o.itemUnits)
	c.lambda += gigabyteMS * memoryGB * databaseMS * o.more.writes
	c.rest += keyUse * keyUsesShared * o.more.writes
	return c
}

// table writes the rows.
func table(all []operation) string {
	var b strings.Builder
	b.WriteString("| A million of | API Gateway | Lambda | DynamoDB | Logs | Transfer, KMS | US dollars |\n|---|---|---|---|---|---|---|\n")
	for _, o := range all {
		c := o.cost()
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | **%.1f** |\n", o.name, c.api, c.lambda, c.database, c.logs, c.rest, c.sum())
	}
	return b.String()
}

// row is a line of bench's table of calls: request, writes, reads, queries, operator calls.
var row = regexp.MustCompile(`(?m)^\| ([a-z][a-z ()]+, (?:first|repeated)) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|`)

// counted reads what bench counted.
func counted(text string) (map[string]calls, error) {
	found := map[string]calls{}
	for _, match := range row.FindAllStringSubmatch(text, -1) {
		var numbers [4]float64
		for i := range numbers {
			numbers[i], _ = strconv.ParseFloat(match[i+2], 64) // digits alone
		}
		found[match[1]] = calls{writes: numbers[0], reads: numbers[1] + numbers[2], operator: numbers[3]}
	}
	for _, name := range []string{"charge, first", "pay (ussd), first", "sms, first", "pay (ussd), repeated"} {
		if found[name].writes == 0 {
			return nil, fmt.Errorf("%s counts no writes of %q", counts, name)
		}
	}
	return found, nil
}

// filled gives the page with the table as it is now.
func filled(text, bench string) (string, error) {
	known, err := counted(bench)
	if err != nil {
		return "", err
	}
	before, rest, found := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("%s has no place for the table", page)
	}
	return before + begin + "\n\n" + table(operations(known)) + "\n" + end + after, nil
}

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

// write brings the page up to date.
func write() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	bench, err := os.ReadFile(counts)
	if err != nil {
		return err
	}
	now, err := filled(string(text), string(bench))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(now), 0o600)
}
