package ledger_test

import (
	"reflect"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// reserved is a fresh reservation of a kind by "owner", with its lease running for half a minute.
func reserved(kind ledger.Kind) *ledger.Entry {
	e := &ledger.Entry{
		Key: ledger.Key{Kind: kind, ID: "Shop_1"}, MerchantID: "m", Fingerprint: "f", Operator: "sandbox",
		Account: "a1", UpstreamKey: "Shop.1", AmountMinor: 500, Currency: "XOF", LeaseUntil: start.Add(30 * time.Second),
		NotifyURL: "https://shop.example/notify", MSISDN: "0700000000",
	}
	e.BeginReservation("owner", start)
	return e
}

func TestBeginReservation(t *testing.T) {
	for kind, status := range map[ledger.Kind]ledger.Status{ledger.Charge: "", ledger.SMS: "", ledger.Payment: ledger.Pending} {
		e := reserved(kind)
		if e.Version != 1 || e.Owner != "owner" || e.State != ledger.Reserved || e.Status != status || !e.CreatedAt.Equal(start) ||
			!e.DueAt.Equal(e.LeaseUntil) {
			t.Errorf("%s: %+v", kind, e)
		}
	}
}

// outcomeCase is one settlement of one entry.
type outcomeCase struct {
	name    string
	kind    ledger.Kind
	before  func(*ledger.Entry)
	owner   string
	settle  ledger.CallOutcome
	changed bool
	want    func(e *ledger.Entry) bool
}

var (
	done     = ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("done"), OperatorReference: "op", FirstPollAt: start.Add(time.Minute)}
	refused  = ledger.CallOutcome{State: ledger.Refused, ResponseStatus: 403, ResponseBody: []byte("refused")}
	unknown  = ledger.CallOutcome{State: ledger.Unknown}
	pending  = ledger.CallOutcome{State: ledger.Unknown, ResponseStatus: 201, ResponseBody: []byte("pending"), FirstPollAt: start.Add(2 * time.Minute)}
	released = ledger.CallOutcome{State: ledger.Released}
	unbound  = ledger.CallOutcome{State: ledger.Released, UnbindBody: true}
)

func (c outcomeCase) run(t *testing.T) {
	e := reserved(c.kind)
	if c.before != nil {
		c.before(e)
	}
	owner := c.owner
	if owner == "" {
		owner = "owner"
	}
	before := e.Clone()
	if changed := e.ApplyOutcome(owner, c.settle, start.Add(time.Second)); changed != c.changed {
		t.Fatalf("changed = %v", changed)
	}
	if !c.changed && !reflect.DeepEqual(before, e) {
		t.Fatalf("unchanged, but\nwas %+v\nis  %+v", before, e)
	}
	if !c.want(e) {
		t.Fatalf("after: %+v", e)
	}
}

// is gives the check that an entry has a state and an answer.
func is(state ledger.State, answer string) func(*ledger.Entry) bool {
	return func(e *ledger.Entry) bool {
		return e.State == state && string(e.ResponseBody) == answer && (e.ResponseStatus != 0) == (answer != "")
	}
}

// and joins checks.
func and(checks ...func(*ledger.Entry) bool) func(*ledger.Entry) bool {
	return func(e *ledger.Entry) bool {
		for _, check := range checks {
			if !check(e) {
				return false
			}
		}
		return true
	}
}

func dueIn(d time.Duration) func(*ledger.Entry) bool {
	return func(e *ledger.Entry) bool { return e.DueAt.Equal(start.Add(d)) }
}

func never(e *ledger.Entry) bool { return e.DueAt.IsZero() }

func status(s ledger.Status) func(*ledger.Entry) bool {
	return func(e *ledger.Entry) bool { return e.Status == s }
}

func conflicts(n int) func(*ledger.Entry) bool {
	return func(e *ledger.Entry) bool { return len(e.Conflicts) == n }
}

