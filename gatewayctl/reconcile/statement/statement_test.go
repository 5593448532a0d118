package statement

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

const generic = "reference,order_id,amount,currency,status,time,fee\n"

const plainRow = "R1,ShopA_1,1000,XOF,paid,2026-03-01T12:00:00Z,10\n"

// readAll reads a statement and writes each row as a short text.
func readAll(text string, m Mapping) (rows []string, summary Summary, err error) {
	if err := m.Validate(); err != nil {
		return nil, summary, err
	}
	summary, err = Read(strings.NewReader(text), m, func(r Row) error {
		rows = append(rows, rowText(r))
		return nil
	})
	return rows, summary, err
}

func rowText(r Row) string {
	return fmt.Sprintf("%d %s/%s %d %s %s %s fee %d", r.Line, r.Reference, r.OrderID, r.Amount.Minor, r.Amount.Currency,
		r.Outcome, r.Time.Format("0102T150405"), r.Fee)
}

func utf16Of(text string, order binary.AppendByteOrder, mark bool) string {
	var encoded []byte
	if mark {
		text = "\ufeff" + text
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		encoded = order.AppendUint16(encoded, unit)
	}
	return string(encoded)
}

// Each form of a file that its mark, its header or its mapping decides has the same rows.
func TestForms(t *testing.T) {
	const want = "2 R1/ShopA_1 1000 XOF paid 0301T120000 fee 10"
	own := map[string]string{"reference": "Réf.", "order_id": "Commande", "amount": "Montant", "currency": "Devise",
		"status": "État", "time": "Date", "fee": "Frais"}
	french := Mapping{Columns: own, Decimal: DecimalComma, TimeFormat: "DD/MM/YYYY hh:mm:ss", UTCOffset: "+01:00",
		Statuses: map[string]Outcome{"Réussi": Paid}}
	const frenchText = "Réf.;Commande;Montant;Devise;État;Date;Frais\r\n" +
		"R1;ShopA_1;1.000,00;XOF;réussi;01/03/2026 13:00:00;10\r\n"
	with := func(change func(*Mapping)) Mapping {
		m := french
		change(&m)
		return m
	}
	for name, c := range map[string]struct {
		text string
		m    Mapping
	}{
		"the generic form":  {generic + plainRow, Mapping{}},
		"a byte order mark": {"\xef\xbb\xbf" + generic + plainRow, Mapping{}},
		"semicolons":        {strings.ReplaceAll(generic+plainRow, ",", ";"), Mapping{}},
		"tabs":              {strings.ReplaceAll(generic+plainRow, ",", "\t"), Mapping{}},
		"quotes": {generic + `"R1","ShopA_1","1000","XOF","paid","2026-03-01T12:00:00Z","10"` + "\n",
			Mapping{}},
		"other order": {"fee,time,status,currency,amount,order_id,reference\n" +
			"10,2026-03-01T12:00:00Z,Paid,XOF,1000.00,ShopA_1,R1\n", Mapping{}},
		"UTF-16, little":      {utf16Of(generic+plainRow, binary.LittleEndian, true), Mapping{}},
		"UTF-16, big":         {utf16Of(generic+plainRow, binary.BigEndian, true), Mapping{}},
		"UTF-16 without mark": {utf16Of(generic+plainRow, binary.BigEndian, false), Mapping{Encoding: UTF16BE}},
		"French":              {frenchText, french},
		"French in Latin-1":   {latin1(frenchText), with(func(m *Mapping) { m.Encoding = Latin1 })},
		"net amount":          {strings.Replace(generic+plainRow, "1000", "990", 1), Mapping{Net: true}},
		"constants": {"reference,order_id,amount,time,fee\nR1,ShopA_1,1000,2026-03-01T12:00:00Z,10\n",
			Mapping{Currency: "XOF", Status: Paid}},
		"an open end": {strings.TrimSuffix(generic+plainRow, "\n"), Mapping{OpenEnd: true}},
		"types": {"type," + generic + "IN," + plainRow + "OUT,x,y,not,read\n", Mapping{Types: &Types{Column: "type",
			Payments: []string{"IN"}, Ignored: []string{"OUT"}}}},
		"the offset of the row": {strings.Replace(generic+plainRow, "12:00:00Z", "13:00:00+01:00", 1), Mapping{}},
	} {
		rows, summary, err := readAll(c.text, c.m)
		if err != nil || len(rows) != 1 || rows[0] != want || summary.Rows != 1 {
			t.Errorf("%s: %v %v", name, rows, err)
		}
	}
}

