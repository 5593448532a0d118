package orangesms_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/orangesms"
)

const service, policy = "serviceException", "policyException"

// exception is a requestError whose text and variables contain the recipient's number.
func exception(kind, id string, variables ...string) string {
	return fmt.Sprintf(`{"requestError":{%q:{"messageId":%q,"text":"tel:+2250700000000","variables":["%s"]}}}`,
		kind, id, strings.Join(variables, `","`))
}

func gatewayError(code int) string {
	return fmt.Sprintf(`{"code":%d,"message":"m","description":"tel:+2250700000000"}`, code)
}

// send sends a message. Its fault is for lack of units exactly with the code for it.
func send(t *testing.T, isWithoutUnits bool) func(context.Context, operator.Driver) operator.PayResponse {
	return func(ctx context.Context, d operator.Driver) operator.PayResponse {
		result := d.(*orangesms.Driver).SendSMS(ctx, smsCall())
		if result.Fault != nil && errors.Is(result.Fault, operator.ErrNoUnits) != isWithoutUnits {
			t.Errorf("%v is for lack of units: want %v", result.Fault, isWithoutUnits)
		}
		return operator.PayResponse{Result: result}
	}
}

// Every response to a message. It is sent a second time only with another token, if the first one was refused.
func TestOutcomes(t *testing.T) {
	response := operatortest.ReadFile(t, "sms-response.json")
	edit := func(old, new string) operatortest.Responder {
		return respond(201, strings.Replace(response, old, new, 1))
	}
	suite(t).CheckCalls(t, send(t, true), operatortest.Outcomes{
		operatortest.OurFault: {"no units": respond(403, exception(policy, "POL0001"))},
	})
	suite(t).CheckCalls(t, send(t, false), operatortest.Outcomes{
		operatortest.Succeeded: {
			"sent":             sent(t),
			"sent with 200":    respond(200, response),
			"slash at the end": edit(requestID, requestID+"/"),
		},
		operatortest.OurFault: {
			"invalid sender":              respond(400, exception(service, "SVC0002", "senderAddress")),
			"invalid, no part":            respond(400, exception(service, "SVC0002")),
			"not provisioned":             respond(403, exception(policy, "POL1009")),
			"404 of the gateway in front": respond(404, gatewayError(60)),
		},
		operatortest.OurFault.Sent(2): {
			"expired token": respond(401, gatewayError(42)),
			"invalid token": respond(401, gatewayError(41)),
		},
		operatortest.Unavailable: {
			"429 of the gateway in front": respond(429, gatewayError(53)),
			"503 of the gateway in front": respond(503, gatewayError(5)),
		},
		operatortest.Unknown: {
			"no resourceURL":              edit("resourceURL", "x"),
			"resourceURL without an id":   edit("/requests/"+requestID, "/requests/"),
			"resourceURL of another form": edit("/requests/", "/other/"),
			"201, HTML":                   respond(201, "<html></html>"),
			"201, empty":                  respond(201, ""),
			"201, list":                   respond(201, "["+response+"]"),
			"service error":               respond(400, exception(service, "SVC0001")),
			"no valid address with 500":   respond(500, exception(service, "SVC0004")),
			"another policy":              respond(403, exception(policy, "POL0254")),
			"another exception":           respond(400, exception(service, "SVC0003")),
			"an id like a number":         respond(400, exception(service, "2250700000000")),
			"409":                         respond(409, exception(service, "SVC0005")),
			"401, another code":           respond(401, gatewayError(40)),
			"401, bare":                   respond(401, ""),
			"403 of the gateway in front": respond(403, gatewayError(50)),
			"429, bare":                   respond(429, ""),
			"429, HTML":                   respond(429, "<html></html>"),
			"503, requestError":           respond(503, exception(service, "SVC0001")),
			"500":                         respond(500, gatewayError(1)),
			"302":                         respond(302, response),
		},
	})
}

// The variable of a refusal is the merchant's part, or the longest text, and never the platform's variable.
func TestRefusals(t *testing.T) {
	const partRecipient, number = "X-Operator-ISE2", "tel:+2250700000000"
	for name, c := range map[string]struct{ body, variable string }{
		"invalid recipient": {exception(service, "SVC0002", "address"), partRecipient},
		"invalid number":    {exception(service, "SVC0002", number), partRecipient},
		"no valid address":  {exception(service, "SVC0004", number), partRecipient},
		"too long":          {exception(service, "SVC0280"), "160"},
	} {
		stub := suite(t).Stub(t, respond(400, c.body))
		result := newDriver(t, suite(t), stub).SendSMS(t.Context(), smsCall())
		suite(t).CheckProof(t, result, operatortest.Refused(""))
		got := result.Fault.OperatorException.Variables
		if len(got) != 1 || got[0] != c.variable || len(stub.Requests()) != 1 {
			t.Errorf("%s: variables %q after %d requests, want %q", name, got, len(stub.Requests()), c.variable)
		}
	}
}

// After any 401 the next message has another token.
func TestTokenIsDropped(t *testing.T) {
	stub := operatortest.NewStubOperator(t, respond(200, token), respond(401, ""),
		respond(200, strings.Replace(token, "token-1", "token-2", 1)), sent(t))
	driver := newDriver(t, suite(t), stub)
	for _, want := range []operatortest.Proof{operatortest.Unknown, operatortest.Succeeded} {
		suite(t).CheckProof(t, driver.SendSMS(t.Context(), smsCall()), want)
	}
	if sent := len(stub.Requests()); sent != 4 {
		t.Errorf("%d requests, want 4", sent)
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
		stub := operatortest.NewStubOperator(t, respond(200, token), respond(c.status, c.body), respond(400, ""))
		var services []operator.Service
		for _, country := range strings.Fields(c.countries) {
			services = append(services, operator.Service{Operator: "orange", Country: country})
		}
		call := operator.Call{Platform: "orange-sms", AccountID: "a1", OrderID: "o", DriverData: "o"}
		notes, err := newDriver(t, suite(t), stub).CheckAccount(t.Context(), call, services)
		if strings.Join(notes, "; ") != c.notes || (err == nil) != (c.fault == "") ||
			err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: notes %q, %v", c.name, notes, err)
		}
		for _, r := range stub.Requests() {
			if strings.HasPrefix(r.Path, "/smsmessaging/") {
				t.Errorf("%s: a message was sent", c.name)
			}
		}
	}
}
