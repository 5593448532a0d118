package statement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
)

// The columns of the generic form. Each is the name of a column in the file, unless the mapping has another name.
const (
	ColumnReference = "reference"
	ColumnOrderID   = "order_id"
	ColumnAmount    = "amount"
	ColumnCurrency  = "currency"
	ColumnStatus    = "status"
	ColumnTime      = "time"
	ColumnFee       = "fee"
	ColumnPayer     = "payer"
)

// Columns lists the columns of the generic form, in its order.
func Columns() []string {
	return []string{ColumnReference, ColumnOrderID, ColumnAmount, ColumnCurrency, ColumnStatus, ColumnTime, ColumnFee,
		ColumnPayer}
}

// Mapping describes how a file in the generic form is written. A field that is not set leaves the generic form's own.
type Mapping struct {
	// Encoding is one of Encodings. Separator is the one character between cells. Decimal is DecimalPoint or
	// DecimalComma. A byte order mark, or the header, decides the first two without them.
	Encoding  string `json:"encoding,omitempty"`
	Separator string `json:"separator,omitempty"`
	Decimal   string `json:"decimal,omitempty"`
	// UTCOffset is the offset of the statement's times and of its day, such as +01:00.
	UTCOffset string `json:"utc_offset,omitempty"`
	// TimeFormat is made of YYYY, MM, DD, hh, mm and ss; without it times are RFC 3339, with their offset.
	TimeFormat string `json:"time_format,omitempty"`
	// HeaderLine is the line of the header, from 1; the first line that is not blank without it.
	HeaderLine int `json:"header_line,omitempty"`
	// Columns are the names of columns in the file, by those of the generic form.
	Columns map[string]string `json:"columns,omitempty"`
	// Currency and Status are those of each row, in a file without such a column.
	Currency string  `json:"currency,omitempty"`
	Status   Outcome `json:"status,omitempty"`
	// Statuses are the outcomes by the file's words; they replace the generic ones.
	Statuses map[string]Outcome `json:"statuses,omitempty"`
	// Exponents are the decimals of currencies that the gateway does not serve.
	Exponents map[string]int `json:"exponents,omitempty"`
	// Net is true if the amount is without the fee, which is then added.
	Net bool `json:"amount_is_net,omitempty"`
	// Footers begin the first cell of lines that are no rows.
	Footers []string `json:"footers,omitempty"`
	// Types name the rows that are payments, if the statement also has others.
	Types *Types `json:"types,omitempty"`
	// OpenEnd accepts a last line without a line end.
	OpenEnd  bool      `json:"open_end,omitempty"`
	FeeTerms *FeeTerms `json:"fee_terms,omitempty"`
}

// Types divide the rows of a statement by a column. A type that neither list has is a fault.
type Types struct {
	Column   string   `json:"column"`
	Payments []string `json:"payments"`
	Refunds  []string `json:"refunds,omitempty"`
	Ignored  []string `json:"ignored,omitempty"`
}

// maxMapping is the largest mapping file, in bytes.
const maxMapping = 64 << 10

