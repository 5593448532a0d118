// Package report is what a merchant may read beside its lookups: its own transactions of a day, and its operators with
// their health (decision "merchant-reports").
//
// It writes nothing but the used part of the merchant's rate. Its invariants: a merchant sees only its own
// transactions, and a transaction that its lookup does not find is in no list.
package report

import (
	"context"
	"net/http"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/dayindex"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/strictjson"
)

const (
	// maxRead bounds the transactions that one request reads. A filter that selects few of them makes shorter pages.
	maxRead = 1000
	// pageSize is the number of keys that one query of the index requests, and of transactions in one batch.
	pageSize = 100
)

// Handler is the reports, and their dependencies.
type Handler struct {
	Merchants   operation.Authenticator
	RateLimiter *limit.RateLimiter
	Days        ledger.DayIndex
	Entries     ledger.BatchReader
	Accounts    Accounts
	Circuits    circuit.Store
	Now         func() time.Time
}

// Routes returns the routes of the reports, as in template.yaml.
func (h *Handler) Routes() []apigw.Route {
	return []apigw.Route{
		{Method: "GET", Resource: "/reports/v1/transactions", Handle: h.ListTransactions},
		{Method: "GET", Resource: "/operators/v1", Handle: h.ListOperators},
	}
}

// headerNext has the cursor of the next page, for a list as CSV too.
const headerNext = "X-Next-Cursor"

// transactionList is a page of a day. Next is "" on the last one.
type transactionList struct {
	Day          string        `json:"day"`
	Transactions []transaction `json:"transactions"`
	Next         string        `json:"next,omitempty"`
}

// ListTransactions returns a page of the merchant's transactions that were created on a day, as JSON or as CSV.
func (h *Handler) ListTransactions(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	profile, err := operation.Authenticate(ctx, req, h.Merchants, h.RateLimiter)
	if err != nil {
		return apigw.Response{}, err
	}
	q, err := readQuery(req, profile, h.Now())
	if err != nil {
		return apigw.Response{}, err
	}
	if reason := profile.ReasonNotAllowed(merchant.OperationReport, "", ""); reason != nil {
		return apigw.Response{}, fault.NotEntitled(reason)
	}
	rows, next, err := h.readPage(ctx, profile, q)
	if err != nil {
		return apigw.Response{}, fault.NewInternal(err)
	}
	list := transactionList{Day: q.day.Format(time.DateOnly), Transactions: rows}
	header := map[string]string{}
	if next != "" {
		list.Next = q.encodeCursor(profile.ID, next)
		header[headerNext] = list.Next
	}
	if acceptsCSV(req.Header("Accept")) {
		header["Content-Type"] = "text/csv; charset=utf-8; header=present"
		return apigw.Response{Status: http.StatusOK, Header: header, Body: csvOf(rows)}, nil
	}
	return apigw.Response{Status: http.StatusOK, Header: header, Body: strictjson.Marshal(list)}, nil
}

// candidate is a key of the index, with the position after it.
type candidate struct {
	ledger.Key
	position string
}

// readPage reads transactions until the page is full, the day has ended or maxRead of them are read. next is the
// position after the last one that was read; "" at the end of the day.
func (h *Handler) readPage(
	ctx context.Context, p *merchant.Profile, q *query,
) (rows []transaction, next string, err error) {
	of := dayindex.Day{MerchantID: p.ID, Day: q.day, Shards: p.ReadDayShards(), PageSize: pageSize}
	index, err := dayindex.NewReader(h.Days, of, q.position)
	if err != nil {
		return nil, "", err
	}
	rows = []transaction{}
	for read := 0; read < maxRead; {
		batch, err := nextBatch(ctx, index, q, len(rows))
		if err != nil {
			return nil, "", err
		}
		if len(batch) == 0 {
			return rows, "", nil
		}
		read += len(batch)
		entries, err := h.readBatch(ctx, batch, q)
		if err != nil {
			return nil, "", err
		}
		for i, e := range entries {
			if e != nil && q.selects(e, p, h.Now()) {
				rows = append(rows, newTransaction(e))
			}
			if isLast := i == len(entries)-1; len(rows) == q.limit && !(isLast && index.Ended()) {
				return rows, batch[i].position, nil
			}
		}
	}
	if index.Ended() {
		return rows, "", nil
	}
	return rows, index.Cursor(), nil
}

// nextBatch takes as many keys as the page may still need. With a filter that only the transactions themselves show, it
// takes a whole batch: most of them may not fit.
func nextBatch(ctx context.Context, index *dayindex.Reader, q *query, rows int) ([]candidate, error) {
	size := min(q.limit-rows, pageSize)
	if q.filtersEntries() {
		size = pageSize
	}
	var batch []candidate
	for len(batch) < size {
		key, found, err := index.Next(ctx)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		batch = append(batch, candidate{key.Key, index.Cursor()})
	}
	return batch, nil
}

// readBatch reads the transactions of a batch that their keys do not exclude; nil for the others.
func (h *Handler) readBatch(ctx context.Context, batch []candidate, q *query) ([]*ledger.Entry, error) {
	var keys []ledger.Key
	for _, c := range batch {
		if q.operation == "" || q.operation == string(c.Kind) {
			keys = append(keys, c.Key)
		}
	}
	found, err := h.Entries.GetAll(ctx, keys)
	if err != nil {
		return nil, err
	}
	byKey := map[ledger.Key]*ledger.Entry{}
	for i, key := range keys {
		byKey[key] = found[i]
	}
	entries := make([]*ledger.Entry, len(batch))
	for i, c := range batch {
		entries[i] = byKey[c.Key]
	}
	return entries, nil
}
