package oneapi_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/oneapi"
)

var update = flag.Bool("update", false, "write the golden files anew")

// one has a fault of each kind as the operations make them.
var one = map[fault.Kind]*fault.Fault{
	fault.Internal:          fault.Because(errors.New("the cause must not show")),
	fault.NoRoute:           fault.Of(fault.NoRoute),
	fault.TooLarge:          fault.In(fault.TooLarge, "body"),
	fault.NoCredentials:     fault.Of(fault.NoCredentials),
	fault.BadCredentials:    {Kind: fault.BadCredentials, Cause: errors.New("the cause must not show")},
	fault.MediaType:         fault.In(fault.MediaType, "Content-Type"),
	fault.Missing:           fault.In(fault.Missing, "amountTransaction.endUserId"),
	fault.Invalid:           fault.In(fault.Invalid, "amountTransaction.paymentAmount.chargingInformation.amount"),
	fault.NotAllowed:        {Kind: fault.NotAllowed, Part: "channel", Value: "web, tpe, ussd"},
	fault.Address:           {Kind: fault.Address, Part: "outboundSMSMessageRequest.senderAddress", Value: "tel:+33123"},
	fault.PathAddress:       {Kind: fault.PathAddress, Part: "senderAddress", Value: "tel:225"},
	fault.TooLong:           {Kind: fault.TooLong, Part: "outboundSMSMessageRequest.outboundSMSTextMessage.message", Value: "160"},
	fault.Forbidden:         fault.Of(fault.Forbidden),
	fault.Throttled:         fault.Of(fault.Throttled),
	fault.OverLimit:         {Kind: fault.OverLimit, Value: "1500", Part: "XOF"},
	fault.NotFound:          fault.In(fault.NotFound, "order_id"),
	fault.Duplicate:         {Kind: fault.Duplicate, Part: "order_id", Value: "DemoShop_1", Location: "https://api.example.test/1"},
	fault.InFlight:          {Kind: fault.InFlight, Part: "amountTransaction.clientCorrelator", Value: "c-1"},
	fault.OperatorRefusedUs: {Kind: fault.OperatorRefusedUs, Cause: errors.New("the cause must not show")},
	fault.OperatorDown:      fault.Of(fault.OperatorDown),
	fault.OutcomeUnknown:    fault.Of(fault.OutcomeUnknown),
	fault.OperatorError: {Kind: fault.OperatorError, Operator: &fault.OperatorFault{
		MessageID: "POL1000", Text: "the operator's own words", Variables: []string{}, HTTPStatus: 400,
	}},
}

// golden is an answer as testdata has it.
type golden struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   json.RawMessage   `json:"body"`
}

func TestGoldenAnswerOfEveryKind(t *testing.T) {
	for _, kind := range fault.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			f, ok := one[kind]
			if !ok {
				t.Fatal("no example")
			}
			answer := oneapi.Render(f)
			checkShape(t, answer)
			got, err := json.Marshal(golden{answer.Status, answer.Header, answer.Body})
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, strings.ReplaceAll(kind.String(), " ", "-"), got)
		})
	}
}

