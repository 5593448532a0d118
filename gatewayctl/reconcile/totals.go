package reconcile

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"

	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/gatewayctl/reconcile/statement"
	"mobilegateway/shared/money"
)

// sum is a total in minor units.
type sum struct {
	exponent               int
	theirs, ours, fees     int64
	theirsCount, oursCount int
	classes                map[result.Class]int64
}

type totalKey struct{ merchant, currency string }

// totals are the sums by merchant and currency.
type totals map[totalKey]*sum

var errTooLarge = errors.New("a total is too large for a 64-bit number of minor units")

// add adds what a row of the result moves on each side. isBack is true for a further
// row: a refund there returns the money of another row.
func (s totals) add(class result.Class, t *theirs, o *ours, isBack bool) error {
	merchant := ""
	if o != nil {
		merchant = o.Merchant
	}
	if t != nil {
		total := s.of(merchant, t.Amount)
		moved, fee := int64(0), t.Fee
		switch {
		case t.Outcome == statement.Paid:
			moved, total.theirsCount = t.Amount.Minor, total.theirsCount+1
		case t.IsBack || t.Outcome == statement.Refunded && isBack:
			moved, fee = -t.Amount.Minor, -fee
		}
		if err := errors.Join(increase(&total.theirs, moved), increase(&total.fees, fee),
			total.attribute(class, moved)); err != nil {
			return err
		}
	}
	if o == nil || o.Money != ledgerPaid || !o.IsOfDay {
		return nil
	}
	total := s.of(merchant, o.Amount)
	total.oursCount++
	return errors.Join(increase(&total.ours, o.Amount.Minor), total.attribute(class, -o.Amount.Minor))
}

func (s totals) of(merchant string, a statement.Amount) *sum {
	key := totalKey{merchant, a.Currency}
	if s[key] == nil {
		s[key] = &sum{exponent: a.Exponent, classes: map[result.Class]int64{}}
	}
	return s[key]
}

// attribute adds a side's amount to the difference of a class.
func (t *sum) attribute(class result.Class, minor int64) error {
	value := t.classes[class]
	err := increase(&value, minor)
	t.classes[class] = value
	return err
}

// increase adds to a sum, or returns an error if it would overflow.
func increase(to *int64, by int64) error {
	if by > 0 && *to > math.MaxInt64-by || by < 0 && *to < math.MinInt64-by {
		return errTooLarge
	}
	*to += by
	return nil
}

// views returns the totals by merchant and currency.
func (s totals) views() []result.Total {
	all := []result.Total{}
	keys := slices.SortedFunc(maps.Keys(s), func(a, b totalKey) int {
		return cmp.Or(cmp.Compare(a.merchant, b.merchant), cmp.Compare(a.currency, b.currency))
	})
	for _, key := range keys {
		t := s[key]
		view := result.Total{
			Merchant: key.merchant, Currency: key.currency, TheirsCount: t.theirsCount, OursCount: t.oursCount,
			Theirs: money.Format(t.theirs, t.exponent), Ours: money.Format(t.ours, t.exponent),
			Difference: money.Format(t.theirs-t.ours, t.exponent), Fees: money.Format(t.fees, t.exponent),
			Classes: map[result.Class]string{},
		}
		for class, minor := range t.classes {
			if minor != 0 {
				view.Classes[class] = money.Format(minor, t.exponent)
			}
		}
		all = append(all, view)
	}
	return all
}
