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
	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// What must never stand in a line: a credential, a one-time code, two numbers, and a text that only a body holds.
const (
	token    = "canaryTOKENa1b2c3d4e5f6a7b8c9"
	code     = "493817"
	number   = "+2250712345678"
	national = "0712345678"
	prose    = "the birthday of my aunt"
)

var canaries = []string{token, code, number, national, prose}

// subject is one operation with the parts of its requests.
type subject struct {
	name, event string
	headers     []string
	parts       []string
	keys        []string // parts that are logged, masked where they are numbers
}

const (
	paymentAmount = "amountTransaction.paymentAmount."
	outbound      = "outboundSMSMessageRequest."
)

var subjects = []subject{
	{"charge", "../../functions/charge/testdata/event-encoded.json",
		[]string{"Authorization", "Content-Type", "gw-token", "gw-alias", "X-Operator-MCO", "X-Unknown"},
		[]string{"amountTransaction.endUserId", paymentAmount + "chargingInformation.amount", paymentAmount + "chargingInformation.currency",
			paymentAmount + "chargingInformation.description", paymentAmount + "chargingMetaData.onBehalfOf", paymentAmount + "chargingMetaData.serviceId",
			"amountTransaction.transactionOperationStatus", "unknown"},
		[]string{"amountTransaction.referenceCode", "amountTransaction.clientCorrelator"}},
	{"pay", "../../functions/pay/testdata/event-ussd.json",
		[]string{"Authorization", "Content-Type", "mno-name", "country-code", "channel", "lang", "X-Unknown"},
		[]string{"currency", "amount", "return_url", "cancel_url", "notif_url", "reference", "user_msisdn", "otp_code", "state", "unknown"},
		[]string{"order_id"}},
	{"sms", "../../functions/sms/testdata/event-encoded.json",
		[]string{"Authorization", "Content-Type", "X-OAPI-Application-Id", "X-OAPI-Contact-Id", "X-OAPI-Resource-Type", "gw-alias", "gw-token", "X-Operator-MCO",
			"X-Operator-ISE2"},
		[]string{outbound + "address", outbound + "senderAddress", outbound + "outboundSMSTextMessage.message", outbound + "senderName",
			outbound + "receiptRequest.notifyURL", outbound + "receiptRequest.callbackData"},
		[]string{outbound + "clientCorrelator"}},
}

// world serves every operation at once.
func world(t testing.TB) *operationtest.World {
	t.Helper()
	w := operationtest.New(t)
	chargeOperation := &charge.Operation{Desk: w.Desk, References: w.Ledger, ServiceID: operationtest.ServiceID}
	payOperation := &pay.Operation{Desk: w.Desk, Callbacks: w.Callbacks, FirstPoll: time.Minute}
	smsOperation := &sms.Operation{Desk: w.Desk, Callbacks: w.Callbacks, ApplicationID: operationtest.ApplicationID, ContactID: operationtest.ContactID}
	lookup := &status.Lookup{Merchants: w.Merchants, Ledger: w.Ledger, Now: w.Clock.Now}
	routes := append(lookup.Routes(), chargeOperation.Route(), payOperation.Route(), smsOperation.Route())
	return w.Serve("all", routes...)
}

// silent checks that no canary was logged.
func silent(t testing.TB, w *operationtest.World) {
	t.Helper()
	for line := range strings.SplitSeq(w.Log(), "\n") {
		for _, canary := range canaries {
			if strings.Contains(line, canary) {
				t.Errorf("%q is in the line %s", canary, line)
			}
		}
	}
}

