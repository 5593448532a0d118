package sandbox

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"mobilegateway/world/operators/kit"
)

// FaultSettings is the seeded fault injection. All rates are 0 by default, and again after a restart. The same seed
// with the same sequence of calls gives the same faults, independently of the time between the calls. Concurrent calls
// have no such order. Delay, Unavailable and LostResponse do not apply to scripted calls and to outcomes of the digits.
type FaultSettings struct {
	// Seed selects the random numbers. Setting it, also to the same value, starts their sequence again.
	Seed uint64 `json:"seed"`
	// Delay is the share of calls that are applied at once and get their response up to MaxDelayMS milliseconds later.
	Delay      float64 `json:"delay"`
	MaxDelayMS int     `json:"max_delay_ms"`
	// Duplicate is the share of callbacks that are sent twice.
	Duplicate float64 `json:"duplicate"`
	// Reorder is the share of transactions with callbacks before the response, an SMS's receipts in reverse order.
	Reorder float64 `json:"reorder"`
	// LostResponse is the share of calls that are applied and whose connection is then cut.
	LostResponse float64 `json:"lost_answer"`
	// Unavailable is the share of calls with the response 503 that are not applied.
	Unavailable float64 `json:"unavailable"`
}

const (
	defaultMaxDelayMS = 2000
	maxDelayLimitMS   = 60_000
	seededFaultRate   = 0.1 // of each fault where the environment sets only a seed
)

// faultRate is one rate, with its JSON field and its environment variable.
type faultRate struct {
	field, variable string
	value           *float64
}

func (v *FaultSettings) rates() []faultRate {
	return []faultRate{
		{"delay", "SANDBOX_DELAY", &v.Delay},
		{"duplicate", "SANDBOX_DUPLICATE", &v.Duplicate},
		{"reorder", "SANDBOX_REORDER", &v.Reorder},
		{"lost_answer", "SANDBOX_LOST_ANSWER", &v.LostResponse},
		{"unavailable", "SANDBOX_UNAVAILABLE", &v.Unavailable},
	}
}

func isRate(value float64) bool { return value >= 0 && value <= 1 }

func isMaxDelay(milliseconds int) bool { return milliseconds >= 0 && milliseconds <= maxDelayLimitMS }

func (v *FaultSettings) validate() error {
	for _, rate := range v.rates() {
		if !isRate(*rate.value) {
			return fmt.Errorf("the fault rate %s is not between 0 and 1", rate.field)
		}
	}
	if !isMaxDelay(v.MaxDelayMS) {
		return fmt.Errorf("max_delay_ms is not between 0 and %d", maxDelayLimitMS)
	}
	return nil
}

// FaultSettingsFromEnvironment reads the fault injection at the start of a sandbox, by default none. SANDBOX_SEED
// without rates sets every rate to seededFaultRate; a rate's own variable overrules that. The error names the variable.
func FaultSettingsFromEnvironment(lookup func(string) (string, bool)) (FaultSettings, error) {
	var v FaultSettings
	var err error
	seed, _ := lookup("SANDBOX_SEED")
	v.Seed, err = strconv.ParseUint(cmp.Or(seed, "0"), 10, 64)
	if err != nil {
		return FaultSettings{}, fmt.Errorf("SANDBOX_SEED must be a whole number")
	}
	for _, rate := range v.rates() {
		text, _ := lookup(rate.variable)
		switch {
		case text != "":
			*rate.value, err = strconv.ParseFloat(text, 64)
			if err != nil || !isRate(*rate.value) {
				return FaultSettings{}, fmt.Errorf("%s must be a rate between 0 and 1", rate.variable)
			}
		case seed != "":
			*rate.value = seededFaultRate
		}
	}
	delay, _ := lookup("SANDBOX_MAX_DELAY_MS")
	v.MaxDelayMS, err = strconv.Atoi(cmp.Or(delay, "0"))
	if err != nil || !isMaxDelay(v.MaxDelayMS) {
		return FaultSettings{}, fmt.Errorf("SANDBOX_MAX_DELAY_MS must be between 0 and %d", maxDelayLimitMS)
	}
	return v, nil
}

// faultInjector injects the faults of its plan.
type faultInjector struct {
	*Sandbox
	plan *faultPlan
}

func (s *faultInjector) showFaultSettings(*kit.Call, struct{}) kit.Response {
	return jsonResponse(http.StatusOK, s.plan.FaultSettings)
}

