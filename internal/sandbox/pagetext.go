package sandbox

import (
	"fmt"
	"strings"
	"time"

	"mobilegateway/shared/market"
)

// pageText is the wording of the payment page in one language. A text with %s or %d is filled with what its name says.
type pageText struct {
	Brand, Sandbox, Footer             string
	Pay, Processing, Confirm, Cancel   string // Confirm: the amount
	Merchant, Order, Amount            string
	Number, NumberHint, PIN, PINHint   string
	PaymentUntil, PINUntil             string
	PaymentOver, PINOver               string
	Hours, Minutes, Seconds            string // about how long is left
	Error, Problem, Back, Again        string // Error: the fault, for the title
	NoNumber, BadNumber, NoPIN, BadPIN string
	WrongPIN, LastTry                  string // WrongPIN: how many tries are left
	Locked, ExpiredPIN, UsedPIN        string
	BadAction, Down                    string
	Wait                               string
	Expired, ExpiredMore               string
	Gone, GoneMore                     string
	Status, More                       map[string]string // by state
	Why                                map[string]string // by statusDescription
	Currency                           map[string]string
	Group, Point, DateForm, MonthNames string
}

func englishText() pageText {
	return pageText{
		Brand: "Mobile money", Sandbox: "Sandbox", Footer: "This is a test page of a sandbox. No money moves.",
		Pay: "Confirm your payment", Processing: "Payment in progress", Confirm: "Pay %s", Cancel: "Cancel",
		Merchant: "Merchant", Order: "Order", Amount: "Amount",
		Number: "Mobile number", NumberHint: "With or without the country code.",
		PIN: "PIN", PINHint: "The six digits that you were given for this test.",
		PaymentUntil: "You can pay until", PINUntil: "PIN valid until",
		PaymentOver: "The time for this payment is over.", PINOver: "The time is over. Ask for a new PIN: you can use it on this page.",
		Hours: "%d h left", Minutes: "%d min left", Seconds: "%d s left",
		Error: "Error: %s", Problem: "There is a problem", Back: "Back to the merchant", Again: "Check again",
		NoNumber: "Enter your mobile number.", BadNumber: "Enter a mobile number of 4 to 15 digits.", NoPIN: "Enter the PIN.",
		BadPIN:   "Enter a PIN of six digits.",
		WrongPIN: "This PIN is wrong. You have %d tries left.", LastTry: "This PIN is wrong. You have one try left.",
		Locked:     "There were five wrong PINs. Ask for a new PIN: earlier ones are no longer accepted.",
		ExpiredPIN: "This PIN has expired. Ask for a new one.", UsedPIN: "This PIN was used already. Ask for a new one.",
		BadAction: "Choose to pay or to cancel.", Down: "The service is not available. Nothing was paid. Please try again later.",
		Wait:    "Your operator has not answered yet. You need not pay again.",
		Expired: "Payment expired", ExpiredMore: "The time for this payment is over, and nothing was paid. Start again at the merchant’s.",
		Gone: "Payment not found", GoneMore: "There is no payment at this address. Check the link, or start again at the merchant’s.",
		Status: map[string]string{
			pending: "Payment in progress", successful: "Payment successful", failed: "Payment failed",
			cancelled: "Payment cancelled", refused: "Payment refused",
		},
		More: map[string]string{
			successful: "Your payment was made. The merchant has been told.", failed: "Nothing was paid.",
			cancelled: "This payment was cancelled. Nothing was paid.", refused: "Your operator refused this payment. Nothing was paid.",
		},
		Why:      map[string]string{descriptionRefused: "The payment was refused on your phone.", descriptionNoCredit: "There is not enough credit in your account."},
		Currency: currencyNamesIn(func(row currencyName) string { return row.english }),
		Group:    ",", Point: ".", DateForm: "%d %s %d, %s UTC",
		MonthNames: "January February March April May June July August September October November December",
	}
}

