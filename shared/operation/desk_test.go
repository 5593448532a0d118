package operation_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
)

// request is a request that the function's timeout ends.
func request(w *operationtest.World) *apigw.Request {
	now := w.Clock.Now()
	return &apigw.Request{Event: telemetry.New("test", now), Deadline: now.Add(operationtest.Timeout)}
}

// entry is a charge that is ready to be held.
func entry(fingerprint string) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: "id-1"}, MerchantID: "demo0001", Operator: "orange", Country: "CI",
		Fingerprint: fingerprint, UpstreamKey: "DemoShop.c-1",
	}
}

func hold(t testing.TB, w *operationtest.World, fingerprint string) (held, stored *ledger.Entry, err error) {
	t.Helper()
	return w.Desk.Hold(context.Background(), request(w), entry(fingerprint), "c-1", "the.part")
}

func kindOf(err error) fault.Kind { return fault.As(err).Kind }

func TestHold(t *testing.T) {
	w := operationtest.New(t)
	held, stored, err := hold(t, w, "f1")
	if err != nil || stored != nil || held.Account != "a1" || !held.LeaseUntil.Equal(w.Clock.Now().Add(operationtest.Timeout+5*time.Second)) {
		t.Fatalf("decision leases: held %+v, stored %v, %v", held, stored, err)
	}
	held, stored, err = hold(t, w, "f1")
	if f := fault.As(err); held != nil || stored != nil || f.Kind != fault.InFlight || f.Part != "the.part" || f.Value != "c-1" {
		t.Errorf("decision in-flight: %v, %v, %v", held, stored, err)
	}
	w.Clock.Advance(time.Minute)
	if held, _, err = hold(t, w, "f1"); err != nil || !held.EverUnknown || held.Version != 2 {
		t.Errorf("decision leases: a lapsed reservation means unknown: %+v, %v", held, err)
	}
	w.Clock.Advance(24 * time.Hour)
	if held, stored, err = hold(t, w, "f1"); held != nil || stored != nil || kindOf(err) != fault.OutcomeUnknown {
		t.Errorf("decision repeat-window: %v, %v, %v", held, stored, err)
	}
}

func TestHoldFails(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(*operationtest.World)
		want    fault.Kind
	}{
		{"the store", func(w *operationtest.World) {
			w.Ledger.SetFaults(func(ledgermem.Call) ledgermem.Fault { return ledgermem.Error })
		}, fault.Internal},
		{"no account", func(w *operationtest.World) {
			w.Driver.SetAccount("", fault.Of(fault.OperatorRefusedUs))
		}, fault.OperatorRefusedUs},
		{"the credentials' source", func(w *operationtest.World) { w.Driver.SetAccount("", errors.New("gone")) }, fault.Internal},
		{"no driver", func(w *operationtest.World) { w.Desk.Operators = operator.NewDirectory(nil) }, fault.Internal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			c.prepare(w)
			held, stored, err := hold(t, w, "f1")
			if held != nil || stored != nil || kindOf(err) != c.want || len(w.Ledger.All()) != 0 {
				t.Errorf("%v, %v, %v", held, stored, err)
			}
		})
	}
}

// A call ends in time to store what came of it: at the operator's timeout or 5 seconds before the function's end.
func TestCallDeadline(t *testing.T) {
	for name, c := range map[string]struct{ left, want time.Duration }{
		"a whole function": {operationtest.Timeout, operationtest.OperatorTimeout},
		"little is left":   {10 * time.Second, 5 * time.Second},
		"nothing is left":  {time.Second, -4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := operationtest.New(t)
			req := request(w)
			req.Deadline = w.Clock.Now().Add(c.left)
			var got time.Time
			w.Desk.Call(context.Background(), req, entry("f"), func(ctx context.Context, _ operator.Driver) operator.Result {
				got, _ = ctx.Deadline()
				return operator.Result{}
			})
			if got.Sub(w.Clock.Now()) != c.want {
				t.Errorf("the operator has %s, want %s", got.Sub(w.Clock.Now()), c.want)
			}
		})
	}
	t.Run("no driver any more", func(t *testing.T) {
		w := operationtest.New(t)
		w.Desk.Operators = operator.NewDirectory(nil)
		result := w.Desk.Call(context.Background(), request(w), entry("f"), nil)
		if result.Outcome != operator.Released || result.Fault.Kind != fault.OperatorRefusedUs {
			t.Errorf("result %+v", result)
		}
	})
}

