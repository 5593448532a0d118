package operator

import (
	"slices"
	"strings"
	"unicode"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
)

// failureRule is a reason and the phrases of its texts. A phrase is a sequence of words, in lower case and without
// accents. "a|b" is either word, "a?" may be absent, and "..." is any number of words.
type failureRule struct {
	reason  ledger.FailureReason
	phrases []string
}

// The payer's side, as operators name it.
const (
	payer  = "user|payer|customer|subscriber"
	wallet = payer + "|wallet|msisdn account|wallet? is?"
)

// failureRules are the texts of failures in English and French; the first rule with a phrase of the text counts
// (decision "pay-failure-reason"). A phrase needs the cause itself: a bare "rejected" may be the operator's own
// decision. The first rule keeps texts about the merchant's side from the payer's rules.
var failureRules = []failureRule{
	{"", []string{"merchant|payee|receiver s? account|balance|limit|wallet|not|unknown"}},
	{ledger.NotEnoughFunds, []string{
		"insufficient ... fund|funds|credit|balance|money", "not enough ... fund|funds|credit|balance|money",
		"low balance", "balance is? too low", "balance is? insufficient",
		"solde|fonds|credit ... insuffisant|insuffisants",
	}},
	{ledger.WalletUnknown, []string{
		wallet + " unknown", wallet + " not found|registered", wallet + " does not exist",
		"unknown|such " + payer + "|wallet|msisdn",
		"abonne|client|compte|numero|payeur inconnu|inexistant|introuvable",
	}},
	{ledger.TimedOut, []string{
		"timeout", "timed|time out", "time limit", "payment|transaction|operation|request|session has? expired",
		payer + " did not respond|confirm|approve", "delai depasse|expire",
	}},
	{ledger.LimitReached, []string{"limit|limits|ceiling|plafond|limite"}},
	{ledger.RefusedByPayer, []string{
		"refused|rejected|declined|denied|cancelled|canceled|aborted by the? " + payer, "approval rejected",
		payer + " refused|rejected|declined|cancelled|canceled",
		"refuse|refusee|rejete|rejetee|annule|annulee par le|l client|payeur|utilisateur|abonne",
	}},
}

// ParseFailureReason maps an operator's text about a failed payment; "" if it names no reason that we know. The text is
// not kept, because it may contain a name, a number or a balance.
func ParseFailureReason(text string) ledger.FailureReason {
	words := splitWords(text)
	for _, rule := range failureRules {
		occurs := func(phrase string) bool { return matchPhrase(strings.Fields("... "+phrase), words) }
		if slices.ContainsFunc(rule.phrases, occurs) {
			return rule.reason
		}
	}
	return ""
}

// RefusalReason is the reason of a payment that the operator refused in its response; "" for another fault, and for a
// refusal that names none.
func RefusalReason(f *fault.Fault) ledger.FailureReason {
	if f == nil || f.OperatorException == nil {
		return ""
	}
	switch refusal := f.OperatorException; refusal.MessageID {
	case "POL0253":
		return ledger.RefusedByPayer
	case "POL1000":
		return ledger.NotEnoughFunds
	default:
		return ParseFailureReason(refusal.Text + " " + strings.Join(refusal.Variables, " "))
	}
}

// matchPhrase reports whether words begin with a phrase.
func matchPhrase(phrase, words []string) bool {
	if len(phrase) == 0 {
		return true
	}
	element, rest := phrase[0], phrase[1:]
	if element == "..." {
		return matchPhrase(rest, words) || len(words) > 0 && matchPhrase(phrase, words[1:])
	}
	element, optional := strings.CutSuffix(element, "?")
	if optional && matchPhrase(rest, words) {
		return true
	}
	return len(words) > 0 && slices.Contains(strings.Split(element, "|"), words[0]) && matchPhrase(rest, words[1:])
}

// splitWords returns a text's words in lower case, without the accents of French. Operators also send codes such as
// NOT_ENOUGH_FUNDS.
func splitWords(text string) []string {
	text = strings.NewReplacer("é", "e", "è", "e", "ê", "e", "à", "a", "ç", "c").Replace(strings.ToLower(text))
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
