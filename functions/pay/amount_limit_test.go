package pay

import (
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// A platform's bounds are inclusive; 0 means none. They refuse only a new order: the refusal is of its choice.
func TestAmountLimits(t *testing.T) {
	for _, c := range []struct {
		smallest, largest, minor int64
		refused                  bool
	}{
		{0, 0, 1, false}, {0, 0, 1 << 40, false},
		{100, 0, 99, true}, {100, 0, 100, false}, {100, 0, 1 << 40, false},
		{0, 500, 500, false}, {0, 500, 501, true},
		{100, 500, 300, false}, {100, 500, 99, true}, {100, 500, 501, true},
	} {
		amounts := operator.AmountRange{Min: c.smallest, Max: c.largest}
		row := operator.Capabilities{Platform: "mtn-momo", Amounts: amounts}
		p := &paymentParams{minor: c.minor}
		err := p.refusal(row, operator.Routes{}, &merchant.Profile{})
		if (err != nil) != c.refused {
			t.Errorf("%d of %d to %d: %v, want it refused %v", c.minor, c.smallest, c.largest, err, c.refused)
		}
		if f := fault.FromError(err); err != nil && (f.Kind != fault.InvalidPart || f.Part != partAmount) {
			t.Errorf("%d of %d to %d: fault %s in %s, want an invalid amount",
				c.minor, c.smallest, c.largest, f.Kind, f.Part)
		}
	}
}
