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

// leaseDuration is longer than any reservation lives.
const leaseDuration = time.Minute

func otherMerchantEvent(t testing.TB) *operationtest.Event {
	t.Helper()
	return newEvent(t).SetBodyPart(text, "another")
}

func assertDuplicate(t testing.TB, response operationtest.Response, location string) {
	t.Helper()
	response.AssertError(t, 409, "SVC0005", "s-1001", correlator)
	if response.Header["Location"] != location || response.Header["Retry-After"] != "" {
		t.Errorf("Location %q, Retry-After %q", response.Header["Location"], response.Header["Retry-After"])
	}
}

// decision "sms-duplicate".
func TestDuplicate(t *testing.T) {
	t.Run("decision sms-duplicate: nothing is sent, Location names the first", func(t *testing.T) {
		w := newFixture(t)
		first := w.Send(t, newEvent(t)).AssertStatus(t, 201)
		assertDuplicate(t, w.Send(t, newEvent(t)), first.Header["Location"])
		assertDuplicate(t, w.Send(t, otherMerchantEvent(t)), first.Header["Location"])
		assertDuplicate(t, w.Send(t, newEvent(t).SetHeader("X-Operator-ISE2", "someone else")), first.Header["Location"])
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision sms-duplicate: of another sender, Location names the first's", func(t *testing.T) {
		w := newFixture(t)
		first := w.Send(t, newEvent(t)).AssertStatus(t, 201)
		assertDuplicate(t, w.Send(t, newEvent(t).SetPathParameter("senderAddress", "tel:+22599").SetBodyPart(sender, "tel:+22599")), first.Header["Location"])
	})
	t.Run("decision sms-duplicate: two merchants may use the same correlator", func(t *testing.T) {
		w := newFixture(t)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.Send(t, newEvent(t).SetHeader("Authorization", operationtest.OtherToken)).AssertStatus(t, 201)
		if got := fmt.Sprint(w.Driver.Effects()); got != "[sms DemoShop.s-1001 sms OtherShop.s-1001]" {
			t.Errorf("effects %s", got)
		}
	})
	t.Run("decision sms-duplicate: a final refusal is replayed", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.RefuseFinally("POL0001", "Not enough credit"))
		first := w.Send(t, newEvent(t))
		first.AssertError(t, 403, "POL0001", "Not enough credit")
		w.Send(t, newEvent(t)).AssertRepeatOf(t, first)
		assertDuplicate(t, w.Send(t, otherMerchantEvent(t)), "")
		w.AssertCallCounts(t, 3, 0, 1, 1)
	})
	t.Run("decision retention: after it the correlator is free", func(t *testing.T) {
		w := newFixture(t)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.Clock.Advance(retention + time.Second)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
	})
}

// decision "outcomes", "charge-unknown" and "unknown-sticks" as they hold for SMS.
func TestUnknownOutcome(t *testing.T) {
	unknown := func(t *testing.T, response operationtest.Response) {
		t.Helper()
		response.AssertError(t, 504, "SVC0001", "PDK_SMSW_0011")
		if response.Header["Retry-After"] == "" {
			t.Error("no Retry-After")
		}
	}
	t.Run("decision sms-duplicate: an unknown one may be retried", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.LoseResponse, operationtest.RespondUnavailable)
		unknown(t, w.Send(t, newEvent(t)))
		unknown(t, w.Send(t, newEvent(t)))
		first := w.Send(t, newEvent(t)).AssertStatus(t, 201)
		assertDuplicate(t, w.Send(t, newEvent(t)), first.Header["Location"])
		w.AssertSingleEffect(t, expectedEffect, 3)
	})
	t.Run("decision outcomes: 409 duplicate on our re-send is done", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.LoseResponse, operationtest.ReportDuplicate)
		unknown(t, w.Send(t, newEvent(t)))
		first := w.Send(t, newEvent(t)).AssertStatus(t, 201)
		assertDuplicate(t, w.Send(t, newEvent(t)), first.Header["Location"])
		w.AssertSingleEffect(t, expectedEffect, 2)
	})
	t.Run("decision outcomes: 409 duplicate on our first send is unknown, with an alarm", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.ReportDuplicate)
		unknown(t, w.Send(t, newEvent(t)))
		if w.LastLine(t)["UnknownOutcomes"] != 1.0 || w.OnlyEntry(t, ledger.SMS).State != ledger.Unknown {
			t.Errorf("line %v", w.LastLine(t))
		}
	})
	t.Run("decision outcomes: 409 duplicate after a release is unknown", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.RespondUnavailable, operationtest.ReportDuplicate)
		w.Send(t, newEvent(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
		unknown(t, w.Send(t, newEvent(t)))
	})
	t.Run("another body while unknown is 409 and never sent", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.LoseResponse)
		unknown(t, w.Send(t, newEvent(t)))
		assertDuplicate(t, w.Send(t, otherMerchantEvent(t)), "")
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	for _, header := range []string{"gw-alias", "X-Operator-ISE2"} {
		t.Run("decision fingerprint: another "+header+" while unknown is never sent", func(t *testing.T) {
			w := newFixture(t)
			w.Driver.SetBehaviours(operationtest.LoseResponse)
			unknown(t, w.Send(t, newEvent(t)))
			assertDuplicate(t, w.Send(t, newEvent(t).SetHeader(header, "someone else")), "")
			w.Send(t, newEvent(t).SetHeader("gw-token", "renewed")).AssertStatus(t, 201)
			w.AssertSingleEffect(t, expectedEffect, 2)
		})
	}
	t.Run("decision sms-receipts: a receipt settles it", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.LoseResponse)
		unknown(t, w.Send(t, newEvent(t)))
		e := w.OnlyEntry(t, ledger.SMS)
		e.ApplyReceipt(ledger.DeliveredToNetwork, w.Clock.Now())
		w.Ledger.Overwrite(e)
		w.Send(t, newEvent(t)).AssertError(t, 409, "SVC0005", "s-1001", correlator)
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision released: the same request takes over, another is 409", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.RespondUnavailable)
		w.Send(t, newEvent(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
		assertDuplicate(t, w.Send(t, otherMerchantEvent(t)), "")
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, expectedEffect, 2)
	})
}

