package charge_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

var suite = operationtest.Suite{
	Platform: "sandbox", NewFixture: newFixture, NewEvent: newEvent, OtherEvent: otherBodyEvent,
	Kind: ledger.Charge, Effect: expectedEffect,
	Key: []string{"c-1001", correlator}, Writes: []string{"Insert", "ClaimReference", "Replace"}, Replays: true,
}

// decision "in-flight".
func TestInFlight(t *testing.T) {
	suite.CheckInFlight(t, func(w *operationtest.Fixture) {
		t.Run("decision charge-repeat: another body in flight is counted", func(t *testing.T) {
			w.Send(t, otherBodyEvent(t))
			w.AssertCounted(t, "MismatchedRepeats")
		})
		t.Run("decision charge-reference: another correlator", func(t *testing.T) {
			e := newEvent(t).SetBodyPart(correlator, "c-2")
			w.Send(t, e).AssertError(t, 409, "SVC0005", "REF-1001", reference)
		})
	})
}

func TestParallel(t *testing.T) {
	suite.CheckParallel(t)
	t.Run("concurrency: 50 correlators with one reference", func(t *testing.T) {
		w := newFixture(t)
		statuses := make([]int, 50)
		var group sync.WaitGroup
		for i := range statuses {
			e := newEvent(t).SetBodyPart(correlator, fmt.Sprintf("c-%d", i))
			group.Go(func() { statuses[i] = w.Send(t, e).Status })
		}
		group.Wait()
		if created := strings.Count(fmt.Sprint(statuses), "201"); created != 1 {
			t.Errorf("decision charge-reference: %d charges created, want 1", created)
		}
		if effects := w.Driver.Effects(); len(effects) != 1 {
			t.Errorf("decision charge-reference: effects %q, want 1", effects)
		}
	})
}

func TestCrashes(t *testing.T) { suite.CheckCrashes(t) }

// decision "unknown-sticks": a charge that may have been sent is not released because the store fails on the retry.
func TestReferenceFailsOnRetry(t *testing.T) {
	w := suite.LoseFirst(t)
	w.Ledger.FailNext(storetest.ClaimReference, storetest.FailedBeforeApply)
	w.Send(t, newEvent(t)).AssertUnknown(t)
	w.Send(t, otherBodyEvent(t)).AssertUnknown(t)
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	w.AssertSingleEffect(t, expectedEffect, 2)
}
