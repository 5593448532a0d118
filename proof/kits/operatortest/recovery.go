package operatortest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// tokenRefused: a token or a key that is refused before the call is processed. The call is sent once more only with a
// new token, or with renewed credentials.
func (s Suite) tokenRefused(t *testing.T) {
	if s.TokenRefusedResponse == nil {
		t.Skip("no response of the platform proves that it did not process a call")
	}
	refused := s.TokenRefusedResponse
	for _, op := range s.operations("", false) {
		for _, c := range []struct {
			name    string
			renewed map[string]any
			steps   []Responder
			want    operator.Outcome
			sends   int
		}{
			{"in the middle", nil, []Responder{refused, s.SuccessResponse(op)}, operator.NotApplied, 1},
			{"renewed secret", s.Renewed, []Responder{refused, s.SuccessResponse(op)}, operator.Succeeded, 2},
			{"twice", s.Renewed, []Responder{refused}, operator.NotApplied, 2},
			{"cut after the renewal", s.Renewed, []Responder{refused, CloseConnection()}, operator.Unknown, 2},
		} {
			t.Run(op.Name+"/"+c.name, func(t *testing.T) {
				stub := s.Stub(t, c.steps...)
				if s.Preparatory != nil && c.renewed == nil { // a new token replaces the refused one
					c.want, c.sends = operator.Succeeded, 2
				}
				accounts := &changingSecret{s.secret(stub.URL), s.With(c.renewed).secret(stub.URL)}
				result := s.runCall(t, s.driver(t, accounts, nil), op)
				sent := stub.Requests()
				if result.Outcome != c.want || len(sent) != c.sends {
					t.Fatalf("outcome %d, %d requests; want %d, %d", result.Outcome, len(sent), c.want, c.sends)
				}
				if c.renewed != nil && cmp.Equal(sent[0].Header, sent[1].Header) {
					t.Error("the second request has the refused credentials")
				}
			})
		}
	}
}

// noNewToken: a call whose token was refused is not sent again if the exchange for another one fails.
func (s Suite) noNewToken(t *testing.T) {
	if s.TokenMargin == 0 || s.TokenRefusedResponse == nil {
		t.Skip("the platform exchanges no tokens")
	}
	for name, exchange := range map[string]Responder{
		"down": Respond(http.StatusInternalServerError, ""), "refused": Respond(http.StatusUnauthorized, ""),
	} {
		for _, op := range s.operations("", false) {
			stub, exchanges := s.Stub(t, s.TokenRefusedResponse), 0
			stub.preparatory = func(r *http.Request) Responder {
				if exchanges++; exchanges == 1 || !isExchange(r) {
					return s.Preparatory(r)
				}
				return exchange
			}
			if s.expectOutcome(t, stub, op, operator.NotApplied); exchanges < 2 {
				t.Errorf("%s, %s: no second exchange", op.Name, name)
			}
		}
	}
}

// lookupRenewed: a lookup is made once more with a new token after any 401, because it moves no money.
func (s Suite) lookupRenewed(t *testing.T) {
	if s.Lookup == nil || s.TokenMargin == 0 {
		t.Skip("the platform has no lookup, or exchanges no tokens")
	}
	stub := s.Stub(t, Respond(http.StatusUnauthorized, "{}"), s.lookupResponse(s.Lookup.successWord()))
	found := s.LookUp(t, stub, s.statusCall())
	if sent := len(stub.Requests()); found.Status != ledger.Successful || sent != 2 {
		t.Errorf("status %q after %d requests: %v", found.Status, sent, found.Cause)
	}
}

// rotatedCredentials: other credentials are used for the next call, with a token of their own.
func (s Suite) rotatedCredentials(t *testing.T) {
	for _, op := range s.operations("", false) {
		stub := s.Stub(t, s.SuccessResponse(op))
		accounts := &changingSecret{value: s.secret(stub.URL)}
		driver := s.driver(t, accounts, nil)
		s.runCall(t, driver, op)
		accounts.value = s.With(s.Renewed).secret(stub.URL)
		s.runCall(t, driver, op)
		const header = "Authorization"
		if sent := stub.Requests(); len(sent) != 2 || sent[0].Header.Get(header) == sent[1].Header.Get(header) {
			t.Errorf("%s: %d requests, want two with different credentials", op.Name, len(sent))
		}
	}
}

