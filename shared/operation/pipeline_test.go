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

// newRequest is a request that the function's timeout ends.
func newRequest(w *operationtest.Fixture) *apigw.Request {
	now := w.Clock.Now()
	return &apigw.Request{LogLine: telemetry.NewLogLine("test", now), Deadline: now.Add(operationtest.FunctionTimeout)}
}

// newEntry is a charge that is ready to be held.
func newEntry(fingerprint string) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: "id-1"}, MerchantID: "demo0001", Operator: "orange", Country: "CI",
		Fingerprint: fingerprint, UpstreamKey: "DemoShop.c-1",
	}
}

func reserve(t testing.TB, w *operationtest.Fixture, fingerprint string) (reservation, existing *ledger.Entry, err error) {
	t.Helper()
	return w.Pipeline.Reserve(context.Background(), newRequest(w), newEntry(fingerprint), "c-1", "the.part")
}

func kindOf(err error) fault.Kind { return fault.FromError(err).Kind }

func TestReserve(t *testing.T) {
	w := operationtest.New(t)
	reservation, existing, err := reserve(t, w, "f1")
	if err != nil || existing != nil || reservation.Account != "a1" || !reservation.LeaseUntil.Equal(w.Clock.Now().Add(operationtest.FunctionTimeout+5*time.Second)) {
		t.Fatalf("decision leases: held %+v, stored %v, %v", reservation, existing, err)
	}
	reservation, existing, err = reserve(t, w, "f1")
	if f := fault.FromError(err); reservation != nil || existing != nil || f.Kind != fault.RequestInProgress || f.Part != "the.part" || f.Value != "c-1" {
		t.Errorf("decision in-flight: %v, %v, %v", reservation, existing, err)
	}
	w.Clock.Advance(time.Minute)
	if reservation, _, err = reserve(t, w, "f1"); err != nil || !reservation.EverUnknown || reservation.Version != 2 {
		t.Errorf("decision leases: a lapsed reservation means unknown: %+v, %v", reservation, err)
	}
	w.Clock.Advance(24 * time.Hour)
	if reservation, existing, err = reserve(t, w, "f1"); reservation != nil || existing != nil || kindOf(err) != fault.OutcomeUnknown {
		t.Errorf("decision repeat-window: %v, %v, %v", reservation, existing, err)
	}
}

func TestReserveFails(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(*operationtest.Fixture)
		want    fault.Kind
	}{
		{"the store", func(w *operationtest.Fixture) {
			w.Ledger.InjectFaults(func(ledgermem.Call) ledgermem.InjectedFault { return ledgermem.FailedBeforeApply })
		}, fault.Internal},
		{"no account", func(w *operationtest.Fixture) {
			w.Driver.SetAccount("", fault.New(fault.IntegrationRejected))
		}, fault.IntegrationRejected},
		{"the credentials' source", func(w *operationtest.Fixture) { w.Driver.SetAccount("", errors.New("gone")) }, fault.Internal},
		{"no driver", func(w *operationtest.Fixture) { w.Pipeline.Operators = operator.NewDriverDirectory(nil) }, fault.Internal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			c.prepare(w)
			reservation, existing, err := reserve(t, w, "f1")
			if reservation != nil || existing != nil || kindOf(err) != c.want || len(w.Ledger.All()) != 0 {
				t.Errorf("%v, %v, %v", reservation, existing, err)
			}
		})
	}
}

