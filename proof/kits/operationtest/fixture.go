package operationtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/telemetry"
)

// The secrets in the golden events. No fixture may log one, and only MSISDN may be stored.
const (
	GWToken = "canary-gwtoken-5d0e7a41"
	GWAlias = "tel:+2250705551234"
	OTP     = "canaryotp493817"
	MSISDN  = "+2250709998877"
)

// The deployment of the fixture.
const (
	BaseURL       = "https://api.example.com"
	ServiceID     = "SERVICE-1"
	ApplicationID = "APP-1"
	ContactID     = "CONTACT-1"
	// FunctionTimeout bounds an invocation, OperatorTimeout one operator call.
	FunctionTimeout = 20 * time.Second
	OperatorTimeout = 12 * time.Second
)

// Fixture has all dependencies of a request.
type Fixture struct {
	Clock        *Clock
	Ledger       *storetest.Ledger
	Merchants    *Merchants
	Driver       *Driver
	LimitStore   *storetest.Limits // no merchant has a limit until a test sets one
	Pipeline     *operation.Pipeline
	CallbackKeys *callback.Keys
	LogLines     *LogBuffer

	gateway *apigw.Gateway
}

// SingleDriverDirectory uses one driver for all platforms of the table, also for those with a protocol of their own.
func SingleDriverDirectory(driver operator.Driver) *operator.DriverDirectory {
	return operator.NewDriverDirectory(driversOf(driver), nil)
}

// driversOf returns one driver under the names of all drivers.
func driversOf(driver operator.Driver) map[string]operator.Driver {
	drivers := map[string]operator.Driver{}
	for _, name := range operator.Platforms() {
		row, _ := operator.FindCapabilities(name)
		drivers[row.DriverName] = driver
	}
	return drivers
}

