package report

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/ascii"
	"mobilegateway/shared/dayindex"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// The query parameters of a list.
const (
	queryDay       = "day"
	queryOperation = "operation"
	queryStatus    = "status"
	queryOperator  = "operator"
	queryCountry   = "country"
	queryLimit     = "limit"
	queryCursor    = "cursor"
)

// The sizes of a page.
const (
	defaultLimit = 50
	maxLimit     = 100
)

// query selects a page of a day. An empty filter selects everything.
type query struct {
	day                                  time.Time // UTC midnight
	operation, status, operator, country string
	limit                                int
	position                             string // of the day's index; "" for its start
}

// operations are the values of the filter operation.
var operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}

// readQuery reads the query parameters. Other parameters are ignored, as unknown fields are. The first fault in the
// order of the contract is reported.
func readQuery(req *apigw.Request, p *merchant.Profile, now time.Time) (*query, error) {
	for _, name := range []string{
		queryDay, queryOperation, queryStatus, queryOperator, queryCountry, queryLimit, queryCursor,
	} {
		if value, isSent := req.Query[name]; isSent && value == "" {
			return nil, fault.BrokenRule(name, logsafe.New("the parameter is empty"))
		}
		if req.RepeatsQuery(name) {
			return nil, fault.BrokenRule(name, logsafe.New("the parameter is repeated"))
		}
	}
	q := &query{
		operation: req.Query[queryOperation], status: req.Query[queryStatus],
		operator: strings.ToLower(req.Query[queryOperator]), country: strings.ToUpper(req.Query[queryCountry]),
		day: now.UTC().Truncate(24 * time.Hour), limit: defaultLimit,
	}
	if text := req.Query[queryDay]; text != "" {
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return nil, fault.BrokenRule(queryDay, logsafe.New("it is not a date of the form YYYY-MM-DD"))
		}
		q.day = day
	}
	for _, filter := range []struct {
		name, value string
		valid       []string
	}{
		{queryOperation, q.operation, operations}, {queryStatus, q.status, statuses()},
		{queryOperator, q.operator, operator.Names()}, {queryCountry, q.country, market.Alpha2s()},
	} {
		if filter.value != "" && !slices.Contains(filter.valid, filter.value) {
			return nil, fault.NotAllowed(filter.name, filter.valid)
		}
	}
	if text := req.Query[queryLimit]; text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || !ascii.IsDigits(text) || limit < 1 || limit > maxLimit {
			return nil, fault.BrokenRule(queryLimit, logsafe.New("it is not a whole number from 1 to 100"))
		}
		q.limit = limit
	}
	return q, q.readCursor(req.Query[queryCursor], req.Query[queryDay] != "", p)
}

// sumBytes is the length of the check sum in a cursor.
const sumBytes = 8

// sum is the check sum of a cursor: a cursor belongs to one merchant, one day and one set of filters. It needs no key,
// because a forged cursor only moves within the merchant's own day.
func (q *query) sum(merchantID, body string) []byte {
	text := strings.Join([]string{merchantID, q.operation, q.status, q.operator, q.country, body}, "\n")
	sum := sha256.Sum256([]byte(text))
	return sum[:sumBytes]
}

// encodeCursor makes the cursor of the page that begins at a position of the day's index.
func (q *query) encodeCursor(merchantID, position string) string {
	body := q.day.Format(time.DateOnly) + "/" + position
	return base64.RawURLEncoding.EncodeToString(append(q.sum(merchantID, body), body...))
}

// readCursor reads a cursor. It has the day too, so that a walk that began without a day ends on its first day.
func (q *query) readCursor(text string, namesDay bool, p *merchant.Profile) error {
	if text == "" {
		return nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	// The decoder skips line ends, which no cursor has.
	if err != nil || len(decoded) < sumBytes || strings.ContainsAny(text, "\r\n") {
		return fault.BrokenRule(queryCursor, logsafe.New("it is not a cursor"))
	}
	body := string(decoded[sumBytes:])
	dayText, position, _ := strings.Cut(body, "/")
	day, err := time.Parse(time.DateOnly, dayText)
	if err != nil || position == "" || string(q.sum(p.ID, body)) != string(decoded[:sumBytes]) {
		return fault.BrokenRule(queryCursor, logsafe.New("it is not a cursor of this merchant with these filters"))
	}
	if namesDay && !day.Equal(q.day) {
		return fault.BrokenRule(queryCursor, logsafe.New("it is a cursor of another day"))
	}
	of := dayindex.Day{Day: day, Shards: p.ReadDayShards()}
	if _, err := dayindex.NewReader(nil, of, position); err != nil {
		return fault.BrokenRule(queryCursor, logsafe.New("it has no position"))
	}
	q.day, q.position = day, position
	return nil
}

// filtersEntries reports whether a filter needs the transaction itself: its key has the operation only.
func (q *query) filtersEntries() bool { return q.status != "" || q.operator != "" || q.country != "" }

// selects reports whether a page has a transaction. The index lags: the key may have been reserved again since, on
// another day. A released transaction is left out, because its lookup is 404.
func (q *query) selects(e *ledger.Entry, p *merchant.Profile, now time.Time) bool {
	switch {
	case e.Merchant.ID != p.ID, e.State == ledger.Released, e.PastRetention(ledger.Timestamp(now)),
		!e.CreatedAt.UTC().Truncate(24 * time.Hour).Equal(q.day):
		return false
	case q.status != "" && q.status != statusOf(e), q.operator != "" && q.operator != e.Route.Operator,
		q.country != "" && q.country != e.Route.Country:
		return false
	}
	return true
}

// acceptsCSV reports whether a client prefers CSV: the first of the two types that its Accept header names.
func acceptsCSV(accept string) bool {
	for element := range strings.SplitSeq(accept, ",") {
		mediaType, parameters, _ := strings.Cut(element, ";")
		switch mediaType = strings.ToLower(strings.TrimSpace(mediaType)); {
		case hasZeroWeight(parameters):
		case mediaType == "text/csv":
			return true
		case mediaType == "application/json":
			return false
		}
	}
	return false
}

// hasZeroWeight reports whether the parameters of a media type have the weight 0, which refuses it (RFC 9110, 12.4.2).
func hasZeroWeight(parameters string) bool {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			value = strings.TrimSpace(value)
			return value == "0" || strings.TrimRight(value, "0") == "0." // such as 0.000
		}
	}
	return false
}
