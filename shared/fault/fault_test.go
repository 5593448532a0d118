package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mobilegateway/shared/fault"
)

func TestErrorNamesKindPartAndCause(t *testing.T) {
	cause := errors.New("dial refused")
	tests := []struct {
		name  string
		fault *fault.Fault
		want  string
	}{
		{"only a kind", fault.New(fault.Forbidden), "forbidden"},
		{"kind and part", fault.ForPart(fault.MissingPart, "amountTransaction.endUserId"),
			"missing in amountTransaction.endUserId"},
		{"cause", fault.NewInternal(cause), "internal: dial refused"},
		{
			"operator",
			&fault.Fault{Kind: fault.OperatorError,
				OperatorException: &fault.OperatorException{MessageID: "POL1000", Variables: []string{"secret"}}},
			"operator error operator POL1000",
		},
		{
			"value and location stay out",
			&fault.Fault{Kind: fault.DuplicateKey, Part: "order_id", Value: "DemoShop_1",
				Location: "https://example.test/1"},
			"duplicate in order_id",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.fault.Error(); got != test.want {
				t.Errorf("Error() = %q, want %q", got, test.want)
			}
		})
	}
}

func TestEveryKindHasAUniqueName(t *testing.T) {
	seen := map[string]fault.Kind{}
	for _, kind := range fault.Kinds() {
		name := kind.String()
		if name == "" || name != strings.ToLower(name) {
			t.Errorf("kind %d has the name %q", int(kind), name)
		}
		if other, duplicate := seen[name]; duplicate {
			t.Errorf("kinds %d and %d share the name %q", int(kind), int(other), name)
		}
		seen[name] = kind
	}
	if last := fault.Kinds()[len(fault.Kinds())-1]; last != fault.OperatorError {
		t.Errorf("the last kind is %v", last)
	}
}

func TestUnknownKindIsInternal(t *testing.T) {
	for _, kind := range []fault.Kind{-1, fault.OperatorError + 1} {
		if got := kind.String(); got != "internal" {
			t.Errorf("Kind(%d).String() = %q", int(kind), got)
		}
	}
}

func TestFromError(t *testing.T) {
	if fault.FromError(nil) != nil {
		t.Error("FromError(nil) is a fault")
	}
	inner := fault.ForPart(fault.InvalidPart, "amount")
	if got := fault.FromError(fmt.Errorf("validate: %w", inner)); got != inner {
		t.Errorf("FromError of a wrapped fault = %v", got)
	}
	plain := errors.New("plain")
	got := fault.FromError(plain)
	if got.Kind != fault.Internal || !errors.Is(got, plain) {
		t.Errorf("FromError of a plain error = %v", got)
	}
}