// New creates a fixture. At the end of the test its log and its ledger are searched for the secrets of the golden
// events.
func New(t testing.TB) *Fixture {
	t.Helper()
	profiles := map[string]*merchant.Profile{DemoToken: DemoProfile(), OtherToken: OtherProfile()}
	f := &Fixture{
		Clock: &Clock{}, Ledger: storetest.NewLedger(t), LimitStore: storetest.NewLimits(), LogLines: &LogBuffer{},
		Merchants: &Merchants{profiles: profiles}, Driver: &Driver{Account: "a1"},
	}
	f.Clock.unixNano.Store(time.Date(2096, 11, 21, 10, 0, 0, 0, time.UTC).UnixNano())
	f.Pipeline = &operation.Pipeline{
		Merchants:       f.Merchants,
		Book:            &ledger.Book{Store: f.Ledger, Reader: f.Ledger, Now: f.Clock.Now, Rand: &UniqueReader{}},
		Operators:       SingleDriverDirectory(f.Driver),
		OperatorTimeout: OperatorTimeout,
		Now:             f.Clock.Now,
	}
	f.Pipeline.RateLimiter = limit.NewRateLimiter(f.LimitStore, f.Clock.Now)
	f.Pipeline.DailyAmounts = &dailyamount.Counter{
		Store: f.LimitStore, Now: f.Clock.Now, Rand: &UniqueReader{},
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	added := f.Clock.Now().Add(-time.Hour)
	key := keyring.Key{Number: 1, Value: bytes.Repeat([]byte{7}, keyring.KeySize), AddedAt: added}
	f.CallbackKeys = callback.New(
		keyring.NewRefreshingRing(RingSecret(key), time.Minute, f.Clock.Now), time.Minute)
	t.Cleanup(func() { f.checkNoSecrets(t) })
	return f
}

// Choice is the platform with an operator's own name, as for a deployment without routes.
func Choice(operatorName string) operation.Choice {
	row, _ := operator.FindCapabilities(operatorName)
	return operation.Choice{Selection: operator.Selection{Capabilities: row, Operator: operatorName}}
}

// NewAttempt is DemoShop's attempt at an entry, for tests of single steps. Its operator has no routes.
func (f *Fixture) NewAttempt(e *ledger.Entry) *operation.Attempt {
	return &operation.Attempt{
		Request: f.NewRequest(), Profile: DemoProfile(), Choice: Choice(e.Route.Operator), Entry: e,
		Key: operation.IdempotencyKey{Value: e.ID, Part: "the.part"},
	}
}

// NewRequest is a request that ends at the function's timeout, for tests of single steps.
func (f *Fixture) NewRequest() *apigw.Request {
	now := f.Clock.Now()
	return &apigw.Request{LogLine: telemetry.NewLogLine("test", now), Deadline: now.Add(FunctionTimeout)}
}

// Serve puts the routes behind a gateway.
func (f *Fixture) Serve(name string, routes ...apigw.Route) *Fixture {
	f.gateway = apigw.New(apigw.Config{
		Operation: name, BaseURL: BaseURL, Now: f.Clock.Now, Log: f.LogLines,
		CountUses: func(line *telemetry.LogLine) { f.Pipeline.Circuits.Finish(line) },
	}, routes...)
	return f
}

// UpdateDemo changes DemoShop's profile, and returns the fixture.
func (f *Fixture) UpdateDemo(change func(*merchant.Profile)) *Fixture {
	f.Merchants.UpdateProfile(DemoToken, change)
	return f
}

// FailEvery makes each call of one operation of the ledger fail; without an operation none fails any more.
func (f *Fixture) FailEvery(operations ...storetest.Operation) {
	f.Ledger.InjectFaults(func(call storetest.Call) storetest.Fault {
		if slices.Contains(operations, call.Operation) {
			return storetest.FailedBeforeApply
		}
		return storetest.NoFault
	})
}

// WithBehaviours sets the behaviours of the operator's next calls, in order, and returns the fixture.
func (f *Fixture) WithBehaviours(steps ...Behaviour) *Fixture {
	f.Driver.SetBehaviours(steps...)
	return f
}

// Send sends an event and returns the response.
func (f *Fixture) Send(t testing.TB, e *Event) Response {
	t.Helper()
	return f.Invoke(t, e.JSON())
}

// Invoke sends the bytes of an event, with the deadline of a Lambda invocation.
func (f *Fixture) Invoke(t testing.TB, event []byte) Response {
	t.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), f.Clock.Now().Add(FunctionTimeout))
	defer cancel()
	payload, err := f.gateway.Invoke(ctx, event)
	if err != nil {
		t.Errorf("the handler returned an error to Lambda: %v", err)
	}
	var response Response
	if err := json.Unmarshal(payload, &response); err != nil {
		t.Errorf("not a response of API Gateway: %s", payload)
	}
	for _, secret := range []string{GWToken, OTP, "canary-access"} {
		if response.Status >= 400 && strings.Contains(response.Body, secret) {
			t.Errorf("the error contains the secret %s: %s", secret, response.Body)
		}
	}
	return response
}

// LastLine returns the last logged line.
func (f *Fixture) LastLine(t testing.TB) map[string]any {
	t.Helper()
	lines := f.LogLines.decoded()
	if len(lines) == 0 {
		t.Fatalf("no telemetry line: %s", f.LogLines)
	}
	return lines[len(lines)-1]
}

// OnlyEntry returns the one entry of a kind in the ledger.
func (f *Fixture) OnlyEntry(t testing.TB, kind ledger.Kind) *ledger.Entry {
	t.Helper()
	found := slices.DeleteFunc(f.Ledger.All(), func(e *ledger.Entry) bool { return e.Kind != kind })
	if len(found) != 1 {
		t.Fatalf("%d entries of kind %s, want 1", len(found), kind)
	}
	return found[0]
}

// AssertEqual compares one fact with what the test wants.
func AssertEqual[T comparable](t testing.TB, fact string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", fact, got, want)
	}
}

