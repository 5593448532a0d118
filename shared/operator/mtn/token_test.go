package mtn_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// MTN refuses credentials with 401, or with 500 and a word of its own.
func TestTokenExchangeFails(t *testing.T) {
	for want, exchanges := range (operatortest.Outcomes{
		operatortest.OurFault.Sent(0): {
			"refused":      respond(401, `{"error":"invalid api-key-very-private"}`),
			"login failed": respond(500, `{"error":"login_failed"}`),
		},
		operatortest.Unavailable.Sent(0): {
			"login failed in another field": respond(500, `{"message":"login_failed"}`),
			"down":                          respond(500, code("INTERNAL_PROCESSING_ERROR")),
		},
	}) {
		for name, exchange := range exchanges {
			own := suite()
			own.Preparatory = exchanging(exchange)
			own.CheckPayments(t, samplePay(), operatortest.Outcomes{want: {name: respond(202, "")}})
			own.CheckLookups(t, sampleLookup(), operatortest.Lookups{operatortest.Unread: {name: respond(202, "")}})
		}
	}
}

// bearerRefusals are the plausible forms of a 401 for a token. MTN documents none. isProof is true for the form of the
// API gateway in front of MTN, which proves that MTN did not see the payment.
var bearerRefusals = []struct {
	name    string
	respond operatortest.Responder
	isProof bool
}{
	{"in front", respond(401, inFront401), true},
	{"OAuth 2", respond(401, `{"error":"invalid_token","error_description":"expired"}`), false},
	{"empty", respond(401, ""), false},
	{"HTML", respond(401, html), false},
	{"header only", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}, false},
}

// A 401 without a business code means that the token was refused. It is renewed once, and the payment is sent once more
// under the same X-Reference-Id. The new token is kept. After a 401 without that proof, no response to the second send
// releases the payment.
func TestBearerRefused(t *testing.T) {
	for _, refusal := range bearerRefusals {
		after := func(withProof operator.Outcome) operator.Outcome {
			if refusal.isProof {
				return withProof
			}
			return operator.Unknown
		}
		for _, c := range []struct {
			name    string
			second  operatortest.Responder
			outcome operator.Outcome
			counted bool // as refused credentials
		}{
			{"accepted", respond(202, ""), operator.Succeeded, false},
			{"refused again", refusal.respond, after(operator.NotApplied), true},
			{"empty 401", respond(401, ""), operator.Unknown, true},
			{"in front", respond(401, inFront401), after(operator.NotApplied), true},
			{"known there", respond(409, code("RESOURCE_ALREADY_EXIST")), operator.Unknown, false},
			{"no wallet", respond(500, code("PAYER_NOT_FOUND")), operator.Refused, false},
			{"our set-up", respond(500, code("INVALID_CURRENCY")), after(operator.NotApplied), refusal.isProof},
			{"new code", respond(400, code("SOMETHING_NEW")), after(operator.NotApplied), false},
			{"rate", respond(429, `{"statusCode":429}`), after(operator.NotApplied), false},
			{"cut", operatortest.CloseConnection(), operator.Unknown, false},
		} {
			t.Run(refusal.name+"/"+c.name, func(t *testing.T) {
				stub, exchanges := suite().Stub(t, refusal.respond, c.second), 0
				stub.Prepare(exchanging(func(w http.ResponseWriter, r *http.Request) {
					exchanges++
					const form = `{"access_token":"token-%d-very-private","expires_in":60}`
					respond(200, fmt.Sprintf(form, exchanges))(w, r)
				}))
				driver := newDriver(t, stub)
				result := driver.Pay(t.Context(), samplePay())
				sent := stub.Requests()
				if result.Outcome != c.outcome || len(sent) != 2 || exchanges != 2 {
					t.Fatalf("outcome %d, want %d; %d payments, %d exchanges: %v",
						result.Outcome, c.outcome, len(sent), exchanges, result.Fault)
				}
				if sent[0].Header.Get("X-Reference-Id") != sent[1].Header.Get("X-Reference-Id") ||
					sent[0].Body != sent[1].Body {
					t.Error("the second payment differs from the first")
				}
				if last := sent[1].Header.Get("Authorization"); last != "Bearer token-2-very-private" {
					t.Errorf("the second payment has the token %q", last)
				}
				if isCounted(result.Fault) != c.counted {
					t.Errorf("counted as refused credentials: %v, want %v: %v", !c.counted, c.counted, result.Fault)
				}
				if result.Fault != nil {
					suite().CheckPrivate(t, result.Fault)
				}
				if c.outcome != operator.Succeeded {
					return
				}
				again := driver.Pay(t.Context(), samplePay())
				if again.Outcome != operator.Succeeded || exchanges != 2 {
					t.Errorf("the new token was not kept: %v", again.Fault)
				}
			})
		}
	}
}

// isCounted reports whether a fault counts as refused credentials.
func isCounted(f *fault.Fault) bool {
	return f != nil && (errors.Is(f, operator.ErrCredentialsRefused) ||
		f.Kind == fault.IntegrationRejected && !errors.Is(f, operator.ErrUnmappedCode))
}

// A payment whose token was refused in an unproven form stays unknown if it gets no new token, or no connection.
func TestNoTokenAfterRefusedBearer(t *testing.T) {
	for _, c := range []struct {
		name    string
		token   operatortest.Responder
		counted bool
	}{
		{"down", respond(503, ""), false},
		{"credentials refused", respond(401, inFront401), true},
		{"cut", operatortest.CloseConnection(), false},
	} {
		for _, refusal := range bearerRefusals {
			t.Run(c.name+"/"+refusal.name, func(t *testing.T) {
				want, exchanges := operator.Unknown, 0
				if refusal.isProof {
					want = operator.NotApplied
				}
				stub := suite().Stub(t, refusal.respond)
				stub.Prepare(exchanging(func(w http.ResponseWriter, r *http.Request) {
					if exchanges++; exchanges > 1 {
						c.token(w, r)
						return
					}
					respond(200, operatortest.ReadFile(t, "token.json"))(w, r)
				}))
				result := newDriver(t, stub).Pay(t.Context(), samplePay())
				if result.Outcome != want || len(stub.Requests()) != 1 {
					t.Errorf("outcome %d, want %d: %v", result.Outcome, want, result.Fault)
				}
				if isCounted(result.Fault) != c.counted {
					t.Errorf("counted as refused credentials: %v, want %v", !c.counted, c.counted)
				}
			})
		}
	}
}