func (s *faultInjector) replaceFaultSettings(c *kit.Call, v FaultSettings) kit.Response {
	if err := v.validate(); err != nil {
		return kit.Refuse(http.StatusBadRequest, "%v", err)
	}
	s.plan = newFaultPlan(v)
	return s.showFaultSettings(c, struct{}{})
}

// faultPlan is settings with the number of keys of each kind that had their first call since. The sandbox's lock
// guards it.
//
// Timing must not decide which faults occur: callbacks and the payer's SMS come at any time between the calls. So
// each call has its own random numbers. They depend on the seed, the kind, the position of its key among the keys of
// that kind, and the number of the call under that key. The callbacks of a transaction have their own in the same way.
type faultPlan struct {
	FaultSettings
	keyCount map[string]int
}

func newFaultPlan(v FaultSettings) *faultPlan {
	v.MaxDelayMS = cmp.Or(v.MaxDelayMS, defaultMaxDelayMS)
	return &faultPlan{FaultSettings: v, keyCount: map[string]int{}}
}

// isOff reports whether all rates are 0.
func (m *faultPlan) isOff() bool {
	return m.Delay+m.Duplicate+m.Reorder+m.LostResponse+m.Unavailable == 0
}

// generator returns random numbers, the same ones for the same seed and name.
func (m *faultPlan) generator(name string) *rand.Rand {
	key := sha256.Sum256(fmt.Appendf(nil, "%d %s", m.Seed, name))
	return rand.New(rand.NewChaCha8(key)) //nolint:gosec // it must be repeatable, and guards nothing
}

// drawFault takes a number at every rate, also 0, so that a rate changes only its own fault.
func drawFault(random *rand.Rand, rate float64) bool { return random.Float64() < rate }

// faultSequence is the position of a transaction in a fault plan, and the number of its calls there.
type faultSequence struct {
	plan     *faultPlan
	kind     string
	position int // from 1; 0: the first call of its payment came before this process
	calls    int
}

// callbackFaults draws the faults of a transaction's callbacks, with the plan of its first call. nil draws none.
type callbackFaults struct {
	*faultPlan
	random *rand.Rand
}

// assignFaultSequence assigns a transaction its position at its first call under a plan. The payer's SMS takes the
// position of its payment, because the gateway may send it at any time.
func (s *faultInjector) assignFaultSequence(t transaction) {
	if t.faultSequence.plan == s.plan || s.plan.isOff() {
		return
	}
	t.faultSequence = faultSequence{plan: s.plan, kind: t.Kind}
	if payment, found := s.find(kindPayment, t.Key); t.Kind == kindSMS && found {
		t.faultSequence.kind, t.faultSequence.position = "purchaser's sms", payment.faultSequence.position
		return
	}
	s.plan.keyCount[t.Kind]++
	t.faultSequence.position = s.plan.keyCount[t.Kind]
}

// drawMode draws the mode of a call and the delay of its response.
func (s *faultInjector) drawMode(c *kit.Call) (mode string, delay time.Duration) {
	in, ok := c.Parsed.(*request)
	if !ok || s.plan.isOff() {
		return "ok", 0
	}
	t, _ := s.find(in.kind, in.key)
	sequence := &t.faultSequence
	sequence.calls++
	random := s.plan.generator(fmt.Sprintf("call %s %d %d", sequence.kind, sequence.position, sequence.calls))
	late := drawFault(random, s.plan.Delay)
	unavailable := drawFault(random, s.plan.Unavailable)
	lost := drawFault(random, s.plan.LostResponse)
	if late {
		delay = time.Duration(random.IntN(s.plan.MaxDelayMS)+1) * time.Millisecond
	}
	switch {
	case unavailable:
		return "503", delay
	case lost:
		return "cut", delay
	}
	return "ok", delay
}

// drawCallbackFaults draws whether a transaction's callbacks come first, and prepares drawDuplicate.
func (s *faultInjector) drawCallbackFaults(t transaction) {
	if s.plan.isOff() {
		return
	}
	name := fmt.Sprintf("callbacks %s %d", t.faultSequence.kind, t.faultSequence.position)
	t.callbackFaults = &callbackFaults{s.plan, s.plan.generator(name)}
	t.InjectedFirst = drawFault(t.callbackFaults.random, s.plan.Reorder)
}

// drawDuplicate draws whether the next callback is sent twice.
func (f *callbackFaults) drawDuplicate() bool { return f != nil && drawFault(f.random, f.Duplicate) }