// isExchange reports whether a request exchanges credentials for a token.
func isExchange(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), "Basic ")
}

// tokenMargin: a token is replaced a margin before its end, at most half of its life.
func (s Suite) tokenMargin(t *testing.T) {
	if s.TokenMargin == 0 {
		t.Skip("the platform exchanges no tokens")
	}
	op := s.operations("", false)[0]
	for life, cached := range map[string]time.Duration{"3600": time.Hour - s.TokenMargin, "240": 2 * time.Minute} {
		for idle, want := range map[time.Duration]int{cached - time.Millisecond: 1, cached: 2} {
			exchanges, now := 0, startTime()
			s.Now = func() time.Time { return now }
			stub := s.Stub(t, s.SuccessResponse(op))
			stub.preparatory = func(r *http.Request) Responder {
				if !isExchange(r) {
					return s.Preparatory(r)
				}
				exchanges++
				return Respond(http.StatusOK, `{"access_token":"t","expires_in":`+life+`}`)
			}
			driver := s.Driver(t, stub.URL)
			s.runCall(t, driver, op)
			now = now.Add(idle)
			s.runCall(t, driver, op)
			if exchanges != want {
				t.Errorf("%d exchanges of tokens for %s s, the second call after %s; want %d",
					exchanges, life, idle, want)
			}
		}
	}
}

// noToken: without a token nothing is sent. Only a refusal concerns our credentials.
func (s Suite) noToken(t *testing.T) {
	if s.Preparatory == nil {
		t.Skip("the platform exchanges no tokens")
	}
	for name, responder := range map[string]Responder{
		"refused": Respond(http.StatusUnauthorized, `{"error":"invalid_client"}`), "cut": CloseConnection(),
		"down": Respond(http.StatusServiceUnavailable, ""), "HTML": Respond(http.StatusOK, "<html>"),
		"no token": Respond(http.StatusOK, "{}"),
	} {
		kind := fault.OperatorUnavailable
		if name == "refused" {
			kind = fault.IntegrationRejected
		}
		for _, op := range s.operations("", false) {
			stub, exchanges := s.Stub(t, s.SuccessResponse(op)), 0
			stub.preparatory = func(r *http.Request) Responder {
				if s.Preparatory(r) == nil {
					return nil
				}
				exchanges++
				return responder
			}
			result := s.expectOutcome(t, stub, op, operator.NotApplied)
			if exchanges != 1 || result.Fault.Kind != kind {
				t.Errorf("%s, %s: %d exchanges: %v", op.Name, name, exchanges, result.Fault)
			}
			if driver, ok := s.Driver(t, stub.URL).(operator.Preparer); ok {
				_, result := driver.Prepare(t.Context(), s.pay(op, ""))
				s.CheckProof(t, result, Proof{Outcome: operator.NotApplied, Kind: kind})
			}
			if s.Lookup != nil {
				if found := s.LookUp(t, stub, s.statusCall()); found.Responded() || found.Cause == nil {
					t.Errorf("%s, %s: lookup %+v", op.Name, name, found)
				}
			}
			if sent := len(stub.Requests()); sent != 0 {
				t.Errorf("%s, %s: %d requests without a token", op.Name, name, sent)
			}
		}
	}
}

// pay is the sample payment of an operation's channel with the driver's data.
func (s Suite) pay(op Operation, driverData string) operator.PayCall {
	call := SamplePay(s.Platform, "", op.Name)
	call.DriverData = driverData
	return call
}

