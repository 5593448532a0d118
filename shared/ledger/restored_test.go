package ledger_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// lostEntry is a transaction that a restore of the ledger lost, as a log line shows it: without body and amount.
func lostEntry(kind ledger.Kind) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: kind, ID: "Shop_1"}, Merchant: ledger.Merchant{ID: "m"}, CreatedAt: start,
		Route:  ledger.Route{Operator: "sandbox", Account: "a1", UpstreamKey: "Shop_1"},
		Amount: ledger.Amount{Currency: "XOF"}, Outbox: ledger.Outbox{URL: "https://shop.example/notify"},
	}
}

// restored returns a bench with a transaction that was stored after a restore, and its entry.
func restored(t *testing.T, kind ledger.Kind) (*bench, *ledger.Entry) {
	t.Helper()
	b := newBench(t)
	e, stored, err := b.Restore(context.Background(), lostEntry(kind), ledger.RestoreLost)
	if err != nil || !stored {
		t.Fatalf("Restore = %v, %v", stored, err)
	}
	return b, e
}

// decision "restored": no request takes a restored entry over, within the resend window and after it.
func TestRestoredIsNeverTakenOver(t *testing.T) {
	for kind, want := range map[ledger.Kind]ledger.Verdict{
		ledger.Charge: ledger.StillUnknown, ledger.Payment: ledger.KeyTaken, ledger.SMS: ledger.KeyTaken,
	} {
		b, e := restored(t, kind)
		if e.State != ledger.Unknown || e.DueAt.IsZero() {
			t.Errorf("%s: %s, due %v", kind, e.State, e.DueAt)
		}
		for _, wait := range []time.Duration{0, time.Minute, 2 * time.Hour} {
			b.wait(wait)
			for _, fingerprint := range []string{"f", "other", ""} {
				b.reserve(t, kind, fingerprint, want)
			}
		}
		if stored := b.store.All(); len(stored) != 1 || stored[0].Version != 1 {
			t.Errorf("%s: %d entries were written", kind, len(stored))
		}
	}
}

// A second run of the command changes nothing, also where a request came first.
func TestRestoreKeepsAnEntry(t *testing.T) {
	b, e := restored(t, ledger.Payment)
	again, stored, err := b.Restore(context.Background(), lostEntry(ledger.Payment), ledger.RestoreLost)
	if err != nil || stored || again.Writer != e.Writer {
		t.Errorf("Restore = %v, %v, want the first entry", stored, err)
	}
}

// A restored payment ends only by a status: that its operator does not know it proves nothing, at no time.
func TestRestoredIsNeverFree(t *testing.T) {
	_, e := restored(t, ledger.Payment)
	later := start.Add(100 * time.Hour)
	if e.EndNeverSent(later) != ledger.Unchanged || e.Expire(time.Hour, later) != ledger.Unchanged {
		t.Errorf("it is %s %s without a status of its operator", e.State, e.Status)
	}
}

func TestRestoredTakesTheReportedAmount(t *testing.T) {
	success := ledger.StatusReport{Status: ledger.Successful, Source: ledger.SourceLookup, UserSMS: true, MSISDN: "07"}
	with := func(amount int64, currency string) ledger.StatusReport {
		r := success
		r.HasAmount, r.AmountMinor, r.Currency = true, amount, currency
		return r
	}
	manual := success
	manual.Source = ledger.SourceManual
	for name, c := range map[string]struct {
		known  int64
		report ledger.StatusReport
		effect ledger.Effect
		amount int64
	}{
		"reported":                       {0, with(500, "XOF"), ledger.Applied, 500},
		"not reported":                   {0, success, ledger.Conflicting, 0},
		"unreadable":                     {0, with(-1, "XOF"), ledger.Conflicting, 0},
		"another currency":               {0, with(500, "XAF"), ledger.Conflicting, 0},
		"not reported, known by a list":  {300, success, ledger.Applied, 300},
		"another amount than the list's": {300, with(500, "XOF"), ledger.Conflicting, 300},
		"a person's decision":            {0, manual, ledger.Applied, 0},
	} {
		_, e := restored(t, ledger.Payment)
		e.Amount.Minor = c.known
		if got := e.ApplyFinalStatus(c.report, start); got != c.effect || e.Amount.Minor != c.amount {
			t.Errorf("%s: effect %v, amount %d, want %v, %d", name, got, e.Amount.Minor, c.effect, c.amount)
		}
		if e.UserSMS.State != "" {
			t.Errorf("%s: the payer gets a second SMS", name)
		}
	}
	if e := pendingPayment(); e.ApplyFinalStatus(with(499, "XOF"), start) != ledger.Conflicting {
		t.Error("a payment that is not restored takes another amount")
	}
}

