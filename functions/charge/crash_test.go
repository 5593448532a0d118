package charge_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
)

// decision "in-flight".
func TestInFlight(t *testing.T) {
	w := newFixture(t)
	entered, release := make(chan struct{}), make(chan struct{})
	w.Driver.SetBehaviours(operationtest.BlockUntilReleased(entered, release, operationtest.Succeed))
	first := make(chan operationtest.Response)
	golden := newEvent(t)
	go func() { first <- w.Send(t, golden) }()
	<-entered
	busy := func(name string, e *operationtest.Event, variables ...string) {
		t.Run("decision in-flight: "+name, func(t *testing.T) {
			response := w.Send(t, e)
			response.AssertError(t, 409, "SVC0005", variables...)
			if response.Header["Retry-After"] != "1" {
				t.Errorf("Retry-After %q", response.Header["Retry-After"])
			}
		})
	}
	busy("the same request", newEvent(t), "c-1001", correlator)
	busy("another body", otherMerchantEvent(t), "c-1001", correlator)
	t.Run("decision charge-repeat: another body in flight is counted", func(t *testing.T) {
		if w.LastLine(t)["MismatchedRepeats"] != 1.0 {
			t.Errorf("line %v", w.LastLine(t))
		}
	})
	t.Run("decision charge-reference: another correlator", func(t *testing.T) {
		w.Send(t, newEvent(t).SetBodyPart(correlator, "c-2")).AssertError(t, 409, "SVC0005", "REF-1001", reference)
	})
	close(release)
	response := <-first
	response.AssertStatus(t, 201)
	w.Send(t, newEvent(t)).AssertRepeatOf(t, response)
	w.AssertSingleEffect(t, expectedEffect, 1)
}

func TestParallel(t *testing.T) {
	const requests = 100
	bodies := []string{newEvent(t).Body(), otherMerchantEvent(t).Body()}
	for name, kinds := range map[string]int{"equal requests": 1, "two bodies under one key": 2} {
		t.Run("concurrency: 100 parallel, "+name, func(t *testing.T) {
			w := newFixture(t)
			responses := make([]operationtest.Response, requests)
			events := make([]*operationtest.Event, requests)
			var group sync.WaitGroup
			for i := range responses {
				events[i] = newEvent(t).SetRawBody(bodies[i%kinds])
				group.Go(func() { responses[i] = w.Send(t, events[i]) })
			}
			group.Wait()
			w.AssertSingleEffect(t, expectedEffect, 1)
			final := w.Send(t, newEvent(t)).AssertStatus(t, 201)
			for _, response := range responses {
				if response.Status == 409 {
					response.AssertError(t, 409, "SVC0005", "c-1001", correlator)
				} else if response.Status != 201 || response.Body != final.Body {
					t.Errorf("%d %s, want %s", response.Status, response.Body, final.Body)
				}
			}
		})
	}
	t.Run("concurrency: 50 correlators with one reference", func(t *testing.T) {
		w := newFixture(t)
		statuses := make([]int, 50)
		var group sync.WaitGroup
		for i := range statuses {
			e := newEvent(t).SetBodyPart(correlator, fmt.Sprintf("c-%d", i))
			group.Go(func() { statuses[i] = w.Send(t, e).Status })
		}
		group.Wait()
		done := strings.Count(fmt.Sprint(statuses), "201")
		if done != 1 || len(w.Driver.Effects()) != 1 {
			t.Errorf("%d charged, effects %q", done, w.Driver.Effects())
		}
	})
}

