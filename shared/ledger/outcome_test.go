package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ledger"
)

func TestBeginReservation(t *testing.T) {
	for kind, want := range map[ledger.Kind]string{
		ledger.Charge: "reserved due:1m30s", ledger.SMS: "reserved due:1m30s",
		ledger.Payment: "reserved pending due:1m30s",
	} {
		e := reserved(kind)
		assertSummary(t, string(kind), e, want)
		if e.Version != 1 || e.Owner != "owner" || !e.CreatedAt.Equal(start) {
			t.Errorf("%s: version %d, owner %q, created %s", kind, e.Version, e.Owner, e.CreatedAt)
		}
	}
}

// outcomeCase applies one outcome, a second after start.
type outcomeCase struct {
	name    string
	kind    ledger.Kind
	before  func(*ledger.Entry)
	outcome ledger.CallOutcome
	changed bool
	want    string // summary
}

func runOutcomes(t *testing.T, cases []outcomeCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := entryAfter(c.kind, c.before)
			before := e.Clone()
			if changed := e.ApplyOutcome("owner", c.outcome, start.Add(time.Second)); changed != c.changed {
				t.Errorf("changed = %v, want %v", changed, c.changed)
			}
			if diff := cmp.Diff(before, e); !c.changed && diff != "" {
				t.Errorf("changed all the same (-before +after):\n%s", diff)
			}
			assertSummary(t, "after "+string(c.outcome.State), e, c.want)
		})
	}
}

func TestOutcomeByTheOwner(t *testing.T) {
	charge, payment, sms := ledger.Charge, ledger.Payment, ledger.SMS
	everUnknown := func(e *ledger.Entry) { e.EverUnknown = true }
	lapsed := func(e *ledger.Entry) { e.MarkLapsed(e.LeaseUntil.Add(ledger.LapseMargin), e.LeaseUntil) }
	undated, bare := done, ledger.CallOutcome{State: ledger.Done}
	undated.FirstPollAt = time.Time{}
	runOutcomes(t, []outcomeCase{
		{"charge done", charge, nil, done, true, "done 201:done"},
		{"charge refused", charge, nil, refused, true, "refused 403:refused"},
		{"charge unknown", charge, nil, unknown, true, "unknown ever-unknown due:15m1s"},
		{"charge released", charge, nil, released, true, "released"},
		{"charge unbound", charge, nil, unbound, true, "released unbound"},
		{"an unbound release proves that nothing was ever sent", charge, everUnknown, unbound, true,
			"released unbound"},
		{"a release after an unknown stays unknown", charge, everUnknown, released, true,
			"unknown ever-unknown due:15m1s"},
		{"a success after an unknown applies", charge, everUnknown, done, true, "done 201:done ever-unknown"},
		{"a refusal after an unknown applies", charge, everUnknown, refused, true, "refused 403:refused ever-unknown"},
		{"done after the sweep marked it lapsed", charge, lapsed, done, true, "done 201:done ever-unknown"},
		{"refused after the sweep marked it lapsed", charge, lapsed, refused, true, "refused 403:refused ever-unknown"},
		{"released after the sweep marked it lapsed", charge, lapsed, released, true, "unknown ever-unknown due:15m1s"},

		{"a success without a response, again", charge, outcome(bare), bare, false, "done"},
		{"a response after a success without one", charge, outcome(bare), done, true, "done 201:done"},

		{"payment done is pending", payment, nil, done, true, "done pending 201:done due:1m0s"},
		{"payment done without a time is polled", payment, nil, undated, true, "done pending 201:done due:1m1s"},
		{"payment refused is failed, not notified", payment, nil, refused, true, "refused failed 403:refused"},
		{"payment unknown on a terminal keeps its response", payment, nil, pending, true,
			"unknown pending 201:pending ever-unknown due:2m0s"},
		{"payment unknown on the web is looked up", payment, nil, unknown, true,
			"unknown pending ever-unknown due:1m1s"},
		{"payment released", payment, nil, released, true, "released pending"},

		{"sms done", sms, nil, with(done, ledger.MessageWaiting), true, "done MessageWaiting 201:done"},
		{"sms refused", sms, nil, with(refused, ledger.DeliveryImpossible), true,
			"refused DeliveryImpossible 403:refused"},
		{"sms unknown", sms, nil, unknown, true, "unknown ever-unknown due:15m1s"},
	})
}

