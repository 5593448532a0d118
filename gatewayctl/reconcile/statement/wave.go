package statement

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// waveItem is a transaction in the response of GET /v1/transactions (https://docs.wave.com/balance-api).
type waveItem struct {
	Timestamp       string `json:"timestamp"`
	TransactionID   string `json:"transaction_id"`
	Type            string `json:"transaction_type"`
	Amount          string `json:"amount"`
	Fee             string `json:"fee"`
	Currency        string `json:"currency"`
	IsReversal      bool   `json:"is_reversal"`
	ClientReference string `json:"client_reference"`
	Mobile          string `json:"counterparty_mobile"`
}

// wavePage is what the response has beside its items.
type wavePage struct {
	HasNext *bool `json:"has_next_page"`
}

// The types of Wave's transactions that a payment of ours can have. waveIgnored are the others that its page names.
const (
	waveCheckout = "api_checkout"
	waveRefund   = "api_checkout_refund"
)

var waveIgnored = []string{"merchant_payment", "merchant_payment_refund", "api_payout", "api_payout_reversal",
	"bulk_payment", "b2b_payment"}

// readWave reads the responses of GET /v1/transactions, one behind the other, in the order of their pages. The amount
// is what the wallet got, without the fee.
func readWave(in io.Reader, m Mapping, yield func(Row) error) (Summary, error) {
	m.Net, m.Status = true, Paid
	m.Types = &Types{Column: "transaction_type", Payments: []string{waveCheckout}, Refunds: []string{waveRefund},
		Ignored: waveIgnored}
	w := &waveReader{decoder: json.NewDecoder(in), parser: newParser(m), faults: &Faults{},
		summary: Summary{Skipped: map[string]int{}}, yield: yield}
	isLast := false
	for {
		more, err := w.page(&isLast)
		if err != nil {
			return w.summary, errors.Join(err, w.faults.orNil())
		}
		if !more {
			break
		}
	}
	if !isLast {
		return w.summary, errors.New("the last page of the file has has_next_page true, or none: pages are missing")
	}
	return w.summary, w.faults.orNil()
}

type waveReader struct {
	decoder *json.Decoder
	parser  *parser
	faults  *Faults
	summary Summary
	items   int
	yield   func(Row) error
}

// page reads one response; false at the end of the file.
func (w *waveReader) page(isLast *bool) (bool, error) {
	token, err := w.decoder.Token()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil || token != json.Delim('{') {
		return false, w.malformed(err, "a response of GET /v1/transactions begins with {")
	}
	*isLast = false
	for w.decoder.More() {
		name, err := w.decoder.Token()
		if err != nil {
			return false, w.malformed(err, "")
		}
		switch name {
		case "items":
			err = w.list()
		case "page_info":
			var info wavePage
			err = w.malformed(w.decoder.Decode(&info), "")
			*isLast = info.HasNext != nil && !*info.HasNext
		default:
			var ignored json.RawMessage
			err = w.malformed(w.decoder.Decode(&ignored), "")
		}
		if err != nil {
			return false, err
		}
	}
	_, err = w.decoder.Token()
	return true, w.malformed(err, "")
}

// malformed describes a document that cannot be read, nil without a cause and a problem.
func (w *waveReader) malformed(err error, problem string) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("behind item %d the file ends within a document: it is truncated", w.items)
	}
	switch {
	case err == nil && problem == "":
		return nil
	case problem == "":
		return fmt.Errorf("behind item %d: it is not JSON of this form: %w", w.items, err)
	}
	return fmt.Errorf("behind item %d: it is not JSON of this form: %w", w.items, errors.Join(err, errors.New(problem)))
}

// list reads the items of a response.
func (w *waveReader) list() error {
	token, err := w.decoder.Token()
	if err != nil || token != json.Delim('[') {
		return w.malformed(err, "items is a list")
	}
	for w.decoder.More() {
		begin := w.decoder.InputOffset()
		var item waveItem
		err := w.decoder.Decode(&item)
		w.items++
		if err != nil {
			return w.malformed(err, "")
		}
		if w.decoder.InputOffset()-begin > MaxLine {
			return fmt.Errorf("item %d is longer than %d bytes", w.items, MaxLine)
		}
		if err := w.item(item); err != nil {
			return err
		}
	}
	_, err = w.decoder.Token()
	return w.malformed(err, "")
}

// item yields an item. It is read as a line of the generic form with the same columns.
func (w *waveReader) item(item waveItem) error {
	h := &header{cells: make([]string, len(Columns())+1), column: map[string]int{}, kind: len(Columns()),
		names: map[string]string{ColumnReference: "transaction_id", ColumnOrderID: "client_reference",
			ColumnAmount: "amount", ColumnCurrency: "currency", ColumnTime: "timestamp", ColumnFee: "fee",
			ColumnPayer: "counterparty_mobile"}}
	for i, column := range Columns() {
		h.column[column] = i
	}
	if item.IsReversal && item.Type == waveCheckout {
		item.Type = waveRefund
	}
	amount, fee := item.Amount, item.Fee
	if item.Type == waveRefund { // a refund is negative for the wallet
		amount, fee = strings.TrimPrefix(amount, "-"), strings.TrimPrefix(fee, "-")
	}
	cells := []string{item.TransactionID, item.ClientReference, amount, item.Currency, "", item.Timestamp, fee,
		item.Mobile, item.Type}
	if reason := skipReason(cells, h, w.parser.Mapping); reason != "" {
		w.summary.Skipped[reason]++
		return nil
	}
	row, faults := w.parser.row(cells, w.items, h)
	w.faults.add(faults...)
	if w.faults.Count > 0 {
		return nil
	}
	w.summary.Rows++
	return w.yield(row)
}
