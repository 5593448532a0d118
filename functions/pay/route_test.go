package pay_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

const uuidForm = `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`

// toCI is a route for payments in Ivory Coast.
func toCI(to string) operator.Route { return operator.Route{Country: "CI", Operation: "pay", To: to} }

// newRouted returns a fixture with these routes of mtn, and credentials of no operator's own platform.
func newRouted(t testing.TB, routes ...operator.Route) (*operationtest.Fixture, *operationtest.Routes) {
	t.Helper()
	w, deployed := newFixture(t), &operationtest.Routes{}
	deployed.Set("mtn", routes...)
	w.UseRoutes(w.Driver, deployed)
	return w, deployed
}

func mtnEvent(t testing.TB) *operationtest.Event { return ussdEvent(t).SetHeader("mno-name", "MTN") }

// decision "routes": the route decides the platform, the account and the form of the key.
func TestRoute(t *testing.T) {
	for name, c := range map[string]struct {
		operator, platform, account string
		event                       *operationtest.Event
		keyForm                     string
	}{
		"a UUID": {"mtn", "mtn-momo", "ci", mtnEvent(t), uuidForm},
		"the order_id": {"wave", "wave-checkout", "w", webEvent(t).SetHeader("mno-name", "wave"),
			"^" + order + "$"},
	} {
		to := c.platform + "/" + c.account
		w, routes := newRouted(t)
		routes.Set(c.operator, toCI(to))
		w.Send(t, c.event).AssertStatus(t, 201)
		call, entry := w.Driver.Calls()[0].Call, w.OnlyEntry(t, ledger.Payment)
		if call.Platform != c.platform || call.AccountID != c.account || entry.Route.Account != to {
			t.Errorf("%s: sent to %s, account %s, pinned to %+v", name, call.Platform, call.AccountID, entry.Route)
		}
		if !regexp.MustCompile(c.keyForm).MatchString(call.UpstreamKey) ||
			entry.Route.UpstreamKey != call.UpstreamKey || call.OrderID != order {
			t.Errorf("%s: key %s, stored %s, order %s", name, call.UpstreamKey, entry.Route.UpstreamKey, call.OrderID)
		}
		w.AssertCallCounts(t, 1, 0, 1, 1)
	}
}