// TestOutcomeAfterAReport: the operator's callback or receipt came before its response.
func TestOutcomeAfterAReport(t *testing.T) {
	payment, sms := ledger.Payment, ledger.SMS
	successful, failed := ledger.Successful, ledger.Failed
	received := receipt(ledger.DeliveredToTerminal)
	runOutcomes(t, []outcomeCase{
		{"done adds the response", payment, finalStatus(successful), done, true,
			"done successful 201:done notify:successful due:1m0s"},
		{"unknown with a response is done", payment, finalStatus(failed), pending, true,
			"done failed 201:pending ever-unknown notify:failed due:1m0s"},
		{"unknown without a response stays unknown", payment, finalStatus(successful), unknown, true,
			"unknown successful ever-unknown notify:successful due:1m0s"},
		{"a release does not apply", payment, finalStatus(successful), released, true,
			"unknown successful ever-unknown notify:successful due:1m0s"},
		{"a refusal agrees with failed", payment, finalStatus(failed), refused, true,
			"refused failed 403:refused notify:failed due:1m0s"},
		{"a refusal against a success is a conflict", payment, finalStatus(successful), refused, true,
			"unknown successful ever-unknown conflict:failed/final notify:successful due:1m0s"},
		{"a refusal against a claimed success is a conflict", payment, claimed(successful), refused, true,
			"unknown pending ever-unknown claim:successful conflict:failed/final due:5s"},
		{"a refusal agrees with a claimed failure", payment, claimed(failed), refused, true,
			"refused failed 403:refused"},
		{"a release against any claim does not apply", payment, claimed(failed), released, true,
			"unknown pending ever-unknown claim:failed due:5s"},
		{"done keeps the claim's lookup", payment, claimed(successful), done, true,
			"done pending 201:done claim:successful due:5s"},
		{"an sms done keeps the receipt's status", sms, received, with(done, ledger.MessageWaiting), true,
			"done DeliveredToTerminal 201:done notify:DeliveredToTerminal due:1m0s"},
		{"an sms done keeps another final receipt", sms, receipt(ledger.DeliveryUncertain),
			with(done, ledger.DeliveredToTerminal), true,
			"done DeliveryUncertain 201:done notify:DeliveryUncertain due:1m0s"},
		{"an sms refused against a receipt is a conflict", sms, received, with(refused, ledger.DeliveryImpossible),
			true, "done DeliveredToTerminal ever-unknown conflict:failed/final notify:DeliveredToTerminal due:1m0s"},
		{"an sms released against a receipt was sent", sms, received, released, true,
			"done DeliveredToTerminal ever-unknown notify:DeliveredToTerminal due:1m0s"},
	})
}

func takeOver(e *ledger.Entry) {
	*e = *e.TakeOver(reserved(e.Kind), "successor", start.Add(time.Minute))
}

