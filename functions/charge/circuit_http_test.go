package charge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
	"mobilegateway/world/operators/sandbox"
)

// hangingOperator is the sandbox behind a server that hangs while hangs is set, until release is closed.
type hangingOperator struct {
	hangs    atomic.Bool
	requests atomic.Int64
	arrived  chan struct{}
	release  chan struct{}
}

// startHangingOperator connects the fixture's pipeline with an operator over HTTP.
func startHangingOperator(t *testing.T, w *operationtest.Fixture) *hangingOperator {
	t.Helper()
	o := &hangingOperator{arrived: make(chan struct{}), release: make(chan struct{})}
	const token = "operator-access-token"
	stub, err := sandbox.New(sandbox.Config{Tokens: []string{token}, BaseURL: "http://127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		o.requests.Add(1)
		if o.hangs.Load() {
			o.arrived <- struct{}{}
			<-o.release
		}
		stub.Handler().ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	accounts := fmt.Sprintf(`{"sandbox":{"current":"a1","accounts":{"a1":`+
		`{"base_url":%q,"access_token":%q,"service_id":"S"}}}}`, server.URL, token)
	w.Pipeline.Operators = drivers.NewDirectory(secret.Static(accounts), nil, w.Clock.Now)
	return o
}

func chargeNumber(t *testing.T, number string) *operationtest.Event {
	t.Helper()
	return newEvent(t).SetBodyPart(correlator, "c-"+number).SetBodyPart(reference, "r-"+number)
}

// decision "circuit-breaker": ten charges hang, more than the share, so the next new one is refused at once. Nothing of
// it is stored or sent, and earlier keys get their responses. The ten end early: they are unknown, as after a time-out.
// Then probes close the circuit.
func TestHangingOperator(t *testing.T) {
	w := newFixture(t)
	circuits, o := w.UseCircuits(), startHangingOperator(t, w)
	w.Pipeline.Circuits.MaxSlow = 9
	stored := w.Send(t, chargeNumber(t, "stored")).AssertStatus(t, 201)

	o.hangs.Store(true)
	var hanging sync.WaitGroup
	var ended [10]operationtest.Response
	for i := range ended {
		e := chargeNumber(t, fmt.Sprint("hangs-", i))
		hanging.Go(func() { ended[i] = w.Send(t, e) })
		<-o.arrived
	}
	w.Send(t, chargeNumber(t, "stored")).AssertRepeatOf(t, stored) // the circuit is still closed
	circuits.FireTimers(time.Second)

	requests, entries := o.requests.Load(), len(w.Ledger.All())
	quickest := time.Hour // of several, because other programs run on the machine
	for range 5 {
		began := time.Now()
		response := w.Send(t, chargeNumber(t, "new"))
		quickest = min(quickest, time.Since(began))
		response.AssertCircuitOpen(t)
	}
	if quickest > 50*time.Millisecond {
		t.Errorf("the quickest refusal took %s, want less than 50ms", quickest)
	}
	operationtest.AssertEqual(t, "requests of the operator", o.requests.Load(), requests)
	operationtest.AssertEqual(t, "entries", len(w.Ledger.All()), entries)
	w.Send(t, chargeNumber(t, "stored")).AssertRepeatOf(t, stored)
	w.Send(t, chargeNumber(t, "hangs-3")).AssertError(t, 409, "SVC0005", "c-hangs-3", correlator)

	circuits.FireTimers(0)
	hanging.Wait()
	for _, response := range ended {
		response.AssertStatus(t, 504)
	}
	operationtest.AssertEqual(t, "unknown charges", len(w.Ledger.All()), entries)
	w.Send(t, chargeNumber(t, "hangs-3")).AssertStatus(t, 504)
	operationtest.AssertEqual(t, "requests of the operator", o.requests.Load(), requests)

	o.hangs.Store(false)
	close(o.release)
	for range 4 { // the circuit is read again beside refusals
		w.Clock.Advance(7 * time.Second)
		w.Send(t, chargeNumber(t, "new"))
	}
	w.Clock.Advance(3 * time.Second)
	for i := range 3 {
		w.Send(t, chargeNumber(t, fmt.Sprint("probe-", i))).AssertStatus(t, 201)
	}
	w.AssertCounted(t, "ClosedCircuits")
	swaps := circuits.Store.CallCount("Swap")
	w.Send(t, chargeNumber(t, "after")).AssertStatus(t, 201)
	operationtest.AssertEqual(t, "writes of a closed circuit", circuits.Store.CallCount("Swap"), swaps)
}
