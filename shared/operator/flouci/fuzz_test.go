package flouci_test

import (
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// Flouci never refuses a payment when its page is created. While the page can be paid, only a success is final.
func FuzzResponse(f *testing.F) {
	bench := suite(f, 0)
	bench.DriverData = driverData
	bench.Fuzz(f, operatortest.Certain{
		Succeeded:  func(status int, _ string) bool { return status/100 == 2 },
		NotApplied: func(status int, _ string) bool { return status/100 == 4 && status != 409 },
		Found: func(found operator.StatusResponse, _ int, body string) bool {
			isPaid := found.Status == ledger.Successful
			isUnproven := isPaid && !strings.Contains(strings.ToLower(body), "success")
			return !isUnproven && !found.OrderNotFound &&
				(isPaid || found.Status == "" || found.Status == ledger.Pending)
		},
	}, operatortest.ReadFile(f, "pay-response.json"), operatortest.ReadFile(f, "status-response.json"), failure)
}
