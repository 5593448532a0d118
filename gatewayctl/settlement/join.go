package settlement

import (
	"iter"

	"mobilegateway/gatewayctl/reconcile/runs"
)

// finding is what the reconciliations found about one transaction.
type finding struct {
	key, word, amount, currency, fee, reference string
}

// join marks the rows that a reconciliation has confirmed, and sorts them for the result. A row that one statement
// confirms and another one contradicts is not reconciled.
func (r *settlement) join() error {
	next, stop := iter.Pull2(r.reconciled.Sorted())
	defer stop()
	found, err := advance(next)
	if err != nil {
		return err
	}
	for record, err := range r.rows.Sorted() {
		if err != nil {
			return err
		}
		key := runs.First(record)
		row, err := rowOf(record)
		if err != nil {
			return err
		}
		isContradicted := false
		for ; found.key != "" && found.key <= key; found, err = advance(next) {
			if err != nil {
				return err
			}
			switch {
			case found.key < key:
			case found.word == contradicted:
				isContradicted = true
			case found.amount == row.Amount && found.currency == row.Currency:
				row.Reconciled, row.Fee = true, found.fee
				if row.Reference == "" {
					row.Reference = found.reference
				}
			}
		}
		if err != nil {
			return err
		}
		if isContradicted {
			row.Reconciled, row.Fee = false, ""
		}
		if err := r.keep(r.result, row, row.Merchant, row.Currency, row.Operator,
			row.FinalAt.Format(sortable), key); err != nil {
			return err
		}
	}
	return nil
}

// sortable is a form of UTC times whose texts sort as the times do.
const sortable = "2006-01-02T15:04:05.000000000"

// advance returns the next finding, one without a key at the end.
func advance(next func() ([]byte, error, bool)) (finding, error) {
	record, err, more := next()
	if err != nil || !more {
		return finding{}, err
	}
	t := runs.Unpack(record)
	return finding{t[0], t[1], t[2], t[3], t[4], t[5]}, nil
}