// decision "routes": a retry keeps its pin and its key, also once nothing routes there any more.
func TestRetryKeepsItsPin(t *testing.T) {
	w, routes := newRouted(t, toCI("mtn-momo/ci"))
	w.Driver.SetBehaviours(operationtest.RespondUnavailable, operationtest.RespondUnavailable,
		operationtest.RespondUnavailable)
	w.Send(t, mtnEvent(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	for _, change := range []func(){
		func() { routes.Set("mtn", toCI("pawapay/p")) },
		func() { routes.Set("mtn"); routes.Platforms = []string{"mtn"} },
		func() {
			routes.Set("mtn", operator.Route{Country: "CM", Operation: "pay", To: "mtn-momo/cm"})
			routes.Platforms = nil
		},
	} {
		change()
		w.Send(t, mtnEvent(t))
	}
	calls := w.Driver.Calls()
	if len(calls) != 4 {
		t.Fatalf("%d calls, want 4", len(calls))
	}
	for i, call := range calls {
		got := call.Call
		if got.Platform != "mtn-momo" || got.AccountID != "ci" || got.UpstreamKey != calls[0].Call.UpstreamKey {
			t.Errorf("call %d: %+v, want the pin and the key of the first", i, got)
		}
	}
	w.Send(t, mtnEvent(t)).AssertHeader(t, "Idempotent-Replayed", "true")
	w.AssertSingleEffect(t, "pay "+calls[0].Call.UpstreamKey, 4)
	second := mtnEvent(t).SetBodyPart("order_id", "DemoShop_2002")
	w.Send(t, second).AssertStatus(t, 400) // nothing serves a new order
}

// decision "pay-otp": the platform that the payment is pinned to decides whether a repeat echoes the code.
func TestRepeatEchoesByItsPin(t *testing.T) {
	for _, accounts := range [][2]string{{"mtn-momo/ci", "pawapay/p"}, {"pawapay/p", "mtn-momo/ci"}} {
		w, routes := newRouted(t, toCI(accounts[0]))
		first := w.Send(t, mtnEvent(t)).AssertStatus(t, 201)
		routes.Set("mtn", toCI(accounts[1]))
		again := w.Send(t, mtnEvent(t)).AssertStatus(t, 201)
		if before, after := first.RawJSON("otp_code"), again.RawJSON("otp_code"); before != after {
			t.Errorf("%s: otp_code %q, then %q", accounts[0], before, after)
		}
	}
}

// decision "routes": a repeat gets its stored response, also if the routes cannot be read, or its account cannot be
// used. A new order gets the fault of our credentials.
func TestRepeatWithoutRoutes(t *testing.T) {
	unreadable := &fault.Fault{Kind: fault.IntegrationRejected, Cause: errors.New("unreadable")}
	for name, damage := range map[string]func(*operationtest.Fixture, *operationtest.Routes){
		"unreadable routes": func(_ *operationtest.Fixture, r *operationtest.Routes) { r.Err = unreadable },
		"a removed account": func(w *operationtest.Fixture, _ *operationtest.Routes) {
			w.Driver.AccountErr = unreadable
		},
	} {
		w, routes := newRouted(t, toCI("mtn-momo/ci"))
		first := w.Send(t, mtnEvent(t)).AssertStatus(t, 201)
		damage(w, routes)
		w.Send(t, mtnEvent(t)).AssertRepeatOf(t, first)
		w.Send(t, mtnEvent(t).SetBodyPart("amount", 1)).AssertError(t, 409, "SVC0005", order, "order_id")
		response := w.Send(t, mtnEvent(t).SetBodyPart("order_id", "DemoShop_2002"))
		response.AssertError(t, 502, "SVC0001", "PDK_SMSW_0002")
		w.AssertCounted(t, "OperatorAuthFailures")
		if stored := len(w.Ledger.All()); stored != 1 {
			t.Errorf("%s: %d entries, want 1", name, stored)
		}
	}
}

// A part that the driver's platform does not take is refused before anything is stored, so that the corrected request
// is a new one. A repeat gets its response all the same.
func TestPlatformRefusesPart(t *testing.T) {
	w, _ := newRouted(t, toCI("mtn-momo/ci"))
	w.Driver.Refused = fault.BrokenRule("return_url", errors.New("has more than 120 characters"))
	w.Send(t, mtnEvent(t)).AssertError(t, 400, "SVC0002", "return_url")
	if stored := len(w.Ledger.All()); stored != 0 || len(w.Driver.Calls()) != 0 {
		t.Errorf("%d entries, %d calls; want none", stored, len(w.Driver.Calls()))
	}
	w.Driver.Refused = nil
	corrected := w.Send(t, mtnEvent(t).SetBodyPart("reference", "corrected")).AssertStatus(t, 201)
	w.Driver.Refused = fault.BrokenRule("return_url", errors.New("has more than 120 characters"))
	w.Send(t, mtnEvent(t).SetBodyPart("reference", "corrected")).AssertRepeatOf(t, corrected)
}

// decision "routes": a request that no route serves is refused with the values that work for this merchant, and nothing
// is stored. Headers come before the body, so such a header is reported although the body breaks a rule too, which may
// only follow from it. Without the entitlement the response is about the body.
func TestNoRoute(t *testing.T) {
	ofDemo := func(names ...string) func(*merchant.Profile) {
		return func(p *merchant.Profile) { p.Operators = names }
	}
	onlyMTN, withoutSandbox, anyOperator := ofDemo("mtn"), ofDemo("mtn", "wave", "orange"), ofDemo(operator.Names()...)
	onlyInCI := func(p *merchant.Profile) { p.Operators, p.Countries = []string{"mtn", "wave"}, []string{"CI"} }
	wave := func() *operationtest.Event { return ussdEvent(t).SetHeader("mno-name", "wave") }
	mtnOnTheWeb := func() *operationtest.Event { return webEvent(t).SetHeader("mno-name", "mtn") }
	cameroon := func() *operationtest.Event { return wave().SetHeader("country-code", "CM") }
	senegal := mtnEvent(t).SetHeader("country-code", "SN").SetBodyPart("user_msisdn", "+221771234567")
	working, allChannels := []string{"mno-name", "mtn, orange"}, []string{"channel", channels}
	terminals, every := []string{"channel", "tpe, ussd"}, []string{"mno-name", operators}
	inXAF := []string{"currency", "XAF"}
	for _, c := range []struct {
		name    string
		event   *operationtest.Event
		profile func(*merchant.Profile)
		values  []string // of SVC0003; none for a request that is forbidden
	}{
		{"another channel works", mtnOnTheWeb(), withoutSandbox, terminals},
		{"another operator works", wave(), withoutSandbox, working},
		{"no operator of the merchant works", senegal, onlyMTN, nil},
		{"an operator that is in no country without a route", wave(), anyOperator, every},
		{"an operator that is not the merchant's", wave(), onlyMTN, nil},
		{"an unknown operator", wave().SetHeader("mno-name", "zz"), anyOperator, every},
		{"currency of another country", cameroon(), withoutSandbox, working},
		{"no body", cameroon().SetRawBody("{}"), withoutSandbox, working},
		{"language", cameroon().SetHeader("lang", "fra"), withoutSandbox, working},
		{"channel, in another currency", mtnOnTheWeb().SetBodyPart("currency", "XAF"), withoutSandbox, terminals},
		{"an unknown channel", cameroon().SetHeader("channel", "app"), withoutSandbox, allChannels},
		{"an operator that serves the country", cameroon().SetHeader("mno-name", "mtn"), withoutSandbox, inXAF},
		{"a country that the merchant may not use", cameroon(), onlyInCI, inXAF},
	} {
		t.Run(c.name, func(t *testing.T) {
			toCM := operator.Route{Country: "CM", Operation: "pay", To: "mtn-momo/cm"}
			w, _ := newRouted(t, toCI("mtn-momo/ci"), toCM)
			w.UpdateDemo(c.profile)
			if response := w.Send(t, c.event); c.values == nil {
				response.AssertError(t, 403, "900908")
			} else {
				response.AssertError(t, 400, "SVC0003", c.values...)
			}
			w.AssertNoSideEffects(t)
		})
	}
}

// preparingDriver prepares each payment.
type preparingDriver struct {
	*operationtest.Driver
	prepares func() (string, operator.Result)
	prepared int
}

func (d *preparingDriver) Prepare(context.Context, operator.PayCall) (string, operator.Result) {
	d.prepared++
	if d.prepares != nil {
		return d.prepares()
	}
	return "pay-token-" + string(rune('0'+d.prepared)), operator.Result{Outcome: operator.Succeeded}
}

// newPreparing returns a fixture whose platforms prepare payments.
func newPreparing(t testing.TB, routed ...operator.Route) (*operationtest.Fixture, *preparingDriver) {
	t.Helper()
	w, routes := newRouted(t, routed...)
	d := &preparingDriver{Driver: w.Driver}
	w.UseRoutes(d, routes)
	return w, d
}

// decision "prepare": the material is stored before the payment is sent, with one write more, and a retry uses it.
func TestPreparedPayment(t *testing.T) {
	w, d := newPreparing(t, toCI("mtn-momo/ci"))
	w.Driver.SetBehaviours(func(apply func()) operator.Result {
		if stored := w.OnlyEntry(t, ledger.Payment).DriverData; stored != "pay-token-1" {
			t.Errorf("stored at the payment: %q", stored)
		}
		return operationtest.RespondUnavailable(apply)
	})
	w.Send(t, mtnEvent(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	w.AssertCallCounts(t, 1, 0, 2, 1)
	w.Send(t, mtnEvent(t)).AssertStatus(t, 201)
	if d.prepared != 1 || w.Driver.Calls()[1].Call.DriverData != "pay-token-1" {
		t.Errorf("%d preparations; the retry has %q", d.prepared, w.Driver.Calls()[1].Call.DriverData)
	}
}

// decision "prepare": the payment follows only once its material is stored. A fault before it releases the order,
// unless another attempt has taken it over. A retry then has one effect.
func TestPrepare(t *testing.T) {
	succeeded := operator.Result{Outcome: operator.Succeeded}
	down := operator.Result{Outcome: operator.NotApplied, Fault: fault.New(fault.OperatorUnavailable)}
	for _, c := range []struct {
		name     string
		prepares func(*operationtest.Fixture, *preparingDriver) operator.Result // nil for a success
		fault    storetest.Fault
		status   int // 201 if a payment followed
		stored   bool
		prepared int // after the retry
	}{
		{"it is stored", nil, storetest.NoFault, 201, true, 1},
		{"the platform does not respond",
			func(*operationtest.Fixture, *preparingDriver) operator.Result { return down },
			storetest.NoFault, 503, false, 2},
		{"it cannot be stored", nil, storetest.FailedBeforeApply, 503, false, 2},
		{"the response to the write is lost", nil, storetest.LostResponse, 503, true, 1},
		{"the write was sent twice", nil, storetest.RetriedAfterLostResponse, 201, true, 1},
		{"a callback came meanwhile", func(w *operationtest.Fixture, _ *preparingDriver) operator.Result {
			e := w.OnlyEntry(t, ledger.Payment)
			e.AddClaim(ledger.Claim{Status: ledger.Failed, CheckAt: w.Clock.Now()}, w.Clock.Now())
			e.Version++
			w.Ledger.Overwrite(e)
			return succeeded
		}, storetest.NoFault, 201, true, 1},
		{"the lease ended meanwhile", func(w *operationtest.Fixture, _ *preparingDriver) operator.Result {
			w.Clock.Advance(time.Minute)
			return succeeded
		}, storetest.NoFault, 503, false, 2},
		{"another attempt took over meanwhile", func(w *operationtest.Fixture, d *preparingDriver) operator.Result {
			w.Clock.Advance(time.Minute)
			d.prepares = nil
			w.Send(t, mtnEvent(t)).AssertStatus(t, 201)
			return succeeded
		}, storetest.NoFault, 201, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, d := newPreparing(t)
			if c.prepares != nil {
				d.prepares = func() (string, operator.Result) { return "late", c.prepares(w, d) }
			}
			w.Ledger.FailNext(storetest.Replace, c.fault)
			w.Send(t, mtnEvent(t)).AssertStatus(t, c.status)
			e, calls, maySend := w.OnlyEntry(t, ledger.Payment), w.Driver.Calls(), c.status != 503
			if (e.DriverData != "") != c.stored || (e.State == ledger.Released) == maySend {
				t.Errorf("state %s, material %q; want it stored %v", e.State, e.DriverData, c.stored)
			}
			if maySend != (len(calls) == 1) || maySend && calls[0].Call.DriverData != e.DriverData {
				t.Errorf("sent %+v, want it sent %v with the stored material", calls, maySend)
			}
			d.prepares = nil
			w.Send(t, mtnEvent(t)).AssertStatus(t, 201)
			if d.prepared != c.prepared || len(w.Driver.Effects()) != 1 || len(w.Driver.Calls()) != 1 {
				t.Errorf("%d preparations, %d payments; want %d and 1", d.prepared, len(w.Driver.Calls()), c.prepared)
			}
		})
	}
}

// A crash at each point of a prepared payment leaves at most one effect, and a retry with the same key and material.
func TestCrashesOfPreparedPayment(t *testing.T) {
	for _, c := range []struct {
		name  string
		crash func(*operationtest.Fixture, *preparingDriver)
	}{
		{"before the preparation is stored", func(w *operationtest.Fixture, _ *preparingDriver) {
			w.Ledger.SetCrashPoint("before Replace", func() { panic("crash") })
		}},
		{"after the preparation is stored", func(w *operationtest.Fixture, _ *preparingDriver) {
			w.Ledger.SetCrashPoint("after Replace", func() { panic("crash") })
		}},
		{"in the preparation", func(_ *operationtest.Fixture, d *preparingDriver) {
			d.prepares = func() (string, operator.Result) { d.prepares = nil; panic("crash") }
		}},
		{"after the payment", func(w *operationtest.Fixture, _ *preparingDriver) {
			w.Driver.SetBehaviours(operationtest.PanicAfter)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, d := newPreparing(t, toCI("mtn-momo/ci"))
			c.crash(w, d)
			w.Send(t, mtnEvent(t)).AssertServerError(t)
			w.Clock.Advance(10 * time.Minute)
			w.Send(t, mtnEvent(t))
			if calls := len(w.Driver.Calls()); calls > 1 {
				t.Errorf("%d calls, want one at most", calls)
			}
			e := w.OnlyEntry(t, ledger.Payment)
			for _, call := range w.Driver.Calls() {
				if call.Call.UpstreamKey != e.Route.UpstreamKey || call.Call.DriverData != e.DriverData {
					t.Errorf("sent with key %s and %q, stored %s and %q",
						call.Call.UpstreamKey, call.Call.DriverData, e.Route.UpstreamKey, e.DriverData)
				}
			}
		})
	}
}
