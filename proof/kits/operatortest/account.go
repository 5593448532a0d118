package operatortest

import (
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// account: the driver returns the account for a new call, and a call can be pinned to it.
func (s Suite) account(t *testing.T) {
	stub := s.Stub(t)
	driver := s.Driver(t, stub.URL)
	name, err := driver.FindAccount(t.Context(), s.Platform, "")
	if err != nil || name != "a1" {
		t.Fatalf("current account %q, %v", name, err)
	}
	for _, unknown := range [][2]string{{"unknown", ""}, {s.Platform, "gone"}} {
		_, err = driver.FindAccount(t.Context(), unknown[0], unknown[1])
		if f := fault.FromError(err); f == nil || f.Kind != fault.IntegrationRejected {
			t.Errorf("an account that does not exist, %q: %v", unknown, err)
		}
	}
	for _, op := range s.operations(name, false) {
		stub.SetResponses(s.SuccessResponse(op))
		if result := s.runCall(t, driver, op); result.Outcome != operator.Succeeded {
			t.Errorf("%s pinned to %q: %v", op.Name, name, result.Fault)
		}
	}
	s.unusable(t, driver, "gone", rowOf(s.Platform).Operations)
	s.unusable(t, s.driver(t, &changingSecret{}, nil), "", rowOf(s.Platform).Operations)
	if len(stub.Requests()) != len(s.operations("", false)) {
		t.Error("a call with an unknown account was sent")
	}
}

// unusable checks that an account can be used for no call of these operations, and that the fault is ours.
func (s Suite) unusable(t *testing.T, driver operator.Driver, account string, operations []string) {
	t.Helper()
	ours := Proof{Outcome: operator.NotApplied, Kind: fault.IntegrationRejected}
	for _, op := range s.operations(account, false) {
		operation := op.Name
		if slices.Contains(rowOf(s.Platform).Channels, op.Name) {
			operation = operator.AccountPay
		}
		if !slices.Contains(operations, operation) {
			continue
		}
		s.CheckProof(t, op.Call(t.Context(), driver).Result, ours)
		if preparer, ok := driver.(operator.Preparer); ok {
			call := s.pay(op, "")
			call.AccountID = account
			_, result := preparer.Prepare(t.Context(), call)
			s.CheckProof(t, result, ours)
		}
	}
	if reader, ok := driver.(operator.StatusLookup); ok && slices.Contains(operations, operator.AccountPay) {
		call := s.statusCall()
		call.AccountID = account
		if found := reader.LookUpPayment(t.Context(), call); found.Responded() || found.Cause == nil {
			t.Errorf("a lookup with an unusable account: %+v", found)
		}
	}
}

// accountFields: an account with an unusable field cannot be used for the operations that need it. The fault names the
// field, and nothing is sent.
func (s Suite) accountFields(t *testing.T) {
	stub := NewStubOperator(t)
	describer, ok := s.Driver(t, stub.URL).(operator.AccountDescriber)
	if !ok {
		t.Skip("the account has an address and a token")
	}
	row := rowOf(s.Platform)
	for _, field := range describer.AccountFields() {
		if strings.HasSuffix(field.Path, ".*") || len(field.NeededBy) == 0 {
			continue
		}
		const unusable = "very-private: b\n"
		driver := s.With(map[string]any{field.Path: unusable}).Driver(t, stub.URL)
		if field.Path == "base_url" {
			driver = s.Driver(t, unusable)
		}
		_, err := driver.FindAccount(t.Context(), s.Platform, "")
		f, isNamed := fault.FromError(err), err != nil && strings.Contains(err.Error(), field.Path)
		if isNeeded := len(field.NeededBy) >= len(row.Operations); isNeeded != isNamed ||
			isNeeded && f.Kind != fault.IntegrationRejected {
			t.Errorf("an account with an unusable %s: %v", field.Path, err)
		}
		s.CheckPrivate(t, err)
		s.unusable(t, driver, "", field.NeededBy)
	}
	if sent := len(stub.Requests()); sent != 0 {
		t.Errorf("%d requests were sent", sent)
	}
}
