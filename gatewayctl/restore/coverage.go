package restore

import (
	"encoding/json"
	"strings"
	"time"

	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/telemetry"
)

// loggedKey is a key as a log line shows it: masked, or shortened.
type loggedKey struct {
	kind ledger.Kind
	text string
}

// coverage compares a merchant's log lines without their whole key with its list. A list that was read proves nothing
// by itself: it may be that of another time.
type coverage struct {
	lines []loggedKey
	torn  int                // lines without a key
	rows  map[loggedKey]bool // of the list, as log lines would show them
	// isAfter is true if the list has a row of the time that the restore lost.
	isAfter bool
}

// addRow adds a row of the list.
func (c *coverage) addRow(s sighting) {
	if c.rows == nil {
		c.rows = map[loggedKey]bool{}
	}
	text := s.id
	switch {
	case s.kind != ledger.Payment && s.correlator != "":
		text = s.correlator
	case s.kind == ledger.Charge:
		text = s.reference
	}
	c.rows[loggedKey{s.kind, keyInLog(s.kind, text)}] = true
	c.isAfter = c.isAfter || !s.before
}

// unlisted counts the lines that no row of the list explains. A torn line has no key: then the list must be of the
// time that the restore lost.
func (c *coverage) unlisted() (count int) {
	if !c.isAfter {
		count = c.torn
	}
	for _, line := range c.lines {
		if !c.rows[line] {
			count++
		}
	}
	return count
}

// keyInLog returns a key as the log line of its request shows it.
func keyInLog(kind ledger.Kind, key string) string {
	line := telemetry.NewLogLine(string(kind), time.Time{})
	line.SetTransactionKey(key)
	var text strings.Builder
	var read logLine
	if line.Write(&text) != nil || json.Unmarshal([]byte(text.String()), &read) != nil {
		return ""
	}
	return read.TransactionKey
}

// columns returns the columns that a list may have: those of an export.
func columns() []string { return transactions.ExportColumns() }