func latin1(text string) string {
	var encoded []byte
	for _, r := range text {
		encoded = append(encoded, byte(r))
	}
	return string(encoded)
}

// A line that is not a row is counted, never dropped silently.
func TestSkippedLinesAreCounted(t *testing.T) {
	text := "Account 42\n\n" + generic + plainRow + "\n" + generic + plainRow + ",,,,,,\n" + "Total,,2000,,,,20\n"
	rows, summary, err := readAll(text, Mapping{HeaderLine: 3, Footers: []string{"Total"}})
	if err != nil || len(rows) != 2 || !strings.HasPrefix(rows[1], "7 R1") {
		t.Fatalf("%v %v", rows, err)
	}
	want := "map[blank lines:2 footers:1 lines before the header:2 repeated headers:1]"
	if got := fmt.Sprint(summary.Skipped); got != want {
		t.Errorf("skipped %s, want %s", got, want)
	}
}

// A file that nothing decides is refused with the line, the column and what to give.
func TestBadInput(t *testing.T) {
	amount := func(text string) string { return strings.Replace(generic+plainRow, "1000", text, 1) }
	for name, c := range map[string]struct {
		text string
		m    Mapping
		want []string
	}{
		"empty":   {"", Mapping{}, []string{"ends before its header"}},
		"Latin-1": {generic + "R\xe9f" + plainRow[2:], Mapping{}, []string{"line 2", "--encoding latin-1"}},
		"UTF-16, no mark": {utf16Of(generic, binary.LittleEndian, false), Mapping{},
			[]string{"line 1", "--encoding utf-16le"}},
		"UTF-16, cut": {utf16Of(generic+plainRow, binary.LittleEndian, true) + "x", Mapping{},
			[]string{"line 3", "truncated"}},
		"another encoding": {"\xef\xbb\xbf" + generic, Mapping{Encoding: UTF16LE},
			[]string{"byte order mark of utf-8"}},
		"half a surrogate": {utf16Of(generic, binary.LittleEndian, true) + "\x00\xd8a\x00", Mapping{},
			[]string{"line 2", "surrogate"}},
		"no header":      {plainRow, Mapping{}, []string{"line 1", "is not the header", "amount"}},
		"a column twice": {"fee," + generic + plainRow, Mapping{}, []string{"line 1", `"fee" is there twice`}},
		"a mapped column is missing": {generic + plainRow, Mapping{Columns: map[string]string{"payer": "From"}},
			[]string{"lacks the column From"}},
		"a currency on both sides": {generic + plainRow, Mapping{Currency: "XOF"},
			[]string{"currency", "leave one out"}},
		"a separator in doubt": {"reference;x,amount;y,currency;z,status;u,time;v\n", Mapping{Separator: "|"},
			[]string{"line 1"}},
		"no key": {generic + ",,1000,XOF,paid,2026-03-01T12:00:00Z,10\n", Mapping{},
			[]string{"line 2", "neither a reference nor"}},
		"fewer cells": {generic + "R1,ShopA_1,1000\n", Mapping{},
			[]string{"line 2", "has 3 cells, and the header has 7"}},
		"a footer":           {generic + plainRow + "Total,2000\n", Mapping{}, []string{"line 3", "footers"}},
		"a decimal in doubt": {amount("1.000"), Mapping{}, []string{"line 2", "column amount", "--decimal"}},
		"a comma":            {amount(`"1000,00"`), Mapping{}, []string{"line 2", "column amount", "--decimal"}},
		"the other decimal": {amount(`"1,000.00"`), Mapping{Decimal: DecimalComma},
			[]string{"column amount", "groups"}},
		"wrong groups": {amount("1.00.0"), Mapping{Decimal: DecimalComma},
			[]string{"column amount", "groups"}},
		"decimals of XOF":  {amount("1000.50"), Mapping{}, []string{"column amount", "more decimals"}},
		"negative":         {amount("-1000"), Mapping{}, []string{"column amount", "negative", "types"}},
		"zero":             {amount("0"), Mapping{}, []string{"column amount", "zero"}},
		"a rounded amount": {amount("1.0E+03"), Mapping{}, []string{"column amount", "spreadsheet"}},
		"a rounded reference": {generic + "2.35E+11" + plainRow[2:], Mapping{},
			[]string{"column reference", "spreadsheet"}},
		"two currencies in one": {amount("1000 XOF") + "R2,b,5 USD,USD,paid,2026-03-01T12:00:00Z,1\n", Mapping{},
			[]string{"line 2, column amount", "line 3, column amount"}},
		"another currency": {strings.Replace(generic+plainRow, "XOF", "EUR", 1), Mapping{},
			[]string{"column currency", "exponents"}},
		"an unknown status": {strings.Replace(generic+plainRow, "paid", "OK", 1), Mapping{},
			[]string{"column status", `"OK"`, "statuses"}},
		"another time": {strings.Replace(generic+plainRow, "2026-03-01T12:00:00Z", "01/03/2026 12:00", 1), Mapping{},
			[]string{"column time", "time_format"}},
		"an impossible day": {strings.Replace(generic+plainRow, "03-01", "02-30", 1), Mapping{},
			[]string{"column time"}},
		"a far year": {strings.Replace(generic+plainRow, "2026", "1026", 1), Mapping{},
			[]string{"column time", "1970"}},
		"a fee": {strings.Replace(generic+plainRow, ",10\n", ",x\n", 1), Mapping{},
			[]string{"column fee", "not an amount"}},
		"net without a fee": {strings.Replace(generic+plainRow, ",10\n", ",\n", 1), Mapping{Net: true},
			[]string{"column fee", "empty"}},
		"a type": {"type," + generic + "ZZ," + plainRow,
			Mapping{Types: &Types{Column: "type", Payments: []string{"IN"}}},
			[]string{"column type", "no list"}},
		"a control character": {generic + "R\x07" + plainRow[2:], Mapping{},
			[]string{"column reference", "control"}},
		"a long line": {generic + strings.Repeat("x", 1<<20) + plainRow, Mapping{},
			[]string{"line 2", "longer than 65536 bytes"}},
		"an open quote":      {generic + `"R1,` + plainRow, Mapping{}, []string{"line 2", "quote"}},
		"truncated in a row": {generic + plainRow + plainRow[:20], Mapping{}, []string{"line 3", "cells"}},
		"truncated in a cell": {generic + plainRow + plainRow[:len(plainRow)-2], Mapping{},
			[]string{"line 3", "no line end", "--open-end"}},
	} {
		rows, _, err := readAll(c.text, c.m)
		if err == nil {
			t.Errorf("%s: %v is read", name, rows)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", name, want, err)
			}
		}
	}
}

