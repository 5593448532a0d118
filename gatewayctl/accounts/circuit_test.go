package accounts_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/circuit"
)

var (
	payCircuit = circuit.Key{Account: "sandbox/a1", Operation: "pay"}
	smsCircuit = circuit.Key{Account: "sandbox/a1", Operation: "sms"}
)

// storeForm stores the form of a circuit in the place of the stored one.
func storeForm(d *gatewayctltest.Tool, key circuit.Key, form string) {
	d.T.Helper()
	stored := formOf(d, key)
	if _, swapped, err := d.Circuits.Swap(d.T.Context(), key, stored, form, d.Now); err != nil || !swapped {
		d.T.Fatal(swapped, err)
	}
}

func formOf(d *gatewayctltest.Tool, key circuit.Key) string {
	d.T.Helper()
	form, err := d.Circuits.Load(d.T.Context(), key)
	if err != nil {
		d.T.Fatal(err)
	}
	return form
}

// stateOf returns a stored state, which must be complete.
func stateOf(d *gatewayctltest.Tool, key circuit.Key) circuit.State {
	d.T.Helper()
	state, err := circuit.Decode(formOf(d, key))
	if err != nil {
		d.T.Fatal(err)
	}
	return state
}

// openedAt is the form of a circuit that opened at a time, by evidence.
func openedAt(at time.Time, results ...circuit.Results) circuit.State {
	ms := at.UnixMilli()
	return circuit.State{OpenedAt: ms, ProbesAt: ms + 30_000, EndsAt: ms + 330_000, Results: results}
}

// resultsAt are results of the slot of a time.
func resultsAt(at time.Time, failures, successes, slow int64) circuit.Results {
	return circuit.Results{Slot: at.UnixMilli() / 5000, Failures: failures, Successes: successes, Slow: slow}
}

func encode(s circuit.State) string { return s.Encode() }

// newSandbox is a tool with an account of the sandbox.
func newSandbox(t *testing.T) *gatewayctltest.Tool {
	d := gatewayctltest.New(t)
	d.UseSandboxOperator()
	return d
}

func TestOperatorStatus(t *testing.T) {
	d := newSandbox(t)
	now := d.Now
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	halfOpen := openedAt(second(-40), resultsAt(second(-40), 12, 3, 0))
	halfOpen.Successes, halfOpen.Probes = 1, []int64{second(-1).UnixMilli(), second(1).UnixMilli()}
	suspect := circuit.State{SuspectUntil: second(20).UnixMilli(),
		Results: []circuit.Results{resultsAt(second(-10), 2, 5, 0), resultsAt(now, 1, 0, 1)}}
	for name, c := range map[string]struct {
		form string
		want accounts.CircuitView // without account and operation
	}{
		"no item":         {"", accounts.CircuitView{State: "closed"}},
		"closed":          {encode(circuit.State{}), accounts.CircuitView{State: "closed"}},
		"ended by itself": {encode(openedAt(second(-330))), accounts.CircuitView{State: "closed"}},
		"suspect": {encode(suspect), accounts.CircuitView{
			State: "suspect", Since: second(-10), Ends: second(20), Failures: 3, Successes: 5, Waiting: 1,
			Why: "3 failures of 8 results in 30s, 1 call longer than 3s",
		}},
		"open by failures": {encode(openedAt(second(-5), resultsAt(second(-5), 12, 0, 0))), accounts.CircuitView{
			State: "open", Since: second(-5), ProbesFrom: second(25), Ends: second(325), Failures: 12,
			Why: "12 failures of 12 results in 30s",
		}},
		"open by slow calls": {encode(openedAt(second(-5), resultsAt(second(-5), 401, 900, 401))), accounts.CircuitView{
			State: "open", Since: second(-5), ProbesFrom: second(25), Ends: second(325), Failures: 401,
			Successes: 900, Waiting: 401, Why: "401 failures of 1301 results in 30s, 401 calls longer than 3s",
		}},
		"open again": {encode(openedAt(second(-5))), accounts.CircuitView{
			State: "open", Since: second(-5), ProbesFrom: second(25), Ends: second(325), Why: "a probe failed",
		}},
		"half open": {encode(halfOpen), accounts.CircuitView{
			State: "half-open", Since: second(-10), ProbesFrom: second(-10), Ends: second(290), Probes: 1, Failures: 12,
			Successes: 3, Why: "12 failures of 15 results in 30s; 1 probe succeeded",
		}},
		"by a person without a record": {encode(circuit.OpenedByPerson(now, time.Hour)), accounts.CircuitView{
			State: "open", Since: now, ProbesFrom: second(3600), Ends: second(3900),
			Why: "by a person, without an audit record",
		}},
		"by a clock that is ahead": {encode(openedAt(second(3600))), accounts.CircuitView{
			State: "closed", Why: "counts as closed: a clock that is ahead opened it at 2026-03-01T13:00:00Z",
		}},
		"torn": {"1 0 0", accounts.CircuitView{
			State: "unreadable", Why: "counts as closed: the item is torn; the next write replaces it",
		}},
		"of a newer version": {"2 x", accounts.CircuitView{
			State: "unreadable", Why: "counts as closed in this version: a newer version wrote it",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newSandbox(t)
			if c.form != "" {
				storeForm(d, payCircuit, c.form)
			}
			c.want.Account, c.want.Operation = payCircuit.Account, payCircuit.Operation
			d.ExpectJSON("circuits", "operator status sandbox/a1", []accounts.CircuitView{
				{Account: "sandbox/a1", Operation: "charge", State: "closed"}, c.want,
				{Account: "sandbox/a1", Operation: "sms", State: "closed"},
			})
		})
	}
}

