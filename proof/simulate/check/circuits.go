package check

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	model "mobilegateway/world/dynamodb"
)

const circuitsHelp invariant = "16: A circuit opens only after 10 failures within 30 seconds or more slow calls than " +
	"the share, and then always. A healthy platform is refused no longer than 340 seconds after its last failure, " +
	"and costs no write. At most 3 probes are outstanding, 3 successes close a circuit, and a failure opens it. A " +
	"process that has read an open circuit reserves no key without a probe, and takes over none. Only such a process " +
	"ends a call early: after 3 seconds, never a probe, and nothing is released by that. A refusal stores and sends " +
	"nothing, and is for a key that is free"

// The bounds of the circuits, as decision "circuit-breaker" states them.
const (
	mostProbes     = 3
	successesClose = 3
	failuresOpen   = 10
	resultsTime    = 30 * time.Second // of the results that count, and of an open circuit without a probe
	longestRefusal = 340 * time.Second
	// freshTime is less than the age from which a process trusts no state: it measures from the start of its read, and
	// a write has several attempts.
	freshTime = 8 * time.Second
	// longestCall is from the exchange of a call to the write of its result, at most.
	longestCall  = 25 * time.Second
	slowExchange = 3 * time.Second
	// clockAhead is how far ahead of a clock a circuit may have opened.
	clockAhead = 45 * time.Second
	// share is the part of the account's concurrency that slow calls may hold, in percent.
	share = 40
)

// reasonOpen is the reason of a refusal by a circuit.
const reasonOpen = "circuit-open"

// circuits checks the circuit breaker.
type circuits struct {
	*base
	failures map[circuit.Key][]failure
	calls    map[circuit.Key][]*attempted // that made an exchange
	known    map[*deployment.Instance]map[circuit.Key][]learned
	attempts map[deployment.Invocation]*attempted
	changed  map[string]int // the step of the last change of an entry
}

// failure is a bad exchange. isSlow is true of a call that waited.
type failure struct {
	at     time.Time
	isSlow bool
}

// learned is a form that an instance has read, or has met at a write.
type learned struct {
	form      string
	since, at time.Time
	isRead    bool
}

func newCircuits(b *base) circuits {
	return circuits{
		base: b, failures: map[circuit.Key][]failure{}, calls: map[circuit.Key][]*attempted{},
		attempts: map[deployment.Invocation]*attempted{},
		known:    map[*deployment.Instance]map[circuit.Key][]learned{}, changed: map[string]int{},
	}
}

// isOn reports whether the deployment has circuits.
func (c *circuits) isOn() bool { return c.AccountConcurrency > 0 }

// hasOperation reports whether an instance is of a function with circuits.
func hasOperation(i *deployment.Instance) bool {
	return i.Is(deployment.Charge) || i.Is(deployment.Pay) || i.Is(deployment.SMS)
}

// Exchanged implements deployment.Observer.
func (c *circuits) Exchanged(i *deployment.Instance, r outside.Exchange) {
	if !c.isOn() || !hasOperation(i) {
		return
	}
	a := c.of(i.Invocation())
	hasNoCode := r.Status >= 500 && !bytes.Contains(r.Body, []byte("messageId"))
	if !a.sent {
		a.began = time.Now()
		c.calls[a.key] = append(c.calls[a.key], a)
	}
	a.ended, a.sent, a.failed = false, true, r.Failure != outside.NoFailure || hasNoCode
	isSlow := deployment.DelayOf(r) >= slowExchange
	if a.failed || isSlow {
		a.isCounted = true
		c.failures[a.key] = append(c.failures[a.key], failure{time.Now(), isSlow})
	}
}

