package knownbad

// onCircuits is a history with circuits and a crowd of one kind of order: 0 a charge, 1 a payment, 2 an SMS. Its
// platform fails in one way: 0 responds 500, 1 hangs, 5 refuses, 6 limits the rate, and last works.
func onCircuits(kind, failure int, more choices) choices {
	return choices{
		"has circuits": last, "only one merchant and one operator have faults": 0, "kind of order of the crowd": kind,
		"failure of the platform": failure, "instance": 0, "rate of cold starts": 0, "rate of table faults": 0,
		"rate of crashes": 0, "crashes beside circuits": 0, "damage of the circuits": 0,
		"one of so many calls is served": 0, "clocks differ": 0, "clock skew": 0,
	}.with(more)
}

const (
	circuitStateFile = "shared/circuit/state.go"
	circuitsFile     = "shared/circuit/circuits.go"
	circuitCallFile  = "shared/circuit/call.go"
	observerFile     = "shared/operator/upstream/observer.go"
)

// circuitVariants break the circuit breaker of accounts.
var circuitVariants = []variant{
	{
		name: "circuit-opens-on-refusals", breaks: "a final refusal counts as a failure", invariants: []int{16},
		world: onCircuits(0, 5, nil),
		edits: []edit{{
			observerFile, "return circuit.None\n\t}\n\treturn circuit.Responded",
			"return circuit.None\n\tcase x.IsRefused():\n\t\treturn circuit.Failed\n\t}\n\treturn circuit.Responded",
		}},
	},
	{
		name: "circuit-opens-on-a-rate-limit", breaks: "429 counts as a failure", invariants: []int{16},
		world: onCircuits(0, 6, nil),
		edits: []edit{{
			observerFile, "case x.Status == http.StatusTooManyRequests,",
			"case x.Status == http.StatusTooManyRequests:\n\t\treturn circuit.Failed\n\tcase",
		}},
	},
	{
		name: "circuit-never-opens", breaks: "failures do not open a circuit", invariants: []int{16},
		world: onCircuits(0, 0, nil),
		edits: []edit{{
			circuitStateFile,
			"return failures >= minFailures && failures >= sum.Successes || sum.Slow > maxSlow",
			"return failures >= 100*minFailures && failures >= sum.Successes || sum.Slow > maxSlow",
		}},
	},
	{
		name: "circuit-never-closes", breaks: "successes do not close a circuit", invariants: []int{16},
		world: onCircuits(0, 0, choices{"time without the platform": 1}),
		edits: []edit{{
			circuitStateFile, "s.Successes++; s.Successes >= closingProbes", "s.Successes++; s.Successes >= 1000",
		}},
	},
	{
		name: "circuit-without-an-end", breaks: "an open circuit without probes never ends", invariants: []int{16},
		world: onCircuits(0, 0, choices{"time without the platform": 1, "groups of the crowd": last}),
		edits: []edit{{
			circuitStateFile, "s.OpenedAt <= now+maxClockSkew && now < s.EndsAt", "s.OpenedAt <= now+maxClockSkew",
		}, {
			circuitStateFile, "case isOpen && now < s.ProbesAt:", "case isOpen:",
		}},
	},
	{
		name: "circuit-closes-by-one-success", breaks: "the first success closes a circuit", invariants: []int{16},
		world: onCircuits(0, 0, choices{"time without the platform": 1}),
		edits: []edit{{
			circuitStateFile, "s.Successes++; s.Successes >= closingProbes", "s.Successes++; s.Successes >= 1",
		}},
	},
	{
		name: "probes-without-bound", breaks: "each request is a probe that no state has", invariants: []int{16},
		world: onCircuits(0, 0, nil),
		edits: []edit{{
			reserveFile, "a.probe, taken = p.Circuits.TakeProbe(a.circuit); !taken {",
			"taken = true; !taken {",
		}},
	},
	{
		name: "probe-without-its-write", breaks: "a probe is sent although others have taken all",
		invariants: []int{16},
		world:      onCircuits(0, 1, nil),
		edits: []edit{{
			circuitsFile, "return Probe{}, err == nil && isClosed",
			"return Probe{}, err == nil && (isClosed || !stored)",
		}},
	},
	{
		name: "failed-probe-ignored", breaks: "a failed probe leaves its circuit half open", invariants: []int{16},
		world: onCircuits(0, 0, nil),
		edits: []edit{{
			circuitStateFile, "s.ByPerson = 0\n\t\ts.open(now, openTime-min(max(0, now-r.began), openTime))",
			"s.ByPerson = 0",
		}},
	},
	{
		name: "open-circuit-refuses-stored-keys", breaks: "an open circuit refuses a key that has an outcome",
		invariants: []int{3, 16},
		world:      onCircuits(1, 1, choices{"wait before the retry": 0}),
		edits: []edit{{
			reserveFile, "return book.FindExisting, circuitRefusal(wait)",
			"return func(context.Context, *ledger.Entry, func(*ledger.Entry) time.Duration) (*ledger.Entry, " +
				"ledger.Verdict, error) {\n\treturn nil, 0, nil\n}, circuitRefusal(wait)",
		}},
	},
	{
		name: "takeover-while-open", breaks: "an open circuit lets unknown orders be sent again", invariants: []int{16},
		world: onCircuits(0, 1, choices{"wait before the retry": 0}),
		edits: []edit{{
			reserveFile, "return book.FindExisting, circuitRefusal(wait)",
			"return book.ReserveExisting, circuitRefusal(wait)",
		}, {
			reserveFile, "return 0 // the entry may be pinned",
			"return operator.CapabilitiesOf(e).SafeResendWindow() // the entry may be pinned",
		}},
	},
	{
		name: "open-circuit-sends", breaks: "an open circuit refuses nothing", invariants: []int{16},
		world: onCircuits(0, 0, nil),
		edits: []edit{{
			reserveFile, "return book.FindExisting, circuitRefusal(wait)",
			"return book.Reserve, circuitRefusal(wait)",
		}},
	},
	{
		name: "refused-after-the-reservation", breaks: "the circuit refuses after the reservation",
		invariants: []int{3, 16},
		world:      onCircuits(0, 0, nil),
		edits: []edit{{
			reserveFile, "return book.FindExisting, circuitRefusal(wait)",
			"return func(ctx context.Context, e *ledger.Entry, window func(*ledger.Entry) time.Duration) " +
				"(*ledger.Entry, ledger.Verdict, error) {\n\t_, _, err := book.Reserve(ctx, e, window)\n\t" +
				"return nil, 0, err\n}, circuitRefusal(wait)",
		}},
	},
	{
		name: "unknown-counts-as-free", breaks: "an open circuit refuses an unknown order as one that was not applied",
		invariants: []int{3, 16},
		world:      onCircuits(0, 1, choices{"wait before the retry": 0}),
		edits: []edit{{
			bookFile, "if err != nil || verdict == NewReservation || verdict == TakenOver {",
			"if err != nil || verdict == NewReservation || verdict == TakenOver || verdict == StillUnknown {",
		}},
	},
	{
		name: "healthy-path-writes", breaks: "successes of a healthy platform are written", invariants: []int{16},
		world: onCircuits(0, last, nil),
		edits: []edit{{
			circuitsFile, "case phase == Closed && isHealthy:", "case phase == Closed && isHealthy && false:",
		}},
	},
	{
		name: "circuit-ends-calls-too-soon", breaks: "calls end after a second while their circuit is open",
		invariants: []int{16},
		world:      onCircuits(0, 1, nil),
		edits: []edit{{
			circuitCallFile, "c.circuits.After(SlowAfter, c.becomesSlow)",
			"c.circuits.After(time.Second, c.becomesSlow)",
		}, {
			circuitCallFile, "c.circuits.Now().Sub(c.exchangeBegan) >= SlowAfter",
			"c.circuits.Now().Sub(c.exchangeBegan) >= time.Second",
		}},
	},
	{
		name: "circuit-ends-probes", breaks: "a probe that waits ends, because the circuit is not closed",
		invariants: []int{16},
		world:      onCircuits(0, 1, nil),
		edits:      []edit{{circuitCallFile, "if c.probe.lapse == 0 {", "if c.probe.lapse >= 0 {"}},
	},
	{
		name: "circuit-ends-calls-while-closed", breaks: "a slow call ends although its circuit is closed",
		invariants: []int{16},
		world:      onCircuits(0, 1, nil),
		edits:      []edit{{circuitCallFile, "isSlow && c.circuits.isOpen(c.key)", "isSlow"}},
	},
	{
		name: "ended-call-is-released", breaks: "a call that its circuit has ended counts as never sent",
		invariants: []int{16},
		world:      onCircuits(0, 1, nil),
		edits: []edit{{
			"shared/operator/upstream/client.go", "x.Err, x.MayHaveSent, x.ConnectionLost = errEndedEarly, true, false",
			"x.Err, x.MayHaveSent, x.ConnectionLost = errEndedEarly, false, false",
		}},
	},
	{
		name: "newer-circuit-replaced", breaks: "the state of a newer version is replaced", invariants: []int{16},
		world: onCircuits(0, 0, choices{"damage of the circuits": 6}),
		edits: []edit{{
			"shared/circuit/store.go", "if errors.Is(err, ErrNewer) {", "if errors.Is(err, ErrNewer) && false {",
		}},
	},
	{
		name: "future-state-refuses", breaks: "a state from the future counts as open", invariants: []int{16},
		world: onCircuits(0, last, choices{"damage of the circuits": 4}),
		edits: []edit{{
			circuitStateFile, "isOpen := s.OpenedAt != 0 && s.OpenedAt <= now+maxClockSkew && now < s.EndsAt",
			"isOpen := s.OpenedAt != 0 && now < s.EndsAt",
		}},
	},
}