// TestOutcomeByAFormerOwner: its lease lapsed and another attempt took the entry over. Its success is never lost; every
// other outcome is dropped.
func TestOutcomeByAFormerOwner(t *testing.T) {
	after := func(o ledger.CallOutcome) func(*ledger.Entry) {
		return func(e *ledger.Entry) {
			takeOver(e)
			e.ApplyOutcome("successor", o, start.Add(time.Minute))
		}
	}
	successors := done
	successors.ResponseBody = []byte("successor's")
	charge := ledger.Charge
	runOutcomes(t, []outcomeCase{
		{"success while the successor is at work", charge, takeOver, done, true, "done 201:done ever-unknown"},
		{"refusal while the successor is at work", charge, takeOver, refused, false,
			"reserved ever-unknown due:1m30s"},
		{"unknown while the successor is at work", charge, takeOver, unknown, false,
			"reserved ever-unknown due:1m30s"},
		{"release while the successor is at work", charge, takeOver, released, false,
			"reserved ever-unknown due:1m30s"},
		{"unbind while the successor is at work", charge, takeOver, unbound, false,
			"reserved ever-unknown due:1m30s"},
		{"success after the successor's success", charge, after(successors), done, false,
			"done 201:successor's ever-unknown"},
		{"success after the successor's unknown", charge, after(unknown), done, true, "done 201:done ever-unknown"},
		{"refusal after the successor's unknown", charge, after(unknown), refused, false,
			"unknown ever-unknown due:16m0s"},
		{"release after the successor's unknown", charge, after(unknown), released, false,
			"unknown ever-unknown due:16m0s"},
		{"success after the successor's refusal is a conflict", charge, after(refused), done, true,
			"refused 403:refused ever-unknown conflict:successful/final"},
		{"success after the successor's unbound release", charge, after(unbound), done, true, "done 201:done unbound"},
		{"success keeps the response of an unknown", ledger.Payment, after(pending), done, true,
			"done pending 201:pending ever-unknown due:1m0s"},
	})
	e := entryAfter(ledger.Payment, after(pending))
	if e.ApplyOutcome("owner", done, start); e.OperatorReference != "op" {
		t.Errorf("the late success's operator reference is lost: %q", e.OperatorReference)
	}
}

// decision "notifications": the notification of a final status takes the operator's id and the notif_token, so a
// response after it changes neither. The id is kept beside it.
func TestReferenceAfterFinalStatus(t *testing.T) {
	withID := func(e *ledger.Entry) {
		e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Cancelled, OperatorReference: "op-f"}, start)
	}
	paged := done
	paged.NotifToken = "nt"
	for name, c := range map[string]struct {
		kind                   ledger.Kind
		before                 func(*ledger.Entry)
		reference, late, token string
	}{
		"a pending payment":                    {ledger.Payment, nil, "op", "", "nt"},
		"a claimed success":                    {ledger.Payment, claimed(ledger.Successful), "op", "", "nt"},
		"a payment that ended without an id":   {ledger.Payment, finalStatus(ledger.Cancelled), "", "op", ""},
		"a payment that ended with another id": {ledger.Payment, withID, "op-f", "", ""},
		"an SMS, which must be bound":          {ledger.SMS, receipt(ledger.DeliveredToTerminal), "op", "", "nt"},
		"a charge, manually resolved": {ledger.Charge, func(e *ledger.Entry) { e.State = ledger.Done },
			"op", "", "nt"},
	} {
		e := entryAfter(c.kind, c.before, outcome(paged), outcome(paged))
		if e.OperatorReference != c.reference || e.LateReference != c.late || e.Outbox.NotifToken != c.token {
			t.Errorf("%s: reference %q, late %q, token %q; want %q, %q, %q", name, e.OperatorReference,
				e.LateReference, e.Outbox.NotifToken, c.reference, c.late, c.token)
		}
	}
}

// decision "released": a released attempt may have been sent, so no later attempt unbinds its body.
func TestUnbindAfterARelease(t *testing.T) {
	e := entryAfter(ledger.Payment, outcome(released), takeOver)
	if !e.ApplyOutcome("successor", unbound, start.Add(time.Minute)) || e.State != ledger.Released ||
		e.Request.Fingerprint != "f" {
		t.Errorf("%s, fingerprint %q", summary(e), e.Request.Fingerprint)
	}
}

// decision "sms-duplicate": the operator proves that nothing was sent only if every attempt has its response.
func TestNothingSent(t *testing.T) {
	nothing := unknown
	nothing.NothingSent = true
	again := func(o ledger.CallOutcome) func(*ledger.Entry) {
		return func(e *ledger.Entry) {
			takeOver(e)
			e.ApplyOutcome("successor", o, start.Add(time.Minute))
		}
	}
	lapse := func(e *ledger.Entry) { e.MarkLapsed(e.LeaseUntil.Add(ledger.LapseMargin), start) }
	for name, c := range map[string]struct {
		before func(*ledger.Entry)
		want   bool
	}{
		"nothing":                   {outcome(nothing), true},
		"perhaps":                   {outcome(unknown), false},
		"perhaps, then nothing":     {steps(outcome(unknown), again(nothing)), false},
		"nothing twice":             {steps(outcome(nothing), again(nothing)), true},
		"nothing, then perhaps":     {steps(outcome(nothing), again(unknown)), false},
		"nothing, then in flight":   {steps(outcome(nothing), takeOver), true},
		"nothing, then a lapse":     {steps(outcome(nothing), takeOver, lapse), false},
		"a lapse, taken over":       {steps(outcome(nothing), takeOver, again(nothing)), false},
		"nothing, then it is freed": {steps(outcome(nothing), again(unbound)), false},
	} {
		e := entryAfter(ledger.SMS, c.before)
		if e.NothingSent != c.want {
			t.Errorf("%s: %v, want %v: %s", name, e.NothingSent, c.want, summary(e))
		}
	}
}

