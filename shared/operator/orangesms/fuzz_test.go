package orangesms_test

import (
	"net/http"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/operator/orangesms"
)

func FuzzResponse(f *testing.F) {
	suite(f).Fuzz(f, operatortest.Certain{
		Succeeded: func(status int, body string) bool {
			return status/100 == 2 && strings.Contains(body, "resourceURL")
		},
		Refused: func(status int, body string) bool {
			return status == http.StatusBadRequest && strings.Contains(body, "requestError")
		},
		NotApplied: func(status int, _ string) bool {
			return status/100 == 4 && status != http.StatusConflict || status == http.StatusServiceUnavailable
		},
	}, `{"outboundSMSMessageRequest":[]}`, `{"code":42,"message":"m"}`, `{"code":"60"}`,
		`{"outboundSMSMessageRequest":{"resourceURL":"https://api.orange.com/x/requests/1","address":["tel:+1"]}}`,
		exception(service, "SVC0004"), exception(service, "SVC0002", "address"), exception(policy, "POL0001"))
}

// FuzzReceipt reads any receipt. A receipt that can be read names a message and at least one status, at most 16.
func FuzzReceipt(f *testing.F) {
	for _, seed := range []string{
		`{"deliveryInfoNotification":{"callbackData":"1","deliveryInfo":{"deliveryStatus":"MessageWaiting"}}}`,
		`{"deliveryInfoNotification":{"callbackData":"1","deliveryInfo":[{"deliveryStatus":"DeliveredToNetwork"}]}}`,
		``, `{}`, `null`, `[]`, operatortest.ReadFile(f, "receipt.json"),
	} {
		f.Add([]byte(seed))
	}
	driver := operatortest.New[*orangesms.Driver](f, suite(f), "http://127.0.0.1:1")
	f.Fuzz(func(t *testing.T, body []byte) {
		id, statuses, ok := driver.ReadReceipt(body)
		if ok != (id != "") || ok != (len(statuses) > 0) || len(statuses) > 16 {
			t.Errorf("id %q, %d statuses, ok %v", id, len(statuses), ok)
		}
	})
}
