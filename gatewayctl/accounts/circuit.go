package accounts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/circuit"
)

type circuitCommands struct {
	Open  circuitOpen  `cmd:"" help:"Refuse an account's new transactions for a time, up to 24 hours."`
	Close circuitClose `cmd:"" help:"Accept an account's new transactions again, and forget its failures."`
}

const (
	actionOpenCircuit  = "open a circuit"
	actionCloseCircuit = "close a circuit"
)

// circuitArguments name the circuits of one account.
type circuitArguments struct {
	Account   string `arg:"" help:"The account, as platform/account."`
	Operation string `enum:"charge,pay,sms," default:"" placeholder:"charge|pay|sms" help:"${circuit_operation_help}"`
}

// Validate refuses an argument without an account.
func (c *circuitArguments) Validate() error {
	if platform, id, _ := strings.Cut(c.Account, "/"); platform == "" || id == "" {
		return fmt.Errorf("%q is not platform/account: gatewayctl operator status shows all accounts", c.Account)
	}
	return nil
}

type circuitOpen struct {
	circuitArguments
	For time.Duration `default:"1h" help:"How long, up to 24 hours. Then a few transactions pass as probes."`
}

// Validate refuses a time that no state can have.
func (c *circuitOpen) Validate() error {
	if c.For < time.Second || c.For > circuit.MaxOpenTime {
		return fmt.Errorf("--for %s is not between 1 second and 24 hours: choose another time, "+
			"and open the circuit again before its end if you must", c.For)
	}
	return c.circuitArguments.Validate()
}

// Run opens the circuits, also those that are open: their end is then another one.
func (c *circuitOpen) Run(s *session.Session, stored Stored) error {
	circuits, err := readCircuits(s, stored, c.Account, c.Operation)
	if err != nil {
		return err
	}
	change := circuitChange{actionOpenCircuit, func(now time.Time) circuit.State {
		return circuit.OpenedByPerson(now, c.For)
	}}
	if err := change.execute(s, circuits); err != nil {
		return err
	}
	if s.Yes {
		fmt.Fprintln(s.Stderr, "Functions follow within 10 seconds: new transactions get 503 until PROBES FROM. "+
			"Then a few pass as probes.")
	}
	return showCircuits(s, circuits)
}

type circuitClose struct{ circuitArguments }

// Run closes the circuits that are not closed or have failures, and forgets their results.
func (c *circuitClose) Run(s *session.Session, stored Stored) error {
	circuits, err := readCircuits(s, stored, c.Account, c.Operation)
	if err != nil {
		return err
	}
	circuits = slices.DeleteFunc(circuits, func(c storedCircuit) bool {
		state, err := circuit.Decode(c.form)
		return err == nil && state.Summarize(s.Now()).Phase == circuit.Closed && state.OpenedAt <= s.Now().UnixMilli()
	})
	if len(circuits) == 0 {
		return errors.New("nothing changes: the circuits are closed and without failures: " +
			"gatewayctl operator status shows them")
	}
	change := circuitChange{actionCloseCircuit, func(time.Time) circuit.State { return circuit.State{} }}
	if err := change.execute(s, circuits); err != nil {
		return err
	}
	return showCircuits(s, circuits)
}

// circuitChange changes circuits to a next state.
type circuitChange struct {
	action string
	next   func(now time.Time) circuit.State
}

// execute changes the circuits of one account, at least one.
func (c circuitChange) execute(s *session.Session, circuits []storedCircuit) error {
	operations := output.MapAll(circuits, func(one storedCircuit) string { return one.key.Operation })
	subject := circuits[0].key.Account + " " + output.JoinComma(operations)
	return s.Execute(c.action, subject, func() (string, error) {
		var done []string
		for i := range circuits {
			one := &circuits[i]
			before, _ := circuit.Decode(one.form) // a torn one counts as closed
			if err := c.apply(s, one); err != nil {
				return output.JoinComma(done), errors.Join(err, partlyDone(done))
			}
			phase := before.Phase(s.Now())
			done = append(done, fmt.Sprintf("%s was %s, now %s", one.key.Operation, phase, one.result()))
		}
		return output.JoinComma(done), nil
	})
}

// result describes a changed circuit for the audit record.
func (c *storedCircuit) result() string {
	state, _ := circuit.Decode(c.form) // it was just encoded
	if state.OpenedAt == 0 {
		return circuit.Closed.String()
	}
	return circuit.Open.String() + " until " + output.FormatTime(time.UnixMilli(state.ProbesAt))
}

// partlyDone is the error that names what was changed before a failure, nil for nothing.
func partlyDone(done []string) error {
	if len(done) == 0 {
		return nil
	}
	return errors.New("it was changed before the failure: " + output.JoinComma(done))
}

// maxCircuitWrites bounds the writes of a circuit, each with the retries of its Writer: processes write their results
// into the same item.
const maxCircuitWrites = 5

// apply changes a circuit if it is still the one that was read. Results that processes added meanwhile do not count.
func (c circuitChange) apply(s *session.Session, one *storedCircuit) error {
	read, _ := circuit.Decode(one.form)
	isOther := false
	change := func(state *circuit.State, now int64) bool {
		isOther = state.OpenedAt != read.OpenedAt || state.EndsAt != read.EndsAt || state.ByPerson != read.ByPerson
		if !isOther {
			*state = c.next(time.UnixMilli(now))
		}
		return !isOther
	}
	for range maxCircuitWrites {
		form, stored, err := s.Stores.Circuits.Change(s, one.key, one.form, change)
		switch {
		case errors.Is(err, circuit.ErrNewer):
			return fmt.Errorf("%s of %s was not changed, because a newer version of the gateway wrote it: "+
				"use the gatewayctl of that version", one.key.Operation, one.key.Account)
		case err != nil:
			return fmt.Errorf("%s of %s may be changed or not, gatewayctl operator status shows it: %w",
				one.key.Operation, one.key.Account, err)
		case stored:
			one.form, one.changed = form, true
			return nil
		case isOther:
			return changedMeanwhile(one.key)
		}
		one.form = form
	}
	return changedMeanwhile(one.key)
}

// changedMeanwhile is the error of a circuit that is not the one that was read.
func changedMeanwhile(key circuit.Key) error {
	return fmt.Errorf("%s of %s was changed meanwhile, and stays as it is: gatewayctl operator status shows it; "+
		"run the command again", key.Operation, key.Account)
}
