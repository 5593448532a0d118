package restore

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/ledger"
)

// logLine is the part of a function's log line that names a transaction (package telemetry).
type logLine struct {
	AWS *struct {
		Timestamp int64 `json:"Timestamp"`
	} `json:"_aws"`
	Stack          string `json:"Stack"`
	Operation      string `json:"Operation"`
	Merchant       string `json:"Merchant"`
	TransactionKey string `json:"TransactionKey"`
	Operator       string `json:"Operator"`
	Country        string `json:"Country"`
	Channel        string `json:"Channel"`
	Status         int    `json:"Status"`
}

// lineCounts count the lines of all files.
type lineCounts struct {
	all, used   int
	first, last time.Time
}

// maxLineBytes is the longest line: an event of CloudWatch Logs has at most 1 MB.
const maxLineBytes = 2 << 20

// readLog reads a file of log lines. A name that ends with .gz is that of a compressed file, as CloudWatch exports.
func (r *run) readLog(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	var text io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxLineBytes)
	number := 0
	for lines.Scan() {
		number++
		if err := r.readLine(lines.Text()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s after line %d: %w", path, number, err)
	}
	return nil
}

var (
	errNotText = errors.New("the file is not UTF-8 text: unpack it, and end its name with .gz if it is packed")
	errWrapped = errors.New("the log line is inside another document: write one message of a function in each line")
	errTorn    = errors.New("the log line is torn and names no merchant: export the log group again")
	// tornName finds the merchant of a torn line.
	tornName = regexp.MustCompile(`"Merchant":"([A-Za-z0-9]+)"`)
)

// lineMarks are in each function's log line, and in no other line of Lambda.
var lineMarks = []string{`"_aws"`, `"CloudWatchMetrics"`, `"TransactionKey"`, `"Operation"`}

// readLine reads one line. Behind a time of CloudWatch, it is one JSON object. A line of Lambda itself has no key.
func (r *run) readLine(text string) error {
	r.lines.all++
	if strings.ContainsRune(text, 0) {
		return errNotText
	}
	at := max(0, strings.IndexByte(text, '{'))
	var line logLine
	if json.Unmarshal([]byte(text[at:]), &line) == nil {
		if line.AWS == nil && strings.Contains(text, "TransactionKey") {
			return errWrapped
		}
		if line.AWS == nil || line.TransactionKey == "" || line.Merchant == "" {
			return nil // of Lambda itself, or of a request that reserved nothing
		}
		return r.addLine(line)
	}
	isOurs := strings.HasPrefix(text[at:], "{")
	for _, mark := range lineMarks {
		isOurs = isOurs || strings.Contains(text, mark)
	}
	if !isOurs {
		return nil
	}
	name := tornName.FindStringSubmatch(text)
	if name == nil {
		return errTorn
	}
	of, err := r.shopOf(name[1])
	if err == nil {
		of.coverage.torn++
	}
	return err
}

// shopOf returns the merchant that a log line names.
func (r *run) shopOf(name string) (*shop, error) {
	if r.shops[name] == nil {
		return nil, fmt.Errorf("there is no merchant %s: restore the merchant table first", name)
	}
	return r.shops[name], nil
}

// addLine adds the key of a line, if it is of the time that the restore lost.
func (r *run) addLine(line logLine) error {
	r.logStack = cmp.Or(r.logStack, r.Stack, line.Stack)
	if line.Stack != "" && line.Stack != r.logStack {
		return fmt.Errorf("the log line is of the stack %s, not %s: export the log groups of one stack", line.Stack,
			r.logStack)
	}
	at := time.UnixMilli(line.AWS.Timestamp).UTC()
	if at.Before(r.At.Add(-lineMargin)) {
		r.addEarlier(line, at)
		return nil
	}
	s := sighting{
		at: at, last: at, operator: line.Operator, country: line.Country, channel: line.Channel,
	}
	switch ledger.Kind(line.Operation) {
	case ledger.Charge, ledger.SMS, ledger.Payment:
		s.kind = ledger.Kind(line.Operation)
	default: // of a callback, a notification or a lookup: only an order_id shows its kind
		if line.Status >= 400 || !isOrderID(line.TransactionKey, line.Merchant) {
			return nil
		}
		s.kind = ledger.Payment
	}
	of, err := r.shopOf(line.Merchant)
	if err != nil {
		return err
	}
	r.lines.used++
	if r.lines.first.IsZero() || at.Before(r.lines.first) {
		r.lines.first = at
	}
	if at.After(r.lines.last) {
		r.lines.last = at
	}
	s.of = of
	if !isWhole(line.TransactionKey) {
		of.coverage.lines = append(of.coverage.lines, loggedKey{s.kind, line.TransactionKey})
		return nil
	}
	if s.kind == ledger.Payment {
		r.add(s.withID(line.TransactionKey))
		return nil
	}
	isListed := r.found[s.withKeys(line.TransactionKey, "").key()].isExact()
	if s.kind == ledger.Charge && !isListed { // the line does not show which of the two its key is
		r.add(s.withKeys("", line.TransactionKey))
	}
	if s.kind == ledger.SMS || isListed || !r.found[s.withKeys("", line.TransactionKey).key()].isExact() {
		r.add(s.withKeys(line.TransactionKey, ""))
	}
	return nil
}

// wholeKey is the longest key in bytes that a log line certainly has whole: package telemetry cuts it at 96.
const wholeKey = 92

// isWhole reports whether a key of a log line is the merchant's own. Package telemetry writes stars for a number or a
// credential, and a space for a character that cannot be printed.
func isWhole(key string) bool { return len(key) <= wholeKey && !strings.ContainsAny(key, "* ") }

// isOrderID reports whether a key is an order_id of a merchant.
func isOrderID(key, merchant string) bool {
	number, found := strings.CutPrefix(key, merchant+"_")
	return found && ascii.IsDigits(number)
}
