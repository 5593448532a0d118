package gatewayctl

import (
	"cmp"
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
	Set   operatorSet   `cmd:"" help:"Add or renew credentials from a file."`
	List  operatorList  `cmd:"" help:"List the operators' accounts, without tokens."`
	Check operatorCheck `cmd:"" help:"Look up the status of an order that does not exist, with each account."`
}

// operatorCredentials is one operator in the secret. It keeps each account as it was written, with unknown fields.
type operatorCredentials struct {
	Current  string                     `json:"current"`
	Accounts map[string]json.RawMessage `json:"accounts"`
}

// credentialsByOperator is the secret's document, by the operator's name.
type credentialsByOperator map[string]operatorCredentials

// parseOperatorCredentials parses the secret's document. The error never quotes it.
func parseOperatorCredentials(text []byte) (credentialsByOperator, error) {
	operators := credentialsByOperator{}
	if len(text) == 0 {
		return operators, nil
	}
	if json.Unmarshal(text, &operators) != nil || operators == nil {
		return nil, errors.New("the credentials are not JSON of this form: " +
			`{"<operator>":{"current":"<account>","accounts":{"<account>":{...}}}}`)
	}
	return operators, nil
}

// storedCredentials are the deployment's credentials, and the secret that has them.
type storedCredentials struct {
	secret    StoredSecret
	operators credentialsByOperator
}

// ProvideCredentials returns the credentials for the Run methods below operator (kong's provider).
func (operatorCommands) ProvideCredentials(s *session) (stored storedCredentials, err error) {
	stored.secret, err = readSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err == nil {
		stored.operators, err = parseOperatorCredentials(stored.secret.Value)
	}
	return stored, err
}

func unknownOperatorError(name string) error {
	return fmt.Errorf("operator %q is not one of %s", name, joinComma(operator.Names()))
}

// maxCredentialsBytes is the size of the largest secret in bytes.
const maxCredentialsBytes = 64 << 10

type operatorSet struct {
	File    string `arg:"" predictor:"file" help:"File with the credentials; - for the standard input."`
	Replace bool   `help:"Drop the accounts that the file does not name. Live transactions need theirs."`
}

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
	if len(text) == 0 {
		return nil, usageError("the credentials in %s are empty", c.File)
	}
	return text, checkCredentialsSize(text)
}

// checkCredentialsSize refuses a document that no secret can store.
func checkCredentialsSize(text []byte) error {
	if len(text) > maxCredentialsBytes {
		return usageError("the credentials have more than %d bytes: remove unused accounts", maxCredentialsBytes)
	}
	return nil
}

// Run merges the file into the secret. It adds or renews the file's accounts and makes its current accounts current.
// The other accounts stay.
func (c *operatorSet) Run(s *session) error {
	text, err := c.readFile(s)
	if err != nil {
		return err
	}
	given, err := parseOperatorCredentials(text)
	if err != nil {
		return usageError("%w", err)
	}
	current, err := operatorCommands{}.ProvideCredentials(s)
	if err != nil {
		return err
	}
	stored := current.operators
	if c.Replace {
		stored = credentialsByOperator{}
	}
	stored.merge(given)
	value, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	if err := errors.Join(checkCurrentAccounts(s, value, stored), checkCredentialsSize(value)); err != nil {
		return usageError("%w", err)
	}
	return s.executeAndShow("set operators' credentials", "operators", func() (string, error) {
		return "operators " + joinComma(slices.Sorted(maps.Keys(given))), s.stores.Secrets.Put(s, current.secret, value)
	}, func() error { return showList(s, accountViews(stored)) })
}

// merge adds or renews the given accounts.
func (o credentialsByOperator) merge(given credentialsByOperator) {
	for name, p := range given {
		name = strings.ToLower(name)
		merged := operatorCredentials{cmp.Or(p.Current, o[name].Current), map[string]json.RawMessage{}}
		maps.Copy(merged.Accounts, o[name].Accounts)
		maps.Copy(merged.Accounts, p.Accounts)
		o[name] = merged
	}
}

