package wave_test

import (
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/operator"
)

// Wave never refuses a payment when it is created, and a created session is open.
func FuzzResponse(f *testing.F) {
	open, paid := operatortest.ReadFile(f, "session-open.json"), operatortest.ReadFile(f, "session-paid.json")
	suite(f).Fuzz(f, operatortest.Certain{
		Succeeded: func(status int, body string) bool {
			return status/100 == 2 && strings.Contains(body, "processing")
		},
		NotApplied: func(status int, _ string) bool { return status/100 == 4 && status != 409 },
		Found: func(found operator.StatusResponse, status int, body string) bool {
			return !found.OrderNotFound || status == 404 || strings.Contains(body, "result")
		},
	}, open, paid, strings.ReplaceAll(open, "1000", "1500"), listOf(open, open), listOf(paid, paid), listOf(),
		errorBody("request-validation-error"), `{"error":`+errorBody("invalid-auth")+`}`)
}

func FuzzCallback(f *testing.F) {
	const completed = "checkout.session.completed"
	suite(f).FuzzCallback(f, event(completed, operatortest.ReadFile(f, "session-paid.json")),
		event(completed, operatortest.ReadFile(f, "session-open.json")), testEvent)
}
