package orangesms

import (
	"net/http"
	"strings"
	"testing"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

// seeds are bodies of all kinds.
func seeds() []string {
	return []string{
		``, `{}`, `null`, `[]`, `{"outboundSMSMessageRequest":[]}`, `{"code":42,"message":"m"}`, `{"code":"60"}`,
		`{"outboundSMSMessageRequest":{"resourceURL":"https://api.orange.com/x/requests/1","address":["tel:+1"]}}`,
		`{"requestError":{"serviceException":{"messageId":"SVC0004","text":"t","variables":[]}}}`,
		`{"requestError":{"serviceException":{"messageId":"SVC0002","variables":["address"]}}}`,
		`{"requestError":{"policyException":{"messageId":"POL0001"}}}`,
		`{"deliveryInfoNotification":{"callbackData":"1","deliveryInfo":{"deliveryStatus":"MessageWaiting"}}}`,
		`{"deliveryInfoNotification":{"callbackData":"1","deliveryInfo":[{"deliveryStatus":"DeliveredToNetwork"}]}}`,
	}
}

// FuzzResponse reads any response to a message. No outcome may be more certain than the response.
func FuzzResponse(f *testing.F) {
	for _, seed := range seeds() {
		for _, status := range []int{200, 201, 302, 400, 401, 403, 404, 409, 429, 500, 503} {
			f.Add(status, seed)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		x := upstream.Exchange{Status: status, Header: http.Header{}, Body: []byte(body), MayHaveSent: true}
		result := classifyMessage(x, "tel:+2250700000000")
		if (result.Outcome == operator.Succeeded) != (result.Fault == nil) || result.DuplicateKey {
			t.Fatalf("outcome %d with the fault %v", result.Outcome, result.Fault)
		}
		switch result.Outcome {
		case operator.Succeeded:
			if status/100 != 2 || result.OperatorReference == "" || !strings.Contains(body, "resourceURL") {
				t.Errorf("a success by %d %q", status, body)
			}
		case operator.Refused:
			if status != http.StatusBadRequest || !strings.Contains(body, "requestError") {
				t.Errorf("a refusal by %d %q", status, body)
			}
		case operator.NotApplied:
			if status/100 != 4 && status != http.StatusServiceUnavailable || status == http.StatusConflict {
				t.Errorf("not applied by %d %q", status, body)
			}
		}
	})
}

// FuzzReceipt reads any receipt. A receipt that can be read names a message and at least one status.
func FuzzReceipt(f *testing.F) {
	for _, seed := range seeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		id, statuses, ok := (&Driver{}).ReadReceipt(body)
		if ok != (id != "") || ok != (len(statuses) > 0) || len(statuses) > maxDeliveryInfos {
			t.Errorf("id %q, %d statuses, ok %v", id, len(statuses), ok)
		}
	})
}
