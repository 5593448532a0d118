package gatewayctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
)

type operatorCommands struct {
	Set   operatorSet   `cmd:"" help:"Add credentials, or renew them, from a file."`
	List  operatorList  `cmd:"" help:"List the operators' accounts, without tokens."`
	Check operatorCheck `cmd:"" help:"Ask each account for the status of an order that there is not: a harmless call."`
}

// operatorCredentials is an operator in the secret. Accounts are kept as they are written, fields that we do not know included.
type operatorCredentials struct {
	Current  string                     `json:"current"`
	Accounts map[string]json.RawMessage `json:"accounts"`
}

// parseOperatorCredentials reads the credentials' document. The error never quotes it.
func parseOperatorCredentials(text []byte) (map[string]operatorCredentials, error) {
	platforms := map[string]operatorCredentials{}
	if len(text) == 0 {
		return platforms, nil
	}
	if json.Unmarshal(text, &platforms) != nil || platforms == nil {
		return nil, errors.New(`the credentials are not the JSON they should be: {"<operator>":{"current":"<account>","accounts":{"<account>":{...}}}}`)
	}
	return platforms, nil
}

// staticSecret is a value as a cached secret, for the drivers.
type staticSecret []byte

// Get implements secret.Reader.
func (f staticSecret) Get(context.Context) (secret.Value, error) { return secret.Value{Bytes: f}, nil }

// Refresh implements secret.Reader.
func (f staticSecret) Refresh(context.Context) (secret.Value, error) {
	return secret.Value{Bytes: f}, nil
}

// maxCredentialsBytes is the largest file of credentials in bytes: what a secret can hold.
const maxCredentialsBytes = 64 << 10

type operatorSet struct {
	File    string `arg:"" help:"The file with the credentials; - for the standard input. They are never an argument."`
	Replace bool   `help:"Drop the accounts that the file does not name. Live transactions are pinned to theirs."`
}

// readFile reads the file.
func (c *operatorSet) readFile(s *session) ([]byte, error) {
	from := s.Stdin
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return nil, usageError("%w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxCredentialsBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxCredentialsBytes || len(text) == 0 {
		return nil, usageError("the credentials are empty, or more than %d bytes", maxCredentialsBytes)
	}
	return text, nil
}

// Run merges the file into the secret: its operators' current accounts become current, its accounts are added or
// renewed, and the others stay.
func (c *operatorSet) Run(s *session) error {
	text, err := c.readFile(s)
	if err != nil {
		return err
	}
	given, err := parseOperatorCredentials(text)
	if err != nil {
		return usageError("%w", err)
	}
	current, err := readSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err != nil {
		return err
	}
	stored, err := parseOperatorCredentials(current.Value)
	if err != nil {
		return err
	}
	if c.Replace {
		stored = map[string]operatorCredentials{}
	}
	mergeCredentials(stored, given)
	value, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	if err := checkCurrentAccounts(s, value, stored); err != nil {
		return usageError("%w", err)
	}
	err = s.changes.execute(Action{"set operators' credentials", "operators"}, func() (string, error) {
		return "operators " + joinComma(slices.Sorted(maps.Keys(given))), s.changes.putSecret(current, value)
	})
	if err != nil {
		return err
	}
	return showAccounts(s, accountViews(stored))
}

func mergeCredentials(result, given map[string]operatorCredentials) {
	for name, p := range given {
		name = strings.ToLower(name)
		merged := operatorCredentials{Current: firstNonEmpty(p.Current, result[name].Current), Accounts: map[string]json.RawMessage{}}
		maps.Copy(merged.Accounts, result[name].Accounts)
		maps.Copy(merged.Accounts, p.Accounts)
		result[name] = merged
	}
}

// checkCurrentAccounts asks each operator's own driver whether it could use the current account.
func checkCurrentAccounts(s *session, value []byte, platforms map[string]operatorCredentials) error {
	directory := drivers.NewDirectory(staticSecret(value), s.Now)
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(platforms)) {
		driver, _, known := directory.Driver(name)
		if !known {
			faults = append(faults, fmt.Errorf("operator %q is not one of %s", name, joinComma(operator.Names())))
			continue
		}
		if _, err := driver.CurrentAccountID(s, name); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, innerError(err)))
		}
	}
	return errors.Join(faults...)
}