// crashes: the process ends in each of its requests, and a new one retries as the gateway does. A crash before the
// business request applied nothing. After one in it the same key is sent, or nothing.
func (s Suite) crashes(t *testing.T) {
	for i, op := range s.operations("", false) {
		for crashAt := 1; crashAt <= 4; crashAt++ {
			stub, requests, business := s.Stub(t, s.SuccessResponse(op)), 0, false
			ctx, cancel := context.WithCancel(t.Context())
			stub.preparatory = func(r *http.Request) Responder {
				respond := Responder(nil)
				if s.Preparatory != nil {
					respond = s.Preparatory(r)
				}
				if requests++; requests != crashAt {
					return respond
				}
				business = respond == nil
				cancel()
				return CloseConnection()
			}
			driverData, result := s.attempt(ctx, t, stub, op)
			cancel()
			if requests < crashAt {
				break // the call has no more requests
			}
			want := operator.NotApplied
			if business {
				want = operator.Unknown
			}
			if result.Outcome != want {
				t.Errorf("%s: crash in request %d: outcome %d, want %d", op.Name, crashAt, result.Outcome, want)
			}
			s.retry(t, stub, operations(s.Platform, "", driverData, business)[i], op, business)
		}
	}
}

// attempt prepares a call and makes it, and returns the driver's data that the entry has then.
func (s Suite) attempt(
	ctx context.Context, t *testing.T, stub *StubOperator, op Operation,
) (driverData string, result operator.Result) {
	driver := s.Driver(t, stub.URL)
	if preparer, ok := driver.(operator.Preparer); ok {
		driverData, result = preparer.Prepare(ctx, s.pay(op, ""))
		if result.Outcome != operator.Succeeded {
			return "", result
		}
		return driverData, operator.Pay(ctx, driver, s.pay(op, driverData)).Result
	}
	return s.DriverData, op.Call(ctx, driver).Result
}

// retry makes a call again in a new process. After an attempt that may have been applied, it needs a platform that
// declares repeats, or one that refuses a known key.
func (s Suite) retry(t *testing.T, stub *StubOperator, op, first Operation, mayRepeat bool) {
	if mayRepeat && rowOf(s.Platform).ResendWindow == 0 && op.Name != "sms" {
		return // lostResponse: the gateway looks it up instead
	}
	stub.preparatory = s.Preparatory
	stub.ClearRequests()
	stub.SetResponses(s.SuccessResponse(op))
	result := operator.Result{}
	if mayRepeat {
		result = s.runCall(t, s.Driver(t, stub.URL), op)
	} else {
		_, result = s.attempt(t.Context(), t, stub, first)
	}
	sent := stub.Requests()
	for _, request := range sent {
		all := request.Body + request.Path + request.Header.Get("X-Reference-Id")
		if rowOf(s.Platform).ResendWindow > 0 && !strings.Contains(all, op.UpstreamKey) {
			t.Errorf("%s: a retry under another key", op.Name)
		}
	}
	if !mayRepeat && (result.Outcome != operator.Succeeded || len(sent) != 1) {
		t.Errorf("%s: retry with outcome %d after %d requests: %v", op.Name, result.Outcome, len(sent), result.Fault)
	}
	if mayRepeat && result.Outcome != operator.Succeeded && result.Outcome != operator.Unknown {
		t.Errorf("%s: a retry of an unknown call with outcome %d", op.Name, result.Outcome)
	}
}

// duplicate: after a lost response the platform knows the key. The outcome stays unknown, and a lookup follows at once.
func (s Suite) duplicate(t *testing.T) {
	if s.DuplicateResponse == nil {
		t.Skip("the platform reports no duplicate")
	}
	for _, op := range s.operations("", true) {
		stub := s.Stub(t, s.DuplicateResponse)
		result := s.runCall(t, s.Driver(t, stub.URL), op)
		if result.Outcome != operator.Unknown || !result.DuplicateKey {
			t.Errorf("%s: outcome %d, duplicate %v", op.Name, result.Outcome, result.DuplicateKey)
		}
		if s.Lookup == nil {
			continue
		}
		stub.SetResponses(s.lookupResponse(s.Lookup.successWord()))
		if found := s.LookUp(t, stub, s.statusCall()); found.Status == "" {
			t.Errorf("%s: the lookup at once has no status: %v", op.Name, found.Cause)
		}
	}
}
