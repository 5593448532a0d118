package carrierapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

const (
	sandbox        = "sandbox"
	smsResourceURL = "https://op/smsmessaging/v1/outbound/tel%3A%2B2250000/requests/req-1/deliveryInfos"
)

// suite is the bench of the driver.
func suite() operatortest.Suite {
	statuses := map[string]ledger.Status{
		"initiated": ledger.Pending, "Loaded": ledger.Pending, "PENDING": ledger.Pending,
		"success": ledger.Successful, "failed": ledger.Failed, "abandoned": ledger.Cancelled,
		"expired": ledger.Expired,
	}
	body := `{"order-id":"DemoShop_42","status":"STATUS","amount":"AMOUNT","currency":"CURRENCY"}`
	return operatortest.Suite{
		Platform: sandbox,
		Account: map[string]any{
			"access_token": "token-very-private", "service_id": "SERVICE", "application_id": "APPLICATION",
			"contact_id": "CONTACT",
		},
		Renewed: map[string]any{"access_token": "renewed-very-private"},
		SuccessResponse: func(op operatortest.Operation) operatortest.Responder {
			if op.Name == "ussd" { // at once: a lookup follows
				return operatortest.Respond(201, strings.Replace(successBody(op), "pending", "success", 1))
			}
			return success(op)
		},
		RefusalResponse:      operatortest.Always(operatortest.Respond(403, requestError("POL1000"))),
		NotAppliedResponse:   operatortest.Always(operatortest.Respond(503, requestError("SVC0001"))),
		TokenRefusedResponse: operatortest.Respond(401, requestError("900901")),
		NotFoundResponse:     operatortest.Respond(404, requestError("SVC0002")),
		Lookup:               &operatortest.Reports{Body: body, Amount: "1500", OtherAmount: "15", Statuses: statuses},
		Callback:             &operatortest.Reports{Body: body, Amount: "1500", OtherAmount: "15", Statuses: statuses},
		Secrets:              []string{"SERVICE"},
	}
}

func TestConformance(t *testing.T) { operatortest.Run(t, suite()) }

// secretOf is a secret with accounts at an address: of the sandbox, and of a platform without declared repeats.
func secretOf(baseURL string) secret.Static {
	account := map[string]any{
		"base_url": baseURL, "access_token": "access-token-very-private",
		"service_id": "SERVICE", "application_id": "APPLICATION", "contact_id": "CONTACT",
		"user_sms": map[string]any{
			"gw_token": "service-gw-token", "sender": map[string]string{"CI": "tel:+2250000"}, "sender_name": "Gateway",
		},
	}
	platform := map[string]any{"current": "a1", "accounts": map[string]any{"a1": account}}
	raw, err := json.Marshal(map[string]any{sandbox: platform, "elsewhere": platform})
	if err != nil {
		panic(err) // it always has a form
	}
	return raw
}

// newDriver makes a driver with accounts at an address.
func newDriver(baseURL string) *carrierapi.Driver { return driverOf(secretOf(baseURL)) }

func driverOf(secrets secret.Reader) *carrierapi.Driver {
	accounts := credentials.NewReader(secrets, time.Now, operator.CheckBaseURL)
	return carrierapi.New(accounts, upstream.NewClient(nil), time.Now)
}

// requestError returns the JSON of an error.
func requestError(id string) string {
	side := "policyException"
	if id[:3] == "SVC" {
		side = "serviceException"
	}
	return fmt.Sprintf(`{"requestError":{%q:{"messageId":%q,"text":"Text of %%1","variables":["one"]}}}`, side, id)
}

// successBody returns the complete success of an operation.
func successBody(op operatortest.Operation) string {
	switch op.Name {
	case "charge":
		return `{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{"totalAmountCharged":500},` +
			`"transactionOperationStatus":"Charged","serverReferenceCode":"srv-1","resourceURL":"https://op/1"}}`
	case "web":
		return `{"status":201,"message":"OK","pay_token":"pt-1","payment_url":"https://op.example/pay/pt-1",` +
			`"notif_token":"nt-1","state":"s"}`
	case "sms":
		return `{"outboundSMSMessageRequest":{"resourceURL":"` + smsResourceURL + `"}}`
	}
	return `{"meta":{"type":"payment","source":"sandbox","channel":"` + op.Name + `"},"status":"pending",` +
		`"amount":"1500","order-id":"` + op.UpstreamKey + `","currency":"XOF","Transaction-id":"tx-1"}`
}

func success(op operatortest.Operation) operatortest.Responder {
	return operatortest.Respond(http.StatusCreated, successBody(op))
}

// wantOutcome requires an outcome and, unless it is Succeeded, a kind of fault.
func wantOutcome(t *testing.T, result operator.Result, outcome operator.Outcome, kind fault.Kind) {
	t.Helper()
	if result.Outcome != outcome || (result.Outcome == operator.Succeeded) != (result.Fault == nil) {
		t.Fatalf("outcome %d, want %d; fault %v", result.Outcome, outcome, result.Fault)
	}
	if result.Fault != nil && result.Fault.Kind != kind {
		t.Fatalf("fault of kind %d, want %d: %v", result.Fault.Kind, kind, result.Fault)
	}
}

// call makes an operation's sample call with a long timeout.
func call(t *testing.T, driver operator.Driver, op operatortest.Operation) operator.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	result := op.Call(ctx, driver).Result
	return result
}

// A success returns the operator's reference, or the page. The driver adds a deadline.
func TestSuccesses(t *testing.T) {
	referred := func(reference string) operator.PayResponse {
		return operator.PayResponse{Result: operator.Result{
			Outcome: operator.Succeeded, HTTPStatus: 201, OperatorReference: reference,
		}}
	}
	page := referred("")
	page.PayToken, page.PaymentURL, page.NotifToken = "pt-1", "https://op.example/pay/pt-1", "nt-1"
	want := map[string]operator.PayResponse{
		"charge": referred("srv-1"), "web": page, "tpe": referred("tx-1"), "ussd": referred("tx-1"),
		"sms": referred("req-1"),
	}
	for _, op := range operatortest.Operations(sandbox, "a1") {
		peer := operatortest.NewStubOperator(t, success(op))
		driver := newDriver(peer.URL + "/") // the trailing slash is not part of the path
		if diff := cmp.Diff(want[op.Name], op.Call(t.Context(), driver)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", op.Name, diff)
		}
	}
}
