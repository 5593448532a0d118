package sms_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
)

// lease is longer than any reservation lives.
const lease = time.Minute

func other(t testing.TB) *operationtest.Event {
	t.Helper()
	return event(t).Set(text, "another")
}

func duplicate(t testing.TB, answer operationtest.Answer, location string) {
	t.Helper()
	answer.Fails(t, 409, "SVC0005", "s-1001", correlator)
	if answer.Header["Location"] != location || answer.Header["Retry-After"] != "" {
		t.Errorf("Location %q, Retry-After %q", answer.Header["Location"], answer.Header["Retry-After"])
	}
}

// decision "sms-duplicate".
func TestDuplicate(t *testing.T) {
	t.Run("decision sms-duplicate: nothing is sent, Location names the first", func(t *testing.T) {
		w := shop(t)
		first := w.Do(t, event(t)).Succeeds(t, 201)
		duplicate(t, w.Do(t, event(t)), first.Header["Location"])
		duplicate(t, w.Do(t, other(t)), first.Header["Location"])
		duplicate(t, w.Do(t, event(t).Header("X-Operator-ISE2", "someone else")), first.Header["Location"])
		w.OneEffect(t, effect, 1)
	})
	t.Run("decision sms-duplicate: of another sender, Location names the first's", func(t *testing.T) {
		w := shop(t)
		first := w.Do(t, event(t)).Succeeds(t, 201)
		duplicate(t, w.Do(t, event(t).Param("senderAddress", "tel:+22599").Set(sender, "tel:+22599")), first.Header["Location"])
	})
	t.Run("decision sms-duplicate: two merchants may use the same correlator", func(t *testing.T) {
		w := shop(t)
		w.Do(t, event(t)).Succeeds(t, 201)
		w.Do(t, event(t).Header("Authorization", operationtest.OtherToken)).Succeeds(t, 201)
		if got := fmt.Sprint(w.Driver.Effects()); got != "[sms DemoShop.s-1001 sms OtherShop.s-1001]" {
			t.Errorf("effects %s", got)
		}
	})
	t.Run("decision sms-duplicate: a final refusal is replayed", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.Refuse("POL0001", "Not enough credit"))
		first := w.Do(t, event(t))
		first.Fails(t, 403, "POL0001", "Not enough credit")
		w.Do(t, event(t)).Replays(t, first)
		duplicate(t, w.Do(t, other(t)), "")
		w.Counts(t, 3, 0, 1, 1)
	})
	t.Run("decision retention: after it the correlator is free", func(t *testing.T) {
		w := shop(t)
		w.Do(t, event(t)).Succeeds(t, 201)
		w.Clock.Advance(retention + time.Second)
		w.Do(t, event(t)).Succeeds(t, 201)
	})
}

// decision "outcomes", "charge-unknown" and "unknown-sticks" as they hold for SMS.
func TestUnknown(t *testing.T) {
	unknown := func(t *testing.T, answer operationtest.Answer) {
		t.Helper()
		answer.Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		if answer.Header["Retry-After"] == "" {
			t.Error("no Retry-After")
		}
	}
	t.Run("decision sms-duplicate: an unknown one may be retried", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer, operationtest.Down)
		unknown(t, w.Do(t, event(t)))
		unknown(t, w.Do(t, event(t)))
		first := w.Do(t, event(t)).Succeeds(t, 201)
		duplicate(t, w.Do(t, event(t)), first.Header["Location"])
		w.OneEffect(t, effect, 3)
	})
	t.Run("decision outcomes: 409 duplicate on our re-send is done", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer, operationtest.SayDuplicate)
		unknown(t, w.Do(t, event(t)))
		first := w.Do(t, event(t)).Succeeds(t, 201)
		duplicate(t, w.Do(t, event(t)), first.Header["Location"])
		w.OneEffect(t, effect, 2)
	})
	t.Run("decision outcomes: 409 duplicate on our first send is unknown, with an alarm", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.SayDuplicate)
		unknown(t, w.Do(t, event(t)))
		if w.LastLine(t)["Unknowns"] != 1.0 || w.Only(t, ledger.SMS).State != ledger.Unknown {
			t.Errorf("line %v", w.LastLine(t))
		}
	})
	t.Run("decision outcomes: 409 duplicate after a release is unknown", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.Down, operationtest.SayDuplicate)
		w.Do(t, event(t)).Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
		unknown(t, w.Do(t, event(t)))
	})
	t.Run("another body while unknown is 409 and never sent", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		unknown(t, w.Do(t, event(t)))
		duplicate(t, w.Do(t, other(t)), "")
		w.OneEffect(t, effect, 1)
	})
	for _, header := range []string{"gw-alias", "X-Operator-ISE2"} {
		t.Run("decision fingerprint: another "+header+" while unknown is never sent", func(t *testing.T) {
			w := shop(t)
			w.Driver.Script(operationtest.LoseAnswer)
			unknown(t, w.Do(t, event(t)))
			duplicate(t, w.Do(t, event(t).Header(header, "someone else")), "")
			w.Do(t, event(t).Header("gw-token", "renewed")).Succeeds(t, 201)
			w.OneEffect(t, effect, 2)
		})
	}
	t.Run("decision sms-receipts: a receipt settles it", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		unknown(t, w.Do(t, event(t)))
		e := w.Only(t, ledger.SMS)
		e.Receipt(ledger.DeliveredToNetwork, w.Clock.Now())
		w.Ledger.Put(e)
		w.Do(t, event(t)).Fails(t, 409, "SVC0005", "s-1001", correlator)
		w.OneEffect(t, effect, 1)
	})
	t.Run("decision released: the same request takes over, another is 409", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.Down)
		w.Do(t, event(t)).Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
		duplicate(t, w.Do(t, other(t)), "")
		w.Do(t, event(t)).Succeeds(t, 201)
		w.OneEffect(t, effect, 2)
	})
}

