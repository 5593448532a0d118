package search

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/ascii"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

// Filter selects transactions by what a person can say about them. An empty field selects all.
type Filter struct {
	Merchant string // the name or id, as it was typed. The caller resolves it; here it only belongs to the search
	Kind     string // charge, pay or sms
	Operator string // mno-name, without regard to case
	Platform string // the platform that takes the orders, without regard to case
	Country  string // alpha-2, without regard to case
	Channel  string // web, tpe or ussd: of payments
	Status   string // what the merchant was notified of
	State    string // where the call of the operator is
	Amount   string // in major units, as the lists show it
	Payer    string // the last digits of the payer's number
}

// The limits of Payer. Fewer digits select nearly all numbers. More of them name a person.
const (
	minPayerDigits = 2
	maxPayerDigits = 4
)

// Statuses lists the statuses of payments and of SMS.
func Statuses() []string {
	return output.MapAll(ledger.Statuses(), func(s ledger.Status) string { return string(s) })
}

// States lists the states of a call.
func States() []string {
	return []string{
		string(ledger.Reserved), string(ledger.Done), string(ledger.Refused), string(ledger.Unknown),
		string(ledger.Released),
	}
}

// maxExponent is the exponent of the currency with the most decimals.
const maxExponent = 3

// Check returns an error that names the first wrong field. No error repeats the payer's digits.
func (f Filter) Check() error {
	for _, field := range []struct {
		name, value string
		valid       []string
		matches     func(a, b string) bool
	}{
		{"kind", f.Kind, []string{string(ledger.Charge), string(ledger.Payment), string(ledger.SMS)}, isEqual},
		{"operator", f.Operator, operator.Names(), strings.EqualFold},
		{"platform", f.Platform, operator.Platforms(), strings.EqualFold},
		{"country", f.Country, market.Alpha2s(), strings.EqualFold},
		{"channel", f.Channel, operator.Channels(), strings.EqualFold},
		{"status", f.Status, Statuses(), isEqual}, {"state", f.State, States(), isEqual},
	} {
		isValid := func(valid string) bool { return field.matches(valid, field.value) }
		if field.value != "" && !slices.ContainsFunc(field.valid, isValid) {
			return fmt.Errorf("%s %q is not one of %s", field.name, field.value, strings.Join(field.valid, ", "))
		}
	}
	if _, err := money.Parse(f.Amount, maxExponent); f.Amount != "" && err != nil {
		return fmt.Errorf("amount %q is not an amount such as 1005 or 1.50", f.Amount)
	}
	return f.checkPayer()
}

func isEqual(a, b string) bool { return a == b }

func (f Filter) checkPayer() error {
	switch {
	case f.Payer == "":
		return nil
	case len(f.Payer) < minPayerDigits || len(f.Payer) > maxPayerDigits || !ascii.IsDigits(f.Payer):
		return fmt.Errorf("payer takes the last %d to %d digits of the number, and nothing else",
			minPayerDigits, maxPayerDigits)
	case f == Filter{Payer: f.Payer}:
		return errors.New("payer needs another filter beside the time range, such as an amount, a merchant or " +
			"an operator")
	}
	return nil
}

// matches reports whether an entry is selected.
func (f Filter) matches(e *ledger.Entry) bool {
	if e.Kind == ledger.Reference {
		return false
	}
	for _, field := range []struct{ want, got string }{
		{f.Kind, string(e.Kind)}, {f.Operator, e.Route.Operator}, {f.Country, e.Route.Country},
		{f.Channel, e.Request.Channel}, {f.Platform, operator.PinOf(e).Platform},
	} {
		if field.want != "" && !strings.EqualFold(field.want, field.got) {
			return false
		}
	}
	hasStatus := cmp.Or(f.Status, string(e.Status)) == string(e.Status)
	hasState := cmp.Or(f.State, string(e.State)) == string(e.State)
	return hasStatus && hasState && f.hasAmount(e) && f.hasPayer(e)
}

// hasAmount compares in the currency of the entry: 1.5 is 1.50.
func (f Filter) hasAmount(e *ledger.Entry) bool {
	if f.Amount == "" {
		return true
	}
	minor, err := money.Parse(f.Amount, e.Amount.Exponent)
	return err == nil && e.Amount.Currency != "" && minor == e.Amount.Minor
}

// hasPayer compares with each number that is known of the payer.
func (f Filter) hasPayer(e *ledger.Entry) bool {
	numbers := []string{e.Request.MSISDN, e.Payer, e.Claim.MSISDN}
	return f.Payer == "" || slices.ContainsFunc(numbers, func(number string) bool {
		return strings.HasSuffix(number, f.Payer)
	})
}
