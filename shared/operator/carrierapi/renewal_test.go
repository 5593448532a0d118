package carrierapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

// renewal is a process with the cache of the functions, whose operators' secret and clock a test changes.
type renewal struct {
	now     time.Time
	value   []byte
	fetches int
	driver  *carrierapi.Driver
}

// Fetch implements secret.Source.
func (r *renewal) Fetch(context.Context, string) ([]byte, error) {
	r.fetches++
	return r.value, nil
}

func newRenewal() *renewal {
	r := &renewal{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return r.now }
	cache := secret.NewCache(r, "operators", 5*time.Minute, 30*time.Second, clock)
	accounts := credentials.NewReader(cache, clock, operator.CheckBaseURL)
	r.driver = carrierapi.New(accounts, upstream.NewClient(nil), clock)
	return r
}

// store stores an account with changed fields; a field with "" is left out.
func (r *renewal) store(t *testing.T, baseURL string, changes map[string]string) {
	t.Helper()
	account := map[string]any{
		"base_url": baseURL, "access_token": "good", "service_id": "SERVICE", "application_id": "APP",
		"contact_id": "CONTACT",
	}
	for field, value := range changes {
		account[field] = value
	}
	maps.DeleteFunc(account, func(_ string, value any) bool { return value == "" })
	var err error
	r.value, err = json.Marshal(map[string]any{sandbox: map[string]any{
		"current": "a1", "accounts": map[string]any{"a1": account},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// charge makes a charge as a request does: with the current account.
func (r *renewal) charge(t *testing.T) operator.Result {
	t.Helper()
	id, err := r.driver.FindAccount(t.Context(), sandbox, "")
	if err != nil {
		return operator.Result{Outcome: operator.NotApplied, Fault: fault.FromError(err)}
	}
	return call(t, r.driver, operatortest.Operations(sandbox, id)[0])
}

// strictPlatform accepts charges of a complete account, and refuses the others as real platforms do.
func strictPlatform(t *testing.T) *httptest.Server {
	refusals := map[string]func(w http.ResponseWriter){
		"unauthorized": func(w http.ResponseWriter) { refuse(w, 401, "900901", "x") },
		"bare":         func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		"forbidden":    func(w http.ResponseWriter) { refuse(w, 403, "900908", "x") },
		"gone":         func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"invalid":      func(w http.ResponseWriter) { refuse(w, 400, "SVC0002", "something") },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			AmountTransaction struct {
				PaymentAmount struct {
					ChargingMetaData struct{ ServiceID string }
				}
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		service := body.AmountTransaction.PaymentAmount.ChargingMetaData.ServiceID
		switch refusal, refused := refusals[token]; {
		case refused:
			refusal(w)
		case service != "SERVICE":
			refuse(w, 400, "SVC0002", "amountTransaction.paymentAmount.chargingMetaData.serviceId")
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprint(w, successBody(operatortest.Operations(sandbox, "")[0]))
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func refuse(w http.ResponseWriter, status int, id, variable string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"requestError":{"serviceException":{"messageId":%q,"text":"t","variables":[%q]}}}`,
		id, variable)
}

// badCredentials are renewals that went wrong.
var badCredentials = map[string]map[string]string{
	"no service_id":        {"service_id": ""},
	"another service_id":   {"service_id": "OTHER"},
	"no token":             {"access_token": ""},
	"a token with a break": {"access_token": "good\n"},
	"a refused token":      {"access_token": "unauthorized"},
	"a token without form": {"access_token": "bare"},
	"a token not entitled": {"access_token": "forbidden"},
	"an invalid request":   {"access_token": "invalid"},
	"a wrong path":         {"access_token": "gone"},
	"no address":           {"base_url": ""},
	"a closed port":        {"base_url": "http://127.0.0.1:1"},
}

// Good credentials work within a minute, for every response that bad ones cause.
func TestGoodCredentialsWorkWithinAMinute(t *testing.T) {
	platform := strictPlatform(t)
	for name, bad := range badCredentials {
		for _, lastFailure := range []time.Duration{0, 31 * time.Second, 59 * time.Second} {
			t.Run(fmt.Sprint(name, " ", lastFailure), func(t *testing.T) {
				r := newRenewal()
				r.store(t, platform.URL, bad)
				if result := r.charge(t); result.Outcome == operator.Succeeded {
					t.Fatal("the bad credentials work")
				}
				r.now = r.now.Add(time.Second)
				renewedAt := r.now
				r.store(t, platform.URL, nil)
				if lastFailure > 0 { // a call in between must not prolong the old value
					r.now = renewedAt.Add(lastFailure)
					r.charge(t)
				}
				r.now = renewedAt.Add(time.Minute)
				if result := r.charge(t); result.Outcome != operator.Succeeded {
					t.Fatalf("after a minute: outcome %d, %v", result.Outcome, result.Fault)
				}
			})
		}
	}
}

// A value that a process read long before its first call is read again, because no call has proven it.
func TestUnusedCredentialsAreReadAgain(t *testing.T) {
	platform := strictPlatform(t)
	r := newRenewal()
	r.store(t, platform.URL, badCredentials["a wrong path"])
	if _, err := r.driver.FindAccount(t.Context(), sandbox, ""); err != nil {
		t.Fatal(err)
	}
	r.store(t, platform.URL, nil)
	r.now = r.now.Add(time.Minute)
	if result := r.charge(t); result.Outcome != operator.Succeeded {
		t.Fatalf("outcome %d, %v", result.Outcome, result.Fault)
	}
}

// Credentials that work are kept for the cache's whole lifetime, as those that do not are read twice a minute at most.
func TestWorkingCredentialsAreKept(t *testing.T) {
	platform := strictPlatform(t)
	for name, c := range map[string]struct {
		changes map[string]string
		fetches int
	}{"working": {nil, 2}, "failing": {badCredentials["an invalid request"], 20}} {
		t.Run(name, func(t *testing.T) {
			r := newRenewal()
			r.store(t, platform.URL, c.changes)
			for range 100 { // 10 minutes
				r.charge(t)
				r.now = r.now.Add(6 * time.Second)
			}
			if r.fetches > c.fetches {
				t.Errorf("%d fetches in ten minutes, want at most %d", r.fetches, c.fetches)
			}
		})
	}
}

// A mistake in our own account is our fault (502) when a merchant sends a correct request, and never 400.
func TestOurFaultIsNeverTheMerchants(t *testing.T) {
	platform := strictPlatform(t)
	for _, name := range []string{"no service_id", "another service_id", "no token", "a refused token",
		"a token not entitled", "no address"} {
		t.Run(name, func(t *testing.T) {
			r := newRenewal()
			r.store(t, platform.URL, badCredentials[name])
			wantOutcome(t, r.charge(t), operator.NotApplied, fault.IntegrationRejected)
		})
	}
	r := newRenewal()
	r.store(t, platform.URL, map[string]string{"application_id": "", "contact_id": ""})
	sms := operatortest.Operations(sandbox, "a1")[4]
	result := call(t, r.driver, sms)
	wantOutcome(t, result, operator.NotApplied, fault.IntegrationRejected)
	if text := result.Fault.Error(); !strings.Contains(text, "application_id, contact_id") {
		t.Errorf("the fault does not name the fields: %s", text)
	}
}

// A refusal counts by the account that the request was made with, even if the account that replaced it has no request.
func TestRefusalCountsByTheAccountOfItsRequest(t *testing.T) {
	r := newRenewal()
	first := map[string]string{
		"header_prefix": "X-Own", "user_sms.gw_token": "g", "user_sms.sender_name": "N",
		"user_sms.sender.CI": "tel:+2250000",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.store(t, "https://op.example", map[string]string{"user_sms.gw_token": "g", "user_sms.sender_name": "N"})
		refuse(w, 401, "POL0001", "X-Own-MCO")
	}))
	defer server.Close()
	r.store(t, server.URL, first)
	result := r.driver.SendUserSMS(t.Context(), operator.UserSMSCall{
		Call:   operator.Call{Platform: sandbox, AccountID: "a1", UpstreamKey: "Shop_1", Country: "CI"},
		MSISDN: "+2250700000000", Text: "Paid",
	})
	wantOutcome(t, result, operator.NotApplied, fault.IntegrationRejected)
}
