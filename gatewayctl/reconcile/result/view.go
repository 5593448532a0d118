package result

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/reconcile/statement"
)

// View is a result, without its rows.
type View struct {
	Platform   string          `json:"platform"`
	Account    string          `json:"account,omitempty"`
	Day        string          `json:"day"`
	From       time.Time       `json:"from"` // when the day begins in the statement's offset
	To         time.Time       `json:"to"`
	Statements []StatementView `json:"statements"`
	Compared   int             `json:"transactions_compared"`
}

// Summary is the counts and totals of a result.
type Summary struct {
	Counts map[Class]int `json:"counts"`
	Totals []Total       `json:"totals"`
}

// Total is the sum of a merchant's money in one currency, on both sides.
type Total struct {
	// Merchant is "" for rows of the statement that no transaction of ours has.
	Merchant    string `json:"merchant" col:"MERCHANT"`
	Currency    string `json:"currency" col:"CURRENCY"`
	TheirsCount int    `json:"theirs_count" col:"ROWS"`
	Theirs      string `json:"theirs" col:"THEIRS"`
	OursCount   int    `json:"ours_count" col:"SUCCESSES"`
	Ours        string `json:"ours" col:"OURS"`
	Difference  string `json:"difference" col:"DIFFERENCE"` // theirs less ours
	// Classes divide the difference among the classes that have one.
	Classes map[Class]string `json:"difference_by_class,omitempty"`
	// Fees is the sum of the fees that the statement has for these rows.
	Fees string `json:"fees" col:"FEES"`
}

// StatementView is a statement and what was read of it.
type StatementView struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	statement.Summary
}

// Describe is one line about the statement, for people: what was read, and what was left out.
func (v StatementView) Describe() string {
	text := fmt.Sprintf("%s: %s", v.File, output.Plural(v.Rows, "row"))
	for _, reason := range slices.Sorted(maps.Keys(v.Skipped)) {
		text += fmt.Sprintf(", %d %s left out", v.Skipped[reason], reason)
	}
	return text
}
