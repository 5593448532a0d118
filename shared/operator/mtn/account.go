package mtn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
)

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

// AccountFields implements operator.AccountDescriber.
func (d *Driver) AccountFields() []operator.AccountField { return accountFields() }

func accountFields() []operator.AccountField {
	needed := []string{operator.AccountPay}
	return []operator.AccountField{
		{Path: "base_url", Identity: true, NeededBy: needed, Check: operator.CheckBaseURL},
		{Path: fieldAPIUser, Identity: true, NeededBy: needed, Check: checkAPIUser},
		{Path: fieldAPIKey, Secret: true, NeededBy: needed, Check: operator.CheckHeaderText},
		{Path: fieldSubscription, Secret: true, NeededBy: needed, Check: operator.CheckHeaderText},
		{Path: fieldEnvironment, Identity: true, NeededBy: needed, Check: checkEnvironment},
		{Path: fieldCurrency, Check: operator.CheckHeaderText},
	}
}

// checkAPIUser accepts the characters of a UUID: a colon would end the user's name in the header.
func checkAPIUser(text string) error {
	if len(text) != 36 || strings.Trim(text, "0123456789abcdefABCDEF-") != "" {
		return errors.New("is not a UUID")
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

// checkAccount returns why an account cannot make payments. Only the sandbox may have a currency of its own.
func checkAccount(account credentials.Account) error {
	unusable := operator.UnusableFields(accountFields(), operator.AccountPay, account.Field)
	if account.Field(fieldCurrency) != "" && account.Field(fieldEnvironment) != sandboxEnvironment {
		unusable = append(unusable, fieldCurrency)
	}
	if unusable != nil {
		return fmt.Errorf("the operator's account has no usable %s", strings.Join(unusable, ", "))
	}
	return nil
}

// isForCountry reports whether the account is for payments of a country (alpha-2).
func isForCountry(account credentials.Account, country string) bool {
	countries := map[string]string{ivoryCoastEnvironment: "CI", cameroonEnvironment: "CM", sandboxEnvironment: country}
	return strings.EqualFold(countries[account.Field(fieldEnvironment)], country)
}
