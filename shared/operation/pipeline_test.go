package operation_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

// newEntry is a charge that is ready to be reserved.
func newEntry(fingerprint string) *ledger.Entry {
	return &ledger.Entry{
		Key:     ledger.Key{Kind: ledger.Charge, ID: "id-1"},
		Route:   ledger.Route{Operator: "orange", Country: "CI", UpstreamKey: "DemoShop.c-1"},
		Request: ledger.Request{Fingerprint: fingerprint},
	}
}

// mustReserve returns an attempt that has a reservation.
func mustReserve(t testing.TB, w *operationtest.Fixture) *operation.Attempt {
	t.Helper()
	a := w.NewAttempt(newEntry("f"))
	if reserved, err := w.Pipeline.Reserve(t.Context(), a, nil); err != nil || !reserved {
		t.Fatalf("reserved %v, error %v; want a reservation", reserved, err)
	}
	return a
}

// assertReserveFails checks the fault of a reservation that is refused, or that finds the entry of another attempt.
// Credentials without a usable account have the alarm of refused ones.
func assertReserveFails(t testing.TB, w *operationtest.Fixture, rule string, want fault.Fault) {
	t.Helper()
	a := w.NewAttempt(newEntry("f"))
	reserved, err := w.Pipeline.Reserve(t.Context(), a, nil)
	f := fault.FromError(err)
	exists := want.Kind == fault.OutcomeUnknown || want.Kind == fault.RequestInProgress
	if reserved || (a.Stored != nil) != exists {
		t.Errorf("%s: reserved %v, stored %v; want only an existing entry", rule, reserved, a.Stored)
	}
	if f.Kind != want.Kind || f.Part != want.Part || f.Value != want.Value {
		t.Errorf("%s: fault %s in %q, value %q; want %s in %q, value %q",
			rule, f.Kind, f.Part, f.Value, want.Kind, want.Part, want.Value)
	}
	assertCounted(t, a.Request, "OperatorAuthFailures", want.Kind == fault.IntegrationRejected)
}

func kindOf(err error) fault.Kind { return fault.FromError(err).Kind }

func TestReserve(t *testing.T) {
	w := operationtest.New(t)
	reservation := mustReserve(t, w).Stored
	if reservation.Route.Account != "a1" {
		t.Errorf("account %q, want the operator's current one", reservation.Route.Account)
	}
	want := operationtest.FunctionTimeout + 5*time.Second
	if got := reservation.LeaseUntil.Sub(w.Clock.Now()); got != want {
		t.Errorf("decision leases: lease of %s, want %s", got, want)
	}
	inFlight := fault.Fault{Kind: fault.RequestInProgress, Part: "the.part", Value: "id-1"}
	assertReserveFails(t, w, "decision in-flight", inFlight)
	w.Clock.Advance(time.Minute)
	reservation = mustReserve(t, w).Stored
	if !reservation.EverUnknown || reservation.Version != 2 {
		t.Errorf("decision leases: a lapsed lease means unknown: ever unknown %v, version %d",
			reservation.EverUnknown, reservation.Version)
	}
	w.Clock.Advance(24 * time.Hour)
	assertReserveFails(t, w, "decision repeat-window", fault.Fault{Kind: fault.OutcomeUnknown})
}

// decision "day-shards": the reservation stores the partition of the day. A request after a release, when the profile
// has another number, does not move the entry.
func TestReserveStoresDayShard(t *testing.T) {
	for _, shards := range []int{0, 1, 7} {
		w := operationtest.New(t)
		attempt := func(fingerprint string, shards int) *ledger.Entry {
			a := w.NewAttempt(newEntry(fingerprint))
			a.Profile = a.Profile.Clone()
			a.Profile.SetDayShards(shards)
			if reserved, err := w.Pipeline.Reserve(t.Context(), a, nil); err != nil || !reserved {
				t.Fatalf("reserved %v, error %v; want a reservation", reserved, err)
			}
			return a.Stored
		}
		e := attempt("f", shards)
		want := ledger.DayShardAmong(e.Key, shards)
		if e.Merchant.DayShard != want || (want > 0) != (shards > 1) {
			t.Errorf("%d partitions: the entry is in %d, want %d", shards, e.Merchant.DayShard, want)
		}
		e.ApplyOutcome(e.Owner, ledger.CallOutcome{State: ledger.Released, UnbindBody: true}, w.Clock.Now())
		w.Ledger.Overwrite(e)
		if again := attempt("another", 5); again.Merchant.DayShard != want || again.Request.Fingerprint != "another" {
			t.Errorf("%d partitions: another request moves the entry to %d", shards, again.Merchant.DayShard)
		}
	}
}

