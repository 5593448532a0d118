package operator

import (
	"strings"
	"unicode/utf8"
)

// MaxUserSMS is the longest text of an SMS, in characters (specification, Limits).
const MaxUserSMS = 160

// UserSMSWording is an operator's wording of the purchaser's SMS by language. The placeholders are {amount}, {currency},
// {merchant} and {order_id}; each stands once at most, so that the longest values still fit.
type UserSMSWording struct {
	FR string
	EN string
}

// UserSMSValues fill the placeholders. Amount is the plain decimal text of the amount paid.
type UserSMSValues struct {
	Amount   string
	Currency string
	Merchant string
	OrderID  string
}

// Text writes the SMS in a payment's language: fr, anything else is English (decision "pay-lang"). It is never longer
// than MaxUserSMS: a text that would be, which no valid order gives, is cut.
func (w UserSMSWording) Text(lang string, values UserSMSValues) string {
	wording := w.EN
	if lang == "fr" {
		wording = w.FR
	}
	text := strings.NewReplacer(
		"{amount}", values.Amount,
		"{currency}", values.Currency,
		"{merchant}", values.Merchant,
		"{order_id}", values.OrderID,
	).Replace(wording)
	if utf8.RuneCountInString(text) > MaxUserSMS {
		text = string([]rune(text)[:MaxUserSMS])
	}
	return text
}
