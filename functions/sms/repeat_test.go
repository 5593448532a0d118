package sms_test

import (
	"fmt"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/resource"
)

var suite = operationtest.Suite{
	Platform: "sandbox", NewFixture: newFixture, NewEvent: newEvent, OtherEvent: otherBodyEvent,
	Kind: ledger.SMS, Effect: expectedEffect,
	Key: []string{"s-1001", correlator}, Writes: []string{"Insert", "Replace"},
}

// otherBodyEvent is the golden SMS with another text under the same correlator.
func otherBodyEvent(t testing.TB) *operationtest.Event {
	t.Helper()
	return newEvent(t).SetBodyPart(text, "another")
}

func assertDuplicate(t testing.TB, response operationtest.Response, location string) {
	t.Helper()
	response.AssertError(t, 409, "SVC0005", "s-1001", correlator)
	response.AssertHeader(t, "Location", location)
	response.AssertHeader(t, "Retry-After", "")
	response.AssertHeader(t, "X-Error-Reason", "")
}

// assertMaybeSent checks the 409 of another request under the key of a message that may have been sent.
func assertMaybeSent(t testing.TB, response operationtest.Response) {
	t.Helper()
	response.AssertError(t, 409, "SVC0005", "s-1001", correlator)
	response.AssertHeader(t, "Location", "")
	response.AssertHeader(t, "Retry-After", "")
	response.AssertHeader(t, "X-Error-Reason", "other-body")
	response.AssertHeader(t, "X-Error-Part", correlator)
}

// decision "sms-duplicate".
func TestDuplicate(t *testing.T) {
	t.Run("decision sms-duplicate: nothing is sent, Location names the first", func(t *testing.T) {
		w, first := suite.SendFirst(t)
		assertDuplicate(t, w.Send(t, newEvent(t)), first.Header["Location"])
		assertDuplicate(t, w.Send(t, otherBodyEvent(t)), first.Header["Location"])
		otherISE2 := newEvent(t).SetHeader("X-Operator-ISE2", "another")
		assertDuplicate(t, w.Send(t, otherISE2), first.Header["Location"])
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision sms-duplicate: of another sender, Location names the first's", func(t *testing.T) {
		w, first := suite.SendFirst(t)
		other := newEvent(t).SetPathParameter("senderAddress", "tel:+22599").SetBodyPart(sender, "tel:+22599")
		assertDuplicate(t, w.Send(t, other), first.Header["Location"])
	})
	t.Run("decision sms-duplicate: two merchants may use the same correlator", func(t *testing.T) {
		w, _ := suite.SendFirst(t)
		w.Send(t, newEvent(t).SetHeader("Authorization", operationtest.OtherToken)).AssertStatus(t, 201)
		if got := fmt.Sprint(w.Driver.Effects()); got != "[sms DemoShop.s-1001 sms OtherShop.s-1001]" {
			t.Errorf("effects %s", got)
		}
	})
	t.Run("decision sms-duplicate: a final refusal is replayed", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.RefuseFinally("POL0001", "Not enough credit"))
		first := w.Send(t, newEvent(t))
		first.AssertError(t, 403, "POL0001", "Not enough credit")
		w.Send(t, newEvent(t)).AssertRepeatOf(t, first)
		assertDuplicate(t, w.Send(t, otherBodyEvent(t)), "")
		w.AssertCallCounts(t, 3, 0, 1, 1)
	})
	t.Run("decision retention: after it the correlator is free", func(t *testing.T) {
		w, _ := suite.SendFirst(t)
		w.Clock.Advance(retention + time.Second)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
	})
}