// EndedEarly implements deployment.Observer.
func (c *circuits) EndedEarly(i *deployment.Instance, waited time.Duration) {
	if !hasOperation(i) {
		return
	}
	a := c.of(i.Invocation())
	a.ended = true
	c.Count("circuit: ended a call")
	switch {
	case !c.isOn():
		c.fail(circuitsHelp, "%s ended a call after %s, and has no circuits", i.Name, waited)
	case waited < slowExchange:
		c.fail(circuitsHelp, "%s ended a call of %v after %s", i.Name, a.key, waited)
	case len(a.probes) > 0:
		c.fail(circuitsHelp, "%s ended its probe of %v after %s", i.Name, a.key, waited)
	case !c.mayKnowOpen(i, a.key):
		c.fail(circuitsHelp, "%s ended a call of %v after %s, and knew no open circuit", i.Name, a.key, waited)
	}
}

// mayKnowOpen reports whether an instance has learned that a circuit is open or half open now.
func (c *circuits) mayKnowOpen(i *deployment.Instance, key circuit.Key) bool {
	return slices.ContainsFunc(c.known[i][key], func(l learned) bool {
		state, _ := circuit.Decode(l.form)
		return state.Phase(i.Now()) >= circuit.Open
	})
}

// failuresIn are the failures within a time, and those of them that were slow. A call without a failed exchange is one
// if it has waited: between its exchanges, or without an end because its instance has crashed.
func (c *circuits) failuresIn(key circuit.Key, wait time.Duration) (all, slow int) {
	isIn := func(at time.Time) bool { return !at.After(time.Now()) && time.Since(at) <= wait }
	for _, f := range c.failures[key] {
		if isIn(f.at) {
			all++
			if f.isSlow {
				slow++
			}
		}
	}
	for _, a := range c.calls[key] {
		if isIn(a.began) && !a.isCounted && a.waited() >= slowExchange {
			all, slow = all+1, slow+1
		}
	}
	return all, slow
}

// tolerance is how much longer a time may seem: by clocks, and by writes that are applied late.
func (c *circuits) tolerance() (wait time.Duration) {
	if c.Rates.Skew > 0 {
		wait += history.MaxSkew
	}
	if c.Rates.Table > 0 {
		wait += time.Minute
	}
	return wait
}

// LearnedCircuits implements deployment.Observer.
func (c *circuits) LearnedCircuits(
	i *deployment.Instance, account string, forms map[string]string, since time.Time, isRead bool,
) {
	if !hasOperation(i) {
		return
	}
	if c.known[i] == nil {
		c.known[i] = map[circuit.Key][]learned{}
	}
	key := circuit.Key{Account: account, Operation: i.Function}
	next := learned{forms[i.Function], since, time.Now(), isRead}
	c.known[i][key] = append(c.known[i][key], next)
}

// knowsOpen reports whether a circuit is open or half open in all states that an instance can have in mind since its
// invocation began.
func (c *circuits) knowsOpen(i *deployment.Instance, key circuit.Key) bool {
	all := c.known[i][key]
	first := -1
	for place, l := range all {
		if l.isRead && l.at.Before(i.Began()) && (first < 0 || !l.since.Before(all[first].since)) {
			first = place
		}
	}
	if first < 0 || time.Since(all[first].since) > freshTime {
		return false
	}
	began := i.Began().Add(i.Skew)
	for place, l := range all {
		isOld := place != first && l.at.Before(i.Began()) && (l.isRead || l.at.Before(all[first].since))
		state, _ := circuit.Decode(l.form)
		if !isOld && (state.Phase(began) < circuit.Open || state.Phase(i.Now()) < circuit.Open) {
			return false
		}
	}
	return true
}

// entryChanged checks the reservations.
func (c *circuits) entryChanged(t transition) {
	if !c.isOn() {
		return
	}
	c.changed[t.key] = c.Kernel.Steps()
	if !hasOperation(t.writer) {
		return
	}
	a, e := c.of(t.writer.Invocation()), t.after
	if a.sent && e.State != ledger.Reserved && a.returned.IsZero() {
		a.returned = time.Now()
	}
	if a.ended && e.State == ledger.Released {
		c.fail(circuitsHelp, "%s was released after %s ended its call early", t.key, t.writer.Name)
	}
	a.wrote, a.key = true, circuit.Key{Account: operator.PinOf(e).String(), Operation: string(e.Kind)}
	isNew := t.before == nil || t.before.PastRetention(time.Now().Add(history.MaxSkew))
	if e.State != ledger.Reserved || !isNew && t.before.Owner == e.Owner || !c.knowsOpen(t.writer, a.key) {
		return
	}
	switch {
	case !isNew && t.before.State != ledger.Released:
		c.fail(circuitsHelp, "%s was %s, and %s took it over while it knew that the circuit is open", t.key,
			t.before.State, t.writer.Name)
	case len(a.probes) == 0:
		c.fail(circuitsHelp, "%s was reserved without a probe, and %s knew that the circuit is open", t.key,
			t.writer.Name)
	}
}

