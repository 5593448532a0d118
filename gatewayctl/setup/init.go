// Package setup has gatewayctl's commands for a new deployment.
package setup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/keys"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// The states of a step.
const (
	stateBefore = "there already"
	stateDone   = "done"
	stateWould  = "would be done"
	stateOpen   = "open" // it waits for a person
	stateFailed = "failed"
)

// Step is one part of a deployment that can take payments.
type Step struct {
	Step   string `json:"step" col:"STEP"`
	State  string `json:"state" col:"STATE"`
	Detail string `json:"detail" col:"DETAIL"`
}

// Init makes what a new deployment lacks.
type Init struct {
	Operator    string        `placeholder:"PLATFORM" help:"The first operator's platform, to be typed here."`
	Credentials string        `placeholder:"FILE" predictor:"file" help:"File of operator set; - for the input."`
	Timeout     time.Duration `default:"10s" help:"The longest wait for an operator's response."`
}

// Run makes the missing first keys, stores the first operator's credentials, and checks them. Each step that was done
// before stays as it is, so that a run after a failure continues where the last one ended.
func (c *Init) Run(s *session.Session) error {
	if c.Operator != "" && c.Credentials != "" {
		return output.UsageError("--operator and --credentials are two ways to the credentials: use one of them")
	}
	if s.Yes && s.Reason == "" {
		return output.UsageError("--yes needs --reason: the audit record keeps it")
	}
	steps, err := c.run(s)
	if len(steps) == 0 {
		return err
	}
	if failed := session.ShowList(s, steps); failed != nil {
		return errors.Join(failed, err)
	}
	if err == nil && s.Yes {
		fmt.Fprintf(s.Stderr, "Next, a merchant and the smoke test:\n  %s\n  %s\n",
			s.Command(session.ConfirmArguments("merchant", "add", "NAME", "--country", "ci", "--operator",
				"orange")...),
			s.Command("smoke"))
	}
	return err
}

func (c *Init) run(s *session.Session) (steps []Step, err error) {
	add := func(name, state, detail string) { steps = append(steps, Step{name, state, detail}) }
	if missing := missingNames(s); len(missing) > 0 {
		return nil, output.UsageError("the deployment is not known, without a value of %s: use --stack NAME",
			strings.Join(missing, ", "))
	}
	if err := s.OpenStores(); err != nil {
		return nil, err
	}
	if s.Yes && s.Stores.AuditCopies == nil {
		return nil, auditlog.ErrNoCopies
	}
	add("deployment", stateBefore, s.LedgerTable)
	for _, ring := range []string{keys.Tokens, keys.Callbacks, keys.Webhooks} {
		added, newest, err := keys.AddFirst(s, ring)
		switch {
		case err != nil:
			add("key of "+ring, stateFailed, "")
			return steps, fmt.Errorf("the first key of %s: %w", ring, err)
		case added:
			add("key of "+ring, s.IfApplied(stateDone, stateWould), newest)
		default:
			add("key of "+ring, stateBefore, newest)
		}
	}
	rest, err := c.credentials(s)
	return append(steps, rest...), err
}

// missingNames lists the variables without which a gateway cannot be prepared.
func missingNames(s *session.Session) (missing []string) {
	names, values := output.Cells(s.Names, "variable")
	optional := []string{"LIMIT_TABLE", "SANDBOX_URL", "AUDIT_LOG_GROUP"}
	for i, name := range names {
		if values[i] == "" && !slices.Contains(optional, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// errOpen is the end of a run without a person at a terminal.
var errOpen = errors.New("the operators' credentials are missing: give --credentials FILE, or run this at a terminal")

// credentials stores the first operator's credentials if there are none, and checks all that are stored.
func (c *Init) credentials(s *session.Session) (steps []Step, err error) {
	const name = "operators' credentials"
	stored, err := accounts.ReadStored(s)
	if err != nil {
		return []Step{{name, stateFailed, ""}}, err
	}
	if known := stored.Names(); len(known) > 0 {
		steps = []Step{{name, stateBefore, output.JoinComma(known)}}
		if c.Credentials != "" || c.Operator != "" {
			fmt.Fprintf(s.Stderr, "The credentials were not changed: use %s.\n",
				s.Command(session.ConfirmArguments("operator", "set", "FILE")...))
		}
		return c.check(s, steps, stored)
	}
	text, err := c.read(s)
	switch {
	case err != nil:
		return []Step{{name, stateOpen, ""}}, err
	case text == nil:
		return []Step{{name, stateWould, "typed at the terminal"}}, nil
	}
	done, err := accounts.StoreFirst(s, stored, text)
	if err != nil {
		return []Step{{name, stateFailed, ""}}, err
	}
	steps = []Step{{name, s.IfApplied(stateDone, stateWould), done}}
	if !s.Yes {
		return steps, nil
	}
	if stored, err = accounts.ReadStored(s); err != nil {
		return steps, err
	}
	return c.check(s, steps, stored)
}

// read returns the file of the first credentials: from --credentials, or typed at the terminal. It returns nil in
// a dry run that would prompt.
func (c *Init) read(s *session.Session) ([]byte, error) {
	switch {
	case c.Credentials != "":
		return accounts.ReadCredentials(s, c.Credentials)
	case s.Terminal == nil:
		return nil, errOpen
	case !s.Yes:
		return nil, nil
	default:
		return promptCredentials(s.Terminal, c.Operator)
	}
}

// check adds the result of operator check for each operation.
func (c *Init) check(s *session.Session, steps []Step, stored accounts.Stored) ([]Step, error) {
	results, err := accounts.CheckAll(s, stored, c.Timeout)
	for _, r := range results {
		state := stateDone
		if !r.OK {
			state = stateFailed
		}
		steps = append(steps, Step{fmt.Sprintf("check %s/%s %s", r.Operator, r.Account, r.Operation), state, r.Error})
	}
	return steps, err
}