// decision "outcomes", "charge-unknown" and "unknown-sticks" as they hold for SMS.
func TestUnknownOutcome(t *testing.T) {
	for name, second := range map[string]operationtest.Behaviour{
		"decision sms-duplicate: an unknown one may be retried":   operationtest.Succeed,
		"decision outcomes: 409 duplicate on our re-send is done": operationtest.ReportDuplicate,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).WithBehaviours(operationtest.LoseResponse, operationtest.RespondUnavailable, second)
			w.Send(t, newEvent(t)).AssertUnknown(t)
			w.Send(t, newEvent(t)).AssertUnknown(t)
			first := w.Send(t, newEvent(t)).AssertStatus(t, 201)
			assertDuplicate(t, w.Send(t, newEvent(t)), first.Header["Location"])
			w.AssertSingleEffect(t, expectedEffect, 3)
		})
	}
	t.Run("decision outcomes: 409 duplicate after a release is unknown", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.RespondUnavailable, operationtest.ReportDuplicate)
		w.Send(t, newEvent(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
		w.Send(t, newEvent(t)).AssertUnknown(t)
	})
	t.Run("decision sms-duplicate: a duplicate proves nothing before a send may have arrived", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.ReportDuplicate, operationtest.ReportDuplicate,
			operationtest.RespondUnavailable, operationtest.ReportDuplicate)
		for range 4 {
			w.Send(t, newEvent(t)).AssertUnknown(t)
			w.AssertCounted(t, "UnknownOutcomes")
			if e := w.OnlyEntry(t, ledger.SMS); e.State != ledger.Unknown || e.Poll.At.IsZero() {
				t.Errorf("state %s, listed at %s: want it unknown and listed for a person", e.State, e.Poll.At)
			}
		}
	})
	t.Run("decision sms-duplicate: after a crash a duplicate is our own", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.PanicAfter, operationtest.ReportDuplicate)
		w.Send(t, newEvent(t))
		w.Clock.Advance(time.Minute) // the lease lapses
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
	})
	t.Run("decision sms-duplicate: a key that was taken before our sends proves none of them", func(t *testing.T) {
		for _, between := range []operationtest.Behaviour{operationtest.LoseRequest, operationtest.PanicAfter} {
			w := newFixture(t).WithBehaviours(operationtest.ReportDuplicate, between, operationtest.ReportDuplicate)
			w.Send(t, newEvent(t)).AssertUnknown(t)
			w.Send(t, newEvent(t))
			w.Clock.Advance(time.Minute) // a lease lapses
			w.Send(t, newEvent(t)).AssertUnknown(t)
		}
	})
	t.Run("another body while unknown is 409 and never sent", func(t *testing.T) {
		w := suite.LoseFirst(t)
		assertMaybeSent(t, w.Send(t, otherBodyEvent(t)))
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("another body after a crash may follow a message that was sent", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.PanicAfter)
		w.Send(t, newEvent(t))
		w.Clock.Advance(time.Minute) // the lease lapses
		assertMaybeSent(t, w.Send(t, otherBodyEvent(t)))
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision unknown-by-hand: one that was not sent is a duplicate with Location", func(t *testing.T) {
		w := suite.LoseFirst(t)
		e := w.OnlyEntry(t, ledger.SMS)
		resolution := ledger.ManualOutcome{Owner: e.Owner}
		resolution.Outcome = ledger.ManuallyNotApplied
		w.Clock.Advance(time.Hour)
		if err := e.ResolveManually(resolution, w.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		w.Ledger.Overwrite(e)
		first := resource.MessageURL("https://api.example.com", e.Request.Sender, e.ID)
		assertDuplicate(t, w.Send(t, newEvent(t)), first)
		assertDuplicate(t, w.Send(t, otherBodyEvent(t)), first)
	})
	for _, header := range []string{"gw-alias", "X-Operator-ISE2"} {
		t.Run("decision fingerprint: another "+header+" while unknown is never sent", func(t *testing.T) {
			w := suite.LoseFirst(t)
			assertMaybeSent(t, w.Send(t, newEvent(t).SetHeader(header, "another")))
			w.Send(t, newEvent(t).SetHeader("gw-token", "renewed")).AssertStatus(t, 201)
			w.AssertSingleEffect(t, expectedEffect, 2)
		})
	}
	t.Run("decision sms-receipts: a receipt proves that it was sent", func(t *testing.T) {
		w := suite.LoseFirst(t)
		e := w.OnlyEntry(t, ledger.SMS)
		e.ApplyReceipt(ledger.DeliveredToNetwork, w.Clock.Now())
		w.Ledger.Overwrite(e)
		w.Send(t, newEvent(t)).AssertError(t, 409, "SVC0005", "s-1001", correlator)
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision released: the same request takes over, another is 409", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.RespondUnavailable)
		w.Send(t, newEvent(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
		assertDuplicate(t, w.Send(t, otherBodyEvent(t)), "")
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, expectedEffect, 2)
	})
}

// decision "in-flight".
func TestInFlight(t *testing.T) { suite.CheckInFlight(t, nil) }

// decision "sms-duplicate": of parallel requests exactly one is 201.
func TestParallel(t *testing.T) { suite.CheckParallel(t) }

func TestCrashes(t *testing.T) { suite.CheckCrashes(t) }

// decision "charge-unknown": every 504 of a message that is stored names it.
func TestUnknownLocation(t *testing.T) {
	path := "/requests/" + ledger.SMSID(operationtest.DemoProfile().ID, "s-1001") + "/deliveryInfos"
	w := newFixture(t).WithBehaviours(operationtest.LoseRequest)
	w.Send(t, newEvent(t)).AssertUnknownAt(t, path)
	w.Clock.Advance(24 * time.Hour)
	w.Send(t, newEvent(t)).AssertUnknownAt(t, path)
}

// decision "restored".
func TestRestored(t *testing.T) { suite.CheckRestored(t, 409) }
