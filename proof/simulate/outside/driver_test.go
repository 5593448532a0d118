package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// script makes the given choice at the first use of each label, and the normal one otherwise.
type script map[string]int

func (s script) Choose(label string, n int) int {
	choice := min(s[label], n-1)
	s[label] = 0
	return choice
}

// only returns faults of one group that are its choices from 1 on.
func only(group Group, faults ...Fault) *Faults {
	f := &Faults{Even: true}
	for _, fault := range faults {
		f.Set(group, fault, 1)
	}
	return f
}

// platform serves an operator's exchanges over real HTTP.
type platform struct {
	operator *Operator
	chooser  Chooser
	now      time.Time
	url      string
	closed   chan struct{}
	serving  sync.Mutex // around the operator
	requests int
}

func newPlatform(t *testing.T, faults *Faults, chooser Chooser) *platform {
	t.Helper()
	p := &platform{
		operator: &Operator{Name: "sandbox", Faults: faults, Trace: func(text string) { t.Log(text) }},
		chooser:  chooser, now: start, closed: make(chan struct{}),
	}
	server := httptest.NewServer(p)
	p.url = server.URL + "/operator"
	t.Cleanup(func() {
		close(p.closed)
		server.CloseClientConnections()
		server.Close()
	})
	return p
}

func (p *platform) serve(r *http.Request) Exchange {
	p.serving.Lock()
	defer p.serving.Unlock()
	body, _ := io.ReadAll(r.Body)
	p.requests++
	return p.operator.Serve(p.now, r, body, p.chooser)
}

// awaitServed waits until no request is being served.
func (p *platform) awaitServed() {
	p.serving.Lock()
	defer p.serving.Unlock()
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := p.serve(r)
	switch e.Failure {
	case NoResponse:
		select {
		case <-r.Context().Done():
		case <-p.closed:
		}
		return
	case NoFailure:
		for name, values := range e.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(e.Status)
		_, _ = w.Write(e.Body)
		return
	}
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer connection.Close()
	if e.Failure == TruncatedBody {
		const head = "HTTP/1.1 %d Half\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
		_, _ = fmt.Fprintf(connection, head, e.Status, len(e.Body), e.Body[:len(e.Body)/2])
	}
}

// newDriver returns the real driver for a base URL.
func newDriver(t *testing.T, base string) *carrierapi.Driver {
	t.Helper()
	accounts := map[string]any{
		"a1": map[string]any{
			"base_url": base, "access_token": "t", "service_id": "S", "application_id": "A", "contact_id": "C",
			"user_sms": map[string]any{
				"gw_token": "g", "sender": map[string]string{"CI": "tel:+2250000"}, "sender_name": "G",
			},
		},
	}
	document, err := json.Marshal(map[string]any{"sandbox": map[string]any{"current": "a1", "accounts": accounts}})
	if err != nil {
		t.Fatal(err)
	}
	reader := credentials.NewReader(secret.Static(document), time.Now, operator.CheckBaseURL)
	return carrierapi.New(reader, upstream.NewClient(nil), time.Now)
}

// callOf returns the common part of a call under a key.
func callOf(key string) operator.Call {
	return operator.Call{
		Platform: "sandbox", Operator: "sandbox", UpstreamKey: key, MCO: "OCI", Country: "CI",
		GWToken: "token", GWAlias: "alias",
	}
}

const callbackURL = APIBaseURL + "/callbacks/v1/payments/sandbox/DemoShop_1/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBk"

// driverCall is one call of the driver.
type driverCall struct {
	kind string // of the effect
	key  string
	send func(ctx context.Context, d *carrierapi.Driver) operator.Result
}

