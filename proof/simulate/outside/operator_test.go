package outside

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// month is longer than everything that an operator does by itself.
const month = 30 * 24 * time.Hour

// script makes the given choice at the first use of each label, and the normal one otherwise.
type script map[string]int

func (s script) Choose(label string, n int) int {
	choice := min(s[label], n-1)
	s[label] = 0
	return choice
}

// everyGroup makes the choice 1 in every group.
func everyGroup() script {
	s := script{}
	for group := range groupFaults {
		s[string(group)] = 1
	}
	return s
}

// only returns faults of one group that are its choices from 1 on.
func only(group Group, faults ...Fault) *Faults {
	f := &Faults{Even: true}
	for _, fault := range faults {
		f.Set(group, fault, 1)
	}
	return f
}

// bench is an operator behind the real driver, in a time of its own.
type bench struct {
	*Operator
	chooser Chooser
	driver  *carrierapi.Driver
}

func newBench(t *testing.T, faults *Faults, chooser Chooser) *bench {
	t.Helper()
	account := map[string]any{
		"base_url": "https://operator.example.com", "access_token": "t", "service_id": "S", "application_id": "A",
		"contact_id": "C", "user_sms": map[string]any{
			"gw_token": "g", "sender": map[string]string{"CI": "tel:+2250000"}, "sender_name": "G",
		},
	}
	document, err := json.Marshal(map[string]any{
		"sandbox": map[string]any{"current": "a1", "accounts": map[string]any{"a1": account}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{chooser: chooser, Operator: &Operator{
		Name: "sandbox", Faults: faults, AccessTokens: []string{"t"}, Trace: func(text string) { t.Log(text) },
	}}
	b.Advance(start)
	reader := credentials.NewReader(secret.Static(document), time.Now, operator.CheckBaseURL)
	b.driver = carrierapi.New(reader, upstream.NewClient(b), time.Now)
	return b
}

// RoundTrip implements http.RoundTripper. It does not wait.
func (b *bench) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	response := b.Serve(b.now, r, body, b.chooser)
	response.Connect(r)
	return response.Result(r)
}

// driverCall is one call of the driver.
type driverCall struct {
	kind string // of the effect
	key  string
	send func(ctx context.Context, b *bench) operator.Result
}

// effects returns how many effects the call had in a month.
func (c driverCall) effects(b *bench) int {
	b.Advance(b.now.Add(month))
	effect, _ := b.EffectOf(c.kind, c.key)
	return effect.Count
}

const callbackURL = APIBaseURL + "/callbacks/v1/payments/sandbox/DemoShop_1/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBk"

// callOf returns the common part of a call under a key.
func callOf(key string) operator.Call {
	return operator.Call{
		Platform: "sandbox", Operator: "sandbox", UpstreamKey: key, MCO: "OCI", Country: "CI",
		GWToken: "token", GWAlias: "alias",
	}
}

func chargeWith(description string) driverCall {
	return driverCall{KindCharge, "DemoShop.c1", func(ctx context.Context, b *bench) operator.Result {
		return b.driver.Charge(ctx, operator.ChargeCall{
			Call: callOf("DemoShop.c1"), ReferenceCode: "R", Amount: "500", Currency: "XOF", Description: description,
			OnBehalfOf: "Demo",
		})
	}}
}

func payOn(channel string) driverCall {
	return driverCall{KindPayment, "DemoShop_1", func(ctx context.Context, b *bench) operator.Result {
		return b.driver.Pay(ctx, operator.PayCall{
			Call: callOf("DemoShop_1"), Channel: channel, Lang: "fr", Amount: "1500", Currency: "XOF",
			ReturnURL: "https://a.example/", CancelURL: "https://a.example/", NotifyURL: callbackURL,
			Reference: "Demo", MSISDN: "+2250707070707", State: "<&>",
		}).Result
	}}
}

var sendSMS = driverCall{KindSMS, "DemoShop.s1", func(ctx context.Context, b *bench) operator.Result {
	return b.driver.SendSMS(ctx, operator.SMSCall{
		Call: callOf("DemoShop.s1"), ISE2: "alias", Sender: "tel:+2250000", SenderName: "Demo", Message: "m",
		NotifyURL: strings.Replace(callbackURL, "payments", "receipts", 1),
	})
}}

var driverCalls = map[string]driverCall{
	"charge": chargeWith("d"), "web payment": payOn("web"), "terminal payment": payOn("tpe"), "SMS": sendSMS,
	"payer's SMS": {KindPayerSMS, "DemoShop_1", func(ctx context.Context, b *bench) operator.Result {
		return b.driver.SendUserSMS(ctx, operator.UserSMSCall{
			Call: callOf("DemoShop_1"), MSISDN: "+2250707070707", Text: "t",
		})
	}},
}

// callExpectations are what a fault of the first call leads to. repeats is the number of effects after a second call.
var callExpectations = map[Fault]struct {
	outcome          operator.Outcome
	effects, repeats int
}{
	NoFault:           {operator.Succeeded, 1, 1},
	ConnectRefused:    {operator.NotApplied, 0, 1},
	ResetBefore:       {operator.Unknown, 0, 1},
	ResetAfter:        {operator.Unknown, 1, 1},
	StaleBefore:       {operator.Succeeded, 1, 1},
	StaleAfter:        {operator.Succeeded, 1, 1},
	HangBefore:        {operator.Unknown, 0, 1},
	HangAfter:         {operator.Unknown, 1, 1},
	HangLate:          {operator.Unknown, 1, 1},
	TruncatedAfter:    {operator.Unknown, 1, 1},
	GarbageBefore:     {operator.Unknown, 0, 1},
	GarbageAfter:      {operator.Unknown, 1, 1},
	ServerErrorBefore: {operator.Unknown, 0, 1},
	ServerErrorAfter:  {operator.Unknown, 1, 1},
	Unavailable:       {operator.NotApplied, 0, 1},
	Throttled:         {operator.NotApplied, 0, 1},
	Unauthorized:      {operator.NotApplied, 0, 1},
	Rejected:          {operator.NotApplied, 0, 1},
	FinalRefusal:      {operator.Refused, 0, 0},
	SlowAfter:         {operator.Succeeded, 1, 1},
	Redirected:        {operator.Unknown, 0, 1},
	LieUnavailable:    {operator.NotApplied, 1, 1},
	LieDuplicate:      {operator.Unknown, 0, 1},
	ProxyErrorAfter:   {operator.Unknown, 1, 1},
}

// The real driver classifies each fault of each call, and its certain outcomes are true unless the operator lies. A
// repeat while a slow call is in progress has no effect, and neither has one after it.
func TestDriverOutcomesMatchEffects(t *testing.T) {
	for name, call := range driverCalls {
		for fault, want := range callExpectations {
			t.Run(name+", "+string(fault), func(t *testing.T) {
				b := newBench(t, only(OperatorCalls, fault), script{string(OperatorCalls): 1})
				result := call.send(t.Context(), b)
				if result.Outcome != want.outcome {
					t.Errorf("outcome %d (%v), want %d", result.Outcome, result.Fault, want.outcome)
				}
				lied := b.LiedAbout(call.key)
				if lied != faultTable[fault].lies {
					t.Errorf("recorded a lie: %v", lied)
				}
				if fault != NoFault && b.Faults.Taken[OperatorCalls][fault] != 1 {
					t.Errorf("counted %d faults", b.Faults.Taken[OperatorCalls][fault])
				}
				if b.IsDelayed(call.kind, call.key) != (fault == HangLate) {
					t.Errorf("a request is on its way: %v", fault != HangLate)
				}
				if fault == SlowAfter || fault == HangLate {
					call.send(t.Context(), b)
				}
				effects := call.effects(b)
				if effects != want.effects {
					t.Errorf("%d effects, want %d", effects, want.effects)
				}
				isFalse := result.Outcome == operator.Succeeded && effects != 1 ||
					(result.Outcome == operator.NotApplied || result.Outcome == operator.Refused) && effects != 0
				if isFalse && !lied {
					t.Errorf("outcome %d with %d effects is false", result.Outcome, effects)
				}
				b.KeyWindow = 2 * month
				b.Advance(start.Add(10 * time.Second))
				call.send(t.Context(), b)
				if effects := call.effects(b); effects != want.repeats {
					t.Errorf("%d effects after a repeat, want %d", effects, want.repeats)
				}
			})
		}
	}
}

// After the window the operator has forgotten the key.
func TestRepeatAfterWindow(t *testing.T) {
	for name, call := range driverCalls {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, &Faults{}, script{})
			for _, step := range []struct {
				age  time.Duration
				want int
			}{{0, 1}, {DefaultKeyWindow - time.Second, 1}, {DefaultKeyWindow, 2}} {
				b.Advance(start.Add(step.age))
				call.send(t.Context(), b)
				b.Advance(b.now.Add(payerDelay))
				if effects := b.Effects(); len(effects) != 1 || effects[0].Count != step.want {
					t.Errorf("after %s: effects %+v, want a count of %d", step.age, effects, step.want)
				}
			}
		})
	}
}

