// Package mtn is the driver for the Collections product of the MTN MoMo Open API. It requests a payment, which the
// payer approves on the phone, and looks it up by the UUID under which it was requested.
//
// It keeps no state of a transaction. It sends a payment once, and a second time under the same UUID only if the token
// was refused. Its invariant: an outcome is Succeeded, Refused or NotApplied only if MTN's documented
// response, or the lack of a connection, proves it (docs/operators/mtn.md).
package mtn

import (
	"errors"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
)

const paymentPath = "/collection/v1_0/requesttopay"

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct{ upstream.Base }

// New makes the driver. It neither fetches nor connects yet.
func New(accounts *credentials.Reader, client *upstream.Client, tokens *upstream.Tokens) *Driver {
	return &Driver{upstream.Base{
		Accounts: accounts, Client: client, Tokens: tokens, Operation: operator.AccountPay, Fields: accountFields(),
		Header: func(account credentials.Account) map[string]string {
			return map[string]string{
				"Ocp-Apim-Subscription-Key": account.Field(fieldSubscription),
				"X-Target-Environment":      account.Field(fieldEnvironment),
			}
		},
		Credentials: upstream.ClientCredentials{
			Path: "/collection/token/", ID: fieldAPIUser, Secret: fieldAPIKey, HasNoForm: true,
			RefusalError: "login_failed", RenewBefore: 10 * time.Minute,
		},
	}}
}

// The paths of an account's fields.
const (
	fieldAPIUser      = "api_user"
	fieldAPIKey       = "api_key"
	fieldSubscription = "subscription_key"
	fieldEnvironment  = "target_environment"
	fieldCurrency     = "currency"
)

// The target environments. The sandbox takes the numbers of all countries. mtncongo is not here: it is the Republic of
// the Congo, so it would send payments of DR Congo to another country.
const (
	sandboxEnvironment    = "sandbox"
	ivoryCoastEnvironment = "mtnivorycoast"
	cameroonEnvironment   = "mtncameroon"
)

func accountFields() []operator.AccountField {
	needed := []string{operator.AccountPay}
	return []operator.AccountField{
		{Path: "base_url", Identity: true, NeededBy: needed, Check: operator.CheckBaseURL},
		{Path: fieldAPIUser, Identity: true, NeededBy: needed, Check: checkAPIUser},
		{Path: fieldAPIKey, Secret: true, NeededBy: needed, Check: operator.CheckHeaderText},
		{Path: fieldSubscription, Secret: true, NeededBy: needed, Check: operator.CheckHeaderText},
		{Path: fieldEnvironment, Identity: true, NeededBy: needed, Check: checkEnvironment, CountryOf: countryOf},
		{Path: fieldCurrency, Check: operator.CheckHeaderText},
	}
}

// checkAPIUser accepts the characters of a UUID: a colon would end the user's name in the header.
func checkAPIUser(text string) error {
	if len(text) != 36 || !ascii.ConsistsOf(text, ascii.Digits+"abcdefABCDEF-") {
		return logsafe.New("is not a UUID")
	}
	return nil
}

func checkEnvironment(text string) error {
	known := []string{sandboxEnvironment, ivoryCoastEnvironment, cameroonEnvironment}
	if !slices.Contains(known, text) {
		return errors.New("is not one of " + strings.Join(known, ", "))
	}
	return nil
}

// countryOf returns the country (alpha-2) of an environment, "" for the sandbox.
func countryOf(environment string) string {
	return map[string]string{ivoryCoastEnvironment: "CI", cameroonEnvironment: "CM"}[environment]
}

// testCurrency returns the currency of the sandbox, "" for the merchant's. No other environment has one of its own.
func testCurrency(account credentials.Account) string {
	if account.Field(fieldEnvironment) != sandboxEnvironment {
		return ""
	}
	return account.Field(fieldCurrency)
}

// isTokenRefused reports whether a response refuses the token. MTN documents no form for it, so each 401 without a
// business code does. Only the form of the API gateway in front proves that the application never saw the request.
func isTokenRefused(x upstream.Exchange) bool {
	response, isDocument := x.Document()
	hasCode := isDocument && upstream.TextOrNumber(response, "code") != ""
	return x.IsUnauthorized() && (!hasCode || refusedInFront(x))
}