func TestOperatorStatusSelects(t *testing.T) {
	d := gatewayctltest.New(t)
	d.ExpectCount("circuits without accounts", "operator status", 0)
	account := gatewayctltest.AccountDocument(gatewayctltest.NewAccount(t, "sandbox", "https://op.example", "t"))
	d.Vault.Values["operators"] = []byte(gatewayctltest.CredentialsDocument(t, "sandbox", "a1",
		map[string]any{"a1": account, "sandbox/a2": account})) // transactions are pinned to sandbox/a2
	d.UseAccount("mtn-momo", "ci", "https://op.example", "t")
	d.ExpectOutput("operator status", "ACCOUNT", "mtn-momo/ci", "pay", "closed", "sandbox/a1", "sandbox/a2")
	for line, want := range map[string]int{
		"": 7, " mtn-momo": 1, " MTN-MoMo/ci": 1, " sandbox": 6, " sandbox/a2": 3,
	} {
		d.ExpectCount("circuits of"+line, "operator status"+line, want)
	}
}

// A name that is wrong gets one line that says what to do next, and nothing is changed.
func TestCircuitInput(t *testing.T) {
	d := newSandbox(t)
	d.UseAccount("mtn-momo", "ci", "https://op.example", "t")
	records := len(d.Audit.Records)
	for line, want := range map[string]string{
		"operator status other":                               `platform "other" is not one of those with a driver: `,
		"operator status pawapay":                             "platform pawapay has no accounts: gatewayctl",
		"operator status sandbox/a9":                          `has no account "a9": choose one of its accounts: a1`,
		"operator circuit open sandbox":                       `"sandbox" is not platform/account: gatewayctl`,
		"operator circuit close /a1":                          "is not platform/account",
		"operator circuit open other/a1":                      `platform "other" is not one of`,
		"operator circuit close sandbox/a9":                   "choose one of its accounts: a1",
		"operator circuit open mtn-momo/ci --operation sms":   "mtn-momo has no sms; it has pay: choose one of them",
		"operator circuit close mtn-momo/ci --operation talk": "charge",
		"operator circuit open sandbox/a1 --for 24h0m1s":      "between 1 second and 24 hours: choose another time",
		"operator circuit open sandbox/a1 --for 0s":           "between 1 second and 24 hours",
		"operator circuit open sandbox/a1 --for tomorrow":     "--for",
	} {
		d.ExpectBoth(line, gatewayctl.ExitUsage, want)
	}
	d.ExpectExit("operator circuit open sandbox/a1 --yes", gatewayctl.ExitUsage, "--yes needs --reason")
	d.Equal("audit records", len(d.Audit.Records), records)
	d.Equal("stored", formOf(d, payCircuit), "")
	d.ChangeStores(func(s *deployment.Stores) { s.Circuits = nil })
	d.ExpectExit("operator status", gatewayctl.ExitUsage, "LIMIT_TABLE is not set")
	d.ExpectBoth("operator circuit open sandbox/a1", gatewayctl.ExitUsage, "LIMIT_TABLE is not set")
}