// Garbage refuses the whole file. The first places are named, and all are counted.
func TestGarbageIsCounted(t *testing.T) {
	var text strings.Builder
	text.WriteString(generic)
	for i := range 1000 {
		if i%10 == 3 {
			text.WriteString("%PDF-\x01;;\n")
			continue
		}
		text.WriteString(plainRow)
	}
	_, _, err := readAll(text.String(), Mapping{})
	faults, isFaults := errors.AsType[*Faults](err)
	if !isFaults || faults.Count != 100 || len(faults.Listed) != maxListed || faults.Listed[0].Line != 5 {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(err.Error(), "and 80 more") {
		t.Error(err)
	}
}

func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		text, decimal string
		exponent      int
		want          int64 // -1 for a refusal
	}{
		{"1000", "", 0, 1000}, {"12.50", "", 2, 1250}, {"12.5", "", 2, 1250}, {"1.234", "", 3, -1}, {"1,5", "", 2, -1},
		{"1 000", "", 0, -1}, {"1.234", DecimalPoint, 3, 1234}, {"1.234", DecimalComma, 0, 1234},
		{"1.234,56", DecimalComma, 2, 123456}, {"1,234.56", DecimalPoint, 2, 123456},
		{"1\u202f234\u00a0567", DecimalComma, 0, -1}, {"1\u202f234\u202f567,00", DecimalComma, 2, 123456700},
		{"12.34", DecimalComma, 2, -1}, {"1234.567", DecimalComma, 0, -1}, {".5", DecimalPoint, 2, -1},
		{"1.", DecimalPoint, 2, -1}, {"1'000", DecimalPoint, 0, 1000}, {"(5)", "", 0, -1}, {"\u22125", "", 0, -1},
		{"5 F", "", 0, -1}, {"", "", 0, -1}, {"1e3", "", 0, -1}, {"0", "", 2, 0}, {"0.00", "", 2, 0},
		{"1.000,00", DecimalPoint, 0, -1}, {"٥", "", 0, -1}, {"9999999999999", "", 0, -1},
	} {
		got, err := parseAmount(c.text, c.decimal, c.exponent)
		if err != nil {
			got = -1
		}
		if got != c.want {
			t.Errorf("%q by %q with %d decimals is %d, want %d: %v", c.text, c.decimal, c.exponent, got, c.want, err)
		}
	}
}

