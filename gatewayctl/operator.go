package gatewayctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
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

// newDirectory returns the drivers with credentials, which need not be stored.
func newDirectory(s *session, credentials []byte) *operator.DriverDirectory {
	return drivers.NewDirectory(secret.Static(credentials), nil, s.Now)
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
			fields := credentials.ReadFields(operators[name].Accounts[id]) // the driver validates accounts
			views = append(views, accountView{name, id, id == operators[name].Current, fields["base_url"]})
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

type operationCheck struct {
	accountView
	Operation string `json:"operation" col:"OPERATION"`
	OK        bool   `json:"ok" col:"OK"`
	Error     string `json:"error,omitempty" col:"ERROR"`

	advice string // what to do if it does not work
}

// accountAdvice returns what to do about an account with unusable fields, or whose lookup failed.
func accountAdvice(s *session, a accountView, unusable, failed string) string {
	text := "nothing shows that its credentials are wrong, so change none. If the error stays, the operator is down, " +
		"or its base_url is wrong: docs/operations.md has the runbook"
	switch {
	case unusable != "":
		text = "correct what the error names: " + s.toolCommand(confirmArguments("operator", "set", "FILE")...)
	case strings.HasPrefix(failed, fault.IntegrationRejected.String()):
		command := renewArguments(accountRef{a.Operator, a.Account})
		text = "the operator refuses its credentials: " + s.toolCommand(command...)
	}
	return fmt.Sprintf("account %s of %s: %s", a.Account, a.Operator, text)
}

// Run checks each operation of the accounts. It checks the fields locally, and the address and the token by a status
// lookup, in which a driver also exchanges its token if it must. It never sends a charge, a payment or an SMS.
func (c *operatorCheck) Run(s *session, stored storedCredentials) error {
	for _, name := range c.Names {
		if _, found := stored.operators[name]; !found {
			return fmt.Errorf("there are no credentials for operator %q: add them with operator set", name)
		}
	}
	directory := newDirectory(s, stored.secret.Value)
	var results []operationCheck
	var failed error
	for _, account := range accountViews(stored.operators) {
		if len(c.Names) > 0 && !slices.Contains(c.Names, account.Operator) {
			continue
		}
		results = append(results, c.checkAccount(s, directory, account, stored)...)
	}
	for i, r := range results {
		isSame := func(earlier operationCheck) bool { return earlier.advice == r.advice }
		if !r.OK && !slices.ContainsFunc(results[:i], isSame) {
			failed = errors.Join(failed, errors.New(r.advice))
		}
	}
	return errors.Join(showList(s, results), failed)
}

// countriesOf lists the countries that an account serves: those of its routes, or all countries of a platform that
// serves its own operator without a route.
func (c storedCredentials) countriesOf(account accountView) []string {
	if row, _ := operator.FindCapabilities(account.Operator); slices.Contains(operator.Names(), row.Platform) {
		return row.Countries()
	}
	countries := mapAll(c.servicesOf(account), func(service operator.Service) string { return service.Country })
	slices.Sort(countries)
	return slices.Compact(countries)
}

// servicesOf lists the services that a route leads to an account, each operator and country once.
func (c storedCredentials) servicesOf(account accountView) (services []operator.Service) {
	for _, name := range slices.Sorted(maps.Keys(c.routes)) {
		for _, route := range c.routes[name] {
			service := operator.Service{Operator: name, Country: route.Country}
			if route.To == account.Operator+"/"+account.Account && !slices.Contains(services, service) {
				services = append(services, service)
			}
		}
	}
	return services
}

// compare compares the configuration that the platform shows of an account with what the gateway sends there, and
// prints it. It returns what does not fit.
func (c *operatorCheck) compare(
	s *session, directory *operator.DriverDirectory, account accountView, stored storedCredentials,
) string {
	driver, _, _ := directory.Driver(account.Operator)
	checker, shows := driver.(operator.AccountChecker)
	if !shows {
		return ""
	}
	ctx, cancel := context.WithTimeout(s, c.Timeout)
	defer cancel()
	notes, err := checker.CheckAccount(ctx, operator.Call{
		Platform: account.Operator, AccountID: account.Account, OrderID: checkOrderID, DriverData: checkOrderID,
	}, stored.servicesOf(account))
	for _, note := range notes {
		fmt.Fprintf(s.Stderr, "Account %s of %s: %s.\n", account.Account, account.Operator, strings.TrimSpace(note))
	}
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// checkAccount checks each operation of one account. One lookup is the proof for all.
func (c *operatorCheck) checkAccount(
	s *session, directory *operator.DriverDirectory, account accountView, stored storedCredentials,
) []operationCheck {
	schema, err := findAccountSchema(account.Operator)
	if err != nil {
		return []operationCheck{{account, "", false, err.Error(), err.Error()}}
	}
	fields := credentials.ReadFields(stored.operators[account.Operator].Accounts[account.Account])
	countries := stored.countriesOf(account)
	refused := c.lookUp(s, directory, account)
	if refused == "" {
		refused = c.compare(s, directory, account, stored)
	}
	var results []operationCheck
	for _, operation := range schema.row.AccountOperations() {
		unusable := strings.Join(schema.unusable(fields, operation, countries...), "; ")
		text := cmp.Or(unusable, refused)
		advice := accountAdvice(s, account, unusable, refused)
		results = append(results, operationCheck{account, operation, text == "", text, advice})
	}
	return results
}

// lookUp looks up the status of an order that does not exist, in the operator's own protocol. It returns why the
// account is not proven to work, "" if it is.
func (c *operatorCheck) lookUp(s *session, directory *operator.DriverDirectory, account accountView) string {
	row, _ := operator.FindCapabilities(account.Operator)
	if !row.HasStatusLookup {
		fmt.Fprintf(s.Stderr, "Account %s of %s was not looked up: the platform has no status lookup.\n",
			account.Account, row.Platform)
		return ""
	}
	key, err := operator.NewPaymentKey(row.KeyForm, checkOrderID, strings.NewReader(checkOrderID))
	if err != nil {
		return err.Error()
	}
	probe := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: checkOrderID}, UpstreamKey: key,
		Operator: row.Reach[0].Operator, Country: row.Countries()[0], Account: account.Operator + "/" + account.Account,
		Material: checkOrderID, // for platforms that look up payments by a key of their own
	}
	reader, offered := directory.StatusLookup(probe)
	if !offered {
		return "the driver has no status lookup: the address and the token cannot be checked"
	}
	ctx, cancel := context.WithTimeout(s, c.Timeout)
	defer cancel()
	found := reader.LookUpPayment(ctx, operator.StatusCall{
		Call: operator.NewCall(probe), Channel: row.Channels[0], Lang: "en", Amount: "1",
	})
	if found.Responded() {
		return ""
	}
	return cmp.Or(found.Cause, errors.New("the status lookup had no result")).Error()
}
