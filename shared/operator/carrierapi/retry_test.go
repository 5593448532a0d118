package carrierapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
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
				driver, _ := newDriver(peer.URL)
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
			driver, _ := newDriver(peer.URL)
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

func TestUnauthorized(t *testing.T) {
	type steps = []operatortest.Responder
	refused := operatortest.Respond(http.StatusUnauthorized, requestError("900901"))
	forbidden, bare := operatortest.Respond(403, requestError("900908")), operatortest.Respond(401, "<html>")
	const rejected, noOutcome = fault.IntegrationRejected, fault.OutcomeUnknown
	cases := []struct {
		name      string
		steps     steps
		fresh     string
		outcome   operator.Outcome
		kind      fault.Kind
		requests  int
		refreshes int
	}{
		{"the token has changed", steps{refused, nil}, "new-token", operator.Succeeded, 0, 2, 1},
		{"the token has not changed", steps{refused}, "", operator.NotApplied, rejected, 1, 1},
		{"the new one is refused too", steps{refused}, "new-token", operator.NotApplied, rejected, 2, 1},
		{"the second request is cut", steps{refused, operatortest.CloseConnection()}, "new-token",
			operator.Unknown, noOutcome, 2, 1},
		{"a bare 401", steps{bare}, "new-token", operator.Unknown, noOutcome, 1, 0},
		{"403 does not concern the token", steps{forbidden}, "new-token", operator.NotApplied, rejected, 1, 0},
	}
	for _, op := range operatortest.Operations(sandbox, "a1") {
		for _, c := range cases {
			t.Run(op.Name+"/"+c.name, func(t *testing.T) {
				steps := slices.Clone(c.steps)
				for i := range steps {
					if steps[i] == nil {
						steps[i] = success(op)
					}
				}
				peer := operatortest.NewStubOperator(t)
				peer.SetResponses(steps...)
				driver, v := newDriver(peer.URL)
				v.refreshedToken = c.fresh
				result := call(t, driver, op)
				wantOutcome(t, result, c.outcome, c.kind)
				requests := peer.Requests()
				if len(requests) != c.requests || v.refreshes != c.refreshes {
					t.Fatalf("requests: %d, want %d; refreshes: %d, want %d",
						len(requests), c.requests, v.refreshes, c.refreshes)
				}
				last := requests[len(requests)-1].Header.Get("Authorization")
				if c.requests == 2 && last != "Bearer new-token" {
					t.Error("the second request has the old token")
				}
			})
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
			driver, _ := newDriver(address)
			wantOutcome(t, call(t, driver, op), operator.NotApplied, fault.OperatorUnavailable)
		}
	}
}

// Without usable credentials nothing is sent, and the fault is ours.
func TestCredentialsFail(t *testing.T) {
	account := func(base, token string) string {
		return `{"sandbox":{"current":"a1","accounts":{"a1":` +
			`{"base_url":"` + base + `","access_token":"` + token + `"}}}}`
	}
	cases := map[string]string{
		"not JSON":             "hunter2",
		"null":                 "null",
		"of another form":      `{"sandbox":"hunter2"}`,
		"no operator":          `{}`,
		"no current account":   `{"sandbox":{"accounts":{}}}`,
		"no token":             account("https://op.example", ""),
		"no base URL":          account("", "hunter2"),
		"plain http outside":   account("http://op.example", "hunter2"),
		"plain http by number": account("http://192.0.2.1", "hunter2"),
		"password in the URL":  account("https://u:hunter2@op.example", "hunter2"),
		"query in the URL":     account("https://op.example/?a=hunter2", "hunter2"),
		"unreadable":           "",
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			driver, v := newDriver("http://127.0.0.1:1")
			v.override, v.down = raw, raw == ""
			for _, op := range operatortest.Operations(sandbox, "") {
				result := call(t, driver, op)
				wantOutcome(t, result, operator.NotApplied, fault.IntegrationRejected)
				if strings.Contains(result.Fault.Error(), "hunter2") {
					t.Errorf("the fault contains a secret: %q", result.Fault)
				}
			}
			_, err := driver.FindAccount(t.Context(), sandbox, "")
			if f := fault.FromError(err); f == nil || f.Kind != fault.IntegrationRejected {
				t.Errorf("account: %v", err)
			}
		})
	}
}

// An account that the cached secret lacks causes one refresh.
func TestUnknownAccountRefreshesTheSecret(t *testing.T) {
	driver, v := newDriver("https://op.example")
	v.override = `{}`
	if _, err := driver.FindAccount(t.Context(), sandbox, ""); err == nil || v.refreshes != 1 {
		t.Fatalf("%v, %d refreshes", err, v.refreshes)
	}
	v.override = ""
	if name, err := driver.FindAccount(t.Context(), "SANDBOX", ""); err != nil || name != "a1" || v.refreshes != 1 {
		t.Fatalf("%q, %v, %d refreshes", name, err, v.refreshes)
	}
}