// ReadMapping reads a mapping file. A field that it does not know is an error.
func ReadMapping(name string) (Mapping, error) {
	var m Mapping
	file, err := os.Open(name)
	if err != nil {
		return m, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxMapping+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return m, err
	}
	if len(text) > maxMapping {
		return m, fmt.Errorf("%s is not a mapping: it has more than %d bytes", name, maxMapping)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("%s is not a mapping: %w", name, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("%s is not a mapping: it has more than one document", name)
	}
	if err := m.Validate(); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// Override replaces the fields of the mapping that o has.
func (m *Mapping) Override(o Mapping) {
	for _, field := range []struct {
		to   *string
		from string
	}{
		{&m.Encoding, o.Encoding}, {&m.Separator, o.Separator}, {&m.Decimal, o.Decimal}, {&m.UTCOffset, o.UTCOffset},
	} {
		if field.from != "" {
			*field.to = field.from
		}
	}
	m.OpenEnd = m.OpenEnd || o.OpenEnd
}

// Validate returns the first field with a value that it cannot have.
func (m *Mapping) Validate() error {
	for _, f := range []struct {
		name, value string
		values      []string
	}{
		{"encoding", m.Encoding, Encodings()}, {"decimal", m.Decimal, []string{DecimalPoint, DecimalComma}},
		{"status", string(m.Status), outcomeNames()},
	} {
		if f.value != "" && !slices.Contains(f.values, f.value) {
			return fmt.Errorf("%s %q is not one of %s", f.name, f.value, strings.Join(f.values, ", "))
		}
	}
	for _, column := range slices.Sorted(maps.Keys(m.Columns)) {
		if !slices.Contains(Columns(), column) {
			return fmt.Errorf("columns has %q, which is not one of %s", column, strings.Join(Columns(), ", "))
		}
	}
	for _, word := range slices.Sorted(maps.Keys(m.Statuses)) {
		if !slices.Contains(Outcomes(), m.Statuses[word]) {
			return fmt.Errorf("statuses: %q of %q is not one of %s", m.Statuses[word], word,
				strings.Join(outcomeNames(), ", "))
		}
	}
	if m.Separator != "" && (utf8.RuneCountInString(m.Separator) != 1 || strings.ContainsAny(m.Separator, "\"\r\n")) {
		return fmt.Errorf("separator %q is not one character between cells", m.Separator)
	}
	for _, currency := range slices.Sorted(maps.Keys(m.Exponents)) {
		if own, found := market.CurrencyExponent(currency); found {
			return fmt.Errorf("exponents has %s, which always has %d decimals here: leave it out", currency, own)
		}
		if exponent := m.Exponents[currency]; exponent < 0 || exponent > money.MaxExponent {
			return fmt.Errorf("exponents has %d for %s, which is not 0 to %d", exponent, currency, money.MaxExponent)
		}
	}
	if _, err := m.location(); err != nil {
		return err
	}
	return errors.Join(m.validateTimes(), m.validateTerms())
}

func (m *Mapping) validateTimes() error {
	if m.TimeFormat == "" {
		return nil
	}
	for _, part := range []string{"YYYY", "MM", "DD", "hh", "mm"} {
		if strings.Count(m.TimeFormat, part) != 1 {
			return fmt.Errorf("time_format %q does not have %s once", m.TimeFormat, part)
		}
	}
	if m.UTCOffset == "" {
		return errors.New("time_format has no offset: give --utc-offset, or \"utc_offset\" in the mapping")
	}
	return nil
}

func (m *Mapping) validateTerms() error {
	if m.Types != nil && (m.Types.Column == "" || len(m.Types.Payments) == 0) {
		return errors.New("types needs column and payments")
	}
	if f := m.FeeTerms; f != nil && (f.BasisPoints < 0 || f.BasisPoints > basis || f.Fixed < 0 ||
		!slices.Contains([]string{roundUp, roundDown, roundHalfUp}, f.Rounding)) {
		return fmt.Errorf("fee_terms needs basis_points from 0 to %d, fixed_minor, and rounding: up, down or half-up",
			basis)
	}
	return nil
}

func outcomeNames() []string {
	var names []string
	for _, o := range Outcomes() {
		names = append(names, string(o))
	}
	return names
}

// location returns the zone of the statement's day and of times without an offset.
func (m *Mapping) location() (*time.Location, error) {
	if m.UTCOffset == "" {
		return time.UTC, nil
	}
	at, err := time.Parse("-07:00", m.UTCOffset)
	if err != nil {
		return nil, fmt.Errorf("utc_offset %q is not an offset such as +01:00", m.UTCOffset)
	}
	_, seconds := at.Zone()
	return time.FixedZone(m.UTCOffset, seconds), nil
}

// Location returns the zone of the statement's day: UTC, unless the mapping has an offset.
func (m *Mapping) Location() *time.Location {
	zone, err := m.location()
	if err != nil {
		return time.UTC // Validate has refused it
	}
	return zone
}

// layout is the time format in the form of package time.
func (m *Mapping) layout() string {
	if m.TimeFormat == "" {
		return time.RFC3339
	}
	return strings.NewReplacer("YYYY", "2006", "MM", "01", "DD", "02", "hh", "15", "mm", "04", "ss", "05").
		Replace(m.TimeFormat)
}

// genericStatuses are the outcomes by the words of the generic form, in small letters.
func genericStatuses() map[string]Outcome {
	return map[string]Outcome{
		"paid": Paid, "successful": Paid, "failed": Failed, "cancelled": Failed, "expired": Failed, "refused": Failed,
		"pending": Pending, "refunded": Refunded,
	}
}
