package operationtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/limitmem"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/telemetry"
)

// The secrets in the golden events. No world may log one; none but MSISDN may be stored.
const (
	GWToken = "canary-gwtoken-5d0e7a41"
	GWAlias = "tel:+2250705551234"
	OTP     = "canaryotp493817"
	MSISDN  = "+2250709998877"
)

// The deployment of the kit.
const (
	BaseURL       = "https://api.example.com"
	ServiceID     = "SERVICE-1"
	ApplicationID = "APP-1"
	ContactID     = "CONTACT-1"
	// FunctionTimeout is the function's, OperatorTimeout that of one operator call.
	FunctionTimeout = 20 * time.Second
	OperatorTimeout = 12 * time.Second
)

// Fixture is everything that a request of one test meets.
type Fixture struct {
	Clock        *Clock
	Ledger       *ledgermem.Store
	Writer       *CrashingWriter // the ledger as the operations get it
	Merchants    *Merchants
	Driver       *Driver
	LimitStore   *limitmem.Store // what merchants have used of their limits; none has one until a test says so
	Pipeline     *operation.Pipeline
	CallbackKeys *callback.Keys

	log     logBuffer
	gateway *apigw.Gateway
}

// singleDriverDirectory has one driver in the place of every one that a row of the table names.
func singleDriverDirectory(driver operator.Driver) *operator.DriverDirectory {
	drivers := map[string]operator.Driver{}
	for _, name := range operator.Names() {
		row, _ := operator.FindCapabilities(name)
		drivers[row.DriverName] = driver
	}
	return operator.NewDriverDirectory(drivers)
}

// New makes a world. When the test ends, its log and its ledger are searched for the secrets of the golden events.
func New(t testing.TB) *Fixture {
	t.Helper()
	w := &Fixture{Clock: newClock(), Ledger: ledgermem.New(), Merchants: newMerchants(), Driver: &Driver{account: "a1"}}
	w.Writer = &CrashingWriter{Writer: w.Ledger}
	w.Pipeline = &operation.Pipeline{
		Merchants:       w.Merchants,
		Book:            &ledger.Book{Store: w.Writer, Now: w.Clock.Now, Rand: &uniqueReader{}},
		Operators:       singleDriverDirectory(w.Driver),
		OperatorTimeout: OperatorTimeout,
		Now:             w.Clock.Now,
	}
	w.LimitStore = &limitmem.Store{}
	w.Pipeline.RateLimiter = limit.NewRateLimiter(w.LimitStore, w.Clock.Now)
	w.Pipeline.DailyAmounts = &dailyamount.Counter{
		Store: w.LimitStore, Now: w.Clock.Now, Rand: &uniqueReader{},
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	w.CallbackKeys = callback.New(callbackSecret{w.Clock.Now().Add(-time.Hour)}, time.Minute, w.Clock.Now)
	t.Cleanup(func() { w.checkNoSecrets(t) })
	return w
}

// NewRequest is a request that ends at the function's timeout, for tests of single steps.
func (w *Fixture) NewRequest() *apigw.Request {
	now := w.Clock.Now()
	return &apigw.Request{LogLine: telemetry.NewLogLine("test", now), Deadline: now.Add(FunctionTimeout)}
}

// Serve puts the routes behind a gateway.
func (w *Fixture) Serve(name string, routes ...apigw.Route) *Fixture {
	w.gateway = apigw.New(apigw.Config{Operation: name, BaseURL: BaseURL, Now: w.Clock.Now, Log: &w.log}, routes...)
	return w
}

// Send sends an event and gives the answer.
func (w *Fixture) Send(t testing.TB, e *Event) Response {
	t.Helper()
	return w.Invoke(t, e.JSON())
}

// Invoke sends the bytes of an event, with the time that Lambda gives to it.
func (w *Fixture) Invoke(t testing.TB, event []byte) Response {
	t.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), w.Clock.Now().Add(FunctionTimeout))
	defer cancel()
	payload, err := w.gateway.Invoke(ctx, event)
	if err != nil {
		t.Errorf("Lambda was given an error: %v", err)
	}
	var response Response
	if err := json.Unmarshal(payload, &response); err != nil {
		t.Errorf("not an answer of API Gateway: %s", payload)
	}
	for _, secret := range []string{GWToken, OTP, "canary-access"} {
		if response.Status >= 400 && strings.Contains(response.Body, secret) {
			t.Errorf("the error tells %s: %s", secret, response.Body)
		}
	}
	return response
}

