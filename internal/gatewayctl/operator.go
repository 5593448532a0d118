package gatewayctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
)

type operatorCommands struct {
	Set         operatorSet         `cmd:"" help:"Add or renew credentials from a file, and show the difference."`
	RotateToken operatorRotateToken `cmd:"" help:"Renew the access token of one account."`
	List        operatorList        `cmd:"" help:"List the operators' accounts, without tokens."`
	Check       operatorCheck       `cmd:"" help:"Check each operation of an account; it sends only a status lookup."`
	Route       routeCommands       `cmd:"" help:"Routes: which account serves an operator's new orders."`
}

// operatorCredentials is one platform in the secret. It keeps each account as it was written, with unknown fields.
type operatorCredentials struct {
	Current  string                     `json:"current"`
	Accounts map[string]json.RawMessage `json:"accounts"`
}

// credentialsByOperator are the accounts in the secret's document, by the platform's name.
type credentialsByOperator map[string]operatorCredentials

// routesKey is the member of the secret's document that has the routes, by the operator's name.
const routesKey = "routes"

// storedCredentials are the deployment's credentials, and the secret that has them.
type storedCredentials struct {
	secret    StoredSecret
	operators credentialsByOperator
	routes    map[string][]operator.Route
}

// parse parses the secret's document. The error never quotes it.
func (c *storedCredentials) parse() error {
	c.operators = credentialsByOperator{}
	if len(c.secret.Value) == 0 {
		return nil
	}
	var document struct {
		Routes map[string][]operator.Route `json:"routes"`
	}
	if json.Unmarshal(c.secret.Value, &c.operators) != nil || c.operators == nil ||
		json.Unmarshal(c.secret.Value, &document) != nil {
		return errors.New("the credentials are not JSON of this form: " +
			`{"<platform>":{"current":"<account>","accounts":{"<account>":{...}}},"routes":{"<operator>":[...]}}`)
	}
	delete(c.operators, routesKey)
	c.routes = document.Routes
	return nil
}

// encode returns the secret's document.
func (c storedCredentials) encode() ([]byte, error) {
	document := map[string]any{}
	for name, platform := range c.operators {
		document[name] = platform
	}
	if len(c.routes) > 0 {
		document[routesKey] = c.routes
	}
	value, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return value, checkCredentialsSize(value)
}

// table returns the routes as the functions read them.
func (c storedCredentials) table() operator.Routes {
	table := operator.Routes{ByOperator: c.routes}
	for name, platform := range c.operators {
		if len(platform.Accounts) > 0 {
			table.Platforms = append(table.Platforms, name)
		}
	}
	return table
}

// ProvideCredentials returns the credentials for the Run methods below operator (kong's provider).
func (operatorCommands) ProvideCredentials(s *session) (stored storedCredentials, err error) {
	stored.secret, err = readSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err == nil {
		err = stored.parse()
	}
	return stored, err
}

func unknownOperatorError(name string) error {
	return fmt.Errorf("operator %q is not one of %s", name, joinComma(operator.Names()))
}

// unknownPlatformError is the error for a platform that this version does not know, or has no driver for.
func unknownPlatformError(name string) error {
	all := servedPlatforms(func(operator.Capabilities) bool { return true })
	return fmt.Errorf("platform %q is not one of those with a driver: %s", name, joinComma(all))
}

// servedPlatforms lists the platforms that have a driver and whose row is accepted.
func servedPlatforms(accepts func(operator.Capabilities) bool) []string {
	directory := drivers.NewDirectory(nil, nil, nil)
	return slices.DeleteFunc(operator.Platforms(), func(platform string) bool {
		_, row, found := directory.Driver(platform)
		return !found || !accepts(row)
	})
}

// accountView is an account of a platform without its tokens. Operator is the platform's name.
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
