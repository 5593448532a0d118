package report_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// A merchant of three countries, with an operator of each kind.
func TestOperators(t *testing.T) {
	f := newFixture(t)
	f.UpdateDemo(func(p *merchant.Profile) {
		p.Countries, p.Operators = []string{"CI", "BF", "CD"}, []string{"orange", "wave", "mtn", "moov"}
		p.DailyAmounts = map[string]int64{"XOF": 1000000}
	})
	f.accounts.routes = operator.Routes{
		ByOperator: map[string][]operator.Route{
			"orange": {{Country: "BF", Operation: "pay", Channel: "ussd", To: "pawapay/p"},
				{Country: "CI", Operation: "pay", Channel: "web", To: "orange-webpay/w"}},
			"mtn":  {{Country: "CI", Operation: "pay", To: "mtn-momo/m"}},
			"moov": {{Country: "BF", Operation: "pay", Channel: "tpe", To: "pawapay/p"}},
			"wave": {{Country: "CI", Operation: "pay", To: "wave-checkout/v"}},
		},
		Platforms: []string{"orange", "pawapay", "mtn-momo", "orange-webpay", "wave-checkout"},
	}
	response := f.Send(t, operators(t)).AssertStatus(t, 200)
	operationtest.GoldenResponse(t, "testdata/operators.json", response)
	if f.accounts.finds != 5 {
		t.Errorf("%d accounts were read, want each of 5 once", f.accounts.finds)
	}
	if reads := f.circuits.CallCount(storetest.LoadCircuit); reads != 7 {
		t.Errorf("%d circuits were read, want 7", reads)
	}
	f.AssertNoSideEffects(t)
}

// health returns the health and retry_after of the services of an operation.
func (f *fixture) health(t *testing.T, operation string) (health string, retryAfter int) {
	t.Helper()
	var body struct {
		Operators []struct {
			Operation, Health string
			RetryAfter        int `json:"retry_after"`
		}
	}
	if err := json.Unmarshal([]byte(f.Send(t, operators(t)).AssertStatus(t, 200).Body), &body); err != nil {
		t.Fatal(err)
	}
	for _, s := range body.Operators {
		if s.Operation == operation {
			return s.Health, s.RetryAfter
		}
	}
	t.Fatalf("no service %s: %+v", operation, body)
	return "", 0
}

// openFor opens a circuit, as a person does. 0 makes it take probes.
func openFor(wait time.Duration) func(*circuit.State, time.Time) {
	return func(s *circuit.State, now time.Time) { *s = circuit.OpenedByPerson(now, wait) }
}

// decision "circuit-breaker".
func TestHealth(t *testing.T) {
	key := circuit.Key{Account: "sandbox/a1", Operation: "pay"}
	for name, c := range map[string]struct {
		set        func(s *circuit.State, now time.Time)
		health     string
		retryAfter int
	}{
		"closed":    {nil, "available", 0},
		"open":      {openFor(90 * time.Second), "refused", 90},
		"half-open": {openFor(0), "degraded", 0},
		"suspect": {func(s *circuit.State, now time.Time) {
			s.SuspectUntil = now.Add(10 * time.Second).UnixMilli()
		}, "degraded", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.UpdateDemo(func(p *merchant.Profile) { p.Operators, p.Countries = []string{"sandbox"}, []string{"CI"} })
			if c.set != nil {
				state := circuit.State{}
				c.set(&state, f.Clock.Now())
				_, _, err := f.circuits.Swap(t.Context(), key, "", state.Encode(), f.Clock.Now().Add(time.Hour))
				if err != nil {
					t.Fatal(err)
				}
			}
			if health, retryAfter := f.health(t, "pay"); health != c.health || retryAfter != c.retryAfter {
				t.Errorf("%s for %d s, want %s for %d s", health, retryAfter, c.health, c.retryAfter)
			}
			if health, _ := f.health(t, "charge"); health != "available" {
				t.Errorf("another operation of the account is %s", health)
			}
		})
	}
	t.Run("a circuit that cannot be read, or is torn", func(t *testing.T) {
		f := newFixture(t)
		f.UpdateDemo(func(p *merchant.Profile) { p.Operators, p.Countries = []string{"sandbox"}, []string{"CI"} })
		if _, _, err := f.circuits.Swap(t.Context(), key, "", "torn", f.Clock.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if health, _ := f.health(t, "pay"); health != "available" {
			t.Errorf("a torn state is %s", health)
		}
		f.circuits.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
		if health, _ := f.health(t, "pay"); health != "available" {
			t.Errorf("an unreadable state is %s", health)
		}
	})
	t.Run("no usable account", func(t *testing.T) {
		f := newFixture(t)
		f.UpdateDemo(func(p *merchant.Profile) { p.Operators, p.Countries = []string{"sandbox"}, []string{"CI"} })
		f.accounts.broken = "sandbox"
		if health, retryAfter := f.health(t, "pay"); health != "refused" || retryAfter != 0 {
			t.Errorf("%s for %d s, want refused", health, retryAfter)
		}
	})
}

// The profile decides what is listed; unreadable routes are our fault.
func TestOperatorsOfProfile(t *testing.T) {
	f := newFixture(t)
	f.UpdateDemo(func(p *merchant.Profile) {
		p.Operations = []string{merchant.OperationOperators, merchant.OperationPay}
		p.Operators = []string{"flouci", "sandbox"}
		p.Countries = []string{"TN"}
	})
	body := f.Send(t, operators(t)).AssertStatus(t, 200).Body
	if strings.Contains(body, "charge") || strings.Contains(body, "flouci") || strings.Count(body, `"TN"`) != 3 {
		t.Errorf("got %s, want the three channels of the sandbox", body)
	}
	if !strings.Contains(body, `"decimals":3`) {
		t.Errorf("got %s, want three decimals", body)
	}
	f.UpdateDemo(func(p *merchant.Profile) { p.Operators = []string{"flouci"} })
	if body := f.Send(t, operators(t)).AssertStatus(t, 200).Body; body != `{"operators":[]}` {
		t.Errorf("got %s, want none", body)
	}
	f.accounts.err = &fault.Fault{Kind: fault.IntegrationRejected, Cause: errors.New("unreadable")}
	f.Send(t, operators(t)).AssertError(t, 502, "SVC0001", "PDK_SMSW_0002")
}
