package simulate

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

type exchange = outside.Exchange

// RoundTrip implements http.RoundTripper: it parks, lets the model serve the request, and waits for the response.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := readBody(request)
	if err != nil {
		return nil, err
	}
	before := request.Context().Err()
	t.world.gate(t.instance, routeCall(request))
	after := request.Context().Err()
	if before != nil || after != nil && !t.sendsLate {
		return nil, cmp.Or(before, after)
	}
	t.world.checker.countRequest(t.instance.function, request)
	response := t.serve(request, body)
	if wait := delayOf(response); wait > 0 {
		_ = t.instance.Sleep(request.Context(), wait) // Result knows whether the context has ended
	}
	return response.Result(request)
}

// readBody reads the body of a request, nil for none.
func readBody(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	defer func() { _ = request.Body.Close() }()
	return io.ReadAll(request.Body)
}

// delayOf is how long the sender waits for a response, at most.
func delayOf(response exchange) time.Duration {
	if response.Failure == outside.NoResponse {
		return time.Hour
	}
	return response.Delay
}

// routes are the parts of paths that name a request, and the names of the calls.
var routes = []struct{ part, call string }{
	{"/transactions/amount", "http charge"}, {"/requests", "http sms"}, {"/getStatus", "http getStatus"},
	{"/mobilemoney/v1", "http payment"}, {"/requesttopay/", "http getStatus"}, {"/requesttopay", "http payment"},
	{"token", "http token"}, {"/v2/deposits/", "http getStatus"}, {"/v2/deposits", "http payment"},
	{"/checkout/sessions/", "http getStatus"}, {"/checkout/sessions", "http payment"},
	{"/webpayment", "http payment"}, {"/transactionstatus", "http getStatus"}, {"/mp/init", "http prepare"},
	{"/mp/paymentstatus", "http getStatus"}, {"/mp/pay", "http payment"},
}

// routeCall names a request without its ids.
func routeCall(request *http.Request) string {
	for _, route := range routes {
		if strings.Contains(request.URL.Path, route.part) {
			return route.call
		}
	}
	return "http notification"
}

// serveOperator passes a request to the operator of its host.
func (w *World) serveOperator(request *http.Request, body []byte) exchange {
	if p := w.platforms[request.URL.Host]; p != nil {
		return p.serve(request, body)
	}
	o := w.operators[request.URL.Host]
	if o == nil {
		w.Fail("a request to the unknown operator %s", request.URL.Host)
		return exchange{Failure: outside.ConnectionRefused}
	}
	w.checker.checkOperatorBody(o, body)
	response := o.Serve(time.Now(), request, body, w.Tape)
	if w.HasStory {
		w.Logf("operator %s: %s: %s", o.Name, routeCall(request), describe(response))
	}
	w.scheduleOperator(o)
	return response
}

// serveMerchant passes a notification to the merchant's server.
func (w *World) serveMerchant(request *http.Request, body []byte) exchange {
	server := w.servers[request.URL.Host]
	if server == nil {
		w.Fail("invariant 5: a notification to the denied address %s", request.URL)
		return exchange{Failure: outside.ConnectionRefused}
	}
	return server.Serve(time.Now(), request, body, w.Tape)
}

func describe(response exchange) string {
	if response.Failure != outside.NoFailure {
		return fmt.Sprintf("no response (%d)", response.Failure)
	}
	return fmt.Sprint(response.Status)
}

// tableOutcomes are the faults of a table's call, the most frequent ones first.
var tableOutcomes = []model.Outcome{
	model.AppliedResponseLost, model.NotAppliedTimeout, model.AppliedThenCut, model.NotAppliedCut,
	model.InternalError, model.AppliedInternalError, model.Throttled, model.AppliedLate,
}

// outcomeNames are the names of the faults in stories and counts.
var outcomeNames = map[model.Outcome]string{
	model.AppliedResponseLost: "applied, no response", model.NotAppliedTimeout: "not applied, no response",
	model.AppliedThenCut: "applied, connection cut", model.NotAppliedCut: "not applied, connection cut",
	model.InternalError: "not applied, 500", model.AppliedInternalError: "applied, 500",
	model.Throttled: "throttled", model.AppliedLate: "applied late", model.Conflict: "transaction conflict",
}

// tableGate parks a task before an attempt at a table, and decides the attempt's fate.
func (w *World) tableGate(i *instance, call model.Call) model.Decision {
	w.gate(i, tableCall(call))
	w.writer = i
	decision := model.Decision{}
	if w.isUnreadable(call) {
		w.Count("table: unreadable profile")
		decision.Outcome = model.InternalError
		return decision
	}
	if call.Writes && call.Table == ledgerTable && w.readOnly.Contains(time.Now()) {
		w.Count("table: no write of the ledger")
		decision.Outcome = model.InternalError
		return decision
	}
	if !w.FaultsOn() {
		return decision
	}
	if (call.Index != "" || !call.Writes && !call.Consistent) && w.Tape.Happens("index lags", w.Rates.Lag) {
		decision.Lag = model.Lag{Writes: 1 + w.Tape.Choose("hidden writes", 3), Age: 5 * time.Second}
	}
	if !w.Tape.Happens("table fault", w.Rates.Table) {
		return decision
	}
	decision.Outcome = tableOutcomes[w.Tape.Choose("kind of table fault", len(tableOutcomes))]
	if call.Operation == "TransactWriteItems" && w.Tape.Choose("transaction conflict", 3) == 2 {
		decision.Outcome = model.Conflict
		decision.ConflictAt = w.Tape.Choose("conflict at", len(call.Items))
	}
	w.amountsMayStay = w.amountsMayStay || call.Table == limitTable
	w.Count("table: " + outcomeNames[decision.Outcome])
	w.Logf("%s: %s: %s", i.Name, call, outcomeNames[decision.Outcome])
	return decision
}

// isUnreadable reports whether a call needs a profile that cannot be read.
func (w *World) isUnreadable(call model.Call) bool {
	if call.Table != merchantTable || len(w.unreadable) == 0 {
		return false
	}
	return slices.ContainsFunc(call.Items, func(target model.Target) bool {
		broken, found := w.unreadable[strings.TrimPrefix(target.Key, "merchant#")]
		return found && broken.Contains(time.Now())
	})
}

// tableCall names a call of a table without its keys.
func tableCall(call model.Call) string {
	name := tableCalls[call.Operation+call.Table+call.Index]
	if name == "" {
		return "table " + call.Operation + " " + call.Table + call.Index
	}
	return name
}

// tableCalls are the names of the most frequent calls.
var tableCalls = map[string]string{
	"Queryledger" + ledgerdynamo.IndexDue: "table Query due", "GetItem" + ledgerTable: "table GetItem ledger",
	"PutItem" + ledgerTable: "table PutItem ledger", "GetItem" + merchantTable: "table GetItem merchants",
}

// applyLate applies a write some time after its client gave up, or never.
func (w *World) applyLate(i *instance, call model.Call, apply func()) {
	wait := tape.Draw(w.Tape, "late write", 100*time.Millisecond, time.Second, 3*time.Second, time.Minute)
	w.Kernel.At(time.Now().Add(wait), "late write", func() {
		w.Logf("late write applied: %s", call)
		w.writer = i
		apply()
	})
}
