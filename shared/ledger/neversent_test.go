package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// decision "never-sent": only an unknown payment without a claim ends. It fails if the merchant has got 201, and is
// released otherwise.
func TestEndNeverSent(t *testing.T) {
	duplicate := unknown
	duplicate.DuplicateKey, duplicate.NothingSent = true, true
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		effect ledger.Effect
		want   string // "" for no change
	}{
		{"reserved", func(*ledger.Entry) {}, ledger.Unchanged, ""},
		{"pending", outcome(done), ledger.Unchanged, ""},
		{"refused", outcome(refused), ledger.Unchanged, ""},
		{"released pending", outcome(released), ledger.Unchanged, ""},
		{"released without its body", outcome(unbound), ledger.Unchanged, ""},
		{"unknown", outcome(unknown), ledger.Applied, "released pending"},
		{"unknown, and the merchant has got 201", outcome(pending), ledger.Applied,
			"done failed 201:pending notify:failed due:16m0s"},
		{"unknown after its lease", func(e *ledger.Entry) {
			e.MarkLapsed(start.Add(10*time.Minute), start.Add(time.Hour))
		}, ledger.Applied, "released pending"},
		{"final", steps(outcome(unknown), finalStatus(ledger.Successful)), ledger.Unchanged, ""},
		{"a claim of success", steps(outcome(unknown), claimed(ledger.Successful)), ledger.Unchanged, ""},
		{"a claim of failure", steps(outcome(pending), claimed(ledger.Failed)), ledger.Unchanged, ""},
		{"the platform knew the key", outcome(duplicate), ledger.Unchanged, ""},
	} {
		e := entryAfter(ledger.Payment, c.before)
		before := summary(e)
		if c.effect == ledger.Unchanged {
			c.want = before
		}
		if got := e.EndNeverSent(start.Add(15 * time.Minute)); got != c.effect {
			t.Errorf("%s: effect %v, want %v", c.name, got, c.effect)
		}
		assertSummary(t, c.name, e, c.want)
		if got := e.EndNeverSent(start.Add(16 * time.Minute)); got != ledger.Unchanged {
			t.Errorf("%s: the second time has the effect %v", c.name, got)
		}
	}
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.SMS} {
		e := reserved(kind)
		e.ApplyOutcome("owner", unknown, start)
		if got := e.EndNeverSent(start.Add(time.Hour)); got != ledger.Unchanged || e.State != ledger.Unknown {
			t.Errorf("a %s: effect %v, %s", kind, got, summary(e))
		}
	}
}

// A payment that was never sent binds its body, and its retry keeps the pin, the key and the material. A late success
// still counts.
func TestAfterNeverSent(t *testing.T) {
	released := func() *ledger.Entry {
		e := reserved(ledger.Payment)
		e.Route.Account, e.Route.UpstreamKey, e.DriverData = "mtn-momo/ci", "uuid", "driver data"
		e.ApplyOutcome("owner", unknown, start)
		e.EndNeverSent(start.Add(15 * time.Minute))
		return e
	}
	now := start.Add(20 * time.Minute)
	incoming := reserved(ledger.Payment)
	incoming.Route.Account, incoming.Route.UpstreamKey, incoming.LeaseUntil = "pawapay/p", "other",
		now.Add(30*time.Second)
	if got := ledger.Decide(released(), incoming, now, 0); got != ledger.TakenOver {
		t.Fatalf("a retry: %v, want it taken over", got)
	}
	next := released().TakeOver(incoming, "second", now)
	if next.Route.Account != "mtn-momo/ci" || next.Route.UpstreamKey != "uuid" || next.DriverData != "driver data" ||
		next.EverUnknown {
		t.Errorf("the retry has account %s, key %s, driver data %q, ever unknown %v",
			next.Route.Account, next.Route.UpstreamKey, next.DriverData, next.EverUnknown)
	}
	incoming.Request.Fingerprint = "other"
	if got := ledger.Decide(released(), incoming, now, 0); got != ledger.KeyTaken {
		t.Errorf("another body: %v, want its key taken", got)
	}
	late := released()
	if got := late.ApplyFinalStatus(final(ledger.Successful), now); got != ledger.Applied {
		t.Errorf("a late success: %v", got)
	}
	first := released()
	if !first.ApplyOutcome("owner", done, now) || first.State != ledger.Done || first.Status != ledger.Pending {
		t.Errorf("the late response of the first attempt: %s", summary(first))
	}
}

// decision "prepare": only the owner of a live reservation stores the driver's data, because the payment follows at
// once.
func TestStoreDriverData(t *testing.T) {
	for _, c := range []struct {
		name, owner string
		before      func(*ledger.Entry)
		now         time.Time
		want        bool
	}{
		{"its owner", "owner", func(*ledger.Entry) {}, start, true},
		{"just before its lease ends", "owner", func(*ledger.Entry) {}, start.Add(29 * time.Second), true},
		{"its lease has ended", "owner", func(*ledger.Entry) {}, start.Add(30 * time.Second), false},
		{"marked as lapsed", "owner", func(e *ledger.Entry) { e.MarkLapsed(start.Add(10*time.Minute), start) },
			start.Add(10 * time.Minute), false},
		{"another owner", "other", func(*ledger.Entry) {}, start, false},
		{"released pending", "owner", outcome(released), start, false},
		{"unknown", "owner", outcome(unknown), start, false},
		{"done", "owner", outcome(done), start, false},
	} {
		e := entryAfter(ledger.Payment, c.before)
		got := e.StoreDriverData(c.owner, "driver data", c.now)
		if got != c.want || (e.DriverData == "driver data") != c.want {
			t.Errorf("%s: stored %v, driver data %q; want %v", c.name, got, e.DriverData, c.want)
		}
	}
}