func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".json")
	if *update {
		err := os.WriteFile(path, append(got, '\n'), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != strings.TrimSuffix(string(want), "\n") {
		t.Errorf("answer:\n%s\nwant:\n%s", got, want)
	}
}

// checkShape compares a body with the one shape: exactly one exception with exactly its three members, variables an
// array, the text with its literal %1, and no cause.
func checkShape(t *testing.T, answer oneapi.Answer) {
	t.Helper()
	var body map[string]map[string]map[string]json.RawMessage
	err := json.Unmarshal(answer.Body, &body)
	if err != nil {
		t.Fatalf("body %s: %v", answer.Body, err)
	}
	if len(body) != 1 || len(body["requestError"]) != 1 {
		t.Fatalf("body %s", answer.Body)
	}
	for name, exception := range body["requestError"] {
		wantName := "policyException"
		if strings.HasPrefix(answer.ID, "SVC") {
			wantName = "serviceException"
		}
		if name != wantName || len(exception) != 3 || string(exception["messageId"]) != `"`+answer.ID+`"` {
			t.Errorf("body %s", answer.Body)
		}
		if variables := string(exception["variables"]); !strings.HasPrefix(variables, "[") {
			t.Errorf("variables are %s", variables)
		}
	}
	if answer.Header["Content-Type"] != "application/json" || answer.Status < 400 || answer.Status > 599 {
		t.Errorf("status %d, header %v", answer.Status, answer.Header)
	}
	if strings.Contains(string(answer.Body), "must not show") {
		t.Errorf("the cause shows: %s", answer.Body)
	}
}

// Decision "error-table", row by row.
func TestKindsAgainstTheDecisions(t *testing.T) {
	want := []string{
		"internal SVC0001 500", "no route 900906 404", "too large SVC0002 413", "no credentials 900902 401",
		"bad credentials 900901 401", "media type SVC0002 415", "missing SVC0002 400", "invalid SVC0002 400",
		"not allowed SVC0003 400", "address SVC0004 400", "path address SVC0004 404", "too long SVC0280 400",
		"forbidden 900908 403", "throttled 900800 429 1", "over limit POL0001 403", "not found SVC0002 404", "duplicate SVC0005 409",
		"in flight SVC0005 409 1", "operator refused us SVC0001 502", "operator down SVC0001 503 5",
		"outcome unknown SVC0001 504 5", "operator error POL1000 403",
	}
	var got []string
	for _, kind := range fault.Kinds() {
		answer := oneapi.Render(one[kind])
		row := fmt.Sprintf("%v %s %d %s", kind, answer.ID, answer.Status, answer.Header["Retry-After"])
		got = append(got, strings.TrimSpace(row))
	}
	if !slices.Equal(got, want) {
		t.Errorf("kinds:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// decision "merchant-limits": the time to wait is the limit's own.
func TestRetryAfterOfALimit(t *testing.T) {
	answer := oneapi.Render(&fault.Fault{Kind: fault.Throttled, RetryAfter: 17})
	if answer.Status != 429 || answer.Header["Retry-After"] != "17" {
		t.Errorf("%d %v", answer.Status, answer.Header)
	}
	if again := oneapi.Render(fault.Of(fault.Throttled)); again.Header["Retry-After"] != "1" {
		t.Errorf("the table has changed: %v", again.Header)
	}
}

func TestWhatIsNoFaultIsABareInternalError(t *testing.T) {
	want := oneapi.Render(fault.Of(fault.Internal))
	for name, err := range map[string]error{
		"nil":               nil,
		"plain":             errors.New("secret"),
		"nil fault":         (*fault.Fault)(nil),
		"no kind":           fault.Of(fault.Kind(99)),
		"negative kind":     fault.Of(fault.Kind(-1)),
		"wrapped and plain": fmt.Errorf("call: %w", errors.New("secret")),
	} {
		answer := oneapi.Render(err)
		if answer.Status != 500 || string(answer.Body) != string(want.Body) {
			t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
		}
	}
	wrapped := fmt.Errorf("validate: %w", fault.In(fault.Missing, "amount"))
	if answer := oneapi.Render(wrapped); answer.Status != 400 {
		t.Errorf("a wrapped fault is answered %d", answer.Status)
	}
}

func TestHeadersAreNotShared(t *testing.T) {
	oneapi.Render(fault.Of(fault.Throttled)).Header["Retry-After"] = "changed"
	if got := oneapi.Render(fault.Of(fault.Throttled)).Header["Retry-After"]; got != "1" {
		t.Errorf("Retry-After is %q", got)
	}
}

func TestValuesOfClientsAreBoundedAndPrintable(t *testing.T) {
	answer := oneapi.Render(fault.In(fault.Invalid, "a\x00<&>\u202e"+strings.Repeat("é", 5000)))
	checkShape(t, answer)
	if len(answer.Body) > 2300 {
		t.Errorf("%d bytes", len(answer.Body))
	}
	if !strings.Contains(string(answer.Body), `"a <&> é`) {
		t.Errorf("body %.200s", answer.Body)
	}
}
