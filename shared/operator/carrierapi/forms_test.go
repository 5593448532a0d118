package carrierapi_test

import (
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/operator"
)

// An account can have another prefix of headers, another word in the path of charges, and one status of a success.
func TestAccountForms(t *testing.T) {
	forms := map[string]any{"header_prefix": "X-Orange", "path_word": "OrangeAPIToken", "success_status": "200"}
	for _, c := range []struct {
		operation string
		forms     map[string]any
		status    int
		want      operator.Outcome
		sent      []string // in the path, the headers or the body
	}{
		{"charge", nil, 200, operator.Succeeded,
			[]string{"acr%3AOperatorAPIToken/", `"acr:OperatorAPIToken"`, "X-Operator-Mco:OCI"}},
		{"charge", nil, 201, operator.Succeeded, nil},
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
			driver := suite().With(c.forms).Driver(t, stub.URL)
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
