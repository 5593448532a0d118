package operatortest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// oversizedBytes is more than any response that a driver may read into memory, in bytes.
const oversizedBytes = 1 << 20

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	t.Run("account", s.account)
	t.Run("account fields", s.accountFields)
	for _, op := range s.operations("", false) {
		t.Run(op.Name, func(t *testing.T) {
			t.Run("outcomes", func(t *testing.T) { s.outcomes(t, op) })
			t.Run("no response", func(t *testing.T) { s.noResponse(t, op) })
			t.Run("connection refused", func(t *testing.T) { s.connectionRefused(t, op) })
			t.Run("redirect is not followed", func(t *testing.T) { s.redirect(t, op) })
			t.Run("no time left", func(t *testing.T) { s.deadlinePassed(t, op) })
			t.Run("repeats send the same", func(t *testing.T) { s.repeatedCall(t, op) })
		})
	}
	t.Run("in parallel", s.parallel)
	t.Run("lookup", s.statusLookup)
	t.Run("lookup reports", s.lookupReports)
	t.Run("callback reports", s.callbackReports)
	t.Run("token refused", s.tokenRefused)
	t.Run("no new token", s.noNewToken)
	t.Run("lookup with a refused token", s.lookupRenewed)
	t.Run("rotated credentials", s.rotatedCredentials)
	t.Run("token margin", s.tokenMargin)
	t.Run("no token", s.noToken)
	t.Run("crashes", s.crashes)
	t.Run("duplicate", s.duplicate)
	t.Run("lost response", s.lostResponse)
	t.Run("static callback", s.staticCallback)
	t.Run("rotated signature", s.rotatedSignature)
}

// outcomes: three responses prove an outcome. Any other response proves nothing, and the call is not repeated on a new
// connection.
func (s Suite) outcomes(t *testing.T, op Operation) {
	stub := s.Stub(t)
	certain := map[string]operator.Outcome{
		"success": operator.Succeeded, "refusal": operator.Refused, "not applied": operator.NotApplied,
	}
	cases := map[string]Responder{
		"success":         s.SuccessResponse(op),
		"not applied":     s.NotAppliedResponse(op),
		"cut":             CloseConnection(),
		"half a response": RespondTruncated(http.StatusCreated, `{"half":"of a response"}`),
		"not HTTP":        RespondRaw("\x00\x01 garbage\r\n\r\n"),
		"oversize":        RespondOversized(http.StatusCreated, oversizedBytes),
		"HTML":            Respond(http.StatusOK, "<html>OK</html>", "Content-Type", "text/html"),
		"empty body":      Respond(http.StatusOK, ""),
		"no content":      Respond(http.StatusNoContent, ""),
		"empty object":    Respond(http.StatusCreated, "{}"),
		"array":           Respond(http.StatusCreated, "[]"),
		"null":            Respond(http.StatusCreated, "null"),
		"two values":      Respond(http.StatusCreated, "{}{}"),
		"bare 400":        Respond(http.StatusBadRequest, ""),
		"bare 404":        Respond(http.StatusNotFound, "<html>not found</html>"),
		"bare 500":        Respond(http.StatusInternalServerError, ""),
		"bare 502":        Respond(http.StatusBadGateway, "<html>bad gateway</html>"),
		"bare 503":        Respond(http.StatusServiceUnavailable, "<html>try later</html>"),
		"bare 504":        Respond(http.StatusGatewayTimeout, ""),
	}
	if s.RefusalResponse != nil {
		cases["refusal"] = s.RefusalResponse(op)
	}
	for name, response := range cases {
		t.Run(name, func(t *testing.T) {
			stub.ClearRequests()
			stub.SetResponses(response)
			s.expectOutcome(t, stub, op, certain[name]) // Unknown for all others
		})
	}
}

