package carrierapi_test

import (
	"fmt"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/operator"
)

// An account can have another prefix of headers, another word in the path of charges, and one status of a success.
func TestAccountForms(t *testing.T) {
	const forms = `"header_prefix":"X-Orange","path_word":"OrangeAPIToken","success_status":"200",`
	for _, c := range []struct {
		operation, forms string
		status           int
		want             operator.Outcome
		sent             []string // in the path, the headers or the body
	}{
		{"charge", "", 200, operator.Succeeded,
			[]string{"acr%3AOperatorAPIToken/", `"acr:OperatorAPIToken"`, "X-Operator-Mco:OCI"}},
		{"charge", "", 201, operator.Succeeded, nil},
		{"charge", forms, 200, operator.Succeeded,
			[]string{"acr%3AOrangeAPIToken/", `"endUserId":"acr:OrangeAPIToken"`, "X-Orange-Mco:OCI"}},
		{"charge", forms, 201, operator.Unknown, nil},
		{"sms", forms, 200, operator.Succeeded, []string{`"acr:X-Orange-ISE2"`, "X-Orange-Ise2:", "X-Orange-Mco:OCI"}},
		{"tpe", forms, 201, operator.Unknown, nil},
	} {
		for _, op := range operatortest.Operations(sandbox, "a1") {
			if op.Name != c.operation {
				continue
			}
			stub := operatortest.NewStubOperator(t, operatortest.Respond(c.status, successBody(op)))
			driver, source := newDriver(stub.URL)
			source.override = fmt.Sprintf(`{%q:{"current":"a1","accounts":{"a1":{%s"base_url":%q,"access_token":"t",
				"service_id":"S","application_id":"A","contact_id":"C"}}}}`, sandbox, c.forms, stub.URL)
			if result := call(t, driver, op); result.Outcome != c.want {
				t.Errorf("%s %d: outcome %d, want %d: %v", op.Name, c.status, result.Outcome, c.want, result.Fault)
			}
			request := stub.Requests()[0]
			all := request.Path + " " + request.Body
			for name, values := range request.Header {
				all += " " + name + ":" + values[0]
			}
			for _, text := range c.sent {
				if !strings.Contains(all, text) {
					t.Errorf("%s: %q is not in the request %s", op.Name, text, all)
				}
			}
		}
	}
}
