package operator

import (
	"strings"
	"unicode/utf8"
)

// MaxUserSMSLength is the longest text of an SMS, in characters (specification, Limits).
const MaxUserSMSLength = 160

// UserSMSTemplates are an operator's texts of the payer's SMS by language. The placeholders are {amount},
// {currency}, {merchant} and {order_id}. Each occurs at most once, so that the longest values fit.
type UserSMSTemplates struct {
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

// Render writes the SMS in a payment's language: fr, and English for anything else (decision "pay-lang"). A text longer
// than MaxUserSMSLength, which no valid order gives, is truncated.
func (t UserSMSTemplates) Render(lang string, values UserSMSValues) string {
	template := t.EN
	if lang == "fr" {
		template = t.FR
	}
	text := strings.NewReplacer(
		"{amount}", values.Amount,
		"{currency}", values.Currency,
		"{merchant}", values.Merchant,
		"{order_id}", values.OrderID,
	).Replace(template)
	if utf8.RuneCountInString(text) > MaxUserSMSLength {
		text = string([]rune(text)[:MaxUserSMSLength])
	}
	return text
}
