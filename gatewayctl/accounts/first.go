package accounts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/operator"
)

// firstAccount is the id of the first account of a platform.
const firstAccount = "a1"

// Question is one field of a platform's accounts, for a person to fill in.
type Question struct {
	Path     string // as in the file of operator set
	Secret   bool   // the value must not be shown
	Required bool   // an operation cannot be made without it
	Check    func(value string) error
}

// Questions returns the fields of a platform's accounts in order. A field with one value for each country is one
// question for each, and none of these is required.
func Questions(platform string) ([]Question, error) {
	schema, err := findAccountSchema(platform)
	if err != nil {
		return nil, err
	}
	var questions []Question
	for _, field := range schema.fields {
		required := slices.ContainsFunc(schema.row.AccountOperations(), func(operation string) bool {
			return slices.Contains(field.NeededBy, operation)
		})
		group, each := strings.CutSuffix(field.Path, countrySuffix)
		if !each {
			questions = append(questions, Question{field.Path, field.Secret, required, field.Check})
			continue
		}
		for _, country := range schema.row.Countries() {
			questions = append(questions, Question{group + "." + country, field.Secret, false, field.Check})
		}
	}
	return questions, nil
}

// ServedPlatforms lists the platforms that have a driver.
func ServedPlatforms() []string {
	return servedPlatforms(func(operator.Capabilities) bool { return true })
}

// FirstDocument returns the file of operator set for one account with these fields, by their paths.
func FirstDocument(platform string, fields map[string]string) ([]byte, error) {
	account, err := mergeAccount(nil, fields)
	if err != nil {
		return nil, err
	}
	return json.Marshal(credentialsByOperator{
		platform: {firstAccount, map[string]json.RawMessage{firstAccount: account}},
	})
}

// ReadCredentials reads the file of operator set from a path, or from the standard input for "-".
func ReadCredentials(s *session.Session, name string) ([]byte, error) { return readInput(s, name) }

// Names lists the accounts, each as platform/account.
func (c Stored) Names() []string {
	return output.MapAll(accountViews(c.operators), func(a AccountView) string { return a.Operator + "/" + a.Account })
}

// StoreFirst merges the file of operator set into stored credentials that have no account. It returns what it stored,
// in words without a secret.
func StoreFirst(s *session.Session, stored Stored, text []byte) (done string, err error) {
	given, err := parseCredentialsFile(text)
	if err != nil {
		return "", output.UsageError("%w", err)
	}
	next, changes, err := stored.operators.merge(given, false)
	if err != nil {
		return "", output.UsageError("%w", err)
	}
	if len(changes) == 0 {
		return "", output.UsageError("the credentials name no account: docs/deploy.md has the form")
	}
	value, err := Stored{operators: next, routes: stored.routes}.encode()
	if err != nil {
		return "", err
	}
	done = summarizeChanges(changes)
	return done, s.Execute(actionSetCredentials, CredentialsSubject, func() (string, error) {
		return done, s.Stores.Secrets.Put(s, stored.Secret, value)
	})
}

// CheckAll is operator check of all accounts. The error says what to do about each account that does not work.
func CheckAll(s *session.Session, stored Stored, timeout time.Duration) ([]OperationCheck, error) {
	check := operatorCheck{Timeout: timeout}
	return check.checkAll(s, stored)
}

// checkAll checks each operation of the accounts that the command names.
func (c *operatorCheck) checkAll(s *session.Session, stored Stored) (results []OperationCheck, failed error) {
	for _, name := range c.Names {
		if _, found := stored.operators[name]; !found {
			return nil, fmt.Errorf("there are no credentials for operator %q: add them with operator set", name)
		}
	}
	directory := NewDirectory(s, stored.Secret.Value)
	for _, account := range accountViews(stored.operators) {
		if len(c.Names) > 0 && !slices.Contains(c.Names, account.Operator) {
			continue
		}
		results = append(results, c.checkAccount(s, directory, account, stored)...)
	}
	for i, r := range results {
		isSame := func(earlier OperationCheck) bool { return earlier.advice == r.advice }
		if !r.OK && !slices.ContainsFunc(results[:i], isSame) {
			failed = errors.Join(failed, errors.New(r.advice))
		}
	}
	return results, failed
}
