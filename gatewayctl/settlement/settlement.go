// Package settlement sums what each merchant is owed of a day, by currency and operator.
//
// It counts the payments and charges that became successful on the day, and of these the ones that a reconciliation has
// confirmed. It changes nothing. Its invariant: an hour after its end a day always has the same result, byte for byte.
package settlement

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/reconcile"
	"mobilegateway/gatewayctl/reconcile/listing"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/gatewayctl/reconcile/runs"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

// Command is the command settlement.
type Command struct {
	Day session.UTCDay `required:"" placeholder:"DAY" help:"The UTC day of the final status, as export --by finality."`

	Merchant   string   `placeholder:"NAME" help:"Only this merchant; all of them if not given."`
	Reconciled []string `sep:"none" placeholder:"FILE" predictor:"file" help:"Files of reconcile --result."`
	CSV        bool     `name:"csv" help:"Write the rows as CSV; the totals are on the standard error."`
}

// closedAfter is how long after its end a day has no new final status: longer than any clock differs.
const closedAfter = time.Hour

// Row is one transaction that a merchant is owed.
type Row struct {
	Merchant  string      `json:"merchant"`
	Currency  string      `json:"currency"`
	Operator  string      `json:"operator"`
	Account   string      `json:"account"` // platform/id
	Kind      ledger.Kind `json:"kind"`
	ID        string      `json:"id"`
	Amount    string      `json:"amount"`
	CreatedAt time.Time   `json:"created_at"`
	FinalAt   time.Time   `json:"final_at"`
	// Reference is the platform's own, "" if it is not known.
	Reference string `json:"operator_reference,omitempty"`
	// Reconciled is true if a statement has the same paid amount. Fee is the operator's in that statement.
	Reconciled bool   `json:"reconciled"`
	Fee        string `json:"fee,omitempty"`
}

// Total is what a merchant is owed in one currency by one operator.
type Total struct {
	Merchant        string `json:"merchant" col:"MERCHANT"`
	Currency        string `json:"currency" col:"CURRENCY"`
	Operator        string `json:"operator" col:"OPERATOR"`
	Count           int    `json:"count" col:"ALL"`
	All             string `json:"all" col:"AMOUNT"`
	ReconciledCount int    `json:"reconciled_count" col:"RECONCILED"`
	Reconciled      string `json:"reconciled" col:"AMOUNT"`
	Difference      string `json:"difference" col:"DIFFERENCE"` // all less reconciled
	Fees            string `json:"fees" col:"FEES"`             // of the reconciled ones
}

// View is the result, without its rows.
type View struct {
	Day string `json:"day"`
	// Closed is false until an hour after the day's end: more may become final.
	Closed bool    `json:"closed"`
	Totals []Total `json:"totals"`
}

// settlement is one run of the command.
type settlement struct {
	*Command
	*session.Session
	rows, reconciled, result *runs.Sorter
	totals                   *totals
}

// Run sums the day. It leaves an audit record, as an export does.
func (c *Command) Run(s *session.Session) error {
	merchants, err := s.MerchantsNamed(c.Merchant)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "gatewayctl-settlement-") // mode 0700
	if err != nil {
		return err
	}
	r := &settlement{Command: c, Session: s, rows: runs.New(folder, "rows"),
		reconciled: runs.New(folder, "reconciled"), result: runs.New(folder, "result"), totals: &totals{}}
	subject := "all merchants"
	if c.Merchant != "" {
		subject = merchants[0].Name
	}
	err = s.Audited("sum a settlement", subject, func() (string, error) {
		count, err := r.run(merchants)
		return c.Day.Format(time.DateOnly) + ": " + output.Plural(count, "transaction"), err
	})
	return errors.Join(err, os.RemoveAll(folder))
}

// run reads the results of reconciliations and the ledger, joins them, and writes the result.
func (r *settlement) run(merchants []*merchant.Profile) (count int, err error) {
	for _, path := range r.Reconciled {
		if err := r.readReconciled(path); err != nil {
			return 0, err
		}
	}
	for _, p := range merchants {
		if err := r.readMerchant(p); err != nil {
			return 0, err
		}
	}
	if err := r.join(); err != nil {
		return 0, err
	}
	err = r.each(func(row Row) error {
		count++
		return r.totals.add(row)
	})
	if err != nil {
		return count, err
	}
	return count, r.write()
}

// readReconciled keeps the rows of a result that confirm or contradict a success.
func (r *settlement) readReconciled(path string) error {
	_, err := result.Read(path, func(row result.Row) error {
		word := ""
		switch {
		case row.IsReconciled():
			word = confirmed
		case row.IsObjection():
			word = contradicted
		default:
			return nil
		}
		key := ledger.Key{Kind: row.Kind, ID: row.ID}
		return r.reconciled.Add(runs.Pack(key.String(), word, row.OurAmount, row.OurCurrency, row.Fee,
			row.TheirReference))
	})
	return err
}

