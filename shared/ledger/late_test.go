package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// decision "charge-notif": a charge is notified once, only if its outcome became known after a 504.
func TestChargeNotif(t *testing.T) {
	const url = "https://shop.example/charges"
	lease := 30 * time.Second
	addressed := func(o ledger.CallOutcome) ledger.CallOutcome { o.NotifyURL = url; return o }
	type step = func(e *ledger.Entry, now time.Time)
	apply := func(owner string, o ledger.CallOutcome) step {
		return func(e *ledger.Entry, now time.Time) { e.ApplyOutcome(owner, o, now) }
	}
	retry := func(e *ledger.Entry, now time.Time) {
		incoming := e.Clone()
		incoming.LeaseUntil = now.Add(lease)
		*e = *e.TakeOver(incoming, "retry", now)
	}
	resolve := func(outcome, owner, address string) step {
		return func(e *ledger.Entry, now time.Time) {
			m := manuallyResolved(outcome)
			m.Owner, m.NotifyURL = owner, address
			if err := e.ResolveManually(m, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	retried := func(o ledger.CallOutcome) step {
		return func(e *ledger.Entry, now time.Time) {
			retry(e, now)
			e.ApplyOutcome("retry", o, now)
		}
	}
	wait := func(*ledger.Entry, time.Time) {}
	lapse := func(e *ledger.Entry, now time.Time) { e.MarkLapsed(now, now) }
	first := apply("owner", addressed(done))
	for _, c := range []struct {
		name  string
		steps []step // one each ten minutes
		want  ledger.Status
	}{
		{"applied, manually", []step{apply("owner", unknown), resolve("applied", "owner", url)}, ledger.Successful},
		{"not applied, manually", []step{apply("owner", unknown), resolve("not-applied", "owner", url)}, ledger.Failed},
		{"lapsed, manually", []step{wait, resolve("applied", "owner", url)}, ledger.Successful},
		{"marked as lapsed, manually", []step{wait, lapse, resolve("applied", "owner", url)}, ledger.Successful},
		{"off in the profile", []step{apply("owner", unknown), resolve("applied", "owner", "")}, ""},
		{"the retry's response reports it", []step{apply("owner", unknown), retried(addressed(done))}, ""},
		{"the retry's refusal reports it", []step{apply("owner", unknown), retried(addressed(refused))}, ""},
		{"the retry is at work when the first attempt succeeds", []step{apply("owner", unknown),
			func(e *ledger.Entry, now time.Time) {
				retry(e, now)
				first(e, now)
			}}, ""},
		{"the retry got 504 before the first attempt succeeds", []step{lapse, retried(unknown), first},
			ledger.Successful},
		{"the attempt outlived its lease", []step{lapse, first}, ledger.Successful},
		{"a retry after it makes the response", []step{apply("owner", unknown), resolve("applied", "owner", url),
			first}, ledger.Successful},
		{"a refusal is contradicted after it", []step{apply("owner", unknown), resolve("not-applied", "owner", url),
			first}, ledger.Failed},
		{"still unknown", []step{apply("owner", unknown), apply("owner", addressed(released))}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := reserved(ledger.Charge)
			e.Outbox.URL = ""
			for i, do := range c.steps {
				do(e, start.Add(time.Duration(i)*10*time.Minute))
			}
			if c.want == "" {
				if len(e.Outbox.Waiting) > 0 || e.Outbox.URL != "" {
					t.Errorf("notified: %s at %q", summary(e), e.Outbox.URL)
				}
				return
			}
			if len(e.Outbox.Waiting) != 1 || e.Outbox.Waiting[0].Status != c.want || e.Outbox.Waiting[0].ID != e.ID ||
				!e.Outbox.WakesRelay() {
				t.Errorf("the outbox is %+v, want one %s with the charge's id that wakes the relay", e.Outbox.Waiting,
					c.want)
			}
			if e.Outbox.URL != url || e.Outbox.From != ledger.AddressOfProfile || dueAt(e).IsZero() {
				t.Errorf("address %q of %q, due %s", e.Outbox.URL, e.Outbox.From, dueAt(e))
			}
		})
	}
	t.Run("never unknown: nothing is stored for it", func(t *testing.T) {
		for _, o := range []ledger.CallOutcome{done, refused, released} {
			e, with := reserved(ledger.Charge), reserved(ledger.Charge)
			e.ApplyOutcome("owner", o, start)
			with.ApplyOutcome("owner", addressed(o), start)
			if summary(e) != summary(with) || e.Outbox.URL != with.Outbox.URL || len(with.Outbox.Waiting) > 0 {
				t.Errorf("%s, want %s", summary(with), summary(e))
			}
		}
	})
}

// decision "sms-unknown": an SMS whose outcome became known after a 504 is notified of its status at its own address.
func TestLateSMS(t *testing.T) {
	sent := with(done, ledger.MessageWaiting)
	impossible := with(refused, ledger.DeliveryImpossible)
	lapse := func(e *ledger.Entry) { e.MarkLapsed(start.Add(2*time.Minute), start.Add(time.Hour)) }
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		late   ledger.CallOutcome
		want   string
	}{
		{"sent", lapse, sent, "done MessageWaiting 201:done ever-unknown notify:MessageWaiting due:1m0s"},
		{"refused", lapse, impossible,
			"refused DeliveryImpossible 403:refused ever-unknown notify:DeliveryImpossible due:1m0s"},
		{"a receipt came first", receipt(ledger.DeliveredToNetwork), sent,
			"done DeliveredToNetwork 201:done notify:DeliveredToNetwork due:1m0s"},
		{"without an address", func(e *ledger.Entry) { lapse(e); e.Outbox.URL = "" }, sent,
			"done MessageWaiting 201:done ever-unknown"},
		{"never unknown", func(*ledger.Entry) {}, sent, "done MessageWaiting 201:done"},
		{"the retry's response reports it", func(e *ledger.Entry) {
			lapse(e)
			incoming := e.Clone()
			incoming.LeaseUntil = start.Add(time.Hour)
			*e = *e.TakeOver(incoming, "owner", start)
		}, sent, "done MessageWaiting 201:done ever-unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := entryAfter(ledger.SMS, c.before)
			e.ApplyOutcome("owner", c.late, start)
			assertSummary(t, c.name, e, c.want)
		})
	}
	t.Run("its receipt follows in order", func(t *testing.T) {
		e := entryAfter(ledger.SMS, lapse)
		e.ApplyOutcome("owner", sent, start)
		e.ApplyReceipt(ledger.DeliveredToTerminal, start)
		assertSummary(t, "receipt", e, "done DeliveredToTerminal 201:done ever-unknown "+
			"notify:MessageWaiting notify:DeliveredToTerminal due:1m0s")
	})
}