func TestASuccessorFindsItsOutcomeStored(t *testing.T) {
	e := entryAfter(ledger.Charge, takeOver)
	e.ApplyOutcome("owner", done, start.Add(2*time.Minute))
	for _, o := range []ledger.CallOutcome{done, refused, unknown, released, unbound} {
		if e.ApplyOutcome("successor", o, start.Add(3*time.Minute)) {
			t.Errorf("%s changed it: %s", o.State, summary(e))
		}
	}
	e = reserved(ledger.Charge)
	takeOver(e)
	e.ApplyOutcome("successor", refused, start.Add(2*time.Minute))
	if !e.ApplyOutcome("owner", done, start) || e.ApplyOutcome("owner", done, start) {
		t.Error("the conflict is not kept exactly once")
	}
}

// decision "merchant-limits": the amount is refunded only if the entry certainly moved no money.
func TestNotApplied(t *testing.T) {
	for name, c := range map[string]struct {
		kind   ledger.Kind
		before func(*ledger.Entry)
		want   bool
	}{
		"in flight":            {ledger.Charge, nil, false},
		"done":                 {ledger.Charge, outcome(done), false},
		"unknown":              {ledger.Charge, outcome(unknown), false},
		"refused":              {ledger.Charge, outcome(refused), true},
		"released":             {ledger.Charge, outcome(released), true},
		"a pending payment":    {ledger.Payment, outcome(done), false},
		"a successful payment": {ledger.Payment, finalStatus(ledger.Successful), false},
		"a failed payment":     {ledger.Payment, finalStatus(ledger.Failed), true},
		"an expired payment":   {ledger.Payment, finalStatus(ledger.Expired), true},
		"an undelivered SMS":   {ledger.SMS, receipt(ledger.DeliveryImpossible), false},
	} {
		e := entryAfter(c.kind, c.before)
		if got := e.NotApplied(); got != c.want {
			t.Errorf("%s: %v, want %v: %s", name, got, c.want, summary(e))
		}
	}
}

func TestOutcomeAgainChangesNothing(t *testing.T) {
	for _, first := range []ledger.CallOutcome{done, refused, released} {
		e := entryAfter(ledger.Charge, outcome(first))
		for _, second := range []ledger.CallOutcome{refused, unknown, released, unbound} {
			if e.ApplyOutcome("owner", second, start) {
				t.Errorf("%s then %s changed it", first.State, second.State)
			}
		}
	}
}

