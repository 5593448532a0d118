// Package bill has what an operation uses, as bench counts it, and what AWS charges for it. deploy/cost and
// deploy/scale compute with it, so each number has one place.
package bill

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// CountsPath is the page with the counts.
const CountsPath = "bench/README.md"

// Prices in millionths of a US dollar, so that a million costs as many dollars. They are AWS's public list prices of
// us-east-1 on 2026-11-21, without free tiers and volume discounts.
const (
	APIRequest    = 3.50       // API Gateway, REST
	Invocation    = 0.20       // Lambda
	GigabyteMS    = 0.01333334 // Lambda, arm64: 0.0000133334 dollars a GB second
	WriteUnit     = 0.625      // DynamoDB on demand, 1 KB
	ReadUnit      = 0.125      // DynamoDB on demand, 4 KB, consistent
	LogIngestKB   = 0.50       // CloudWatch Logs ingestion: 0.50 dollars a GB
	OutgoingKB    = 0.09       // to the internet: 0.09 dollars a GB
	KeyUse        = 3.00       // KMS, a request: 0.03 dollars for 10,000
	KeyUsesShared = 0.01       // KMS requests per call of DynamoDB, which caches the table's key for five minutes
	SecretRead    = 5.00       // Secrets Manager: 0.05 dollars for 10,000 calls
	Trace         = 5.00       // X-Ray, a recorded trace
)

// Assumptions where bench counts nothing.
const (
	MemoryGB    = 0.25 // template.yaml: MemorySize
	ComputeMS   = 10.0 // a function's own CPU time
	DatabaseMS  = 5.0  // one call of DynamoDB
	OperatorMS  = 500. // one call of an operator
	MerchantMS  = 200. // one notification
	LogLinesKB  = 2.0  // one invocation: the function's lines and Lambda's own
	AccessLogKB = 0.4  // the access log's line
	TransferKB  = 1.5  // a response or an outgoing request: headers and body
)

// Run is one invocation of a function within an operation, with its calls and the units that DynamoDB bills.
type Run struct {
	Function                          string
	Writes, Reads, Operator, Merchant float64 // calls
	TableUnits, DayUnits, DueUnits    float64 // write units of the tables and of the two indexes
	ReadUnits                         float64
	ViaAPI                            bool // it responds to a request
	IsPart                            bool // its calls are part of an invocation of another row
}

// Milliseconds is how long the invocation lasts, if an operator's call takes operatorMS.
func (r Run) Milliseconds(operatorMS float64) float64 {
	return ComputeMS + DatabaseMS*(r.Writes+r.Reads) + operatorMS*r.Operator + MerchantMS*r.Merchant
}

// WriteUnits are the write units of the tables and the indexes.
func (r Run) WriteUnits() float64 { return r.TableUnits + r.DayUnits + r.DueUnits }

// Operation is all invocations from a request to its end.
type Operation struct {
	Name string
	Runs []Run
}

// The names of the operations that others use by name.
const (
	Charge  = "charge"
	Payment = "payment, with callback and notification"
	SMS     = "SMS"
)

// Load reads the counts of the checkout at root, and returns the operations.
func Load(root string) ([]Operation, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(CountsPath)))
	if err != nil {
		return nil, err
	}
	return Parse(string(text))
}

