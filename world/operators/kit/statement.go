package kit

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"time"
)

// StatementRow is an effect in a statement, with the platform's reference of its transaction.
type StatementRow struct {
	Effect
	Reference string
	MSISDN    string
}

// payerDigits is how many digits of a payer's number a statement shows.
const payerDigits = 4

// Statement returns the money that moved on a UTC day, or in all for the zero time, as an operator's statement. It has
// the generic form that docs/reconciliation.md describes: the order is that of the effects. amount writes the amount of
// an effect in its currency; nil keeps that of the request.
func Statement(rows []StatementRow, day time.Time, amount func(Effect) string) []byte {
	var text strings.Builder
	out := csv.NewWriter(&text)
	_ = out.Write([]string{"reference", "order_id", "amount", "currency", "status", "time", "fee", "payer"})
	for _, r := range rows {
		if r.Kind == KindSMS || !day.IsZero() && !r.At.UTC().Truncate(24*time.Hour).Equal(day) {
			continue
		}
		sum := r.Amount
		if amount != nil {
			sum = amount(r.Effect)
		}
		payer := r.MSISDN[max(0, len(r.MSISDN)-payerDigits):]
		if payer = strings.Map(onlyDigits, payer); payer != "" {
			payer = "****" + payer
		}
		_ = out.Write([]string{r.Reference, r.Key, sum, r.Currency, "paid", r.At.UTC().Format(time.RFC3339), "", payer})
	}
	out.Flush() // a Builder never fails
	return []byte(text.String())
}

// onlyDigits removes everything else: an alias has none.
func onlyDigits(r rune) rune {
	if r < '0' || r > '9' {
		return -1
	}
	return r
}

// StatementResponse is a statement of the day that the query of a call has (?day=2026-03-01), or of all days.
func StatementResponse(c *Call, rows []StatementRow, amount func(Effect) string) Response {
	var day time.Time
	if text := c.Request.URL.Query().Get("day"); text != "" {
		var err error
		if day, err = time.Parse(time.DateOnly, text); err != nil {
			return Refuse(http.StatusBadRequest, "day is not a day such as 2026-03-01")
		}
	}
	return Response{Status: http.StatusOK, Type: "text/csv; charset=utf-8", Body: Statement(rows, day, amount)}
}

// statementRows are the rows of all transactions, in the order of their effects.
func (x *index) statementRows() []StatementRow {
	var rows []StatementRow
	for _, t := range x.all {
		for _, e := range t.Effects {
			rows = append(rows, StatementRow{e, t.Reference, t.MSISDN})
		}
	}
	slices.SortFunc(rows, func(a, b StatementRow) int { return a.number - b.number })
	return rows
}
