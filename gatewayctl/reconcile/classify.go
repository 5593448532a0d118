package reconcile

import (
	"slices"

	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/gatewayctl/reconcile/statement"
	"mobilegateway/shared/money"
)

// pairClass returns the class of a matched row, and all that differs.
func pairClass(t *theirs, o *ours, day span) (result.Class, []string) {
	isSameCurrency := t.Amount.Currency == o.Amount.Currency
	isTaken := t.Outcome == statement.Paid && o.Money != ledgerPaid
	checks := []struct {
		class   result.Class
		what    string
		differs bool
	}{
		{result.TheirsAlone, "status", isTaken},
		{result.CurrencyDiffers, "currency", !isSameCurrency},
		{result.AmountDiffers, "amount", isSameCurrency && t.Amount != o.Amount},
		{result.StatusDiffers, "status", !isTaken && !outcomesAgree(t.Outcome, o.Money)},
		{result.FeeDiffers, "fee", t.feeDiffers()},
		{result.OtherDay, "day", !o.IsOfDay || !day.contains(t.Time)},
	}
	class := result.Equal
	var differs []string
	for _, c := range slices.Backward(checks) {
		if c.differs {
			class, differs = c.class, append([]string{c.what}, differs...)
		}
	}
	return class, differs
}

// feeDiffers reports whether the fee of a paid row is not that of the contract's terms.
func (t *theirs) feeDiffers() bool {
	return t.HasTerms && t.Outcome == statement.Paid && (!t.HasFee || t.Fee != t.ExpectedFee)
}

// oursClass is the class of a transaction that the statement does not have; false if that is as it should be. A success
// that was created on one day and became final on another may be in the statement of either, so it is a row on both.
func oursClass(o *ours, day span) (result.Class, bool) {
	switch {
	case o.Money == ledgerNotPaid:
		return "", false
	case !o.IsOfDay:
		return result.OtherDay, o.Money == ledgerPaid && day.contains(o.FinalAt)
	case o.Money == ledgerPaid && !o.FinalAt.IsZero() && !day.contains(o.FinalAt):
		return result.OtherDay, true
	}
	return result.OursAlone, true
}

// newRow returns a row of the result. Either side may be nil.
func newRow(class result.Class, t *theirs, o *ours, files []string) result.Row {
	row := result.Row{Class: class}
	if t != nil {
		row.TheirView = result.TheirView{
			Line: t.Line, TheirReference: t.Reference, TheirKey: t.OrderID,
			TheirAmount:   money.Format(t.Amount.Minor, t.Amount.Exponent),
			TheirCurrency: t.Amount.Currency, TheirStatus: t.Outcome, TheirTime: t.Time,
		}
		if len(files) > 1 {
			row.File = files[t.File]
		}
		if t.HasFee {
			row.Fee = money.Format(t.Fee, t.Amount.Exponent)
		}
		if t.feeDiffers() {
			row.ExpectedFee = money.Format(t.ExpectedFee, t.Amount.Exponent)
		}
	}
	if o != nil {
		row.Merchant, row.Kind, row.ID = o.Merchant, o.Kind, o.ID
		row.OurView = result.OurView{
			OurReference: o.Reference, OurKey: o.UpstreamKey,
			OurAmount:   money.Format(o.Amount.Minor, o.Amount.Exponent),
			OurCurrency: o.Amount.Currency, OurStatus: o.Label, CreatedAt: o.CreatedAt, FinalAt: o.FinalAt,
		}
	}
	return row
}