// Parse returns the operations by the counts of a page. A missing row is an error.
func Parse(page string) ([]Operation, error) {
	counted, err := parseCounts(page)
	if err != nil {
		return nil, err
	}
	run := func(name, function string, viaAPI bool) Run {
		r := counted[name]
		r.Function, r.ViaAPI = function, viaAPI
		return r
	}
	sms := run("sms, first", "sms", true)
	notification := run("pay (ussd), notification", "relay", false)
	notification.Merchant = 1
	// Receipts are not measured: one write each, with a notification that is due and then delivered.
	receipt := Run{Function: "receipt", Writes: 1, Reads: 1, TableUnits: 1, DueUnits: 1, ReadUnits: 1, ViaAPI: true}
	relay := Run{Function: "relay", Writes: 1, Merchant: 1, TableUnits: 1, DueUnits: 1}
	return []Operation{
		{Charge, []Run{run("charge, first", "charge", true)}},
		{Payment, []Run{
			run("pay (ussd), first", "pay", true), run("pay (ussd), callback", "notif", true), notification,
		}},
		{SMS, []Run{sms}},
		{"SMS, with two receipts and their notifications", []Run{sms, receipt, relay, receipt, relay}},
		{"a repeat", []Run{run("pay (ussd), repeated", "pay", true)}},
		{"a lookup", []Run{{Function: "status", Reads: 1, ReadUnits: 1, ViaAPI: true}}},
		{"a token", []Run{{Function: "token", ViaAPI: true}}},
		{"under a rate limit: a request, besides", []Run{{Writes: 1, TableUnits: 1, IsPart: true}}},
		// One transaction writes the day's sum and the charge's mark; a transaction takes twice the units.
		{"under an amount limit: a charge or payment, besides", []Run{{Writes: 1, TableUnits: 4, IsPart: true}}},
	}, nil
}

// Find returns an operation by its name. It panics if there is none: the names are constants.
func Find(all []Operation, name string) Operation {
	for _, o := range all {
		if o.Name == name {
			return o
		}
	}
	panic("bill: no operation " + name)
}

// measured are the rows of bench's tables that the operations need.
var measured = [...]string{
	"charge, first", "pay (ussd), first", "pay (ussd), callback", "pay (ussd), notification", "pay (ussd), repeated",
	"sms, first",
}

// unitsHead begins the table of units. The table of calls comes before it.
const unitsHead = "| DynamoDB bills for |"

// parseCounts reads the table of calls (request, writes, reads, queries, operator calls) and that of units (request,
// write units, of them tables, day, due, read units).
func parseCounts(page string) (map[string]Run, error) {
	calls, billed, found := strings.Cut(page, unitsHead)
	if !found {
		return nil, fmt.Errorf("%s has no table of units", CountsPath)
	}
	rows := map[string]Run{}
	for _, name := range measured {
		c, b := row(calls, name, 4), row(billed, name, 5)
		if c == nil || b == nil || c[0] == 0 {
			return nil, fmt.Errorf("%s counts no writes of %q", CountsPath, name)
		}
		rows[name] = Run{
			Writes: c[0], Reads: c[1] + c[2], Operator: c[3],
			TableUnits: b[1], DayUnits: b[2], DueUnits: b[3], ReadUnits: b[4],
		}
	}
	return rows, nil
}

// row returns the first numbers of a row, nil if the table has no such row.
func row(table, name string, numbers int) []float64 {
	pattern := `(?m)^\| ` + regexp.QuoteMeta(name) + strings.Repeat(` \| ([\d.]+)`, numbers) + ` \|`
	match := regexp.MustCompile(pattern).FindStringSubmatch(table)
	if match == nil {
		return nil
	}
	found := make([]float64, numbers)
	for i := range found {
		found[i], _ = strconv.ParseFloat(match[i+1], 64) // the pattern allows only digits and points
	}
	return found
}

// Price is the parts of an operation's price, in dollars per million.
type Price struct{ API, Lambda, Database, Logs, Rest float64 }

// Total is the sum of the parts.
func (p Price) Total() float64 { return p.API + p.Lambda + p.Database + p.Logs + p.Rest }

// Price computes what a million of the operation costs, if an operator's call takes operatorMS.
func (o Operation) Price(operatorMS float64) Price {
	var p Price
	for _, r := range o.Runs {
		own := r.Milliseconds(operatorMS)
		if r.IsPart {
			own -= ComputeMS
		}
		p.Lambda += GigabyteMS * MemoryGB * own
		p.Database += WriteUnit*r.WriteUnits() + ReadUnit*r.ReadUnits
		p.Rest += KeyUse*KeyUsesShared*(r.Writes+r.Reads) + OutgoingKB*TransferKB*(r.Operator+r.Merchant)
		if !r.IsPart {
			p.Lambda += Invocation
			p.Logs += LogIngestKB * LogLinesKB
			p.Rest += OutgoingKB * TransferKB
		}
		if r.ViaAPI {
			p.API += APIRequest
			p.Logs += LogIngestKB * AccessLogKB
		}
	}
	return p
}