func TestReserveFails(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(*operationtest.Fixture)
		want    fault.Kind
	}{
		{"the store fails", func(w *operationtest.Fixture) { w.FailEvery(storetest.Insert) }, fault.Internal},
		{"no account", func(w *operationtest.Fixture) {
			w.Driver.AccountErr = fault.New(fault.IntegrationRejected)
		}, fault.IntegrationRejected},
		{"no credentials", func(w *operationtest.Fixture) { w.Driver.AccountErr = errors.New("gone") },
			fault.Internal},
		{"no driver", func(w *operationtest.Fixture) { w.Pipeline.Operators = operator.NewDriverDirectory(nil, nil) },
			fault.Internal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			c.prepare(w)
			assertReserveFails(t, w, c.name, fault.Fault{Kind: c.want})
			if stored := len(w.Ledger.All()); stored != 0 {
				t.Errorf("%d entries are stored, want none", stored)
			}
		})
	}
}

// A call ends in time to store its outcome: at the operator's timeout or 5 seconds before the function's end.
func TestCallDeadline(t *testing.T) {
	for name, c := range map[string]struct{ left, want time.Duration }{
		"the whole function is left": {operationtest.FunctionTimeout, operationtest.OperatorTimeout},
		"little is left":             {10 * time.Second, 5 * time.Second},
		"too little is left":         {time.Second, -4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := operationtest.New(t)
			a := mustReserve(t, w)
			a.Request.Deadline = w.Clock.Now().Add(c.left)
			var deadline time.Time
			w.Pipeline.CallOperator(context.Background(), a,
				func(ctx context.Context, _ operator.Driver, _ operator.Call) operator.PayResponse {
					deadline, _ = ctx.Deadline()
					return operator.PayResponse{}
				})
			if got := deadline.Sub(w.Clock.Now()); got != c.want {
				t.Errorf("the operator has %s, want %s", got, c.want)
			}
		})
	}
	t.Run("the driver was removed", func(t *testing.T) {
		w := operationtest.New(t)
		a := mustReserve(t, w)
		w.Pipeline.Operators = operator.NewDriverDirectory(nil, nil)
		result := w.Pipeline.CallOperator(context.Background(), a, nil).Result
		if result.Outcome != operator.NotApplied || result.Fault.Kind != fault.IntegrationRejected {
			t.Errorf("outcome %v, fault %v; want not applied, integration rejected", result.Outcome, result.Fault)
		}
	})
}

// decision "outcomes", "unknown-sticks" and "charge-refusal": the stored state and the response.
func TestRecordOutcome(t *testing.T) {
	down, refused := operationtest.RespondUnavailable(nil), operationtest.RefuseFinally("POL1000")(nil)
	succeeded := operator.Result{Outcome: operator.Succeeded}
	cases := []struct {
		name        string
		everUnknown bool
		result      operator.Result
		state       ledger.State
		status      int // of the response; 0: a fault
		kind        fault.Kind
	}{
		{"done", false, succeeded, ledger.Done, 201, 0},
		{"refused", false, refused, ledger.Refused, 403, 0},
		{"released", false, down, ledger.Released, 0, fault.OperatorUnavailable},
		{"unknown", false, operationtest.LoseRequest(nil), ledger.Unknown, 0, fault.OutcomeUnknown},
		{"unknown without a fault", false, operator.Result{}, ledger.Unknown, 0, fault.OutcomeUnknown},
		{"decision unknown-sticks: released after an unknown", true, down, ledger.Unknown, 0, fault.OutcomeUnknown},
		{"decision unknown-sticks: refused after an unknown", true, refused, ledger.Refused, 403, 0},
		{"decision unknown-sticks: done after an unknown", true, succeeded, ledger.Done, 201, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			a := mustReserve(t, w)
			if c.everUnknown {
				w.Clock.Advance(time.Minute)
				a = mustReserve(t, w)
			}
			done := ledger.CallOutcome{ResponseStatus: 201, ResponseBody: []byte(`{}`)}
			err := w.Pipeline.RecordOutcome(t.Context(), a, c.result, operation.CallOutcomes{Done: done})
			w.AssertState(t, ledger.Charge, c.state)
			switch {
			case c.status == 0 && (err == nil || kindOf(err) != c.kind):
				t.Errorf("fault %v; want a fault %s", err, c.kind)
			case c.status != 0 && (err != nil || a.Stored.Response.Status != c.status):
				t.Errorf("fault %v; want a response with status %d", err, c.status)
			}
		})
	}
}

