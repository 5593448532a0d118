package orangesms

import (
	"net/http"
	"slices"

	"mobilegateway/internal/operatorstub"
)

// receipts returns the receipts of an SMS in the order in which they are sent.
func (s *Stub) receipts(t *operatorstub.Transaction) []operatorstub.Callback {
	results := t.Outcome.Callbacks
	if results == nil {
		results = []operatorstub.Result{t.Outcome.Result}
	}
	var receipts []operatorstub.Callback
	for _, word := range s.deliveryStatuses(results) {
		body := map[string]any{"deliveryInfoNotification": map[string]any{"callbackData": t.Key,
			"deliveryInfo": map[string]string{"address": "tel:" + t.MSISDN, "deliveryStatus": word}}}
		receipt := operatorstub.Callback{Method: http.MethodPost, URL: t.CallbackURL,
			Body: operatorstub.JSON(0, body).Body}
		receipts = append(receipts, receipt)
		if s.platform.Quirk("receipts_twice") {
			receipts = append(receipts, receipt)
		}
	}
	return receipts
}

// deliveryStatuses returns the words of the receipts for these results.
func (s *Stub) deliveryStatuses(results []operatorstub.Result) []string {
	var words []string
	for _, result := range results {
		switch result {
		case operatorstub.Undecided:
		case operatorstub.Paid:
			words = append(words, "DeliveredToNetwork")
			if !s.platform.Quirk("receipts_network_only") {
				words = append(words, "DeliveredToTerminal")
			}
		case operatorstub.Refused:
			words = append(words, "DeliveryImpossible")
		default:
			words = append(words, string(result))
		}
	}
	if s.platform.Quirk("receipts_reordered") {
		slices.Reverse(words)
	}
	if s.platform.Quirk("receipts_lost") {
		return nil
	}
	return words
}
