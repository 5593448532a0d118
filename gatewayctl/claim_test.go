package gatewayctl

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// addClaimedPayment stores a payment in a state, with an open claim of success.
func (d *testTool) addClaimedPayment(shop onboardingResult, state ledger.State) *ledger.Entry {
	e := d.addDeliveredPayment(shop, 1, d.now)
	e.State, e.Status, e.FinalAt, e.Delivered, e.ReservedAt = state, ledger.Pending, time.Time{}, nil, d.now
	e.Claim = ledger.Claim{Status: ledger.Successful, At: d.now, CheckAt: d.now.Add(time.Hour)}
	e.Reschedule()
	d.ledger.Overwrite(e)
	return e
}

// decision "pay-claims": a claim of success is listed from 48 hours on, with the command that ends it.
func TestFlaggedClaim(t *testing.T) {
	const command = "gatewayctl unknown resolve pay ShopA_1 --as OUTCOME --yes --reason REASON"
	for _, state := range []ledger.State{ledger.Done, ledger.Unknown, ledger.Released} {
		for outcome, want := range map[string]ledger.Status{
			"successful": ledger.Successful, "failed": ledger.Failed, "cancelled": ledger.Cancelled,
		} {
			d, shop := newQuietTool(t)
			e := d.addClaimedPayment(shop, state)
			claimedAt := d.now
			d.now = claimedAt.Add(ledger.ClaimFlagAfter - time.Second)
			checkEqual(t, "before 48 hours", len(d.mustAttend("attention --no-lookup", ExitDone)), 0)
			checkEqual(t, "the command before 48 hours", query[[]unknownView](d, "unknown list")[0].Command,
				"gatewayctl unknown resolve pay ShopA_1 --yes --reason REASON")
			d.now = claimedAt.Add(ledger.ClaimFlagAfter)
			checkEqual(t, string(state), d.mustAttend("attention --no-lookup", ExitWaiting), []attentionLine{{
				waitsUnknown, "ShopA", "pay#ShopA_1",
				"the operator claimed successful at " + formatTime(claimedAt) + ", and no lookup confirms it", command,
			}})
			checkEqual(t, "the command of the list", query[[]unknownView](d, "unknown list")[0].Command, command)
			d.apply("unknown resolve pay ShopA_1 --as " + outcome)
			after := d.mustReadEntry(e.Key)
			if state == ledger.Released && outcome != "successful" {
				want = ledger.Pending // it was certainly not applied, and the merchant knows
			}
			checkEqual(t, string(state)+" as "+outcome, after.Status, want)
			checkEqual(t, "the claim is over", after.Claim, ledger.Claim{})
			checkEqual(t, "unknown list", len(query[[]unknownView](d, "unknown list")), 0)
			d.expectExit("unknown resolve pay ShopA_1 --as failed"+confirmFlags, ExitFailed, "outcome is known")
		}
	}
}