// TestCanaryRequests puts each canary into each place of a request: as the value, within it, and as a key of the body.
func TestCanaryRequests(t *testing.T) {
	for _, s := range subjects {
		for _, canary := range canaries {
			t.Run(s.name+" with "+canary, func(t *testing.T) {
				w := world(t)
				fresh := func() *operationtest.Event { return operationtest.Load(t, s.event) }
				for _, header := range s.headers {
					w.Do(t, fresh().Header(header, canary))
					w.Do(t, fresh().Header(header, "Bearer "+canary))
					w.Do(t, fresh().Headers(header, canary, "other"))
				}
				for _, part := range s.parts {
					for _, value := range []any{canary, "x " + canary, []any{canary}, map[string]any{canary: canary}} {
						w.Do(t, fresh().Set(part, value))
					}
				}
				for _, part := range s.keys {
					if canary == number || canary == national {
						w.Do(t, fresh().Set(part, canary))
					}
				}
				w.Do(t, fresh().Raw(canary))
				w.Do(t, fresh().Raw(fmt.Sprintf(`{"a":%q}`, canary)))
				w.Do(t, fresh().Field("path", "/"+canary).Field("resource", "/"+canary).Field("httpMethod", canary))
				w.Do(t, fresh().Param("senderAddress", "tel:"+canary).Param("endUserId", canary))
				silent(t, w)
			})
		}
	}
}

// TestCanaryKeys repeats keys of the body whose names look like secrets: the refusal names the key, the log masks it.
func TestCanaryKeys(t *testing.T) {
	for _, s := range subjects {
		w := world(t)
		for _, canary := range []string{token, code, number, national} {
			w.Do(t, operationtest.Load(t, s.event).Raw(fmt.Sprintf(`{%q:1,%q:2}`, canary, canary))).Succeeds(t, 400)
		}
		silent(t, w)
	}
}

// TestCanaryFailures lets operator, store and authenticator fail with errors that hold canaries.
func TestCanaryFailures(t *testing.T) {
	cause := fmt.Errorf(`Post "https://op.example.com/pay?otp=%s&msisdn=%s": Authorization: Bearer %s, tel:%s`, code, number, token, national)
	failing := func(outcome operator.Outcome, kind fault.Kind) operationtest.Behaviour {
		return func(func()) operator.Result {
			return operator.Result{Outcome: outcome, Fault: &fault.Fault{Kind: kind, Cause: cause}}
		}
	}
	steps := map[string]operationtest.Behaviour{
		"unknown": failing(operator.Unknown, fault.OutcomeUnknown), "down": failing(operator.Released, fault.OperatorDown),
		"refused us": failing(operator.Released, fault.OperatorRefusedUs), "panic": func(func()) operator.Result { panic(token + number) },
		"panic with an error": func(func()) operator.Result { panic(cause) },
		"refused":             operationtest.Refuse("POL0001", "Not enough credit"), "rejected": operationtest.Reject("SVC0002", "x"),
	}
	for _, s := range subjects {
		for name, step := range steps {
			t.Run(s.name+": the operator, "+name, func(t *testing.T) {
				w := world(t)
				w.Driver.Script(step, step)
				w.Do(t, operationtest.Load(t, s.event))
				w.Clock.Advance(time.Hour)
				w.Do(t, operationtest.Load(t, s.event))
				silent(t, w)
			})
		}
		for _, at := range []ledgermem.Operation{ledgermem.Insert, ledgermem.ClaimReference, ledgermem.Replace} {
			t.Run(s.name+": the store in "+string(at), func(t *testing.T) {
				w := world(t)
				w.Ledger.SetFaults(func(call ledgermem.Call) ledgermem.Fault {
					if call.Operation == at {
						return ledgermem.Error
					}
					return ledgermem.None
				})
				w.Do(t, operationtest.Load(t, s.event))
				w.Merchants.Fail(cause)
				w.Do(t, operationtest.Load(t, s.event)).Fails(t, 500, "SVC0001", "PDK_SMSW_0001")
				w.Driver.SetAccount("", errors.Join(cause))
				w.Merchants.Fail(nil)
				w.Do(t, operationtest.Load(t, s.event))
				silent(t, w)
			})
		}
	}
}

// TestCanaryLookups asks for numbers and codes.
func TestCanaryLookups(t *testing.T) {
	w := world(t)
	for _, canary := range []string{number, national} {
		for event, parameter := range map[string]string{"charge": "transactionId", "payment": "orderId", "delivery-infos": "requestId"} {
			e := operationtest.Load(t, "../../functions/status/testdata/event-"+event+".json").Param(parameter, canary)
			w.Do(t, e).Succeeds(t, 404)
			w.Do(t, e.Header("Authorization", "Bearer "+token)).Succeeds(t, 401)
		}
	}
	silent(t, w)
}