func TestFeeTerms(t *testing.T) {
	for _, c := range []struct {
		terms  FeeTerms
		amount int64
		want   int64
	}{
		{FeeTerms{100, 0, roundUp}, 1000, 10}, {FeeTerms{100, 0, roundUp}, 1001, 11},
		{FeeTerms{100, 0, roundDown}, 1099, 10},
		{FeeTerms{100, 0, roundHalfUp}, 1049, 10}, {FeeTerms{100, 0, roundHalfUp}, 1050, 11},
		{FeeTerms{0, 25, roundUp}, 1, 25},
		{FeeTerms{basis, 0, roundUp}, 999_999_999_999_999_999, 999_999_999_999_999_999},
	} {
		if got := c.terms.of(c.amount); got != c.want {
			t.Errorf("%+v of %d is %d, want %d", c.terms, c.amount, got, c.want)
		}
	}
}

func TestMappingFile(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a good one":        {`{"separator": ";", "columns": {"amount": "Montant"}}`, ""},
		"an unknown field":  {`{"marks": ";"}`, `"marks"`},
		"two documents":     {`{} {}`, "more than one document"},
		"no JSON":           {`separator = ";"`, "is not a mapping"},
		"an encoding":       {`{"encoding": "ebcdic"}`, "is not one of utf-8"},
		"a separator":       {`{"separator": "ab"}`, "not one character"},
		"a decimal":         {`{"decimal": ","}`, "point, comma"},
		"a column":          {`{"columns": {"sum": "x"}}`, `"sum"`},
		"an outcome":        {`{"statuses": {"OK": "good"}}`, "statuses"},
		"an own exponent":   {`{"exponents": {"XOF": 2}}`, "always has 0 decimals"},
		"an exponent":       {`{"exponents": {"EUR": 9}}`, "not 0 to 6"},
		"an offset":         {`{"utc_offset": "CET"}`, "utc_offset"},
		"times, no offset":  {`{"time_format": "DD/MM/YYYY hh:mm"}`, "--utc-offset"},
		"times, no minutes": {`{"time_format": "DD/MM/YYYY", "utc_offset": "+00:00"}`, "hh"},
		"terms":             {`{"fee_terms": {"basis_points": 100}}`, "rounding"},
		"types":             {`{"types": {"column": "x"}}`, "payments"},
	} {
		path := filepath.Join(t.TempDir(), "m.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadMapping(path)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

const wavePages = `{"page_info": {"start_cursor": null, "end_cursor": "x", "has_next_page": true},
 "date": "2026-03-01", "items": [
 {"timestamp": "2026-03-01T12:00:00Z", "transaction_id": "T_1", "transaction_type": "api_checkout", "amount": "990",
  "fee": "10", "balance": "5", "currency": "XOF", "counterparty_mobile": "+221761110001", "client_reference": "ShopA_1",
  "checkout_api_session_id": "cos-1"},
 {"timestamp": "2026-03-01T12:00:00Z", "transaction_id": "T_2", "transaction_type": "merchant_payment", "amount": "990",
  "fee": "10", "currency": "XOF"}]}
{"page_info": {"start_cursor": "x", "end_cursor": null, "has_next_page": false}, "date": "2026-03-01", "items": [
 {"timestamp": "2026-03-01T13:00:00Z", "transaction_id": "T_3", "transaction_type": "api_checkout_refund",
  "amount": "-990", "fee": "-10", "currency": "XOF", "client_reference": "ShopA_1"}]}
`

// The pages of Wave's GET /v1/transactions are a statement. Their amount is without the fee.
func TestWave(t *testing.T) {
	format, err := FindFormat("wave")
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) (rows []string, summary Summary, err error) {
		summary, err = format.Read(strings.NewReader(text), Mapping{}, func(r Row) error {
			rows = append(rows, rowText(r)+" "+r.PayerDigits)
			return nil
		})
		return rows, summary, err
	}
	rows, summary, err := read(wavePages)
	want := "[1 T_1/ShopA_1 1000 XOF paid 0301T120000 fee 10 0001 3 T_3/ShopA_1 1000 XOF refunded 0301T130000 fee 10 ]"
	if fmt.Sprint(rows) != want || err != nil || summary.Skipped["type merchant_payment"] != 1 {
		t.Errorf("%v %v %v, want %s", rows, summary, err, want)
	}
	for name, c := range map[string]struct{ text, want string }{
		"an empty file":  {"", "pages are missing"},
		"the first page": {wavePages[:strings.Index(wavePages, "\n{")+1], "pages are missing"},
		"half a page":    {wavePages[:300], "truncated"},
		"another list":   {"[]", "begins with {"},
		"no list":        {`{"items": 1}`, "items is a list"},
		"another type": {strings.Replace(wavePages, "merchant_payment", "loan", 1),
			"line 2, column transaction_type"},
		"an amount":       {strings.Replace(wavePages, `"990"`, `"x"`, 1), "line 1, column amount"},
		"a number":        {strings.Replace(wavePages, `"990"`, `990`, 1), "behind item 1"},
		"a long item":     {strings.Replace(wavePages, "cos-1", strings.Repeat("x", MaxLine), 1), "item 1 is longer"},
		"no fee":          {strings.Replace(wavePages, `"10"`, `""`, 1), "line 1, column fee"},
		"another time":    {strings.Replace(wavePages, "12:00:00Z", "12:00", 1), "line 1, column timestamp"},
		"no JSON":         {"reference,amount\n", "not JSON"},
		"text behind one": {wavePages + "x", "not JSON"},
	} {
		if _, _, err := read(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzRead checks that a statement is read or refused, and the same way each time.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{generic + plainRow, "\xff\xfea\x00", `"`,
		"reference;amount;currency;status;time\na;1;XOF;paid;x\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, summary, err := readAll(text, Mapping{})
		again, _, errAgain := readAll(text, Mapping{})
		if fmt.Sprint(rows, err) != fmt.Sprint(again, errAgain) {
			t.Errorf("%q is read in two ways", text)
		}
		if err == nil && summary.Rows != len(rows) {
			t.Errorf("%d rows are counted as %d", len(rows), summary.Rows)
		}
	})
}
