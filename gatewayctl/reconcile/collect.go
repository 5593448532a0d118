package reconcile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/gatewayctl/reconcile/runs"
	"mobilegateway/gatewayctl/reconcile/statement"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/shared/ledger"
)

// collector makes the rows of the result, sorts them, and sums them. It implements matches.
type collector struct {
	*session.Session
	day       span
	files     []string // the names of the statements
	next      []string // the arguments of a reconciliation of another day, without the day
	zone      *time.Location
	keepEqual bool // rows of the class Equal are kept too
	rows      *runs.Sorter
	totals    totals
	counts    map[result.Class]int
}

var _ matches = (*collector)(nil)

// pair implements matches.
func (c *collector) pair(t *theirs, o *ours, by string) error {
	class, differs := pairClass(t, o, c.day)
	row := newRow(class, t, o, c.files)
	row.MatchedBy, row.Differs = by, differs
	row.Command = c.pairCommand(class, t, o)
	return c.add(row, t, o, false)
}

// further implements matches. The status of a refund differs: it is not a second payment.
func (c *collector) further(t *theirs, o *ours, by string) error {
	class := result.Twice
	if t.Outcome == statement.Refunded {
		class = result.StatusDiffers
	}
	row := newRow(class, t, o, c.files)
	row.MatchedBy, row.Command = by, c.show(o)
	counted := *o
	counted.IsOfDay = false // its first row counts our side
	return c.add(row, t, &counted, true)
}

// theirsAlone implements matches.
func (c *collector) theirsAlone(t *theirs, proposal *ours) error {
	class := result.TheirsAlone
	if t.IsRepeat && t.Outcome != statement.Refunded {
		class = result.Twice
	}
	row := newRow(class, t, nil, c.files)
	search := t.Reference
	if search == "" {
		search = t.OrderID
	}
	row.Command = c.Command("find", "--since", t.Time.Add(-findDays*session.Day).Format("2006-01-02"), "--", search)
	if proposal != nil {
		row.Proposal = proposal.Key.String()
		row.Command = c.show(proposal)
	}
	return c.add(row, t, nil, t.IsRepeat)
}

// findDays is how many days before a row's time a search for it begins.
const findDays = 7

// oursAlone implements matches.
func (c *collector) oursAlone(o *ours, proposal *theirs) error {
	class, isRow := oursClass(o, c.day)
	if !isRow {
		return nil
	}
	row := newRow(class, nil, o, c.files)
	row.Command = c.show(o)
	switch {
	case proposal != nil:
		row.Proposal = strings.TrimSpace(fmt.Sprintf("line %d %s", proposal.Line, proposal.Reference))
	case class == result.OtherDay:
		if row.Command = c.otherDay(o.FinalAt); !o.IsOfDay {
			row.Command = c.otherDay(o.CreatedAt)
		}
	case o.Money == ledgerOpen:
		row.Command = c.end(o)
	}
	return c.add(row, nil, o, false)
}

// add keeps a row and counts it.
func (c *collector) add(row result.Row, t *theirs, o *ours, isBack bool) error {
	c.counts[row.Class]++
	if err := c.totals.add(row.Class, t, o, isBack); err != nil {
		return err
	}
	if row.Class == result.Equal && !c.keepEqual {
		return nil
	}
	document, err := json.Marshal(row)
	if err != nil {
		return err
	}
	at := row.CreatedAt
	if at.IsZero() {
		at = row.TheirTime
	}
	return c.rows.Add(runs.Pack(number(int64(slices.Index(result.Classes(), row.Class))), row.Merchant,
		number(at.UnixMilli()), string(row.Kind), row.ID, row.TheirReference, row.TheirKey, row.File,
		number(int64(row.Line)), string(document)))
}

// pairCommand is the command that acts on a matched row.
func (c *collector) pairCommand(class result.Class, t *theirs, o *ours) string {
	switch {
	case class == result.Equal:
		return ""
	case class == result.OtherDay && !c.day.contains(o.movedAt()):
		return c.otherDay(o.movedAt())
	case o.Money == ledgerOpen && (t.Outcome == statement.Paid || t.Outcome == statement.Failed):
		if !o.IsDecidable {
			return c.end(o)
		}
		return c.resolve(t, o, t.Outcome == statement.Paid)
	}
	return c.show(o)
}

// end is the command that ends an open transaction: by the operator's status, or as not applied. It shows one that
// neither can end now.
func (c *collector) end(o *ours) string {
	arguments := []string{"unknown", "resolve", string(o.Kind), o.ID}
	switch {
	case o.HasLookup:
	case o.IsDecidable:
		arguments = append(arguments, "--as", outcomeWord(o.Kind, false))
	default:
		return c.show(o)
	}
	return c.Command(session.ConfirmArguments(arguments...)...)
}

// resolve is the command that ends an open transaction as the statement says, with its reference as evidence.
func (c *collector) resolve(t *theirs, o *ours, isPaid bool) string {
	arguments := []string{"unknown", "resolve", string(o.Kind), o.ID, "--as", outcomeWord(o.Kind, isPaid)}
	if transactions.IsOperatorReference(t.Reference) {
		arguments = append(arguments, "--operator-reference="+t.Reference)
	}
	return c.Command(append(arguments, "--yes", "--reason",
		fmt.Sprintf("statement %s, line %d", c.files[t.File], t.Line))...)
}

// otherDay is the command that reconciles the day of a time.
func (c *collector) otherDay(at time.Time) string {
	day := at.In(c.zone).Format(time.DateOnly)
	return c.Command(append(slices.Clone(c.next), "--day", day, "--statement", "FILE")...)
}

// outcomeWord is the value of unknown resolve --as.
func outcomeWord(kind ledger.Kind, isPaid bool) string {
	switch {
	case kind == ledger.Charge && isPaid:
		return "applied"
	case kind == ledger.Charge:
		return "not-applied"
	case isPaid:
		return string(ledger.Successful)
	}
	return string(ledger.Failed)
}

// show is the command that shows a transaction.
func (c *collector) show(o *ours) string {
	return c.Command(entries.KindLabel(o.Kind), "show", o.ID)
}
