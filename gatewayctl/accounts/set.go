package accounts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
)

const actionSetCredentials = "set operators' credentials"

// readInput reads a file, or the standard input for "-".
func readInput(s *session.Session, name string) ([]byte, error) {
	from := s.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, output.UsageError("%w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxCredentialsBytes+1))
	if err != nil {
		return nil, err
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return nil, output.UsageError("the credentials in %s are empty", name)
	}
	return text, checkCredentialsSize(text)
}

type operatorSet struct {
	File    string `arg:"" predictor:"file" help:"File with the credentials or a part of them; - for the input."`
	Replace bool   `help:"Drop the accounts that the file does not name. An account in use is never dropped."`
}

// Run merges the file into the secret, field by field, and shows the difference. Fields outside the file stay.
func (c *operatorSet) Run(s *session.Session) error {
	text, err := readInput(s, c.File)
	if err != nil {
		return err
	}
	given, err := parseCredentialsFile(text)
	if err != nil {
		return output.UsageError("%w", err)
	}
	stored, err := ReadStored(s)
	if err != nil {
		return err
	}
	next, changes, err := stored.operators.merge(given, c.Replace)
	if err != nil {
		return output.UsageError("%w", err)
	}
	return changeCredentials(s, actionSetCredentials, stored, next, changes)
}

// CredentialChange is one difference between the stored credentials and the new ones.
type CredentialChange struct {
	Operator string `json:"operator" col:"OPERATOR"`
	Account  string `json:"account" col:"ACCOUNT"`
	Field    string `json:"field" col:"FIELD"`
	From     string `json:"from" col:"FROM"`
	To       string `json:"to" col:"TO"`

	unchanged bool // a secret that the file repeats
	identity  bool // it moves the account to another platform or contract
	dropped   bool // the account
}

// newCredentialChange describes a field of an account. The value of a secret is not shown.
func newCredentialChange(schema accountSchema, id, path, from, to string) CredentialChange {
	field, _ := schema.find(path)
	change := CredentialChange{
		Operator: schema.row.Platform, Account: id, Field: path, From: from, To: to,
		unchanged: from == to, identity: from != "" && from != to && (field.Identity || field.MovesCountry(from, to)),
	}
	if !field.Secret {
		return change
	}
	change.To = "(secret, new)"
	if from != "" {
		change.From, change.To = "(secret)", "(secret, changed)"
	}
	if change.unchanged {
		change.To = "(secret, not changed)"
	}
	return change
}

// changeCredentials stores the next credentials, and shows their differences from the stored ones.
func changeCredentials(
	s *session.Session, action string, stored Stored, next credentialsByOperator, changes []CredentialChange,
) error {
	effective := slices.DeleteFunc(slices.Clone(changes), func(c CredentialChange) bool { return c.unchanged })
	if len(effective) == 0 {
		return errors.New("nothing changes: the stored credentials have each value of the input already")
	}
	if err := checkNotInUse(s, stored, effective); err != nil {
		return err
	}
	value, err := Stored{operators: next, routes: stored.routes}.encode()
	if err != nil {
		return err
	}
	return s.ExecuteAndShow(action, CredentialsSubject, func() (string, error) {
		return summarizeChanges(effective), s.Stores.Secrets.Put(s, stored.Secret, value)
	}, func() error { return session.ShowList(s, changes) })
}

// summarizeChanges names the changed fields for the audit record: "orange: current a2; orange a2: access_token".
func summarizeChanges(changes []CredentialChange) string {
	var parts []string
	for _, c := range changes {
		subject, field := strings.TrimSpace(c.Operator+" "+c.Account)+": ", c.Field
		if c.Account == "" {
			field += " " + c.To
		}
		if last := len(parts) - 1; last >= 0 && strings.HasPrefix(parts[last], subject) {
			parts[last] += ", " + field
			continue
		}
		parts = append(parts, subject+field)
	}
	return strings.Join(parts, "; ")
}

type operatorRotateToken struct {
	Operator string `arg:"" name:"platform" help:"The platform's name, as operator list shows it."`
	File     string `arg:"" optional:"" default:"-" predictor:"file" help:"File with only the token; - for the input."`
	Account  string `placeholder:"ID" help:"The account; the current one if none is given."`
}

// Run renews the access token of one account, and changes nothing else. It only warns of other fields that the account
// lacks, because a leaked token must be renewed in any case. A dry run also tries the token at the operator.
func (c *operatorRotateToken) Run(s *session.Session, stored Stored) error {
	name := strings.ToLower(c.Operator)
	platform, found := stored.operators[name]
	id := cmp.Or(c.Account, platform.Current)
	if _, exists := platform.Accounts[id]; !found || !exists {
		return fmt.Errorf("platform %q has no account %q: gatewayctl operator list shows all", name, id)
	}
	schema, err := findAccountSchema(name)
	if err != nil {
		return output.UsageError("%w", err)
	}
	field, rotatable := schema.find("access_token")
	if !rotatable {
		return output.UsageError("accounts of %s have no access_token: renew their fields with operator set", name)
	}
	token, err := c.readToken(s, field)
	if err != nil {
		return err
	}
	given := givenCredentials{name: {accounts: map[string]map[string]string{id: {"access_token": token}}}}
	next, changes, err := stored.operators.merge(given, false)
	if errors.Is(err, errIncomplete) {
		fmt.Fprintf(s.Stderr, "Warning: %v. Add the fields with operator set.\n", err)
	} else if err != nil {
		return output.UsageError("%w", err)
	}
	if err := changeCredentials(s, "rotate an operator's token", stored, next, changes); err != nil || s.Yes {
		return err
	}
	stored.operators = next
	return tryToken(s, operator.Pin{Platform: name, Account: id}, stored)
}

// readToken reads the file, which has only the token.
func (c *operatorRotateToken) readToken(s *session.Session, field operator.AccountField) (string, error) {
	text, err := readInput(s, c.File)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if strings.HasPrefix(token, "{") {
		return "", output.UsageError("the input is a JSON document: give only the token, or use operator set")
	}
	if err := field.Check(token); err != nil {
		return "", output.UsageError("the token %w", err)
	}
	return token, nil
}

// tryToken looks up a status with an account that is not stored yet, and reports whether its operator accepts the
// token. It never fails for it: an operator may accept a new token only when the old one ends.
func tryToken(s *session.Session, account operator.Pin, next Stored) error {
	value, err := next.encode()
	if err != nil {
		return err
	}
	check := operatorCheck{Timeout: 10 * time.Second}
	fault := check.lookUp(s, NewDirectory(s, value), account)
	if fault == "" {
		fmt.Fprintln(s.Stderr, "The operator accepts the new token: a status lookup with it succeeded.")
		return nil
	}
	fmt.Fprintf(s.Stderr, "Warning: a status lookup with the new token failed: %s. "+
		"Apply it only if the operator says that it is the right one.\n", fault)
	return nil
}

// errIncomplete marks an account without all fields that its operations need.
var errIncomplete = errors.New("incomplete")

// merge returns the credentials with the given fields, and each difference. The error is errIncomplete if a platform
// that the file names has a current account, or an account that the file names, without all its fields.
func (o credentialsByOperator) merge(
	given givenCredentials, replace bool,
) (next credentialsByOperator, changes []CredentialChange, err error) {
	next, given = maps.Clone(o), maps.Clone(given)
	for name := range o {
		if _, named := given[name]; replace && !named {
			given[name] = givenOperator{}
		}
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		schema, err := findAccountSchema(name)
		if err != nil {
			return nil, nil, err
		}
		platform, ofPlatform, err := o[name].merge(schema, given[name], replace)
		changes = append(changes, ofPlatform...)
		next[name] = platform
		if len(platform.Accounts) == 0 && replace {
			delete(next, name)
			continue
		}
		faults = append(faults, err)
	}
	return next, changes, errors.Join(faults...)
}

// merge is credentialsByOperator.merge for one platform.
func (p operatorCredentials) merge(
	schema accountSchema, given givenOperator, replace bool,
) (next operatorCredentials, changes []CredentialChange, err error) {
	name := schema.row.Platform
	next = operatorCredentials{cmp.Or(given.current, p.Current), map[string]json.RawMessage{}}
	maps.Copy(next.Accounts, p.Accounts)
	if next.Current != p.Current {
		changes = append(changes, CredentialChange{Operator: name, Field: "current", From: p.Current, To: next.Current})
	}
	for _, id := range slices.Sorted(maps.Keys(given.accounts)) {
		if _, exists := p.Accounts[id]; !exists && strings.Contains(id, "/") {
			return next, nil, fmt.Errorf("%s.accounts: the id %q of a new account has a slash: "+
				"choose another id, because platform/account names an account", name, id)
		}
		before, fields := credentials.ReadFields(p.Accounts[id]), given.accounts[id]
		next.Accounts[id], err = mergeAccount(p.Accounts[id], fields)
		if err != nil {
			return next, nil, err
		}
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			change := newCredentialChange(schema, id, path, before[path], fields[path])
			if field, _ := schema.find(path); !change.unchanged || field.Secret {
				changes = append(changes, change)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.Accounts)) {
		if _, named := given.accounts[id]; replace && !named {
			delete(next.Accounts, id)
			changes = append(changes, CredentialChange{
				Operator: name, Account: id, Field: "(the account)", From: "stored", To: "dropped", dropped: true,
			})
		}
	}
	return next, changes, next.checkComplete(schema, slices.Collect(maps.Keys(given.accounts)))
}

// mergeAccount sets fields of a stored account by their paths. Fields that this version does not know stay.
func mergeAccount(stored json.RawMessage, fields map[string]string) (json.RawMessage, error) {
	account := map[string]any{}
	if json.Unmarshal(stored, &account) != nil || account == nil {
		account = map[string]any{} // there is none, or it is of another form
	}
	for path, value := range fields {
		object := account
		levels := strings.Split(path, ".")
		for _, level := range levels[:len(levels)-1] {
			below, isObject := object[level].(map[string]any)
			if !isObject {
				below = map[string]any{}
				object[level] = below
			}
			object = below
		}
		object[levels[len(levels)-1]] = value
	}
	return json.Marshal(account)
}

// checkComplete names the fields that the accounts and the current one lack. A current account must exist.
func (p operatorCredentials) checkComplete(schema accountSchema, ids []string) error {
	name := schema.row.Platform
	if _, exists := p.Accounts[p.Current]; !exists {
		return fmt.Errorf("%s.current: there is no account %q: name one of the accounts", name, p.Current)
	}
	var faults []error
	for _, id := range slices.Compact(slices.Sorted(slices.Values(append(ids, p.Current)))) {
		account := credentials.ReadFields(p.Accounts[id])
		var lacking []string
		for _, operation := range schema.row.AccountOperations() {
			for _, text := range schema.unusable(account, operation) {
				if !slices.Contains(lacking, text) {
					lacking = append(lacking, text)
				}
			}
		}
		if lacking != nil {
			faults = append(faults,
				fmt.Errorf("%s.accounts.%s is %w: %s", name, id, errIncomplete, strings.Join(lacking, "; ")))
		}
	}
	return errors.Join(faults...)
}