// AssertCallCounts compares the number of Insert, ClaimReference and Replace, and of operator calls.
func (f *Fixture) AssertCallCounts(t testing.TB, insert, claim, replace, calls int) {
	t.Helper()
	got := [4]int{
		f.Ledger.CallCount(storetest.Insert), f.Ledger.CallCount(storetest.ClaimReference),
		f.Ledger.CallCount(storetest.Replace), len(f.Driver.Calls()),
	}
	AssertEqual(t, "Insert, ClaimReference, Replace, operator calls", got, [4]int{insert, claim, replace, calls})
}

// AssertNoSideEffects checks that nothing was stored and no operator was called.
func (f *Fixture) AssertNoSideEffects(t testing.TB) {
	t.Helper()
	f.AssertCallCounts(t, 0, 0, 0, 0)
}

// AssertOperatorCalls compares the number of operator calls.
func (f *Fixture) AssertOperatorCalls(t testing.TB, want int) {
	t.Helper()
	AssertEqual(t, "operator calls", len(f.Driver.Calls()), want)
}

// AssertState compares the state of the one entry of a kind.
func (f *Fixture) AssertState(t testing.TB, kind ledger.Kind, want ledger.State) {
	t.Helper()
	AssertEqual(t, "state", f.OnlyEntry(t, kind).State, want)
}

// AssertSingleEffect checks that the operator has exactly one effect, from a number of calls under the same key.
func (f *Fixture) AssertSingleEffect(t testing.TB, effect string, calls int) {
	t.Helper()
	if got := f.Driver.Effects(); len(got) != 1 || got[0] != effect {
		t.Errorf("effects %q, want %q once", got, effect)
	}
	sent := f.Driver.Calls()
	if len(sent) != calls {
		t.Errorf("%d calls, want %d", len(sent), calls)
	}
	for _, call := range sent {
		if call.Kind+" "+call.Call.UpstreamKey != effect {
			t.Errorf("called with %s %s, want %s", call.Kind, call.Call.UpstreamKey, effect)
		}
	}
}

// SetDailyLimit sets DemoShop's daily amount in XOF, in minor units.
func (f *Fixture) SetDailyLimit(minor int64) {
	f.UpdateDemo(func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": minor} })
}

// AssertDailySum compares DemoShop's counted amount in XOF.
func (f *Fixture) AssertDailySum(t testing.TB, want int64) {
	t.Helper()
	AssertEqual(t, "decision merchant-limits: counted", f.LimitStore.Sum(DemoProfile().ID, "XOF"), want)
}

// AssertCounted checks that the last request counted a metric exactly once.
func (f *Fixture) AssertCounted(t testing.TB, metric string) {
	t.Helper()
	if line := f.LastLine(t); line[metric] != 1.0 {
		t.Errorf("metric %s is %v, want 1, in line %v", metric, line[metric], line)
	}
}

func (f *Fixture) checkNoSecrets(t testing.TB) {
	t.Helper()
	logged := f.LogLines.String()
	for _, secret := range []string{GWToken, GWAlias[5:], OTP, MSISDN[1:], "canary-access", "canary body"} {
		if strings.Contains(logged, secret) {
			t.Errorf("the log contains the secret %s:\n%s", secret, logged)
		}
	}
	for _, e := range f.Ledger.All() {
		stored := fmt.Sprintf("%+v %s", e, e.Response.Body)
		for _, secret := range []string{GWToken, GWAlias[5:], OTP, "canary-access"} {
			if strings.Contains(stored, secret) {
				t.Errorf("the ledger contains the secret %s: %s", secret, stored)
			}
		}
	}
}

// RingSecret returns the secret of a key ring that has one key.
func RingSecret(key keyring.Key) secret.Static {
	const format = `{"keys":[{"number":%d,"key":%q,"added":%q}]}`
	value := base64.StdEncoding.EncodeToString(key.Value)
	return fmt.Appendf(nil, format, key.Number, value, key.AddedAt.Format(time.RFC3339))
}
