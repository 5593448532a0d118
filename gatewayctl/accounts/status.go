package accounts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/operator"
)

type operatorStatus struct {
	Account string `arg:"" optional:"" help:"A platform, or platform/account; all accounts if none is given."`
	session.WatchFlag
}

// Run shows the circuit of each operation of the accounts (decision "circuit-breaker").
func (c *operatorStatus) Run(s *session.Session, stored Stored) error {
	circuits, err := readCircuits(s, stored, c.Account, "")
	if err != nil {
		return err
	}
	return showCircuits(s, circuits)
}

// storedCircuit is a circuit as it was read, or as a command has changed it.
type storedCircuit struct {
	key     circuit.Key
	form    string
	changed bool // by this command
}

// readCircuits reads the circuits of the accounts that an argument names, "" for all, in one operation or in all that
// the platform has.
func readCircuits(s *session.Session, stored Stored, argument, operation string) ([]storedCircuit, error) {
	keys, err := stored.circuitKeys(argument, operation)
	if err != nil {
		return nil, output.UsageError("%w", err)
	}
	if s.Stores.Circuits == nil {
		return nil, output.UsageError("LIMIT_TABLE is not set: name the table with the circuits, or use --local")
	}
	var circuits []storedCircuit
	if s.Stores.CircuitForms != nil {
		forms, err := s.Stores.CircuitForms.Forms(s, keys)
		for _, key := range keys {
			circuits = append(circuits, storedCircuit{key: key, form: forms[key]})
		}
		return circuits, err
	}
	for _, key := range keys {
		form, err := s.Stores.Circuits.Store.Load(s, key)
		if err != nil {
			return nil, err
		}
		circuits = append(circuits, storedCircuit{key: key, form: form})
	}
	return circuits, nil
}

// circuitKeys lists the circuits of the stored accounts that an argument names: all for "", else those of a platform or
// of platform/account.
func (c Stored) circuitKeys(argument, operation string) (keys []circuit.Key, err error) {
	platform, id, hasID := strings.Cut(argument, "/")
	platform = strings.ToLower(platform)
	if _, err := findAccountSchema(platform); argument != "" && err != nil {
		return nil, err
	}
	named := AccountKey(operator.ParsePin(id, platform))
	for _, view := range accountViews(c.operators) {
		account := storedAs(view.Operator, view.Account)
		if argument != "" && view.Operator != platform || hasID && account != named {
			continue
		}
		row, _ := operator.FindCapabilities(view.Operator) // one that is not known has no operation
		if operation != "" && !slices.Contains(row.Operations, operation) {
			return nil, fmt.Errorf("%s has no %s; it has %s: choose one of them, or all without --operation",
				row.Platform, operation, output.JoinComma(row.Operations))
		}
		for _, of := range row.Operations {
			if operation == "" || of == operation {
				keys = append(keys, circuit.Key{Account: account.String(), Operation: of})
			}
		}
	}
	if len(keys) == 0 && argument != "" {
		accounts := output.JoinComma(slices.Sorted(maps.Keys(c.operators[platform].Accounts)))
		if accounts == "" {
			return nil, fmt.Errorf("platform %s has no accounts: gatewayctl operator list shows all", platform)
		}
		return nil, fmt.Errorf("platform %s has no account %q: choose one of its accounts: %s", platform, id, accounts)
	}
	return keys, nil
}

// CircuitView is the circuit of an operation at an account. Its times are zero if there is none.
type CircuitView struct {
	Account    string    `json:"account" col:"ACCOUNT"` // platform/id
	Operation  string    `json:"operation" col:"OPERATION"`
	State      string    `json:"state" col:"STATE"`
	Since      time.Time `json:"since,omitzero" col:"SINCE"`
	ProbesFrom time.Time `json:"probes_from,omitzero" col:"PROBES FROM"`
	// Ends is when the state ends without new evidence: then the circuit is closed.
	Ends   time.Time `json:"ends,omitzero" col:"ENDS"`
	Probes int       `json:"probes" col:"PROBES"` // outstanding ones
	Why    string    `json:"why,omitempty" col:"WHY"`

	// The results of the window. Waiting counts the calls that were slow and still waited.
	Failures  int64 `json:"failures"`
	Successes int64 `json:"successes"`
	Waiting   int64 `json:"waiting"`
}

// stateUnreadable is the state of an item that is torn, or of a newer version. It counts as closed.
const stateUnreadable = "unreadable"

// showCircuits shows circuits as they are now. It reads the audit records for those that a person opened.
func showCircuits(s *session.Session, circuits []storedCircuit) error {
	var views []CircuitView
	var records []auditlog.Record
	for _, c := range circuits {
		state, err := circuit.Decode(c.form)
		summary := state.Summarize(s.Now())
		view := CircuitView{
			c.key.Account, c.key.Operation, summary.Phase.String(), summary.Since, summary.ProbesAt, summary.EndsAt,
			summary.Probes, "", summary.Results.Failures, summary.Results.Successes, summary.Results.Slow,
		}
		switch {
		case errors.Is(err, circuit.ErrNewer):
			view.State, view.Why = stateUnreadable, "counts as closed in this version: a newer version wrote it"
		case err != nil:
			view.State, view.Why = stateUnreadable, "counts as closed: the item is torn; the next write replaces it"
		case summary.Phase == circuit.Closed && state.OpenedAt > s.Now().UnixMilli():
			view.Why = "counts as closed: a clock that is ahead opened it at " +
				output.FormatTime(time.UnixMilli(state.OpenedAt))
		case summary.ByPerson && c.changed:
			view.Why = "by you"
		case summary.ByPerson:
			if records == nil {
				if records, err = s.AuditedChanges(); err != nil {
					return err
				}
			}
			view.Why = openerOf(records, c.key, time.UnixMilli(state.OpenedAt))
		default:
			view.Why = evidenceOf(summary)
		}
		if summary.Phase == circuit.HalfOpen {
			view.Why += fmt.Sprintf("; %s succeeded", output.Plural(summary.Succeeded, "probe"))
		}
		views = append(views, view)
	}
	return session.ShowList(s, views)
}

// evidenceOf returns why a circuit is not closed that no person opened, "" for a closed one.
func evidenceOf(summary circuit.Summary) string {
	r := summary.Results
	switch {
	case summary.Phase == circuit.Closed:
		return ""
	case r.Failures == 0 && r.Slow == 0 && summary.Phase != circuit.Suspect:
		return "a probe failed"
	}
	text := fmt.Sprintf("%s of %s in %s", output.Plural(int(r.Failures), "failure"),
		output.Plural(int(r.Failures+r.Successes), "result"), circuit.Window)
	if r.Slow > 0 {
		text += fmt.Sprintf(", %s longer than %s", output.Plural(int(r.Slow), "call"), circuit.SlowAfter)
	}
	return text
}

// openerOf returns who opened a circuit at a time, and why: the last audit record until then that names the circuit.
func openerOf(records []auditlog.Record, key circuit.Key, openedAt time.Time) string {
	for _, r := range slices.Backward(records) {
		account, operations, _ := strings.Cut(r.Subject, " ")
		isOpening := r.What == actionOpenCircuit && account == key.Account &&
			slices.Contains(strings.Split(operations, ", "), key.Operation)
		if isOpening && !r.At.After(openedAt) {
			return fmt.Sprintf("by %s: %s", r.Who, r.Why)
		}
	}
	return "by a person, without an audit record"
}
