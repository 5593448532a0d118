// Package daycount is the count of one merchant's transactions of one UTC day, and its item in the table of limits.
//
// A count is derived from the ledger and from nothing else: the same entries make the same bytes. Its invariant: an
// item is replaced whole, and an item of a newer version is neither read nor replaced.
package daycount

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"mobilegateway/shared/ledger"
)

// Numbers count transactions by how they ended so far. Number is their sum.
type Numbers struct {
	Number    int `json:"number" col:"NUMBER"`
	Succeeded int `json:"succeeded" col:"SUCCEEDED"` // paid, charged, or accepted by the operator (SMS)
	Failed    int `json:"failed" col:"FAILED"`       // certainly without effect
	Unknown   int `json:"unknown" col:"UNKNOWN"`     // an outcome that nothing proves
	Pending   int `json:"pending" col:"PENDING"`     // not final yet
	// Amounts are the sums of those that succeeded, in minor units by currency.
	Amounts map[string]int64 `json:"amounts"`
}

// Row is the count of one operator, country and operation.
type Row struct {
	Operator  string      `json:"operator" col:"OPERATOR"`
	Country   string      `json:"country" col:"COUNTRY"`
	Operation ledger.Kind `json:"operation" col:"OPERATION"`
	Numbers
}

// Count is the count of one merchant's day: its rows in the order of operator, country and operation.
type Count struct {
	Rows []Row
}

// Add counts an entry.
func (c *Count) Add(e *ledger.Entry) {
	row := Row{Operator: e.Route.Operator, Country: e.Route.Country, Operation: e.Kind}
	at, found := slices.BinarySearchFunc(c.Rows, row, compareRows)
	if !found {
		row.Amounts = map[string]int64{}
		c.Rows = slices.Insert(c.Rows, at, row)
	}
	numbers := &c.Rows[at].Numbers
	numbers.Number++
	switch outcomeOf(e) {
	case succeeded:
		numbers.Succeeded++
		if e.Amount.Currency != "" {
			numbers.Amounts[e.Amount.Currency] += e.Amount.Minor
		}
	case failed:
		numbers.Failed++
	case unknown:
		numbers.Unknown++
	case pending:
		numbers.Pending++
	}
}

func compareRows(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Country, b.Country),
		cmp.Compare(a.Operation, b.Operation))
}

// Total is the sum of all rows.
func (c Count) Total() Numbers {
	total := Numbers{Amounts: map[string]int64{}}
	for _, row := range c.Rows {
		total.Number += row.Number
		total.Succeeded += row.Succeeded
		total.Failed += row.Failed
		total.Unknown += row.Unknown
		total.Pending += row.Pending
		for currency, minor := range row.Amounts {
			total.Amounts[currency] += minor
		}
	}
	return total
}

// HasAll reports whether a count has at least as many transactions in each row as another one. A later count has fewer
// only if the ledger's retention has ended for some of them: nothing else removes an entry from its day.
func (c Count) HasAll(of Count) bool {
	for _, row := range of.Rows {
		at, found := slices.BinarySearchFunc(c.Rows, row, compareRows)
		if !found || c.Rows[at].Number < row.Number {
			return false
		}
	}
	return true
}

// Currencies lists the currencies of the amounts in alphabetical order.
func (n Numbers) Currencies() []string { return slices.Sorted(maps.Keys(n.Amounts)) }

// outcome is how an entry ended so far.
type outcome int

const (
	pending outcome = iota
	succeeded
	failed
	unknown
)

// outcomeOf returns how an entry ended so far. A payment's status decides, if it is final, and else the state. A charge
// and an SMS have succeeded if the operator applied them; an SMS has failed if its receipt reports that.
func outcomeOf(e *ledger.Entry) outcome {
	switch {
	case e.Status == ledger.Successful, e.Status == ledger.DeliveredToNetwork, e.Status == ledger.DeliveredToTerminal:
		return succeeded
	case e.NotApplied(), e.Status == ledger.DeliveryImpossible:
		return failed
	case e.State == ledger.Unknown:
		return unknown
	case e.State == ledger.Done && e.Kind != ledger.Payment:
		return succeeded
	}
	return pending
}

// Version is the version of the form of a stored count. A change that older programs would misread makes it greater.
const Version = 1

// ErrVersion is wrapped by the error of a count that a newer version of the tool stored.
var ErrVersion = errors.New("a newer version of gatewayctl stored this count: use that version")

// document is the stored form.
type document struct {
	Version int   `json:"v"`
	Rows    []Row `json:"rows"`
}

// Encode returns the stored form. Equal counts have equal bytes.
func (c Count) Encode() string {
	text, _ := json.Marshal(document{Version, append([]Row{}, c.Rows...)}) // plain fields, and maps in sorted order
	return string(text)
}

// Decode reads the stored form.
func Decode(text string) (Count, error) {
	var version struct {
		Version int `json:"v"`
	}
	err := json.Unmarshal([]byte(text), &version)
	switch {
	case err != nil || version.Version < 1:
		return Count{}, errors.New("the stored count is damaged: count the day again")
	case version.Version > Version:
		return Count{}, fmt.Errorf("%w (its form is %d, this one reads %d)", ErrVersion, version.Version, Version)
	}
	var stored document
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return Count{}, errors.New("the stored count is damaged: count the day again")
	}
	return Count{stored.Rows}, nil
}

// Key names the count of a merchant's UTC day.
type Key struct {
	MerchantID string
	Day        string // such as 2026-03-01
}

// KeyOf returns the key of a merchant's day.
func KeyOf(merchantID string, day time.Time) Key {
	return Key{merchantID, day.UTC().Format(time.DateOnly)}
}

// kept is how long a count is stored after its day: thirteen months, so that a month is compared with that of the year
// before.
const kept = 400 * 24 * time.Hour

// expireAt returns when the count of a day may be deleted. It depends on the day only, as all of the item does.
func (k Key) expireAt() (time.Time, error) {
	begin, err := time.Parse(time.DateOnly, k.Day)
	return begin.Add(kept), err
}