// follow checks a change of the table of limits, if it is one of circuits.
func (c *circuits) follow(change *model.Change, writer *deployment.Instance) {
	account, isCircuit := strings.CutPrefix(change.Key, "circuit#")
	if !isCircuit || !c.isOn() {
		return
	}
	before, after := deployment.CircuitForms(change.Old()), deployment.CircuitForms(change.New())
	for _, operation := range []string{deployment.Charge, deployment.Pay, deployment.SMS} {
		if before[operation] == after[operation] {
			continue
		}
		key := circuit.Key{Account: account, Operation: operation}
		c.Logf("%s: stored the circuit %s of %s: %q", writer.Program(), operation, account, after[operation])
		if writer == nil {
			c.damaged(key, after[operation])
			continue
		}
		c.stored(&storedCircuit{key, before[operation], after[operation], writer})
	}
}

// damaged takes in what no function stored. An open state is a reason for refusals from its time on, by each clock.
func (c *circuits) damaged(key circuit.Key, form string) {
	state, _ := circuit.Decode(form)
	from := time.Now()
	if state.OpenedAt != 0 {
		from = history.Latest(from, time.UnixMilli(state.OpenedAt).Add(-clockAhead-c.tolerance()))
	}
	if state.OpenedAt != 0 {
		c.failures[key] = append(c.failures[key], failure{at: from})
	}
}

// storedCircuit is a change of one circuit by a function.
type storedCircuit struct {
	key           circuit.Key
	before, after string
	writer        *deployment.Instance
}

// stored checks what a function stores.
func (c *circuits) stored(s *storedCircuit) {
	before, beforeErr := circuit.Decode(s.before)
	after, err := circuit.Decode(s.after)
	a, now := c.of(s.writer.Invocation()), s.writer.Now()
	for _, lapse := range after.Probes {
		if !slices.Contains(before.Probes, lapse) {
			a.probes = append(a.probes, lapse)
			c.Count("circuit: probe")
		}
	}
	wasOpen := before.Phase(now) >= circuit.Open && before.Phase(now.Add(-2*time.Second-c.tolerance())) >= circuit.Open
	switch {
	case err != nil:
		c.fail(circuitsHelp, "%v has the form %q: %v", s.key, s.after, err)
	case beforeErr == circuit.ErrNewer: //nolint:errorlint // Decode returns it as it is
		c.fail(circuitsHelp, "%v is of a newer version, and was replaced", s.key)
	case len(after.Probes) > mostProbes:
		c.fail(circuitsHelp, "%v has %d probes", s.key, len(after.Probes))
	case after.Successes >= successesClose:
		c.fail(circuitsHelp, "%v is open after %d successes", s.key, after.Successes)
	case wasOpen:
		c.storedOpen(s, &before, &after)
	case before.Phase(now) < circuit.Open && after.OpenedAt != 0:
		c.opened(s.key)
	case before.Phase(now) < circuit.Open:
		c.storedClosed(s.key, &after)
	}
}

// opened checks that a circuit has a reason to open.
func (c *circuits) opened(key circuit.Key) {
	c.Count("circuit: opened")
	all, slow := c.failuresIn(key, resultsTime+longestCall+c.tolerance())
	if c.Rates.Table > 0 {
		all *= 2 // a write whose response was lost may count its results once more
	}
	if all < failuresOpen && slow <= c.AccountConcurrency*share/100 {
		c.fail(circuitsHelp, "%v opened after %d failures, %d of them slow", key, all, slow)
	}
}

