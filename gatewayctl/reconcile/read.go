package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/gatewayctl/reconcile/runs"
	"mobilegateway/gatewayctl/reconcile/statement"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// rowProgress is the number of a statement's rows between two lines of progress.
const rowProgress = 100_000

// readStatements reads the statements, unless an interrupted command has read them.
func (r *reconciliation) readStatements() (*runs.Sorter, error) {
	if read := r.work.Statements; read != nil {
		return r.work.sorter("rows-0", read.Parts), nil
	}
	key, rows, read := stages()[0].theirKey, r.work.sorter("rows-0", nil), &statementRead{}
	count := 0
	for i, path := range r.Statement {
		summary, err := r.readStatement(path, func(row statement.Row) error {
			t := theirs{Row: row, File: i}
			if count++; count%rowProgress == 0 {
				fmt.Fprintf(r.Stderr, "%d rows of the statement read\n", count)
			}
			return errors.Join(rows.Add(t.pack(key(&t), "")), r.Err())
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), rows.Remove())
		}
		read.Summaries = append(read.Summaries, summary)
	}
	if err := rows.Flush(); err != nil {
		return nil, err
	}
	read.Parts = rows.Files
	r.work.Statements = read
	return rows, r.work.save()
}

func (r *reconciliation) readStatement(path string, yield func(statement.Row) error) (statement.Summary, error) {
	opened, err := os.Open(path)
	if err != nil {
		return statement.Summary{}, err
	}
	summary, err := r.format.Read(opened, r.mapping, yield)
	return summary, errors.Join(err, opened.Close())
}

// readLedger reads the day of all merchants and the days beside it. It continues at the page where an interrupted
// command has ended.
func (r *reconciliation) readLedger() (*runs.Sorter, error) {
	read := &r.work.Ledger
	transactions := r.work.sorter("ours-0", read.Parts)
	if read.IsWhole {
		return transactions, nil
	}
	all, err := r.AllMerchants()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *merchant.Profile) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	if read.Merchant != "" {
		at := slices.IndexFunc(all, func(p *merchant.Profile) bool { return p.ID == read.Merchant })
		if at < 0 {
			return nil, fmt.Errorf("the merchant %s, at which the ledger was read, is gone: remove %s", read.Merchant,
				r.work.folder)
		}
		all = all[at:]
	}
	for _, p := range all {
		if err := r.readMerchant(p, transactions); err != nil {
			return nil, err
		}
	}
	read.IsWhole = true
	return transactions, r.savePosition(transactions)
}

// readMerchant reads a merchant's days. After a flush the position is saved.
func (r *reconciliation) readMerchant(p *merchant.Profile, transactions *runs.Sorter) error {
	read, margin := &r.work.Ledger, time.Duration(r.Neighbours)*session.Day
	window := span{r.day.begin.Add(-margin), r.day.end.Add(margin)}
	from, cursor := window.begin, ""
	if read.Merchant == p.ID {
		at, err := time.Parse(time.DateOnly, read.Day)
		if err != nil {
			return err
		}
		from, cursor = at, read.Cursor
	}
	key := stages()[0].ourKey
	for page, err := range entries.Pages(r.Session, p, from, window.end, cursor) {
		if err := errors.Join(err, r.Err()); err != nil {
			return err
		}
		for _, e := range page.Entries {
			if read.Read++; read.Read%entries.ReadProgress == 0 {
				fmt.Fprintf(r.Stderr, "%s: %d transactions of the ledger read\n", e.CreatedAt.Format(time.DateOnly),
					read.Read)
			}
			if !window.contains(e.CreatedAt) || !r.isCompared(e) {
				continue
			}
			read.Compared++
			o := r.newOurs(e)
			if err := transactions.Add(o.pack(key(&o), "")); err != nil {
				return err
			}
		}
		read.Merchant, read.Day, read.Cursor = p.ID, page.Day.Format(time.DateOnly), page.Next
		if page.Next == "" {
			read.Day = page.Day.Add(session.Day).Format(time.DateOnly)
		}
		if transactions.Full() {
			if err := r.savePosition(transactions); err != nil {
				return err
			}
		}
	}
	return nil
}

// savePosition writes what is in memory, and then the position behind it.
func (r *reconciliation) savePosition(transactions *runs.Sorter) error {
	if err := transactions.Flush(); err != nil {
		return err
	}
	r.work.Ledger.Parts = transactions.Files
	return r.work.save()
}

// checkAccount refuses an account that neither the transactions nor the credentials have. An account without a
// transaction is in the credentials; one that was removed from them has its former transactions.
func (r *reconciliation) checkAccount() error {
	if r.Account == "" || r.work.Ledger.Compared > 0 {
		return nil
	}
	stored, err := accounts.ReadStored(r.Session)
	if err != nil {
		return err
	}
	if known := stored.AccountIDs(r.Platform); !slices.Contains(known, r.Account) {
		r.work.Statements = nil // there is nothing to continue
		return output.UsageError("--account %q: no transaction of these days has it, and the accounts of %s are: %s",
			r.Account, r.Platform, cmp.Or(output.JoinComma(known), "none"))
	}
	return nil
}

// isCompared reports whether an entry can be in the statement: a payment or a charge of the account.
func (r *reconciliation) isCompared(e *ledger.Entry) bool {
	pin := operator.PinOf(e)
	return (e.Kind == ledger.Payment || e.Kind == ledger.Charge) && pin.Platform == r.Platform &&
		(r.Account == "" || pin.Account == r.Account)
}

// summaries are the statements with what was read of them.
func (r *reconciliation) summaries() []result.StatementView {
	views := []result.StatementView{}
	for i, path := range r.Statement {
		views = append(views, result.StatementView{
			File: filepath.Base(path), SHA256: r.hashes[i], Summary: r.work.Statements.Summaries[i],
		})
	}
	return views
}
