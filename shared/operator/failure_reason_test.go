package operator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/payment"
)

// decision "pay-failure-reason".
func TestParseFailureReason(t *testing.T) {
	for want, texts := range map[ledger.FailureReason][]string{
		ledger.RefusedByPayer: {
			"Payment operation refused by user", "Declined by the customer.", "The payer rejected the request",
			"APPROVAL_REJECTED", "Transaction canceled by subscriber", "Opération refusée par le client",
			"Annulé par l'utilisateur",
		},
		ledger.NotEnoughFunds: {
			"User has insufficient credit for transaction", "NOT_ENOUGH_FUNDS", "Low balance",
			"60019 :: Le solde du compte du payeur est insuffisant", "Insufficient funds to pay the merchant",
			"declined by the payer's bank: insufficient balance", "The balance is too low",
		},
		ledger.LimitReached: {
			"PAYER_LIMIT_REACHED", "Daily amount limit exceeded", "Plafond journalier atteint", "over the limits",
		},
		ledger.WalletUnknown: {
			"PAYER_NOT_FOUND", "Unknown subscriber", "user account does not exist", "no such wallet",
			"Abonné inconnu", "MSISDN is not registered",
		},
		ledger.TimedOut: {
			"Transaction timed out", "TIMEOUT", "time out", "the request has expired", "Time limit exceeded",
			"Customer did not confirm", "Délai dépassé",
		},
		"": {
			"", "Payment is failed", "Payment was successful", "rejected", "Declined by the operator",
			"Expired contract",
			"unknown error", "INTERNAL_PROCESSING_ERROR", "PAYEE_NOT_FOUND", "merchant account limit reached",
			"insufficient privileges", "no user input", "unlimited", "\xff\x00", strings.Repeat("insufficient ", 40),
		},
	} {
		for _, text := range texts {
			for _, form := range []string{text, strings.ToUpper(text), " " + text + "!"} {
				if got := operator.ParseFailureReason(form); got != want {
					t.Errorf("%.80q is mapped to %q, want %q", form, got, want)
				}
			}
		}
	}
}

// A platform that writes our own texts reports our own reasons.
func TestParseFailureReasonReadsOurTexts(t *testing.T) {
	for _, want := range []ledger.FailureReason{
		ledger.RefusedByPayer, ledger.NotEnoughFunds, ledger.LimitReached, ledger.WalletUnknown, ledger.TimedOut, "",
	} {
		var body struct{ StatusDescription string }
		written := payment.ResponseBody(&ledger.Entry{Progress: ledger.Progress{FailureReason: want}}, ledger.Failed)
		if err := json.Unmarshal(written, &body); err != nil {
			t.Fatal(err)
		}
		if got := operator.ParseFailureReason(body.StatusDescription); got != want {
			t.Errorf("%q is mapped to %q, want %q", body.StatusDescription, got, want)
		}
	}
}

func TestRefusalReason(t *testing.T) {
	for _, c := range []struct {
		id        string
		variables []string
		want      ledger.FailureReason
	}{
		{"POL0253", nil, ledger.RefusedByPayer},
		{"POL1000", nil, ledger.NotEnoughFunds},
		{"POL0001", []string{"Not enough credit"}, ledger.NotEnoughFunds},
		{"POL0001", []string{"a", "Daily amount limit exceeded"}, ledger.LimitReached},
		{"POL0001", []string{"Expired contract"}, ""},
		{"SVC0270", nil, ""},
	} {
		exception := &fault.OperatorException{
			MessageID: c.id, Text: "A policy error occurred. Policy error: %1", Variables: c.variables,
		}
		if got := operator.RefusalReason(&fault.Fault{OperatorException: exception}); got != c.want {
			t.Errorf("%s %q is mapped to %q, want %q", c.id, c.variables, got, c.want)
		}
	}
	for _, f := range []*fault.Fault{nil, fault.New(fault.OutcomeUnknown)} {
		if got := operator.RefusalReason(f); got != "" {
			t.Errorf("%v is mapped to %q", f, got)
		}
	}
}

// FuzzParseFailureReason maps any text without a panic, and to the same reason between other characters.
func FuzzParseFailureReason(f *testing.F) {
	for _, seed := range []string{
		"", "Payment operation refused by user", "le solde du compte est insuffisant", "PAYER_LIMIT_REACHED",
		"time out", "wallet unknown", strings.Repeat("insufficient ", 40), "refusé par l'abonné", "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 512 { // as drivers read it
			return
		}
		got := operator.ParseFailureReason(text)
		if again := operator.ParseFailureReason(" -- " + text + "_"); again != got {
			t.Errorf("%q is mapped to %q, among other characters to %q", text, got, again)
		}
	})
}