func frenchText() pageText {
	return pageText{
		Brand: "Mobile money", Sandbox: "Bac à sable", Footer: "Ceci est une page de test d’un bac à sable. Aucun argent ne circule.",
		Pay: "Confirmez votre paiement", Processing: "Paiement en cours", Confirm: "Payer %s", Cancel: "Annuler",
		Merchant: "Marchand", Order: "Commande", Amount: "Montant",
		Number: "Numéro de mobile", NumberHint: "Avec ou sans l’indicatif du pays.",
		PIN: "Code PIN", PINHint: "Les six chiffres qui vous ont été remis pour ce test.",
		PaymentUntil: "Délai de paiement\u00a0:", PINUntil: "PIN valable jusqu’à",
		PaymentOver: "Le délai de ce paiement est écoulé.", PINOver: "Le délai est écoulé. Demandez un nouveau code PIN\u00a0: il servira sur cette page.",
		Hours: "encore %d h", Minutes: "encore %d min", Seconds: "encore %d s",
		Error: "Erreur\u00a0: %s", Problem: "Il y a un problème", Back: "Retour chez le marchand", Again: "Vérifier à nouveau",
		NoNumber: "Saisissez votre numéro de mobile.", BadNumber: "Saisissez un numéro de mobile de 4 à 15 chiffres.", NoPIN: "Saisissez le code PIN.",
		BadPIN:   "Saisissez un code PIN de six chiffres.",
		WrongPIN: "Ce code PIN est faux. Il vous reste %d essais.", LastTry: "Ce code PIN est faux. Il vous reste un essai.",
		Locked:     "Cinq codes PIN étaient faux. Demandez un nouveau code PIN\u00a0: les précédents ne sont plus acceptés.",
		ExpiredPIN: "Ce code PIN a expiré. Demandez-en un nouveau.", UsedPIN: "Ce code PIN a déjà servi. Demandez-en un nouveau.",
		BadAction: "Choisissez de payer ou d’annuler.", Down: "Le service est indisponible. Rien n’a été payé. Réessayez plus tard.",
		Wait:    "Votre opérateur n’a pas encore répondu. Il est inutile de payer à nouveau.",
		Expired: "Paiement expiré", ExpiredMore: "Le délai de ce paiement est écoulé et rien n’a été payé. Recommencez chez le marchand.",
		Gone: "Paiement introuvable", GoneMore: "Il n’y a pas de paiement à cette adresse. Vérifiez le lien, ou recommencez chez le marchand.",
		Status: map[string]string{
			pending: "Paiement en cours", successful: "Paiement réussi", failed: "Paiement échoué",
			cancelled: "Paiement annulé", refused: "Paiement refusé",
		},
		More: map[string]string{
			successful: "Votre paiement a été effectué. Le marchand en est informé.", failed: "Rien n’a été payé.",
			cancelled: "Ce paiement a été annulé. Rien n’a été payé.", refused: "Votre opérateur a refusé ce paiement. Rien n’a été payé.",
		},
		Why:      map[string]string{descriptionRefused: "Le paiement a été refusé sur votre téléphone.", descriptionNoCredit: "Le crédit de votre compte est insuffisant."},
		Currency: currencyNamesIn(func(row currencyName) string { return row.french }),
		Group:    "\u202f", Point: ",", DateForm: "%d %s %d à %s UTC",
		MonthNames: "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
	}
}

// textFor is the wording in a language and the language itself: fr, anything else is English (decision "pay-lang").
func textFor(lang string) (pageText, string) {
	if strings.EqualFold(lang, "fr") {
		return frenchText(), "fr"
	}
	return englishText(), "en"
}

// formatAmount is a sum of money as the language writes it, with the code of its currency. Decimals are those of the currency,
// and more only where the request has more that are not zero. The digits are never taken for a number.
func (p pageText) formatAmount(amount, currency string) string {
	whole, decimals, _ := strings.Cut(amount, ".")
	exponent := currencyExponent(currency)
	for len(decimals) > exponent && strings.HasSuffix(decimals, "0") {
		decimals = strings.TrimSuffix(decimals, "0")
	}
	for len(decimals) < exponent {
		decimals += "0"
	}
	whole = strings.TrimLeft(whole, "0")
	if whole == "" {
		whole = "0"
	}
	text := ""
	for len(whole) > 3 {
		text = p.Group + whole[len(whole)-3:] + text
		whole = whole[:len(whole)-3]
	}
	text = whole + text
	if decimals != "" {
		text += p.Point + decimals
	}
	return text + "\u00a0" + currency
}

func currencyExponent(currency string) int {
	for _, c := range market.All() {
		if c.Currency == currency {
			return c.Exponent
		}
	}
	return 0
}

// formatTime is a moment as the language writes it: the time of day, with the date where it is more than twelve hours away.
func (p pageText) formatTime(at, now time.Time) string {
	if at.Sub(now) < 12*time.Hour {
		return at.Format("15:04:05") + " UTC"
	}
	months := strings.Fields(p.MonthNames)
	return fmt.Sprintf(p.DateForm, at.Day(), months[at.Month()-1], at.Year(), at.Format("15:04"))
}

// formatTimeLeft is how long is left, in whole units.
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

// wrongPINText says how many tries are left.
func (p pageText) wrongPINText(left int) string {
	if left == 1 {
		return p.LastTry
	}
	return fmt.Sprintf(p.WrongPIN, left)
}