func TestTakeOver(t *testing.T) {
	now, end := start.Add(time.Hour), start.Add(2*time.Hour)
	incoming := reserved(ledger.Charge)
	incoming.Route.Operator, incoming.Route.Account, incoming.Route.UpstreamKey, incoming.LeaseUntil = "other", "a2",
		"Shop.2", end
	incoming.Amount.Minor, incoming.Request.Fingerprint, incoming.Request.ReferenceCode = 700, "g", "R2"
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		want   func(*ledger.Entry) // changes the entry before into the expected one
	}{
		{"a lapsed reservation", func(*ledger.Entry) {}, func(e *ledger.Entry) {
			e.EverUnknown, e.Call.Attempts = true, []ledger.CallAttempt{{At: start, Outcome: ledger.CallLapsed}}
		}},
		{"an unknown", func(e *ledger.Entry) { e.State = ledger.Unknown },
			func(e *ledger.Entry) { e.EverUnknown = true }},
		{"a release", func(e *ledger.Entry) { e.State = ledger.Released }, func(e *ledger.Entry) {
			e.SentAt, e.ReleasedBefore = now, true
		}},
		{"an unbound release", func(e *ledger.Entry) { e.State, e.Request.Fingerprint = ledger.Released, "" },
			func(e *ledger.Entry) {
				*e = *incoming.Clone()
				e.SentAt, e.Extra = now, "extra"
			}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := reserved(ledger.Charge)
			e.Version, e.Extra, e.Poll.At, e.Poll.Attempts = 7, "extra", start, 3
			c.before(e)
			want := e.Clone()
			c.want(want)
			want.Version, want.Owner, want.State, want.Poll.At, want.Poll.Attempts = 8, "successor", ledger.Reserved,
				time.Time{}, 0
			want.LeaseUntil, want.DueAt, want.ReservedAt, want.UpdatedAt = end, end.Add(ledger.LapseMargin), now, now
			before := e.Clone()
			if diff := cmp.Diff(want, e.TakeOver(incoming, "successor", now)); diff != "" {
				t.Errorf("after the takeover (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, e); diff != "" {
				t.Errorf("it changed the entry that it took over:\n%s", diff)
			}
		})
	}
}

func TestTakeOverNeverShortensTheRetention(t *testing.T) {
	day := func(n int) time.Time { return start.Add(time.Duration(n) * 24 * time.Hour) }
	for _, c := range []struct{ existing, incoming, want time.Time }{
		{day(2), day(1), day(2)}, {day(2), day(3), day(3)}, {time.Time{}, day(3), time.Time{}},
	} {
		e, incoming := reserved(ledger.SMS), reserved(ledger.SMS)
		e.ExpireAt, incoming.ExpireAt = c.existing, c.incoming
		if got := e.TakeOver(incoming, "successor", start).ExpireAt; !got.Equal(c.want) {
			t.Errorf("ExpireAt %s taken over with %s = %s, want %s", c.existing, c.incoming, got, c.want)
		}
	}
}

func TestMarkLapsed(t *testing.T) {
	next := start.Add(time.Hour)
	for kind, want := range map[ledger.Kind]string{
		ledger.Charge: "unknown ever-unknown due:1h0m0s", ledger.SMS: "unknown ever-unknown due:1h0m0s",
		ledger.Payment: "unknown pending ever-unknown due:1h0m0s",
	} {
		e := reserved(kind)
		at := e.LeaseUntil.Add(ledger.LapseMargin)
		if e.MarkLapsed(at.Add(-time.Millisecond), next) {
			t.Errorf("%s: lapsed before the margin after its lease ended", kind)
		}
		if !e.MarkLapsed(at, next) || !e.LookupDue(next) || e.MarkLapsed(next, next) {
			t.Errorf("%s: not lapsed exactly once, or not due for a lookup", kind)
		}
		assertSummary(t, string(kind), e, want)
	}
	e := entryAfter(ledger.Payment, finalStatus(ledger.Successful))
	if !e.MarkLapsed(e.LeaseUntil.Add(ledger.LapseMargin), next) || e.State != ledger.Done || e.LookupDue(next) {
		t.Errorf("after its final status: %s", summary(e))
	}
}

// decision "key-rings": an entry names the keys of all its callback addresses, those of a former attempt too.
func TestTakeOverKeepsCallbackKeys(t *testing.T) {
	for _, state := range []ledger.State{ledger.Unknown, ledger.Reserved, ledger.Released} {
		first := &ledger.Entry{Call: ledger.Call{State: state}, Route: ledger.Route{CallbackKeys: []int{1}}}
		second := first.TakeOver(&ledger.Entry{Route: ledger.Route{CallbackKeys: []int{2}}}, "b", time.Time{})
		second.State = state
		third := second.TakeOver(&ledger.Entry{Route: ledger.Route{CallbackKeys: []int{2}}}, "c", time.Time{})
		if !slices.Equal(third.Route.CallbackKeys, []int{1, 2}) || len(first.Route.CallbackKeys) != 1 {
			t.Errorf("%s: keys %v, want 1 and 2; the first entry has %v", state, third.Route.CallbackKeys,
				first.Route.CallbackKeys)
		}
	}
}
