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
	w := shop(t)
	entered, release, first := make(chan struct{}), make(chan struct{}), make(chan operationtest.Answer)
	w.Driver.Script(operationtest.Hold(entered, release, operationtest.Succeed))
	golden := web(t)
	go func() { first <- w.Do(t, golden) }()
	<-entered
	for name, e := range map[string]*operationtest.Event{"the same request": web(t), "another body": web(t).Set("amount", 1)} {
		t.Run("decision in-flight: "+name, func(t *testing.T) {
			answer := w.Do(t, e)
			answer.Fails(t, 409, "SVC0005", order, "order_id")
			if answer.Header["Retry-After"] != "1" {
				t.Errorf("Retry-After %q", answer.Header["Retry-After"])
			}
		})
	}
	close(release)
	answer := <-first
	w.Do(t, web(t)).Replays(t, answer)
	w.OneEffect(t, effect, 1)
}

func TestParallel(t *testing.T) {
	const requests = 100
	for _, channel := range []string{"web", "ussd"} {
		t.Run("concurrency: 100 parallel requests, two bodies, "+channel, func(t *testing.T) {
			w := shop(t)
			statuses, bodies := make([]int, requests), map[string]bool{}
			var mutex sync.Mutex
			var group sync.WaitGroup
			for i := range statuses {
				e := load(t, channel).Set("amount", 1500+i%2)
				group.Go(func() {
					answer := w.Do(t, e)
					mutex.Lock()
					defer mutex.Unlock()
					statuses[i] = answer.Status
					if answer.Status == 201 {
						bodies[answer.Body] = true
					}
				})
			}
			group.Wait()
			w.OneEffect(t, effect, 1)
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
	operationtest.Crash(t, shop, web, effect, "Insert", "Replace")
	operationtest.Crash(t, shop, ussd, effect, "Insert", "Replace")
	for _, channel := range []string{"web", "ussd"} {
		for _, at := range []ledgermem.Operation{ledgermem.Insert, ledgermem.Replace} {
			for _, fault := range []ledgermem.Fault{ledgermem.Error, ledgermem.LostAnswer} {
				t.Run(fmt.Sprintf("crash points: fault %d in %s on %s", fault, at, channel), func(t *testing.T) {
					w := shop(t)
					failOnce(w, at, fault)
					if answer := w.Do(t, load(t, channel)); answer.Status < 500 {
						t.Errorf("%d %s", answer.Status, answer.Body)
					}
					settlesTo201(t, w, channel)
				})
			}
		}
		for name, step := range map[string]operationtest.Behaviour{
			"before": operationtest.PanicBefore, "after": operationtest.PanicAfter,
		} {
			t.Run("crash points: the driver panics "+name+" the effect on "+channel, func(t *testing.T) {
				w := shop(t)
				w.Driver.Script(step)
				if answer := w.Do(t, load(t, channel)); answer.Status < 500 {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
				settlesTo201(t, w, channel)
			})
		}
		t.Run("crash points: the driver comes back after the lease on "+channel, func(t *testing.T) { comesBackLate(t, channel) })
	}
}

func comesBackLate(t *testing.T, channel string) {
	w := shop(t)
	entered, release, first := make(chan struct{}), make(chan struct{}), make(chan operationtest.Answer)
	w.Driver.Script(operationtest.Hold(entered, release, operationtest.LoseAnswer))
	golden := load(t, channel)
	go func() { first <- w.Do(t, golden) }()
	<-entered
	w.Clock.Advance(lease)
	answer := w.Do(t, load(t, channel)).Succeeds(t, 201)
	close(release)
	late := <-first
	if late.Status != 201 || late.Body != answer.Body {
		t.Errorf("the late one answers %d %s", late.Status, late.Body)
	}
	w.OneEffect(t, effect, 2)
}

func settlesTo201(t *testing.T, w *operationtest.World, channel string) {
	t.Helper()
	w.Clock.Advance(lease)
	w.Do(t, load(t, channel)).Succeeds(t, 201)
	w.OneEffect(t, effect, len(w.Driver.Calls()))
}

// failOnce makes the next call of a store's operation fail.
func failOnce(w *operationtest.World, at ledgermem.Operation, fault ledgermem.Fault) {
	done := false
	w.Ledger.SetFaults(func(call ledgermem.Call) ledgermem.Fault {
		if done || call.Operation != at {
			return ledgermem.None
		}
		done = true
		return fault
	})
}

func TestNoWayToTheOperator(t *testing.T) {
	w := shop(t)
	w.Driver.SetAccount("", errors.New("the secret is gone"))
	w.Do(t, web(t)).Fails(t, 500, "SVC0001", "PDK_SMSW_0001")
	w.Untouched(t)
}
