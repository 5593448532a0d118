package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// latest is the longest delay that a round draws: what waits no longer is an answer that comes late.
const latest = 300 * time.Millisecond

// seededRun is what one pass over the calls gave: the answers, and the callbacks by payment and SMS.
type seededRun struct {
	answers, callbacks []string
}

// runSeededCalls makes charges and payments one after another under the steering, which is set anew, with fresh keys.
// pace is how much time passes after each payment; the purchaser's SMS goes out as soon as the payment is told, or all
// at the end.
func runSeededCalls(r *testSandbox, name, steering string, pace time.Duration, smsLast bool) seededRun {
	r.Helper()
	r.callControlPort("PUT", "/sandbox/v1/steering", steering, 200, nil)
	var planned seededRun
	messages := make([]string, 12)
	send := func(i int) { messages[i] = r.sms(fmt.Sprint("Shop_", name, i), "5555").summary() }
	for i := range messages {
		planned.answers = append(planned.answers, r.charge(fmt.Sprint("Shop.", name, i), "5555").summary())
		planned.answers = append(planned.answers, r.pay("ussd", fmt.Sprint("Shop_", name, i), "0700005555").summary())
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
					statuses = append(statuses, "before the answer")
				}
			}
			planned.callbacks = append(planned.callbacks, strings.Join(statuses, " "))
		}
	}
	planned.answers = append(planned.answers, messages...)
	return planned
}

// The same seed and the same calls one after another give the same unkindness, whatever the time between them, and
// whenever callbacks go out and the purchaser's SMS come in.
func TestSameSeedInjectsSameFaults(t *testing.T) {
	var mu sync.Mutex
	var delays []time.Duration
	r := newTestSandbox(t, func(c *Config) {
		timers := c.After
		c.After = func(d time.Duration, f func()) {
			if d <= 0 || d > latest {
				timers(d, f)
				return
			}
			mu.Lock()
			delays = append(delays, d)
			mu.Unlock()
			go f() // an answer that comes late: the calls of this test are not worth the wait
		}
	})
	steering := `{"seed":7,"delay":0.2,"max_delay_ms":300,"duplicate":0.3,"reorder":0.2,"lost_answer":0.2,"unavailable":0.1}`
	var first seededRun
	var late []time.Duration
	for i, c := range []struct {
		pace    time.Duration
		smsLast bool
	}{{5 * time.Second, false}, {0, true}, {700 * time.Millisecond, true}, {300 * time.Millisecond, false}} {
		got := runSeededCalls(r, string(rune('a'+i)), steering, c.pace, c.smsLast)
		mu.Lock()
		slices.Sort(delays) // the purchasers' SMS came in another order
		mode := delays
		delays = nil
		mu.Unlock()
		if i == 0 {
			first, late = got, mode
			continue
		}
		if !slices.Equal(got.answers, first.answers) || !slices.Equal(mode, late) {
			t.Errorf("round %d: answers %v, late by %v\nfirst: %v, %v", i+1, got.answers, mode, first.answers, late)
		}
		if !slices.Equal(got.callbacks, first.callbacks) {
			t.Errorf("round %d: callbacks %q\nfirst: %q", i+1, got.callbacks, first.callbacks)
		}
	}
	all := strings.Join(append(first.answers, first.callbacks...), "\n")
	for _, want := range []string{"cut", "503", "201", "successful successful", "before the answer", deliveredToTerminal} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if len(late) == 0 {
		t.Error("nothing came late")
	}
	if other := runSeededCalls(r, "z", strings.Replace(steering, "7", "8", 1), 0, false); slices.Equal(other.answers, first.answers) {
		t.Error("another seed, the same answers")
	}
}

// A rate decides about its own unkindness alone: what is steered besides changes nothing in it, nor do calls of another
// kind or repeats of a key.
func TestFaultRatesAreIndependent(t *testing.T) {
	texts := func(steering string, between func(r *testSandbox, i int)) string {
		r := newTestSandbox(t)
		r.callControlPort("PUT", "/sandbox/v1/steering", steering, 200, nil)
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
		"payments":  texts(`{"seed":3,"unavailable":0.3}`, func(r *testSandbox, i int) { r.pay("ussd", fmt.Sprint("Shop_", i), "0700005555") }),
		"repeats":   texts(`{"seed":3,"unavailable":0.3}`, func(r *testSandbox, i int) { r.charge("Shop.0", "5555") }),
	} {
		if got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
	if !strings.Contains(want, "503") || strings.ReplaceAll(texts(`{"seed":3,"unavailable":0.3,"lost_answer":0.5}`, nothing), "cut", "201") != want {
		t.Errorf("a lost answer changes who is unavailable: %s", want)
	}
}
