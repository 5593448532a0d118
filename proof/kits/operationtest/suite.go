package operationtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// LeaseDuration is longer than any lease.
const LeaseDuration = time.Minute

// Suite checks what all operations do alike when requests are repeated, run in parallel or crash.
type Suite struct {
	NewFixture func(testing.TB) *Fixture
	NewEvent   func(testing.TB) *Event // the golden request
	OtherEvent func(testing.TB) *Event // another body under the same idempotency key
	Kind       ledger.Kind
	Effect     string   // of the golden request at the operator: "charge DemoShop.c-1001"
	Key        []string // the variables of a duplicate's fault: the idempotency key, and the part that carries it
	Writes     []string // the ledger's writes of one request, in order
	Platform   string   // of the golden request
	// Replays is true if a repeat of a successful request replays its response, false if it is a 409 with a Location.
	Replays bool
}

// SendFirst sends the golden request, which succeeds, and returns the fixture and the response.
func (s Suite) SendFirst(t testing.TB) (*Fixture, Response) {
	t.Helper()
	w := s.NewFixture(t)
	return w, w.Send(t, s.NewEvent(t)).AssertStatus(t, 201)
}

// LoseFirst sends the golden request, whose response by the operator is lost: it is applied, and the merchant gets 504.
func (s Suite) LoseFirst(t testing.TB) *Fixture {
	t.Helper()
	w := s.NewFixture(t).WithBehaviours(LoseResponse)
	w.Send(t, s.NewEvent(t)).AssertUnknown(t)
	return w
}

// CheckInFlight repeats a request while the operator is called: the repeat is 409 with Retry-After, and nothing is sent
// twice (decision "in-flight"). during runs more checks in that time; it may be nil.
func (s Suite) CheckInFlight(t *testing.T, during func(*Fixture)) {
	t.Helper()
	w := s.NewFixture(t)
	finish := s.sendBlocked(t, w, Succeed)
	for name, e := range map[string]*Event{"the same request": s.NewEvent(t), "another body": s.OtherEvent(t)} {
		t.Run("decision in-flight: "+name, func(t *testing.T) {
			response := w.Send(t, e)
			response.AssertError(t, 409, "SVC0005", s.Key...)
			response.AssertHeader(t, "Retry-After", "1")
		})
	}
	if during != nil {
		during(w)
	}
	response := finish().AssertStatus(t, 201)
	s.assertRepeat(t, w.Send(t, s.NewEvent(t)), response)
	w.AssertSingleEffect(t, s.Effect, 1)
}

// sendBlocked sends the golden request until it is in the operator's call. finish continues with a behaviour and
// returns the response.
func (s Suite) sendBlocked(t *testing.T, w *Fixture, behaviour Behaviour) (finish func() Response) {
	t.Helper()
	entered, release, first := make(chan struct{}), make(chan struct{}), make(chan Response)
	w.Driver.SetBehaviours(func(apply func()) operator.Result {
		close(entered)
		<-release
		return behaviour(apply)
	})
	golden := s.NewEvent(t)
	go func() { first <- w.Send(t, golden) }()
	<-entered
	return func() Response {
		close(release)
		return <-first
	}
}

// CheckParallel sends 100 requests at once, with one body and with two: there is one effect and one response, and the
// other requests are 409.
func (s Suite) CheckParallel(t *testing.T) {
	t.Helper()
	const requests = 100
	bodies := []string{s.NewEvent(t).Body(), s.OtherEvent(t).Body()}
	for name, kinds := range map[string]int{"equal requests": 1, "two bodies under one key": 2} {
		t.Run("concurrency: 100 parallel, "+name, func(t *testing.T) {
			w := s.NewFixture(t)
			responses := make([]Response, requests)
			var group sync.WaitGroup
			for i := range responses {
				e := s.NewEvent(t).SetRawBody(bodies[i%kinds])
				group.Go(func() { responses[i] = w.Send(t, e) })
			}
			group.Wait()
			w.AssertSingleEffect(t, s.Effect, 1)
			created, distinct := 0, map[string]bool{}
			for _, response := range responses {
				if response.Status != 201 {
					response.AssertError(t, 409, "SVC0005", s.Key...)
					continue
				}
				created++
				distinct[response.Body] = true
			}
			if len(distinct) != 1 || !s.Replays && created != 1 {
				t.Errorf("%d responses with status 201 and %d bodies, want one body", created, len(distinct))
			}
		})
	}
}

