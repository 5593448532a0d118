package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/shared/ledger"
)

// life is one entry under whatever may happen to it: attempts that come, overlap, lapse and settle late, callbacks,
// receipts, lookups, deliveries, and a store that conflicts and loses answers.
type life struct {
	*bench
	kind     ledger.Kind
	attempts []*ledger.Entry
	before   *ledger.Entry
	success  bool // an attempt's success was settled
}

// TestLifeKeepsItsInvariants drives random lives and checks after each step what must always hold.
func TestLifeKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{bench: newBench(), kind: rapid.SampledFrom([]ledger.Kind{ledger.Charge, ledger.Payment, ledger.SMS}).Draw(t, "kind")}
		steps := []func(*rapid.T){l.arrive, l.arrive, l.settleOne, l.settleOne, l.report, l.sweep, l.deliver, l.judge}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			l.clock.Add(rapid.Int64Range(0, 40_000).Draw(t, "wait"))
			fault := rapid.SampledFrom([]ledgermem.InjectedFault{
				ledgermem.NoFault, ledgermem.NoFault, ledgermem.RetriedAfterLostResponse, ledgermem.ConcurrentWrite, ledgermem.LostResponse, ledgermem.FailedBeforeApply,
			}).Draw(t, "fault")
			l.inject(ledgermem.Replace, fault)
			rapid.SampledFrom(steps).Draw(t, "step")(t)
			l.check(t)
		}
	})
}