// A response's driver data is stored with it, and never replaces what was stored before the call.
func TestDriverDataOfResponse(t *testing.T) {
	withDriverData := done
	withDriverData.DriverData = "from the response"
	for before, want := range map[string]string{"": "from the response", "prepared": "prepared"} {
		e := reserved(ledger.Payment)
		e.DriverData = before
		if e.ApplyOutcome("owner", withDriverData, start); e.DriverData != want {
			t.Errorf("driver data %q after %q, want %q", e.DriverData, before, want)
		}
	}
}

// decision "unread-callbacks": the lookup becomes due at once. A payment without lookups gets none.
func TestRequestLookup(t *testing.T) {
	now := start.Add(10 * time.Second)
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		want   bool
	}{
		{"pending", outcome(done), true},
		{"unknown", outcome(unknown), true},
		{"unknown, and the merchant has got 201", outcome(pending), true},
		{"the lookup is due already", steps(outcome(done), func(e *ledger.Entry) { e.Poll.At = start }), false},
		{"the call is in flight", func(*ledger.Entry) {}, false},
		{"released pending", outcome(released), true},
		{"refused", outcome(refused), false},
		{"final", steps(outcome(done), finalStatus(ledger.Failed)), false},
	} {
		e := entryAfter(ledger.Payment, c.before)
		before := e.Clone()
		if got := e.RequestLookup(now); got != c.want {
			t.Errorf("%s: requested %v, want %v: %s", c.name, got, c.want, summary(e))
		}
		isDue := e.Poll.At.Equal(now) && e.LookupDue(now) && !dueAt(e).After(now)
		if isDue != c.want || !c.want && e.Poll.At != before.Poll.At {
			t.Errorf("%s: the lookup is due at %s, the entry at %s", c.name, e.Poll.At, dueAt(e))
		}
		if e.RequestLookup(now.Add(time.Second)) {
			t.Errorf("%s: a second callback changes the entry", c.name)
		}
	}
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.SMS} {
		e := reserved(kind)
		e.ApplyOutcome("owner", unknown, start)
		if e.RequestLookup(now) {
			t.Errorf("a %s has a lookup", kind)
		}
	}
}

// A released payment has no lookup after a response without a success, unless a claim is open.
func TestEndReleasedLookups(t *testing.T) {
	claim := func(e *ledger.Entry) { e.AddClaim(ledger.Claim{Status: ledger.Successful, CheckAt: start}, start) }
	requested := func(e *ledger.Entry) { e.RequestLookup(start) }
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		want   bool
	}{
		{"requested", steps(outcome(released), requested), true},
		{"not requested", outcome(released), false},
		{"a claim is open", steps(outcome(released), claim, requested), false},
		{"not released", outcome(done), false},
	} {
		e := entryAfter(ledger.Payment, c.before)
		due := dueAt(e)
		if got := e.EndReleasedLookups(); got != c.want || got != (e.Poll.At.IsZero() && !due.IsZero()) {
			t.Errorf("%s: ended %v, want %v: %s", c.name, got, c.want, summary(e))
		}
	}
}

// A success after a release contradicts the release.
func TestContradictionsSince(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		want   int
	}{
		{"pending", outcome(done), 0}, {"unknown", outcome(unknown), 0}, {"released", outcome(released), 1},
		{"failed", steps(outcome(done), finalStatus(ledger.Failed)), 1},
		{"failed, and has contradicted before",
			steps(outcome(done), finalStatus(ledger.Failed), finalStatus(ledger.Expired)), 1},
	} {
		e := entryAfter(ledger.Payment, c.before)
		before := *e.Clone()
		finalStatus(ledger.Successful)(e)
		if got := e.ContradictionsSince(before); got != c.want {
			t.Errorf("%s: %d contradictions, want %d: %s", c.name, got, c.want, summary(e))
		}
	}
}

func TestApplyReceipts(t *testing.T) {
	waiting, network, terminal := ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal
	for _, c := range []struct {
		name     string
		statuses []ledger.Status
		changed  bool
		status   ledger.Status
		queued   int
	}{
		{"none", nil, false, network, 1},
		{"in their order", []ledger.Status{network, terminal}, true, terminal, 2},
		{"out of order", []ledger.Status{terminal, waiting, network}, true, terminal, 2},
		{"the last one is old", []ledger.Status{terminal, network}, true, terminal, 2},
		{"known", []ledger.Status{waiting, network, network}, false, network, 1},
		{"unknown words", []ledger.Status{"Delivered", ""}, false, network, 1},
	} {
		e := message(network)
		got := e.ApplyReceipts(c.statuses, start)
		if got != c.changed || e.Status != c.status || len(e.Outbox.Waiting) != c.queued {
			t.Errorf("%s: changed %v, %s", c.name, got, summary(e))
		}
		if e.ApplyReceipts(c.statuses, start) {
			t.Errorf("%s: the same receipts changed the message twice", c.name)
		}
	}
}

// A sent SMS whose binding failed is due for the sweep. Without a send there is nothing to bind.
func TestOutcomeWithBinding(t *testing.T) {
	for state, want := range map[ledger.State]bool{ledger.Done: true, ledger.Refused: false, ledger.Unknown: false} {
		e := reserved(ledger.SMS)
		at := e.ReservedAt.Add(ledger.FirstBindWait)
		e.ApplyOutcome(e.Owner, ledger.CallOutcome{State: state, ResponseStatus: 201, BindAt: at}, e.ReservedAt)
		if got := e.BindAt.Equal(at) && dueAt(e).Equal(at); got != want {
			t.Errorf("%s: bound again at %s, due at %s", state, e.BindAt, dueAt(e))
		}
	}
}
