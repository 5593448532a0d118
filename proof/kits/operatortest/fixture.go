package operatortest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
)

// Timeouts of a call with a response, and of one without.
const (
	longTimeout  = 15 * time.Second
	shortTimeout = 150 * time.Millisecond
)

// localAddress is the address of a platform that is not called.
const localAddress = "http://127.0.0.1:1"

// startTime is the time of all calls of a suite without a clock.
func startTime() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) }

func (s Suite) clock() func() time.Time {
	if s.Now != nil {
		return s.Now
	}
	return startTime
}

// With returns the suite with changed fields of the account. A field with nil is left out.
func (s Suite) With(fields map[string]any) Suite {
	s.Account = maps.Clone(s.Account)
	maps.Copy(s.Account, fields)
	maps.DeleteFunc(s.Account, func(_ string, value any) bool { return value == nil })
	return s
}

// Stub starts a stub whose requests are the business requests.
func (s Suite) Stub(t *testing.T, responders ...Responder) *StubOperator {
	t.Helper()
	stub := NewStubOperator(t, responders...)
	stub.preparatory = s.Preparatory
	return stub
}

// Driver makes the platform's driver with its account at an address.
func (s Suite) Driver(t testing.TB, baseURL string) operator.Driver {
	t.Helper()
	return s.driver(t, s.secret(baseURL), nil)
}

// New makes the driver of a suite, as its type.
func New[D operator.Driver](t testing.TB, s Suite, baseURL string) D {
	t.Helper()
	return s.Driver(t, baseURL).(D)
}

// Always makes the same response to each operation.
func Always(respond Responder) func(Operation) Responder {
	return func(Operation) Responder { return respond }
}

// RoundTripper is a transport that is a function.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s Suite) driver(t testing.TB, accounts secret.Reader, transport http.RoundTripper) operator.Driver {
	t.Helper()
	directory := drivers.New(accounts, drivers.Outside{Transport: transport, Now: s.clock()})
	driver, _, found := directory.Driver(s.Platform)
	if !found {
		t.Fatalf("the directory has no driver for %s", s.Platform)
	}
	return driver
}

// secret is a secret with the account "a1", the current one.
func (s Suite) secret(baseURL string) secret.Static {
	account := s.With(map[string]any{"base_url": baseURL}).Account
	raw, err := json.Marshal(map[string]any{
		s.Platform: map[string]any{"current": "a1", "accounts": map[string]any{"a1": account}},
	})
	if err != nil {
		panic(err) // fields of texts and objects always have a form
	}
	return raw
}

// changingSecret is a secret that has another value after a refresh. One without a value cannot be read.
type changingSecret struct{ value, next []byte }

// Get implements secret.Reader.
func (s *changingSecret) Get(context.Context) ([]byte, error) {
	if s.value == nil {
		return nil, errors.New("the secret cannot be read")
	}
	return s.value, nil
}

// Refresh implements secret.Reader.
func (s *changingSecret) Refresh(ctx context.Context) ([]byte, error) {
	s.value = s.next
	return s.Get(ctx)
}

// FetchedAt implements secret.Reader: the value is never old.
func (s *changingSecret) FetchedAt() time.Time { return time.Time{} }

// operations are the sample calls of the platform, with the suite's data of the driver.
func (s Suite) operations(account string, mayRepeat bool) []Operation {
	return operations(s.Platform, account, s.DriverData, mayRepeat)
}

func (s Suite) statusCall() operator.StatusCall {
	call := SampleStatus(s.Platform, "")
	call.Channel, call.DriverData = rowOf(s.Platform).Channels[0], s.DriverData
	return call
}

// LookUp makes the lookup of a driver with one.
func (s Suite) LookUp(t *testing.T, stub *StubOperator, call operator.StatusCall) operator.StatusResponse {
	t.Helper()
	reader, ok := s.Driver(t, stub.URL).(operator.StatusLookup)
	if !ok {
		t.Fatal("the driver has no lookup")
	}
	return reader.LookUpPayment(t.Context(), call)
}

// Suite describes the driver under test. A nil response means that the platform has no such response.
type Suite struct {
	// Platform is a platform of the table that the driver serves.
	Platform string
	// Account are the fields of its account without the address. Renewed are those that differ after a renewal.
	Account, Renewed map[string]any
	// Now is the clock; nil for a fixed time.
	Now func() time.Time
	// Preparatory responds to a request that moves no money, such as a token exchange or a preparation; nil for any
	// other.
	Preparatory func(r *http.Request) Responder
	// TokenMargin is how long before its end a token is replaced, 0 for a platform without exchanges of tokens.
	TokenMargin time.Duration
	// DriverData is that of the sample payments, for a Preparer and for lookups.
	DriverData string
	// These are the platform's responses to an operation's sample call: a complete success, a final refusal, and a
	// refusal that certainly applied nothing. TokenRefusedResponse refuses the token or the key before the call is
	// processed. DuplicateResponse reports a known key.
	SuccessResponse      func(op Operation) Responder
	RefusalResponse      func(op Operation) Responder
	NotAppliedResponse   func(op Operation) Responder
	TokenRefusedResponse Responder
	DuplicateResponse    Responder
	// Lookup and Callback describe the platform's reports on payments; nil for a platform that has none.
	Lookup   *Reports
	Callback *Reports
	// Signature describes the signatures of static callbacks; nil for a driver that verifies none.
	Signature *Signature
	// LookupStatus is the status of a lookup's response, 200 for 0. NotFoundResponse is that without the payment.
	LookupStatus     int
	NotFoundResponse Responder
	// Secrets are more texts that no fault may contain, besides "very-private" and the sample values.
	Secrets []string
}

// Signature describes the signatures of a platform's static callbacks.
type Signature struct {
	// Header is the name of the header. Sign makes its value for a body by a key.
	Header string
	Sign   func(key string, at time.Time, body string) string
	// Fields are the fields of an account with these keys.
	Fields func(keys []string) map[string]any
}

// Reports describes the documents with which a platform reports on the sample payment.
type Reports struct {
	// Body has the places STATUS, AMOUNT and CURRENCY.
	Body string
	// Amount is the amount of the sample payment as the platform writes it, and OtherAmount another one. Both are ""
	// for a platform that reports none: its requests have the amount.
	Amount, OtherAmount string
	// HasNoCurrency is true for a platform that reports none.
	HasNoCurrency bool
	// Statuses are the words of the platform, with a successful one. Words that mean "" are unknown.
	Statuses map[string]ledger.Status
}

func (r Reports) body(word, amount, currency string) string {
	return strings.NewReplacer("STATUS", word, "AMOUNT", amount, "CURRENCY", currency).Replace(r.Body)
}

func (r Reports) successWord() string {
	for word, status := range r.Statuses {
		if status == ledger.Successful {
			return word
		}
	}
	return ""
}