// CheckCrashes lets the function crash or fail at each of its outside calls, at the ledger and at the operator. The
// lease lapses and the merchant retries: there is one effect under one key.
func (s Suite) CheckCrashes(t *testing.T) {
	t.Helper()
	s.checkCrashPoints(t)
	for _, write := range s.Writes {
		for _, injected := range []storetest.Fault{storetest.FailedBeforeApply, storetest.LostResponse} {
			t.Run(fmt.Sprintf("crash points: fault %d in %s, then the retry", injected, write), func(t *testing.T) {
				w := s.NewFixture(t)
				w.Ledger.FailNext(storetest.Operation(write), injected)
				w.Send(t, s.NewEvent(t)).AssertServerError(t)
				s.checkRetry(t, w)
			})
		}
	}
	for name, behaviour := range map[string]Behaviour{
		"before the effect": PanicBefore, "after the effect": PanicAfter,
	} {
		t.Run("crash points: the driver panics "+name, func(t *testing.T) {
			w := s.NewFixture(t).WithBehaviours(behaviour)
			w.Send(t, s.NewEvent(t)).AssertServerError(t)
			inFlight := w.Send(t, s.NewEvent(t))
			inFlight.AssertError(t, 409, "SVC0005", s.Key...)
			inFlight.AssertHeader(t, "Retry-After", "1")
			s.checkRetry(t, w)
		})
	}
	for name, behaviour := range map[string]Behaviour{
		"without an effect": LoseRequest, "with an effect": LoseResponse, "with a success": Succeed,
		"with a 503": RespondUnavailable,
	} {
		t.Run("crash points: the driver returns after the lease "+name, func(t *testing.T) {
			s.checkDelayedReturn(t, behaviour)
		})
	}
}

// checkCrashPoints lets the function crash before and after each write of the ledger, once by a panic and once by a
// call that returns only after the retry.
func (s Suite) checkCrashPoints(t *testing.T) {
	t.Helper()
	for _, write := range s.Writes {
		for _, point := range []string{"before " + write, "after " + write} {
			t.Run("crash points: a panic "+point, func(t *testing.T) {
				w := s.NewFixture(t)
				w.Ledger.SetCrashPoint(point, func() { panic("the function crashed") })
				w.Send(t, s.NewEvent(t)).AssertStatus(t, 500)
				s.checkRetry(t, w)
			})
			t.Run("crash points: no return "+point, func(t *testing.T) {
				w, e := s.NewFixture(t), s.NewEvent(t)
				reached, release, delayed := make(chan struct{}), make(chan struct{}), make(chan Response)
				w.Ledger.SetCrashPoint(point, func() { close(reached); <-release })
				go func() { delayed <- w.Send(t, e) }()
				<-reached
				s.checkRetry(t, w)
				close(release)
				<-delayed
				w.AssertSingleEffect(t, s.Effect, len(w.Driver.Calls()))
			})
		}
	}
}

// checkDelayedReturn blocks the first invocation in the operator's call until a second one has recorded the outcome.
func (s Suite) checkDelayedReturn(t *testing.T, behaviour Behaviour) {
	t.Helper()
	w := s.NewFixture(t)
	finish := s.sendBlocked(t, w, behaviour)
	w.Clock.Advance(LeaseDuration)
	response := w.Send(t, s.NewEvent(t)).AssertStatus(t, 201)
	if late := finish().AssertStatus(t, 201); late.Body != response.Body {
		t.Errorf("the delayed response is %s, want %s", late.Body, response.Body)
	}
	if s.Replays {
		w.Send(t, s.NewEvent(t)).AssertRepeatOf(t, response)
	}
	w.AssertSingleEffect(t, s.Effect, 2)
}

// checkRetry lets the lease lapse and sends the request again: 201, or 409 with a Location if the first attempt was
// stored as sent.
func (s Suite) checkRetry(t *testing.T, w *Fixture) {
	t.Helper()
	w.Clock.Advance(LeaseDuration)
	response := w.Send(t, s.NewEvent(t))
	if response.Status != 201 && (response.Status != 409 || s.Replays || response.Header["Location"] == "") {
		t.Errorf("the retry gets %d %s", response.Status, response.Body)
	}
	w.AssertSingleEffect(t, s.Effect, len(w.Driver.Calls()))
	w.AssertState(t, s.Kind, ledger.Done)
}

// FuzzRequest sends any request while the operator succeeds, and checks for one of two results. One is 201 with the
// writes of one request and one operator call, which a repeat does not make again. The other is a fault of the client
// without side effects.
func (s Suite) FuzzRequest(t *testing.T, e *Event) {
	t.Helper()
	w := s.NewFixture(t)
	response := w.Send(t, e)
	switch {
	case response.Status == 201:
		claims := len(s.Writes) - 2
		w.AssertCallCounts(t, 1, claims, 1, 1)
		s.assertRepeat(t, w.Send(t, e), response)
		w.AssertCallCounts(t, 2, claims, 1, 1)
	case response.Status >= 500 || response.Status < 400:
		t.Errorf("got %d %s, want 201 or a fault of the client", response.Status, response.Body)
	default:
		if _, ok := response.Exception(); !ok {
			t.Errorf("not an error of the API: %s", response.Body)
		}
		w.AssertNoSideEffects(t)
	}
}

// assertRepeat checks the response to a repeat of a successful request.
func (s Suite) assertRepeat(t testing.TB, repeat, first Response) {
	t.Helper()
	if s.Replays {
		repeat.AssertRepeatOf(t, first)
	} else {
		repeat.AssertStatus(t, 409)
	}
}
