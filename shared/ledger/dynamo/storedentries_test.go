package dynamo_test

import (
	"fmt"
	"testing"
	"time"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/timeline"
)

// prepared are the entries as the three functions prepare them, before their reservation, in the stored form.
var prepared = map[string]string{
	"charge": `{"pk":{"S":"charge#c-1"},"co":{"S":"cart-1"},"rc":{"S":"INV-1"},"uk":{"S":"Shop.cart-1"},` +
		`"cd":{"BOOL":true},`,
	"web": `{"pk":{"S":"pay#Shop_1"},"ch":{"S":"web"},"la":{"S":"fr"},"ti":{"S":"t-1"},"ms":{"S":" s/\u00e9&<"},` +
		`"mr":{"S":"r"},"mn":{"S":"0700000000"},"cs":{"S":"sn"},"nu":{"S":"https://shop.example/n?a=1&b=2"},`,
	"tpe": `{"pk":{"S":"pay#Shop_2"},"ch":{"S":"tpe"},"la":{"S":"en"},"ti":{"S":"t-2"},"nf":{"S":"p"},` +
		`"nu":{"S":"https://shop.example/n"},`,
	"ussd": `{"pk":{"S":"pay#Shop_3"},"ch":{"S":"ussd"},"ti":{"S":"t-3"},"mn":{"S":"0700000000"},"nf":{"S":"f"},` +
		`"nu":{"S":"https://old.example/n"},`,
	"sms": `{"pk":{"S":"sms#s-1"},"co":{"S":"msg-1"},"uk":{"S":"Shop.msg-1"},"ad":{"S":"acr:X"},` +
		`"se":{"S":"tel:+221"},"cb":{"S":"data"},"nu":{"S":"https://shop.example/n"},"expire_at":{"N":"1803033000"},`,
	"later": `{"pk":{"S":"pay#Shop_4"},"later":{"M":{"a":{"L":[{"N":"1"},{"BOOL":false}]}}},"newer":{"SS":["a","b"]},`,
}

const preparedFor = `"mi":{"S":"m-1"},"m":{"S":"Shop"},"v":{"N":"0"},"fp":{"S":"f"},"cc":{"S":"SN"},"op":{"S":"mtn"},` +
	`"ac":{"S":"sn-main"},"ck":{"S":"[1,2]"},"am":{"N":"12550"},"ex":{"N":"2"},"cu":{"S":"XOF"},` +
	`"ams":{"S":"125.50"},"lu":{"N":"1795257030000"}}`

type step = func(*ledger.Entry)

// later is a time of these histories, in minutes.
func later(minutes int) time.Time {
	return ledgertest.Now().Add(time.Duration(minutes)*time.Minute + 123*time.Millisecond)
}

// after makes a reservation of a prepared entry, and the steps.
func after(t *testing.T, kind string, steps ...step) *ledger.Entry {
	t.Helper()
	e, err := dynamo.DecodeImage([]byte(prepared[kind] + preparedFor))
	if err != nil {
		t.Fatal(err)
	}
	e.BeginReservation("owner-1", ledgertest.Now())
	for _, s := range steps {
		s(e)
		e.Reschedule()
	}
	return e
}

func outcome(o ledger.CallOutcome) step {
	return func(e *ledger.Entry) { e.ApplyOutcome("owner-1", o, later(0)) }
}

func lapsed(e *ledger.Entry) { e.MarkLapsed(later(2), later(3)) }

// takenOver is a takeover, an hour later, by another request with another body.
func takenOver(e *ledger.Entry) {
	incoming := e.Clone()
	incoming.Request.Fingerprint, incoming.LeaseUntil = "f-2", later(61)
	incoming.Route.CallbackKeys = []int{2, 3}
	*e = *e.TakeOver(incoming, "owner-2", later(60))
}

func final(status ledger.Status, reason ledger.FailureReason) step {
	report := ledger.StatusReport{
		Status: status, Source: "callback", FailureReason: reason, MSISDN: "0711111111", OperatorReference: "op-f",
		HasAmount: true, AmountMinor: 12550, Currency: "XOF", UserSMS: true,
	}
	return func(e *ledger.Entry) { e.ApplyFinalStatus(report, later(4)) }
}

