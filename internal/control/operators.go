package control

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

// platform is an operator in the secret. Accounts are kept as they are written, fields that we do not know included.
type platform struct {
	Current  string                     `json:"current"`
	Accounts map[string]json.RawMessage `json:"accounts"`
}

// readPlatforms reads the credentials' document. The error never quotes it.
func readPlatforms(text []byte) (map[string]platform, error) {
	platforms := map[string]platform{}
	if len(text) == 0 {
		return platforms, nil
	}
	if json.Unmarshal(text, &platforms) != nil || platforms == nil {
		return nil, errors.New(`the credentials are not the JSON they should be: {"<operator>":{"current":"<account>","accounts":{"<account>":{...}}}}`)
	}
	return platforms, nil
}

// fixed is a value as a cached secret, for the drivers.
type fixed []byte

// Get implements drivers.Secrets.
func (f fixed) Get(context.Context) (secret.Value, error) { return secret.Value{Current: f}, nil }

// Refresh implements drivers.Secrets.
func (f fixed) Refresh(context.Context) (secret.Value, error) { return secret.Value{Current: f}, nil }

// maxCredentials is the largest file of credentials in bytes: what a secret can hold.
const maxCredentials = 64 << 10

type operatorSet struct {
	File    string `arg:"" help:"The file with the credentials; - for the standard input. They are never an argument."`
	Replace bool   `help:"Drop the accounts that the file does not name. Live transactions are pinned to theirs."`
}

// read reads the file.
func (c *operatorSet) read(s *session) ([]byte, error) {
	from := s.In
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return nil, usage("%w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxCredentials+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxCredentials || len(text) == 0 {
		return nil, usage("the credentials are empty, or more than %d bytes", maxCredentials)
	}
	return text, nil
}

// Run merges the file into the secret: its operators' current accounts become current, its accounts are added or
// renewed, and the others stay.
func (c *operatorSet) Run(s *session) error {
	text, err := c.read(s)
	if err != nil {
		return err
	}
	given, err := readPlatforms(text)
	if err != nil {
		return usage("%w", err)
	}
	held, err := readSecret(s, s.OperatorSecret, "OPERATOR_SECRET")
	if err != nil {
		return err
	}
	stored, err := readPlatforms(held.Value)
	if err != nil {
		return err
	}
	if c.Replace {
		stored = map[string]platform{}
	}
	merge(stored, given)
	value, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	if err := usable(s, value, stored); err != nil {
		return usage("%w", err)
	}
	err = s.hand.act(Act{"set operators' credentials", "operators"}, func() (string, error) {
		return "operators " + list(slices.Sorted(maps.Keys(given))), s.hand.putSecret(held, value)
	})
	if err != nil {
		return err
	}
	return showAccounts(s, accountsOf(stored))
}

func merge(into, given map[string]platform) {
	for name, p := range given {
		name = strings.ToLower(name)
		merged := platform{Current: or(p.Current, into[name].Current), Accounts: map[string]json.RawMessage{}}
		maps.Copy(merged.Accounts, into[name].Accounts)
		maps.Copy(merged.Accounts, p.Accounts)
		into[name] = merged
	}
}

// usable asks each operator's own driver whether it could use the current account.
func usable(s *session, value []byte, platforms map[string]platform) error {
	directory := drivers.Directory(fixed(value), s.Now)
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(platforms)) {
		driver, _, known := directory.Driver(name)
		if !known {
			faults = append(faults, fmt.Errorf("operator %q is not one of %s", name, list(operator.Names())))
			continue
		}
		if _, err := driver.Account(s, name); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, unwrapped(err)))
		}
	}
	return errors.Join(faults...)
}

// unwrapped is what a driver's fault is about, without the fault's own words, which are for the functions.
func unwrapped(err error) error {
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

func accountsOf(platforms map[string]platform) []accountView {
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
	held, err := readSecret(s, s.OperatorSecret, "OPERATOR_SECRET")
	if err != nil {
		return err
	}
	platforms, err := readPlatforms(held.Value)
	if err != nil {
		return err
	}
	return showAccounts(s, accountsOf(platforms))
}

type operatorCheck struct {
	Names   []string      `arg:"" optional:"" name:"operator" help:"Which operators; without, all."`
	Timeout time.Duration `default:"10s" help:"The longest wait for an answer."`
}

// checkOrder is an order_id that nobody has: no merchant's name has a hyphen.
const checkOrder = "check-gatewayctl_1"

// checked is what came of one account's check.
type checked struct {
	accountView
	OK  bool   `json:"ok"`
	Why string `json:"why,omitempty"`
}

var errCheck = errors.New("not every account works")

// Run checks the accounts. An answer in the operator's own words, that there is no such order, is what is wanted.
func (c *operatorCheck) Run(s *session) error {
	held, err := readSecret(s, s.OperatorSecret, "OPERATOR_SECRET")
	if err != nil {
		return err
	}
	platforms, err := readPlatforms(held.Value)
	if err != nil {
		return err
	}
	for _, name := range c.Names {
		if _, there := platforms[name]; !there {
			return fmt.Errorf("there are no credentials for operator %q", name)
		}
	}
	directory := drivers.Directory(fixed(held.Value), s.Now)
	results, failed := []checked{}, error(nil)
	rows := table{{"OPERATOR", "ACCOUNT", "CURRENT", "BASE URL", "OK", "WHY"}}
	for _, account := range accountsOf(platforms) {
		if len(c.Names) > 0 && !slices.Contains(c.Names, account.Operator) {
			continue
		}
		result := c.ask(s, directory, account)
		if !result.OK {
			failed = errCheck
		}
		results = append(results, result)
		rows = append(rows, []string{account.Operator, account.Account, fmt.Sprint(account.Current), account.BaseURL, fmt.Sprint(result.OK), result.Why})
	}
	return errors.Join(s.show(results, rows), failed)
}

// ask makes the call with one account, in the operator's own protocol.
func (c *operatorCheck) ask(s *session, directory *operator.Directory, account accountView) checked {
	row, known := operator.Find(account.Operator)
	reader, offered := directory.StatusReader(account.Operator)
	if !known || !offered {
		return checked{account, false, "the operator's row in the table offers no status lookup"}
	}
	ctx, cancel := context.WithTimeout(s, c.Timeout)
	defer cancel()
	told := reader.PaymentStatus(ctx, operator.StatusCall{
		Call:    operator.Call{Operator: account.Operator, Account: account.Account, Key: checkOrder, Country: row.Countries[0]},
		Channel: row.Channels[0], Lang: "en",
	})
	result := checked{accountView: account, OK: told.NotFound || told.Known}
	if !result.OK && told.Cause != nil {
		result.Why = told.Cause.Error()
	}
	return result
}
