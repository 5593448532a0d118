package orangecm_test

import (
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/orangecm"
	"mobilegateway/shared/operator/upstream"
)

// seeds are bodies of all kinds.
func seeds(f *testing.F) []string {
	return []string{
		`{"data":null}`, `{"data":[]}`, expiredXML, expiredJSON, data(`"inittxnstatus":"60019","status":"FAILED"`),
		operatortest.ReadFile(f, "pay-response.json"), operatortest.ReadFile(f, "pay-refused.json"),
		operatortest.ReadFile(f, "status-success.json"), operatortest.ReadFile(f, "status-expired.json"),
		`{"payToken":"` + payToken + `","status":"` + word + `","message":"m"}`,
	}
}

// field is a text or a number of a response; "" if the response is not a document.
func field(body, path string) string {
	doc, isDocument := upstream.Exchange{Body: []byte(body)}.Document()
	if !isDocument {
		return ""
	}
	return upstream.TextOrNumber(doc, path)
}

func FuzzResponse(f *testing.F) {
	isOurs := func(body string) bool { return field(body, "data.payToken") == payToken }
	suite(f).Fuzz(f, operatortest.Certain{
		Succeeded: func(status int, body string) bool { return status/100 == 2 && isOurs(body) },
		Refused: func(_ int, body string) bool {
			return slices.Contains([]string{"60019", "0066111"}, field(body, "data.inittxnstatus"))
		},
		NotApplied: func(status int, body string) bool {
			code := field(body, "fault.code") + field(body, "code")
			isInFront := strings.HasPrefix(code, "900") || strings.Contains(body, "<ams:code>900")
			return isInFront && slices.Contains([]int{401, 403, 429}, status)
		},
		Found: func(found operator.StatusResponse, _ int, body string) bool {
			return found.Status != ledger.Successful || isOurs(body)
		},
	}, seeds(f)...)
}

// FuzzCallback reads any callback. A short one has neither the order nor the amount.
func FuzzCallback(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add([]byte(seed))
	}
	driver := operatortest.New[*orangecm.Driver](f, suite(f), "http://127.0.0.1:1")
	f.Fuzz(func(t *testing.T, body []byte) {
		_, isDocument := upstream.Exchange{Body: body}.Document()
		if report := driver.ReadPaymentCallback(body); !isDocument && report != (operator.CallbackReport{}) {
			t.Errorf("a report by %q", body)
		}
	})
}
