package statement

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"mobilegateway/shared/market"
)

// The reasons to skip a line.
const (
	skippedBlank    = "blank lines"
	skippedHeader   = "repeated headers"
	skippedFooter   = "footers"
	skippedPreamble = "lines before the header"
	skippedType     = "type " // and the type's name
)

// The years of a statement.
const (
	firstYear = 1970
	lastYear  = 2200
)

// maxID is the length of the longest reference or order_id.
const maxID = 200

// Read reads a statement in the generic form and yields each row. Before it ends without an error no row may be used: a
// fault anywhere refuses the whole file. yield's error ends it.
func Read(in io.Reader, m Mapping, yield func(Row) error) (Summary, error) {
	summary := Summary{Skipped: map[string]int{}}
	lines, err := newLineReader(in, m.Encoding)
	if err != nil {
		return summary, err
	}
	h, err := readHeader(lines, m, summary.Skipped)
	if err != nil {
		return summary, err
	}
	parser, faults := newParser(m), &Faults{}
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return summary, errors.Join(err, faults.orNil())
		}
		cells, err := splitCells(line, h.separator)
		if err != nil {
			faults.add(&Fault{Line: lines.number, Problem: err.Error()})
			continue
		}
		if reason := skipReason(cells, h, m); reason != "" {
			summary.Skipped[reason]++
			continue
		}
		row, wrong := parser.row(cells, lines.number, h)
		faults.add(wrong...)
		if faults.Count > 0 {
			continue
		}
		summary.Rows++
		if err := yield(row); err != nil {
			return summary, err
		}
	}
	if lines.isOpen && !m.OpenEnd {
		faults.add(&Fault{Line: lines.number, Problem: "is the last line and has no line end: the file may be " +
			"truncated. Get it again, or give --open-end if the operator writes it so"})
	}
	return summary, faults.orNil()
}

// skipReason returns why a line is not a row, "" for a row.
func skipReason(cells []string, h *header, m Mapping) string {
	switch {
	case !slices.ContainsFunc(cells, func(cell string) bool { return cell != "" }):
		return skippedBlank
	case slices.Equal(cells, h.cells):
		return skippedHeader
	case slices.ContainsFunc(m.Footers, func(text string) bool { return strings.HasPrefix(cells[0], text) }):
		return skippedFooter
	case h.kind >= 0 && h.kind < len(cells) && slices.Contains(m.Types.Ignored, cells[h.kind]):
		return skippedType + cells[h.kind]
	}
	return ""
}

// parser reads the cells of a mapping's forms.
type parser struct {
	Mapping
	statuses map[string]Outcome // by the word in small letters
	zone     *time.Location
	format   string
}

func newParser(m Mapping) *parser {
	p := &parser{Mapping: m, statuses: genericStatuses(), zone: m.Location(), format: m.layout()}
	if len(m.Statuses) > 0 {
		p.statuses = map[string]Outcome{}
		for word, outcome := range m.Statuses {
			p.statuses[strings.ToLower(word)] = outcome
		}
	}
	return p
}

// row reads the cells of a line.
func (p *parser) row(cells []string, number int, h *header) (Row, []*Fault) {
	if len(cells) != len(h.cells) {
		return Row{}, []*Fault{{Line: number, Problem: fmt.Sprintf("has %d cells, and the header has %d: a line that "+
			"is not a row is named in \"footers\" of the mapping", len(cells), len(h.cells))}}
	}
	var faults []*Fault
	check := func(column string, err error) {
		if err != nil {
			faults = append(faults, &Fault{number, h.name(column), err.Error()})
		}
	}
	row := Row{Line: number, Reference: h.at(cells, ColumnReference), OrderID: h.at(cells, ColumnOrderID)}
	check(ColumnReference, checkID(row.Reference))
	check(ColumnOrderID, checkID(row.OrderID))
	if row.Reference == "" && row.OrderID == "" {
		faults = append(faults, &Fault{Line: number, Problem: "has neither a reference nor an order_id"})
	}
	var err error
	row.Outcome, err = p.outcome(h.at(cells, ColumnStatus))
	check(ColumnStatus, err)
	row.Time, err = p.time(h.at(cells, ColumnTime))
	check(ColumnTime, err)
	row.PayerDigits, err = lastDigits(h.at(cells, ColumnPayer))
	check(ColumnPayer, err)
	if err := p.applyType(&row, cells, h); err != nil {
		faults = append(faults, &Fault{number, p.Types.Column, err.Error()})
	}
	return row, append(faults, p.amounts(&row, cells, h)...)
}

