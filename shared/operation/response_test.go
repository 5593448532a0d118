package operation

import (
	"errors"
	"testing"

	"mobilegateway/shared/fault"
)

// decision "charge-unknown": only an unknown outcome names its transaction.
func TestLocateUnknown(t *testing.T) {
	const location = "https://gateway.example/x"
	unknown := fault.New(fault.OutcomeUnknown)
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"unknown", unknown, location}, {"refused", fault.New(fault.InvalidPart), ""}, {"another", errors.New("x"), ""},
	} {
		located := LocateUnknown(c.err, location)
		if got := fault.FromError(located); got == nil || got.Location != c.want {
			t.Errorf("%s: %+v, want the location %q", c.name, got, c.want)
		}
	}
	if unknown.Location != "" || LocateUnknown(nil, location) != nil {
		t.Error("a shared fault was changed, or no fault has become one")
	}
}
