// Package result is the result of a reconciliation: its rows, its totals, and the file that keeps them.
//
// It compares nothing. Its invariant: a file of a result is whole, or it is refused.
package result

import (
	"slices"
	"time"

	"mobilegateway/gatewayctl/reconcile/statement"
	"mobilegateway/shared/ledger"
)

// Class is what a row of the result is.
type Class string

// The classes, in the order of the result. Every class but Equal is a difference.
const (
	TheirsAlone     Class = "theirs-alone"     // they took money, and we have no success of it
	OursAlone       Class = "ours-alone"       // a success or an open one of ours that they do not have
	Twice           Class = "twice"            // one more row of a transaction, or of a reference
	CurrencyDiffers Class = "currency-differs" // of a matched row
	AmountDiffers   Class = "amount-differs"   // of a matched row
	StatusDiffers   Class = "status-differs"   // not taken, or refunded, and a success or open for us
	FeeDiffers      Class = "fee-differs"      // from the fee by the mapping's terms
	OtherDay        Class = "other-day"        // matched, or expected, on another day than the statement's
	Equal           Class = "equal"            // the same on both sides
)

// Classes lists the classes in the order of the result.
func Classes() []Class {
	return []Class{TheirsAlone, OursAlone, Twice, CurrencyDiffers, AmountDiffers, StatusDiffers, FeeDiffers, OtherDay,
		Equal}
}

// Row is one row of the result: a row of the statement, a transaction of ours, or both.
type Row struct {
	Class    Class       `json:"class" col:"CLASS"`
	Merchant string      `json:"merchant,omitempty" col:"MERCHANT"`
	Kind     ledger.Kind `json:"kind,omitempty" col:"KIND"`
	ID       string      `json:"id,omitempty" col:"ID"`
	// MatchedBy is how the two were found: reference, key or order_id; "" for one without the other.
	MatchedBy string `json:"matched_by,omitempty"`
	// Differs lists all that differs: currency, amount, status, fee, day.
	Differs []string `json:"differs,omitempty"`
	TheirView
	OurView
	// Proposal is what may be the other side, by amount, payer and time. Only a person can decide it.
	Proposal string `json:"proposal,omitempty" col:"PROPOSAL"`
	// Command acts on the difference, or shows what is known of it.
	Command string `json:"command,omitempty" col:"COMMAND"`
}

// IsReconciled reports whether both sides have the same paid amount of one transaction.
func (r *Row) IsReconciled() bool {
	return r.MatchedBy != "" && slices.Contains([]Class{Equal, OtherDay, FeeDiffers}, r.Class) &&
		r.TheirStatus == statement.Paid
}

// IsObjection reports whether the statement contradicts a success of ours: it was not taken, or refunded.
func (r *Row) IsObjection() bool { return r.Class == StatusDiffers && r.ID != "" }

// TheirView is what the statement has.
type TheirView struct {
	File           string            `json:"file,omitempty"`
	Line           int               `json:"line,omitempty" col:"LINE"`
	TheirReference string            `json:"their_reference,omitempty" col:"REFERENCE"`
	TheirKey       string            `json:"their_order_id,omitempty"`
	TheirAmount    string            `json:"their_amount,omitempty" col:"THEIRS"`
	TheirCurrency  string            `json:"their_currency,omitempty"`
	TheirStatus    statement.Outcome `json:"their_status,omitempty" col:"STATUS"`
	TheirTime      time.Time         `json:"their_time,omitzero"`
	Fee            string            `json:"fee,omitempty"`
	ExpectedFee    string            `json:"expected_fee,omitempty"`
}

// OurView is what the ledger has.
type OurView struct {
	OurReference string    `json:"our_reference,omitempty"`
	OurKey       string    `json:"our_key,omitempty"`
	OurAmount    string    `json:"our_amount,omitempty" col:"OURS"`
	OurCurrency  string    `json:"our_currency,omitempty" col:"CURRENCY"`
	OurStatus    string    `json:"our_status,omitempty" col:"OUR STATUS"`
	CreatedAt    time.Time `json:"our_created_at,omitzero"`
	FinalAt      time.Time `json:"our_final_at,omitzero"`
}
