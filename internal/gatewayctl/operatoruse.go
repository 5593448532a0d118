package gatewayctl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// accountRef names an account of a platform.
type accountRef struct{ operator, id string }

func pinRef(pin operator.Pin) accountRef {
	return accountRef{strings.ToLower(pin.Platform), pin.Account}
}

// refOf returns the account that a platform stores under an id. The ids 2024 and orange/2024 of orange are one account,
// as transactions are pinned to it.
func refOf(platform, id string) accountRef { return pinRef(operator.ParsePin(id, platform)) }

// isCurrent reports whether an account is the one for calls without a route.
func (c storedCredentials) isCurrent(ref accountRef) bool {
	return refOf(ref.operator, c.operators[ref.operator].Current) == ref
}

// checkNotInUse refuses to move an account in use to another platform or contract, and to drop it (decision
// "operator-credentials"). It reads the transactions of all merchants that are not final, but only for such a change.
func (s *session) checkNotInUse(stored storedCredentials, changes []credentialChange) error {
	reasons := map[accountRef]string{}
	for _, c := range changes {
		if c.identity || c.dropped {
			reasons[refOf(c.Operator, c.Account)] = ""
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	for _, find := range []func(storedCredentials, map[accountRef]string) error{
		s.findCurrentUse, s.findRecentUse, s.findLiveEntries, findRouteUse,
	} {
		if err := find(stored, reasons); err != nil {
			return err
		}
	}
	var faults []error
	for _, c := range changes {
		reason := reasons[refOf(c.Operator, c.Account)]
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
func (s *session) findCurrentUse(stored storedCredentials, reasons map[accountRef]string) error {
	profiles, err := s.allMerchants()
	if err != nil {
		return err
	}
	for ref := range reasons {
		uses := func(p *merchant.Profile) bool { return p.Active() && slices.Contains(p.Operators, ref.operator) }
		if at := slices.IndexFunc(profiles, uses); at >= 0 && stored.isCurrent(ref) {
			reasons[ref] = fmt.Sprintf("it is current, and merchant %s may use the operator", profiles[at].Name)
		}
	}
	return nil
}

// findRecentUse finds accounts that may have been current a short time ago: a function that has not read the change may
// still pin a request to them.
func (s *session) findRecentUse(stored storedCredentials, reasons map[accountRef]string) error {
	records, err := s.auditedChanges()
	if err != nil {
		return err
	}
	until := map[string]time.Time{}
	for _, r := range records {
		until[r.What] = latestTime(until[r.What], r.At.Add(s.SecretCache))
	}
	for ref := range reasons {
		end := until[actionSetRoute]
		if !stored.isCurrent(ref) {
			end = latestTime(end, until[actionSetCredentials])
		}
		if end.After(s.Now()) {
			reasons[ref] = fmt.Sprintf("functions may use it until %s after the last change, try again then",
				formatTime(end.Add(time.Second)))
		}
	}
	return nil
}

// findRouteUse finds accounts that a route leads to, whether or not a merchant may use the operator.
func findRouteUse(stored storedCredentials, reasons map[accountRef]string) error {
	for _, name := range slices.Sorted(maps.Keys(stored.routes)) {
		for _, route := range stored.routes[name] {
			ref := pinRef(operator.ParsePin(route.To, ""))
			if _, changes := reasons[ref]; changes {
				reasons[ref] = "route " + serviceOf(name, route).text() + " leads to it"
			}
		}
	}
	return nil
}

// findLiveEntries finds accounts to which live entries are pinned.
func (s *session) findLiveEntries(_ storedCredentials, reasons map[accountRef]string) error {
	counts, examples, err := s.countLiveEntries()
	for ref := range reasons {
		if counts[ref] > 0 {
			reasons[ref] = fmt.Sprintf("it has %s that may still call the operator, such as %s %s",
				plural(counts[ref], "transaction"), kindLabel(examples[ref].Kind), examples[ref].ID)
		}
	}
	return err
}

// countLiveEntries counts, by the account that they are pinned to, the entries that may still be sent, looked up or
// retried there, with an example of each. All of them are in the due index.
func (s *session) countLiveEntries() (counts map[accountRef]int, examples map[accountRef]ledger.Key, err error) {
	counts, examples = map[accountRef]int{}, map[accountRef]ledger.Key{}
	read := 0
	for e, err := range entriesOf(s.duePages) {
		if err != nil {
			return nil, nil, err
		}
		if read++; read%readProgress == 0 {
			fmt.Fprintf(s.Stderr, "checked %d transactions that are due\n", read)
		}
		if ref := pinRef(operator.PinOf(e)); mayCallOperator(e) {
			counts[ref]++
			examples[ref] = e.Key
		}
	}
	return counts, examples, nil
}

// mayCallOperator reports whether an entry is live: it may cause another call with its account.
func mayCallOperator(e *ledger.Entry) bool {
	if e.Unknowable() {
		return false
	}
	pending := e.Kind == ledger.Payment && e.State != ledger.Released && !e.StatusFinal()
	claimed := e.Claim.Status != "" && !e.StatusFinal()
	return pending || claimed || e.State == ledger.Reserved || e.State == ledger.Unknown ||
		e.UserSMS == ledger.UserSMSDue
}
