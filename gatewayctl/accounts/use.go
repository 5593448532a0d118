package accounts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// checkNotInUse refuses to move an account in use to another platform or contract, and to drop it (decision
// "operator-credentials"). It reads the transactions of all merchants that are not final, but only for such a change.
func checkNotInUse(s *session.Session, stored Stored, changes []CredentialChange) error {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c CredentialChange) bool {
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
		switch reason := whyInUse(storedAs(c.Operator, c.Account)); {
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
func readUse(s *session.Session, stored Stored) (func(operator.Pin) string, error) {
	profiles, profilesErr := s.AllMerchants()
	records, recordsErr := s.AuditedChanges()
	if err := cmp.Or(profilesErr, recordsErr); err != nil {
		return nil, err
	}
	counts, examples, err := CountLive(s)
	until, routes := map[string]time.Time{}, map[operator.Pin]string{}
	for _, r := range records {
		until[r.What] = session.Latest(until[r.What], r.At.Add(s.SecretCache))
	}
	for _, name := range slices.Sorted(maps.Keys(stored.routes)) {
		for _, route := range stored.routes[name] {
			routes[AccountKey(operator.ParsePin(route.To, ""))] = serviceOf(name, route).Text()
		}
	}
	return func(account operator.Pin) string {
		isCurrent := storedAs(account.Platform, stored.operators[account.Platform].Current) == account
		end := until[actionSetRoute]
		if !isCurrent {
			end = session.Latest(end, until[actionSetCredentials])
		}
		user := slices.IndexFunc(profiles, func(p *merchant.Profile) bool {
			return isCurrent && p.Active() && slices.Contains(p.Operators, account.Platform)
		})
		switch {
		case routes[account] != "":
			return "route " + routes[account] + " leads to it"
		case counts[account] > 0:
			return fmt.Sprintf("it has %s that may still call the operator, such as %s %s",
				output.Plural(counts[account], "transaction"), entries.KindLabel(examples[account].Kind),
				examples[account].ID)
		case end.After(s.Now()):
			return fmt.Sprintf("functions may use it until %s after the last change, try again then",
				output.FormatTime(end.Add(time.Second)))
		case user >= 0:
			return fmt.Sprintf("it is current, and merchant %s may use the operator", profiles[user].Name)
		}
		return ""
	}, err
}

// CountLive counts, by the account that they are pinned to, the entries that may still be sent, looked up or
// retried there, with an example of each. All of them are in the due index.
func CountLive(s *session.Session) (
	counts map[operator.Pin]int, examples map[operator.Pin]ledger.Key, err error,
) {
	counts, examples = map[operator.Pin]int{}, map[operator.Pin]ledger.Key{}
	read := 0
	for e, err := range entries.Due(s) {
		if err != nil {
			return nil, nil, err
		}
		if read++; read%entries.ReadProgress == 0 {
			fmt.Fprintf(s.Stderr, "checked %d transactions that are due\n", read)
		}
		account := AccountKey(operator.PinOf(e))
		if entries.MayCallOperator(e) {
			counts[account]++
			examples[account] = e.Key
		}
	}
	return counts, examples, nil
}
