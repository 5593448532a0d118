package orangesms

import (
	"slices"

	kit "mobilegateway/internal/operatorstub"
)

// receipts returns the receipts of an SMS in the order in which they are sent.
func (s *stub) receipts(t *kit.Transaction) []kit.Callback {
	var receipts []kit.Callback
	for _, word := range s.deliveryStatuses(t.Outcome.Results()) {
		body := map[string]any{"deliveryInfoNotification": map[string]any{"callbackData": t.Key,
			"deliveryInfo": map[string]string{"address": "tel:" + t.MSISDN, "deliveryStatus": word}}}
		receipt := t.Post(body)
		receipts = append(receipts, receipt)
		if s.Quirk("receipts_twice") {
			receipts = append(receipts, receipt)
		}
	}
	return receipts
}

// deliveryStatuses returns the words of the receipts for these results.
func (s *stub) deliveryStatuses(results []kit.Result) []string {
	var words []string
	for _, result := range results {
		switch result {
		case kit.Undecided:
		case kit.Paid:
			words = append(words, "DeliveredToNetwork")
			if !s.Quirk("receipts_network_only") {
				words = append(words, "DeliveredToTerminal")
			}
		case kit.Refused:
			words = append(words, "DeliveryImpossible")
		default:
			words = append(words, string(result))
		}
	}
	if s.Quirk("receipts_reordered") {
		slices.Reverse(words)
	}
	if s.Quirk("receipts_lost") {
		return nil
	}
	return words
}
