package restore

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
)

// The columns of a list, as export writes them. A list needs kind, and the columns of its kinds' keys.
const (
	columnKind       = "kind"
	columnID         = "id"
	columnCorrelator = "client_correlator"
	columnReference  = "reference_code"
	columnAmount     = "amount"
	columnCountry    = "country"
	columnCreatedAt  = "created_at"
	columnState      = "state"
)

// lists are the files of merchants' lists, by the merchant's name.
type lists map[string]string

// UnmarshalText adds a list, MERCHANT=FILE. A merchant has one: a second one would replace it.
func (l *lists) UnmarshalText(text []byte) error {
	name, path, found := strings.Cut(string(text), "=")
	switch {
	case !found || name == "" || path == "":
		return fmt.Errorf("%q is not MERCHANT=FILE", text)
	case (*l)[name] != "":
		return fmt.Errorf("%s has two lists: put their rows into one file", name)
	case *l == nil:
		*l = lists{}
	}
	(*l)[name] = path
	return nil
}

// readList reads a merchant's own list, or an export of a copy of the ledger.
func (r *run) readList(of *shop, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	rows := csv.NewReader(file)
	heading, err := rows.Read()
	if err != nil {
		return fmt.Errorf("%s: its first line must name the columns: %w", path, err)
	}
	if err := checkHeading(heading); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			cells := map[string]string{}
			for i, name := range heading {
				cells[name] = row[i]
			}
			err = r.addRow(of, cells)
		}
		if err != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
	}
}

// checkHeading checks the columns of a list. One that is not known may be a misspelt one, whose values would be lost.
func checkHeading(heading []string) error {
	heading[0] = strings.TrimPrefix(heading[0], "\ufeff")
	seen := map[string]bool{}
	for i, name := range heading {
		name = strings.TrimSpace(name)
		switch {
		case seen[name]:
			return fmt.Errorf("it has the column %q twice", name)
		case !slices.Contains(columns(), name):
			return fmt.Errorf("it has the column %q, which is not known: remove it, or use one of %s", name,
				output.JoinComma(columns()))
		}
		heading[i], seen[name] = name, true
	}
	if !seen[columnKind] {
		return fmt.Errorf("it has no column %s: name the columns as export does", columnKind)
	}
	return nil
}

// addRow adds the key of a row. A row of the time before the moment is that of a first request: the restore may have
// lost a retry of its key. An export shows if it was released in the end, so that nothing can be applied. A list has no
// times of retries: the last one may have begun just before the command.
func (r *run) addRow(of *shop, cells map[string]string) (err error) {
	s := sighting{
		of: of, kind: ledger.Kind(cells[columnKind]), exact: true, at: r.At.Time, last: ledger.Timestamp(r.Now()),
		operator: strings.ToLower(cells["operator"]), country: strings.ToUpper(cells[columnCountry]),
		channel: cells["channel"], account: cells["account"], upstreamKey: cells["upstream_key"],
	}
	if text := cells[columnCreatedAt]; text != "" {
		if s.at, err = time.Parse(time.RFC3339, text); err != nil {
			return fmt.Errorf("%s is not a time such as 2026-03-01T12:00:00Z", columnCreatedAt)
		}
	}
	s.before = s.at.Before(r.At.Add(-lineMargin))
	if s, err = s.withCells(cells); err != nil {
		return err
	}
	of.coverage.addRow(s)
	if s.before && cells[columnState] == string(ledger.Released) {
		return nil
	}
	if text := cells[columnAmount]; text != "" && !s.before {
		country, known := market.ByAlpha2(s.homeCountry())
		if !known {
			return fmt.Errorf("%s needs %s: fill it in", columnAmount, columnCountry)
		}
		if s.minor, err = money.Parse(text, country.Exponent); err != nil {
			return fmt.Errorf("%s: %w", columnAmount, err)
		}
	}
	r.add(s)
	return nil
}

// withCells returns the sighting with the key of a row.
func (s sighting) withCells(cells map[string]string) (sighting, error) {
	id, correlator, reference := cells[columnID], cells[columnCorrelator], cells[columnReference]
	switch {
	case s.kind == ledger.Payment && isOrderID(id, s.of.profile.Name):
		return s.withID(id), nil
	case s.kind == ledger.Payment:
		return s, fmt.Errorf("%s must be the order_id, %s_ and digits", columnID, s.of.profile.Name)
	case s.kind != ledger.Charge && s.kind != ledger.SMS:
		return s, fmt.Errorf("%s must be charge, pay or sms", columnKind)
	case correlator == "" && (reference == "" || s.kind == ledger.SMS):
		return s, fmt.Errorf("a %s needs its %s", s.kind, columnCorrelator)
	}
	keyed := s.withKeys(correlator, reference)
	if id == "" || keyed.id == id {
		return keyed, nil
	}
	// An export puts an apostrophe before a text that a spreadsheet would run.
	plain := s.withKeys(strings.TrimPrefix(correlator, "'"), strings.TrimPrefix(reference, "'"))
	if plain.id != id {
		return s, fmt.Errorf("%s is not that of its %s and %s: leave it empty", columnID, columnCorrelator,
			columnReference)
	}
	return plain, nil
}
