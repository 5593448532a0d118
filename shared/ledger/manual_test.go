package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ledger"
)

// manuallyResolved is a resolution as gatewayctl makes it.
func manuallyResolved(outcome string) ledger.ManualOutcome {
	return ledger.ManualOutcome{
		ManualResolution: ledger.ManualResolution{Outcome: outcome, Who: "ama", Reason: "their books"}, Owner: "owner",
		ResponseStatus: 400, ResponseBody: []byte("SVC0270"), UserSMS: true, Lifetime: 24 * time.Hour,
	}
}

func ownedBy(owner string) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.Owner = owner }
}

// decision "unknown-by-hand".
func TestResolveManually(t *testing.T) {
	charge, payment, sms := ledger.Charge, ledger.Payment, ledger.SMS
	uncertain, accepted := outcome(unknown), outcome(done)
	lapsed := func(e *ledger.Entry) { e.LeaseUntil = start.Add(time.Second) }
	inFlight := func(*ledger.Entry) {}
	const soon, late, lifetime = time.Hour, 25 * time.Hour, 24 * time.Hour
	const leaseEnd = 30*time.Second + 2*time.Minute // clocks differ by 2 minutes at most
	for _, c := range []struct {
		name    string
		kind    ledger.Kind
		before  func(*ledger.Entry)
		outcome string
		after   time.Duration
		err     error
		want    string // summary
	}{
		{"an applied charge has no response yet", charge, uncertain, "applied", soon, nil, "done ever-unknown"},
		{"a charge that was not applied is refused", charge, uncertain, "not-applied", soon, nil,
			"refused 400:SVC0270 ever-unknown"},
		{"a lapsed one too", charge, lapsed, "not-applied", soon, nil, "refused 400:SVC0270"},
		{"a message that was sent", sms, uncertain, "applied", soon, nil,
			"done MessageWaiting 201: ever-unknown notify:MessageWaiting due:1h1m0s"},
		{"a message that was not sent", sms, uncertain, "not-applied", soon, nil,
			"done DeliveryImpossible ever-unknown notify:DeliveryImpossible due:1h1m0s"},
		{"a payment that is unknown", payment, uncertain, "successful", soon, nil,
			"done successful ever-unknown notify:successful user-sms:due due:1h1m0s"},
		{"a payment that never ends", payment, accepted, "cancelled", late, nil,
			"done cancelled 201:done notify:cancelled due:25h1m0s"},
		{"a message whose outcome no source knows stays unknown, and is not due", sms, uncertain, "unknowable", soon,
			nil, "unknown ever-unknown"},
		{"a lapsed one too", sms, lapsed, "unknowable", soon, nil, "unknown ever-unknown"},
		{"an sms of an earlier version, unknown with a receipt", sms, func(e *ledger.Entry) {
			receipt(ledger.DeliveredToTerminal)(e)
			e.State = ledger.Unknown
		}, "applied", soon, nil, "done DeliveredToTerminal 201: notify:DeliveredToTerminal due:1m0s"},

		{"a charge whose lease ended 2 minutes ago", charge, inFlight, "not-applied", leaseEnd, nil,
			"refused 400:SVC0270"},
		{"a payment at the end of its lifetime", payment, accepted, "cancelled", lifetime, nil,
			"done cancelled 201:done notify:cancelled due:24h1m0s"},

		{"a charge whose lease ended less than 2 minutes ago", charge, inFlight, "not-applied",
			leaseEnd - time.Millisecond, ledger.ErrAttemptInFlight, ""},
		{"a payment just before the end of its lifetime", payment, accepted, "cancelled", lifetime - time.Millisecond,
			ledger.ErrStillPending, ""},
		{"one in flight", charge, inFlight, "applied", time.Second, ledger.ErrAttemptInFlight, ""},
		{"a later attempt than the decision is about", charge, steps(uncertain, ownedBy("later")), "not-applied", soon,
			ledger.ErrLaterAttempt, ""},
		{"a charge that is done", charge, accepted, "not-applied", soon, ledger.ErrOutcomeKnown, ""},
		{"a message that was received", sms, steps(receipt(ledger.DeliveredToTerminal), accepted), "not-applied", soon,
			ledger.ErrOutcomeKnown, ""},
		{"a payment that is final", payment, finalStatus(ledger.Failed), "successful", late,
			ledger.ErrOutcomeKnown, ""},
		{"a payment that may still end", payment, accepted, "failed", soon, ledger.ErrStillPending, ""},
		{"a payment that was released", payment, outcome(released), "failed", late, ledger.ErrOutcomeKnown, ""},
		{"no outcome", sms, uncertain, "", soon, ledger.ErrInvalidResolution, ""},
		{"another kind's outcome", charge, uncertain, "successful", soon, ledger.ErrInvalidResolution, ""},
		{"the outcome of a charge can be known", charge, uncertain, "unknowable", soon, ledger.ErrInvalidResolution,
			""},
		{"the outcome of a payment can be known", payment, uncertain, "unknowable", soon, ledger.ErrInvalidResolution,
			""},
		{"a receipt proves that the message was sent", sms, func(e *ledger.Entry) {
			receipt(ledger.DeliveredToNetwork)(e)
			e.State = ledger.Unknown
		}, "unknowable", soon, ledger.ErrOutcomeKnown, ""},
		{"expired is not a manual outcome", payment, uncertain, "expired", late, ledger.ErrInvalidResolution, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := entryAfter(c.kind, c.before)
			before, now := e.Clone(), start.Add(c.after)
			if err := e.ResolveManually(manuallyResolved(c.outcome), now); !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.err != nil {
				if diff := cmp.Diff(before, e); diff != "" {
					t.Errorf("changed all the same:\n%s", diff)
				}
				return
			}
			assertSummary(t, c.outcome, e, c.want)
			want := ledger.ManualResolution{Outcome: c.outcome, Who: "ama", Reason: "their books", At: now}
			if diff := cmp.Diff(want, e.Manual.ManualResolution); diff != "" {
				t.Errorf("kept resolution (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("without a response for its repeats, no charge is refused", func(t *testing.T) {
		e, m := reserved(ledger.Charge), manuallyResolved("not-applied")
		uncertain(e)
		m.ResponseStatus = 0
		if err := e.ResolveManually(m, start); !errors.Is(err, ledger.ErrInvalidResolution) {
			t.Error(err)
		}
	})
	t.Run("a message that was closed as unknowable", func(t *testing.T) {
		closed := entryAfter(ledger.SMS, uncertain)
		if closed.Unknowable() {
			t.Error("it is closed before a person closes it")
		}
		if err := closed.ResolveManually(manuallyResolved("unknowable"), start); err != nil || !closed.Unknowable() {
			t.Fatalf("%v, %s", err, summary(closed))
		}
		if closed.LookupDue(start.Add(1000 * time.Hour)) {
			t.Error("it is listed again")
		}
		for window, want := range map[time.Duration]ledger.Verdict{
			0: ledger.StillUnknown, 48 * time.Hour: ledger.TakenOver,
		} {
			if got := ledger.Decide(closed, reserved(ledger.SMS), start.Add(time.Hour), window); got != want {
				t.Errorf("a retry gets %s, want %s as before", got, want)
			}
		}
		received, decided := closed.Clone(), closed.Clone()
		effect := received.ApplyReceipt(ledger.DeliveredToTerminal, start)
		if effect != ledger.Applied || received.State != ledger.Done {
			t.Errorf("a receipt does not end it: %s", summary(received))
		}
		err := decided.ResolveManually(manuallyResolved("applied"), start)
		if err != nil || decided.State != ledger.Done {
			t.Errorf("a later statement of the operator does not end it: %v", err)
		}
		again := closed.TakeOver(reserved(ledger.SMS), "next", start)
		if again.ApplyOutcome("next", unknown, start); again.Unknowable() || again.Poll.At.IsZero() {
			t.Errorf("a later unknown attempt is not listed: %s", summary(again))
		}
	})
	t.Run("a success after a manual refusal is kept as a conflict", func(t *testing.T) {
		e := entryAfter(ledger.Charge, uncertain)
		if err := e.ResolveManually(manuallyResolved("not-applied"), start); err != nil ||
			!e.ApplyOutcome("owner", done, start) {
			t.Fatalf("%v, %s", err, summary(e))
		}
		assertSummary(t, "late success", e, "refused 400:SVC0270 ever-unknown conflict:successful/final")
	})
}
