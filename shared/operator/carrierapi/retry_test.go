package carrierapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/secret"
)

// A cut of a reused connection before any response causes one retry under the same key. Its response is that of a
// second attempt.
func TestLostReusedConnectionIsRetried(t *testing.T) {
	cases := []struct {
		name      string
		second    operatortest.Responder
		outcome   operator.Outcome
		duplicate bool
	}{
		{"success", nil, operator.Succeeded, false},
		{"final refusal", operatortest.Respond(403, requestError("POL1000")), operator.Refused, false},
		{"503 proves nothing", operatortest.Respond(503, requestError("SVC0001")), operator.Unknown, false},
		{"400 proves nothing", operatortest.Respond(400, requestError("SVC0002")), operator.Unknown, false},
		{"cut again", operatortest.CloseConnection(), operator.Unknown, false},
		{"pending", operatortest.Respond(409, requestError("SVC0005"), "Retry-After", "1"), operator.Unknown, false},
		{"duplicate", operatortest.Respond(409, requestError("SVC0005")), operator.Unknown, true},
	}
	for _, op := range operatortest.Operations(sandbox, "") {
		for _, c := range cases {
			t.Run(op.Name+"/"+c.name, func(t *testing.T) {
				second := c.second
				if second == nil {
					second = success(op)
				}
				peer := operatortest.NewStubOperator(t)
				peer.SetResponses(success(op), operatortest.CloseConnection(), second)
				driver := newDriver(peer.URL)
				call(t, driver, op) // opens the connection
				result := call(t, driver, op)
				want := c.outcome
				if c.duplicate && op.Name == "sms" {
					want = operator.Succeeded // it is a duplicate of the first attempt
				}
				kind := fault.OutcomeUnknown
				if want == operator.Refused {
					kind = fault.OperatorError
				}
				wantOutcome(t, result, want, kind)
				requests := peer.Requests()
				if len(requests) != 3 || requests[1].Body != requests[2].Body {
					t.Fatalf("%d requests, want three, the last two equal", len(requests))
				}
			})
		}
	}
}

// No retry if repeats are not declared safe, if no time is left, or after the first byte of a response.
func TestNoRetry(t *testing.T) {
	cases := []struct {
		name     string
		operator string
		time     time.Duration
		step     operatortest.Responder
	}{
		{"not declared safe", "elsewhere", 15 * time.Second, operatortest.CloseConnection()},
		{"no time left", sandbox, 1900 * time.Millisecond, operatortest.CloseConnection()},
		{"a response had begun", sandbox, 15 * time.Second, operatortest.RespondRaw("HTTP/1.1 2")},
		{"half a response", sandbox, 15 * time.Second, operatortest.RespondTruncated(201, "{...}")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			peer := operatortest.NewStubOperator(t)
			op := operatortest.Operations(c.operator, "")[0]
			peer.SetResponses(success(op), c.step, success(op))
			driver := newDriver(peer.URL)
			call(t, driver, op)
			ctx, cancel := context.WithTimeout(t.Context(), c.time)
			defer cancel()
			result := op.Call(ctx, driver).Result
			if result.Outcome != operator.Unknown || len(peer.Requests()) != 2 {
				t.Fatalf("outcome %d, %d requests", result.Outcome, len(peer.Requests()))
			}
		})
	}
}

// countedRefreshes is a secret that counts its refreshes.
type countedRefreshes struct {
	secret.Static
	count int
}

func (c *countedRefreshes) Refresh(context.Context) ([]byte, error) {
	c.count++
	return c.Static, nil
}

// Only a proven refusal of the token reads the credentials again. The suite has what happens with another token.
func TestUnauthorized(t *testing.T) {
	for name, c := range map[string]struct {
		respond   operatortest.Responder
		outcome   operator.Outcome
		kind      fault.Kind
		refreshes int
	}{
		"the token has not changed": {operatortest.Respond(401, requestError("900901")),
			operator.NotApplied, fault.IntegrationRejected, 1},
		"a bare 401": {operatortest.Respond(401, "<html>"), operator.Unknown, fault.OutcomeUnknown, 0},
		"403 does not concern the token": {operatortest.Respond(403, requestError("900908")),
			operator.NotApplied, fault.IntegrationRejected, 0},
	} {
		for _, op := range operatortest.Operations(sandbox, "a1") {
			peer := operatortest.NewStubOperator(t, c.respond)
			secrets := &countedRefreshes{Static: secretOf(peer.URL)}
			wantOutcome(t, call(t, driverOf(secrets), op), c.outcome, c.kind)
			if sent := len(peer.Requests()); sent != 1 || secrets.count != c.refreshes {
				t.Errorf("%s, %s: %d requests, %d refreshes", name, op.Name, sent, secrets.count)
			}
		}
	}
}

// After a failed TLS handshake or name resolution, nothing was sent.
func TestNoConnection(t *testing.T) {
	untrustedServer := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the untrusted server received a request")
	}))
	defer untrustedServer.Close()
	untrustedServer.Config.ErrorLog = nil
	for _, address := range []string{untrustedServer.URL, "https://operator.invalid"} {
		for _, op := range operatortest.Operations(sandbox, "") {
			driver := newDriver(address)
			wantOutcome(t, call(t, driver, op), operator.NotApplied, fault.OperatorUnavailable)
		}
	}
}