// decision "outcomes", "unknown-sticks" and "charge-refusal": what is stored and what is told.
func TestSettle(t *testing.T) {
	down, refusal := fault.Of(fault.OperatorDown), &fault.Fault{
		Kind: fault.OperatorError, Operator: &fault.OperatorFault{MessageID: "POL1000", HTTPStatus: 403},
	}
	cases := []struct {
		name        string
		everUnknown bool
		result      operator.Result
		state       ledger.State
		status      int // of the answer; 0: an error
		told        fault.Kind
	}{
		{"done", false, operator.Result{Outcome: operator.Done}, ledger.Done, 201, 0},
		{"refused", false, operator.Result{Outcome: operator.Refused, Fault: refusal}, ledger.Refused, 403, 0},
		{"released", false, operator.Result{Outcome: operator.Released, Fault: down}, ledger.Released, 0, fault.OperatorDown},
		{"unknown", false, operator.Result{Fault: fault.Of(fault.OutcomeUnknown)}, ledger.Unknown, 0, fault.OutcomeUnknown},
		{"unknown without a fault", false, operator.Result{}, ledger.Unknown, 0, fault.OutcomeUnknown},
		{"decision unknown-sticks: released after an unknown", true, operator.Result{Outcome: operator.Released, Fault: down}, ledger.Unknown, 0, fault.OutcomeUnknown},
		{"decision unknown-sticks: refused after an unknown", true, operator.Result{Outcome: operator.Refused, Fault: refusal}, ledger.Refused, 403, 0},
		{"decision unknown-sticks: done after an unknown", true, operator.Result{Outcome: operator.Done}, ledger.Done, 201, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			held, _, err := hold(t, w, "f")
			if err != nil {
				t.Fatal(err)
			}
			if c.everUnknown {
				w.Clock.Advance(time.Minute)
				if held, _, err = hold(t, w, "f"); err != nil {
					t.Fatal(err)
				}
			}
			done := ledger.Settlement{AnswerStatus: 201, AnswerBody: []byte(`{}`)}
			settled, err := w.Desk.Settle(context.Background(), request(w), held, c.result, operation.Outcomes{Done: done})
			if got := w.Only(t, ledger.Charge).State; got != c.state {
				t.Errorf("state %s, want %s", got, c.state)
			}
			if c.status == 0 && (settled != nil || kindOf(err) != c.told) || c.status != 0 && (err != nil || settled.AnswerStatus != c.status) {
				t.Errorf("settled %+v, %v", settled, err)
			}
		})
	}
}

func TestSettleIsNotStored(t *testing.T) {
	w := operationtest.New(t)
	held, _, err := hold(t, w, "f")
	if err != nil {
		t.Fatal(err)
	}
	w.Ledger.SetFaults(func(ledgermem.Call) ledgermem.Fault { return ledgermem.LostAnswer })
	_, err = w.Desk.Settle(context.Background(), request(w), held, operator.Result{Outcome: operator.Done}, operation.Outcomes{})
	if kindOf(err) != fault.OutcomeUnknown {
		t.Errorf("what is not known to be stored is not told: %v", err)
	}
}

// decision "charge-repeat": every repeat with another body is counted.
func TestMismatches(t *testing.T) {
	w := operationtest.New(t)
	if _, _, err := hold(t, w, "f1"); err != nil {
		t.Fatal(err)
	}
	req := request(w)
	_, _, err := w.Desk.Hold(context.Background(), req, entry("f2"), "c-1", "p")
	var line bytes.Buffer
	if writeErr := req.Event.Write(&line); writeErr != nil || kindOf(err) != fault.InFlight || !strings.Contains(line.String(), `"MismatchedReplays":1`) {
		t.Errorf("%v: %s", err, line.String())
	}
}

// decision "authentication" and "charge-country".
func TestCarrier(t *testing.T) {
	w, profile := operationtest.New(t), operationtest.Demo()
	profile.Operators = []string{"nobody", "mtn", "sandbox"}
	if able, err := w.Desk.Carrier(profile, "sms", country(t, "SN")); err != nil || able.Operator != "mtn" {
		t.Errorf("decision charge-country: %+v, %v", able, err)
	}
	profile.Operations = nil
	if _, err := w.Desk.Carrier(profile, "sms", country(t, "SN")); kindOf(err) != fault.Forbidden {
		t.Errorf("decision authentication: %v", err)
	}
}

func country(t testing.TB, alpha2 string) market.Country {
	t.Helper()
	found, ok := market.ByAlpha2(alpha2)
	if !ok {
		t.Fatal("no such country")
	}
	return found
}

func TestStored(t *testing.T) {
	e := &ledger.Entry{State: ledger.Done, AnswerStatus: 201, AnswerBody: []byte(`{"a":1}`)}
	first, again := operation.Stored(e, "https://x/1", false), operation.Stored(e, "https://x/1", true)
	if first.Status != 201 || string(first.Body) != `{"a":1}` || first.Header["Location"] != "https://x/1" || first.Header["Idempotent-Replayed"] != "" {
		t.Errorf("first %+v", first)
	}
	if again.Header["Idempotent-Replayed"] != "true" || string(again.Body) != string(first.Body) {
		t.Errorf("again %+v", again)
	}
	e.State = ledger.Refused
	if got := operation.Stored(e, "https://x/1", true); got.Header["Location"] != "" {
		t.Errorf("a refusal has a Location: %+v", got)
	}
}