// An effect has what the call wanted.
func TestEffects(t *testing.T) {
	for name, want := range map[string]Effect{
		"charge":           {Merchant: "DemoShop", AmountMinor: 500, Currency: "XOF", MSISDN: "alias"},
		"terminal payment": {Merchant: "DemoShop", AmountMinor: 1500, Currency: "XOF", MSISDN: "+2250707070707"},
		"SMS":              {Merchant: "DemoShop", MSISDN: "alias", Text: "m"},
		"payer's SMS":      {Merchant: "DemoShop", MSISDN: "+2250707070707", Text: "t"},
	} {
		call, b := driverCalls[name], newBench(t, &Faults{}, script{})
		want.Kind, want.Key, want.Count = call.kind, call.key, 1
		call.send(t.Context(), b)
		b.Advance(start.Add(payerDelay))
		got, _ := b.EffectOf(call.kind, call.key)
		got.At, got.LastAt = time.Time{}, time.Time{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// lookup calls getStatus through the real driver.
func (b *bench) lookup(t *testing.T) operator.StatusResponse {
	t.Helper()
	call := operator.StatusCall{Call: callOf("DemoShop_1"), Channel: "web", Lang: "fr"}
	return b.driver.LookUpPayment(t.Context(), call)
}

func TestDriverReadsLookups(t *testing.T) {
	for fault, want := range map[Fault]struct{ known, notFound bool }{
		NoFault: {known: true}, ResetBefore: {}, StaleBefore: {known: true}, HangBefore: {}, TruncatedAfter: {},
		GarbageBefore: {}, ServerErrorBefore: {}, Unavailable: {}, SlowAfter: {known: true},
		NotFoundYet: {notFound: true}, LieNotFound: {notFound: true},
	} {
		t.Run(string(fault), func(t *testing.T) {
			b := newBench(t, only(Lookups, fault), script{string(Lookups): 1})
			payOn("web").send(t.Context(), b)
			got := b.lookup(t)
			if (got.Status != "") != want.known || got.OrderNotFound != want.notFound {
				t.Errorf("status %q, not found %v, want %v", got.Status, got.OrderNotFound, want)
			}
			if after := b.lookup(t); after.Status != ledger.Pending || after.Amount != "1500" {
				t.Errorf("the next lookup: %+v", after)
			}
		})
	}
}

// getStatus reports the payer's decision from its time on.
func TestLookupReportsPayersDecision(t *testing.T) {
	for fault, want := range map[Fault]struct {
		status  string
		after   time.Duration
		effects int
	}{
		NoFault:      {"successful", payerDelay, 1},
		PayerFails:   {"failed", payerDelay, 0},
		PayerCancels: {"cancelled", payerDelay, 0},
		PayerExpires: {"expired", expiryDelay, 0},
		PayerLate:    {"successful", time.Minute, 1},
		PayerNever:   {"pending", month, 0},
		LieReversed:  {"failed", payerDelay + 10*time.Second, 0},
	} {
		t.Run(string(fault), func(t *testing.T) {
			b := newBench(t, only(Payers, fault), script{string(Payers): 1})
			call := payOn("tpe")
			call.send(t.Context(), b)
			before := "pending"
			if fault == LieReversed {
				before = "successful"
			}
			for i, status := range []string{before, want.status} {
				b.Advance(start.Add(want.after + time.Duration(i-1)*time.Millisecond))
				mapped, _ := operator.ParsePaymentStatus(status)
				if got := b.lookup(t); got.Status != mapped {
					t.Errorf("%s after the start: %s, want %s", b.now.Sub(start), got.Status, mapped)
				}
			}
			status, _, ok := b.FinalStatus(call.key)
			if ok != (fault != PayerNever) || ok && status != want.status {
				t.Errorf("FinalStatus: %s, %v", status, ok)
			}
			if effects := call.effects(b); effects != want.effects {
				t.Errorf("%d effects, want %d", effects, want.effects)
			}
		})
	}
}

// A call under a key is compared with the first one that came. A refused connection did not come.
func TestOperatorReportsAnotherContent(t *testing.T) {
	for fault, want := range map[Fault][]string{
		NoFault: {"charge DemoShop.c1"}, ResetBefore: {"charge DemoShop.c1"}, ConnectRefused: nil,
	} {
		b := newBench(t, only(OperatorCalls, fault), script{})
		var reported []string
		b.OnOtherContent = func(kind, key string) { reported = append(reported, kind+" "+key) }
		b.chooser = script{string(OperatorCalls): 1}
		for _, description := range []string{"a", "b", "b"} {
			chargeWith(description).send(t.Context(), b)
			if fault == NoFault && description == "a" {
				chargeWith(description).send(t.Context(), b)
			}
		}
		if fault != ConnectRefused {
			want = append(want, want...)
		}
		if !slices.Equal(reported, want) {
			t.Errorf("%s: reported %q, want %q", fault, reported, want)
		}
	}
}

// Choice 0 is never a fault; a rate of 1,000 per mille is a fault at every other choice.
func TestRates(t *testing.T) {
	for group := range groupFaults {
		for _, fault := range FaultsOf(group) {
			for _, rate := range []int{0, 1, 250, 1000} {
				f := &Faults{}
				f.Set(group, fault, rate)
				for number := range 1001 {
					got := f.pick(fixedChoice(number), group)
					if number == 0 && got != NoFault || got != NoFault && got != fault {
						t.Errorf("%s with the rate %d: choice %d is %s", fault, rate, number, got)
					}
				}
				if f.Taken[group][fault] != rate {
					t.Errorf("%s with the rate %d: taken %d times", fault, rate, f.Taken[group][fault])
				}
			}
		}
	}
}

// fixedChoice makes the same choice always.
type fixedChoice int

func (c fixedChoice) Choose(_ string, n int) int { return min(int(c), n-1) }

func TestOutage(t *testing.T) {
	b := newBench(t, &Faults{}, script{})
	b.Outages = []Outage{{Window: Window{start, start.Add(time.Hour)}, Kind: KindSMS, Fault: HangBefore}}
	for call, want := range map[string]operator.Outcome{
		"SMS": operator.Unknown, "payer's SMS": operator.Succeeded, "web payment": operator.Succeeded,
	} {
		if got := driverCalls[call].send(t.Context(), b).Outcome; got != want {
			t.Errorf("%s in the outage of SMS: outcome %d, want %d", call, got, want)
		}
	}
}