// TestCrashes lets the function die at each of its outside calls, as a panic and as a call that never comes back. The
// lease lapses, the merchant retries: one effect under one key, and an answer.
func TestCrashes(t *testing.T) {
	operationtest.CheckCrashPoints(t, newFixture, newEvent, expectedEffect, "Insert", "ClaimReference", "Replace")
	for _, at := range []string{"Insert", "ClaimReference", "Replace"} {
		for _, wrong := range []ledgermem.InjectedFault{ledgermem.FailedBeforeApply, ledgermem.LostResponse} {
			t.Run(fmt.Sprintf("crash points: fault %d in %s, then the retry", wrong, at), func(t *testing.T) {
				w := newFixture(t)
				failNextStoreCall(w, ledgermem.Operation(at), wrong)
				if response := w.Send(t, newEvent(t)); response.Status < 500 {
					t.Errorf("%d %s", response.Status, response.Body)
				}
				assertRetrySucceeds(t, w)
			})
		}
	}
	for name, step := range map[string]operationtest.Behaviour{
		"before the effect": operationtest.PanicBefore, "after the effect": operationtest.PanicAfter,
	} {
		t.Run("crash points: the driver panics "+name, func(t *testing.T) {
			w := newFixture(t)
			w.Driver.SetBehaviours(step)
			if response := w.Send(t, newEvent(t)); response.Status < 500 {
				t.Errorf("%d %s", response.Status, response.Body)
			}
			w.Send(t, newEvent(t)).AssertError(t, 409, "SVC0005", "c-1001", correlator)
			assertRetrySucceeds(t, w)
		})
	}
	for name, behaviour := range map[string]operationtest.Behaviour{
		"and had no effect": operationtest.LoseRequest, "and had its effect": operationtest.Succeed, "and was refused": operationtest.RespondUnavailable,
	} {
		t.Run("crash points: the driver comes back after the lease "+name, func(t *testing.T) { checkDelayedReturn(t, behaviour) })
	}
}

// checkDelayedReturn lets the first invocation hang in the operator's call until a second one has settled the charge.
func checkDelayedReturn(t *testing.T, behaviour operationtest.Behaviour) {
	w := newFixture(t)
	entered, release, first := make(chan struct{}), make(chan struct{}), make(chan operationtest.Response)
	w.Driver.SetBehaviours(operationtest.BlockUntilReleased(entered, release, behaviour))
	golden := newEvent(t)
	go func() { first <- w.Send(t, golden) }()
	<-entered
	w.Clock.Advance(leaseDuration)
	response := w.Send(t, newEvent(t)).AssertStatus(t, 201)
	close(release)
	late := <-first
	if late.Status != 201 || late.Body != response.Body {
		t.Errorf("the late one answers %d %s", late.Status, late.Body)
	}
	w.Send(t, newEvent(t)).AssertRepeatOf(t, response)
	w.AssertSingleEffect(t, expectedEffect, 2)
}

// assertRetrySucceeds lets the lease lapse and retries.
func assertRetrySucceeds(t *testing.T, w *operationtest.Fixture) {
	t.Helper()
	w.Clock.Advance(leaseDuration)
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	w.AssertSingleEffect(t, expectedEffect, len(w.Driver.Calls()))
	if got := w.OnlyEntry(t, ledger.Charge).State; got != ledger.Done {
		t.Errorf("state %s", got)
	}
}

// failNextStoreCall makes the next call of a store's operation fail.
func failNextStoreCall(w *operationtest.Fixture, at ledgermem.Operation, wrong ledgermem.InjectedFault) {
	done := false
	w.Ledger.InjectFaults(func(call ledgermem.Call) ledgermem.InjectedFault {
		if done || call.Operation != at {
			return ledgermem.NoFault
		}
		done = true
		return wrong
	})
}

// decision "unknown-sticks": a charge that may have been sent is not given back because the store fails on the retry.
func TestReferenceFailsOnRetry(t *testing.T) {
	w := newFixture(t)
	w.Driver.SetBehaviours(operationtest.LoseResponse)
	w.Send(t, newEvent(t)).AssertError(t, 504, "SVC0001", "PDK_SMSW_0011")
	failNextStoreCall(w, ledgermem.ClaimReference, ledgermem.FailedBeforeApply)
	w.Send(t, newEvent(t)).AssertError(t, 504, "SVC0001", "PDK_SMSW_0011")
	w.Send(t, otherMerchantEvent(t)).AssertError(t, 504, "SVC0001", "PDK_SMSW_0011")
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	w.AssertSingleEffect(t, expectedEffect, 2)
}

func TestNoOperatorAccount(t *testing.T) {
	w := newFixture(t)
	w.Driver.SetAccount("", errors.New("the secret is gone"))
	w.Send(t, newEvent(t)).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
	w.Driver.SetAccount("", &fault.Fault{Kind: fault.IntegrationRejected, Cause: errors.New("no account")})
	w.Send(t, newEvent(t)).AssertError(t, 502, "SVC0001", "PDK_SMSW_0002")
	w.AssertNoSideEffects(t)
	w.Merchants.SetError(errors.New("the table is gone"))
	w.Send(t, newEvent(t)).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
	w.AssertNoSideEffects(t)
}