// The findings of a reconciliation about a transaction.
const (
	confirmed    = "confirmed"
	contradicted = "contradicted"
)

// readMerchant keeps a merchant's successes that became final on the day. A status may come long after the creation.
func (r *settlement) readMerchant(p *merchant.Profile) error {
	begin, end := r.Day.Time, r.Day.Add(session.Day)
	for e, err := range entries.Between(r.Session, p, entries.FirstDay(p, begin), end) {
		if err := errors.Join(err, r.Err()); err != nil {
			return err
		}
		at := transactions.BecameFinal(e)
		if !reconcile.IsPaid(e) || at.Before(begin) || !at.Before(end) {
			continue
		}
		row := Row{
			Merchant: e.Merchant.Name, Currency: e.Amount.Currency, Operator: e.Route.Operator,
			Account: operator.PinOf(e).String(), Kind: e.Kind, ID: e.ID,
			Amount: money.Format(e.Amount.Minor, e.Amount.Exponent), CreatedAt: e.CreatedAt.UTC(), FinalAt: at.UTC(),
			Reference: entries.ViewOf(e).OperatorReference,
		}
		if err := r.keep(r.rows, row, e.Key.String()); err != nil {
			return err
		}
	}
	return nil
}

// keep adds a row to a sorter, behind its keys.
func (r *settlement) keep(to *runs.Sorter, row Row, keys ...string) error {
	document, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return to.Add(runs.Pack(append(keys, string(document))...))
}

// each calls f with each row of the result, by merchant, currency, operator and time.
func (r *settlement) each(f func(Row) error) error {
	for record, err := range r.result.Sorted() {
		if err != nil {
			return err
		}
		row, err := rowOf(record)
		if err == nil {
			err = f(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowOf reads the last text of a record.
func rowOf(record []byte) (row Row, err error) {
	texts := runs.Unpack(record)
	return row, json.Unmarshal([]byte(texts[len(texts)-1]), &row)
}

// write writes the result.
func (r *settlement) write() error {
	view := View{Day: r.Day.Format(time.DateOnly), Closed: !r.Now().Before(r.Day.Add(session.Day + closedAfter)),
		Totals: r.totals.all}
	if !view.Closed {
		fmt.Fprintf(r.Stderr, "The day is not closed until %s: more may become final.\n",
			output.FormatTime(r.Day.Add(session.Day+closedAfter)))
	}
	switch {
	case r.CSV:
		if err := listing.WriteCSV(r.Documents, r.each); err != nil {
			return err
		}
		return output.ListRows(view.Totals).Write(r.Stderr, "")
	case r.JSON:
		return listing.WriteJSON(r.Documents, view, "rows", r.each)
	}
	if len(view.Totals) == 0 {
		_, err := fmt.Fprintln(r.Stderr, "There is none.")
		return err
	}
	return output.ListRows(view.Totals).Write(r.Stdout, "")
}

// totals are the sums of rows in their order.
type totals struct {
	all []Total
	sum struct{ all, reconciled, fees int64 } // of the last one, in minor units
}

// add adds a row, which belongs to the last total or begins another.
func (t *totals) add(row Row) error {
	last := len(t.all) - 1
	if last < 0 || t.all[last].Merchant != row.Merchant || t.all[last].Currency != row.Currency ||
		t.all[last].Operator != row.Operator {
		t.all = append(t.all, Total{Merchant: row.Merchant, Currency: row.Currency, Operator: row.Operator})
		t.sum.all, t.sum.reconciled, t.sum.fees = 0, 0, 0
		last++
	}
	_, decimals, _ := strings.Cut(row.Amount, ".")
	exponent, total := len(decimals), &t.all[last]
	minor, err := increase(&t.sum.all, row.Amount, exponent)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", row.ID, row.Merchant, err)
	}
	total.Count++
	if row.Reconciled {
		total.ReconciledCount++
		if t.sum.reconciled += minor; row.Fee != "" {
			if _, err := increase(&t.sum.fees, row.Fee, exponent); err != nil {
				return fmt.Errorf("the fee of %s of %s: %w", row.ID, row.Merchant, err)
			}
		}
	}
	total.All, total.Reconciled = money.Format(t.sum.all, exponent), money.Format(t.sum.reconciled, exponent)
	total.Difference = money.Format(t.sum.all-t.sum.reconciled, exponent)
	total.Fees = money.Format(t.sum.fees, exponent)
	return nil
}

var errTooLarge = errors.New("the total is too large for a 64-bit number of minor units")

// increase adds an amount to a sum and returns it in minor units.
func increase(to *int64, text string, exponent int) (int64, error) {
	minor, err := money.Parse(text, exponent)
	if errors.Is(err, money.ErrNotPositive) {
		return 0, nil // a fee of zero
	}
	if err != nil {
		return 0, err
	}
	if *to > math.MaxInt64-minor {
		return 0, errTooLarge
	}
	*to += minor
	return minor, nil
}