// A person opens a circuit until a time. Then it takes probes, and without any it is closed.
func TestOpenCircuit(t *testing.T) {
	d := newSandbox(t)
	const line = "operator circuit open sandbox/a1 --operation pay"
	d.ExpectExit(line, gatewayctl.ExitDone,
		"this would open a circuit, sandbox/a1 pay: pay was closed, now open until 2026-03-01T13:00:00Z")
	d.Equal("stored by a dry run", formOf(d, payCircuit), "")
	views := gatewayctltest.Change[[]accounts.CircuitView](d, line)
	want := accounts.CircuitView{
		Account: "sandbox/a1", Operation: "pay", State: "open", Since: d.Now, ProbesFrom: d.Now.Add(time.Hour),
		Ends: d.Now.Add(time.Hour + 5*time.Minute), Why: "by you",
	}
	d.Equal("opened", views, []accounts.CircuitView{want})
	d.Equal("sms", formOf(d, smsCircuit), "")
	want.Why = "by local:ama@host: test"
	start := d.Now
	for _, c := range []struct {
		after time.Duration
		state string
	}{{0, "open"}, {time.Hour - 1, "open"}, {time.Hour, "half-open"}, {65 * time.Minute, "closed"}} {
		d.Now = start.Add(c.after)
		got := gatewayctltest.Query[[]accounts.CircuitView](d, "operator status sandbox/a1")[1]
		d.Equal(fmt.Sprint("state after ", c.after), got.State, c.state)
		if c.state == "open" {
			d.Equal("view", got, want)
		}
	}
	d.Now = start
	d.Apply(line + " --for 24h") // the end is another one
	d.Equal("another end", stateOf(d, payCircuit).ProbesAt, start.Add(24*time.Hour).UnixMilli())
	d.ExpectOutput("audit", "open a circuit", "pay was closed, now open until 2026-03-01T13:00:00Z",
		"open a circuit", "pay was open, now open until 2026-03-02T12:00:00Z")
}

// The name and the reason are those of the last record before the circuit was opened.
func TestOpenerOfCircuit(t *testing.T) {
	d := newSandbox(t)
	d.Apply("operator circuit open sandbox/a1 --operation sms")
	d.Now = d.Now.Add(time.Minute)
	for _, line := range []string{
		"operator circuit open sandbox/a1 --for 24h --yes --reason outage",
		"operator circuit close sandbox/a1 --operation charge --yes --reason works",
	} {
		d.MustRun(line, nil)
	}
	d.Now = d.Now.Add(time.Minute)
	d.Audit.FailAt = auditlog.OutcomeDone
	d.ExpectExit("operator circuit open sandbox/a1 --operation charge --yes --reason later", gatewayctl.ExitFailed, "")
	got := map[string]string{}
	for _, view := range gatewayctltest.Query[[]accounts.CircuitView](d, "operator status") {
		got[view.Operation] = view.Why
	}
	d.Equal("who and why", got, map[string]string{
		"charge": "by local:ama@host: later", "pay": "by local:ama@host: outage", "sms": "by local:ama@host: outage",
	})
}

