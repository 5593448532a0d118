// Package reconcile compares an operator's statement with the ledger, to the minor unit.
//
// Both sides are sorted in files and merged, so that memory does not grow with their number. It changes nothing: each
// difference has the command with which a person acts on it (decision "reconciliation"). Its invariants: a statement is
// compared as a whole, or refused. The same statement and the same ledger always have the same result. The differences
// of the classes add up to the difference of the totals.
package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/gatewayctl/reconcile/statement"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/operator"
)

// Command is the command reconcile.
type Command struct {
	Platform  string   `required:"" placeholder:"NAME" help:"The platform whose statement it is, such as mtn-momo."`
	Account   string   `placeholder:"ID" help:"Only this account of the platform; all of them if not given."`
	Statement []string `required:"" sep:"none" placeholder:"FILE" predictor:"file" help:"The statement; or several."`

	Day session.UTCDay `required:"" placeholder:"DAY" help:"The day of the statement, in its own offset."`

	Format     string `default:"generic" placeholder:"NAME" help:"The form of the file: generic, or wave."`
	Mapping    string `placeholder:"FILE" predictor:"file" help:"How a generic file is written (JSON)."`
	Encoding   string `placeholder:"NAME" help:"utf-8, utf-16le, utf-16be or latin-1."`
	Separator  string `placeholder:"CHAR" help:"The character between cells."`
	Decimal    string `placeholder:"MARK" help:"The mark before decimals: point or comma."`
	UTCOffset  string `name:"utc-offset" placeholder:"OFFSET" help:"The offset of its times and its day, as +01:00."`
	OpenEnd    bool   `help:"Accept a last line without a line end."`
	Neighbours int    `default:"1" help:"How many days before and after the day are read too, at most 7."`

	CSV    bool   `name:"csv" help:"Write the differences as CSV; the totals are on the standard error."`
	Result string `placeholder:"FILE" predictor:"file" help:"Write all rows to a new file, for settlement and export."`
	Work   string `placeholder:"FOLDER" help:"The folder of its parts; else the first statement's name with .work."`
}

// maxNeighbours bounds the days that are read beside the day.
const maxNeighbours = 7

// Validate refuses flags that exclude each other.
func (c *Command) Validate() error {
	platforms := operator.Platforms()
	switch {
	case c.Platform != "" && !slices.Contains(platforms, c.Platform):
		return fmt.Errorf("--platform %q is not one of %s", c.Platform, output.JoinComma(platforms))
	case c.Neighbours < 0 || c.Neighbours > maxNeighbours:
		return fmt.Errorf("--neighbours %d is not 0 to %d", c.Neighbours, maxNeighbours)
	case c.Format != statement.Generic && (c.Mapping+c.Encoding+c.Separator+c.Decimal != "" || c.OpenEnd):
		return fmt.Errorf("--mapping, --encoding, --separator, --decimal and --open-end are for the form %s: "+
			"the form %s is fixed", statement.Generic, c.Format)
	}
	return nil
}

// ErrDifferent ends a reconciliation that has found differences. ErrNotDone is wrapped by the error of one that could
// not be done: neither means anything about the money.
var (
	ErrDifferent = errors.New("the statement and the ledger differ: each difference has the command that acts on it")
	ErrNotDone   = errors.New("nothing was reconciled")
)

// Run reconciles.
func (c *Command) Run(s *session.Session) error {
	hasDifferences, err := c.reconcile(s)
	switch {
	case err != nil && errors.Is(err, output.ErrUsage):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotDone, err)
	case hasDifferences:
		return ErrDifferent
	}
	return nil
}

// reconciliation is one run of the command.
type reconciliation struct {
	*Command
	*session.Session
	format  statement.Format
	mapping statement.Mapping
	day     span
	hashes  []string // of the statements
	work    *work
}

// reconcile compares, and writes the result when all of it is known.
func (c *Command) reconcile(s *session.Session) (hasDifferences bool, err error) {
	r, err := c.prepare(s)
	if err != nil {
		return false, err
	}
	if err := s.OpenStores(); err != nil {
		return false, err
	}
	r.work, err = openWork(c.workFolder(), r.fingerprint(), s.Now(), s.Stderr)
	if err != nil {
		return false, err
	}
	err = s.Audited("reconcile a statement", r.subject(), func() (string, error) {
		found, err := r.run()
		if err != nil {
			return "", err
		}
		hasDifferences = found.differences() > 0
		return fmt.Sprintf("%s: %s of %s", c.Day.Format(time.DateOnly),
			output.Plural(found.differences(), "difference"), output.Plural(found.rowCount(), "row")), nil
	})
	return hasDifferences, errors.Join(err, r.work.close(err == nil || r.work.Statements == nil))
}

