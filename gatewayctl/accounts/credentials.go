// Package accounts has gatewayctl's commands for the gateway's accounts at operators' platforms.
package accounts

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
)

// Commands are the commands below operator.
type Commands struct {
	Set         operatorSet         `cmd:"" help:"Add or renew credentials from a file, and show the difference."`
	RotateToken operatorRotateToken `cmd:"" help:"Renew the access token of one account."`
	List        operatorList        `cmd:"" help:"List the operators' accounts, without tokens."`
	Check       operatorCheck       `cmd:"" help:"Check each operation of an account; it sends only a status lookup."`
	Route       routeCommands       `cmd:"" help:"Routes: which account serves an operator's new orders."`
	Status      operatorStatus      `cmd:"" help:"Show whether accounts take new transactions: their circuits."`
	Circuit     circuitCommands     `cmd:"" help:"Circuits: refuse or accept an account's new transactions."`
}

// ProvideCredentials returns the credentials for the Run methods below operator (kong's provider).
func (Commands) ProvideCredentials(s *session.Session) (Stored, error) { return ReadStored(s) }

type operatorList struct{}

// Run lists the accounts.
func (c *operatorList) Run(s *session.Session, stored Stored) error {
	return session.ShowList(s, accountViews(stored.operators))
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

// Stored are the deployment's credentials, and the secret that has them.
type Stored struct {
	Secret    deployment.StoredSecret
	operators credentialsByOperator
	routes    map[string][]operator.Route
}

// ReadStored reads the deployment's credentials.
func ReadStored(s *session.Session) (stored Stored, err error) {
	stored.Secret, err = session.ReadSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err == nil {
		err = stored.parse()
	}
	return stored, err
}

// parse parses the secret's document. The error never quotes it.
func (c *Stored) parse() error {
	c.operators = credentialsByOperator{}
	if len(c.Secret.Value) == 0 {
		return nil
	}
	var document struct {
		Routes map[string][]operator.Route `json:"routes"`
	}
	if json.Unmarshal(c.Secret.Value, &c.operators) != nil || c.operators == nil ||
		json.Unmarshal(c.Secret.Value, &document) != nil {
		return errors.New("the credentials are not JSON of this form: " +
			`{"<platform>":{"current":"<account>","accounts":{"<account>":{...}}},"routes":{"<operator>":[...]}}`)
	}
	delete(c.operators, routesKey)
	c.routes = document.Routes
	return nil
}

func (c Stored) encode() ([]byte, error) {
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

// Table returns the routes as the functions read them.
func (c Stored) Table() operator.Routes {
	table := operator.Routes{ByOperator: c.routes}
	for name, platform := range c.operators {
		if len(platform.Accounts) > 0 {
			table.Platforms = append(table.Platforms, name)
		}
	}
	return table
}

// AccountIDs lists the accounts of a platform.
func (c Stored) AccountIDs(platform string) []string {
	return slices.Sorted(maps.Keys(c.operators[platform].Accounts))
}

// AccountView is an account of a platform without its tokens. Operator is the platform's name.
type AccountView struct {
	Operator string `json:"operator" col:"OPERATOR"`
	Account  string `json:"account" col:"ACCOUNT"`
	Current  bool   `json:"current" col:"CURRENT"`
	BaseURL  string `json:"base_url" col:"BASE URL"`
}

func accountViews(operators credentialsByOperator) []AccountView {
	var views []AccountView
	for _, name := range slices.Sorted(maps.Keys(operators)) {
		for _, id := range slices.Sorted(maps.Keys(operators[name].Accounts)) {
			fields := credentials.ReadFields(operators[name].Accounts[id]) // the driver validates accounts
			views = append(views, AccountView{name, id, id == operators[name].Current, fields["base_url"]})
		}
	}
	return views
}

// countriesOf lists the countries that an account serves: those of its routes, or all countries of a platform that
// serves its own operator without a route.
func (c Stored) countriesOf(account AccountView) []string {
	if row, _ := operator.FindCapabilities(account.Operator); slices.Contains(operator.Names(), row.Platform) {
		return row.Countries()
	}
	countries := output.MapAll(c.servicesOf(account), func(service operator.Service) string { return service.Country })
	slices.Sort(countries)
	return slices.Compact(countries)
}

// servicesOf lists the services that a route leads to an account, each operator and country once.
func (c Stored) servicesOf(account AccountView) (services []operator.Service) {
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

// NewDirectory returns the drivers with credentials, which need not be stored.
func NewDirectory(s *session.Session, credentials []byte) *operator.DriverDirectory {
	return drivers.NewDirectory(secret.Static(credentials), nil, s.Now)
}

// NewConfirmer returns what looks payments up for a command, each lookup within a time.
func NewConfirmer(
	s *session.Session, directory *operator.DriverDirectory, timeout time.Duration,
) *confirm.Confirmer {
	return &confirm.Confirmer{Operators: directory, LookupTimeout: timeout, LookupRates: s.Stores.LookupRates}
}

// LookUp looks a payment up once the rate of its account has a lookup for it (decision "lookup-rate").
func LookUp(s *session.Session, confirmer *confirm.Confirmer, e *ledger.Entry) confirm.LookupResult {
	if err := confirmer.AwaitLookup(s, operator.PinOf(e), s.Stores.Sleep); err != nil {
		return confirm.LookupResult{Supported: true, Cause: err}
	}
	return confirmer.LookUp(s, e)
}

// UnknownOperatorError is the error for an operator that this version does not know.
func UnknownOperatorError(name string) error {
	return fmt.Errorf("operator %q is not one of %s", name, output.JoinComma(operator.Names()))
}

// UnknownPlatformError is the error for a platform that this version does not know, or has no driver for.
func UnknownPlatformError(name string) error {
	all := servedPlatforms(func(operator.Capabilities) bool { return true })
	return fmt.Errorf("platform %q is not one of those with a driver: %s", name, output.JoinComma(all))
}

// servedPlatforms lists the platforms that have a driver and whose row is accepted.
func servedPlatforms(accepts func(operator.Capabilities) bool) []string {
	directory := drivers.NewDirectory(nil, nil, nil)
	return slices.DeleteFunc(operator.Platforms(), func(platform string) bool {
		_, row, found := directory.Driver(platform)
		return !found || !accepts(row)
	})
}

// CredentialsSubject is the subject of the audit records of changed operators' credentials.
const CredentialsSubject = "operators"

type accountSchema struct {
	row    operator.Capabilities
	fields []operator.AccountField
}

// find returns the field of a path, which has a country in the place of countrySuffix.
func (a accountSchema) find(path string) (operator.AccountField, bool) {
	for _, field := range a.fields {
		if field.Path == path {
			return field, true
		}
		group, each := strings.CutSuffix(field.Path, countrySuffix)
		country, inGroup := strings.CutPrefix(path, group+".")
		if each && inGroup && slices.Contains(a.row.Countries(), country) {
			return field, true
		}
	}
	return operator.AccountField{}, false
}

// isGroup reports whether a path has fields below it.
func (a accountSchema) isGroup(path string) bool {
	return path == "" || slices.ContainsFunc(a.fields, func(field operator.AccountField) bool {
		return strings.HasPrefix(field.Path, path+".")
	})
}

// paths lists the fields for an error.
func (a accountSchema) paths() string {
	countries := "." + strings.Join(a.row.Countries(), "|")
	return output.JoinComma(output.MapAll(a.fields, func(field operator.AccountField) string {
		return strings.Replace(field.Path, countrySuffix, countries, 1)
	}))
}

// unusable lists the fields without which an operation cannot be made, each with its fault. A field for each country
// needs one value at least, and one for each of the countries.
func (a accountSchema) unusable(account map[string]string, operation string, countries ...string) []string {
	var faults []string
	for _, field := range a.fields {
		if !slices.Contains(field.NeededBy, operation) {
			continue
		}
		group, each := strings.CutSuffix(field.Path, countrySuffix)
		hasValue := func(code string) bool { return account[group+"."+code] != "" }
		lacking := slices.DeleteFunc(slices.Clone(countries), hasValue)
		switch {
		case !each && account[field.Path] == "" || each && !slices.ContainsFunc(a.row.Countries(), hasValue):
			faults = append(faults, group+" is missing")
		case each && len(lacking) > 0:
			faults = append(faults, group+" is missing for "+output.JoinComma(lacking))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(account)) {
		field, known := a.find(path)
		if !known || account[path] == "" || !slices.Contains(field.NeededBy, operation) {
			continue
		}
		if err := field.Check(account[path]); err != nil {
			faults = append(faults, path+" "+err.Error())
		}
		isForOther := func(country string) bool { return field.IsForOther(account[path], country) }
		if other := slices.IndexFunc(countries, isForOther); other >= 0 {
			faults = append(faults, path+" is for another country than "+countries[other])
		}
	}
	return faults
}

// findAccountSchema returns the fields that the platform's own driver declares.
func findAccountSchema(platform string) (accountSchema, error) {
	row, known := operator.FindCapabilities(platform)
	fields, served := drivers.NewDirectory(nil, nil, nil).AccountFields(platform)
	if !known || !served {
		return accountSchema{}, UnknownPlatformError(platform)
	}
	return accountSchema{row, fields}, nil
}

// RenewArguments are the arguments of the command that renews what the operator refuses of an account: its token, or
// the secrets of a platform that has no fixed token.
func RenewArguments(account operator.Pin) []string {
	schema, _ := findAccountSchema(account.Platform) // a platform that is not known has no field
	if _, hasToken := schema.find("access_token"); !hasToken {
		return session.ConfirmArguments("operator", "set", "FILE")
	}
	return session.ConfirmArguments("operator", "rotate-token", account.Platform, "FILE", "--account", account.Account)
}

// countrySuffix ends the path of a field with one text for each country.
const countrySuffix = ".*"

// AccountKey returns a pin that equals those of the same account, however they write the platform's name.
func AccountKey(pin operator.Pin) operator.Pin {
	return operator.Pin{Platform: strings.ToLower(pin.Platform), Account: pin.Account}
}

// storedAs returns the account that a platform stores under an id. The ids 2024 and orange/2024 of orange are one
// account, as transactions are pinned to it.
func storedAs(platform, id string) operator.Pin { return AccountKey(operator.ParsePin(id, platform)) }

// maxCredentialsBytes is the size of the largest secret in bytes.
const maxCredentialsBytes = 64 << 10

// checkCredentialsSize refuses a document that no secret can store.
func checkCredentialsSize(text []byte) error {
	if len(text) > maxCredentialsBytes {
		return output.UsageError("the credentials have more than %d bytes: remove unused accounts", maxCredentialsBytes)
	}
	return nil
}
