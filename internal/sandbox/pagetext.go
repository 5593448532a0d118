package sandbox

import "strings"

// pageText is the wording of the payment page in one language.
type pageText struct {
	Title, Merchant, Order, Amount     string
	Number, NumberHint, PIN, PINHint   string
	Confirm, Cancel, Back              string
	BadNumber, BadPIN, BadAction, Down string
	Gone                               string
	Status                             map[string]string
}

var english = pageText{
	Title: "Mobile money payment (sandbox)", Merchant: "Merchant", Order: "Order", Amount: "Amount",
	Number: "Mobile number", NumberHint: "With or without country code.",
	PIN: "PIN", PINHint: "Six digits, valid for 15 minutes.",
	Confirm: "Confirm", Cancel: "Cancel", Back: "Back to the merchant",
	BadNumber: "Enter a mobile number of 4 to 15 digits.", BadPIN: "This PIN is wrong, used or expired.",
	BadAction: "Choose confirm or cancel.", Down: "The service is not available. Nothing was paid. Please try again later.",
	Gone: "There is no such payment.",
	Status: map[string]string{
		pending: "Your payment is being processed.", successful: "Your payment was successful.",
		failed: "Your payment failed.", cancelled: "Your payment was cancelled.", refused: "Your payment was refused.",
	},
}

var french = pageText{
	Title: "Paiement mobile money (bac à sable)", Merchant: "Marchand", Order: "Commande", Amount: "Montant",
	Number: "Numéro de mobile", NumberHint: "Avec ou sans indicatif du pays.",
	PIN: "Code PIN", PINHint: "Six chiffres, valable 15 minutes.",
	Confirm: "Confirmer", Cancel: "Annuler", Back: "Retour chez le marchand",
	BadNumber: "Saisissez un numéro de mobile de 4 à 15 chiffres.", BadPIN: "Ce code PIN est faux, déjà utilisé ou expiré.",
	BadAction: "Choisissez confirmer ou annuler.", Down: "Le service est indisponible. Rien n’a été payé. Réessayez plus tard.",
	Gone: "Ce paiement n’existe pas.",
	Status: map[string]string{
		pending: "Votre paiement est en cours.", successful: "Votre paiement a réussi.",
		failed: "Votre paiement a échoué.", cancelled: "Votre paiement a été annulé.", refused: "Votre paiement a été refusé.",
	},
}

func isFrench(t *transaction) bool { return strings.EqualFold(t.Payment.Lang, "fr") }

// textFor is the wording in the payment's lang: fr, anything else is English (decision "pay-lang").
func textFor(t *transaction) pageText {
	if isFrench(t) {
		return french
	}
	return english
}

// pageStyle stands in the page under its hash in the Content-Security-Policy: no other style is applied.
const pageStyle = `body{font:1.125rem/1.5 system-ui,sans-serif;max-width:26rem;margin:2rem auto;padding:0 1rem;color:#111;background:#fff}` +
	`dt{font-weight:600}dd{margin:0 0 .5rem}label{display:block;font-weight:600;margin-top:1rem}` +
	`input{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;border:2px solid #555;border-radius:.25rem}` +
	`.hint{color:#444;margin:0;font-size:1rem}.error{color:#a00;font-weight:600}` +
	`button{font:inherit;padding:.6rem 1.2rem;margin:1rem .5rem 0 0;border:2px solid #014;border-radius:.25rem}` +
	`button[value=confirm]{background:#014;color:#fff}`

// pageSource is the page's template. html/template escapes every value for the place it stands in.
const pageSource = `<!doctype html>
<html lang="{{.Lang}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{if .Error}}{{.Error}} – {{end}}{{.Text.Title}}</title>
<style>{{.Style}}</style>
</head>
<body>
<main>
<h1>{{.Text.Title}}</h1>
{{if .OrderID}}<dl>
<dt>{{.Text.Merchant}}</dt><dd>{{.Merchant}}</dd>
<dt>{{.Text.Order}}</dt><dd>{{.OrderID}}</dd>
<dt>{{.Text.Amount}}</dt><dd>{{.Amount}}</dd>
</dl>
{{end}}{{if .Error}}<p class="error" id="error" role="alert">{{.Error}}</p>
{{end}}{{if .Message}}<p role="status">{{.Message}}</p>
{{end}}{{if .Form}}<form method="post" action="">
<label for="msisdn">{{.Text.Number}}</label>
<p class="hint" id="msisdn-hint">{{.Text.NumberHint}}</p>
<input id="msisdn" name="msisdn" type="tel" inputmode="tel" autocomplete="tel" value="{{.MSISDN}}" aria-describedby="msisdn-hint{{if .Error}} error{{end}}">
<label for="pin">{{.Text.PIN}}</label>
<p class="hint" id="pin-hint">{{.Text.PINHint}}</p>
<input id="pin" name="pin" type="password" inputmode="numeric" autocomplete="one-time-code" aria-describedby="pin-hint{{if .Error}} error{{end}}">
<button type="submit" name="action" value="confirm">{{.Text.Confirm}}</button>
<button type="submit" name="action" value="cancel">{{.Text.Cancel}}</button>
</form>
{{end}}{{if .BackURL}}<p><a href="{{.BackURL}}">{{.Text.Back}}</a></p>
{{end}}</main>
</body>
</html>
`
