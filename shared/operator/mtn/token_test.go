package mtn_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// MTN refuses credentials with 401, or with 500 and a word of its own.
func TestTokenExchangeFails(t *testing.T) {
	for _, c := range []struct {
		name string
		step operatortest.Responder
		kind fault.Kind
	}{
		{"refused", respond(401, `{"error":"invalid api-key-very-private"}`), fault.IntegrationRejected},
		{"login failed", respond(500, `{"error":"login_failed"}`), fault.IntegrationRejected},
		{"login failed in another field", respond(500, `{"message":"login_failed"}`), fault.OperatorUnavailable},
		{"down", respond(500, code("INTERNAL_PROCESSING_ERROR")), fault.OperatorUnavailable},
	} {
		platformStub := operatortest.NewStubOperator(t, c.step)
		result := newDriver(goodAccount(platformStub.URL), time.Now).Pay(t.Context(), samplePay()).Result
		operatortest.CheckResult(t, result, operator.NotApplied, c.kind, secrets())
		found := newDriver(goodAccount(platformStub.URL), time.Now).LookUpPayment(t.Context(), sampleLookup())
		if found.Responded() || found.Cause == nil {
			t.Errorf("%s: lookup %+v", c.name, found)
		}
		if len(businessRequests(platformStub)) != 0 {
			t.Errorf("%s: a payment was sent without a token", c.name)
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
				platformStub := stub(t, refusal.respond, c.second)
				driver := newDriver(goodAccount(platformStub.URL), time.Now)
				result := driver.Pay(t.Context(), samplePay())
				sent := businessRequests(platformStub)
				if result.Outcome != c.outcome || len(sent) != 2 || len(platformStub.Requests()) != 4 {
					t.Fatalf("outcome %d, want %d; %d payments in %d requests: %v",
						result.Outcome, c.outcome, len(sent), len(platformStub.Requests()), result.Fault)
				}
				if sent[0].Header.Get("X-Reference-Id") != sent[1].Header.Get("X-Reference-Id") ||
					sent[0].Body != sent[1].Body {
					t.Error("the second payment differs from the first")
				}
				if last := sent[1].Header.Get("Authorization"); last != "Bearer second-token-very-private" {
					t.Errorf("the second payment has the token %q", last)
				}
				if isCounted(result.Fault) != c.counted {
					t.Errorf("counted as refused credentials: %v, want %v: %v", !c.counted, c.counted, result.Fault)
				}
				if result.Fault != nil {
					operatortest.CheckPrivate(t, result.Fault, secrets())
				}
				if c.outcome != operator.Succeeded {
					return
				}
				again := driver.Pay(t.Context(), samplePay())
				if again.Outcome != operator.Succeeded || len(platformStub.Requests()) != 5 {
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
				exchanges, want := 0, operator.Unknown
				if refusal.isProof {
					want = operator.NotApplied
				}
				platformStub := operatortest.NewStubOperator(t, func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path != "/collection/token/":
						refusal.respond(w, r)
					case exchanges == 0:
						exchanges++
						respond(200, operatortest.ReadFile(t, "token.json"))(w, r)
					default:
						c.token(w, r)
					}
				})
				result := newDriver(goodAccount(platformStub.URL), time.Now).Pay(t.Context(), samplePay())
				if result.Outcome != want || len(businessRequests(platformStub)) != 1 {
					t.Errorf("outcome %d, want %d: %v", result.Outcome, want, result.Fault)
				}
				if isCounted(result.Fault) != c.counted {
					t.Errorf("counted as refused credentials: %v, want %v", !c.counted, c.counted)
				}
			})
		}
	}
}

// After a 401 the credentials are read again: a rotated key is used at once.
func TestRotatedKey(t *testing.T) {
	platformStub := operatortest.NewStubOperator(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/collection/token/":
			respond(200, operatortest.ReadFile(t, "token.json"))(w, r)
		case r.Header.Get("Ocp-Apim-Subscription-Key") != "secondary-very-private":
			respond(401, inFront401)(w, r)
		default:
			respond(202, "")(w, r)
		}
	})
	renewed := goodAccount(platformStub.URL)
	renewed["subscription_key"] = "secondary-very-private"
	accounts := &operatortest.RenewedSecret{
		Value: marshalAccount(goodAccount(platformStub.URL)), Renewed: marshalAccount(renewed),
	}
	driver := newDriverOf(accounts, time.Now)
	if result := driver.Pay(t.Context(), samplePay()); result.Outcome != operator.Succeeded {
		t.Errorf("outcome %d, %v", result.Outcome, result.Fault)
	}
}

// Parallel payments share one exchange.
func TestParallelPaymentsShareAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exchanges := 0
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			response := &http.Response{StatusCode: 202, Body: http.NoBody, Header: http.Header{}}
			if r.URL.Path == "/collection/token/" {
				exchanges++
				time.Sleep(time.Second) // virtual time
				response.StatusCode, response.Body = 200, bodyOf(operatortest.ReadFile(t, "token.json"))
			}
			return response, nil
		})
		driver := newDriverOver(transport)
		for range 8 {
			go func() {
				if result := driver.Pay(t.Context(), samplePay()); result.Outcome != operator.Succeeded {
					t.Errorf("outcome %d, %v", result.Outcome, result.Fault)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(2 * time.Second) // virtual time
		synctest.Wait()
		if exchanges != 1 {
			t.Errorf("%d exchanges", exchanges)
		}
	})
}
