package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ledger"
)

// called returns an outcome with the description of its call.
func called(o ledger.CallOutcome, result ledger.CallResult) ledger.CallOutcome {
	o.Call = result
	return o
}

// The results of calls.
var (
	callDone        = ledger.CallResult{Outcome: ledger.CallSucceeded, HTTPStatus: 201}
	callTimedOut    = ledger.CallResult{Outcome: ledger.CallUnknown, Reason: "timeout"}
	callUnavailable = ledger.CallResult{
		Outcome: ledger.CallNotApplied, Reason: "unavailable", HTTPStatus: 503, Response: 503,
	}
)

func TestCallAttempts(t *testing.T) {
	second := start.Add(time.Minute)
	takenOver := func(e *ledger.Entry) {
		incoming := reserved(e.Kind)
		incoming.LeaseUntil = second.Add(time.Minute)
		*e = *e.TakeOver(incoming, "successor", second)
	}
	apply := func(owner string, o ledger.CallOutcome, at time.Time) func(*ledger.Entry) {
		return func(e *ledger.Entry) { e.ApplyOutcome(owner, o, at) }
	}
	soon, later := start.Add(1500*time.Millisecond), second.Add(2*time.Second)
	timedOut := ledger.CallAttempt{At: start, Millis: 1500, Outcome: "unknown", Reason: "timeout", Response: 504}
	success := ledger.CallAttempt{At: second, Millis: 2000, Outcome: "succeeded", HTTPStatus: 201, Response: 201}
	lapsed := ledger.CallAttempt{At: start, Outcome: "lapsed"}
	markLapsed := func(e *ledger.Entry) { e.MarkLapsed(start.Add(time.Hour), start.Add(time.Hour)) }
	for name, c := range map[string]struct {
		before func(*ledger.Entry)
		want   []ledger.CallAttempt
	}{
		"a success at once keeps none": {apply("owner", called(done, callDone), soon), nil},
		"unknown, then a success": {steps(apply("owner", called(unknown, callTimedOut), soon), takenOver,
			apply("successor", called(done, callDone), later)), []ledger.CallAttempt{timedOut, success}},
		"released": {apply("owner", called(released, callUnavailable), soon), []ledger.CallAttempt{
			{At: start, Millis: 1500, Outcome: "not-applied", Reason: "unavailable", HTTPStatus: 503, Response: 503},
		}},
		"not applied after unknown: the response is 504": {steps(apply("owner", called(unknown, callTimedOut), soon),
			takenOver, apply("successor", called(unknown, callUnavailable), later)), []ledger.CallAttempt{timedOut, {
			At: second, Millis: 2000, Outcome: "not-applied", Reason: "unavailable", HTTPStatus: 503, Response: 504,
		}}},
		"a lapse by the sweep":  {markLapsed, []ledger.CallAttempt{lapsed}},
		"a lapse by a takeover": {takenOver, []ledger.CallAttempt{lapsed}},
		"a lapse by both":       {steps(markLapsed, takenOver), []ledger.CallAttempt{lapsed}},
		"an outcome after a lapse": {steps(markLapsed, apply("owner", called(unknown, callTimedOut), soon)),
			[]ledger.CallAttempt{timedOut}},
		"a former owner's success": {steps(takenOver, apply("owner", called(done, callDone), later)),
			[]ledger.CallAttempt{lapsed, {At: later, Outcome: "succeeded", HTTPStatus: 201, Response: 201}}},
		"a former owner's failure": {
			steps(takenOver, apply("owner", called(unknown, callTimedOut), later)),
			[]ledger.CallAttempt{lapsed}},
		"a person's decision is not a call": {steps(outcome(unknown), outcome(refused)), nil},
	} {
		e := entryAfter(ledger.Charge, c.before)
		if diff := cmp.Diff(c.want, e.Call.Attempts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The first attempt, which was the first true send, is never dropped.
func TestCallAttemptsAreBounded(t *testing.T) {
	e := reserved(ledger.Charge)
	for i := range 3 * ledger.MaxCallAttempts {
		at := start.Add(time.Duration(i) * time.Minute)
		if i > 0 {
			incoming := reserved(ledger.Charge)
			incoming.LeaseUntil = at.Add(time.Minute)
			e = e.TakeOver(incoming, "owner", at)
		}
		e.ApplyOutcome("owner", called(unknown, callTimedOut), at)
	}
	if n := len(e.Call.Attempts); n != ledger.MaxCallAttempts || !e.Call.Attempts[0].At.Equal(start) ||
		!e.Call.Attempts[n-1].At.Equal(start.Add((3*ledger.MaxCallAttempts-1)*time.Minute)) {
		t.Errorf("%d attempts: %v", n, e.Call.Attempts)
	}
}