func TestParallel(t *testing.T) {
	const requests = 100
	for name, kinds := range map[string]int{"equal requests": 1, "two bodies under one key": 2} {
		t.Run("decision sms-duplicate: of 100 parallel one is 201, "+name, func(t *testing.T) {
			w := newFixture(t)
			statuses := make([]int, requests)
			var group sync.WaitGroup
			for i := range statuses {
				e := newEvent(t).SetBodyPart(text, fmt.Sprint("m", i%kinds))
				group.Go(func() { statuses[i] = w.Send(t, e).Status })
			}
			group.Wait()
			count := map[int]int{}
			for _, status := range statuses {
				count[status]++
			}
			if count[201] != 1 || count[409] != requests-1 {
				t.Errorf("statuses %v", count)
			}
			w.AssertSingleEffect(t, expectedEffect, 1)
		})
	}
}

// TestCrashes lets the function die at each of its outside calls; the lease lapses, and the merchant retries.
func TestCrashes(t *testing.T) {
	operationtest.CheckCrashPoints(t, newFixture, newEvent, expectedEffect, "Insert", "Replace")
	for _, at := range []ledgermem.Operation{ledgermem.Insert, ledgermem.Replace} {
		for _, wrong := range []ledgermem.InjectedFault{ledgermem.FailedBeforeApply, ledgermem.LostResponse} {
			t.Run(fmt.Sprintf("crash points: fault %d in %s", wrong, at), func(t *testing.T) {
				w := newFixture(t)
				done := false
				w.Ledger.InjectFaults(func(call ledgermem.Call) ledgermem.InjectedFault {
					if done || call.Operation != at {
						return ledgermem.NoFault
					}
					done = true
					return wrong
				})
				if response := w.Send(t, newEvent(t)); response.Status < 500 {
					t.Errorf("%d %s", response.Status, response.Body)
				}
				assertRetrySettled(t, w)
			})
		}
	}
	for name, step := range map[string]operationtest.Behaviour{"before": operationtest.PanicBefore, "after": operationtest.PanicAfter} {
		t.Run("crash points: the driver panics "+name+" the effect", func(t *testing.T) {
			w := newFixture(t)
			w.Driver.SetBehaviours(step)
			w.Send(t, newEvent(t))
			response := w.Send(t, newEvent(t))
			response.AssertError(t, 409, "SVC0005", "s-1001", correlator)
			if response.Header["Retry-After"] != "1" {
				t.Error("decision in-flight: no Retry-After")
			}
			assertRetrySettled(t, w)
		})
	}
	t.Run("crash points: the driver comes back after the lease", checkDelayedReturn)
}

func checkDelayedReturn(t *testing.T) {
	w := newFixture(t)
	entered, release, first := make(chan struct{}), make(chan struct{}), make(chan operationtest.Response)
	w.Driver.SetBehaviours(operationtest.BlockUntilReleased(entered, release, operationtest.Succeed))
	golden := newEvent(t)
	go func() { first <- w.Send(t, golden) }()
	<-entered
	w.Clock.Advance(leaseDuration)
	response := w.Send(t, newEvent(t)).AssertStatus(t, 201)
	close(release)
	if late := <-first; late.Status != 201 || late.Body != response.Body {
		t.Errorf("the late one answers %d %s", late.Status, late.Body)
	}
	w.AssertSingleEffect(t, expectedEffect, 2)
}

// assertRetrySettled lets the lease lapse and retries: 201, or 409 where the first attempt was stored as done.
func assertRetrySettled(t *testing.T, w *operationtest.Fixture) {
	t.Helper()
	w.Clock.Advance(leaseDuration)
	if response := w.Send(t, newEvent(t)); response.Status != 201 {
		response.AssertError(t, 409, "SVC0005", "s-1001", correlator)
		if response.Header["Location"] == "" {
			t.Error("decision sms-duplicate: no Location")
		}
	}
	w.AssertSingleEffect(t, expectedEffect, len(w.Driver.Calls()))
}
