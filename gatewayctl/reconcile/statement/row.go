// Package statement reads operators' statements: files that list what moved on an account.
//
// It does not depend on the ledger. Nothing in it is guessed: the header, the mapping or a flag decides each form. A
// file that none of them decides is refused. Its invariant: a file is read as a whole or refused, with line and column,
// and the same file always has the same rows.
package statement

import (
	"fmt"
	"strings"
	"time"
)

// Outcome is what a statement says about a row's money.
type Outcome string

// The outcomes.
const (
	Paid     Outcome = "paid"     // the payer's money moved
	Failed   Outcome = "failed"   // it did not, and will not
	Pending  Outcome = "pending"  // not yet
	Refunded Outcome = "refunded" // it moved, and was refunded
)

// Outcomes lists the outcomes.
func Outcomes() []Outcome { return []Outcome{Paid, Failed, Pending, Refunded} }

// Row is one transaction in a statement.
type Row struct {
	// Line is its line in the file, or the number of the item in a JSON document, from 1.
	Line int
	// Reference is the platform's own reference, and OrderID our key at the platform; one of them may be "".
	Reference, OrderID string
	Amount             Amount
	Outcome            Outcome
	Time               time.Time
	// Fee is in minor units of the amount's currency, and HasFee false if the statement has none for the row. Expected
	// is the fee by the contract's terms in the mapping, and HasTerms false without terms.
	Fee, ExpectedFee int64
	HasFee, HasTerms bool
	// IsBack is true for a refund by its type: such a row is beside the row of its payment, maybe of an earlier day.
	IsBack bool
	// PayerDigits are the last digits of the payer's number, at most PayerDigits of them; "" if there are none.
	PayerDigits string
}

// Amount is an amount in minor units of a currency with an exponent. The payer paid it: a fee is in it.
type Amount struct {
	Minor    int64
	Exponent int
	Currency string
}

// PayerDigits is how many of the last digits of a payer's number are kept.
const PayerDigits = 4

// Summary counts what was read.
type Summary struct {
	Rows int `json:"rows"`
	// Skipped counts the lines that are no transaction of ours, by reason: blank, header, footer, or the type of a row.
	Skipped map[string]int `json:"skipped,omitempty"`
}

// Fault is a place of a statement that cannot be read. Column is "" for a whole line.
type Fault struct {
	Line    int
	Column  string
	Problem string
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Column == "" {
		return fmt.Sprintf("line %d: %s", f.Line, f.Problem)
	}
	return fmt.Sprintf("line %d, column %s: %s", f.Line, f.Column, f.Problem)
}

// maxListed is the number of faults that an error lists.
const maxListed = 20

// Faults is the error of a statement with lines that cannot be read.
type Faults struct {
	Count  int
	Listed []*Fault // the first ones
}

// Error implements error.
func (f *Faults) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d of its cells or lines cannot be read, so none is used:", f.Count)
	for _, fault := range f.Listed {
		text.WriteString("\n  " + fault.Error())
	}
	if f.Count > len(f.Listed) {
		fmt.Fprintf(&text, "\n  and %d more", f.Count-len(f.Listed))
	}
	return text.String()
}

func (f *Faults) add(faults ...*Fault) {
	for _, fault := range faults {
		if f.Count++; len(f.Listed) < maxListed {
			f.Listed = append(f.Listed, fault)
		}
	}
}

// orNil returns the faults as an error, nil without one.
func (f *Faults) orNil() error {
	if f.Count == 0 {
		return nil
	}
	return f
}