// innerError is what a driver's fault is about, without the fault's own words, which are for the functions.
func innerError(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// accountView is an account without its tokens.
type accountView struct {
	Operator string `json:"operator"`
	Account  string `json:"account"`
	Current  bool   `json:"current"`
	BaseURL  string `json:"base_url"`
}

func accountViews(platforms map[string]operatorCredentials) []accountView {
	views := []accountView{}
	for _, name := range slices.Sorted(maps.Keys(platforms)) {
		for _, id := range slices.Sorted(maps.Keys(platforms[name].Accounts)) {
			var known struct {
				BaseURL string `json:"base_url"`
			}
			_ = json.Unmarshal(platforms[name].Accounts[id], &known) // the driver says what is wrong with an account
			views = append(views, accountView{name, id, id == platforms[name].Current, known.BaseURL})
		}
	}
	return views
}

func showAccounts(s *session, views []accountView) error {
	rows := table{{"OPERATOR", "ACCOUNT", "CURRENT", "BASE URL"}}
	for _, v := range views {
		rows = append(rows, []string{v.Operator, v.Account, fmt.Sprint(v.Current), v.BaseURL})
	}
	return s.show(views, rows)
}

type operatorList struct{}

// Run lists the accounts.
func (c *operatorList) Run(s *session) error {
	current, err := readSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err != nil {
		return err
	}
	platforms, err := parseOperatorCredentials(current.Value)
	if err != nil {
		return err
	}
	return showAccounts(s, accountViews(platforms))
}

type operatorCheck struct {
	Names   []string      `arg:"" optional:"" name:"operator" help:"Which operators; without, all."`
	Timeout time.Duration `default:"10s" help:"The longest wait for an answer."`
}

// checkOrderID is an order_id that nobody has: no merchant's name has a hyphen.
const checkOrderID = "check-gatewayctl_1"

// accountCheck is what came of one account's check.
type accountCheck struct {
	accountView
	OK    bool   `json:"ok"`
	Error string `json:"why,omitempty"`
}

var errAccountCheck = errors.New("not every account works")

// Run checks the accounts. An answer in the operator's own words, that there is no such order, is what is wanted.
func (c *operatorCheck) Run(s *session) error {
	current, err := readSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err != nil {
		return err
	}
	platforms, err := parseOperatorCredentials(current.Value)
	if err != nil {
		return err
	}
	for _, name := range c.Names {
		if _, found := platforms[name]; !found {
			return fmt.Errorf("there are no credentials for operator %q", name)
		}
	}
	directory := drivers.NewDirectory(staticSecret(current.Value), s.Now)
	results, failed := []accountCheck{}, error(nil)
	rows := table{{"OPERATOR", "ACCOUNT", "CURRENT", "BASE URL", "OK", "WHY"}}
	for _, account := range accountViews(platforms) {
		if len(c.Names) > 0 && !slices.Contains(c.Names, account.Operator) {
			continue
		}
		result := c.checkAccount(s, directory, account)
		if !result.OK {
			failed = errAccountCheck
		}
		results = append(results, result)
		rows = append(rows, []string{account.Operator, account.Account, fmt.Sprint(account.Current), account.BaseURL, fmt.Sprint(result.OK), result.Error})
	}
	return errors.Join(s.show(results, rows), failed)
}

// checkAccount makes the call with one account, in the operator's own protocol.
func (c *operatorCheck) checkAccount(s *session, directory *operator.DriverDirectory, account accountView) accountCheck {
	row, known := operator.FindCapabilities(account.Operator)
	reader, offered := directory.StatusLookup(account.Operator)
	if !known || !offered {
		return accountCheck{account, false, "the operator's row in the table offers no status lookup"}
	}
	ctx, cancel := context.WithTimeout(s, c.Timeout)
	defer cancel()
	lookupResult := reader.LookUpPayment(ctx, operator.StatusCall{
		Call:    operator.Call{Operator: account.Operator, AccountID: account.Account, IdempotencyKey: checkOrderID, Country: row.Countries[0]},
		Channel: row.Channels[0], Lang: "en",
	})
	result := accountCheck{accountView: account, OK: lookupResult.OrderNotFound || lookupResult.StatusKnown}
	if !result.OK && lookupResult.Cause != nil {
		result.Error = lookupResult.Cause.Error()
	}
	return result
}
