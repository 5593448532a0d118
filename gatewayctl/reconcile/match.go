package reconcile

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"mobilegateway/gatewayctl/reconcile/runs"
	"mobilegateway/gatewayctl/reconcile/statement"
)

// The ways in which a row finds its transaction, the strongest first.
const (
	byReference = "reference" // the platform's own reference
	byKey       = "key"       // our key at the platform
	byOrderID   = "order_id"  // the merchant's order_id, or our id of a charge
)

// A proposal is only shown. The last digits of the payer are compared, and the times may differ by the window.
const (
	proposalDigits = 2
	proposalWindow = 2 * time.Minute
)

// maxGroup is how many rows or transactions may have one key. They are in memory together.
const maxGroup = 10_000

// stage is one way to match: the key of a row, and that of a transaction. Without a key neither matches.
type stage struct {
	name     string
	theirKey func(*theirs) string
	ourKey   func(*ours) string
}

// stages are the ways to match, in their order.
func stages() []stage {
	orderID := func(t *theirs) string { return t.OrderID }
	return []stage{
		{byReference, func(t *theirs) string { return t.Reference }, func(o *ours) string { return o.Reference }},
		{byKey, orderID, func(o *ours) string { return o.UpstreamKey }},
		{byOrderID, orderID, func(o *ours) string { return o.ID }},
	}
}

// matches are the results of matching, each once.
type matches interface {
	// pair is a row and its transaction.
	pair(t *theirs, o *ours, by string) error
	// further is one more row of a transaction that has a row.
	further(t *theirs, o *ours, by string) error
	// theirsAlone and oursAlone are a row or a transaction without the other one. The proposal may be nil.
	theirsAlone(t *theirs, proposal *ours) error
	oursAlone(o *ours, proposal *theirs) error
}

// matcher matches sorted rows with sorted transactions, stage by stage.
type matcher struct {
	folder string
	to     matches
	check  func() error // the end of the command's context
}

// match matches all rows with all transactions, which are sorted by the key of the first stage.
func (m *matcher) match(rows, transactions *runs.Sorter) error {
	all := stages()
	for i, st := range all {
		nextTheirs, nextOurs := theirProposalKey, ourProposalKey
		if i+1 < len(all) {
			nextTheirs = func(t *theirs) []string { return []string{all[i+1].theirKey(t), ""} }
			nextOurs = func(o *ours) []string { return []string{all[i+1].ourKey(o), ""} }
		}
		leftRows := runs.New(m.folder, fmt.Sprintf("rows-%d", i+1))
		leftOurs := runs.New(m.folder, fmt.Sprintf("ours-%d", i+1))
		j := &join{
			stage: st, to: m.to,
			leaveTheirs: func(t *theirs) error { return leftRows.Add(t.pack(nextTheirs(t)...)) },
			leaveOurs: func(o *ours) error {
				if i+1 == len(all) && o.IsMatched {
					return nil
				}
				return leftOurs.Add(o.pack(nextOurs(o)...))
			},
		}
		err := eachGroup(rows, transactions, m.check, j.group)
		if err != nil {
			return err
		}
		if i > 0 { // those of the first stage stay: an interrupted command continues with them
			if err := errors.Join(rows.Remove(), transactions.Remove()); err != nil {
				return err
			}
		}
		rows, transactions = leftRows, leftOurs
	}
	err := eachGroup(rows, transactions, m.check, func(_ string, rows []theirs, transactions []ours) error {
		return m.propose(rows, transactions)
	})
	return errors.Join(err, rows.Remove(), transactions.Remove())
}

// join matches the groups of one stage.
type join struct {
	stage
	to          matches
	leaveTheirs func(*theirs) error
	leaveOurs   func(*ours) error
}

// group matches the rows and transactions of one key. A transaction gets the row that agrees most. The rest goes to the
// next stage, and matched transactions too, so that a further row finds them.
func (j *join) group(key string, rows []theirs, transactions []ours) error {
	if key == "" {
		return j.leave(rows, transactions)
	}
	for i := range transactions {
		o := &transactions[i]
		if len(rows) == 0 || o.IsMatched {
			continue
		}
		best := 0
		for k := range rows {
			if agreement(&rows[k], o) > agreement(&rows[best], o) {
				best = k
			}
		}
		o.IsMatched = true
		if err := j.to.pair(&rows[best], o, j.name); err != nil {
			return err
		}
		rows = append(rows[:best:best], rows[best+1:]...)
	}
	if len(transactions) > 0 {
		for i := range rows {
			if err := j.to.further(&rows[i], &transactions[0], j.name); err != nil {
				return err
			}
		}
		rows = nil
	}
	j.markRepeats(rows)
	return j.leave(rows, transactions)
}

// markRepeats marks the further rows of a key that no transaction has. A refund is one beside its paid row, by any key;
// another row is one only by its reference.
func (j *join) markRepeats(rows []theirs) {
	paid := slices.IndexFunc(rows, func(t theirs) bool { return t.Outcome == statement.Paid })
	for i := range rows {
		isRefund := paid >= 0 && rows[i].Outcome == statement.Refunded
		isFurther := i != max(0, paid) && (j.name == byReference || isRefund)
		rows[i].IsRepeat = rows[i].IsRepeat || isFurther
	}
}