// A call ends in time to store what came of it: at the operator's timeout or 5 seconds before the function's end.
func TestCallDeadline(t *testing.T) {
	for name, c := range map[string]struct{ left, want time.Duration }{
		"a whole function": {operationtest.FunctionTimeout, operationtest.OperatorTimeout},
		"little is left":   {10 * time.Second, 5 * time.Second},
		"nothing is left":  {time.Second, -4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := operationtest.New(t)
			req := newRequest(w)
			req.Deadline = w.Clock.Now().Add(c.left)
			var got time.Time
			w.Pipeline.CallOperator(context.Background(), req, newEntry("f"), func(ctx context.Context, _ operator.Driver) operator.Result {
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
		w.Pipeline.Operators = operator.NewDriverDirectory(nil)
		result := w.Pipeline.CallOperator(context.Background(), newRequest(w), newEntry("f"), nil)
		if result.Outcome != operator.NotApplied || result.Fault.Kind != fault.IntegrationRejected {
			t.Errorf("result %+v", result)
		}
	})
}

// decision "outcomes", "unknown-sticks" and "charge-refusal": what is stored and what is told.
func TestRecordOutcome(t *testing.T) {
	down, refusal := fault.New(fault.OperatorUnavailable), &fault.Fault{
		Kind: fault.OperatorError, OperatorException: &fault.OperatorException{MessageID: "POL1000", HTTPStatus: 403},
	}
	cases := []struct {
		name        string
		everUnknown bool
		result      operator.Result
		state       ledger.State
		status      int // of the answer; 0: an error
		told        fault.Kind
	}{
		{"done", false, operator.Result{Outcome: operator.Succeeded}, ledger.Done, 201, 0},
		{"refused", false, operator.Result{Outcome: operator.Refused, Fault: refusal}, ledger.Refused, 403, 0},
		{"released", false, operator.Result{Outcome: operator.NotApplied, Fault: down}, ledger.Released, 0, fault.OperatorUnavailable},
		{"unknown", false, operator.Result{Fault: fault.New(fault.OutcomeUnknown)}, ledger.Unknown, 0, fault.OutcomeUnknown},
		{"unknown without a fault", false, operator.Result{}, ledger.Unknown, 0, fault.OutcomeUnknown},
		{"decision unknown-sticks: released after an unknown", true, operator.Result{Outcome: operator.NotApplied, Fault: down}, ledger.Unknown, 0, fault.OutcomeUnknown},
		{"decision unknown-sticks: refused after an unknown", true, operator.Result{Outcome: operator.Refused, Fault: refusal}, ledger.Refused, 403, 0},
		{"decision unknown-sticks: done after an unknown", true, operator.Result{Outcome: operator.Succeeded}, ledger.Done, 201, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			reservation, _, err := reserve(t, w, "f")
			if err != nil {
				t.Fatal(err)
			}
			if c.everUnknown {
				w.Clock.Advance(time.Minute)
				if reservation, _, err = reserve(t, w, "f"); err != nil {
					t.Fatal(err)
				}
			}
			done := ledger.CallOutcome{ResponseStatus: 201, ResponseBody: []byte(`{}`)}
			updated, err := w.Pipeline.RecordOutcome(context.Background(), newRequest(w), reservation, c.result, operation.CallOutcomes{Done: done})
			if got := w.OnlyEntry(t, ledger.Charge).State; got != c.state {
				t.Errorf("state %s, want %s", got, c.state)
			}
			if c.status == 0 && (updated != nil || kindOf(err) != c.told) || c.status != 0 && (err != nil || updated.ResponseStatus != c.status) {
				t.Errorf("settled %+v, %v", updated, err)
			}
		})
	}
}

func TestRecordOutcomeWhenStoreFails(t *testing.T) {
	w := operationtest.New(t)
	reservation, _, err := reserve(t, w, "f")
	if err != nil {
		t.Fatal(err)
	}
	w.Ledger.InjectFaults(func(ledgermem.Call) ledgermem.InjectedFault { return ledgermem.LostResponse })
	_, err = w.Pipeline.RecordOutcome(context.Background(), newRequest(w), reservation, operator.Result{Outcome: operator.Succeeded}, operation.CallOutcomes{})
	if kindOf(err) != fault.OutcomeUnknown {
		t.Errorf("what is not known to be stored is not told: %v", err)
	}
}

// decision "charge-repeat": every repeat with another body is counted.
func TestMismatchedRepeatsAreCounted(t *testing.T) {
	w := operationtest.New(t)
	if _, _, err := reserve(t, w, "f1"); err != nil {
		t.Fatal(err)
	}
	req := newRequest(w)
	_, _, err := w.Pipeline.Reserve(context.Background(), req, newEntry("f2"), "c-1", "p")
	var line bytes.Buffer
	if writeErr := req.LogLine.Write(&line); writeErr != nil || kindOf(err) != fault.RequestInProgress || !strings.Contains(line.String(), `"MismatchedRepeats":1`) {
		t.Errorf("%v: %s", err, line.String())
	}
}

// decision "authentication" and "charge-country".
func TestSelectOperator(t *testing.T) {
	w, profile := operationtest.New(t), operationtest.DemoProfile()
	profile.Operators = []string{"nobody", "mtn", "sandbox"}
	if capabilities, err := w.Pipeline.SelectOperator(profile, "sms", mustCountry(t, "SN")); err != nil || capabilities.Operator != "mtn" {
		t.Errorf("decision charge-country: %+v, %v", capabilities, err)
	}
	profile.Operations = nil
	if _, err := w.Pipeline.SelectOperator(profile, "sms", mustCountry(t, "SN")); kindOf(err) != fault.Forbidden {
		t.Errorf("decision authentication: %v", err)
	}
}

func mustCountry(t testing.TB, alpha2 string) market.Country {
	t.Helper()
	found, ok := market.ByAlpha2(alpha2)
	if !ok {
		t.Fatal("no such country")
	}
	return found
}

func TestStoredResponse(t *testing.T) {
	e := &ledger.Entry{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte(`{"a":1}`)}
	first, again := operation.StoredResponse(e, "https://x/1", false), operation.StoredResponse(e, "https://x/1", true)
	if first.Status != 201 || string(first.Body) != `{"a":1}` || first.Header["Location"] != "https://x/1" || first.Header["Idempotent-Replayed"] != "" {
		t.Errorf("first %+v", first)
	}
	if again.Header["Idempotent-Replayed"] != "true" || string(again.Body) != string(first.Body) {
		t.Errorf("again %+v", again)
	}
	e.State = ledger.Refused
	if got := operation.StoredResponse(e, "https://x/1", true); got.Header["Location"] != "" {
		t.Errorf("a refusal has a Location: %+v", got)
	}
}
