package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// life is one entry under all events: attempts that overlap, lapse and end late, callbacks, receipts, lookups,
// deliveries, and a store that conflicts and loses responses.
type life struct {
	*bench
	kind     ledger.Kind
	attempts []*ledger.Entry
	before   *ledger.Entry
	success  bool // an attempt's success was stored
}

// TestLifeKeepsItsInvariants drives random lives, and checks the invariants after each step.
func TestLifeKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{bench: newBench(t), kind: rapid.SampledFrom([]ledger.Kind{ledger.Charge, ledger.Payment,
			ledger.SMS}).Draw(t, "kind")}
		steps := []func(*rapid.T){l.arrive, l.arrive, l.storeOutcome, l.storeOutcome, l.report, l.sweep, l.deliver,
			l.resolveManually}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			l.clock.Add(rapid.Int64Range(0, 40_000).Draw(t, "wait"))
			fault := rapid.SampledFrom([]storetest.Fault{
				storetest.NoFault, storetest.NoFault, storetest.RetriedAfterLostResponse, storetest.ConcurrentWrite,
				storetest.LostResponse, storetest.FailedBeforeApply,
			}).Draw(t, "fault")
			l.store.FailNext(storetest.Replace, fault)
			rapid.SampledFrom(steps).Draw(t, "step")(t)
			l.check(t)
		}
	})
}

func (l *life) arrive(t *rapid.T) {
	request := l.request(l.kind, rapid.SampledFrom([]string{"f", "f", "f", "g"}).Draw(t, "body"))
	request.Outbox.URL, request.Request.MSISDN = "https://shop.example/", "0700000000"
	if l.kind == ledger.Charge {
		request.Outbox.URL = ""
	}
	e, verdict, err := l.Reserve(context.Background(), request, anHour)
	if err != nil {
		return
	}
	if verdict == ledger.NewReservation || verdict == ledger.TakenOver {
		l.attempts = append(l.attempts, e)
		if l.success {
			t.Fatalf("%s after a success: it would be sent again", verdict)
		}
	}
}

func (l *life) storeOutcome(t *rapid.T) {
	if len(l.attempts) == 0 {
		return
	}
	attempt := rapid.SampledFrom(l.attempts).Draw(t, "attempt")
	s := rapid.SampledFrom([]ledger.CallOutcome{done, refused, unknown, pending, released}).Draw(t, "outcome")
	s.NotifyURL = "https://shop.example/"
	if l.kind == ledger.SMS && s.State == ledger.Refused {
		s.Status = ledger.DeliveryImpossible
	}
	updated, err := l.StoreOutcome(context.Background(), attempt, transitionOf(s), s)
	if err != nil || s.State != ledger.Done {
		return
	}
	if updated.State != ledger.Done && (updated.State != ledger.Refused || len(updated.Conflicts) == 0) {
		t.Fatalf("a success was lost: %s", summary(updated))
	}
	l.success = true
}

func (l *life) report(t *rapid.T) {
	statuses := []ledger.Status{
		ledger.Pending, ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.MessageWaiting,
		ledger.DeliveredToNetwork,
		ledger.DeliveredToTerminal, ledger.DeliveryImpossible,
	}
	status := rapid.SampledFrom(statuses).Draw(t, "status")
	claim := rapid.Bool().Draw(t, "claim")
	l.change(func(e *ledger.Entry) ledger.Transition {
		switch {
		case e.Kind == ledger.SMS:
			return ledger.AddReceipt.After(e.ApplyReceipt(status, l.now()))
		case claim:
			made := ledger.Claim{Status: status, CheckAt: l.now().Add(5 * time.Second)}
			return ledger.AddClaim.After(e.AddClaim(made, l.now()))
		default:
			report := ledger.StatusReport{Status: status, Source: "getStatus", UserSMS: true}
			return ledger.EndPayment.After(e.ApplyFinalStatus(report, l.now()))
		}
	})
}

func (l *life) resolveManually(t *rapid.T) {
	outcomes := []string{"applied", "not-applied", "successful", "failed", "unknowable"}
	outcome := rapid.SampledFrom(outcomes).Draw(t, "manual outcome")
	l.change(func(e *ledger.Entry) ledger.Transition {
		before := e.Clone()
		known := before.Leased(l.now()) || before.StatusFinal() || before.State == ledger.Refused
		m := manuallyResolved(outcome)
		m.Owner, m.NotifyURL = e.Owner, "https://shop.example/"
		err := e.ResolveManually(m, l.now())
		if err == nil && known {
			t.Fatalf("%s of a known outcome: %s", outcome, summary(before))
		}
		if outcome == ledger.ManuallyUnknowable {
			return ledger.CloseUnknowable.If(err == nil)
		}
		return ledger.ResolveManually.If(err == nil)
	})
}

func (l *life) sweep(*rapid.T) {
	l.change(func(e *ledger.Entry) ledger.Transition { return ledger.Lapse.If(e.MarkLapsed(l.now(), l.now())) })
	l.change(func(e *ledger.Entry) ledger.Transition {
		due := e.LookupDue(l.now())
		if due {
			e.ReschedulePoll(l.now().Add(time.Minute))
		}
		return ledger.LeaseLookup.If(due)
	})
	l.change(func(e *ledger.Entry) ledger.Transition {
		return ledger.ExpirePayment.After(e.Expire(24*time.Hour, l.now()))
	})
}