// Without an operation, close closes what is not closed, and old failures do not open it again.
func TestCloseCircuit(t *testing.T) {
	d := newSandbox(t)
	const line = "operator circuit close sandbox/a1"
	d.ExpectBoth(line, gatewayctl.ExitFailed, "nothing changes: the circuits are closed")
	suspect := circuit.State{SuspectUntil: d.Now.UnixMilli() + 20_000,
		Results: []circuit.Results{resultsAt(d.Now, 9, 0, 0)}}
	storeForm(d, payCircuit, encode(suspect))
	storeForm(d, smsCircuit, encode(openedAt(d.Now)))
	d.ExpectExit(line, gatewayctl.ExitDone,
		"sandbox/a1 pay, sms: pay was suspect, now closed, sms was open, now closed")
	d.Equal("after a dry run", formOf(d, payCircuit), encode(suspect))
	d.Equal("closed", gatewayctltest.Change[[]accounts.CircuitView](d, line), []accounts.CircuitView{
		{Account: "sandbox/a1", Operation: "pay", State: "closed"},
		{Account: "sandbox/a1", Operation: "sms", State: "closed"},
	})
	for _, key := range []circuit.Key{payCircuit, smsCircuit} {
		state := stateOf(d, key)
		d.Equal("failures", len(state.Results), 0)
		d.Equal("times", []int64{state.SuspectUntil, state.OpenedAt, state.EndsAt}, []int64{0, 0, 0})
	}
	d.ExpectFailed(line, "nothing changes")
	for name, form := range map[string]string{
		"torn": "1 0", "by a clock that is ahead": encode(openedAt(d.Now.Add(time.Hour))),
	} {
		storeForm(d, payCircuit, form)
		d.Apply(line)
		d.Equal(name, stateOf(d, payCircuit).OpenedAt, int64(0))
	}
	storeForm(d, payCircuit, "2 x")
	d.ExpectBoth(line, gatewayctl.ExitFailed, "use the gatewayctl of that version")
	d.Equal("of a newer version", formOf(d, payCircuit), "2 x")
}

// racingCircuits is a store in which a process writes a circuit after each read of it.
type racingCircuits struct {
	*storetest.Circuits
	next func(read string) string
}

func (r racingCircuits) Load(ctx context.Context, key circuit.Key) (string, error) {
	read, err := r.Circuits.Load(ctx, key)
	if next := r.next(read); err == nil && next != read {
		_, _, err = r.Swap(ctx, key, read, next, time.Time{})
	}
	return read, err
}

// A circuit that opens or closes between the read and the write stays as it is. Results that are added do not count.
func TestCircuitChangesMeanwhile(t *testing.T) {
	now := gatewayctltest.New(t).Now
	suspect := circuit.State{SuspectUntil: now.UnixMilli() + 20_000,
		Results: []circuit.Results{resultsAt(now, 9, 0, 0)}}
	probing := openedAt(now.Add(-time.Minute))
	probed := probing
	probed.Probes = []int64{now.UnixMilli() + 1000}
	for name, c := range map[string]struct {
		before, meanwhile string
		command           string
		refused           bool
	}{
		"opened by evidence":           {"", encode(openedAt(now)), "open", true},
		"opened after it was suspect":  {encode(suspect), encode(openedAt(now)), "open", true},
		"opened by another person":     {"", encode(circuit.OpenedByPerson(now, time.Minute)), "open", true},
		"closed by a probe":            {encode(probing), encode(circuit.State{}), "open", true},
		"closed by another":            {encode(probing), encode(circuit.State{}), "close", true},
		"opened again by a probe":      {encode(probing), encode(openedAt(now)), "close", true},
		"became suspect":               {"", encode(suspect), "open", false},
		"torn meanwhile":               {"", "1 0", "open", false},
		"a probe was taken":            {encode(probing), encode(probed), "close", false},
		"a failure was the first":      {encode(suspect), encode(circuit.State{}), "close", false},
		"a newer version wrote it":     {"", "2 x", "open", true},
		"opened by a person, by probe": {encode(circuit.OpenedByPerson(now, 0)), encode(openedAt(now)), "close", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newSandbox(t)
			if c.before != "" {
				storeForm(d, payCircuit, c.before)
			}
			d.ChangeStores(func(s *deployment.Stores) {
				s.Circuits.Store = racingCircuits{d.Circuits, func(string) string { return c.meanwhile }}
			})
			line := "operator circuit " + c.command + " sandbox/a1 --operation pay" + gatewayctltest.Confirm
			if !c.refused {
				d.MustRun(line, nil)
				d.Equal("opened by a person", stateOf(d, payCircuit).ByPerson == 1, c.command == "open")
				return
			}
			d.ExpectExit(line, gatewayctl.ExitFailed, "sandbox/a1 was")
			d.Equal("what is stored", formOf(d, payCircuit), c.meanwhile)
			d.ExpectOutput("audit --subject sandbox/a1", "failed", "pay of sandbox/a1 was")
		})
	}
}

