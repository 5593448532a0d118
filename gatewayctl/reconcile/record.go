package reconcile

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/reconcile/runs"
	"mobilegateway/gatewayctl/reconcile/statement"
	"mobilegateway/shared/ledger"
)

// recorded is what our ledger says about a transaction's money.
type recorded string

const (
	ledgerPaid    recorded = "paid"
	ledgerNotPaid recorded = "not-paid"
	ledgerOpen    recorded = "open" // pending or unknown
)

// theirs is a row of a statement.
type theirs struct {
	statement.Row
	File int // the number of the statement, from 0
	// IsRepeat is true for a further row with a reference that another row has.
	IsRepeat bool
}

// ours is a transaction of the ledger.
type ours struct {
	ledger.Key
	Merchant, Reference, UpstreamKey string
	Amount                           statement.Amount
	Money                            recorded
	Label                            string // the state or status, as the lists show it
	CreatedAt, FinalAt               time.Time
	PayerDigits                      string
	// An open one HasLookup if the operator's status can end it, and IsDecidable if a person can end it now. IsOfDay is
	// true if it was created on the day. IsMatched is true once a row has it.
	HasLookup, IsDecidable, IsOfDay, IsMatched bool
}

// newOurs returns what is compared of an entry.
func (r *reconciliation) newOurs(e *ledger.Entry) ours {
	payer := e.PayerMSISDN()
	o := ours{
		Key: e.Key, Merchant: e.Merchant.Name, UpstreamKey: e.Route.UpstreamKey,
		Reference: cmp.Or(e.Reference(), e.Manual.Reference, e.Claim.OperatorReference),
		Amount: statement.Amount{
			Minor: e.Amount.Minor, Exponent: e.Amount.Exponent, Currency: e.Amount.Currency,
		},
		Money: moneyOf(e), Label: labelOf(e), CreatedAt: e.CreatedAt.UTC(), FinalAt: e.FinalAt.UTC(),
		PayerDigits: payer[max(0, len(payer)-statement.PayerDigits):], HasLookup: entries.ComesByLookup(e),
		IsOfDay: r.day.contains(e.CreatedAt),
	}
	o.IsDecidable = o.Money == ledgerOpen && r.isDecidable(e)
	return o
}

// isDecidable reports whether unknown resolve --as can end an open transaction now, in either way.
func (r *reconciliation) isDecidable(e *ledger.Entry) bool {
	for _, isPaid := range []bool{true, false} {
		outcome := ledger.ManualOutcome{
			ManualResolution: ledger.ManualResolution{Outcome: outcomeWord(e.Kind, isPaid)}, Owner: e.Owner,
			ResponseStatus: http.StatusBadRequest, Lifetime: r.PaymentLifetime,
		}
		if e.Clone().ResolveManually(outcome, r.Now()) != nil {
			return false
		}
	}
	return true
}

// IsPaid reports whether the ledger has a success of a payment or a charge.
func IsPaid(e *ledger.Entry) bool { return e.Kind != ledger.SMS && moneyOf(e) == ledgerPaid }

// moneyOf returns what the ledger says about a payment's or a charge's money.
func moneyOf(e *ledger.Entry) recorded {
	switch {
	case e.NotApplied():
		return ledgerNotPaid
	case e.Status == ledger.Successful, e.Kind == ledger.Charge && e.State == ledger.Done:
		return ledgerPaid
	}
	return ledgerOpen
}

// labelOf is the word for where a transaction is: its final status, or else its state.
func labelOf(e *ledger.Entry) string {
	if e.Kind == ledger.Payment && (e.StatusFinal() || e.State == ledger.Done) {
		return string(e.Status)
	}
	return string(e.State)
}

// number writes an integer so that texts sort as numbers do. No amount or time here is negative.
func number(n int64) string { return fmt.Sprintf("%019d", n) }

func flag(is bool) string { return strconv.FormatBool(is) }

// pack writes a row as a record behind its keys. The line comes last, because it differs in a shuffled statement.
func (t *theirs) pack(keys ...string) []byte {
	return runs.Pack(append(keys, t.Reference, t.OrderID, t.Amount.Currency, number(t.Amount.Minor),
		strconv.Itoa(t.Amount.Exponent), string(t.Outcome), number(t.Time.UnixMilli()), number(t.Fee), flag(t.HasFee),
		number(t.ExpectedFee), flag(t.HasTerms), flag(t.IsBack), t.PayerDigits, flag(t.IsRepeat),
		strconv.Itoa(t.File), number(int64(t.Line)))...)
}

// pack writes a transaction as a record behind its keys.
func (o *ours) pack(keys ...string) []byte {
	return runs.Pack(append(keys, string(o.Kind), o.ID, o.Merchant, o.Reference, o.UpstreamKey, o.Amount.Currency,
		number(o.Amount.Minor), strconv.Itoa(o.Amount.Exponent), string(o.Money), o.Label,
		strconv.FormatInt(o.CreatedAt.UnixMilli(), 10), milli(o.FinalAt), o.PayerDigits, flag(o.HasLookup),
		flag(o.IsDecidable), flag(o.IsOfDay), flag(o.IsMatched))...)
}

// milli writes a time, "" for none.
func milli(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}

// fields reads the texts of a record one by one.
type fields struct{ texts []string }

func newFields(record []byte, keys int) *fields { return &fields{runs.Unpack(record)[keys:]} }

func (f *fields) text() string {
	if len(f.texts) == 0 {
		return ""
	}
	first := f.texts[0]
	f.texts = f.texts[1:]
	return first
}

func (f *fields) integer() int64 {
	n, err := strconv.ParseInt(f.text(), 10, 64)
	if err != nil {
		return 0 // pack wrote it
	}
	return n
}

func (f *fields) is() bool { return f.text() == "true" }

func (f *fields) time() time.Time {
	text := f.text()
	n, err := strconv.ParseInt(text, 10, 64)
	if text == "" || err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// unpackTheirs reads a record of a row behind its keys.
func unpackTheirs(record []byte, keys int) theirs {
	f := newFields(record, keys)
	var t theirs
	t.Reference, t.OrderID = f.text(), f.text()
	t.Amount.Currency, t.Amount.Minor, t.Amount.Exponent = f.text(), f.integer(), int(f.integer())
	t.Outcome, t.Time = statement.Outcome(f.text()), f.time()
	t.Fee, t.HasFee, t.ExpectedFee, t.HasTerms = f.integer(), f.is(), f.integer(), f.is()
	t.IsBack, t.PayerDigits, t.IsRepeat = f.is(), f.text(), f.is()
	t.File, t.Line = int(f.integer()), int(f.integer())
	return t
}

// unpackOurs reads a record of a transaction behind its keys.
func unpackOurs(record []byte, keys int) ours {
	f := newFields(record, keys)
	var o ours
	o.Kind, o.ID, o.Merchant, o.Reference, o.UpstreamKey = ledger.Kind(f.text()), f.text(), f.text(), f.text(), f.text()
	o.Amount.Currency, o.Amount.Minor, o.Amount.Exponent = f.text(), f.integer(), int(f.integer())
	o.Money, o.Label, o.CreatedAt, o.FinalAt = recorded(f.text()), f.text(), f.time(), f.time()
	o.PayerDigits, o.HasLookup, o.IsDecidable = f.text(), f.is(), f.is()
	o.IsOfDay, o.IsMatched = f.is(), f.is()
	return o
}

// span is a time from its begin on and before its end.
type span struct{ begin, end time.Time }

func (s span) contains(at time.Time) bool { return !at.Before(s.begin) && at.Before(s.end) }