// amounts reads the currency, the amount and the fee.
func (p *parser) amounts(row *Row, cells []string, h *header) []*Fault {
	currency := p.Currency
	if currency == "" {
		currency = h.at(cells, ColumnCurrency)
	}
	exponent, err := p.exponent(currency)
	if err != nil {
		name := h.name(ColumnCurrency)
		if name == "" {
			name = "\"currency\" of the mapping"
		}
		return []*Fault{{row.Line, name, err.Error()}}
	}
	row.Amount = Amount{Exponent: exponent, Currency: currency}
	row.Amount.Minor, err = parseAmount(h.at(cells, ColumnAmount), p.Decimal, exponent)
	if err == nil && row.Amount.Minor == 0 {
		err = errors.New("is zero")
	}
	if err != nil {
		return []*Fault{{row.Line, h.name(ColumnAmount), err.Error()}}
	}
	if text := h.at(cells, ColumnFee); text != "" {
		row.HasFee = true
		if row.Fee, err = parseAmount(text, p.Decimal, exponent); err != nil {
			return []*Fault{{row.Line, h.name(ColumnFee), err.Error()}}
		}
	}
	if p.Net && !row.HasFee {
		return []*Fault{{row.Line, h.name(ColumnFee), "is empty, and the amount is without it"}}
	}
	p.finish(row)
	return nil
}

// finish adds the fee to a net amount, and sets the fee by the contract's terms.
func (p *parser) finish(row *Row) {
	if p.Net {
		row.Amount.Minor += row.Fee
	}
	if p.FeeTerms != nil {
		row.ExpectedFee, row.HasTerms = p.FeeTerms.of(row.Amount.Minor), true
	}
}

// applyType makes a row of a type of refunds a refund.
func (p *parser) applyType(row *Row, cells []string, h *header) error {
	if p.Types == nil {
		return nil
	}
	switch kind := cells[h.kind]; {
	case slices.Contains(p.Types.Refunds, kind):
		row.Outcome, row.IsBack = Refunded, true
	case !slices.Contains(p.Types.Payments, kind):
		return fmt.Errorf("%q is in no list of \"types\" of the mapping", kind)
	}
	return nil
}

// checkID refuses an identifier that no system of ours or theirs has.
func checkID(text string) error {
	switch {
	case len(text) > maxID:
		return fmt.Errorf("is longer than %d bytes", maxID)
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("has a control character")
	case isScientific(text):
		return errRounded
	}
	return nil
}

// isScientific reports whether a spreadsheet has written a long number as 1.23457E+15.
func isScientific(text string) bool {
	mantissa, exponent, found := strings.Cut(text, "E+")
	return found && exponent != "" && strings.Trim(exponent, "0123456789") == "" && mantissa != "" &&
		strings.Trim(mantissa, "0123456789.,") == ""
}

// outcome reads a status.
func (p *parser) outcome(word string) (Outcome, error) {
	if p.Status != "" {
		return p.Status, nil
	}
	found, known := p.statuses[strings.ToLower(word)]
	if !known {
		return "", fmt.Errorf("%q is not a status that is known: name it in \"statuses\" of the mapping", shorten(word))
	}
	return found, nil
}

// time reads a time.
func (p *parser) time(text string) (time.Time, error) {
	at, err := time.ParseInLocation(p.format, text, p.zone)
	if err != nil {
		wanted := p.TimeFormat
		if wanted == "" {
			wanted = "RFC 3339, such as 2026-03-01T12:00:00Z"
		}
		return at, fmt.Errorf("%q is not a time of the form %s: name its form as \"time_format\" in the mapping",
			shorten(text), wanted)
	}
	if at = at.UTC(); at.Year() < firstYear || at.Year() > lastYear {
		return at, fmt.Errorf("is not between %d and %d", firstYear, lastYear)
	}
	return at, nil
}

// exponent returns the decimals of a currency.
func (p *parser) exponent(currency string) (int, error) {
	if exponent, found := p.Exponents[currency]; found {
		return exponent, nil
	}
	if exponent, found := market.CurrencyExponent(currency); found {
		return exponent, nil
	}
	return 0, fmt.Errorf("%q is not a currency of the gateway: name its decimals in \"exponents\" of the mapping",
		shorten(currency))
}

// lastDigits returns the last digits of a number, which may be masked in front.
func lastDigits(text string) (string, error) {
	digits := text[len(strings.TrimRightFunc(text, isDigit)):]
	if text != "" && digits == "" {
		return "", errors.New("does not end with digits")
	}
	return digits[max(0, len(digits)-PayerDigits):], nil
}

// shorten returns the beginning of a text for an error. Digits are masked: it may be a payer's number in the wrong
// column.
func shorten(text string) string {
	const longest = 30
	runes := []rune(text)
	if len(runes) > longest {
		runes = append(runes[:longest], '\u2026')
	}
	masked := 0
	for i, r := range runes {
		if isDigit(r) {
			if masked++; masked > 2 {
				runes[i] = '*'
			}
		}
	}
	return string(runes)
}
