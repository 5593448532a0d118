package sandbox

import (
	_ "embed" // the texts of the page
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mobilegateway/shared/market"
)

//go:embed pagetext.json
var pageTextSource []byte

// pageText is the text of the payment page in one language. A text with %s or %d is a format.
type pageText struct {
	Lang                               string // the language itself
	Brand, Sandbox, Footer             string
	Pay, Confirm, Cancel               string // Confirm: the amount
	Merchant, Order, Amount            string
	Number, NumberHint, PIN, PINHint   string
	PaymentUntil, PINUntil             string
	PaymentOver, PINOver               string
	Hours, Minutes, Seconds            string // the time that is left
	Error, Problem, Back, Again        string // Error: the fault, for the title
	NoNumber, BadNumber, NoPIN, BadPIN string
	WrongPIN, LastTry                  string // WrongPIN: the number of tries that are left
	Locked, ExpiredPIN, UsedPIN        string
	BadAction, Down                    string
	Wait                               string
	Expired, ExpiredMore               string
	Gone, GoneMore                     string
	Status, More                       map[string]string // by state
	Why                                map[string]string // by statusDescription
	Currency                           map[string]string // by code
	Group, Point, DateForm, MonthNames string
}

// parsePageTexts reads the texts by language: en and fr.
func parsePageTexts() (texts map[string]pageText, err error) {
	err = json.Unmarshal(pageTextSource, &texts)
	return texts, err
}

// textFor returns the texts in French for fr, else in English (decision "pay-lang").
func (s *Sandbox) textFor(lang string) pageText {
	if strings.EqualFold(lang, "fr") {
		return s.pageTexts["fr"]
	}
	return s.pageTexts["en"]
}

// formatAmount formats an amount with its currency's code. It has the decimals of the currency, and more only where the
// request has more that are not zero. The digits are never parsed as a number.
func (p pageText) formatAmount(amount, currency string) string {
	whole, decimals, _ := strings.Cut(amount, ".")
	exponent, _ := market.CurrencyExponent(currency)
	decimals = strings.TrimRight(decimals, "0")
	decimals += strings.Repeat("0", max(0, exponent-len(decimals)))
	if decimals != "" {
		decimals = p.Point + decimals
	}
	whole = strings.TrimLeft(whole, "0")
	whole = strings.Repeat("0", max(0, 1-len(whole))) + whole
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + p.Group + whole[i:]
	}
	return whole + decimals + "\u00a0" + currency
}

// formatTime formats a time of day, with the date if it is more than twelve hours away.
func (p pageText) formatTime(at, now time.Time) string {
	if at.Sub(now) < 12*time.Hour {
		return at.Format("15:04:05") + " UTC"
	}
	months := strings.Fields(p.MonthNames)
	return fmt.Sprintf(p.DateForm, at.Day(), months[at.Month()-1], at.Year(), at.Format("15:04"))
}

// formatTimeLeft formats a duration in whole units.
func (p pageText) formatTimeLeft(left time.Duration) string {
	switch {
	case left >= 2*time.Hour:
		return fmt.Sprintf(p.Hours, int(left/time.Hour))
	case left >= 2*time.Minute:
		return fmt.Sprintf(p.Minutes, int(left/time.Minute))
	default:
		return fmt.Sprintf(p.Seconds, int(left/time.Second))
	}
}

// wrongPINText is the response to a wrong PIN with so many tries left.
func (p pageText) wrongPINText(left int) string {
	switch left {
	case 0:
		return p.Locked
	case 1:
		return p.LastTry
	}
	return fmt.Sprintf(p.WrongPIN, left)
}