func sendPayment(channel string) func(context.Context, *carrierapi.Driver) operator.Result {
	return func(ctx context.Context, d *carrierapi.Driver) operator.Result {
		return d.Pay(ctx, operator.PayCall{
			Call: callOf("DemoShop_1"), Channel: channel, Lang: "fr", Amount: "1500", Currency: "XOF",
			ReturnURL: "https://a.example/", CancelURL: "https://a.example/", NotifyURL: callbackURL,
			Reference: "Demo", MSISDN: "+2250707070707", State: "<&>",
		}).Result
	}
}

var driverCalls = map[string]driverCall{
	"charge": {KindCharge, "DemoShop.c1", func(ctx context.Context, d *carrierapi.Driver) operator.Result {
		return d.Charge(ctx, operator.ChargeCall{
			Call: callOf("DemoShop.c1"), ReferenceCode: "R", Amount: "500", Currency: "XOF", Description: "d",
			OnBehalfOf: "Demo",
		})
	}},
	"web payment":      {KindPayment, "DemoShop_1", sendPayment("web")},
	"terminal payment": {KindPayment, "DemoShop_1", sendPayment("tpe")},
	"SMS": {KindSMS, "DemoShop.s1", func(ctx context.Context, d *carrierapi.Driver) operator.Result {
		return d.SendSMS(ctx, operator.SMSCall{
			Call: callOf("DemoShop.s1"), ISE2: "alias", Sender: "tel:+2250000", SenderName: "Demo", Message: "m",
			NotifyURL: strings.Replace(callbackURL, "payments", "receipts", 1),
		})
	}},
	"payer's SMS": {KindPayerSMS, "DemoShop_1", func(ctx context.Context, d *carrierapi.Driver) operator.Result {
		return d.SendUserSMS(ctx, operator.UserSMSCall{Call: callOf("DemoShop_1"), MSISDN: "+2250707070707", Text: "t"})
	}},
}

// sendTo makes a call at a platform, after a lookup that leaves a connection for reuse if the fault needs one.
func (c driverCall) sendTo(t *testing.T, p *platform, fault Fault) operator.Result {
	t.Helper()
	timeout := 10 * time.Second // the driver retries at once only if there is time
	if response := faultTable[fault].response; response != nil && response.Failure == NoResponse {
		timeout = 200 * time.Millisecond
	}
	driver := newDriver(t, p.url)
	if fault == StaleBefore || fault == StaleAfter {
		driver.LookUpPayment(t.Context(), operator.StatusCall{Call: callOf("X_1")})
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	defer p.awaitServed()
	return c.send(ctx, driver)
}

// effectsOf returns how many effects a call had in a month.
func (p *platform) effectsOf(c driverCall) int {
	p.operator.Advance(p.now.Add(30 * 24 * time.Hour))
	for _, effect := range p.operator.Effects() {
		if effect.Kind == c.kind && effect.Key == c.key {
			return effect.Count
		}
	}
	return 0
}

// expectation is what a fault of the first call leads to. repeats is the number of effects after a second call.
type expectation struct {
	outcome operator.Outcome
	effects int
	repeats int
}

var callExpectations = map[Fault]expectation{
	NoFault:           {operator.Succeeded, 1, 1},
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
}

// The real driver classifies each fault of each call, and its certain outcomes are true unless the operator lies.
func TestDriverOutcomesMatchEffects(t *testing.T) {
	for name, call := range driverCalls {
		for fault, want := range callExpectations {
			t.Run(name+", "+string(fault), func(t *testing.T) {
				t.Parallel()
				p := newPlatform(t, only(OperatorCalls, fault), script{string(OperatorCalls): 1})
				result := call.sendTo(t, p, fault)
				if result.Outcome != want.outcome {
					t.Errorf("outcome %d (%v), want %d", result.Outcome, result.Fault, want.outcome)
				}
				lied := len(p.operator.Lies()) > 0
				if lied != faultTable[fault].lies {
					t.Errorf("recorded a lie: %v", lied)
				}
				if fault != NoFault && p.operator.Faults.Taken[OperatorCalls][fault] != 1 {
					t.Errorf("counted %d faults", p.operator.Faults.Taken[OperatorCalls][fault])
				}
				if fault == HangLate {
					checkSecondCall(t, p, call, want)
					return // the time of the late effect has not come
				}
				effects := p.effectsOf(call)
				if effects != want.effects {
					t.Errorf("%d effects, want %d", effects, want.effects)
				}
				isFalse := result.Outcome == operator.Succeeded && effects != 1 ||
					(result.Outcome == operator.NotApplied || result.Outcome == operator.Refused) && effects != 0
				if isFalse && !lied {
					t.Errorf("outcome %d with %d effects is false", result.Outcome, effects)
				}
				checkSecondCall(t, p, call, want)
			})
		}
	}
}

// checkSecondCall repeats a call and checks that the key has no second effect.
func checkSecondCall(t *testing.T, p *platform, call driverCall, want expectation) {
	t.Helper()
	p.now = p.now.Add(10 * time.Second)
	call.sendTo(t, p, NoFault)
	if effects := p.effectsOf(call); effects != want.repeats {
		t.Errorf("%d effects after a repeat, want %d", effects, want.repeats)
	}
}

// A refused connection reaches no operator: the driver reports that nothing was applied.
func TestDriverReportsRefusedConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + listener.Addr().String()
	_ = listener.Close()
	result := driverCalls["charge"].send(t.Context(), newDriver(t, address))
	if result.Outcome != operator.NotApplied {
		t.Errorf("outcome %d, want NotApplied", result.Outcome)
	}
	row := faultTable[ConnectRefused]
	if row.effect != effectNever || row.response.Failure != ConnectionRefused {
		t.Errorf("the fault has an effect or another failure: %+v", row)
	}
}

