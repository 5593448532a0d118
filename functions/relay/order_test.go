package relay_test

import (
	"strings"
	"testing"

	"mobilegateway/shared/ledger"
)

// decision "notification-order": a repeated record of an earlier status posts nothing, also after the later status.
func TestRepeatedRecordOfEarlierStatus(t *testing.T) {
	s := newFixture(t)
	first := s.StoreMessage("sms-1", ledger.DeliveredToNetwork)
	s.relayEntries(t, first)
	second, err := s.Book.Change(t.Context(), first.Key, func(e *ledger.Entry) (ledger.Transition, error) {
		return ledger.AddReceipt.After(e.ApplyReceipt(ledger.DeliveredToTerminal, ledger.Timestamp(s.Clock.Now()))), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.relayEntries(t, second)
	s.relayEntries(t, first)
	var statuses []string
	for _, received := range s.MerchantServer.Received("") {
		statuses = append(statuses, received.Body)
	}
	if len(statuses) != 2 || !strings.Contains(statuses[0], "DeliveredToNetwork") {
		t.Errorf("posted %q, want DeliveredToNetwork and DeliveredToTerminal once each", statuses)
	}
}
