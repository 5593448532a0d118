package operation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func TestCallResult(t *testing.T) {
	failed := func(outcome operator.Outcome, status int, f *fault.Fault) operator.Result {
		return operator.Result{Outcome: outcome, HTTPStatus: status, Fault: f}
	}
	cause := errors.New("the cause")
	lost := &fault.Fault{Kind: fault.OutcomeUnknown, Cause: cause}
	refusal := &fault.OperatorException{MessageID: "POL0001", HTTPStatus: 403}
	duplicate := failed(operator.Unknown, 409, lost)
	duplicate.DuplicateKey = true
	for name, c := range map[string]struct {
		result operator.Result
		want   ledger.CallResult
	}{
		"success": {failed(operator.Succeeded, 201, nil), ledger.CallResult{Outcome: "succeeded", HTTPStatus: 201}},
		"refusal": {failed(operator.Refused, 403, &fault.Fault{Kind: fault.OperatorError, OperatorException: refusal}),
			ledger.CallResult{Outcome: "refused", Reason: "POL0001", HTTPStatus: 403}},
		"our credentials": {
			failed(operator.NotApplied, 401, &fault.Fault{Kind: fault.IntegrationRejected, Cause: cause}),
			ledger.CallResult{Outcome: "not-applied", Reason: "rejected", HTTPStatus: 401, Response: 502},
		},
		"code that the driver does not know": {
			failed(operator.NotApplied, 400, &fault.Fault{
				Kind: fault.IntegrationRejected, Cause: fmt.Errorf("%w: %w", operator.ErrUnmappedCode, cause),
			}),
			ledger.CallResult{Outcome: "not-applied", Reason: "unmapped-code", HTTPStatus: 400, Response: 502},
		},
		"account without units": {
			failed(operator.NotApplied, 403, &fault.Fault{
				Kind: fault.IntegrationRejected, Cause: fmt.Errorf("%w: %w", operator.ErrNoUnits, cause),
			}),
			ledger.CallResult{Outcome: "not-applied", Reason: "no-units", HTTPStatus: 403, Response: 502},
		},
		"unknown for our credentials": {
			failed(operator.Unknown, 401, &fault.Fault{
				Kind: fault.OutcomeUnknown, Cause: fmt.Errorf("%w: %w", operator.ErrCredentialsRefused, cause),
			}),
			ledger.CallResult{Outcome: "unknown", Reason: "rejected", HTTPStatus: 401},
		},
		"unavailable": {failed(operator.NotApplied, 0, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: cause}),
			ledger.CallResult{Outcome: "not-applied", Reason: "unavailable", Response: 503}},
		"timeout": {failed(operator.Unknown, 0, &fault.Fault{
			Kind: fault.OutcomeUnknown, Cause: fmt.Errorf("send: %w", context.DeadlineExceeded),
		}), ledger.CallResult{Outcome: "unknown", Reason: "timeout"}},
		"cut": {failed(operator.Unknown, 0, lost), ledger.CallResult{Outcome: "unknown", Reason: "connection"}},
		"garbage": {failed(operator.Unknown, 200, lost),
			ledger.CallResult{Outcome: "unknown", Reason: "response", HTTPStatus: 200}},
		"duplicate": {duplicate, ledger.CallResult{Outcome: "unknown", Reason: "duplicate-key", HTTPStatus: 409}},
	} {
		if got := callResult(c.result); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if reasons := documentedReasons(t, c.want.Outcome); c.want.Reason != "" &&
			!strings.Contains(reasons, "`"+c.want.Reason+"`") {
			t.Errorf("docs/operations.md has the reasons %s of %s, want %s too", reasons, c.want.Outcome, c.want.Reason)
		}
	}
}

// documentedReasons returns the reasons of an outcome from the engineers' table.
func documentedReasons(t *testing.T, outcome string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, found := strings.Cut(string(page), "\n| `"+outcome+"` | ")
	if !found {
		t.Fatalf("docs/operations.md has no row of the outcome %s", outcome)
	}
	row, _, _ = strings.Cut(row, "\n")
	return row
}