func TestParallel(t *testing.T) {
	const requests = 100
	for name, kinds := range map[string]int{"equal requests": 1, "two bodies under one key": 2} {
		t.Run("decision sms-duplicate: of 100 parallel one is 201, "+name, func(t *testing.T) {
			w := shop(t)
			statuses := make([]int, requests)
			var group sync.WaitGroup
			for i := range statuses {
				e := event(t).Set(text, fmt.Sprint("m", i%kinds))
				group.Go(func() { statuses[i] = w.Do(t, e).Status })
			}
			group.Wait()
			count := map[int]int{}
			for _, status := range statuses {
				count[status]++
			}
			if count[201] != 1 || count[409] != requests-1 {
				t.Errorf("statuses %v", count)
			}
			w.OneEffect(t, effect, 1)
		})
	}
}

// TestCrashes lets the function die at each of its outside calls; the lease lapses, and the merchant retries.
func TestCrashes(t *testing.T) {
	operationtest.Crash(t, shop, event, effect, "Insert", "Replace")
	for _, at := range []ledgermem.Operation{ledgermem.Insert, ledgermem.Replace} {
		for _, wrong := range []ledgermem.Fault{ledgermem.Error, ledgermem.LostAnswer} {
			t.Run(fmt.Sprintf("crash points: fault %d in %s", wrong, at), func(t *testing.T) {
				w := shop(t)
				done := false
				w.Ledger.SetFaults(func(call ledgermem.Call) ledgermem.Fault {
					if done || call.Operation != at {
						return ledgermem.None
					}
					done = true
					return wrong
				})
				if answer := w.Do(t, event(t)); answer.Status < 500 {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
				settles(t, w)
			})
		}
	}
	for name, step := range map[string]operationtest.Behaviour{"before": operationtest.PanicBefore, "after": operationtest.PanicAfter} {
		t.Run("crash points: the driver panics "+name+" the effect", func(t *testing.T) {
			w := shop(t)
			w.Driver.Script(step)
			w.Do(t, event(t))
			answer := w.Do(t, event(t))
			answer.Fails(t, 409, "SVC0005", "s-1001", correlator)
			if answer.Header["Retry-After"] != "1" {
				t.Error("decision in-flight: no Retry-After")
			}
			settles(t, w)
		})
	}
	t.Run("crash points: the driver comes back after the lease", comesBackLate)
}

func comesBackLate(t *testing.T) {
	w := shop(t)
	entered, release, first := make(chan struct{}), make(chan struct{}), make(chan operationtest.Answer)
	w.Driver.Script(operationtest.Hold(entered, release, operationtest.Succeed))
	golden := event(t)
	go func() { first <- w.Do(t, golden) }()
	<-entered
	w.Clock.Advance(lease)
	answer := w.Do(t, event(t)).Succeeds(t, 201)
	close(release)
	if late := <-first; late.Status != 201 || late.Body != answer.Body {
		t.Errorf("the late one answers %d %s", late.Status, late.Body)
	}
	w.OneEffect(t, effect, 2)
}

// settles lets the lease lapse and retries: 201, or 409 where the first attempt was stored as done.
func settles(t *testing.T, w *operationtest.World) {
	t.Helper()
	w.Clock.Advance(lease)
	if answer := w.Do(t, event(t)); answer.Status != 201 {
		answer.Fails(t, 409, "SVC0005", "s-1001", correlator)
		if answer.Header["Location"] == "" {
			t.Error("decision sms-duplicate: no Location")
		}
	}
	w.OneEffect(t, effect, len(w.Driver.Calls()))
}
