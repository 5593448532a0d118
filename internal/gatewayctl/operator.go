package gatewayctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"mobilegateway/shared/operator"
)

type operatorCommands struct {
	Set         operatorSet         `cmd:"" help:"Add or renew credentials from a file, and show the difference."`
	RotateToken operatorRotateToken `cmd:"" help:"Renew the access token of one account."`
	List        operatorList        `cmd:"" help:"List the operators' accounts, without tokens."`
	Check       operatorCheck       `cmd:"" help:"Check each operation of an account; it sends only a status lookup."`
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