// After the window the operator has forgotten the key.
func TestRepeatAfterWindow(t *testing.T) {
	for name, call := range driverCalls {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t, &Faults{}, script{})
			for _, step := range []struct {
				age  time.Duration
				want int
			}{{0, 1}, {DefaultKeyWindow - time.Second, 1}, {DefaultKeyWindow, 2}} {
				p.now = start.Add(step.age)
				call.sendTo(t, p, NoFault)
				p.now = p.now.Add(payerDelay)
				p.operator.Advance(p.now)
				if effects := p.operator.Effects(); len(effects) != 1 || effects[0].Count != step.want {
					t.Errorf("after %s: effects %+v, want a count of %d", step.age, effects, step.want)
				}
			}
		})
	}
}

// lookup calls getStatus through the real driver.
func (p *platform) lookup(t *testing.T, timeout time.Duration) operator.StatusResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	call := operator.StatusCall{Call: callOf("DemoShop_1"), Channel: "web", Lang: "fr"}
	return newDriver(t, p.url).LookUpPayment(ctx, call)
}

func TestDriverReadsLookups(t *testing.T) {
	cases := map[Fault]struct{ known, notFound bool }{
		NoFault:           {known: true},
		ResetBefore:       {},
		StaleBefore:       {},
		HangBefore:        {},
		TruncatedAfter:    {},
		GarbageBefore:     {},
		ServerErrorBefore: {},
		Unavailable:       {},
		SlowAfter:         {known: true},
		NotFoundYet:       {notFound: true},
		LieNotFound:       {notFound: true},
	}
	for fault, want := range cases {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t, only(Lookups, fault), script{string(Lookups): 1})
			driverCalls["web payment"].sendTo(t, p, NoFault)
			timeout := 10 * time.Second
			if fault == HangBefore {
				timeout = 200 * time.Millisecond
			}
			got := p.lookup(t, timeout)
			if (got.Status != "") != want.known || got.OrderNotFound != want.notFound {
				t.Errorf("status %q, not found %v, want %v", got.Status, got.OrderNotFound, want)
			}
			after := p.lookup(t, 10*time.Second)
			if after.Status != ledger.Pending || after.Amount != "1500" {
				t.Errorf("the next lookup: %+v", after)
			}
		})
	}
}