func claim(status ledger.Status) step {
	claimed := ledger.Claim{Status: status, OperatorReference: "op-c", MSISDN: "0722222222", CheckAt: later(1)}
	return func(e *ledger.Entry) { e.AddClaim(claimed, later(0)) }
}

// reports are five lookups and a callback that cannot be read. The last lookup has no outcome yet.
func reports(e *ledger.Entry) {
	for i := range 5 {
		lookup := timeline.Event{Kind: timeline.Lookup, At: later(i + 1)}
		e.AddReport(lookup)
		if lookup.Outcome = timeline.Pending; i < 4 {
			e.CompleteReport(lookup)
		}
	}
	e.AddReport(timeline.Event{Kind: timeline.Callback, At: later(6), Outcome: timeline.UnknownStatus})
}

// confirmed is a callback that its lookup has confirmed.
func confirmed(e *ledger.Entry) {
	outcome := ledger.ReportOutcome(e.Status)
	e.AddReport(timeline.Event{Kind: timeline.Callback, At: e.FinalAt, Outcome: outcome})
	e.AddReport(timeline.Event{Kind: timeline.Lookup, At: e.FinalAt, Outcome: outcome})
}

func receipts(statuses ...ledger.Status) step {
	return func(e *ledger.Entry) { e.ApplyReceipts(statuses, later(1)) }
}

func claimDelivery(e *ledger.Entry) { e.Outbox.ClaimDelivery(later(10)) }

func failedAttempt(e *ledger.Entry) {
	claimDelivery(e)
	failed := ledger.FailedAttempt{At: later(10), HTTPStatus: 503, Reason: "http-503"}
	e.Outbox.RecordFailedAttempt(*e.Outbox.HeadClaim(), failed, later(12))
}

func deadLetter(e *ledger.Entry) { e.Outbox.DeadLetter(e.Outbox.Head().ID, "gone", later(20)) }
func delivered(e *ledger.Entry)  { e.Outbox.MarkDelivered(e.Outbox.Head().ID, later(21)) }
func parked(e *ledger.Entry)     { e.Outbox.Park(later(22)) }

func replayed(e *ledger.Entry) {
	e.Outbox.ReplayNotification(ledger.NotificationID(e.Key, e.Status), later(30))
}

func userSMS(state ledger.UserSMSState, maybe bool) step {
	return func(e *ledger.Entry) {
		claimUserSMS(e)
		result := ledger.UserSMSOutcome{State: state, NextAttemptAt: later(8), MaybeSent: maybe}
		e.UserSMS.Record(e.UserSMSClaim(), result)
	}
}

func claimUserSMS(e *ledger.Entry) { e.ClaimUserSMS(later(6)) }

func manual(t *testing.T, result, reference string) step {
	return func(e *ledger.Entry) {
		err := e.ResolveManually(ledger.ManualOutcome{
			ManualResolution: ledger.ManualResolution{Outcome: result, Who: "ada", Reason: "statement \"é\""},
			Reference:        reference, Owner: "owner-1", NotifyURL: "https://shop.example/late",
			ResponseStatus: 403, ResponseBody: []byte(`{"refused":true}`), Lifetime: time.Hour,
		}, later(90))
		if err != nil {
			t.Error(err)
		}
	}
}

// The outcomes of operator calls.
var (
	succeeded = ledger.CallOutcome{
		State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{\"a\":\"é\"}\x00\xff"),
		OperatorReference: "op-1",
		NotifToken:        "nt-1", Call: ledger.CallResult{Outcome: ledger.CallSucceeded, HTTPStatus: 201},
	}
	refusal = ledger.CallOutcome{
		State: ledger.Refused, ResponseStatus: 403, ResponseBody: []byte("{}"), FailureReason: ledger.NotEnoughFunds,
		Status: ledger.DeliveryImpossible,
		Call:   ledger.CallResult{Outcome: ledger.CallRefused, Reason: "SVC0270", HTTPStatus: 403},
	}
	noProof = ledger.CallOutcome{
		State: ledger.Unknown, Call: ledger.CallResult{Outcome: ledger.CallUnknown, Reason: "timeout"},
	}
	pendingResponse = ledger.CallOutcome{
		State: ledger.Unknown, ResponseStatus: 201, ResponseBody: []byte("{}"),
		Call: ledger.CallResult{Outcome: ledger.CallUnknown, Reason: "timeout"},
	}
	knownKey = ledger.CallOutcome{State: ledger.Unknown, NothingSent: true, DuplicateKey: true,
		Call: ledger.CallResult{Outcome: ledger.CallUnknown, Reason: "duplicate", HTTPStatus: 409}}
	notApplied = ledger.CallOutcome{State: ledger.Released,
		Call: ledger.CallResult{Outcome: ledger.CallNotApplied, Reason: "http-503", HTTPStatus: 503, Response: 503}}
	unbound = ledger.CallOutcome{State: ledger.Released, UnbindBody: true,
		Call: ledger.CallResult{Outcome: ledger.CallNotSent, Reason: "reference"}}
)

