// Command cost writes the table of docs/deploy.md: the price of a million of each operation. It uses the calls that
// bench counts and AWS's list prices. Run `go run ./deploy/cost` after `make bench`; a test compares the page.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// The page, the markers of its table, and the page with the counts.
const (
	pagePath   = "docs/deploy.md"
	tableBegin = "<!-- cost: begin -->"
	tableEnd   = "<!-- cost: end -->"
	countsPath = "bench/README.md"
)

// Prices in millionths of a US dollar, so that a million costs as many dollars. They are AWS's public list prices of
// us-east-1 on 2026-11-21, without free tiers and volume discounts.
const (
	apiRequest    = 3.50       // API Gateway, REST
	invocation    = 0.20       // Lambda
	gigabyteMS    = 0.01333334 // Lambda, arm64: 0.0000133334 dollars a GB second
	writeUnit     = 0.625      // DynamoDB on demand, 1 KB
	readUnit      = 0.125      // DynamoDB on demand, 4 KB, consistent
	logIngestKB   = 0.50       // CloudWatch Logs ingestion: 0.50 dollars a GB
	outgoingKB    = 0.09       // to the internet: 0.09 dollars a GB
	keyUse        = 3.00       // KMS, a request: 0.03 dollars for 10,000
	keyUsesShared = 0.01       // KMS requests per call of DynamoDB, which caches the table's key for five minutes
)

// Assumptions of the formula where bench counts nothing.
const (
	memoryGB    = 0.25 // template.yaml: MemorySize
	computeMS   = 10.0 // a function's own CPU time
	databaseMS  = 5.0  // one call of DynamoDB
	operatorMS  = 500. // one call of an operator
	merchantMS  = 200. // one notification
	logLinesKB  = 2.0  // one invocation: the function's lines and Lambda's own
	accessLogKB = 0.4  // the access log's line
	transferKB  = 1.5  // a response or an outgoing request: headers and body
)

// callCounts are the calls of one invocation.
type callCounts struct{ writes, reads, operator, merchant float64 }

// functionRun is one invocation of a function within an operation.
type functionRun struct {
	callCounts
	viaAPI bool // it responds to a request
	isPart bool // its calls are part of an invocation of another row
}

// operation is a row of the table: all invocations from the request to the end, and costs that bench does not count.
type operation struct {
	name string
	runs []functionRun
	// itemUnits are the write units of one write: the item's size in KB, rounded up. indexUnits are those of the two
	// indexes over the operation's life: "day" once, "due" once to set or remove the due date and twice to change it.
	itemUnits, indexUnits float64
}

// operations returns the rows. counted has the calls that bench counted per request.
func operations(counted map[string]callCounts) []operation {
	// A notification's write records its delivery. With the callback's write that makes the four writes of a payment
	// that TestWriteCount of functions/relay counts.
	callback := functionRun{callCounts: callCounts{writes: 1, reads: 1, operator: 1}, viaAPI: true}
	receipt := functionRun{callCounts: callCounts{writes: 1, reads: 1}, viaAPI: true}
	relay := functionRun{callCounts: callCounts{writes: 1, merchant: 1}}
	limit := functionRun{callCounts: callCounts{writes: 1}, isPart: true}
	first := func(name string) functionRun { return functionRun{callCounts: counted[name], viaAPI: true} }
	return []operation{
		{"charge", []functionRun{first("charge, first")}, 1, 3},
		{"payment, with callback and notification", []functionRun{first("pay (ussd), first"), callback, relay}, 2, 7},
		{"SMS", []functionRun{first("sms, first")}, 1, 3},
		{"SMS, with two receipts and their notifications",
			[]functionRun{first("sms, first"), receipt, relay, receipt, relay}, 1, 7},
		{"a repeat", []functionRun{first("pay (ussd), repeated")}, 2, 0},
		{"a lookup", []functionRun{{callCounts: callCounts{reads: 1}, viaAPI: true}}, 0, 0},
		{"a token", []functionRun{{viaAPI: true}}, 0, 0},
		{"under a rate limit: a request, besides", []functionRun{limit}, 1, 0},
		// One transaction writes the day's sum and the charge's mark; a transaction takes twice the units.
		{"under an amount limit: a charge or payment, besides", []functionRun{limit}, 4, 0},
	}
}

// costParts are the parts of a row's price, in dollars per million.
type costParts struct{ api, lambda, database, logs, rest float64 }

func (c costParts) total() float64 { return c.api + c.lambda + c.database + c.logs + c.rest }

func (o operation) price() costParts {
	c := costParts{database: writeUnit * o.indexUnits}
	for _, r := range o.runs {
		milliseconds := databaseMS*(r.writes+r.reads) + operatorMS*r.operator + merchantMS*r.merchant
		c.lambda += gigabyteMS * memoryGB * milliseconds
		c.database += writeUnit*r.writes*o.itemUnits + readUnit*r.reads
		c.rest += keyUse*keyUsesShared*(r.writes+r.reads) + outgoingKB*transferKB*(r.operator+r.merchant)
		if !r.isPart {
			c.lambda += invocation + gigabyteMS*memoryGB*computeMS
			c.logs += logIngestKB * logLinesKB
			c.rest += outgoingKB * transferKB
		}
		if r.viaAPI {
			c.api += apiRequest
			c.logs += logIngestKB * accessLogKB
		}
	}
	return c
}

func formatTable(all []operation) string {
	var b strings.Builder
	b.WriteString("| A million of | API Gateway | Lambda | DynamoDB | Logs | Transfer, KMS | US dollars |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, o := range all {
		c := o.price()
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | **%.1f** |\n", o.name, c.api, c.lambda, c.database,
			c.logs, c.rest, c.total())
	}
	return b.String()
}

// countsRow matches a row of bench's table of calls: request, writes, reads, queries, operator calls.
var countsRow = regexp.MustCompile(`(?m)^\| ([a-z][a-z ()]+, (?:first|repeated))` +
	strings.Repeat(` \| (\d+)`, 4) + ` \|`)

func parseCounts(text string) (map[string]callCounts, error) {
	found := map[string]callCounts{}
	for _, match := range countsRow.FindAllStringSubmatch(text, -1) {
		var numbers [4]float64
		for i := range numbers {
			numbers[i], _ = strconv.ParseFloat(match[i+2], 64) // the pattern allows only digits
		}
		found[match[1]] = callCounts{writes: numbers[0], reads: numbers[1] + numbers[2], operator: numbers[3]}
	}
	for _, name := range []string{"charge, first", "pay (ussd), first", "sms, first", "pay (ussd), repeated"} {
		if found[name].writes == 0 {
			return nil, fmt.Errorf("%s counts no writes of %q", countsPath, name)
		}
	}
	return found, nil
}

func fillTable(text, bench string) (string, error) {
	known, err := parseCounts(bench)
	if err != nil {
		return "", err
	}
	before, rest, found := strings.Cut(text, tableBegin)
	_, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		return "", fmt.Errorf("%s lacks the markers of the table", pagePath)
	}
	return before + tableBegin + "\n\n" + formatTable(operations(known)) + "\n" + tableEnd + after, nil
}

func main() {
	if err := updatePage(); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func updatePage() error {
	text, err := os.ReadFile(pagePath)
	if err != nil {
		return err
	}
	bench, err := os.ReadFile(countsPath)
	if err != nil {
		return err
	}
	now, err := fillTable(string(text), string(bench))
	if err != nil {
		return err
	}
	return os.WriteFile(pagePath, []byte(now), 0o600)
}
