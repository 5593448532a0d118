package operationtest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/charge"
	"mobilegateway/functions/pay"
	"mobilegateway/functions/sms"
	"mobilegateway/functions/status"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// The values that must never be in a log line: a credential, a one-time code, two numbers, and a text of a body.
const (
	token       = "canaryTOKENa1b2c3d4e5f6a7b8c9"
	code        = "493817"
	number      = "+2250712345678"
	national    = "0712345678"
	messageText = "the birthday of my aunt"
)

var canaries = []string{token, code, number, national, messageText}

// operationCase is one operation with the parts of its requests.
type operationCase struct {
	name, event string
	headers     []string
	parts       []string
	keys        []string // parts that are logged, masked where they are numbers
}

const (
	paymentAmount = "amountTransaction.paymentAmount."
	outbound      = "outboundSMSMessageRequest."
)

var operationCases = []operationCase{
	{"charge", "../../../functions/charge/testdata/event-encoded.json",
		[]string{"Authorization", "Content-Type", "gw-token", "gw-alias", "X-Operator-MCO", "X-Unknown"},
		[]string{
			"amountTransaction.endUserId", paymentAmount + "chargingInformation.amount",
			paymentAmount + "chargingInformation.currency", paymentAmount + "chargingInformation.description",
			paymentAmount + "chargingMetaData.onBehalfOf", paymentAmount + "chargingMetaData.serviceId",
			"amountTransaction.transactionOperationStatus", "unknown",
		},
		[]string{"amountTransaction.referenceCode", "amountTransaction.clientCorrelator"}},
	{"pay", "../../../functions/pay/testdata/event-ussd.json",
		[]string{"Authorization", "Content-Type", "mno-name", "country-code", "channel", "lang", "X-Unknown"},
		[]string{
			"currency", "amount", "return_url", "cancel_url", "notif_url", "reference", "user_msisdn", "otp_code",
			"state", "unknown",
		},
		[]string{"order_id"}},
	{"sms", "../../../functions/sms/testdata/event-encoded.json",
		[]string{
			"Authorization", "Content-Type", "X-OAPI-Application-Id", "X-OAPI-Contact-Id", "X-OAPI-Resource-Type",
			"gw-alias", "gw-token", "X-Operator-MCO", "X-Operator-ISE2",
		},
		[]string{
			outbound + "address", outbound + "senderAddress", outbound + "outboundSMSTextMessage.message",
			outbound + "senderName", outbound + "receiptRequest.notifyURL", outbound + "receiptRequest.callbackData",
		},
		[]string{outbound + "clientCorrelator"}},
}

// newFixture serves every operation at once.
func newFixture(t testing.TB) *operationtest.Fixture {
	t.Helper()
	w := operationtest.New(t)
	chargeOperation := &charge.Operation{Pipeline: w.Pipeline, ServiceID: operationtest.ServiceID}
	payOperation := &pay.Operation{Pipeline: w.Pipeline, CallbackKeys: w.CallbackKeys, FirstPollDelay: time.Minute}
	smsOperation := &sms.Operation{
		Pipeline: w.Pipeline, CallbackKeys: w.CallbackKeys,
		ApplicationID: operationtest.ApplicationID, ContactID: operationtest.ContactID,
	}
	lookup := &status.StatusHandler{
		Merchants: w.Merchants, Reader: w.Ledger, References: w.Ledger, Now: w.Clock.Now,
	}
	routes := append(lookup.Routes(), chargeOperation.Route(), payOperation.Route(), smsOperation.Route())
	return w.Serve("all", routes...)
}

// assertNoCanaryLogged checks that no canary was logged.
func assertNoCanaryLogged(t testing.TB, w *operationtest.Fixture) {
	t.Helper()
	for line := range strings.SplitSeq(w.LogLines.String(), "\n") {
		for _, canary := range canaries {
			if strings.Contains(line, canary) {
				t.Errorf("%q is in the line %s", canary, line)
			}
		}
	}
}

