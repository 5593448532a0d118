package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// start is the time of the first reservation in these tests.
var start = time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)

// reserved is a new reservation of a kind by "owner", with a lease of half a minute.
func reserved(kind ledger.Kind) *ledger.Entry {
	e := &ledger.Entry{
		Key: ledger.Key{Kind: kind, ID: "Shop_1"}, Merchant: ledger.Merchant{ID: "m"},
		Request: ledger.Request{Fingerprint: "f", MSISDN: "0700000000"},
		Route:   ledger.Route{Operator: "sandbox", Account: "a1", UpstreamKey: "Shop.1"},
		Amount:  ledger.Amount{Minor: 500, Currency: "XOF"},
		Call:    ledger.Call{LeaseUntil: start.Add(30 * time.Second)},
		Outbox:  ledger.Outbox{URL: "https://shop.example/notify"},
	}
	e.BeginReservation("owner", start)
	return e
}

// pendingPayment is an accepted payment with its first lookup a minute after start.
func pendingPayment() *ledger.Entry {
	return entryAfter(ledger.Payment, outcome(done))
}

// message is an SMS that was sent, with the notifications of the statuses in its outbox.
func message(statuses ...ledger.Status) *ledger.Entry {
	e := reserved(ledger.SMS)
	e.ApplyOutcome("owner", done, start)
	for _, s := range statuses {
		e.ApplyReceipt(s, start)
	}
	return e
}

// The outcomes of operator calls.
var (
	done = ledger.CallOutcome{
		State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("done"), OperatorReference: "op",
		FirstPollAt: start.Add(time.Minute),
	}
	refused = ledger.CallOutcome{State: ledger.Refused, ResponseStatus: 403, ResponseBody: []byte("refused")}
	unknown = ledger.CallOutcome{State: ledger.Unknown}
	pending = ledger.CallOutcome{
		State: ledger.Unknown, ResponseStatus: 201, ResponseBody: []byte("pending"),
		FirstPollAt: start.Add(2 * time.Minute),
	}
	released = ledger.CallOutcome{State: ledger.Released}
	unbound  = ledger.CallOutcome{State: ledger.Released, UnbindBody: true}
)

// with returns an outcome with another status.
func with(outcome ledger.CallOutcome, status ledger.Status) ledger.CallOutcome {
	outcome.Status = status
	return outcome
}

// The steps before a case.

func outcome(o ledger.CallOutcome) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.ApplyOutcome("owner", o, start) }
}

func finalStatus(s ledger.Status) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.ApplyFinalStatus(ledger.StatusReport{Status: s, Source: "callback"}, start) }
}

func claimed(s ledger.Status) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.AddClaim(claimOf(s), start) }
}

// steps makes steps one after the other; nil is none.
func steps(list ...func(*ledger.Entry)) func(*ledger.Entry) {
	return func(e *ledger.Entry) {
		for _, step := range list {
			if step != nil {
				step(e)
			}
		}
	}
}

// entryAfter is a new reservation after some steps.
func entryAfter(kind ledger.Kind, list ...func(*ledger.Entry)) *ledger.Entry {
	e := reserved(kind)
	steps(list...)(e)
	return e
}

func receipt(s ledger.Status) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.ApplyReceipt(s, start) }
}

func claimOf(s ledger.Status) ledger.Claim {
	return ledger.Claim{Status: s, OperatorReference: "op-claim", MSISDN: "0722222222",
		CheckAt: start.Add(5 * time.Second)}
}

// claimOfAttempt is a claim of an attempt at the head of an outbox, made when the attempts before it had outcomes.
func claimOfAttempt(e *ledger.Entry, number int) ledger.DeliveryClaim {
	return ledger.DeliveryClaim{
		Notification:       ledger.Notification{ID: e.Outbox.Head().ID, Attempts: number - 1},
		UnrecordedAttempts: e.Outbox.UnrecordedAttempts,
	}
}

// makeAttempts sets the number of attempts at the head that have an outcome.
func makeAttempts(e *ledger.Entry, number int) { e.Outbox.Head().Attempts = number }

func failedAttempt(number, status int, reason string) ledger.FailedAttempt {
	return ledger.FailedAttempt{Number: number, At: start, HTTPStatus: status, Reason: reason}
}

// dueAt is when an entry is due, as the book stores it.
func dueAt(e *ledger.Entry) time.Time {
	e.Reschedule()
	return e.DueAt
}

// summary describes the fields that transitions change, with DueAt relative to start.
func summary(e *ledger.Entry) string {
	words := []string{string(e.State)}
	add := func(set bool, format string, values ...any) {
		if set {
			words = append(words, fmt.Sprintf(format, values...))
		}
	}
	add(e.Status != "", "%s", e.Status)
	add(e.Response.Status != 0, "%d:%s", e.Response.Status, e.Response.Body)
	add(e.EverUnknown, "ever-unknown")
	add(e.Request.Fingerprint == "", "unbound")
	add(e.Claim.Status != "", "claim:%s", e.Claim.Status)
	for _, c := range e.Conflicts {
		add(true, "conflict:%s/%s", c.Status, c.Reason)
	}
	for _, n := range e.Outbox.Waiting {
		add(n.DeadReason == "", "notify:%s", n.Status)
		add(n.DeadReason != "", "dead:%s", n.Status)
	}
	for _, n := range e.Outbox.Delivered {
		add(true, "delivered:%s", n.Status)
	}
	add(e.UserSMS.State != "", "user-sms:%s", e.UserSMS.State)
	add(!dueAt(e).IsZero(), "due:%s", dueAt(e).Sub(start))
	return strings.Join(words, " ")
}

// assertSummary compares an entry with its expected summary. A final status has its time.
func assertSummary(t *testing.T, name string, e *ledger.Entry, want string) {
	t.Helper()
	if e.StatusFinal() == e.FinalAt.IsZero() {
		t.Errorf("%s: the status is %s, FinalAt %s", name, e.Status, e.FinalAt)
	}
	if got := summary(e); got != want {
		t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
	}
}

// claimDelivery claims an attempt at the head of the outbox. claim is nil if there is nothing to post.
func claimDelivery(e *ledger.Entry, now time.Time) (claim *ledger.DeliveryClaim, changed bool) {
	if changed = e.Outbox.ClaimDelivery(now); changed && e.Outbox.UnrecordedAttempts > 0 {
		claim = e.Outbox.HeadClaim()
	}
	return claim, changed
}

// claimUserSMS claims an attempt at the payer's SMS. claim is nil if there is nothing to send.
func claimUserSMS(e *ledger.Entry, now time.Time) (claim *ledger.UserSMSClaim, changed bool) {
	if changed = e.ClaimUserSMS(now); changed && !e.UserSMS.GivenUp() {
		claimed := e.UserSMSClaim()
		claim = &claimed
	}
	return claim, changed
}