func (j *join) leave(rows []theirs, transactions []ours) error {
	for i := range rows {
		if err := j.leaveTheirs(&rows[i]); err != nil {
			return err
		}
	}
	for i := range transactions {
		if err := j.leaveOurs(&transactions[i]); err != nil {
			return err
		}
	}
	return nil
}

// agreement is higher for a row that says more of what a transaction says. A paid row comes before all others: its
// refund, or an attempt that failed, is a further row.
func agreement(t *theirs, o *ours) int {
	points := 0
	if t.Outcome == statement.Paid {
		const more = 4 // than all that follows
		points = more
	}
	for _, agrees := range []bool{!t.IsRepeat, t.Amount == o.Amount, outcomesAgree(t.Outcome, o.Money)} {
		if agrees {
			points++
		}
	}
	return points
}

// outcomesAgree reports whether a statement and the ledger say the same about the money.
func outcomesAgree(theirs statement.Outcome, ours recorded) bool {
	switch theirs {
	case statement.Paid:
		return ours == ledgerPaid
	case statement.Pending:
		return ours == ledgerOpen
	}
	return ours == ledgerNotPaid
}

// theirProposalKey groups rows by amount and the payer's last digits, in the order of time.
func theirProposalKey(t *theirs) []string {
	return []string{proposalKey(t.Amount, t.PayerDigits), number(t.Time.UnixMilli())}
}

func ourProposalKey(o *ours) []string {
	return []string{proposalKey(o.Amount, o.PayerDigits), number(o.movedAt().UnixMilli())}
}

func proposalKey(a statement.Amount, digits string) string {
	if len(digits) < proposalDigits {
		return ""
	}
	return a.Currency + " " + number(a.Minor) + " " + digits[len(digits)-proposalDigits:]
}

// movedAt is when the money of a transaction moved, as far as we know.
func (o *ours) movedAt() time.Time {
	if o.FinalAt.IsZero() {
		return o.CreatedAt
	}
	return o.FinalAt
}

// propose pairs rows and transactions of one amount and payer whose times are near, for a person to decide.
func (m *matcher) propose(rows []theirs, transactions []ours) error {
	k := 0
	for i := range rows {
		t := &rows[i]
		for ; k < len(transactions) && transactions[k].movedAt().Before(t.Time.Add(-proposalWindow)); k++ {
			if err := m.to.oursAlone(&transactions[k], nil); err != nil {
				return err
			}
		}
		var proposal *ours
		canPropose := proposalKey(t.Amount, t.PayerDigits) != "" && !t.IsRepeat && k < len(transactions)
		if canPropose && !transactions[k].movedAt().After(t.Time.Add(proposalWindow)) {
			proposal = &transactions[k]
			k++
			if err := m.to.oursAlone(proposal, t); err != nil {
				return err
			}
		}
		if err := m.to.theirsAlone(t, proposal); err != nil {
			return err
		}
	}
	for ; k < len(transactions); k++ {
		if err := m.to.oursAlone(&transactions[k], nil); err != nil {
			return err
		}
	}
	return nil
}

// keyTexts are the texts of a record before its row or transaction: the key of the group, and the order within it.
const keyTexts = 2

// eachGroup calls f with the rows and the transactions of each key. Those without a key come one by one.
func eachGroup(
	rows, transactions *runs.Sorter, check func() error, f func(key string, rows []theirs, transactions []ours) error,
) error {
	nextRow, stopRows := iter.Pull2(rows.Sorted())
	defer stopRows()
	nextOurs, stopOurs := iter.Pull2(transactions.Sorted())
	defer stopOurs()
	left, right := newCursor(nextRow), newCursor(nextOurs)
	for left.more || right.more {
		if err := errors.Join(left.err, right.err, check()); err != nil {
			return err
		}
		key := left.key
		if !left.more || right.more && right.key < key {
			key = right.key
		}
		var group []theirs
		var ofOurs []ours
		var err error
		for ; left.more && left.key == key && err == nil; left.advance() {
			group = append(group, unpackTheirs(left.record, keyTexts))
			if key == "" {
				err = f(key, group, nil)
				group = group[:0]
			}
			err = errors.Join(err, tooMany(len(group), "rows of the statement", key))
		}
		for ; right.more && right.key == key && err == nil; right.advance() {
			ofOurs = append(ofOurs, unpackOurs(right.record, keyTexts))
			if key == "" {
				err = f(key, nil, ofOurs)
				ofOurs = ofOurs[:0]
			}
			err = errors.Join(err, tooMany(len(ofOurs), "transactions of ours", key))
		}
		if err == nil && key != "" {
			err = f(key, group, ofOurs)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(left.err, right.err)
}

func tooMany(count int, what, key string) error {
	if count <= maxGroup {
		return nil
	}
	return fmt.Errorf("more than %d %s have the reference or key %q: it names none of them. Map another column",
		maxGroup, what, key)
}

// cursor is the next record of a sorter.
type cursor struct {
	next   func() ([]byte, error, bool)
	record []byte
	key    string
	more   bool
	err    error
}

func newCursor(next func() ([]byte, error, bool)) *cursor {
	c := &cursor{next: next}
	c.advance()
	return c
}

func (c *cursor) advance() {
	c.record, c.err, c.more = c.next()
	if c.err != nil {
		c.more = false
		return
	}
	if c.more {
		c.key = runs.First(c.record)
	}
}
