package pay_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
)

// decision "in-flight".
func TestInFlight(t *testing.T) {
	w := newFixture(t)
	entered, release, first := make(chan struct{}), make(chan struct{}), make(chan operationtest.Response)
	w.Driver.SetBehaviours(operationtest.BlockUntilReleased(entered, release, operationtest.Succeed))
	golden := webEvent(t)
	go func() { first <- w.Send(t, golden) }()
	<-entered
	for name, e := range map[string]*operationtest.Event{"the same request": webEvent(t), "another body": webEvent(t).SetBodyPart("amount", 1)} {
		t.Run("decision in-flight: "+name, func(t *testing.T) {
			response := w.Send(t, e)
			response.AssertError(t, 409, "SVC0005", order, "order_id")
			if response.Header["Retry-After"] != "1" {
				t.Errorf("Retry-After %q", response.Header["Retry-After"])
			}
		})
	}
	close(release)
	response := <-first
	w.Send(t, webEvent(t)).AssertRepeatOf(t, response)
	w.AssertSingleEffect(t, expectedEffect, 1)
}

func TestParallel(t *testing.T) {
	const requests = 100
	for _, channel := range []string{"web", "ussd"} {
		t.Run("concurrency: 100 parallel requests, two bodies, "+channel, func(t *testing.T) {
			w := newFixture(t)
			statuses, bodies := make([]int, requests), map[string]bool{}
			var mutex sync.Mutex
			var group sync.WaitGroup
			for i := range statuses {
				e := loadEvent(t, channel).SetBodyPart("amount", 1500+i%2)
				group.Go(func() {
					response := w.Send(t, e)
					mutex.Lock()
					defer mutex.Unlock()
					statuses[i] = response.Status
					if response.Status == 201 {
						bodies[response.Body] = true
					}
				})
			}
			group.Wait()
			w.AssertSingleEffect(t, expectedEffect, 1)
			for _, status := range statuses {
				if status != 201 && status != 409 {
					t.Errorf("status %d", status)
				}
			}
			if len(bodies) != 1 {
				t.Errorf("%d answers", len(bodies))
			}
		})
	}
}

// TestCrashes lets the function die at each of its outside calls; the lease lapses, and the merchant retries.
func TestCrashes(t *testing.T) {
	operationtest.CheckCrashPoints(t, newFixture, webEvent, expectedEffect, "Insert", "Replace")
	operationtest.CheckCrashPoints(t, newFixture, ussdEvent, expectedEffect, "Insert", "Replace")
	for _, channel := range []string{"web", "ussd"} {
		for _, at := range []ledgermem.Operation{ledgermem.Insert, ledgermem.Replace} {
			for _, fault := range []ledgermem.InjectedFault{ledgermem.FailedBeforeApply, ledgermem.LostResponse} {
				t.Run(fmt.Sprintf("crash points: fault %d in %s on %s", fault, at, channel), func(t *testing.T) {
					w := newFixture(t)
					failNextStoreCall(w, at, fault)
					if response := w.Send(t, loadEvent(t, channel)); response.Status < 500 {
						t.Errorf("%d %s", response.Status, response.Body)
					}
					assertRetrySucceeds(t, w, channel)
				})
			}
		}
		for name, step := range map[string]operationtest.Behaviour{
			"before": operationtest.PanicBefore, "after": operationtest.PanicAfter,
		} {
			t.Run("crash points: the driver panics "+name+" the effect on "+channel, func(t *testing.T) {
				w := newFixture(t)
				w.Driver.SetBehaviours(step)
				if response := w.Send(t, loadEvent(t, channel)); response.Status < 500 {
					t.Errorf("%d %s", response.Status, response.Body)
				}
				assertRetrySucceeds(t, w, channel)
			})
		}
		t.Run("crash points: the driver comes back after the lease on "+channel, func(t *testing.T) { checkDelayedReturn(t, channel) })
	}
}

func checkDelayedReturn(t *testing.T, channel string) {
	w := newFixture(t)
	entered, release, first := make(chan struct{}), make(chan struct{}), make(chan operationtest.Response)
	w.Driver.SetBehaviours(operationtest.BlockUntilReleased(entered, release, operationtest.LoseResponse))
	golden := loadEvent(t, channel)
	go func() { first <- w.Send(t, golden) }()
	<-entered
	w.Clock.Advance(leaseDuration)
	response := w.Send(t, loadEvent(t, channel)).AssertStatus(t, 201)
	close(release)
	late := <-first
	if late.Status != 201 || late.Body != response.Body {
		t.Errorf("the late one answers %d %s", late.Status, late.Body)
	}
	w.AssertSingleEffect(t, expectedEffect, 2)
}

func assertRetrySucceeds(t *testing.T, w *operationtest.Fixture, channel string) {
	t.Helper()
	w.Clock.Advance(leaseDuration)
	w.Send(t, loadEvent(t, channel)).AssertStatus(t, 201)
	w.AssertSingleEffect(t, expectedEffect, len(w.Driver.Calls()))
}

// failNextStoreCall makes the next call of a store's operation fail.
func failNextStoreCall(w *operationtest.Fixture, at ledgermem.Operation, fault ledgermem.InjectedFault) {
	done := false
	w.Ledger.InjectFaults(func(call ledgermem.Call) ledgermem.InjectedFault {
		if done || call.Operation != at {
			return ledgermem.NoFault
		}
		done = true
		return fault
	})
}

func TestNoOperatorAccount(t *testing.T) {
	w := newFixture(t)
	w.Driver.SetAccount("", errors.New("the secret is gone"))
	w.Send(t, webEvent(t)).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
	w.AssertNoSideEffects(t)
}
