package oneapi_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/oneapi"
)

func renderForwarded(o *fault.OperatorException) oneapi.ErrorResponse {
	return oneapi.Render(&fault.Fault{Kind: fault.OperatorError, OperatorException: o})
}

func TestOperatorExceptionIsForwarded(t *testing.T) {
	const shape = `{"requestError":{"`
	tests := []struct {
		name     string
		operator *fault.OperatorException
		status   int
		body     string
	}{
		{
			"known, our text and status",
			&fault.OperatorException{MessageID: "POL0001", Text: "theirs %1", Variables: []string{"Not enough credit"}, HTTPStatus: 400},
			403,
			shape + `policyException":{"messageId":"POL0001","text":"A policy error occurred. Error code is %1","variables":["Not enough credit"]}}}`,
		},
		{
			"known, without variables",
			&fault.OperatorException{MessageID: "SVC0270", HTTPStatus: 500},
			400,
			shape + `serviceException":{"messageId":"SVC0270","text":"Charging operation failed, the charge was not applied","variables":[]}}}`,
		},
		{
			"unknown SVC",
			&fault.OperatorException{MessageID: "SVC0999", Text: "Odd %1", Variables: []string{"a", "b"}, HTTPStatus: 418},
			400,
			shape + `serviceException":{"messageId":"SVC0999","text":"Odd %1","variables":["a","b"]}}}`,
		},
		{
			"unknown POL",
			&fault.OperatorException{MessageID: "POL0999", Text: "Odd", HTTPStatus: 400},
			403,
			shape + `policyException":{"messageId":"POL0999","text":"Odd","variables":[]}}}`,
		},
		{
			"unknown without a text",
			&fault.OperatorException{MessageID: "SVC0999", Variables: []string{"a"}, HTTPStatus: 400},
			400,
			shape + `serviceException":{"messageId":"SVC0999","text":"A service error occurred. Error code is %1","variables":["SVC0999"]}}}`,
		},
		{
			"SVC0001 with 503: down",
			&fault.OperatorException{MessageID: "SVC0001", Variables: []string{"PDK_SMSW_0013"}, HTTPStatus: 503},
			503,
			shape + `serviceException":{"messageId":"SVC0001","text":"A service error occurred. Error code is %1","variables":["PDK_SMSW_0013"]}}}`,
		},
		{
			"SVC0001 with 504",
			&fault.OperatorException{MessageID: "SVC0001", Variables: []string{"x"}, HTTPStatus: 504},
			502,
			shape + `serviceException":{"messageId":"SVC0001","text":"A service error occurred. Error code is %1","variables":["x"]}}}`,
		},
		{
			"SVC0001 with another status",
			&fault.OperatorException{MessageID: "SVC0001", HTTPStatus: 400},
			502,
			shape + `serviceException":{"messageId":"SVC0001","text":"A service error occurred. Error code is %1","variables":["PDK_SMSW_3000"]}}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			response := renderForwarded(test.operator)
			checkShape(t, response)
			if response.Status != test.status || string(response.Body) != test.body {
				t.Errorf("answer %d %s\nwant %d %s", response.Status, response.Body, test.status, test.body)
			}
			if wantRetry := test.status == 503; (response.Header["Retry-After"] == "5") != wantRetry {
				t.Errorf("Retry-After is %q", response.Header["Retry-After"])
			}
		})
	}
}

// 9009xx between the operator and us is about our own credentials; other forms are no codes of the family.
func TestUnforwardableExceptionIsIntegrationRejected(t *testing.T) {
	want := oneapi.Render(fault.New(fault.IntegrationRejected))
	for _, id := range []string{"900901", "900908", "900800", "", "SVC001", "SVC00011", "SVCabcd", "POL", "ERR0001", "svc0001"} {
		response := renderForwarded(&fault.OperatorException{MessageID: id, Text: "secret", HTTPStatus: 401})
		if response.Status != 502 || string(response.Body) != string(want.Body) {
			t.Errorf("%q is answered %d %s", id, response.Status, response.Body)
		}
	}
	if response := renderForwarded(nil); response.Status != 502 {
		t.Errorf("an exception that is not there is answered %d", response.Status)
	}
}

func TestOperatorTextsAreBounded(t *testing.T) {
	many := make([]string, 50)
	for i := range many {
		many[i] = strings.Repeat("é\n", 500)
	}
	response := renderForwarded(&fault.OperatorException{MessageID: "SVC0999", Text: strings.Repeat("x\x00", 5000), Variables: many})
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
	tests := []struct {
		name, body string
		want       *fault.OperatorException
	}{
		{
			"service exception",
			`{"requestError":{"serviceException":{"messageId":"SVC0002","text":"Invalid %1","variables":["amount"]}}}`,
			&fault.OperatorException{MessageID: "SVC0002", Text: "Invalid %1", Variables: []string{"amount"}},
		},
		{
			"policy exception with more fields",
			`{"x":1,"requestError":{"y":[],"policyException":{"messageId":"POL1000","text":"No credit","variables":[],"url":"u"}}}`,
			&fault.OperatorException{MessageID: "POL1000", Text: "No credit"},
		},
		{"missing text and variables", `{"requestError":{"policyException":{"messageId":"900901"}}}`, &fault.OperatorException{MessageID: "900901"}},
		{"messageId as a number", `{"requestError":{"policyException":{"messageId":900901}}}`, &fault.OperatorException{MessageID: "900901"}},
		{
			"null text and variables",
			`{"requestError":{"serviceException":{"messageId":"SVC0001","text":null,"variables":null}}}`,
			&fault.OperatorException{MessageID: "SVC0001"},
		},
		{
			"variables of other types",
			`{"requestError":{"serviceException":{"messageId":"SVC0280","text":5,"variables":[160,true,null,{"a":1},["b"],"c"]}}}`,
			&fault.OperatorException{MessageID: "SVC0280", Text: "5", Variables: []string{"160", "true", "", "", "", "c"}},
		},
		{
			"a single variable",
			`{"requestError":{"serviceException":{"messageId":"SVC0280","variables":"160"}}}`,
			&fault.OperatorException{MessageID: "SVC0280", Variables: []string{"160"}},
		},
		{
			"null beside the exception",
			`{"requestError":{"serviceException":null,"policyException":{"messageId":"POL0253"}}}`,
			&fault.OperatorException{MessageID: "POL0253"},
		},
		{"an id of another family", `{"requestError":{"serviceException":{"messageId":"ERR-1"}}}`, &fault.OperatorException{MessageID: "ERR-1"}},
		{"nothing", ``, nil},
		{"HTML", `<html>503</html>`, nil},
		{"another object", `{"fault":{"code":900901}}`, nil},
		{"text for requestError", `{"requestError":"x"}`, nil},
		{"no exception", `{"requestError":{}}`, nil},
		{"exception a text", `{"requestError":{"serviceException":"x"}}`, nil},
		{"no messageId", `{"requestError":{"serviceException":{"text":"x"}}}`, nil},
		{"empty messageId", `{"requestError":{"serviceException":{"messageId":""}}}`, nil},
		{"messageId with a space", `{"requestError":{"serviceException":{"messageId":"SVC 1"}}}`, nil},
		{"long messageId", `{"requestError":{"serviceException":{"messageId":"` + strings.Repeat("S", 33) + `"}}}`, nil},
		{"cut", `{"requestError":{"serviceException":{"messageId":"SVC0001"`, nil},
		{"trailing", `{"requestError":{"serviceException":{"messageId":"SVC0001"}}} x`, nil},
		{"too large", `{"requestError":{"serviceException":{"messageId":"SVC0001"}}}` + strings.Repeat(" ", 64<<10), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := oneapi.DecodeRequestError([]byte(test.body))
			if ok != (test.want != nil) || (got != nil) != ok {
				t.Fatalf("Decode = %v, %v", got, ok)
			}
			if !ok {
				return
			}
			if got.MessageID != test.want.MessageID || got.Text != test.want.Text || !slices.Equal(got.Variables, test.want.Variables) {
				t.Errorf("Decode = %+v, want %+v", got, test.want)
			}
			if got.Variables == nil || got.HTTPStatus != 0 {
				t.Errorf("Decode = %+v", got)
			}
		})
	}
}

// What we write ourselves is read back: our own sandbox operator speaks this shape to our driver.
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