// Log is every line that was logged.
func (w *Fixture) Log() string { return w.log.String() }

// LastLine is the last line that was logged.
func (w *Fixture) LastLine(t testing.TB) map[string]any {
	t.Helper()
	logLines := strings.Split(strings.TrimSpace(w.Log()), "\n")
	var line map[string]any
	if err := json.Unmarshal([]byte(logLines[len(logLines)-1]), &line); err != nil {
		t.Fatalf("not a telemetry line: %v", err)
	}
	return line
}

// OnlyEntry is the one entry of a kind in the ledger.
func (w *Fixture) OnlyEntry(t testing.TB, kind ledger.Kind) *ledger.Entry {
	t.Helper()
	var found []*ledger.Entry
	for _, e := range w.Ledger.All() {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d entries of kind %s, want 1", len(found), kind)
	}
	return found[0]
}

// AssertCallCounts compares the store's calls and the operator's since the world began: Insert, ClaimReference, Replace, calls.
func (w *Fixture) AssertCallCounts(t testing.TB, insert, claim, replace, calls int) {
	t.Helper()
	got := [4]int{
		w.Ledger.CallCount(ledgermem.Insert), w.Ledger.CallCount(ledgermem.ClaimReference),
		w.Ledger.CallCount(ledgermem.Replace), len(w.Driver.Calls()),
	}
	if want := [4]int{insert, claim, replace, calls}; got != want {
		t.Errorf("Insert, ClaimReference, Replace, operator calls: %v, want %v", got, want)
	}
}

// AssertNoSideEffects checks that nothing was stored and nobody called.
func (w *Fixture) AssertNoSideEffects(t testing.TB) {
	t.Helper()
	w.AssertCallCounts(t, 0, 0, 0, 0)
}

// AssertSingleEffect checks that the operator did something exactly once, that every call went under the same key, and that
// there was this number of calls.
func (w *Fixture) AssertSingleEffect(t testing.TB, effect string, calls int) {
	t.Helper()
	if got := w.Driver.Effects(); len(got) != 1 || got[0] != effect {
		t.Errorf("effects %q, want %q once", got, effect)
	}
	sent := w.Driver.Calls()
	if len(sent) != calls {
		t.Errorf("%d calls, want %d", len(sent), calls)
	}
	for _, call := range sent {
		if call.Kind+" "+call.Call.IdempotencyKey != effect {
			t.Errorf("called with %s %s, want %s", call.Kind, call.Call.IdempotencyKey, effect)
		}
	}
}

// checkNoSecrets looks for secrets in what was logged and stored.
func (w *Fixture) checkNoSecrets(t testing.TB) {
	t.Helper()
	logged := w.Log()
	for _, secret := range []string{GWToken, GWAlias[5:], OTP, MSISDN[1:], "canary-access", "canary body"} {
		if strings.Contains(logged, secret) {
			t.Errorf("the log tells %s:\n%s", secret, logged)
		}
	}
	for _, e := range w.Ledger.All() {
		stored := fmt.Sprintf("%+v %s", e, e.ResponseBody)
		for _, secret := range []string{GWToken, GWAlias[5:], OTP, "canary-access"} {
			if strings.Contains(stored, secret) {
				t.Errorf("the ledger holds %s: %s", secret, stored)
			}
		}
	}
}

// logBuffer collects what parallel requests log.
type logBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write is io.Writer's.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

// String is everything written so far.
func (l *logBuffer) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// callbackSecret is the secret of the callback keys: one key, added at a time.
type callbackSecret struct{ added time.Time }

// Get is keyring.Source's.
func (r callbackSecret) Get(context.Context) (secret.Value, error) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	text := fmt.Sprintf(`{"keys":[{"number":1,"key":%q,"added":%q}]}`, key, r.added.Format(time.RFC3339))
	return secret.Value{Bytes: []byte(text)}, nil
}

// Refresh is keyring.Source's.
func (r callbackSecret) Refresh(ctx context.Context) (secret.Value, error) { return r.Get(ctx) }
