package oneapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/oneapi"
)

// one has a fault of each kind as the operations make them.
var one = map[fault.Kind]*fault.Fault{
	fault.Internal:             fault.NewInternal(errors.New("the cause must not show")),
	fault.RouteNotFound:        fault.New(fault.RouteNotFound),
	fault.BodyTooLarge:         fault.ForPart(fault.BodyTooLarge, "body"),
	fault.MissingCredentials:   fault.New(fault.MissingCredentials),
	fault.InvalidCredentials:   {Kind: fault.InvalidCredentials, Cause: errors.New("the cause must not show")},
	fault.UnsupportedMediaType: fault.ForPart(fault.UnsupportedMediaType, "Content-Type"),
	fault.MissingPart:          fault.ForPart(fault.MissingPart, "amountTransaction.endUserId"),
	fault.InvalidPart: fault.ForPart(fault.InvalidPart,
		"amountTransaction.paymentAmount.chargingInformation.amount"),
	fault.ValueNotAllowed: {Kind: fault.ValueNotAllowed, Part: "channel", Value: "web, tpe, ussd"},
	fault.InvalidAddress: {Kind: fault.InvalidAddress, Part: "outboundSMSMessageRequest.senderAddress",
		Value: "tel:+33123"},
	fault.InvalidPathAddress: {Kind: fault.InvalidPathAddress, Part: "senderAddress", Value: "tel:225"},
	fault.MessageTooLong: {Kind: fault.MessageTooLong,
		Part: "outboundSMSMessageRequest.outboundSMSTextMessage.message", Value: "160"},
	fault.Forbidden:          fault.New(fault.Forbidden),
	fault.RateLimited:        fault.New(fault.RateLimited),
	fault.DailyLimitExceeded: {Kind: fault.DailyLimitExceeded, Value: "1500", Part: "XOF"},
	fault.NotFound:           fault.ForPart(fault.NotFound, "order_id"),
	fault.DuplicateKey: {Kind: fault.DuplicateKey, Part: "order_id", Value: "DemoShop_1",
		Location: "https://api.example.test/1"},
	fault.RequestInProgress: {Kind: fault.RequestInProgress, Part: "amountTransaction.clientCorrelator",
		Value: "c-1"},
	fault.IntegrationRejected: {Kind: fault.IntegrationRejected, Cause: errors.New("the cause must not show")},
	fault.OperatorUnavailable: fault.New(fault.OperatorUnavailable),
	fault.OutcomeUnknown:      fault.New(fault.OutcomeUnknown),
	fault.OperatorError: {Kind: fault.OperatorError, OperatorException: &fault.OperatorException{
		MessageID: "POL1000", Text: "the operator's own words", Variables: []string{}, HTTPStatus: 400,
	}},
}

// Decision "error-table", with the texts of the specification.
func TestGoldenResponseOfEveryKind(t *testing.T) {
	for _, kind := range fault.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			f, ok := one[kind]
			if !ok {
				t.Fatal("no example")
			}
			response := oneapi.Render(f)
			checkShape(t, response)
			path := "testdata/" + strings.ReplaceAll(kind.String(), " ", "-") + ".json"
			operationtest.GoldenResponse(t, path, operationtest.Response{
				Status: response.Status, Header: response.Header, Body: string(response.Body),
			})
		})
	}
}

// checkShape compares a body with the one shape: exactly one exception with exactly its three members, variables an
// array, the text with its literal %1, and no cause.
func checkShape(t *testing.T, response oneapi.ErrorResponse) {
	t.Helper()
	var body map[string]map[string]map[string]json.RawMessage
	err := json.Unmarshal(response.Body, &body)
	if err != nil {
		t.Fatalf("body %s: %v", response.Body, err)
	}
	if len(body) != 1 || len(body["requestError"]) != 1 {
		t.Fatalf("body %s", response.Body)
	}
	for name, exception := range body["requestError"] {
		wantName := "policyException"
		if strings.HasPrefix(response.MessageID, "SVC") {
			wantName = "serviceException"
		}
		if name != wantName || len(exception) != 3 || string(exception["messageId"]) != `"`+response.MessageID+`"` {
			t.Errorf("body %s", response.Body)
		}
		if variables := string(exception["variables"]); !strings.HasPrefix(variables, "[") {
			t.Errorf("variables are %s", variables)
		}
	}
	if response.Header["Content-Type"] != "application/json" || response.Status < 400 || response.Status > 599 {
		t.Errorf("status %d, header %v", response.Status, response.Header)
	}
	if strings.Contains(string(response.Body), "must not show") {
		t.Errorf("the cause shows: %s", response.Body)
	}
}