// storedEntries are the entries of every kind, in every state, with everything that an entry can hold.
func storedEntries(t *testing.T) map[string]*ledger.Entry {
	entries := map[string]*ledger.Entry{}
	add := func(name, kind string, steps ...step) { entries[kind+", "+name] = after(t, kind, steps...) }
	for kind := range prepared {
		addStates(add, kind)
	}
	addCharges(t, add)
	addPayments(t, add)
	addMessages(t, add)
	add("of a merchant with partitions of its days", "tpe", func(e *ledger.Entry) { e.Merchant.DayShard = 3 },
		outcome(succeeded))
	return entries
}

type adder = func(name, kind string, steps ...step)

// addStates adds what entries of all kinds have.
func addStates(add adder, kind string) {
	add("reserved", kind)
	add("done", kind, outcome(succeeded))
	add("refused", kind, outcome(refusal))
	add("unknown", kind, outcome(noProof))
	add("unknown, nothing sent", kind, outcome(knownKey))
	add("released", kind, outcome(notApplied))
	add("released, binds no body", kind, outcome(unbound))
	add("lapsed", kind, lapsed)
	add("taken over after a release", kind, outcome(notApplied), takenOver)
	add("taken over after a lapse", kind, takenOver)
	add("another request after a release", kind, outcome(unbound), takenOver)
	add("late success", kind, lapsed, outcome(succeeded))
}

func addCharges(t *testing.T, add adder) {
	late := succeeded
	late.NotifyURL = "https://shop.example/late"
	add("late success with a notification", "charge", outcome(noProof), outcome(late))
	add("late success, delivered", "charge", outcome(noProof), outcome(late), failedAttempt, delivered)
	add("applied by a person", "charge", outcome(noProof), manual(t, ledger.ManuallyApplied, "ref-1"))
	add("refused by a person", "charge", outcome(noProof), manual(t, ledger.ManuallyNotApplied, ""))
	add("former address", "charge", outcome(noProof), outcome(late),
		func(e *ledger.Entry) { e.Outbox.SelectAddress(true) })
	add("many attempts", "charge", func(e *ledger.Entry) {
		for i := range ledger.MaxCallAttempts + 2 {
			owner := fmt.Sprintf("owner-%d", i+1)
			e.ApplyOutcome(owner, noProof, later(i))
			incoming := e.Clone()
			incoming.LeaseUntil = later(i + 1)
			*e = *e.TakeOver(incoming, fmt.Sprintf("owner-%d", i+2), later(i))
		}
	})
}

