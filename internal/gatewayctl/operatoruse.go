package gatewayctl

import (
	"errors"
	"fmt"
	"slices"

	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// accountRef names an account of an operator.
type accountRef struct{ operator, id string }

// checkNotInUse refuses to move an account in use to another platform or contract, and to drop it (decision
// "operator-credentials"). It reads the transactions of all merchants that are not final, but only for such a change.
func (s *session) checkNotInUse(stored credentialsByOperator, changes []credentialChange) error {
	reasons := map[accountRef]string{}
	for _, c := range changes {
		if c.identity || c.dropped {
			reasons[accountRef{c.Operator, c.Account}] = ""
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	for _, find := range []func(credentialsByOperator, map[accountRef]string) error{
		s.findCurrentUse, s.findRecentUse, s.findLiveEntries,
	} {
		if err := find(stored, reasons); err != nil {
			return err
		}
	}
	var faults []error
	for _, c := range changes {
		reason := reasons[accountRef{c.Operator, c.Account}]
		switch {
		case reason == "":
		case c.dropped:
			faults = append(faults, fmt.Errorf("account %s of %s cannot be dropped: %s", c.Account, c.Operator, reason))
		case c.identity:
			faults = append(faults, fmt.Errorf("%s of account %s of %s cannot be changed: %s; "+
				"add a new account and make it current", c.Field, c.Account, c.Operator, reason))
		}
	}
	return errors.Join(faults...)
}

// findCurrentUse finds the current accounts of operators that a merchant may use: the next request is pinned to them.
func (s *session) findCurrentUse(stored credentialsByOperator, reasons map[accountRef]string) error {
	profiles, err := s.allMerchants()
	if err != nil {
		return err
	}
	for ref := range reasons {
		uses := func(p *merchant.Profile) bool { return p.Active() && slices.Contains(p.Operators, ref.operator) }
		if at := slices.IndexFunc(profiles, uses); at >= 0 && stored[ref.operator].Current == ref.id {
			reasons[ref] = fmt.Sprintf("it is current, and merchant %s may use the operator", profiles[at].Name)
		}
	}
	return nil
}

// findRecentUse finds accounts that may have been current a short time ago: a function that has not read the change may
// still pin a request to them.
func (s *session) findRecentUse(stored credentialsByOperator, reasons map[accountRef]string) error {
	records, err := s.auditedChanges()
	if err != nil {
		return err
	}
	var until time.Time
	for _, r := range records {
		if end := r.At.Add(s.SecretCache); r.What == actionSetCredentials && end.After(until) {
			until = end
		}
	}
	for ref := range reasons {
		if stored[ref.operator].Current != ref.id && until.After(s.Now()) {
			reasons[ref] = fmt.Sprintf("functions may use it until %s after the last operator set, try again then",
				formatTime(until.Add(time.Second)))
		}
	}
	return nil
}

// findLiveEntries finds accounts to which entries are pinned that may still be sent, looked up or retried there. All of
// them are in the due index.
func (s *session) findLiveEntries(_ credentialsByOperator, reasons map[accountRef]string) error {
	counts, examples, read := map[accountRef]int{}, map[accountRef]ledger.Key{}, 0
	for e, err := range entriesOf(s.duePages) {
		if err != nil {
			return err
		}
		if read++; read%progressEntries == 0 {
			fmt.Fprintf(s.Stderr, "checked %d transactions that are due\n", read)
		}
		ref := accountRef{operator.PinOf(e).Platform, operator.PinOf(e).Account}
		if _, asked := reasons[ref]; asked && mayCallOperator(e) {
			counts[ref]++
			examples[ref] = e.Key
		}
	}
	for ref, count := range counts {
		reasons[ref] = fmt.Sprintf("it has %s that may still call the operator, such as %s %s",
			plural(count, "transaction"), kindLabel(examples[ref].Kind), examples[ref].ID)
	}
	return nil
}

// progressEntries is the number of entries between two lines of progress.
const progressEntries = 10_000

// mayCallOperator reports whether an entry may cause another call with its account.
func mayCallOperator(e *ledger.Entry) bool {
	pending := e.Kind == ledger.Payment && e.State != ledger.Released && !e.StatusFinal()
	claimed := e.Claim.Status != "" && !e.StatusFinal()
	return pending || claimed || e.State == ledger.Reserved || e.State == ledger.Unknown ||
		e.UserSMS == ledger.UserSMSDue
}
