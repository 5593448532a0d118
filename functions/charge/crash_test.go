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
	w := shop(t)
	entered, release := make(chan struct{}), make(chan struct{})
	w.Driver.Script(operationtest.Hold(entered, release, operationtest.Succeed))
	first := make(chan operationtest.Answer)
	golden := event(t)
	go func() { first <- w.Do(t, golden) }()
	<-entered
	busy := func(name string, e *operationtest.Event, variables ...string) {
		t.Run("decision in-flight: "+name, func(t *testing.T) {
			answer := w.Do(t, e)
			answer.Fails(t, 409, "SVC0005", variables...)
			if answer.Header["Retry-After"] != "1" {
				t.Errorf("Retry-After %q", answer.Header["Retry-After"])
			}
		})
	}
	busy("the same request", event(t), "c-1001", correlator)
	busy("another body", other(t), "c-1001", correlator)
	t.Run("decision charge-repeat: another body in flight is counted", func(t *testing.T) {
		if w.LastLine(t)["MismatchedReplays"] != 1.0 {
			t.Errorf("line %v", w.LastLine(t))
		}
	})
	t.Run("decision charge-reference: another correlator", func(t *testing.T) {
		w.Do(t, event(t).Set(correlator, "c-2")).Fails(t, 409, "SVC0005", "REF-1001", reference)
	})
	close(release)
	answer := <-first
	answer.Succeeds(t, 201)
	w.Do(t, event(t)).Replays(t, answer)
	w.OneEffect(t, effect, 1)
}

func TestParallel(t *testing.T) {
	const requests = 100
	bodies := []string{event(t).Body(), other(t).Body()}
	for name, kinds := range map[string]int{"equal requests": 1, "two bodies under one key": 2} {
		t.Run("concurrency: 100 parallel, "+name, func(t *testing.T) {
			w := shop(t)
			answers := make([]operationtest.Answer, requests)
			events := make([]*operationtest.Event, requests)
			var group sync.WaitGroup
			for i := range answers {
				events[i] = event(t).Raw(bodies[i%kinds])
				group.Go(func() { answers[i] = w.Do(t, events[i]) })
			}
			group.Wait()
			w.OneEffect(t, effect, 1)
			final := w.Do(t, event(t)).Succeeds(t, 201)
			for _, answer := range answers {
				if answer.Status == 409 {
					answer.Fails(t, 409, "SVC0005", "c-1001", correlator)
				} else if answer.Status != 201 || answer.Body != final.Body {
					t.Errorf("%d %s, want %s", answer.Status, answer.Body, final.Body)
				}
			}
		})
	}
	t.Run("concurrency: 50 correlators with one reference", func(t *testing.T) {
		w := shop(t)
		statuses := make([]int, 50)
		var group sync.WaitGroup
		for i := range statuses {
			e := event(t).Set(correlator, fmt.Sprintf("c-%d", i))
			group.Go(func() { statuses[i] = w.Do(t, e).Status })
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
	operationtest.Crash(t, shop, event, effect, "Insert", "ClaimReference", "Replace")
	for _, at := range []string{"Insert", "ClaimReference", "Replace"} {
		for _, wrong := range []ledgermem.Fault{ledgermem.Error, ledgermem.LostAnswer} {
			t.Run(fmt.Sprintf("crash points: fault %d in %s, then the retry", wrong, at), func(t *testing.T) {
				w := shop(t)
				failOnce(w, ledgermem.Operation(at), wrong)
				if answer := w.Do(t, event(t)); answer.Status < 500 {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
				settlesTo201(t, w)
			})
		}
	}
	for name, step := range map[string]operationtest.Behaviour{
		"before the effect": operationtest.PanicBefore, "after the effect": operationtest.PanicAfter,
	} {
		t.Run("crash points: the driver panics "+name, func(t *testing.T) {
			w := shop(t)
			w.Driver.Script(step)
			if answer := w.Do(t, event(t)); answer.Status < 500 {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
			w.Do(t, event(t)).Fails(t, 409, "SVC0005", "c-1001", correlator)
			settlesTo201(t, w)
		})
	}
	for name, then := range map[string]operationtest.Behaviour{
		"and had no effect": operationtest.Vanish, "and had its effect": operationtest.Succeed, "and was refused": operationtest.Down,
	} {
		t.Run("crash points: the driver comes back after the lease "+name, func(t *testing.T) { comesBackLate(t, then) })
	}
}

// comesBackLate lets the first invocation hang in the operator's call until a second one has settled the charge.
func comesBackLate(t *testing.T, then operationtest.Behaviour) {
	w := shop(t)
	entered, release, first := make(chan struct{}), make(chan struct{}), make(chan operationtest.Answer)
	w.Driver.Script(operationtest.Hold(entered, release, then))
	golden := event(t)
	go func() { first <- w.Do(t, golden) }()
	<-entered
	w.Clock.Advance(lease)
	answer := w.Do(t, event(t)).Succeeds(t, 201)
	close(release)
	late := <-first
	if late.Status != 201 || late.Body != answer.Body {
		t.Errorf("the late one answers %d %s", late.Status, late.Body)
	}
	w.Do(t, event(t)).Replays(t, answer)
	w.OneEffect(t, effect, 2)
}

// settlesTo201 lets the lease lapse and retries.
func settlesTo201(t *testing.T, w *operationtest.World) {
	t.Helper()
	w.Clock.Advance(lease)
	w.Do(t, event(t)).Succeeds(t, 201)
	w.OneEffect(t, effect, len(w.Driver.Calls()))
	if got := w.Only(t, ledger.Charge).State; got != ledger.Done {
		t.Errorf("state %s", got)
	}
}

// failOnce makes the next call of a store's operation fail.
func failOnce(w *operationtest.World, at ledgermem.Operation, wrong ledgermem.Fault) {
	done := false
	w.Ledger.SetFaults(func(call ledgermem.Call) ledgermem.Fault {
		if done || call.Operation != at {
			return ledgermem.None
		}
		done = true
		return wrong
	})
}

// decision "unknown-sticks": a charge that may have been sent is not given back because the store fails on the retry.
func TestReferenceFailsOnRetry(t *testing.T) {
	w := shop(t)
	w.Driver.Script(operationtest.LoseAnswer)
	w.Do(t, event(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
	failOnce(w, ledgermem.ClaimReference, ledgermem.Error)
	w.Do(t, event(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
	w.Do(t, other(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
	w.Do(t, event(t)).Succeeds(t, 201)
	w.OneEffect(t, effect, 2)
}

func TestNoWayToTheOperator(t *testing.T) {
	w := shop(t)
	w.Driver.SetAccount("", errors.New("the secret is gone"))
	w.Do(t, event(t)).Fails(t, 500, "SVC0001", "PDK_SMSW_0001")
	w.Driver.SetAccount("", &fault.Fault{Kind: fault.OperatorRefusedUs, Cause: errors.New("no account")})
	w.Do(t, event(t)).Fails(t, 502, "SVC0001", "PDK_SMSW_0002")
	w.Untouched(t)
	w.Merchants.Fail(errors.New("the table is gone"))
	w.Do(t, event(t)).Fails(t, 500, "SVC0001", "PDK_SMSW_0001")
	w.Untouched(t)
}