// TestCanaryRequests puts each canary into each place of a request: as the value, within it, and as a key of the body.
func TestCanaryRequests(t *testing.T) {
	for _, s := range operationCases {
		for _, canary := range canaries {
			t.Run(s.name+" with "+canary, func(t *testing.T) {
				w := newFixture(t)
				fresh := func() *operationtest.Event { return operationtest.LoadEvent(t, s.event) }
				for _, header := range s.headers {
					w.Send(t, fresh().SetHeader(header, canary))
					w.Send(t, fresh().SetHeader(header, "Bearer "+canary))
					w.Send(t, fresh().SetHeader(header, canary, "other"))
				}
				for _, part := range s.parts {
					for _, value := range []any{canary, "x " + canary, []any{canary}, map[string]any{canary: canary}} {
						w.Send(t, fresh().SetBodyPart(part, value))
					}
				}
				for _, part := range s.keys {
					if canary == number || canary == national {
						w.Send(t, fresh().SetBodyPart(part, canary))
					}
				}
				w.Send(t, fresh().SetRawBody(canary))
				w.Send(t, fresh().SetRawBody(fmt.Sprintf(`{"a":%q}`, canary)))
				route := fresh().SetField("path", "/"+canary).SetField("resource", "/"+canary)
				w.Send(t, route.SetField("httpMethod", canary))
				params := fresh().SetPathParameter("senderAddress", "tel:"+canary)
				w.Send(t, params.SetPathParameter("endUserId", canary))
				assertNoCanaryLogged(t, w)
			})
		}
	}
}

// TestCanaryKeys repeats keys of the body whose names look like secrets: the refusal names the key, the log masks it.
func TestCanaryKeys(t *testing.T) {
	for _, s := range operationCases {
		w := newFixture(t)
		for _, canary := range []string{token, code, number, national} {
			twice := fmt.Sprintf(`{%q:1,%q:2}`, canary, canary)
			w.Send(t, operationtest.LoadEvent(t, s.event).SetRawBody(twice)).AssertStatus(t, 400)
		}
		assertNoCanaryLogged(t, w)
	}
}

// TestCanaryFailures lets operator, store and authenticator fail with errors that hold canaries.
func TestCanaryFailures(t *testing.T) {
	cause := fmt.Errorf(`Post "https://op.example.com/pay?otp=%s&msisdn=%s": Authorization: Bearer %s, tel:%s`,
		code, number, token, national)
	failing := func(outcome operator.Outcome, kind fault.Kind) operationtest.Behaviour {
		return func(func()) operator.Result {
			return operator.Result{Outcome: outcome, Fault: &fault.Fault{Kind: kind, Cause: cause}}
		}
	}
	steps := map[string]operationtest.Behaviour{
		"unknown":             failing(operator.Unknown, fault.OutcomeUnknown),
		"down":                failing(operator.NotApplied, fault.OperatorUnavailable),
		"credentials refused": failing(operator.NotApplied, fault.IntegrationRejected),
		"panic":               func(func()) operator.Result { panic(token + number) },
		"panic with an error": func(func()) operator.Result { panic(cause) },
		"refused":             operationtest.RefuseFinally("POL0001", "Not enough credit"),
		"rejected":            operationtest.RejectRequest("SVC0002", "x"),
	}
	for _, s := range operationCases {
		for name, step := range steps {
			t.Run(s.name+": the operator, "+name, func(t *testing.T) {
				w := newFixture(t).WithBehaviours(step, step)
				w.Send(t, operationtest.LoadEvent(t, s.event))
				w.Clock.Advance(time.Hour)
				w.Send(t, operationtest.LoadEvent(t, s.event))
				assertNoCanaryLogged(t, w)
			})
		}
		for _, point := range []storetest.Operation{storetest.Insert, storetest.ClaimReference, storetest.Replace} {
			t.Run(s.name+": the store in "+string(point), func(t *testing.T) {
				w := newFixture(t)
				w.FailEvery(point)
				w.Send(t, operationtest.LoadEvent(t, s.event))
				w.Merchants.Err = cause
				w.Send(t, operationtest.LoadEvent(t, s.event)).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
				w.Driver.AccountErr = errors.Join(cause)
				w.Merchants.Err = nil
				w.Send(t, operationtest.LoadEvent(t, s.event))
				assertNoCanaryLogged(t, w)
			})
		}
	}
}

// TestCanaryLookups looks up numbers and codes.
func TestCanaryLookups(t *testing.T) {
	w := newFixture(t)
	for _, canary := range []string{number, national} {
		for event, parameter := range map[string]string{
			"charge": "transactionId", "payment": "orderId", "delivery-infos": "requestId",
		} {
			e := operationtest.LoadEvent(t, "../../../functions/status/testdata/event-"+event+".json")
			w.Send(t, e.SetPathParameter(parameter, canary)).AssertStatus(t, 404)
			w.Send(t, e.SetHeader("Authorization", "Bearer "+token)).AssertStatus(t, 401)
		}
	}
	assertNoCanaryLogged(t, w)
}
