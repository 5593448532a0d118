package operator

import (
	"net/url"
	"slices"
	"strings"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/localhost"
	"mobilegateway/shared/logsafe"
)

// The operations that an account serves, as its fields name them.
const (
	AccountCharge  = string(ledger.Charge)
	AccountPay     = string(ledger.Payment) // with its status lookups
	AccountSMS     = string(ledger.SMS)
	AccountUserSMS = "user-sms" // the SMS to a payer
)

// AccountField describes one field of an account in the operators' credentials (decision "operator-credentials").
type AccountField struct {
	// Path is the field's name, with dots between the levels: "user_sms.gw_token". A Path that ends with ".*" has one
	// text for each country (alpha-2).
	Path string
	// Secret is true if the value is never shown.
	Secret bool
	// Identity is true if the value identifies the platform or the contract: the operator knows our keys only there.
	Identity bool
	// NeededBy are the operations that cannot be made without the field.
	NeededBy []string
	// Check returns why a value cannot be used, nil if it can. The error does not quote the value.
	Check func(value string) error
	// CountryOf returns the country (alpha-2) whose money a value moves, "" for any; nil if the value has none.
	CountryOf func(value string) string
}

// MovesCountry reports whether one value is for another country than the other one.
func (f AccountField) MovesCountry(from, to string) bool {
	return f.CountryOf != nil && f.CountryOf(from) != f.CountryOf(to)
}

// IsForOther reports whether a value is for another country (alpha-2) than this one. "" is any country.
func (f AccountField) IsForOther(value, country string) bool {
	if f.CountryOf == nil || country == "" {
		return false
	}
	own := f.CountryOf(value)
	return own != "" && !strings.EqualFold(own, country)
}

// AccountDescriber is implemented by drivers whose accounts have more fields than an address and a token.
type AccountDescriber interface {
	AccountFields() []AccountField
}

// BasicAccountFields are the fields that the accounts of all operators have.
func BasicAccountFields() []AccountField {
	all := []string{AccountCharge, AccountPay, AccountSMS, AccountUserSMS}
	return []AccountField{
		{Path: "base_url", Identity: true, NeededBy: all, Check: CheckBaseURL},
		{Path: "access_token", Secret: true, NeededBy: all, Check: CheckToken},
	}
}

// UnusableFields lists the fields without which an operation cannot be made, or whose values cannot be used in a
// country (alpha-2, "" for any). value returns a field by its path. It skips the address, whose rule depends on the
// deployment, and fields for countries.
func UnusableFields(fields []AccountField, operation, country string, value func(path string) string) []string {
	var unusable []string
	for _, field := range fields {
		text, skipped := value(field.Path), field.Path == "base_url" || strings.HasSuffix(field.Path, ".*")
		if skipped || !slices.Contains(field.NeededBy, operation) {
			continue
		}
		switch {
		case field.Check(text) != nil:
			unusable = append(unusable, field.Path)
		case field.IsForOther(text, country):
			unusable = append(unusable, field.Path+" for "+country)
		}
	}
	return unusable
}

// CheckBaseURL refuses an address to which no token may be sent. It accepts https, and plain http to this machine.
func CheckBaseURL(text string) error { return checkBaseURL(text, false) }

// CheckNearBaseURL is CheckBaseURL for functions that are not deployed (decision "outgoing-addresses"): it also accepts
// plain http to a private network, where operator stubs run.
func CheckNearBaseURL(text string) error { return checkBaseURL(text, true) }

func checkBaseURL(text string, acceptsNear bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return logsafe.New("is not an address of the form https://host/path")
	}
	host := u.Hostname()
	nearEnough := localhost.IsLoopback(host) || acceptsNear && localhost.IsNear(host)
	if u.Scheme == "https" || u.Scheme == "http" && nearEnough {
		return nil
	}
	return logsafe.New("is not an https address")
}

// CheckHeaderText refuses a text that no header can carry as it is: an empty one, or one with spaces at its ends,
// control characters or characters outside ASCII.
func CheckHeaderText(text string) error {
	unprintable := strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	switch {
	case text == "":
		return logsafe.New("is empty")
	case unprintable || strings.TrimSpace(text) != text:
		return logsafe.New("has spaces at its ends, or characters that are not printable ASCII")
	}
	return nil
}

// CheckToken refuses a token that the header Authorization cannot carry. It refuses a token with a space, such as one
// after "Bearer", and all that CheckHeaderText refuses.
func CheckToken(text string) error {
	if strings.Contains(text, " ") {
		return logsafe.New(`has a space: give only the token, without "Bearer"`)
	}
	return CheckHeaderText(text)
}
