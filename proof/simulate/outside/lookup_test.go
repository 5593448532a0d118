package outside

import (
	"testing"
	"time"

	"mobilegateway/shared/operator"
)

// getStatus reports the payer's decision from its time on.
func TestLookupReportsPayersDecision(t *testing.T) {
	cases := map[Fault]struct {
		status  string
		after   time.Duration
		effects int
	}{
		NoFault:      {statusSuccessful, payerDelay, 1},
		PayerFails:   {statusFailed, payerDelay, 0},
		PayerCancels: {statusCancelled, payerDelay, 0},
		PayerExpires: {statusExpired, expiryDelay, 0},
		PayerLate:    {statusSuccessful, time.Minute, 1},
		PayerNever:   {statusPending, 30 * 24 * time.Hour, 0},
		LieReversed:  {statusFailed, payerDelay + 10*time.Second, 0},
	}
	for fault, want := range cases {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t, only(Payers, fault), script{string(Payers): 1})
			call := driverCalls["terminal payment"]
			call.sendTo(t, p, NoFault)
			before := statusPending
			if fault == LieReversed {
				before = statusSuccessful
			}
			statuses := map[time.Duration]string{want.after - time.Millisecond: before, want.after: want.status}
			for at, status := range statuses {
				p.now = start.Add(at)
				mapped, _ := operator.ParsePaymentStatus(status)
				if got := p.lookup(t, 10*time.Second); got.Status != mapped {
					t.Errorf("after %s: %s, want %s", at, got.Status, mapped)
				}
			}
			status, at, ok := p.operator.FinalStatus(call.key)
			if ok != (fault != PayerNever) || ok && status != want.status {
				t.Errorf("FinalStatus: %s at %s, %v", status, at, ok)
			}
			if effects := p.effectsOf(call); effects != want.effects {
				t.Errorf("%d effects, want %d", effects, want.effects)
			}
		})
	}
}
