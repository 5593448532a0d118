package reconcile_test

import (
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/shared/ledger"
	"mobilegateway/world/operators/kit"
)

// A stub's journal, written as a statement, reconciles with a ledger of the same payments. An effect more is found.
func TestStatementOfAStub(t *testing.T) {
	b := newBooks(t)
	effect := func(kind, key, amount, currency string, at time.Time) kit.Effect {
		return kit.Effect{Kind: kind, Key: key, Amount: amount, Currency: currency, At: at}
	}
	rows := []kit.StatementRow{
		{Effect: effect("payment", "ShopA_1", "1000", "XOF", day()), Reference: "R1"},
		{Effect: effect("charge", "ShopA.c1", "1.50", "USD", day()), MSISDN: "acr:X"},
		{Effect: effect("sms", "ShopA.s1", "", "", day())},
		{Effect: effect("payment", "ShopA_2", "5", "XOF", day().AddDate(0, 0, 1))},
	}
	b.pay(1)
	b.charge(ledger.Done)
	text := string(kit.Statement(rows, day().Truncate(24*time.Hour), nil))
	b.Equal("counts", b.run(text, "", gatewayctl.ExitDone).Counts, map[result.Class]int{result.Equal: 2})
	text = string(kit.Statement(append(rows, rows[0]), time.Time{}, nil))
	b.Equal("counts", b.run(text, "", gatewayctl.ExitFailed).Counts,
		map[result.Class]int{result.Equal: 2, result.Twice: 1, result.TheirsAlone: 1})
}
