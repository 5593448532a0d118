package mtn_test

import (
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
)

// testdata are the bodies of lookups and callbacks.
func testdata(f *testing.F) []string {
	return []string{
		operatortest.ReadFile(f, "successful.json"), operatortest.ReadFile(f, "failed.json"),
		operatortest.ReadFile(f, "failed-object.json"),
	}
}

// No response makes a payment succeed but an empty 202.
func FuzzResponse(f *testing.F) {
	isRefusal := func(status int, body string) bool { return status >= 400 && strings.Contains(body, "{") }
	suite().Fuzz(f, operatortest.Certain{
		Succeeded:  func(status int, body string) bool { return status == 202 && strings.TrimSpace(body) == "" },
		Refused:    isRefusal,
		NotApplied: isRefusal,
	}, append(testdata(f), code("NOT_ENOUGH_FUNDS"), code("INVALID_CURRENCY"), inFront401)...)
}

func FuzzCallback(f *testing.F) { suite().FuzzCallback(f, testdata(f)...) }
