package carrierapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// The table of decision "outcomes" for responses with a requestError. It is the same for every operation.
func TestOutcomesOfRequestErrors(t *testing.T) {
	cases := []struct {
		name    string
		status  int
		id      string
		outcome operator.Outcome
		kind    fault.Kind
	}{
		{"refused by the user", 403, "POL0253", operator.Refused, fault.OperatorError},
		{"not enough credit", 403, "POL1000", operator.Refused, fault.OperatorError},
		{"policy", 403, "POL0001", operator.Refused, fault.OperatorError},
		{"charge failed", 400, "SVC0270", operator.Refused, fault.OperatorError},
		{"refusal with another 4xx", 402, "POL1000", operator.Refused, fault.OperatorError},
		{"refusal with 409", 409, "POL1000", operator.Refused, fault.OperatorError},
		{"refusal with 2xx", 200, "POL1000", operator.Unknown, fault.OutcomeUnknown},
		{"refusal with 500", 500, "SVC0270", operator.Unknown, fault.OutcomeUnknown},
		{"refusal with 503", 503, "SVC0270", operator.NotApplied, fault.OperatorUnavailable},
		{"invalid value", 400, "SVC0002", operator.NotApplied, fault.OperatorError},
		{"unknown address", 404, "SVC0004", operator.NotApplied, fault.OperatorError},
		{"too long", 400, "SVC0280", operator.NotApplied, fault.OperatorError},
		{"service error with 400", 400, "SVC0001", operator.NotApplied, fault.OperatorError},
		{"another policy", 403, "POL0254", operator.NotApplied, fault.OperatorError},
		{"not entitled", 403, "900908", operator.NotApplied, fault.IntegrationRejected},
		{"no such resource", 404, "900906", operator.NotApplied, fault.IntegrationRejected},
		{"bad token", 401, "900901", operator.NotApplied, fault.IntegrationRejected},
		{"401 with an SVC", 401, "SVC0001", operator.NotApplied, fault.IntegrationRejected},
		{"an id of no family", 400, "E42", operator.NotApplied, fault.IntegrationRejected},
		{"an id that only begins like one", 400, "SVC00021", operator.NotApplied, fault.IntegrationRejected},
		{"throttled", 429, "900800", operator.NotApplied, fault.OperatorUnavailable},
		{"down", 503, "SVC0001", operator.NotApplied, fault.OperatorUnavailable},
		{"in flight", 409, "SVC0001", operator.Unknown, fault.OutcomeUnknown},
		{"500", 500, "SVC0001", operator.Unknown, fault.OutcomeUnknown},
		{"502", 502, "SVC0001", operator.Unknown, fault.OutcomeUnknown},
		{"504", 504, "SVC0001", operator.Unknown, fault.OutcomeUnknown},
		{"3xx", 302, "SVC0002", operator.Unknown, fault.OutcomeUnknown},
	}
	peer := operatortest.NewStubOperator(t)
	driver := newDriver(peer.URL)
	for _, op := range operatortest.Operations(sandbox, "") {
		for _, c := range cases {
			t.Run(op.Name+"/"+c.name, func(t *testing.T) {
				peer.ClearRequests()
				peer.SetResponses(operatortest.Respond(c.status, requestError(c.id)))
				result := call(t, driver, op)
				wantOutcome(t, result, c.outcome, c.kind)
				if len(peer.Requests()) != 1 || result.DuplicateKey {
					t.Errorf("%d requests, duplicate %v", len(peer.Requests()), result.DuplicateKey)
				}
				if c.kind != fault.OperatorError {
					return
				}
				want := &fault.OperatorException{
					MessageID: c.id, HTTPStatus: c.status, Text: "Text of %1", Variables: []string{"one"},
				}
				if diff := cmp.Diff(want, result.Fault.OperatorException); diff != "" {
					t.Errorf("the operator's exception (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A known key is in progress with Retry-After, and a duplicate without. Only SMS reports duplicates.
func TestDuplicates(t *testing.T) {
	location := "https://op/smsmessaging/v1/outbound/tel%3A%2B1/requests/req-9/deliveryInfos"
	cases := []struct {
		name      string
		step      operatortest.Responder
		duplicate bool
		reference string
	}{
		{"duplicate", operatortest.Respond(409, requestError("SVC0005"), "Location", location), true, "req-9"},
		{"duplicate with 400", operatortest.Respond(400, requestError("SVC0005")), true, ""},
		{"in flight", operatortest.Respond(409, requestError("SVC0005"), "Retry-After", "1"), false, ""},
	}
	peer := operatortest.NewStubOperator(t)
	driver := newDriver(peer.URL)
	for _, op := range operatortest.Operations(sandbox, "") {
		for _, c := range cases {
			t.Run(op.Name+"/"+c.name, func(t *testing.T) {
				peer.SetResponses(c.step)
				result := call(t, driver, op)
				if result.Outcome != operator.Unknown || result.DuplicateKey != (c.duplicate && op.Name == "sms") {
					t.Fatalf("outcome %d, want Unknown; duplicate %v", result.Outcome, result.DuplicateKey)
				}
				if result.DuplicateKey && result.OperatorReference != c.reference {
					t.Errorf("reference %q, want %q", result.OperatorReference, c.reference)
				}
			})
		}
	}
}

// A 2xx response is a success only with all required fields.
func TestCompleteness(t *testing.T) {
	const done, unknown = operator.Succeeded, operator.Unknown
	cases := []struct {
		op   string
		name string
		edit func(string) string
		want operator.Outcome
	}{
		{"charge", "unknown fields", replacer(`"endUserId"`, `"new":{"a":[1]},"endUserId"`), done},
		{"charge", "total as a text", replacer(`:500}`, `:"500.00"}`), done},
		{"charge", "no serverReferenceCode", replacer(`"serverReferenceCode"`, `"other"`), unknown},
		{"charge", "empty serverReferenceCode", replacer(`"srv-1"`, `""`), unknown},
		{"charge", "serverReferenceCode of another type", replacer(`"srv-1"`, `{}`), unknown},
		{"charge", "another operation status", replacer(`"Charged"`, `"Processing"`), unknown},
		{"charge", "a key twice",
			replacer(`"serverReferenceCode"`, `"serverReferenceCode":"srv-2","serverReferenceCode"`), unknown},
		{"charge", "name in another case", replacer(`"serverReferenceCode"`, `"ServerReferenceCode"`), unknown},
		{"charge", "trailing data", func(s string) string { return s + "x" }, unknown},
		{"charge", "an additional requestError",
			replacer(`{"amountTransaction"`, `{"requestError":{},"amountTransaction"`), done},
		{"web", "no pay_token", replacer(`"pay_token"`, `"x"`), unknown},
		{"web", "no notif_token", replacer(`"notif_token"`, `"x"`), unknown},
		{"web", "no payment_url", replacer(`"payment_url"`, `"x"`), unknown},
		{"web", "http page", replacer(`https://op.example`, `http://op.example:8080`), done},
		{"web", "script page", replacer(`https://op.example/pay/pt-1`, `javascript:alert(1)`), unknown},
		{"web", "relative page", replacer(`https://op.example/pay/pt-1`, `/pay/pt-1`), unknown},
		{"web", "page without a host", replacer(`https://op.example/pay/pt-1`, `https:///pay`), unknown},
		{"tpe", "another order", replacer(`DemoShop_42`, `DemoShop_43`), unknown},
		{"tpe", "no order", replacer(`"order-id"`, `"order"`), unknown},
		{"tpe", "a final status", replacer(`"pending"`, `"SUCCESSFUL"`), done},
		{"tpe", "an unknown status", replacer(`"pending"`, `"maybe"`), unknown},
		{"tpe", "no status", replacer(`"status"`, `"x"`), unknown},
		{"tpe", "Transaction-id as a number", replacer(`"tx-1"`, `42`), done},
		{"tpe", "no Transaction-id", replacer(`"Transaction-id"`, `"x"`), done},
		{"ussd", "fields in payload", func(s string) string {
			return strings.Replace(s, `"status"`, `"payload":{"status"`, 1) + "}"
		}, done},
		{"ussd", "another order in payload", func(s string) string {
			return strings.Replace(strings.Replace(s, `"status"`, `"payload":{"status"`, 1), "_42", "_1", 1) + "}"
		}, unknown},
		{"sms", "no resourceURL", replacer(`"resourceURL"`, `"x"`), unknown},
		{"sms", "resourceURL of another form", replacer(`/deliveryInfos`, ``), done},
		{"sms", "empty resourceURL", replacer(smsResourceURL, `/`), unknown},
	}
	peer := operatortest.NewStubOperator(t)
	driver := newDriver(peer.URL)
	for _, op := range operatortest.Operations(sandbox, "") {
		for _, c := range cases {
			if c.op != op.Name {
				continue
			}
			t.Run(c.op+"/"+c.name, func(t *testing.T) {
				body := c.edit(successBody(op))
				if body == successBody(op) {
					t.Fatal("the case changes nothing")
				}
				for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted} {
					peer.SetResponses(operatortest.Respond(status, body))
					if result := call(t, driver, op); result.Outcome != c.want {
						t.Fatalf("status %d: outcome %d, want %d: %v", status, result.Outcome, c.want, result.Fault)
					}
				}
			})
		}
	}
}

func replacer(old, new string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, new, 1) }
}

// An ambiguous requestError proves nothing.
func TestAmbiguousRefusal(t *testing.T) {
	peer := operatortest.NewStubOperator(t)
	driver := newDriver(peer.URL)
	const body = `{"requestError":{"policyException":{"messageId":"900908","messageId":"POL1000"}}}`
	peer.SetResponses(operatortest.Respond(403, body))
	if result := call(t, driver, operatortest.Operations(sandbox, "")[0]); result.Outcome != operator.Unknown {
		t.Fatalf("outcome %d, want Unknown", result.Outcome)
	}
}