// A dry run reports that the circuit was changed, and so does a change that other writers always come before.
func TestCircuitRacesEnd(t *testing.T) {
	d := newSandbox(t)
	writes := 0
	d.ChangeStores(func(s *deployment.Stores) {
		s.Circuits.Store = racingCircuits{d.Circuits, func(string) string {
			writes++
			return encode(openedAt(d.Now.Add(time.Duration(writes) * time.Second)))
		}}
	})
	d.ExpectExit("operator circuit open sandbox/a1 --operation pay", gatewayctl.ExitFailed, "was changed meanwhile")
	d.ChangeStores(func(s *deployment.Stores) { s.Circuits.Store = busyCircuits{d.Circuits} })
	before := formOf(d, smsCircuit)
	d.ExpectFailed("operator circuit open sandbox/a1 --operation sms", "was changed meanwhile, and stays as it is")
	d.Equal("what is stored", formOf(d, smsCircuit), before)
}

// busyCircuits is a store in which another process comes before each write.
type busyCircuits struct{ *storetest.Circuits }

func (b busyCircuits) Swap(
	_ context.Context, _ circuit.Key, old, _ string, _ time.Time,
) (current string, swapped bool, err error) {
	state, _ := circuit.Decode(old)
	state.SuspectUntil++
	return state.Encode(), false, nil
}

// A write that fails half way names what was changed before, and that its own result is not known.
func TestCircuitWriteFails(t *testing.T) {
	d := newSandbox(t)
	swaps := 0
	d.Circuits.InjectFaults(func(c storetest.Call) storetest.Fault {
		if c.Operation == storetest.SwapCircuit {
			swaps++
		}
		if c.Operation == storetest.SwapCircuit && swaps == 2 {
			return storetest.FailedBeforeApply
		}
		return storetest.NoFault
	})
	d.ExpectExit("operator circuit open sandbox/a1"+gatewayctltest.Confirm, gatewayctl.ExitFailed,
		"pay of sandbox/a1 may be changed or not, gatewayctl operator status shows it",
		"it was changed before the failure: charge was closed, now open until 2026-03-01T13:00:00Z")
	d.Equal("pay", formOf(d, payCircuit), "")
	d.ExpectOutput("audit --subject sandbox/a1", "failed", "charge was closed, now open until", "may be changed")
	d.ExpectOutput("operator status", "charge", "open", "by local:ama@host: test", "pay", "closed")
}

// Nothing is changed if the first audit record cannot be written.
func TestCircuitNeedsItsAuditRecord(t *testing.T) {
	d := newSandbox(t)
	d.Audit.FailAt = auditlog.OutcomeStarted
	d.ExpectFailed("operator circuit open sandbox/a1", "nothing was done")
	d.Equal("stored", formOf(d, payCircuit), "")
}
