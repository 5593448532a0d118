package carrierapi

import (
	"testing"

	"mobilegateway/shared/fault"
)

// A platform that refuses a part with a name from the account refuses the account, not the merchant's request.
func TestOwnWords(t *testing.T) {
	refusal := func(variable string) *fault.Fault {
		return &fault.Fault{
			Kind: fault.OperatorError, OperatorException: &fault.OperatorException{Variables: []string{variable}},
		}
	}
	own := [2]string{"X-Own", "own"}
	for _, c := range []struct {
		account [2]string
		fault   *fault.Fault
		want    bool
	}{
		{own, refusal("X-Operator-MCO"), true}, {own, refusal("X-Own-MCO"), true},
		{own, refusal("amountTransaction.endUserId"), true}, {own, refusal("amount"), false},
		{[2]string{}, refusal("X-Operator-MCO"), false}, {own, fault.New(fault.OutcomeUnknown), false},
		{own, nil, false},
	} {
		if got := namesOwnWord(c.account[0], c.account[1], c.fault); got != c.want {
			t.Errorf("%+v of %+v: %v, want %v", c.fault, c.account, got, c.want)
		}
	}
}