func (l *life) arrive(t *rapid.T) {
	request := l.request(l.kind, rapid.SampledFrom([]string{"f", "f", "f", "g"}).Draw(t, "body"))
	request.NotifyURL, request.MSISDN = "https://shop.example/", "0700000000"
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

func (l *life) settleOne(t *rapid.T) {
	if len(l.attempts) == 0 {
		return
	}
	attempt := rapid.SampledFrom(l.attempts).Draw(t, "attempt")
	s := rapid.SampledFrom([]ledger.CallOutcome{done, refused, unknown, pending, released}).Draw(t, "outcome")
	settled, err := l.StoreOutcome(context.Background(), attempt, s)
	if err != nil {
		return
	}
	if s.State != ledger.Done {
		return
	}
	if settled.State != ledger.Done && (settled.State != ledger.Refused || len(settled.Conflicts) == 0) {
		t.Fatalf("a success was lost: %+v", settled)
	}
	l.success = true
}

func (l *life) report(t *rapid.T) {
	statuses := []ledger.Status{
		ledger.Pending, ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.MessageWaiting, ledger.DeliveredToNetwork,
		ledger.DeliveredToTerminal, ledger.DeliveryImpossible,
	}
	status := rapid.SampledFrom(statuses).Draw(t, "status")
	claim := rapid.Bool().Draw(t, "claim")
	l.change(func(e *ledger.Entry) {
		switch {
		case e.Kind == ledger.SMS:
			e.ApplyReceipt(status, l.now())
		case claim:
			e.AddClaim(ledger.Claim{Status: status, CheckAt: l.now().Add(5 * time.Second)}, l.now())
		default:
			e.ApplyFinalStatus(ledger.StatusReport{Status: status, Source: "getStatus", UserSMS: true}, l.now())
		}
	})
}

func (l *life) judge(t *rapid.T) {
	said := rapid.SampledFrom([]string{"applied", "not-applied", "successful", "failed"}).Draw(t, "said")
	l.change(func(e *ledger.Entry) {
		before := e.Clone()
		if err := e.ResolveManually(manuallyResolved(said), l.now()); err == nil && (before.Leased(l.now()) || before.StatusFinal() || before.State == ledger.Refused) {
			t.Fatalf("%s of what is known: %+v", said, before)
		}
	})
}

func (l *life) sweep(*rapid.T) {
	l.change(func(e *ledger.Entry) {
		e.MarkLapsed(l.now(), l.now())
		if e.LookupDue(l.now()) {
			e.ReschedulePoll(l.now().Add(time.Minute))
		}
		e.Expire(24*time.Hour, l.now())
	})
}

func (l *life) deliver(t *rapid.T) {
	what := rapid.IntRange(0, 6).Draw(t, "delivery")
	l.change(func(e *ledger.Entry) {
		head := e.OutboxHead()
		if head == nil {
			if what == 0 && len(e.Delivered) > 0 {
				e.ReplayNotification(e.Delivered[0].ID, l.now())
			}
			return
		}
		switch what {
		case 0:
			e.ClaimDelivery(l.now(), l.now().Add(time.Minute))
		case 1:
			e.RecordFailedAttempt(head.ID, ledger.FailedAttempt{Number: head.Attempts + 1, At: l.now(), HTTPStatus: 500, Reason: "status"}, l.now().Add(time.Minute))
		case 2:
			e.MarkDelivered(head.ID, l.now())
		case 3:
			e.Park()
		case 4:
			e.Unpark(l.now())
		case 5:
			e.DeadLetter(head.ID, "attempts")
		default:
			e.RecordUserSMS(ledger.UserSMSSent, l.now())
		}
	})
}

func (l *life) change(change func(*ledger.Entry)) {
	_, _ = l.Change(context.Background(), ledger.Key{Kind: l.kind, ID: "Shop_1"}, func(e *ledger.Entry) error {
		change(e)
		return nil
	})
}

// check compares the stored entry with the one after the step before.
func (l *life) check(t *rapid.T) {
	all := l.store.All()
	if len(all) == 0 {
		return
	}
	e, before := all[0], l.before
	l.before = e
	if again := e.Clone(); func() bool { again.Reschedule(); return !again.DueAt.Equal(e.DueAt) }() {
		t.Fatalf("due %s, computed %s", e.DueAt, again.DueAt)
	}
	if problem := standing(e); problem != "" {
		t.Fatalf("%s: %+v", problem, e)
	}
	if before == nil {
		return
	}
	if problem := progress(before, e); problem != "" {
		t.Fatalf("%s:\nwas %+v\nis  %+v", problem, before, e)
	}
}

// standing names what may never be true of an entry.
func standing(e *ledger.Entry) string {
	notified := map[ledger.Status]bool{}
	for _, n := range append(append([]ledger.Notification(nil), e.Delivered...), e.Outbox...) {
		if notified[n.Status] {
			return "a status stands in the outbox twice"
		}
		notified[n.Status] = true
	}
	switch {
	case e.State == ledger.Released && e.EverUnknown:
		return "released after an unknown"
	case e.State == ledger.Reserved && e.DueAt.IsZero():
		return "a reservation that nobody takes up"
	case e.Kind == ledger.Payment && !e.StatusFinal() && e.State != ledger.Released && e.DueAt.IsZero():
		return "a pending payment that nobody takes up"
	case e.State == ledger.Unknown && !e.StatusFinal() && !notified[e.Status] && e.DueAt.IsZero():
		return "an unknown that nobody takes up"
	case e.StatusFinal() && e.Kind == ledger.Payment && e.State != ledger.Refused && !notified[e.Status]:
		return "a final status that nobody is told"
	case len(e.Conflicts) > ledger.MaxConflicts:
		return "too many conflicts"
	case len(e.FailedAttempts) > ledger.MaxAttempts || len(e.Replays) > ledger.MaxReplays:
		return "too many attempts or replays"
	}
	return ""
}

// progress names what may never change from one stored version to another.
func progress(before, e *ledger.Entry) string {
	switch {
	case e.Version < before.Version:
		return "the version went back"
	case before.EverUnknown && !e.EverUnknown && e.Fingerprint != "":
		return "an unknown was forgotten"
	case before.StatusFinal() && e.Status != before.Status:
		return "a final status changed"
	case before.ResponseStatus != 0 && string(before.ResponseBody) != string(e.ResponseBody):
		return "the stored answer changed"
	case !before.CreatedAt.Equal(e.CreatedAt):
		return "its creation moved"
	case before.State == ledger.Done && e.State != ledger.Done, before.State == ledger.Refused && e.State != ledger.Refused:
		return fmt.Sprintf("%s became %s", before.State, e.State)
	case before.State == ledger.Unknown && e.State == ledger.Released:
		return "an unknown was released"
	}
	for _, n := range before.Delivered {
		if !remembers(e, n) {
			return "a delivery was forgotten"
		}
	}
	return ""
}

// remembers is true where an entry still tells when a notification was delivered, also after it was replayed.
func remembers(e *ledger.Entry, n ledger.Notification) bool {
	return slices.ContainsFunc(e.Delivered, func(delivered ledger.Notification) bool {
		return delivered.ID == n.ID && delivered.DeliveredAt.Equal(n.DeliveredAt)
	}) ||
		slices.ContainsFunc(e.Replays, func(r ledger.ReplayRecord) bool { return r.Status == n.Status && r.DeliveredAt.Equal(n.DeliveredAt) }) ||
		len(e.Replays) == ledger.MaxReplays // all but the first may be
}