// storedClosed checks a closed circuit that stays closed: it has a reason for a write, and none to open.
func (c *circuits) storedClosed(key circuit.Key, after *circuit.State) {
	failures, waiting, successes := int64(0), int64(0), int64(0)
	for _, r := range after.Results {
		failures, waiting, successes = failures+r.Failures, waiting+r.Slow, successes+r.Successes
	}
	ended := failures - waiting
	if ended >= failuresOpen && ended >= successes {
		c.fail(circuitsHelp, "%v is closed with %d failures and %d successes; %d of the failures wait", key, failures,
			successes, waiting)
	}
	// A failure is written at the end of its call. It makes processes suspicious for a time.
	if all, _ := c.failuresIn(key, resultsTime+2*longestCall+c.tolerance()); all == 0 {
		c.fail(circuitsHelp, "%v was written, and its platform is healthy", key)
	}
}

// storedOpen checks a change of an open circuit: only probes change it. A released key may be sent to another account
// than a new one: the probe of the new one's account then ends without a result.
func (c *circuits) storedOpen(s *storedCircuit, before, after *circuit.State) {
	a, now := c.of(s.writer.Invocation()), s.writer.Now()
	hasEnded := slices.ContainsFunc(a.probes, func(lapse int64) bool {
		return slices.Contains(before.Probes, lapse) && !slices.Contains(after.Probes, lapse)
	})
	switch {
	case before.Phase(now) == circuit.Open:
		c.fail(circuitsHelp, "%v was written while it was open", s.key)
	case hasEnded && a.key == s.key && a.sent && a.failed && after.OpenedAt == before.OpenedAt:
		c.fail(circuitsHelp, "%v stays half open after a failed probe", s.key)
	case after.OpenedAt == 0 && (before.Successes < successesClose-1 || a.failed):
		c.fail(circuitsHelp, "%v closed after %d successes before this one", s.key, before.Successes)
	case after.OpenedAt == 0:
		c.Count("circuit: closed by probes")
	case after.OpenedAt != before.OpenedAt && !a.failed && !c.mayFail(a):
		c.fail(circuitsHelp, "%v opened again, and its probe did not fail", s.key)
	case after.OpenedAt != before.OpenedAt:
		c.Count("circuit: opened by a probe")
	}
}

// mayFail reports whether a probe may count as failed although its exchange had a response: it was slow.
func (c *circuits) mayFail(a *attempted) bool {
	_, slow := c.failuresIn(a.key, longestCall+c.tolerance())
	return slow > 0
}

// responded checks a refusal by a circuit.
func (c *circuits) responded(o *merchants.Order, made *merchants.Call) {
	r := made.Response
	if !made.HasCome || r.Reason != reasonOpen {
		return
	}
	c.Count("circuit: refused a request")
	a, key := c.of(made.By), o.Key().String()
	e := c.Entries.Of(key)
	switch {
	case r.Status != 503 || r.RetryAfter == "" || r.MessageID != "SVC0001":
		c.fail(circuitsHelp, "%s was refused by its circuit with %d %s, Retry-After %q", key, r.Status, r.MessageID,
			r.RetryAfter)
	case a.wrote || a.sent:
		c.fail(circuitsHelp, "%s was refused by its circuit after its reservation", key)
	case e != nil && e.State != ledger.Released && c.changed[key] < made.Start && !e.PastRetention(time.Now()):
		c.fail(circuitsHelp, "%s was refused by its circuit, and is %s", key, e.State)
	case !c.hasFailed(o.Function):
		c.fail(circuitsHelp, "%s was refused by its circuit, and its platform is healthy", key)
	}
}

// hasFailed reports whether a platform had a failure lately in calls of an operation.
func (c *circuits) hasFailed(operation string) bool {
	keys := slices.Concat(slices.Collect(maps.Keys(c.failures)), slices.Collect(maps.Keys(c.calls)))
	for _, key := range keys {
		all, _ := c.failuresIn(key, longestRefusal+longestCall+c.tolerance())
		if key.Operation == operation && all > 0 {
			return true
		}
	}
	return false
}