func TestOutcomeByTheOwner(t *testing.T) {
	charge, payment, sms := ledger.Charge, ledger.Payment, ledger.SMS
	everUnknown := func(e *ledger.Entry) { e.EverUnknown = true }
	lapsed := func(e *ledger.Entry) { e.MarkLapsed(e.LeaseUntil, e.LeaseUntil) }
	sticky := func(e *ledger.Entry) bool { return e.EverUnknown }
	certain := func(e *ledger.Entry) bool { return !e.EverUnknown }
	free := func(e *ledger.Entry) bool { return e.Fingerprint == "" }
	bound := func(e *ledger.Entry) bool { return e.Fingerprint == "f" }
	smsRefused := refused
	smsRefused.Status = ledger.DeliveryImpossible
	smsDone := done
	smsDone.Status = ledger.MessageWaiting
	undated := done
	undated.FirstPollAt = time.Time{}
	cases := []outcomeCase{
		{"charge done", charge, nil, "", done, true, and(is(ledger.Done, "done"), never)},
		{"charge refused", charge, nil, "", refused, true, and(is(ledger.Refused, "refused"), never)},
		{"charge unknown", charge, nil, "", unknown, true, and(is(ledger.Unknown, ""), sticky, dueIn(time.Second+ledger.StaleAfter))},
		{"charge released", charge, nil, "", released, true, and(is(ledger.Released, ""), bound, never)},
		{"charge unbound", charge, nil, "", unbound, true, and(is(ledger.Released, ""), free, never)},
		{"an unbound release proves that nothing was ever sent", charge, everUnknown, "", unbound, true, and(is(ledger.Released, ""), free, certain)},
		{"a release after an unknown stays unknown", charge, everUnknown, "", released, true, and(is(ledger.Unknown, ""), bound)},
		{"unbinding after an unknown releases", charge, everUnknown, "", unbound, true, and(is(ledger.Released, ""), free)},
		{"a success after an unknown settles", charge, everUnknown, "", done, true, is(ledger.Done, "done")},
		{"a refusal after an unknown settles", charge, everUnknown, "", refused, true, is(ledger.Refused, "refused")},
		{"done after the sweep marked it lapsed", charge, lapsed, "", done, true, is(ledger.Done, "done")},
		{"refused after the sweep marked it lapsed", charge, lapsed, "", refused, true, is(ledger.Refused, "refused")},
		{"released after the sweep marked it lapsed", charge, lapsed, "", released, true, is(ledger.Unknown, "")},

		{"payment done is pending", payment, nil, "", done, true, and(is(ledger.Done, "done"), status(ledger.Pending), dueIn(time.Minute))},
		{"payment done without a time is polled", payment, nil, "", undated, true, dueIn(time.Second + ledger.FirstPollAfter)},
		{"payment refused is failed, not notified", payment, nil, "", refused, true,
			and(is(ledger.Refused, "refused"), status(ledger.Failed), never, func(e *ledger.Entry) bool { return e.Outbox == nil && !e.FinalAt.IsZero() })},
		{"payment unknown on a terminal keeps its answer", payment, nil, "", pending, true,
			and(is(ledger.Unknown, "pending"), status(ledger.Pending), dueIn(2*time.Minute))},
		{"payment unknown on the web is looked up", payment, nil, "", unknown, true, and(is(ledger.Unknown, ""), dueIn(time.Second+ledger.FirstPollAfter))},
		{"payment released", payment, nil, "", released, true, and(is(ledger.Released, ""), never)},

		{"sms done", sms, nil, "", smsDone, true, and(is(ledger.Done, "done"), status(ledger.MessageWaiting), never)},
		{"sms refused", sms, nil, "", smsRefused, true, and(is(ledger.Refused, "refused"), status(ledger.DeliveryImpossible))},
		{"sms unknown", sms, nil, "", unknown, true, is(ledger.Unknown, "")},
	}
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

// TestOutcomeAfterAReport: the operator's callback or receipt was faster than its answer to us.
func TestOutcomeAfterAReport(t *testing.T) {
	payment, sms := ledger.Payment, ledger.SMS
	resolve := func(s ledger.Status) func(*ledger.Entry) {
		return func(e *ledger.Entry) { e.ApplyFinalStatus(ledger.StatusReport{Status: s, Source: "callback"}, start) }
	}
	claim := func(s ledger.Status) func(*ledger.Entry) {
		return func(e *ledger.Entry) { e.AddClaim(ledger.Claim{Status: s, CheckAt: start.Add(5 * time.Second)}, start) }
	}
	receipt := func(e *ledger.Entry) { e.ApplyReceipt(ledger.DeliveredToTerminal, start) }
	smsDone := done
	smsDone.Status = ledger.MessageWaiting
	smsRefused := refused
	smsRefused.Status = ledger.DeliveryImpossible
	cases := []outcomeCase{
		{"done adds the answer", payment, resolve(ledger.Successful), "", done, true,
			and(is(ledger.Done, "done"), status(ledger.Successful), dueIn(ledger.FastLease))},
		{"unknown with an answer is done", payment, resolve(ledger.Failed), "", pending, true, and(is(ledger.Done, "pending"), status(ledger.Failed))},
		{"unknown without an answer stays unknown", payment, resolve(ledger.Successful), "", unknown, true,
			and(is(ledger.Unknown, ""), status(ledger.Successful), dueIn(ledger.FastLease))},
		{"a release does not stand", payment, resolve(ledger.Successful), "", released, true, and(is(ledger.Unknown, ""), status(ledger.Successful))},
		{"a refusal agrees with failed", payment, resolve(ledger.Failed), "", refused, true, and(is(ledger.Refused, "refused"), status(ledger.Failed), conflicts(0))},
		{"a refusal against a success is a conflict", payment, resolve(ledger.Successful), "", refused, true,
			and(is(ledger.Unknown, ""), status(ledger.Successful), conflicts(1))},
		{"a refusal against a claimed success is a conflict", payment, claim(ledger.Successful), "", refused, true,
			and(is(ledger.Unknown, ""), status(ledger.Pending), conflicts(1), dueIn(5*time.Second))},
		{"a refusal agrees with a claimed failure", payment, claim(ledger.Failed), "", refused, true, and(is(ledger.Refused, "refused"), status(ledger.Failed))},
		{"a release against any claim does not stand", payment, claim(ledger.Failed), "", released, true, is(ledger.Unknown, "")},
		{"done keeps the claim's recheck", payment, claim(ledger.Successful), "", done, true, and(is(ledger.Done, "done"), dueIn(5*time.Second))},
		{"an sms done keeps the receipt's status", sms, receipt, "", smsDone, true, and(is(ledger.Done, "done"), status(ledger.DeliveredToTerminal))},
		{"an sms refused against a receipt is a conflict", sms, receipt, "", smsRefused, true,
			and(is(ledger.Unknown, ""), status(ledger.DeliveredToTerminal), conflicts(1))},
		{"an sms released against a receipt stays unknown", sms, receipt, "", released, true, is(ledger.Unknown, "")},
	}
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

// TestOutcomeByAFormerOwner: its lease lapsed and another attempt took the entry over. Its success is never lost;
// whatever else it saw is its successor's to say.
func TestOutcomeByAFormerOwner(t *testing.T) {
	take := func(e *ledger.Entry) {
		next := e.TakeOver(reserved(e.Kind), "successor", start.Add(time.Minute))
		*e = *next
	}
	after := func(s ledger.CallOutcome) func(*ledger.Entry) {
		return func(e *ledger.Entry) {
			take(e)
			e.ApplyOutcome("successor", s, start.Add(time.Minute))
		}
	}
	other := done
	other.ResponseBody = []byte("successor's")
	charge, payment := ledger.Charge, ledger.Payment
	cases := []outcomeCase{
		{"success while the successor is at work", charge, take, "", done, true, is(ledger.Done, "done")},
		{"refusal while the successor is at work", charge, take, "", refused, false, is(ledger.Reserved, "")},
		{"unknown while the successor is at work", charge, take, "", unknown, false, is(ledger.Reserved, "")},
		{"release while the successor is at work", charge, take, "", released, false, is(ledger.Reserved, "")},
		{"unbind while the successor is at work", charge, take, "", unbound, false, is(ledger.Reserved, "")},
		{"success after the successor's success", charge, after(other), "", done, false, is(ledger.Done, "successor's")},
		{"success after the successor's unknown", charge, after(unknown), "", done, true, is(ledger.Done, "done")},
		{"refusal after the successor's unknown", charge, after(unknown), "", refused, false, is(ledger.Unknown, "")},
		{"release after the successor's unknown", charge, after(unknown), "", released, false, is(ledger.Unknown, "")},
		{"success after the successor's refusal is a conflict", charge, after(refused), "", done, true, and(is(ledger.Refused, "refused"), conflicts(1))},
		{"success after the successor's unbound release", charge, after(unbound), "", done, true, is(ledger.Done, "done")},
		{"success after an unknown that was answered keeps the answer", payment, after(pending), "", done, true,
			and(is(ledger.Done, "pending"), func(e *ledger.Entry) bool { return e.OperatorReference == "op" }, dueIn(time.Minute))},
	}
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

// decision "released": what was released may have been sent, so no later attempt frees its body.
func TestUnbindAfterARelease(t *testing.T) {
	e := reserved(ledger.Payment)
	e.ApplyOutcome("owner", released, start)
	e = e.TakeOver(reserved(ledger.Payment), "successor", start.Add(time.Minute))
	if !e.ApplyOutcome("successor", unbound, start.Add(time.Minute)) || e.State != ledger.Released || e.Fingerprint != "f" {
		t.Errorf("%+v", e)
	}
}

func TestASuccessorFindsItsOutcomeStored(t *testing.T) {
	taken := func() *ledger.Entry {
		return reserved(ledger.Charge).TakeOver(reserved(ledger.Charge), "successor", start.Add(time.Minute))
	}
	e := taken()
	e.ApplyOutcome("owner", done, start.Add(2*time.Minute))
	other := done
	other.ResponseBody = []byte("successor's")
	for _, s := range []ledger.CallOutcome{other, refused, unknown, released, unbound} {
		if e.ApplyOutcome("successor", s, start.Add(3*time.Minute)) || string(e.ResponseBody) != "done" {
			t.Fatalf("%s changed it: %+v", s.State, e)
		}
	}
	e = taken()
	e.ApplyOutcome("successor", refused, start.Add(2*time.Minute))
	if !e.ApplyOutcome("owner", done, start) || e.ApplyOutcome("owner", done, start) {
		t.Error("want the conflict kept the first time alone")
	}
}

func TestOutcomeAgainChangesNothing(t *testing.T) {
	for _, first := range []ledger.CallOutcome{done, refused, released} {
		e := reserved(ledger.Charge)
		e.ApplyOutcome("owner", first, start)
		for _, second := range []ledger.CallOutcome{refused, unknown, released, unbound} {
			if e.ApplyOutcome("owner", second, start) {
				t.Errorf("%s then %s changed it", first.State, second.State)
			}
		}
	}
}

func TestTakeOver(t *testing.T) {
	incoming := reserved(ledger.Charge)
	incoming.Operator, incoming.Account, incoming.UpstreamKey = "other", "a2", "Shop.2"
	incoming.AmountMinor, incoming.Fingerprint, incoming.ReferenceCode = 700, "g", "R2"
	incoming.LeaseUntil = start.Add(2 * time.Hour)
	now := start.Add(time.Hour)
	cases := []struct {
		name        string
		before      func(*ledger.Entry)
		everUnknown bool
		pinned      bool
	}{
		{"a lapsed reservation", func(*ledger.Entry) {}, true, true},
		{"an unknown", func(e *ledger.Entry) { e.State = ledger.Unknown }, true, true},
		{"a release", func(e *ledger.Entry) { e.State = ledger.Released }, false, true},
		{"an unbound release", func(e *ledger.Entry) { e.State, e.Fingerprint = ledger.Released, "" }, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := reserved(ledger.Charge)
			e.Version, e.Extra, e.PollAt, e.PollAttempts = 7, "extra", start, 3
			c.before(e)
			next := e.TakeOver(incoming, "successor", now)
			if next.Version != 8 || next.Owner != "successor" || next.State != ledger.Reserved || next.EverUnknown != c.everUnknown ||
				!next.CreatedAt.Equal(start) || !next.LeaseUntil.Equal(incoming.LeaseUntil) || !next.UpdatedAt.Equal(now) ||
				next.Extra != "extra" || !next.PollAt.IsZero() || next.PollAttempts != 0 || !next.DueAt.Equal(next.LeaseUntil) {
				t.Errorf("next = %+v", next)
			}
			if sentAgain := next.SentAt.Equal(now); sentAgain != (e.State == ledger.Released) {
				t.Errorf("the repeat window counts from %s", next.SentAt)
			}
			if next.ReleasedBefore != (c.pinned && e.State == ledger.Released) {
				t.Errorf("released before: %v", next.ReleasedBefore)
			}
			if pinned := next.Operator == "sandbox" && next.Account == "a1" && next.UpstreamKey == "Shop.1" && next.AmountMinor == 500 && next.Fingerprint == "f"; pinned != c.pinned {
				t.Errorf("pinned = %v: %+v", pinned, next)
			}
			if !c.pinned && (next.ReferenceCode != "R2" || next.AmountMinor != 700 || next.Fingerprint != "g") {
				t.Errorf("not the incoming facts: %+v", next)
			}
			if e.Version != 7 {
				t.Error("it changed the entry it took over")
			}
		})
	}
}

func TestTakeOverNeverShortensTheRetention(t *testing.T) {
	e, incoming := reserved(ledger.SMS), reserved(ledger.SMS)
	e.ExpireAt, incoming.ExpireAt = start.Add(48*time.Hour), start.Add(24*time.Hour)
	if got := e.TakeOver(incoming, "successor", start).ExpireAt; !got.Equal(e.ExpireAt) {
		t.Errorf("ExpireAt = %s", got)
	}
	incoming.ExpireAt = start.Add(72 * time.Hour)
	if got := e.TakeOver(incoming, "successor", start).ExpireAt; !got.Equal(incoming.ExpireAt) {
		t.Errorf("ExpireAt = %s", got)
	}
	e.ExpireAt = time.Time{}
	if got := e.TakeOver(incoming, "successor", start).ExpireAt; !got.IsZero() {
		t.Errorf("ExpireAt = %s, want for ever", got)
	}
}

func TestMarkLapsed(t *testing.T) {
	next := start.Add(time.Hour)
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.Payment, ledger.SMS} {
		e := reserved(kind)
		if e.MarkLapsed(e.LeaseUntil.Add(-time.Millisecond), next) {
			t.Errorf("%s: lapsed while its lease runs", kind)
		}
		if !e.MarkLapsed(e.LeaseUntil, next) || e.State != ledger.Unknown || !e.EverUnknown || !e.DueAt.Equal(next) || !e.LookupDue(next) {
			t.Errorf("%s: %+v", kind, e)
		}
		if e.MarkLapsed(next, next) {
			t.Errorf("%s: lapsed twice", kind)
		}
	}
	e := reserved(ledger.Payment)
	e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Successful, Source: "callback"}, start)
	if !e.MarkLapsed(e.LeaseUntil, next) || e.State != ledger.Done || e.LookupDue(next) {
		t.Errorf("after its status: %+v", e)
	}
}
