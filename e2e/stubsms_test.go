package e2e

import (
	"fmt"
	"net/http"
	"slices"
)

// sendMessages sends messages of the second merchant, whose only operator is Orange. It sends one after the other,
// because Orange has no key under which an effect can be found. The last column is the number of effects after each.
func (s stubStory) sendMessages() {
	delivered := []string{"DeliveredToTerminal"}
	for _, c := range []struct {
		ending           string
		response, repeat int
		receipts         []string
		effects          int
	}{
		{"2000", http.StatusCreated, http.StatusConflict, delivered, 1},
		{"1001", http.StatusCreated, http.StatusConflict, []string{"DeliveryImpossible"}, 1},
		{"1002", http.StatusBadGateway, http.StatusBadGateway, nil, 1}, // the bundle of units is empty
		{"1003", http.StatusCreated, http.StatusConflict, nil, 2},
		{"1005", http.StatusGatewayTimeout, http.StatusGatewayTimeout, nil, 3},
		{"1006", http.StatusCreated, http.StatusConflict, delivered, 4},
		{"1007", http.StatusCreated, http.StatusConflict, delivered, 5},
	} {
		key := s.target.newID()
		message := newSMS(s.target.SecondMerchant, key, "225070000"+c.ending, "tel:+2250000")
		const receipt = "outboundSMSMessageRequest.receiptRequest."
		setPath(message.body, receipt+"notifyURL", s.target.InboxURL+"/receipts")
		setPath(message.body, receipt+"callbackData", key)
		s.sendWithinRate(message, c.response)
		eventuallyNoError(s, stubWait, func() error { return s.checkLastReceipts(key, c.receipts) })
		s.sendWithinRate(message, c.repeat)
		if found, err := readControl[effect](s, "effects"); err != nil || len(found) != c.effects {
			s.Errorf("%s: %d effects, want %d: %v", c.ending, len(found), c.effects, err)
		}
	}
}

// checkLastReceipts checks the receipts of a message, except DeliveredToNetwork: the last one may overtake it.
func (s stubStory) checkLastReceipts(key string, want []string) error {
	found, err := s.target.receiptsOf(key)
	if err != nil {
		return err
	}
	isFirst := func(status string) bool { return status == "DeliveredToNetwork" }
	if got := slices.DeleteFunc(statusesOf(found, receiptStatus), isFirst); !slices.Equal(got, want) {
		return fmt.Errorf("the merchant got the receipts %q for %s, want %q", got, key, want)
	}
	return nil
}

// sendWithinRate sends a message again after each 503: an account may send only five in a second.
func (s stubStory) sendWithinRate(a *requestBuilder, want int) {
	s.Helper()
	eventuallyNoError(s, stubWait, func() error {
		response, err := s.target.send(a)
		if err == nil && response.status != want && response.status != http.StatusServiceUnavailable {
			s.Fatal(response.errorf("status %d, want %d", response.status, want))
		}
		if err != nil || response.status != want {
			return response.errorf("status %d, want %d: %v", response.status, want, err)
		}
		return nil
	})
}