// noResponse: a request without a response may have been applied. The driver returns when the context ends.
func (s Suite) noResponse(t *testing.T, op Operation) {
	stub := s.Stub(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	neverRespond := stub.NeverRespond()
	stub.SetResponses(func(w http.ResponseWriter, r *http.Request) {
		cancel() // the context ends once the request has arrived
		neverRespond(w, r)
	})
	result := op.Call(ctx, s.Driver(t, stub.URL)).Result
	s.checkFault(t, result)
	if result.Outcome != operator.Unknown {
		t.Errorf("outcome %d, want Unknown: %v", result.Outcome, result.Fault)
	}
	stub.SetResponses(neverRespond)
	short, cancelShort := context.WithTimeout(t.Context(), shortTimeout)
	defer cancelShort()
	result = op.Call(short, s.Driver(t, stub.URL)).Result
	s.checkFault(t, result)
	if result.Outcome == operator.Succeeded || result.Outcome == operator.Refused {
		t.Errorf("outcome %d without a response", result.Outcome)
	}
	if s.Preparatory == nil {
		return
	}
	stub = NewStubOperator(t, neverRespond) // which responds to no request for a token either
	noToken, cancelNoToken := context.WithTimeout(t.Context(), shortTimeout)
	defer cancelNoToken()
	s.CheckProof(t, op.Call(noToken, s.Driver(t, stub.URL)).Result, Unavailable)
}

// connectionRefused: without a connection nothing was sent.
func (s Suite) connectionRefused(t *testing.T, op Operation) {
	stub := s.Stub(t)
	stub.Close()
	result := s.expectOutcome(t, stub, op, operator.NotApplied)
	if result.Fault.Kind != fault.OperatorUnavailable {
		t.Errorf("fault %d, want OperatorUnavailable", result.Fault.Kind)
	}
}

// redirect: a redirect is an unknown response and is not followed.
func (s Suite) redirect(t *testing.T, op Operation) {
	stub, redirectTarget := s.Stub(t), NewStubOperator(t, s.SuccessResponse(op))
	for _, status := range []int{301, 303, 307, 308} {
		stub.ClearRequests()
		stub.SetResponses(Respond(status, "{}", "Location", redirectTarget.URL))
		s.expectOutcome(t, stub, op, operator.Unknown)
	}
	if len(redirectTarget.Requests()) != 0 {
		t.Error("a redirect was followed")
	}
}

// deadlinePassed: a call with an ended context sends nothing.
func (s Suite) deadlinePassed(t *testing.T, op Operation) {
	stub := s.Stub(t, s.SuccessResponse(op))
	driver := s.Driver(t, stub.URL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	result := op.Call(ctx, driver).Result
	if result.Outcome == operator.Succeeded || len(stub.Requests()) != 0 {
		t.Errorf("outcome %d after %d requests, want no request", result.Outcome, len(stub.Requests()))
	}
	s.checkFault(t, result)
}

// repeatedCall: the same call sends the same request, which contains the key.
func (s Suite) repeatedCall(t *testing.T, op Operation) {
	stub := s.Stub(t, s.SuccessResponse(op))
	driver := s.Driver(t, stub.URL)
	s.runCall(t, driver, op)
	s.runCall(t, driver, op)
	requests := stub.Requests()
	if len(requests) != 2 || requests[0].Body != requests[1].Body || requests[0].Path != requests[1].Path {
		t.Fatalf("the requests differ: %d of them", len(requests))
	}
	row := rowOf(s.Platform)
	hasKey := op.Name != "sms" || row.ResendWindow > 0
	sent := requests[0].Body + requests[0].Path + requests[0].Header.Get("X-Reference-Id")
	if hasKey && !strings.Contains(sent, op.UpstreamKey) {
		t.Error("the key is not in the request")
	}
}

// parallel: a driver serves many calls at once (for the race detector), with one token.
func (s Suite) parallel(t *testing.T) {
	stubs, exchanges := map[string]*StubOperator{}, atomic.Int32{}
	var group sync.WaitGroup
	for _, op := range s.operations("", false) {
		stub := s.Stub(t, s.SuccessResponse(op))
		stub.preparatory = func(r *http.Request) Responder {
			if s.Preparatory == nil {
				return nil
			}
			if isExchange(r) {
				exchanges.Add(1)
			}
			return s.Preparatory(r)
		}
		stubs[op.Name] = stub
		driver := s.Driver(t, stub.URL)
		for range 8 {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
				defer cancel()
				if result := op.Call(ctx, driver); result.Outcome != operator.Succeeded {
					t.Errorf("%s: %v", op.Name, result.Fault)
				}
			})
		}
	}
	group.Wait()
	for name, stub := range stubs {
		if len(stub.Requests()) != 8 {
			t.Errorf("%s: %d requests for 8 calls", name, len(stub.Requests()))
		}
	}
	if count := int(exchanges.Load()); s.TokenMargin > 0 && count != len(stubs) {
		t.Errorf("%d exchanges of tokens for the calls of %d drivers", count, len(stubs))
	}
}

// statusLookup: a lookup without a valid response reports no status.
func (s Suite) statusLookup(t *testing.T) {
	stub := s.Stub(t)
	reader, ok := s.Driver(t, stub.URL).(operator.StatusLookup)
	row := rowOf(s.Platform)
	if ok != row.HasStatusLookup {
		t.Fatalf("the row declares a status lookup: %v; the driver has one: %v", row.HasStatusLookup, ok)
	}
	if _, isVerifier := s.Driver(t, stub.URL).(operator.StaticCallbackVerifier); isVerifier != row.StaticCallbacks {
		t.Errorf("the row declares static callbacks: %v; the driver verifies them: %v", row.StaticCallbacks, isVerifier)
	}
	if !ok {
		return
	}
	for name, responder := range map[string]Responder{
		"no response": stub.NeverRespond(), "cut": CloseConnection(),
		"HTML": Respond(http.StatusOK, "<html>"), "empty": Respond(http.StatusOK, "{}"),
		"bare 404": Respond(http.StatusNotFound, ""), "bare 500": Respond(http.StatusInternalServerError, ""),
	} {
		stub.SetResponses(responder)
		ctx, cancel := context.WithTimeout(t.Context(), shortTimeout)
		response := reader.LookUpPayment(ctx, s.statusCall())
		cancel()
		if response.Cause == nil {
			t.Errorf("%s: the result has no cause", name)
		}
		response.Cause = nil
		if diff := cmp.Diff(operator.StatusResponse{}, response); diff != "" {
			t.Errorf("%s proves nothing (-want +got):\n%s", name, diff)
		}
	}
}
