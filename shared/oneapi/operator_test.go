package oneapi_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/oneapi"
)

func renderForwarded(o *fault.OperatorException) oneapi.ErrorResponse {
	return oneapi.Render(&fault.Fault{Kind: fault.OperatorError, OperatorException: o})
}

func exception(id, text string, status int, variables ...string) fault.OperatorException {
	return fault.OperatorException{MessageID: id, Text: text, HTTPStatus: status, Variables: variables}
}

func TestOperatorExceptionIsForwarded(t *testing.T) {
	const serviceError = "A service error occurred. Error code is %1"
	tests := []struct {
		name     string
		operator fault.OperatorException
		status   int
		text     string
		values   string // the variables, as JSON
	}{
		{"known: our text and status", exception("POL0001", "theirs %1", 400, "Not enough credit"), 403,
			"A policy error occurred. Error code is %1", `["Not enough credit"]`},
		{"known, without variables", exception("SVC0270", "", 500), 400,
			"Charging operation failed, the charge was not applied", `[]`},
		{"unknown SVC", exception("SVC0999", "Odd %1", 418, "a", "b"), 400, "Odd %1", `["a","b"]`},
		{"unknown POL", exception("POL0999", "Odd", 400), 403, "Odd", `[]`},
		{"unknown without a text", exception("SVC0999", "", 400, "a"), 400, serviceError, `["SVC0999"]`},
		{"SVC0001 with 503: down", exception("SVC0001", "", 503, "PDK_SMSW_0013"), 503, serviceError,
			`["PDK_SMSW_0013"]`},
		{"SVC0001 with 504", exception("SVC0001", "", 504, "x"), 502, serviceError, `["x"]`},
		{"SVC0001 with another status", exception("SVC0001", "", 400), 502, serviceError, `["PDK_SMSW_3000"]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			response := renderForwarded(&test.operator)
			checkShape(t, response)
			member := map[string]string{"SVC": "serviceException",
				"POL": "policyException"}[test.operator.MessageID[:3]]
			body := fmt.Sprintf(`{"requestError":{"%s":{"messageId":"%s","text":"%s","variables":%s}}}`,
				member, test.operator.MessageID, test.text, test.values)
			if response.Status != test.status || string(response.Body) != body {
				t.Errorf("response %d %s\nwant %d %s", response.Status, response.Body, test.status, body)
			}
			if wantRetry := test.status == 503; (response.Header["Retry-After"] == "5") != wantRetry {
				t.Errorf("Retry-After is %q", response.Header["Retry-After"])
			}
		})
	}
}

// 9009xx between the operator and us is about our own credentials; other forms are not codes of the family.
func TestUnforwardableExceptionIsIntegrationRejected(t *testing.T) {
	want := oneapi.Render(fault.New(fault.IntegrationRejected))
	for _, id := range []string{"900901", "900908", "900800", "", "SVC001", "SVC00011", "SVCabcd", "POL", "ERR0001",
		"svc0001"} {
		response := renderForwarded(&fault.OperatorException{MessageID: id, Text: "secret", HTTPStatus: 401})
		if response.Status != 502 || string(response.Body) != string(want.Body) {
			t.Errorf("%q: response %d %s", id, response.Status, response.Body)
		}
	}
	if response := renderForwarded(nil); response.Status != 502 {
		t.Errorf("a missing exception: response %d", response.Status)
	}
}

func TestOperatorTextsAreBounded(t *testing.T) {
	many := make([]string, 50)
	for i := range many {
		many[i] = strings.Repeat("é\n", 500)
	}
	response := renderForwarded(&fault.OperatorException{MessageID: "SVC0999", Text: strings.Repeat("x\x00", 5000),
		Variables: many})
	checkShape(t, response)
	decoded, ok := oneapi.DecodeRequestError(response.Body)
	if !ok || len(decoded.Variables) != 8 || utf8.RuneCountInString(decoded.Text) != 256 {
		t.Fatalf("decoded %v", ok)
	}
	for _, text := range append(decoded.Variables, decoded.Text) {
		if utf8.RuneCountInString(text) > 256 || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("text %q", text)
		}
	}
}

func TestDecode(t *testing.T) {
	decoded := func(id, text string, variables ...string) *fault.OperatorException {
		e := exception(id, text, 0, variables...)
		return &e
	}
	service := func(content string) string { return `{"requestError":{"serviceException":` + content + `}}` }
	tests := []struct {
		name, body string
		want       *fault.OperatorException
	}{
		{"service exception", service(`{"messageId":"SVC0002","text":"Invalid %1","variables":["amount"]}`),
			decoded("SVC0002", "Invalid %1", "amount")},
		{"policy exception with more fields", `{"x":1,"requestError":{"y":[],"policyException":` +
			`{"messageId":"POL1000","text":"No credit","variables":[],"url":"u"}}}`, decoded("POL1000", "No credit")},
		{"missing text and variables", service(`{"messageId":"900901"}`), decoded("900901", "")},
		{"messageId as a number", service(`{"messageId":900901}`), decoded("900901", "")},
		{"null text and variables", service(`{"messageId":"SVC0001","text":null,"variables":null}`),
			decoded("SVC0001", "")},
		{"variables of other types",
			service(`{"messageId":"SVC0280","text":5,"variables":[160,true,null,{"a":1},["b"],"c"]}`),
			decoded("SVC0280", "5", "160", "true", "", "", "", "c")},
		{"a single variable", service(`{"messageId":"SVC0280","variables":"160"}`), decoded("SVC0280", "", "160")},
		{"null beside the exception",
			`{"requestError":{"serviceException":null,"policyException":{"messageId":"POL0253"}}}`,
			decoded("POL0253", "")},
		{"an id of another family", service(`{"messageId":"ERR-1"}`), decoded("ERR-1", "")},
		{"nothing", ``, nil},
		{"HTML", `<html>503</html>`, nil},
		{"another object", `{"fault":{"code":900901}}`, nil},
		{"text for requestError", `{"requestError":"x"}`, nil},
		{"no exception", `{"requestError":{}}`, nil},
		{"exception a text", `{"requestError":{"serviceException":"x"}}`, nil},
		{"no messageId", `{"requestError":{"serviceException":{"text":"x"}}}`, nil},
		{"empty messageId", `{"requestError":{"serviceException":{"messageId":""}}}`, nil},
		{"messageId with a space", `{"requestError":{"serviceException":{"messageId":"SVC 1"}}}`, nil},
		{"long messageId", `{"requestError":{"serviceException":{"messageId":"` + strings.Repeat("S", 33) + `"}}}`,
			nil},
		{"cut", `{"requestError":{"serviceException":{"messageId":"SVC0001"`, nil},
		{"trailing", `{"requestError":{"serviceException":{"messageId":"SVC0001"}}} x`, nil},
		{"too large", `{"requestError":{"serviceException":{"messageId":"SVC0001"}}}` + strings.Repeat(" ", 64<<10),
			nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := oneapi.DecodeRequestError([]byte(test.body))
			if ok != (test.want != nil) {
				t.Fatalf("decoded = %v, want %v", ok, test.want != nil)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decoded exception (-want +got):\n%s", diff)
			}
			if ok && got.Variables == nil {
				t.Error("the variables are nil, want an empty list")
			}
		})
	}
}

// Rendered errors are decoded: our sandbox operator sends this shape to our driver.
func TestDecodeRequestErrorReadsRenderedErrors(t *testing.T) {
	for kind, f := range one {
		response := oneapi.Render(f)
		if decoded, ok := oneapi.DecodeRequestError(response.Body); !ok || decoded.MessageID != response.MessageID {
			t.Errorf("%v: %v, %v", kind, decoded, ok)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, example := range one {
		f.Add(oneapi.Render(example).Body, 400)
	}
	f.Add([]byte(`{"requestError":{"serviceException":{"messageId":900901,"text":5,"variables":"x"}}}`), 503)
	f.Add([]byte(`<html>`), 502)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		decoded, ok := oneapi.DecodeRequestError(body)
		if !ok {
			return
		}
		decoded.HTTPStatus = status
		response := renderForwarded(decoded)
		checkShape(t, response)
		if len(response.Body) > 16<<10 {
			t.Fatalf("%d bytes", len(response.Body))
		}
	})
}
