package operator_test

import (
	"strings"
	"testing"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func TestParsePaymentStatus(t *testing.T) {
	spellings := map[ledger.Status][]string{
		ledger.Pending:    {"Initiated", "Loaded", "InProgress", "Pending"},
		ledger.Successful: {"Success", "Successful"},
		ledger.Failed:     {"Failed"},
		ledger.Cancelled:  {"Canceled", "Cancelled", "Abandoned"},
		ledger.Expired:    {"Expired"},
	}
	for want, forms := range spellings {
		for _, form := range forms {
			for _, operatorStatus := range []string{form, strings.ToLower(form), strings.ToUpper(form)} {
				if got, ok := operator.ParsePaymentStatus(operatorStatus); !ok || got != want {
					t.Errorf("%s is mapped to %q (known: %v), want %q", operatorStatus, got, ok, want)
				}
			}
		}
	}
	for _, operatorStatus := range []string{
		"", " pending", "success ", "succès", "null", "0", "unknown", "DeliveredToTerminal",
	} {
		if got, ok := operator.ParsePaymentStatus(operatorStatus); ok || got != "" {
			t.Errorf("the unknown status %q is mapped to %q", operatorStatus, got)
		}
	}
}

func TestParseDeliveryStatus(t *testing.T) {
	six := []ledger.Status{
		ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal,
		ledger.DeliveryUncertain, ledger.DeliveryImpossible, ledger.NotificationNotSupp,
	}
	for _, want := range six {
		form := string(want)
		for _, operatorStatus := range []string{form, strings.ToLower(form), strings.ToUpper(form)} {
			if got, ok := operator.ParseDeliveryStatus(operatorStatus); !ok || got != want {
				t.Errorf("%s is mapped to %q (known: %v), want %q", operatorStatus, got, ok, want)
			}
		}
	}
	for _, operatorStatus := range []string{"", "Delivered", "pending"} {
		if _, ok := operator.ParseDeliveryStatus(operatorStatus); ok {
			t.Errorf("the unknown status %q is mapped", operatorStatus)
		}
	}
}
