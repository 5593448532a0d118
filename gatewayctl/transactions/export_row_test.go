package transactions

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/shared/ledger"
)

// No text of a merchant becomes a formula in a spreadsheet, with each separator that a locale may have.
func TestExportHasNoFormula(t *testing.T) {
	formula := regexp.MustCompile(`^[\s\p{Z}\p{C}"]*[-=+@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]`)
	for _, text := range []string{
		"=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\x00=1", "  =1", "\u00a0=1", "\u3000=1", "\ufeff=1",
		"\uff1d1", "\uff0b1", "\uff0d1", "\uff201", "a;=1", "a; =1", "a;;=1;+2;-3;@4", "a\t=1", "a\t\t=1",
		"a,=1", "a\n=1",
		"a\r\n=1", "a;\uff1d1", `a;"=1"`, `"=1"`, `";=1`, `a,"";"";=1`, "a\";\"\n;\t=1", "\ta", "\na",
	} {
		view := exportView{View: entries.View{
			Kind: ledger.Charge, Keys: entries.Keys{Correlator: text, ReferenceCode: "r"},
		}}
		var written strings.Builder
		rows := csv.NewWriter(&written)
		_ = rows.Write(csvRow(view)) // a Builder never fails
		rows.Flush()
		for _, separator := range ",;\t" {
			for _, cell := range spreadsheetCells(written.String(), separator) {
				if formula.MatchString(cell) {
					t.Errorf("%q separated by %q has the formula %q in %q", text, separator, cell, written.String())
				}
			}
		}
	}
	for _, text := range []string{"c-1", "2026-03-01T12:00:00Z", "a=b", "a; b-c", "tel:+2250707", "x@y.example,z"} {
		row := csvRow(exportView{View: entries.View{Keys: entries.Keys{Correlator: text}}})
		if got := row[slices.Index(ExportColumns(), "client_correlator")]; got != text {
			t.Errorf("%q became %q, want it unchanged", text, got)
		}
	}
}

// spreadsheetCells splits a CSV text as a spreadsheet of a locale does. Quotes count only at the start of a cell, and
// one behind the closing quote belongs to the cell.
func spreadsheetCells(text string, separator rune) (cells []string) {
	var cell strings.Builder
	isStart, isQuoted := true, false
	for _, char := range text + "\n" {
		switch {
		case char == '"' && isStart:
			isStart, isQuoted = false, true
			continue
		case char == '"' && isQuoted:
			isQuoted = false
			continue
		case !isQuoted && (char == separator || char == '\n' || char == '\r'):
			cells = append(cells, cell.String())
			cell.Reset()
			isStart = true
			continue
		}
		isStart = false
		cell.WriteRune(char)
	}
	return cells
}

func TestSameNumber(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0707072000", "+2250707072000", true}, {"002250707072000", "2250707072000", true},
		{"tel:+2250707072000", "0707072000", true}, {"0812345678", "+243812345678", true},
		{"0707072000", "0707072001", false}, {"2000", "0707072000", false}, {"", "", false},
		{"acr:OperatorAPIToken", "0707072000", false},
	} {
		if sameNumber(c.a, c.b) != c.want || sameNumber(c.b, c.a) != c.want {
			t.Errorf("%s and %s are one number: want %v", c.a, c.b, c.want)
		}
	}
}