// A released entry whose later attempt the restore lost is not sent again.
func TestLoseRelease(t *testing.T) {
	for _, outcomeBefore := range []ledger.CallOutcome{released, unbound} {
		for _, kind := range []ledger.Kind{ledger.Charge, ledger.Payment, ledger.SMS} {
			b := newBench(t)
			e := b.storeOutcome(t, b.reserve(t, kind, "f", ledger.NewReservation), outcomeBefore)
			_, err := b.Change(context.Background(), e.Key, func(e *ledger.Entry) (ledger.Transition, error) {
				return ledger.LoseRelease.If(e.LoseRelease(b.now())), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, fingerprint := range []string{"f", "other"} {
				want := ledger.KeyTaken
				if kind == ledger.Charge {
					want = ledger.StillUnknown
				}
				verdict := ledger.Decide(b.store.All()[0], b.request(kind, fingerprint), b.now(), time.Hour)
				if verdict != want {
					t.Errorf("%s with %q: %v", kind, fingerprint, verdict)
				}
			}
		}
	}
	if e := pendingPayment(); e.LoseRelease(start) || e.Request.Restored() {
		t.Error("a pending payment lost its body")
	}
}

// A restore loses the retry of an uncertain payment. Its lifetime, and what proves that it was never sent, then count
// from the retry. An attempt before the last one that is stored changes nothing.
func TestLoseRetry(t *testing.T) {
	const lifetime = 24 * time.Hour
	last, now := start.Add(2*time.Hour), start.Add(3*time.Hour)
	for name, step := range map[string]func(*ledger.Entry){"unknown": outcome(unknown), "reserved": nil} {
		e := entryAfter(ledger.Payment, step)
		if !e.LoseRetry(last, false, now) || !e.ReservedAt.Equal(last) || e.Request.Restored() {
			t.Errorf("%s: reserved at %s", name, e.ReservedAt)
		}
		if e.LoseRetry(last.Add(-time.Hour), false, now) || !e.ReservedAt.Equal(last) {
			t.Errorf("%s: an earlier attempt: reserved at %s", name, e.ReservedAt)
		}
		if e.Expire(lifetime, start.Add(lifetime+time.Hour)) != ledger.Unchanged ||
			e.Expire(lifetime, last.Add(lifetime)) != ledger.Applied {
			t.Errorf("%s: it does not expire %s after its retry", name, lifetime)
		}
	}
}

// A lost attempt may have sent what the earlier ones did not: no release that binds no body proves the contrary.
func TestLoseRetryForgetsThatNothingWasSent(t *testing.T) {
	notSent := unknown
	notSent.NothingSent = true
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.Payment, ledger.SMS} {
		e := entryAfter(kind, outcome(notSent))
		if !e.LoseRetry(start, false, start.Add(time.Hour)) || !e.MayHaveSent() {
			t.Errorf("%s: nothing was sent", kind)
		}
		if e.LoseRetry(start, false, start.Add(time.Hour)) {
			t.Errorf("%s: it changes again", kind)
		}
	}
}

// The lost attempt may have prepared and sent the payment: that it has no driver's data proves nothing.
func TestLoseRetryOfAPreparedPayment(t *testing.T) {
	now := start.Add(time.Hour)
	for name, step := range map[string]func(*ledger.Entry){"unknown": outcome(unknown), "reserved": nil} {
		e := entryAfter(ledger.Payment, step)
		if !e.LoseRetry(now, true, now) || e.State != ledger.Unknown || !e.Request.Restored() {
			t.Errorf("%s: %s, restored %v", name, e.State, e.Request.Restored())
		}
		if e.EndNeverSent(now) != ledger.Unchanged || e.LoseRetry(now, true, now) {
			t.Errorf("%s: it changes again, or it was never sent", name)
		}
		e = entryAfter(ledger.Payment, step)
		e.DriverData = "token"
		if e.LoseRetry(now, true, now); e.Request.Restored() {
			t.Errorf("%s: the retry sends under the stored key, which its lookup finds", name)
		}
	}
}

func TestLoseRetryKeepsAnOutcome(t *testing.T) {
	now := start.Add(time.Hour)
	leased := entryAfter(ledger.Payment)
	leased.LeaseUntil = now.Add(time.Second)
	for name, e := range map[string]*ledger.Entry{
		"done": pendingPayment(), "refused": entryAfter(ledger.Payment, outcome(refused)),
		"released": entryAfter(ledger.Payment, outcome(released)), "leased": leased,
		"final": entryAfter(ledger.Payment, outcome(unknown), finalStatus(ledger.Failed)),
	} {
		if e.LoseRetry(now, true, now) || !e.ReservedAt.Equal(start) {
			t.Errorf("%s: reserved at %s", name, e.ReservedAt)
		}
	}
}
