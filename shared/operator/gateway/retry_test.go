package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/operatortest"
)

// A reused connection that is cut before any answer: one re-send under the same key, whose answer counts as that of a
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
		{"503 proves nothing about the first", operatortest.Respond(503, requestError("SVC0001")), operator.Unknown, false},
		{"400 neither", operatortest.Respond(400, requestError("SVC0002")), operator.Unknown, false},
		{"cut again", operatortest.CloseConnection(), operator.Unknown, false},
		{"in flight", operatortest.Respond(409, requestError("SVC0005"), "Retry-After", "1"), operator.Unknown, false},
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
					want = operator.Succeeded // the first send is what it is a duplicate of
				}
				if result.Outcome != want || (result.Outcome == operator.Succeeded) != (result.Fault == nil) {
					t.Fatalf("got %d: %v", result.Outcome, result.Fault)
				}
				requests := peer.Requests()
				if len(requests) != 3 || requests[1].Body != requests[2].Body {
					t.Fatalf("%d requests", len(requests))
				}
			})
		}
	}
}

// No re-send where repeats are not declared safe, where no time is left, and where an answer had begun.
func TestNoRetry(t *testing.T) {
	cases := []struct {
		name     string
		operator string
		time     time.Duration
		step     operatortest.Responder
	}{
		{"not declared safe", "elsewhere", 15 * time.Second, operatortest.CloseConnection()},
		{"no time left", sandbox, 1900 * time.Millisecond, operatortest.CloseConnection()},
		{"an answer had begun", sandbox, 15 * time.Second, operatortest.RespondRaw("HTTP/1.1 2")},
		{"half an answer", sandbox, 15 * time.Second, operatortest.RespondTruncated(201, "{...}")},
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
			result, _ := op.Call(ctx, driver)
			if result.Outcome != operator.Unknown || len(peer.Requests()) != 2 {
				t.Fatalf("outcome %d, %d requests", result.Outcome, len(peer.Requests()))
			}
		})
	}
}

func TestUnauthorized(t *testing.T) {
	refused := operatortest.Respond(http.StatusUnauthorized, requestError("900901"))
	cases := []struct {
		name     string
		steps    []operatortest.Responder
		fresh    string
		outcome  operator.Outcome
		kind     fault.Kind
		requests int
		refreshs int
	}{
		{"the token has changed", []operatortest.Responder{refused, nil}, "new-token", operator.Succeeded, 0, 2, 1},
		{"it has not", []operatortest.Responder{refused}, "", operator.NotApplied, fault.IntegrationRejected, 1, 1},
		{"the new one is refused too", []operatortest.Responder{refused}, "new-token", operator.NotApplied, fault.IntegrationRejected, 2, 1},
		{"the second send is cut", []operatortest.Responder{refused, operatortest.CloseConnection()}, "new-token", operator.Unknown, fault.OutcomeUnknown, 2, 1},
		{"a bare 401", []operatortest.Responder{operatortest.Respond(401, "<html>")}, "new-token", operator.Unknown, fault.OutcomeUnknown, 1, 0},
		{"403 is not about the token", []operatortest.Responder{operatortest.Respond(403, requestError("900908"))}, "new-token", operator.NotApplied, fault.IntegrationRejected, 1, 0},
	}
	for _, op := range operatortest.Operations(sandbox, "a1") {
		for _, c := range cases {
			t.Run(op.Name+"/"+c.name, func(t *testing.T) {
				steps := append([]operatortest.Responder(nil), c.steps...)
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
				if result.Outcome != c.outcome || (result.Fault != nil && result.Fault.Kind != c.kind) {
					t.Fatalf("got %d: %v", result.Outcome, result.Fault)
				}
				requests := peer.Requests()
				if len(requests) != c.requests || v.refreshes != c.refreshs {
					t.Fatalf("%d requests, %d refreshs", len(requests), v.refreshes)
				}
				if last := requests[len(requests)-1].Header.Get("Authorization"); c.requests == 2 && last != "Bearer new-token" {
					t.Error("the second send has the old token")
				}
			})
		}
	}
}

// A failed TLS handshake and a name that does not exist are no connections: nothing was sent.
func TestNoConnection(t *testing.T) {
	untrustedServer := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came") }))
	defer untrustedServer.Close()
	untrustedServer.Config.ErrorLog = nil
	for name, address := range map[string]string{"unknown authority": untrustedServer.URL, "no such name": "https://operator.invalid"} {
		for _, op := range operatortest.Operations(sandbox, "") {
			driver, _ := newDriver(address)
			result := call(t, driver, op)
			if result.Outcome != operator.NotApplied || result.Fault.Kind != fault.OperatorUnavailable {
				t.Errorf("%s %s: got %d: %v", name, op.Name, result.Outcome, result.Fault)
			}
		}
	}
}

// Without usable credentials nothing is sent, and the fault is ours.
func TestCredentialsFail(t *testing.T) {
	account := func(base, token string) string {
		return `{"sandbox":{"current":"a1","accounts":{"a1":{"base_url":"` + base + `","access_token":"` + token + `"}}}}`
	}
	cases := map[string]string{
		"not JSON":             "hunter2",
		"null":                 "null",
		"of another shape":     `{"sandbox":"hunter2"}`,
		"no operator":          `{}`,
		"no current account":   `{"sandbox":{"accounts":{}}}`,
		"no token":             account("https://op.example", ""),
		"no base URL":          account("", "hunter2"),
		"plain http outside":   account("http://op.example", "hunter2"),
		"plain http by number": account("http://192.0.2.1", "hunter2"),
		"password in the URL":  account("https://u:hunter2@op.example", "hunter2"),
		"query in the URL":     account("https://op.example/?a=hunter2", "hunter2"),
		"closed":               "",
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			driver, v := newDriver("http://127.0.0.1:1")
			v.override, v.down = raw, raw == ""
			for _, op := range operatortest.Operations(sandbox, "") {
				result := call(t, driver, op)
				if result.Outcome != operator.NotApplied || result.Fault.Kind != fault.IntegrationRejected {
					t.Errorf("%s: got %d: %v", op.Name, result.Outcome, result.Fault)
				}
				if strings.Contains(result.Fault.Error(), "hunter2") {
					t.Errorf("a secret is in %q", result.Fault)
				}
			}
			_, err := driver.CurrentAccountID(t.Context(), sandbox)
			if f := fault.FromError(err); f == nil || f.Kind != fault.IntegrationRejected {
				t.Errorf("account: %v", err)
			}
		})
	}
}

// An account that the secret at hand does not hold yet is looked for in a fresh one.
func TestUnknownAccountRefreshesTheSecret(t *testing.T) {
	driver, v := newDriver("https://op.example")
	v.override = `{}`
	if _, err := driver.CurrentAccountID(t.Context(), sandbox); err == nil || v.refreshes != 1 {
		t.Fatalf("%v, %d refreshs", err, v.refreshes)
	}
	v.override = ""
	if name, err := driver.CurrentAccountID(t.Context(), "SANDBOX"); err != nil || name != "a1" || v.refreshes != 1 {
		t.Fatalf("%q, %v, %d refreshs", name, err, v.refreshes)
	}
}
