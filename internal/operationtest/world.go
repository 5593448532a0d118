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
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/secret"
)

// The secrets in the golden events. No world may log one; none but MSISDN may be stored.
const (
	GWToken = "canary-gwtoken-5d0e7a41"
	Alias   = "tel:+2250705551234"
	OTP     = "canaryotp493817"
	MSISDN  = "+2250709998877"
)

// The deployment of the kit.
const (
	BaseURL       = "https://api.example.com"
	ServiceID     = "SERVICE-1"
	ApplicationID = "APP-1"
	ContactID     = "CONTACT-1"
	// Timeout is the function's, OperatorTimeout that of one operator call.
	Timeout         = 20 * time.Second
	OperatorTimeout = 12 * time.Second
)

// World is everything that a request of one test meets.
type World struct {
	Clock     *Clock
	Ledger    *ledgermem.Store
	Store     *Store // the ledger as the operations get it
	Merchants *Merchants
	Driver    *Driver
	Limits    *limitmem.Store // what merchants have used of their limits; none has one until a test says so
	Desk      *operation.Desk
	Callbacks *callback.Keys

	log     lines
	gateway *apigw.Gateway
}

// directory has one driver in the place of every one that a row of the table names.
func directory(driver operator.Driver) *operator.Directory {
	drivers := map[string]operator.Driver{}
	for _, name := range operator.Names() {
		row, _ := operator.Find(name)
		drivers[row.Driver] = driver
	}
	return operator.NewDirectory(drivers)
}

// New makes a world. When the test ends, its log and its ledger are searched for the secrets of the golden events.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{Clock: newClock(), Ledger: ledgermem.New(), Merchants: newMerchants(), Driver: &Driver{account: "a1"}}
	w.Store = &Store{Writer: w.Ledger}
	w.Desk = &operation.Desk{
		Merchants:       w.Merchants,
		Book:            &ledger.Book{Store: w.Store, Now: w.Clock.Now, Rand: &random{}},
		Operators:       directory(w.Driver),
		OperatorTimeout: OperatorTimeout,
		Now:             w.Clock.Now,
	}
	w.Limits = &limitmem.Store{}
	w.Desk.Rate = limit.NewRate(w.Limits, w.Clock.Now)
	w.Desk.Amounts = &limit.Amounts{
		Store: w.Limits, Now: w.Clock.Now, Rand: &random{},
		Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	w.Callbacks = callback.New(ring{w.Clock.Now().Add(-time.Hour)}, time.Minute, w.Clock.Now)
	t.Cleanup(func() { w.check(t) })
	return w
}

// Serve puts the routes behind a gateway.
func (w *World) Serve(name string, routes ...apigw.Route) *World {
	w.gateway = apigw.New(apigw.Config{Operation: name, BaseURL: BaseURL, Now: w.Clock.Now, Log: &w.log}, routes...)
	return w
}

// Do sends an event and gives the answer.
func (w *World) Do(t testing.TB, e *Event) Answer {
	t.Helper()
	return w.Invoke(t, e.JSON())
}

// Invoke sends the bytes of an event, with the time that Lambda gives to it.
func (w *World) Invoke(t testing.TB, event []byte) Answer {
	t.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), w.Clock.Now().Add(Timeout))
	defer cancel()
	reply, err := w.gateway.Invoke(ctx, event)
	if err != nil {
		t.Errorf("Lambda was given an error: %v", err)
	}
	var answer Answer
	if err := json.Unmarshal(reply, &answer); err != nil {
		t.Errorf("not an answer of API Gateway: %s", reply)
	}
	for _, secret := range []string{GWToken, OTP, "canary-access"} {
		if answer.Status >= 400 && strings.Contains(answer.Body, secret) {
			t.Errorf("the error tells %s: %s", secret, answer.Body)
		}
	}
	return answer
}

// Log is every line that was logged.
func (w *World) Log() string { return w.log.String() }

// LastLine is the last line that was logged.
func (w *World) LastLine(t testing.TB) map[string]any {
	t.Helper()
	all := strings.Split(strings.TrimSpace(w.Log()), "\n")
	var line map[string]any
	if err := json.Unmarshal([]byte(all[len(all)-1]), &line); err != nil {
		t.Fatalf("not a telemetry line: %v", err)
	}
	return line
}

// Only is the one entry of a kind in the ledger.
func (w *World) Only(t testing.TB, kind ledger.Kind) *ledger.Entry {
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

// Counts compares the store's calls and the operator's since the world began: Insert, ClaimReference, Replace, calls.
func (w *World) Counts(t testing.TB, insert, claim, replace, calls int) {
	t.Helper()
	got := [4]int{
		w.Ledger.Calls(ledgermem.Insert), w.Ledger.Calls(ledgermem.ClaimReference),
		w.Ledger.Calls(ledgermem.Replace), len(w.Driver.Calls()),
	}
	if want := [4]int{insert, claim, replace, calls}; got != want {
		t.Errorf("Insert, ClaimReference, Replace, operator calls: %v, want %v", got, want)
	}
}

// Untouched checks that nothing was stored and nobody called.
func (w *World) Untouched(t testing.TB) {
	t.Helper()
	w.Counts(t, 0, 0, 0, 0)
}

// OneEffect checks that the operator did something exactly once, that every call went under the same key, and that
// there was this number of calls.
func (w *World) OneEffect(t testing.TB, effect string, calls int) {
	t.Helper()
	if got := w.Driver.Effects(); len(got) != 1 || got[0] != effect {
		t.Errorf("effects %q, want %q once", got, effect)
	}
	sent := w.Driver.Calls()
	if len(sent) != calls {
		t.Errorf("%d calls, want %d", len(sent), calls)
	}
	for _, call := range sent {
		if call.Kind+" "+call.Call.Key != effect {
			t.Errorf("called with %s %s, want %s", call.Kind, call.Call.Key, effect)
		}
	}
}

// check looks for secrets in what was logged and stored.
func (w *World) check(t testing.TB) {
	t.Helper()
	logged := w.Log()
	for _, secret := range []string{GWToken, Alias[5:], OTP, MSISDN[1:], "canary-access", "canary body"} {
		if strings.Contains(logged, secret) {
			t.Errorf("the log tells %s:\n%s", secret, logged)
		}
	}
	for _, e := range w.Ledger.All() {
		stored := fmt.Sprintf("%+v %s", e, e.AnswerBody)
		for _, secret := range []string{GWToken, Alias[5:], OTP, "canary-access"} {
			if strings.Contains(stored, secret) {
				t.Errorf("the ledger holds %s: %s", secret, stored)
			}
		}
	}
}

// lines collects what parallel requests log.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write is io.Writer's.
func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

// String is everything written so far.
func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// ring is the secret of the callback keys: one key, added at a time.
type ring struct{ added time.Time }

// Get is keyring.Source's.
func (r ring) Get(context.Context) (secret.Value, error) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	text := fmt.Sprintf(`{"keys":[{"number":1,"key":%q,"added":%q}]}`, key, r.added.Format(time.RFC3339))
	return secret.Value{Current: []byte(text)}, nil
}

// Refresh is keyring.Source's.
func (r ring) Refresh(ctx context.Context) (secret.Value, error) { return r.Get(ctx) }
