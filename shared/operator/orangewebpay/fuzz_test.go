package orangewebpay_test

import (
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/operator"
)

// Orange never refuses a payment when its page is created.
func FuzzResponse(f *testing.F) {
	bodies := []string{
		operatortest.ReadFile(f, "pay-response.json"), operatortest.ReadFile(f, "status-response.json"),
		operatortest.ReadFile(f, "token-response.json"), operatortest.ReadFile(f, "callback.json"),
	}
	for _, code := range []string{"22", "23", "42", "53", "60", "1204"} {
		bodies = append(bodies, `{"code":`+code+`}`, `{"error":{"error":{"code":"`+code+`"}}}`)
	}
	suite(f).Fuzz(f, operatortest.Certain{
		Succeeded:  func(status int, _ string) bool { return status/100 == 2 },
		NotApplied: func(status int, _ string) bool { return status/100 == 4 && status != 409 },
		Found: func(found operator.StatusResponse, _ int, body string) bool {
			return !found.OrderNotFound && (found.Status == "" || strings.Contains(body, "status"))
		},
	}, bodies...)
}

func FuzzCallback(f *testing.F) { suite(f).FuzzCallback(f, operatortest.ReadFile(f, "callback.json")) }