// decision "merchant-limits": the time to wait is the limit's own. Neither it nor a changed header changes the table.
func TestRetryAfterOfALimit(t *testing.T) {
	response := oneapi.Render(&fault.Fault{Kind: fault.RateLimited, RetryAfter: 17})
	if response.Status != 429 || response.Header["Retry-After"] != "17" {
		t.Errorf("%d %v", response.Status, response.Header)
	}
	response = oneapi.Render(&fault.Fault{
		Kind: fault.OperatorUnavailable, RetryAfter: 28, Reason: fault.ReasonCircuitOpen,
	})
	if response.Status != 503 || response.Header["Retry-After"] != "28" ||
		response.Header["X-Error-Reason"] != "circuit-open" {
		t.Errorf("decision circuit-breaker: %d %v", response.Status, response.Header)
	}
	for range 2 {
		again := oneapi.Render(fault.New(fault.RateLimited))
		if again.Header["Retry-After"] != "1" {
			t.Errorf("the table has changed: %v", again.Header)
		}
		again.Header["Retry-After"] = "changed"
	}
}

func TestOtherErrorsRenderAsInternalError(t *testing.T) {
	want := oneapi.Render(fault.New(fault.Internal))
	for name, err := range map[string]error{
		"nil":               nil,
		"plain":             errors.New("secret"),
		"nil fault":         (*fault.Fault)(nil),
		"no kind":           fault.New(fault.Kind(99)),
		"negative kind":     fault.New(fault.Kind(-1)),
		"wrapped and plain": fmt.Errorf("call: %w", errors.New("secret")),
	} {
		response := oneapi.Render(err)
		if response.Status != 500 || string(response.Body) != string(want.Body) {
			t.Errorf("%s: %d %s", name, response.Status, response.Body)
		}
	}
	wrapped := fmt.Errorf("validate: %w", fault.ForPart(fault.MissingPart, "amount"))
	if response := oneapi.Render(wrapped); response.Status != 400 {
		t.Errorf("a wrapped fault: response %d", response.Status)
	}
}

func TestClientValuesAreBoundedAndPrintable(t *testing.T) {
	response := oneapi.Render(fault.ForPart(fault.InvalidPart, "a\x00<&>\u202e"+strings.Repeat("é", 5000)))
	checkShape(t, response)
	if len(response.Body) > 2300 {
		t.Errorf("%d bytes", len(response.Body))
	}
	if !strings.Contains(string(response.Body), `"a <&> é`) {
		t.Errorf("body %.200s", response.Body)
	}
}

func TestReasonIsHeader(t *testing.T) {
	refused := fault.Fault{Kind: fault.InvalidCredentials, Reason: "merchant-suspended"}
	plain := oneapi.Render(fault.New(fault.InvalidCredentials))
	response := oneapi.Render(&refused)
	if got := response.Header[oneapi.HeaderErrorReason]; got != refused.Reason {
		t.Errorf("X-Error-Reason: %q, want %q", got, refused.Reason)
	}
	if _, found := plain.Header[oneapi.HeaderErrorReason]; found {
		t.Error("a fault without a reason has X-Error-Reason")
	}
	const part = "amountTransaction.referenceCode"
	for reason, want := range map[string]string{"other-body": part, "": ""} {
		f := fault.Fault{Kind: fault.OutcomeUnknown, Reason: reason, Part: part}
		if got := oneapi.Render(&f).Header["X-Error-Part"]; got != want {
			t.Errorf("X-Error-Part with the reason %q: %q, want %q", reason, got, want)
		}
	}
	if string(response.Body) != string(plain.Body) {
		t.Errorf("body %s, want %s", response.Body, plain.Body)
	}
}
