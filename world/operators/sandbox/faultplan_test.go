package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// seededRun is the responses and callbacks of one round of calls.
type seededRun struct {
	responses, callbacks []string
}

// runSeededCalls sets the steering and makes charges and payments in sequence, with fresh keys. pace is the time after
// each payment. The SMS of the payer follows its payment, or all SMS come last.
func runSeededCalls(r *testSandbox, name, steering string, pace time.Duration, smsLast bool) seededRun {
	r.Helper()
	r.control("PUT /steering", steering, 200, nil)
	var planned seededRun
	messages := make([]string, 12)
	send := func(i int) { messages[i] = r.sms(fmt.Sprint("Shop_", name, i), "5555").summary() }
	for i := range messages {
		planned.responses = append(planned.responses, r.charge(fmt.Sprint("Shop.", name, i), "5555").summary())
		planned.responses = append(planned.responses,
			r.pay("ussd", fmt.Sprint("Shop_", name, i), "0700005555").summary())
		r.clock.Advance(pace)
		if !smsLast {
			send(i)
		}
	}
	r.clock.Advance(time.Minute)
	for i := range slices.Backward(messages) {
		if smsLast {
			send(i)
		}
	}
	r.clock.Advance(time.Minute)
	for i := range messages {
		for _, view := range r.transactions(fmt.Sprint("Shop_", name, i)) {
			statuses := []string{view.Kind}
			for _, c := range view.Callbacks {
				statuses = append(statuses, c.Status)
				if view.Kind == kindPayment && len(c.Attempts) > 0 && c.Attempts[0].At.Equal(view.CreatedAt) {
					statuses = append(statuses, "before the response")
				}
			}
			planned.callbacks = append(planned.callbacks, strings.Join(statuses, " "))
		}
	}
	planned.responses = append(planned.responses, messages...)
	return planned
}

// The same seed and the same sequence of calls give the same faults, for any time between the calls, the callbacks and
// the SMS of the payers.
func TestSameSeedInjectsSameFaults(t *testing.T) {
	r := newTestSandbox(t)
	steering := `{"seed":7,"delay":0.2,"max_delay_ms":300,"duplicate":0.3,"reorder":0.2,` +
		`"lost_answer":0.2,"unavailable":0.1}`
	var first seededRun
	var late []time.Duration
	for i, c := range []struct {
		pace    time.Duration
		smsLast bool
	}{{5 * time.Second, false}, {0, true}, {700 * time.Millisecond, true}, {300 * time.Millisecond, false}} {
		got := runSeededCalls(r, string(rune('a'+i)), steering, c.pace, c.smsLast)
		sorted := r.delays
		slices.Sort(sorted) // the SMS of the payers came in another order
		r.delays = nil
		if i == 0 {
			first, late = got, sorted
			continue
		}
		equal(t, "responses with the same seed", got.responses, first.responses)
		equal(t, "callbacks with the same seed", got.callbacks, first.callbacks)
		equal(t, "delays with the same seed", sorted, late)
	}
	all := strings.Join(append(first.responses, first.callbacks...), "\n")
	contains(t, "all faults", all, "cut", "503", "201", "successful successful", "before the response",
		deliveredToTerminal)
	if len(late) == 0 {
		t.Error("no response was late")
	}
	begun := newTestSandbox(t, func(c *Config) { c.Faults = r.sandbox.injector.plan.FaultSettings })
	equal(t, "settings at the start", begun.sandbox.injector.plan.FaultSettings, r.sandbox.injector.plan.FaultSettings)
	if other := runSeededCalls(r, "z", strings.Replace(steering, "7", "8", 1), 0, false); slices.Equal(other.responses,
		first.responses) {
		t.Error("another seed gives the same responses")
	}
}

// A rate changes only its own fault. Other rates, calls of another kind and repeats of a key do not change it.
func TestFaultRatesAreIndependent(t *testing.T) {
	texts := func(steering string, between func(r *testSandbox, i int)) string {
		r := newTestSandbox(t)
		r.control("PUT /steering", steering, 200, nil)
		var all []string
		for i := range 40 {
			all = append(all, r.charge(fmt.Sprint("Shop.", i), "5555").summary())
			between(r, i)
		}
		return strings.Join(all, " ")
	}
	nothing := func(*testSandbox, int) {}
	want := texts(`{"seed":3,"unavailable":0.3}`, nothing)
	for name, got := range map[string]string{
		"callbacks": texts(`{"seed":3,"unavailable":0.3,"reorder":0.5,"duplicate":0.5}`, nothing),
		"payments": texts(`{"seed":3,"unavailable":0.3}`,
			func(r *testSandbox, i int) { r.pay("ussd", fmt.Sprint("Shop_", i), "0700005555") }),
		"repeats": texts(`{"seed":3,"unavailable":0.3}`, func(r *testSandbox, i int) { r.charge("Shop.0", "5555") }),
	} {
		equal(t, "503 responses, with another rate for "+name, got, want)
	}
	contains(t, "injected 503", want, "503")
	cut := texts(`{"seed":3,"unavailable":0.3,"lost_answer":0.5}`, nothing)
	equal(t, "503 responses, with lost responses", strings.ReplaceAll(cut, "cut", "201"), want)
}
