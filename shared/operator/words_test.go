package operator_test

import (
	"strings"
	"testing"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func TestStatusWord(t *testing.T) {
	words := map[ledger.Status][]string{
		ledger.Pending:    {"Initiated", "Loaded", "InProgress", "Pending"},
		ledger.Successful: {"Success", "Successful"},
		ledger.Failed:     {"Failed"},
		ledger.Cancelled:  {"Canceled", "Cancelled", "Abandoned"},
		ledger.Expired:    {"Expired"},
	}
	for want, forms := range words {
		for _, form := range forms {
			for _, word := range []string{form, strings.ToLower(form), strings.ToUpper(form)} {
				if got, ok := operator.StatusWord(word); !ok || got != want {
					t.Errorf("%s: %q, %v", word, got, ok)
				}
			}
		}
	}
	for _, word := range []string{"", " pending", "success ", "succès", "null", "0", "unknown", "DeliveredToTerminal"} {
		if got, ok := operator.StatusWord(word); ok || got != "" {
			t.Errorf("%q was read as %q", word, got)
		}
	}
}

func TestDeliveryWord(t *testing.T) {
	six := []ledger.Status{
		ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal,
		ledger.DeliveryUncertain, ledger.DeliveryImpossible, ledger.NotificationNotSupp,
	}
	for _, want := range six {
		for _, word := range []string{string(want), strings.ToLower(string(want)), strings.ToUpper(string(want))} {
			if got, ok := operator.DeliveryWord(word); !ok || got != want {
				t.Errorf("%s: %q, %v", word, got, ok)
			}
		}
	}
	for _, word := range []string{"", "Delivered", "pending"} {
		if _, ok := operator.DeliveryWord(word); ok {
			t.Errorf("%q was read", word)
		}
	}
}