func (l *life) deliver(t *rapid.T) {
	what := rapid.IntRange(0, 6).Draw(t, "delivery")
	l.change(func(e *ledger.Entry) ledger.Transition {
		head := e.Outbox.Head()
		if head == nil {
			isReplay := what == 0 && len(e.Outbox.Delivered) > 0
			return ledger.Replay.If(isReplay && e.Outbox.ReplayNotification(e.Outbox.Delivered[0].ID, l.now()))
		}
		switch what {
		case 0:
			return ledger.LeaseDelivery.If(e.Outbox.ClaimDelivery(l.now()))
		case 1:
			claim := e.Outbox.HeadClaim()
			return ledger.RecordFailedAttempt.If(claim != nil && e.Outbox.RecordFailedAttempt(*claim,
				failedAttempt(claim.Attempts+1, 500, "status"), l.now().Add(time.Minute)))
		case 2:
			return ledger.MarkDelivered.If(e.Outbox.MarkDelivered(head.ID, l.now()))
		case 3:
			return ledger.Park.If(e.Outbox.Park(l.now()))
		case 4:
			return ledger.Unpark.If(e.Outbox.Unpark(l.now()))
		case 5:
			return ledger.DeadLetter.If(e.Outbox.DeadLetter(head.ID, "attempts", l.now()))
		default:
			sent := ledger.UserSMSOutcome{State: ledger.UserSMSSent}
			return ledger.RecordUserSMS.If(e.UserSMS.Record(e.UserSMSClaim(), sent))
		}
	})
}

func (l *life) change(change func(*ledger.Entry) ledger.Transition) {
	_, _ = l.Change(context.Background(), ledger.Key{Kind: l.kind, ID: "Shop_1"},
		func(e *ledger.Entry) (ledger.Transition, error) { return change(e), nil })
}

// check compares the stored entry with the one after the step before.
func (l *life) check(t *rapid.T) {
	all := l.store.All()
	if len(all) == 0 {
		return
	}
	e, before := all[0], l.before
	l.before = e
	again := e.Clone()
	if again.Reschedule(); !again.DueAt.Equal(e.DueAt) {
		t.Fatalf("stored as due %s, computed %s", e.DueAt, again.DueAt)
	}
	if problem := violation(e); problem != "" {
		t.Fatalf("%s: %s", problem, summary(e))
	}
	if before == nil {
		return
	}
	if problem := progress(before, e); problem != "" {
		t.Fatalf("%s:\nwas %s\nis  %s", problem, summary(before), summary(e))
	}
}

// violation names the invariant that an entry violates.
func violation(e *ledger.Entry) string {
	notified := map[ledger.Status]bool{}
	for _, n := range slices.Concat(e.Outbox.Delivered, e.Outbox.Waiting) {
		if notified[n.Status] {
			return "a status is in the outbox twice"
		}
		notified[n.Status] = true
	}
	switch {
	case e.State == ledger.Released && e.EverUnknown:
		return "released after an unknown"
	case e.State == ledger.Reserved && e.DueAt.IsZero():
		return "a reservation is not due"
	case e.Kind == ledger.Payment && !e.StatusFinal() && e.State != ledger.Released && e.DueAt.IsZero():
		return "a pending payment is not due"
	case e.State == ledger.Unknown && !e.StatusFinal() && !notified[e.Status] && e.DueAt.IsZero() &&
		!e.Unknowable():
		return "an unknown entry is not due"
	case e.StatusFinal() && e.Kind == ledger.Payment && e.State != ledger.Refused && !notified[e.Status]:
		return "a final status without a notification"
	case e.Kind == ledger.Charge && len(notified) > 1:
		return "a charge is notified twice"
	case e.Kind == ledger.Charge && (e.Outbox.URL != "") != (len(notified) > 0):
		return "a charge has an address without a notification, or the reverse"
	case len(e.Conflicts) > ledger.MaxConflicts:
		return "too many conflicts"
	case len(e.Outbox.FailedAttempts) > ledger.MaxAttempts || len(e.Outbox.Replays) > ledger.MaxReplays:
		return "too many attempts or replays"
	}
	return ""
}

// progress names the forbidden change from one stored version to the next.
func progress(before, e *ledger.Entry) string {
	switch {
	case e.Version < before.Version:
		return "the version went back"
	case before.EverUnknown && !e.EverUnknown && e.Request.Fingerprint != "":
		return "an unknown was forgotten"
	case before.StatusFinal() && e.Status != before.Status:
		return "a final status changed"
	case before.Response.Status != 0 && string(before.Response.Body) != string(e.Response.Body):
		return "the stored response changed"
	case !before.CreatedAt.Equal(e.CreatedAt):
		return "its creation moved"
	case before.State == ledger.Done && e.State != ledger.Done, before.State == ledger.Refused &&
		e.State != ledger.Refused:
		return fmt.Sprintf("%s became %s", before.State, e.State)
	case before.State == ledger.Unknown && e.State == ledger.Released:
		return "an unknown was released"
	}
	for _, n := range before.Outbox.Delivered {
		if !remembers(e, n) {
			return "a delivery was forgotten"
		}
	}
	return ""
}

// remembers is true if an entry has the time of a delivery, also after a replay.
func remembers(e *ledger.Entry, n ledger.Notification) bool {
	delivered := func(d ledger.Notification) bool { return d.ID == n.ID && d.DeliveredAt.Equal(n.DeliveredAt) }
	replayed := func(r ledger.ReplayRecord) bool { return r.Status == n.Status && r.DeliveredAt.Equal(n.DeliveredAt) }
	full := len(e.Outbox.Replays) == ledger.MaxReplays // only the first deliveries are kept then
	return full || slices.ContainsFunc(e.Outbox.Delivered, delivered) || slices.ContainsFunc(e.Outbox.Replays, replayed)
}