// decision "sms-duplicate": nothing was sent only if every attempt proved it.
func TestNothingSent(t *testing.T) {
	duplicate, lost := operator.Result{DuplicateKey: true}, operationtest.LoseRequest(nil)
	down := operationtest.RespondUnavailable(nil)
	for name, c := range map[string]struct {
		results []operator.Result
		want    bool
	}{
		"the key was known":                      {[]operator.Result{duplicate}, true},
		"no response":                            {[]operator.Result{lost}, false},
		"the key was known, then not applied":    {[]operator.Result{duplicate, down}, true},
		"the key was known, then no response":    {[]operator.Result{duplicate, lost}, false},
		"no response, and then the key is known": {[]operator.Result{lost, duplicate}, false},
	} {
		w := operationtest.New(t)
		for _, result := range c.results {
			err := w.Pipeline.RecordOutcome(t.Context(), mustReserve(t, w), result, operation.CallOutcomes{})
			if kindOf(err) != fault.OutcomeUnknown {
				t.Errorf("%s: fault %v, want an unknown outcome", name, err)
			}
		}
		if got := w.OnlyEntry(t, ledger.Charge).NothingSent; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// No outcome is reported before it is stored. A refusal would let the merchant give the order up, or take a new key,
// while a retry under this key still gets another response.
func TestRecordOutcomeWhenStoreFails(t *testing.T) {
	for name, result := range map[string]operator.Result{
		"success":     {Outcome: operator.Succeeded},
		"refusal":     operationtest.RefuseFinally("POL1000")(nil),
		"not applied": operationtest.RespondUnavailable(nil),
		"unknown":     operationtest.LoseRequest(nil),
	} {
		for _, failure := range []storetest.Fault{storetest.LostResponse, storetest.FailedBeforeApply} {
			w := operationtest.New(t)
			a := mustReserve(t, w)
			w.Ledger.InjectFaults(func(storetest.Call) storetest.Fault { return failure })
			err := w.Pipeline.RecordOutcome(t.Context(), a, result, operation.CallOutcomes{})
			if a.Stored.State != ledger.Reserved || kindOf(err) != fault.OutcomeUnknown {
				t.Errorf("%s, table %v: an outcome that may not be stored is reported: %v, %v",
					name, failure, a.Stored, err)
			}
		}
	}
}

// A response that cannot be stored is not sent: the fault names the transaction (decision "charge-unknown").
func TestStoreMissingResponse(t *testing.T) {
	w := operationtest.New(t)
	a := mustReserve(t, w)
	applied, err := w.Pipeline.Book.StoreOutcome(t.Context(), a.Stored, ledger.RecordSuccess,
		ledger.CallOutcome{State: ledger.Done})
	if err != nil {
		t.Fatal(err)
	}
	a.Stored, a.Location = applied, "https://x/1"
	w.FailEvery(storetest.Replace)
	err = w.Pipeline.StoreMissingResponse(t.Context(), a, ledger.RespondAfterResolution, []byte(`{}`))
	if f := fault.FromError(err); f == nil || f.Kind != fault.OutcomeUnknown || f.Location != a.Location {
		t.Errorf("fault %+v, want an unknown outcome at %s", f, a.Location)
	}
	w.FailEvery()
	err = w.Pipeline.StoreMissingResponse(t.Context(), a, ledger.RespondAfterResolution, []byte(`{}`))
	if err != nil || a.Stored.Response.Status != 201 {
		t.Errorf("error %v, stored %v; want the response", err, a.Stored)
	}
}

// decision "charge-repeat": every repeat with another body is counted.
func TestMismatchedRepeatsAreCounted(t *testing.T) {
	w := operationtest.New(t)
	mustReserve(t, w)
	for fingerprint, want := range map[string]bool{"f": false, "f2": true} {
		a := w.NewAttempt(newEntry(fingerprint))
		if _, err := w.Pipeline.Reserve(t.Context(), a, nil); kindOf(err) != fault.RequestInProgress {
			t.Errorf("fault %v, want request in progress", err)
		}
		assertCounted(t, a.Request, "MismatchedRepeats", want)
	}
}

// decision "retention": an entry without a retention is kept without limit.
func TestExpireAt(t *testing.T) {
	w := operationtest.New(t)
	for retention, want := range map[time.Duration]time.Time{
		0: {}, -time.Hour: {}, time.Hour: w.Clock.Now().Add(time.Hour),
	} {
		if got := w.Pipeline.ExpireAt(retention); !got.Equal(want) {
			t.Errorf("a retention of %s ends at %s, want %s", retention, got, want)
		}
	}
}

// assertCounted checks whether a request counted a metric once or not at all.
func assertCounted(t testing.TB, req *apigw.Request, metric string, want bool) {
	t.Helper()
	var line bytes.Buffer
	if err := req.LogLine.Write(&line); err != nil {
		t.Fatal(err)
	}
	counted := strings.Contains(line.String(), `"`+metric+`":`)
	if once := strings.Contains(line.String(), `"`+metric+`":1`); counted != want || once != want {
		t.Errorf("%s: counted %v, once %v; want %v: %s", metric, counted, once, want, line.String())
	}
}

// Each alarm counts only its own failures.
func TestOutcomeMetrics(t *testing.T) {
	credentials := &fault.Fault{Kind: fault.IntegrationRejected}
	for name, c := range map[string]struct {
		result operator.Result
		table  storetest.Fault
		counts string
	}{
		"success":             {operator.Result{Outcome: operator.Succeeded}, storetest.NoFault, ""},
		"operator down":       {operationtest.RespondUnavailable(nil), storetest.NoFault, ""},
		"credentials refused": {operator.Result{Fault: credentials}, storetest.NoFault, "OperatorAuthFailures"},
		"credentials refused, outcome unknown": {
			upstream.Unknown(operator.ErrCredentialsRefused), storetest.NoFault, "OperatorAuthFailures",
		},
		"account without units": {
			upstream.NotApplied(fault.IntegrationRejected, operator.ErrNoUnits), storetest.NoFault, "ExhaustedAccounts",
		},
		"code that the driver does not know": {
			upstream.UnmappedCode(errors.New("400 NEW")), storetest.NoFault, "UnmappedCodes",
		},
		"amount cannot be refunded": {
			operationtest.RespondUnavailable(nil), storetest.FailedBeforeApply, "LimitStoreFailures",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := operationtest.New(t)
			a := mustReserve(t, w)
			a.Stored.Amount.CountsDaily, a.Stored.Conflicts = true, []ledger.Conflict{{Reason: "earlier"}}
			w.Ledger.Overwrite(a.Stored)
			w.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return c.table })
			_ = w.Pipeline.RecordOutcome(t.Context(), a, c.result, operation.CallOutcomes{})
			for _, metric := range []string{"OperatorAuthFailures", "UnmappedCodes", "ExhaustedAccounts",
				"LimitStoreFailures", "StatusConflicts"} {
				assertCounted(t, a.Request, metric, metric == c.counts)
			}
		})
	}
}

func TestStoredResponse(t *testing.T) {
	const location = "https://x/1"
	cases := []struct {
		name     string
		state    ledger.State
		replayed bool
		header   map[string]string
	}{
		{"first", ledger.Done, false, map[string]string{"Location": location}},
		{"replayed", ledger.Done, true, map[string]string{"Location": location, "Idempotent-Replayed": "true"}},
		{"a refusal has no Location", ledger.Refused, true, map[string]string{"Idempotent-Replayed": "true"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := &ledger.Entry{
				Call: ledger.Call{State: c.state}, Response: ledger.Response{Status: 201, Body: []byte(`{"a":1}`)},
			}
			want := apigw.Response{Status: 201, Header: c.header, Body: e.Response.Body}
			want.Header["Content-Type"] = "application/json"
			a := &operation.Attempt{Stored: e, Location: location}
			if diff := cmp.Diff(want, a.StoredResponse(c.replayed)); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}