func addPayments(t *testing.T, add adder) {
	paid := []step{outcome(succeeded), final(ledger.Successful, "")}
	then := func(steps ...step) []step { return append(paid[:2:2], steps...) }
	add("prepared", "web", func(e *ledger.Entry) { e.StoreDriverData("owner-1", "page-token", ledgertest.Now()) })
	add("accepted without proof", "web", outcome(pendingResponse))
	add("successful", "web", paid...)
	add("failed", "web", outcome(succeeded), final(ledger.Failed, ledger.NotEnoughFunds))
	add("failed without a reason", "web", outcome(pendingResponse), final(ledger.Failed, ""))
	add("cancelled", "web", outcome(succeeded), final(ledger.Cancelled, ""))
	add("expired", "web", outcome(succeeded), func(e *ledger.Entry) { e.Expire(time.Hour, later(61)) })
	add("final before its response", "web", final(ledger.Successful, ""))
	add("final, then its response", "web", final(ledger.Successful, ""), outcome(succeeded), func(e *ledger.Entry) {
		e.Outbox.NotifToken = succeeded.NotifToken // as a former version stored it
	})
	add("final without the operator's id, then its response", "web", func(e *ledger.Entry) {
		e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Cancelled, Source: "callback"}, later(4))
	}, outcome(succeeded))
	add("never sent", "web", outcome(noProof), func(e *ledger.Entry) { e.EndNeverSent(later(5)) })
	add("never sent after 201", "web", outcome(pendingResponse), func(e *ledger.Entry) { e.EndNeverSent(later(5)) })
	add("claimed", "web", outcome(succeeded), claim(ledger.Successful))
	add("claimed twice", "web", outcome(succeeded), claim(ledger.Failed), claim(ledger.Successful),
		func(e *ledger.Entry) { e.ReschedulePoll(later(9)) })
	add("with reports", "web", outcome(succeeded), reports, final(ledger.Successful, ""), confirmed)
	add("conflicts", "web", then(final(ledger.Failed, ""), claim(ledger.Cancelled))...)
	add("success after a refusal", "web", outcome(refusal), outcome(succeeded))
	add("delivery claimed", "web", then(claimDelivery)...)
	add("attempt failed", "web", then(failedAttempt)...)
	add("dead letter", "web", then(failedAttempt, deadLetter)...)
	add("parked", "web", then(failedAttempt, parked)...)
	add("delivered", "web", then(failedAttempt, delivered)...)
	add("replayed", "web", then(failedAttempt, delivered, replayed)...)
	add("dead letter, replayed", "web", then(failedAttempt, deadLetter, replayed)...)
	add("payer's SMS claimed", "web", then(claimUserSMS)...)
	add("payer's SMS sent", "web", then(userSMS(ledger.UserSMSSent, false))...)
	add("payer's SMS failed", "web", then(userSMS(ledger.UserSMSFailed, false))...)
	add("payer's SMS unknown", "web", then(userSMS(ledger.UserSMSUnknown, true))...)
	add("payer's SMS again", "web", then(userSMS(ledger.UserSMSDue, true))...)
	add("resolved by a person", "web", outcome(noProof), manual(t, "successful", "ref-1"))
	add("relay notified", "web", then(func(e *ledger.Entry) { e.Outbox.Head().RelayNotified = true })...)
}

func addMessages(t *testing.T, add adder) {
	const waiting, network, terminal = ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal
	sent := succeeded
	sent.Status, sent.BindAt = waiting, later(1)
	add("not bound", "sms", outcome(sent))
	add("bound", "sms", outcome(sent), func(e *ledger.Entry) { e.RecordBound([]ledger.Status{network}, later(2)) })
	add("bind claimed", "sms", outcome(sent), func(e *ledger.Entry) { e.ClaimBind(later(5)) })
	add("two receipts", "sms", outcome(sent), receipts(network, terminal))
	add("one delivered, one waits", "sms", outcome(sent), receipts(network, terminal), delivered)
	add("two delivered", "sms", outcome(sent), receipts(network, terminal), delivered, delivered)
	add("replayed", "sms", outcome(sent), receipts(network, terminal), delivered, delivered, replayed)
	add("dead and parked", "sms", outcome(sent), receipts(network, terminal), deadLetter, parked)
	for _, status := range []ledger.Status{
		ledger.DeliveryUncertain, ledger.DeliveryImpossible, ledger.NotificationNotSupp,
	} {
		add(string(status), "sms", outcome(sent), receipts(status))
	}
	add("receipt before its response", "sms", receipts(terminal))
	add("receipt after a lapse", "sms", lapsed, receipts(terminal))
	add("unknowable", "sms", outcome(noProof), manual(t, ledger.ManuallyUnknowable, ""))
	add("applied by a person", "sms", outcome(noProof), manual(t, ledger.ManuallyApplied, "ref-1"))
	add("not applied by a person", "sms", outcome(noProof), manual(t, ledger.ManuallyNotApplied, ""))
}
