package gatewayctl

import (
	"cmp"
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
func checkNotInUse(s *session, stored storedCredentials, changes []credentialChange) error {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c credentialChange) bool {
		return !c.identity && !c.dropped
	})
	if len(changes) == 0 {
		return nil
	}
	whyInUse, err := readUse(s, stored)
	if err != nil {
		return err
	}
	var faults []error
	for _, c := range changes {
		switch reason := whyInUse(refOf(c.Operator, c.Account)); {
		case reason == "":
		case c.dropped:
			faults = append(faults, fmt.Errorf("account %s of %s cannot be dropped: %s", c.Account, c.Operator, reason))
		default:
			faults = append(faults, fmt.Errorf("%s of account %s of %s cannot be changed: %s; "+
				"add a new account and make it current", c.Field, c.Account, c.Operator, reason))
		}
	}
	return errors.Join(faults...)
}

// readUse returns the function that states what uses an account, "" for nothing. That is a route, whether or not a
// merchant may use the operator, or a live transaction. It is a function that has not read the last change and may
// still pin a request to the account. It is an operator that a merchant may use, if the account is its current one.
func readUse(s *session, stored storedCredentials) (func(accountRef) string, error) {
	profiles, profilesErr := s.allMerchants()
	records, recordsErr := s.auditedChanges()
	if err := cmp.Or(profilesErr, recordsErr); err != nil {
		return nil, err
	}
	counts, examples, err := countLiveEntries(s)
	until, routes := map[string]time.Time{}, map[accountRef]string{}
	for _, r := range records {
		until[r.What] = latestTime(until[r.What], r.At.Add(s.SecretCache))
	}
	for _, name := range slices.Sorted(maps.Keys(stored.routes)) {
		for _, route := range stored.routes[name] {
			routes[pinRef(operator.ParsePin(route.To, ""))] = serviceOf(name, route).text()
		}
	}
	return func(ref accountRef) string {
		isCurrent, end := stored.isCurrent(ref), until[actionSetRoute]
		if !isCurrent {
			end = latestTime(end, until[actionSetCredentials])
		}
		user := slices.IndexFunc(profiles, func(p *merchant.Profile) bool {
			return isCurrent && p.Active() && slices.Contains(p.Operators, ref.operator)
		})
		switch {
		case routes[ref] != "":
			return "route " + routes[ref] + " leads to it"
		case counts[ref] > 0:
			return fmt.Sprintf("it has %s that may still call the operator, such as %s %s",
				plural(counts[ref], "transaction"), kindLabel(examples[ref].Kind), examples[ref].ID)
		case end.After(s.Now()):
			return fmt.Sprintf("functions may use it until %s after the last change, try again then",
				formatTime(end.Add(time.Second)))
		case user >= 0:
			return fmt.Sprintf("it is current, and merchant %s may use the operator", profiles[user].Name)
		}
		return ""
	}, err
}

// countLiveEntries counts, by the account that they are pinned to, the entries that may still be sent, looked up or
// retried there, with an example of each. All of them are in the due index.
func countLiveEntries(s *session) (counts map[accountRef]int, examples map[accountRef]ledger.Key, err error) {
	counts, examples = map[accountRef]int{}, map[accountRef]ledger.Key{}
	read := 0
	for e, err := range dueEntries(s) {
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