// checkCurrentAccounts lets each operator's own driver validate the current account.
func checkCurrentAccounts(s *session, value []byte, operators credentialsByOperator) error {
	directory := drivers.NewDirectory(secret.Static(value), nil, s.Now)
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(operators)) {
		driver, _, known := directory.Driver(name)
		if !known {
			faults = append(faults, unknownOperatorError(name))
			continue
		}
		if _, err := driver.CurrentAccountID(s, name); err != nil {
			// The driver's own text is for the functions; the wrapped error names the cause.
			faults = append(faults, fmt.Errorf("%s: %w", name, cmp.Or(errors.Unwrap(err), err)))
		}
	}
	return errors.Join(faults...)
}

// accountView is an account without its tokens.
type accountView struct {
	Operator string `json:"operator" col:"OPERATOR"`
	Account  string `json:"account" col:"ACCOUNT"`
	Current  bool   `json:"current" col:"CURRENT"`
	BaseURL  string `json:"base_url" col:"BASE URL"`
}

func accountViews(operators credentialsByOperator) []accountView {
	var views []accountView
	for _, name := range slices.Sorted(maps.Keys(operators)) {
		for _, id := range slices.Sorted(maps.Keys(operators[name].Accounts)) {
			var account struct {
				BaseURL string `json:"base_url"`
			}
			_ = json.Unmarshal(operators[name].Accounts[id], &account) // the driver validates accounts
			views = append(views, accountView{name, id, id == operators[name].Current, account.BaseURL})
		}
	}
	return views
}

type operatorList struct{}

// Run lists the accounts.
func (c *operatorList) Run(s *session, stored storedCredentials) error {
	return showList(s, accountViews(stored.operators))
}

type operatorCheck struct {
	Names   []string      `arg:"" optional:"" name:"operator" help:"Which operators; all if none is given."`
	Timeout time.Duration `default:"10s" help:"The longest wait for a response."`
}

// checkOrderID is an order_id that cannot exist: a merchant's name has no hyphen.
const checkOrderID = "check-gatewayctl_1"

type accountCheck struct {
	accountView
	OK    bool   `json:"ok" col:"OK"`
	Error string `json:"error,omitempty" col:"ERROR"`
}

var errAccountCheck = errors.New("an account does not work: see its error, and renew it with operator set")

// Run checks the accounts. An account works if the operator responds that the order does not exist.
func (c *operatorCheck) Run(s *session, stored storedCredentials) error {
	for _, name := range c.Names {
		if _, found := stored.operators[name]; !found {
			return fmt.Errorf("there are no credentials for operator %q: add them with operator set", name)
		}
	}
	directory := drivers.NewDirectory(secret.Static(stored.secret.Value), nil, s.Now)
	var results []accountCheck
	var failed error
	for _, account := range accountViews(stored.operators) {
		if len(c.Names) > 0 && !slices.Contains(c.Names, account.Operator) {
			continue
		}
		result := c.checkAccount(s, directory, account)
		if !result.OK {
			failed = errAccountCheck
		}
		results = append(results, result)
	}
	return errors.Join(showList(s, results), failed)
}

// checkAccount looks up the status with one account, in the operator's own protocol.
func (c *operatorCheck) checkAccount(
	s *session, directory *operator.DriverDirectory, account accountView,
) accountCheck {
	row, known := operator.FindCapabilities(account.Operator)
	reader, offered := directory.StatusLookup(account.Operator)
	if !known || !offered {
		return accountCheck{account, false, "the operator offers no status lookup: its account cannot be checked"}
	}
	ctx, cancel := context.WithTimeout(s, c.Timeout)
	defer cancel()
	found := reader.LookUpPayment(ctx, operator.StatusCall{
		Call: operator.Call{
			Operator: account.Operator, AccountID: account.Account, UpstreamKey: checkOrderID,
			Country: row.Countries[0],
		},
		Channel: row.Channels[0], Lang: "en",
	})
	result := accountCheck{accountView: account, OK: found.OrderNotFound || found.StatusKnown}
	if !result.OK && found.Cause != nil {
		result.Error = found.Cause.Error()
	}
	return result
}
