package ledger_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ledger"
)

func id(e *ledger.Entry, s ledger.Status) string { return ledger.NotificationID(e.Key, s) }

func TestClaimDelivery(t *testing.T) {
	e := message(ledger.MessageWaiting)
	lease := start.Add(ledger.FastLease)
	if e.ClaimDelivery(lease.Add(-time.Millisecond), lease) != nil {
		t.Error("claimed during the relay's lease")
	}
	next := lease.Add(time.Minute)
	claimed := e.ClaimDelivery(lease, next)
	if claimed == nil || claimed.Attempts != 1 || !e.DueAt.Equal(next) || e.WakesRelay() {
		t.Fatalf("claimed %+v, due %s", claimed, e.DueAt)
	}
	if e.ClaimDelivery(lease, next) != nil {
		t.Error("claimed twice")
	}
	if again := e.ClaimDelivery(next, next.Add(time.Minute)); again == nil || again.Attempts != 2 ||
		again.ID != claimed.ID {
		t.Errorf("the next attempt: %+v", again)
	}
	if message().ClaimDelivery(lease, next) != nil {
		t.Error("claimed from an empty outbox")
	}
}

func TestMarkDelivered(t *testing.T) {
	e := message(ledger.MessageWaiting, ledger.DeliveredToNetwork)
	now := start.Add(time.Second)
	if e.MarkDelivered(id(e, ledger.DeliveredToNetwork), now) {
		t.Error("the second was delivered before the first")
	}
	if !e.MarkDelivered(id(e, ledger.MessageWaiting), now) || !e.WakesRelay() {
		t.Error("the first was not delivered, or the second does not wake the relay")
	}
	assertSummary(t, "after the first", e,
		"done DeliveredToNetwork 201:done notify:DeliveredToNetwork delivered:MessageWaiting due:1m1s")
	if e.MarkDelivered(id(e, ledger.MessageWaiting), now) {
		t.Error("the first was delivered twice")
	}
	want := ledger.Notification{
		ID: id(e, ledger.MessageWaiting), Status: ledger.MessageWaiting, At: start, Attempts: 1, DeliveredAt: now,
	}
	if diff := cmp.Diff(want, e.Delivered[0]); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func TestDeliveredIsBounded(t *testing.T) {
	e := message(ledger.MessageWaiting)
	for range 2 * ledger.MaxDelivered {
		e.Outbox = []ledger.Notification{{ID: "n"}}
		e.MarkDelivered("n", start)
	}
	if len(e.Delivered) != ledger.MaxDelivered {
		t.Errorf("%d remembered, want %d", len(e.Delivered), ledger.MaxDelivered)
	}
}

func TestPostpone(t *testing.T) {
	e := message(ledger.MessageWaiting)
	head, due := id(e, ledger.MessageWaiting), start.Add(ledger.FastLease)
	next := due.Add(5 * time.Minute)
	if e.Postpone(head, due.Add(-time.Millisecond), next) || e.Postpone("another", due, next) {
		t.Error("postponed one that is not due, or not the head")
	}
	if !e.Postpone(head, due, next) || e.OutboxHead().Attempts != 0 || !e.DueAt.Equal(next) {
		t.Errorf("%d attempts, %s", e.OutboxHead().Attempts, summary(e))
	}
	e.Park()
	if e.Postpone(head, next.Add(time.Hour), next.Add(2*time.Hour)) {
		t.Error("postponed a parked one")
	}
}

func TestRecordFailedAttempt(t *testing.T) {
	next := start.Add(time.Hour)
	e := message(ledger.MessageWaiting)
	head := id(e, ledger.MessageWaiting)
	if !e.RecordFailedAttempt(head, failedAttempt(1, 503, strings.Repeat("y", 500)), next) {
		t.Fatal("the relay's own failure was not recorded")
	}
	if n := e.OutboxHead(); n.Attempts != 1 || n.LastStatus != 503 || len(n.LastReason) > 255 {
		t.Errorf("%d attempts, status %d, %d bytes of a reason", n.Attempts, n.LastStatus, len(n.LastReason))
	}
	if !e.DueAt.Equal(next) || e.WakesRelay() {
		t.Errorf("due %s, wakes the relay: %v", e.DueAt, e.WakesRelay())
	}
	e.ClaimDelivery(next, next.Add(time.Minute))
	if e.RecordFailedAttempt(head, failedAttempt(1, 500, "late"), start) {
		t.Error("an earlier attempt's failure was recorded while a later one is in flight")
	}
	if !e.RecordFailedAttempt(head, failedAttempt(2, 0, "timeout"), next.Add(time.Hour)) ||
		e.OutboxHead().Attempts != 2 {
		t.Errorf("the second failure was not recorded: %d attempts", e.OutboxHead().Attempts)
	}
	first, second := failedAttempt(1, 503, strings.Repeat("y", 200)), failedAttempt(2, 0, "timeout")
	first.Status, second.Status = ledger.MessageWaiting, ledger.MessageWaiting
	if diff := cmp.Diff([]ledger.FailedAttempt{first, second}, e.FailedAttempts); diff != "" {
		t.Errorf("remembered attempts (-want +got):\n%s", diff)
	}
	for i := range 2 * ledger.MaxAttempts {
		e.RecordFailedAttempt(head, failedAttempt(3+i, 0, ""), next)
	}
	if len(e.FailedAttempts) != ledger.MaxAttempts || e.FailedAttempts[0].Number != 3+ledger.MaxAttempts {
		t.Errorf("%d remembered, from number %d", len(e.FailedAttempts), e.FailedAttempts[0].Number)
	}
	if e.RecordFailedAttempt("another", failedAttempt(3, 500, ""), next) {
		t.Error("another notification's failure was recorded")
	}
}

func TestDeadLetter(t *testing.T) {
	e := message(ledger.MessageWaiting, ledger.DeliveredToNetwork)
	head := id(e, ledger.MessageWaiting)
	if e.DeadLetter(head, "") || !e.DeadLetter(head, "attempts") || e.DeadLetter(head, "again") {
		t.Error("a dead letter needs a reason, once")
	}
	if e.OutboxHead().DeadReason != "attempts" || !e.DueAt.IsZero() || e.WakesRelay() {
		t.Errorf("reason %q, %s", e.OutboxHead().DeadReason, summary(e))
	}
	if e.ClaimDelivery(start.Add(time.Hour), start) != nil ||
		e.RecordFailedAttempt(head, failedAttempt(9, 500, ""), start) {
		t.Error("a dead letter was attempted")
	}
	if e.Park() || e.Unpark(start) {
		t.Error("a dead letter was parked")
	}
	if !e.MarkDelivered(head, start) || e.Delivered[0].DeadReason != "" || !e.WakesRelay() {
		t.Error("a late 2xx does not count")
	}
}

func TestParkStopsTheClock(t *testing.T) {
	e := message(ledger.MessageWaiting)
	if !e.Park() || e.Park() || e.WakesRelay() || !e.DueAt.IsZero() ||
		e.ClaimDelivery(start.Add(time.Hour), start) != nil {
		t.Errorf("parked: %s", summary(e))
	}
	now := start.Add(48 * time.Hour)
	if !e.Unpark(now) || e.Unpark(now) || !e.WakesRelay() || !e.DueAt.Equal(now.Add(ledger.FastLease)) {
		t.Errorf("unparked at attempt 0: %s", summary(e))
	}
	e.RecordFailedAttempt(e.OutboxHead().ID, failedAttempt(1, 410, "gone"), now)
	e.Park()
	if !e.Unpark(now) || e.WakesRelay() || !e.DueAt.Equal(now) || e.OutboxHead().Attempts != 1 {
		t.Errorf("unparked at attempt 1: %s", summary(e))
	}
	if empty := message(); empty.Park() || empty.Unpark(now) {
		t.Error("an empty outbox was parked")
	}
}

func TestRecordUserSMS(t *testing.T) {
	due := func() *ledger.Entry {
		e := pendingPayment()
		e.ApplyFinalStatus(final(ledger.Successful), start)
		e.MarkDelivered(e.OutboxHead().ID, start)
		return e
	}
	if e := due(); !e.DueAt.Equal(start.Add(ledger.FastLease)) {
		t.Errorf("due %s", e.DueAt)
	}
	for _, end := range []ledger.UserSMSState{ledger.UserSMSSent, ledger.UserSMSFailed, ledger.UserSMSUnknown} {
		e := due()
		if !e.RecordUserSMS(end, time.Time{}) || e.UserSMS != end || !e.DueAt.IsZero() || e.UserSMSAttempts != 0 {
			t.Errorf("%s: %s", end, summary(e))
		}
		if e.RecordUserSMS(ledger.UserSMSDue, start) {
			t.Errorf("%s: due again", end)
		}
	}
	e, at := due(), start.Add(time.Hour)
	if !e.RecordUserSMS(ledger.UserSMSDue, at) || !e.DueAt.Equal(at) || e.UserSMSAttempts != 0 {
		t.Errorf("due again: %s", summary(e))
	}
	if e.ClaimUserSMS(at.Add(-time.Millisecond), at.Add(time.Minute)) {
		t.Error("claimed before it was due")
	}
	if !e.ClaimUserSMS(at, at.Add(time.Minute)) || e.UserSMSAttempts != 1 || !e.DueAt.Equal(at.Add(time.Minute)) {
		t.Errorf("claimed: %d attempts, %s", e.UserSMSAttempts, summary(e))
	}
	if e.ClaimUserSMS(at, at.Add(time.Minute)) {
		t.Error("claimed twice")
	}
}

// decision "notification-order": one image wakes the relay for a notification. A write in between, such as the next
// status or a conflict, does not wake it again: the first status could be posted after the second.
func TestTheRelayIsWokenOnce(t *testing.T) {
	b, ctx := newBench(), context.Background()
	request := b.request(ledger.SMS, "f")
	request.NotifyURL = "https://shop.example.com/"
	reservation, _, err := b.Reserve(ctx, request, anHour)
	if err != nil {
		t.Fatal(err)
	}
	change := func(apply func(*ledger.Entry)) *ledger.Entry {
		t.Helper()
		e, err := b.Change(ctx, reservation.Key, func(e *ledger.Entry) error { apply(e); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := change(receipt(ledger.DeliveredToNetwork)); !e.WakesRelay() {
		t.Error("the first status does not wake the relay")
	}
	if e := change(receipt(ledger.DeliveredToTerminal)); e.WakesRelay() || len(e.Outbox) != 2 {
		t.Errorf("the second status wakes the relay for the first: %s", summary(e))
	}
	e := change(func(e *ledger.Entry) { e.MarkDelivered(e.OutboxHead().ID, b.Now()) })
	if !e.WakesRelay() || e.OutboxHead().Status != ledger.DeliveredToTerminal {
		t.Errorf("the second status does not wake the relay: %s", summary(e))
	}
}