// prepare reads the mapping and the hashes of the statements.
func (c *Command) prepare(s *session.Session) (*reconciliation, error) {
	r := &reconciliation{Command: c, Session: s}
	var err error
	if r.format, err = statement.FindFormat(c.Format); err != nil {
		return nil, output.UsageError("--format %w", err)
	}
	if r.format.Platform != "" && r.format.Platform != c.Platform {
		return nil, output.UsageError("--format %s is the form of %s, not of %s", c.Format, r.format.Platform,
			c.Platform)
	}
	if c.Mapping != "" {
		if r.mapping, err = statement.ReadMapping(c.Mapping); err != nil {
			return nil, output.UsageError("--mapping: %w", err)
		}
	}
	r.mapping.Override(statement.Mapping{
		Encoding: c.Encoding, Separator: c.Separator, Decimal: c.Decimal, UTCOffset: c.UTCOffset, OpenEnd: c.OpenEnd,
	})
	if err := r.mapping.Validate(); err != nil {
		return nil, output.UsageError("%w", err)
	}
	day := c.Day.Time
	begin := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, r.mapping.Location()).UTC()
	r.day = span{begin, begin.Add(session.Day)}
	if r.day.end.After(s.Now()) {
		fmt.Fprintf(s.Stderr, "The day ends at %s: what happens until then is in no result.\n",
			output.FormatTime(r.day.end))
	}
	for _, path := range c.Statement {
		hash, err := hashFile(path)
		if err != nil {
			return nil, err
		}
		if at := slices.Index(r.hashes, hash); at >= 0 {
			return nil, output.UsageError("%s and %s are the same file", c.Statement[at], path)
		}
		r.hashes = append(r.hashes, hash)
	}
	return r, nil
}

func (c *Command) workFolder() string {
	if c.Work != "" {
		return c.Work
	}
	return c.Statement[0] + ".work"
}

// subject is what is reconciled, for the audit.
func (r *reconciliation) subject() string {
	if r.Account == "" {
		return r.Platform
	}
	return r.Platform + "/" + r.Account
}

// fingerprint is a hash of everything that the sorted parts depend on.
func (r *reconciliation) fingerprint() string {
	const version = 3 // of the records
	document, err := json.Marshal([]any{version, r.hashes, r.mapping, r.format.Name, r.Platform, r.Account, r.day.begin,
		r.Neighbours, r.LedgerTable, r.MerchantTable})
	if err != nil {
		return "" // texts and numbers only
	}
	hash := sha256.Sum256(document)
	return hex.EncodeToString(hash[:])
}

// run reads both sides, matches them, and writes the result.
func (r *reconciliation) run() (*outcome, error) {
	rows, err := r.readStatements()
	if err != nil {
		return nil, err
	}
	transactions, err := r.readLedger()
	if err == nil {
		err = r.checkAccount()
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(r.Stderr, "Comparing %s with %s of ours.\n", output.Plural(r.rowCount(), "row"),
		output.Plural(r.work.Ledger.Compared, "transaction"))
	found := &outcome{view: r.header(), collector: &collector{
		Session: r.Session, day: r.day, zone: r.mapping.Location(), next: r.nextArguments(), keepEqual: r.Result != "",
		rows: r.work.sorter("result", nil), totals: totals{}, counts: map[result.Class]int{},
	}}
	for _, path := range r.Statement {
		found.collector.files = append(found.collector.files, filepath.Base(path))
	}
	m := &matcher{folder: r.work.folder, to: found.collector, check: r.Err}
	if err := m.match(rows, transactions); err != nil {
		return nil, err
	}
	return found, r.write(found)
}

// nextArguments are the arguments of a reconciliation of another day.
func (r *reconciliation) nextArguments() []string {
	arguments := []string{"reconcile", "--platform", r.Platform}
	for _, f := range []struct{ name, value string }{
		{"--account", r.Account}, {"--mapping", r.Mapping}, {"--utc-offset", r.UTCOffset},
	} {
		if f.value != "" {
			arguments = append(arguments, f.name, f.value)
		}
	}
	if r.format.Name != statement.Generic {
		arguments = append(arguments, "--format", r.format.Name)
	}
	return arguments
}

// rowCount is the number of rows of all statements.
func (r *reconciliation) rowCount() int {
	count := 0
	for _, s := range r.work.Statements.Summaries {
		count += s.Rows
	}
	return count
}

// describe is one line about a result, for people.
func describe(counts map[result.Class]int) string {
	var parts []string
	for _, class := range result.Classes() {
		if counts[class] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[class], class))
		}
	}
	if len(parts) == 0 {
		return "neither side has a row"
	}
	return strings.Join(parts, ", ")
}
