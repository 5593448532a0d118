package orangesms_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// exception is a requestError whose text and variables contain the recipient's number.
func exception(kind, id string, variables ...string) string {
	return fmt.Sprintf(`{"requestError":{%q:{"messageId":%q,"text":"tel:+2250700000000","variables":["%s"]}}}`,
		kind, id, strings.Join(variables, `","`))
}

func gatewayError(code int) string {
	return fmt.Sprintf(`{"code":%d,"message":"m","description":"tel:+2250700000000"}`, code)
}

// Every response to a message. It is sent once.
func TestOutcomes(t *testing.T) {
	const succeeded, refused = operator.Succeeded, operator.Refused
	const notApplied, unknown = operator.NotApplied, operator.Unknown
	const isUnknown, isOurs, isDown = fault.OutcomeUnknown, fault.IntegrationRejected, fault.OperatorUnavailable
	const isRefusal = fault.OperatorError
	const partRecipient, number = "X-Operator-ISE2", "tel:+2250700000000"
	const service, policy = "serviceException", "policyException"
	sent := operatortest.ReadFile(t, "sms-response.json")
	edit := func(old, new string) string { return strings.Replace(sent, old, new, 1) }
	cases := []struct {
		name     string
		status   int // 0 cuts the connection
		body     string
		outcome  operator.Outcome
		kind     fault.Kind
		variable string // of a refusal
	}{
		{"sent", 201, sent, succeeded, 0, ""},
		{"sent with 200", 200, sent, succeeded, 0, ""},
		{"slash at the end", 201, edit(requestID, requestID+"/"), succeeded, 0, ""},
		{"no resourceURL", 201, edit("resourceURL", "x"), unknown, isUnknown, ""},
		{"resourceURL without an id", 201, edit("/requests/"+requestID, "/requests/"), unknown, isUnknown, ""},
		{"resourceURL of another form", 201, edit("/requests/", "/other/"), unknown, isUnknown, ""},
		{"201, HTML", 201, "<html></html>", unknown, isUnknown, ""},
		{"201, empty", 201, "", unknown, isUnknown, ""},
		{"201, list", 201, "[" + sent + "]", unknown, isUnknown, ""},
		{"service error", 400, exception(service, "SVC0001"), unknown, isUnknown, ""},
		{"invalid recipient", 400, exception(service, "SVC0002", "address"), refused, isRefusal, partRecipient},
		{"invalid number", 400, exception(service, "SVC0002", number), refused, isRefusal, partRecipient},
		{"invalid sender", 400, exception(service, "SVC0002", "senderAddress"), notApplied, isOurs, ""},
		{"invalid, no part", 400, exception(service, "SVC0002"), notApplied, isOurs, ""},
		{"no valid address", 400, exception(service, "SVC0004", number), refused, isRefusal, partRecipient},
		{"no valid address with 500", 500, exception(service, "SVC0004"), unknown, isUnknown, ""},
		{"too long", 400, exception(service, "SVC0280"), refused, isRefusal, "160"},
		{"no units", 403, exception(policy, "POL0001"), notApplied, isOurs, ""},
		{"not provisioned", 403, exception(policy, "POL1009"), notApplied, isOurs, ""},
		{"another policy", 403, exception(policy, "POL0254"), unknown, isUnknown, ""},
		{"another exception", 400, exception(service, "SVC0003"), unknown, isUnknown, ""},
		{"an id like a number", 400, exception(service, "2250700000000"), unknown, isUnknown, ""},
		{"409", 409, exception(service, "SVC0005"), unknown, isUnknown, ""},
		{"expired token", 401, gatewayError(42), notApplied, isOurs, ""},
		{"invalid token", 401, gatewayError(41), notApplied, isOurs, ""},
		{"401, another code", 401, gatewayError(40), unknown, isUnknown, ""},
		{"401, bare", 401, "", unknown, isUnknown, ""},
		{"403 of the gateway in front", 403, gatewayError(50), unknown, isUnknown, ""},
		{"404 of the gateway in front", 404, gatewayError(60), notApplied, isOurs, ""},
		{"404, HTML", 404, "<html></html>", unknown, isUnknown, ""},
		{"429 of the gateway in front", 429, gatewayError(53), notApplied, isDown, ""},
		{"429, bare", 429, "", unknown, isUnknown, ""},
		{"429, HTML", 429, "<html></html>", unknown, isUnknown, ""},
		{"503 of the gateway in front", 503, gatewayError(5), notApplied, isDown, ""},
		{"503, HTML", 503, "<html></html>", unknown, isUnknown, ""},
		{"503, requestError", 503, exception(service, "SVC0001"), unknown, isUnknown, ""},
		{"500", 500, gatewayError(1), unknown, isUnknown, ""},
		{"302", 302, sent, unknown, isUnknown, ""},
		{"cut", 0, "", unknown, isUnknown, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			respond := operatortest.CloseConnection()
			if c.status != 0 {
				respond = operatortest.Respond(c.status, c.body)
			}
			stub := operatortest.NewStubOperator(t, operatortest.Respond(200, token), respond,
				operatortest.Respond(400, "")) // an exchange after a 401 fails
			result := newDriver(t, stub.URL, fields()).SendSMS(t.Context(), smsCall())
			checkResult(t, result, c.outcome, c.kind)
			want := c.name == "no units"
			if result.Fault != nil && errors.Is(result.Fault, operator.ErrNoUnits) != want {
				t.Errorf("%v is for lack of units: want %v", result.Fault, want)
			}
			if count := countMessages(stub); count != 1 {
				t.Errorf("%d messages were sent", count)
			}
			if c.outcome != refused {
				return
			}
			if diff := cmp.Diff([]string{c.variable}, result.Fault.OperatorException.Variables); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

func countMessages(stub *operatortest.StubOperator) int {
	count := 0
	for _, r := range stub.Requests() {
		if strings.HasPrefix(r.Path, "/smsmessaging/") {
			count++
		}
	}
	return count
}

// A token is cached, and replaced after it was refused.
func TestTokens(t *testing.T) {
	r := operatortest.Respond
	sent := r(201, operatortest.ReadFile(t, "sms-response.json"))
	second := strings.Replace(token, "token-1", "token-2", 1)
	cases := []struct {
		name       string
		responders []operatortest.Responder
		outcomes   []operator.Outcome
		requests   int
		messages   int
	}{
		{"cached, expires_in as a text", []operatortest.Responder{r(200, token), sent}, []operator.Outcome{1, 1}, 3, 2},
		{"expired in the middle", []operatortest.Responder{
			r(200, token), r(401, gatewayError(42)), r(200, second), sent,
		}, []operator.Outcome{operator.Succeeded}, 4, 2},
		{"refused twice", []operatortest.Responder{
			r(200, token), r(401, gatewayError(42)), r(200, second), r(401, gatewayError(42)),
		}, []operator.Outcome{operator.NotApplied}, 4, 2},
		{"renewed for the next message", []operatortest.Responder{r(200, token), r(401, ""), r(200, second), sent},
			[]operator.Outcome{operator.Unknown, operator.Succeeded}, 4, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, c.responders...)
			driver := newDriver(t, stub.URL, fields())
			for i, outcome := range c.outcomes {
				result := driver.SendSMS(t.Context(), smsCall())
				if result.Outcome != outcome {
					t.Fatalf("message %d: outcome %d, want %d: %v", i, result.Outcome, outcome, result.Fault)
				}
				operatortest.CheckPrivate(t, errorOf(result), private())
			}
			if len(stub.Requests()) != c.requests || countMessages(stub) != c.messages {
				t.Errorf("%d requests, %d messages", len(stub.Requests()), countMessages(stub))
			}
		})
	}
}

// errorOf returns the fault of a result as an error, nil for none.
func errorOf(result operator.Result) error {
	if result.Fault == nil {
		return nil
	}
	return result.Fault
}

// A platform that never responds ends with the context.
func TestNoResponse(t *testing.T) {
	stub := operatortest.NewStubOperator(t)
	driver := newDriver(t, stub.URL, fields())
	for _, outcome := range []operator.Outcome{operator.NotApplied, operator.Unknown} {
		stub.SetResponses(stub.NeverRespond())
		if outcome == operator.Unknown {
			stub.SetResponses(operatortest.Respond(200, token), stub.NeverRespond())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if result := driver.SendSMS(ctx, smsCall()); result.Outcome != outcome {
			t.Errorf("outcome %d, want %d: %v", result.Outcome, outcome, result.Fault)
		}
	}
}

// The check of an account shows the units of each country, and names the country without units.
func TestCheckAccount(t *testing.T) {
	const both = `[{"country":"CIV","availableUnits":7},{"country":"CIV","availableUnits":1},` +
		`{"country":"SEN","availableUnits":0}]`
	const older = "the balance responded 200 : see it in Orange's portal"
	for _, c := range []struct {
		name, body, countries, notes, fault string
		status                              int
	}{
		{"units", both, "CI", "CI has 8 units left", "", 200},
		{"no units", both, "CI SN", "CI has 8 units left; SN has 0 units left",
			"SN: the operator's account has no units", 200},
		{"no contract", both, "CM", "CM has 0 units left", "CM: the operator's account has no units", 200},
		{"no route", both, "", "", "", 200},
		{"another form", `{"partnerContracts":{}}`, "CI", older, "", 200},
		{"null", "null", "CI", older, "", 200},
		{"no balance in the contract", gatewayError(50), "CI",
			"the balance responded 403 50: see it in Orange's portal", "", 403},
		{"refused token", gatewayError(42), "CI", "", "refused our credentials", 401},
	} {
		stub := operatortest.NewStubOperator(t, operatortest.Respond(200, token),
			operatortest.Respond(c.status, c.body), operatortest.Respond(400, ""))
		var services []operator.Service
		for _, country := range strings.Fields(c.countries) {
			services = append(services, operator.Service{Operator: "orange", Country: country})
		}
		call := operator.Call{Platform: platform, AccountID: smsCall().AccountID, OrderID: "o", DriverData: "o"}
		notes, err := newDriver(t, stub.URL, fields()).CheckAccount(t.Context(), call, services)
		if strings.Join(notes, "; ") != c.notes || (err == nil) != (c.fault == "") ||
			err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: notes %q, %v", c.name, notes, err)
		}
		if sent := countMessages(stub); sent != 0 {
			t.Errorf("%s: %d messages were sent", c.name, sent)
		}
	}
}
