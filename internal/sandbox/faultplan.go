package sandbox

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"
)

// What happens must not hang on timing: callbacks go out and the purchaser's SMS come in when they get to it, between
// whatever calls there are. So nothing is drawn from one row of numbers. Each call has numbers of its own, found by the seed,
// the kind, the place of its key among the keys of that kind, and which call it is under that key; the callbacks of a
// transaction have theirs, found by the seed, the kind and the place. Only calls side by side come in an order that no seed
// decides.

// faultPlan is a steering, and how many keys of each kind had their first call since it was set. The sandbox's lock guards it.
type faultPlan struct {
	FaultSettings
	keyCount map[string]int
}

func newFaultPlan(v FaultSettings) *faultPlan {
	if v.MaxDelayMS == 0 {
		v.MaxDelayMS = defaultMaxDelayMS
	}
	return &faultPlan{FaultSettings: v, keyCount: map[string]int{}}
}

// generator are the numbers that stand under a name, the same ones under the same name and seed.
func (m *faultPlan) generator(name string) *rand.Rand {
	key := sha256.Sum256(fmt.Appendf(nil, "%d %s", m.Seed, name))
	return rand.New(rand.NewChaCha8(key)) //nolint:gosec // it has to be repeatable, and guards nothing
}

// drawFault draws in any case, so that a rate decides about nothing but its own unkindness.
func drawFault(random *rand.Rand, rate float64) bool { return random.Float64() < rate }

// faultSequence is whose turn it is: the place of a transaction in a mood, and how many of its calls were drawn there.
type faultSequence struct {
	plan     *faultPlan
	kind     string
	position int // from 1; 0: its payment's first call came before this process
	calls    int
}

// callbackFaults is what a transaction's callbacks are drawn from, under the steering that it began with. Nil is kind.
type callbackFaults struct {
	*faultPlan
	random *rand.Rand
}

// assignFaultSequence gives a transaction its place at its first call under a steering. The purchaser's SMS, which nobody knows when
// the gateway sends, takes its payment's.
func (s *Sandbox) assignFaultSequence(t *transaction) {
	if t.faultSequence.plan == s.faultPlan {
		return
	}
	t.faultSequence = faultSequence{plan: s.faultPlan, kind: t.Kind}
	if paid := s.transactions.byKey[[2]string{kindPayment, t.Key}]; t.Kind == kindSMS && paid != nil {
		t.faultSequence.kind, t.faultSequence.position = "purchaser's sms", paid.faultSequence.position
		return
	}
	s.faultPlan.keyCount[t.Kind]++
	t.faultSequence.position = s.faultPlan.keyCount[t.Kind]
}

// drawResponseMode draws how a call is answered, and how late.
func (s *Sandbox) drawResponseMode(t *transaction) (responseMode, time.Duration) {
	t.faultSequence.calls++
	random := s.faultPlan.generator(fmt.Sprintf("call %s %d %d", t.faultSequence.kind, t.faultSequence.position, t.faultSequence.calls))
	late, down, lost := drawFault(random, s.faultPlan.Delay), drawFault(random, s.faultPlan.Unavailable), drawFault(random, s.faultPlan.LostResponse)
	var delay time.Duration
	if late {
		delay = time.Duration(random.IntN(s.faultPlan.MaxDelayMS)+1) * time.Millisecond
	}
	modeName := "ok"
	switch {
	case down:
		modeName = "503"
	case lost:
		modeName = "cut"
	}
	mode, _ := parseResponseMode(modeName)
	return mode, delay
}

// drawCallbackFaults draws whether a transaction's callbacks come early, and keeps the numbers for the callbacks themselves.
func (s *Sandbox) drawCallbackFaults(t *transaction) {
	t.callbackFaults = &callbackFaults{s.faultPlan, s.faultPlan.generator(fmt.Sprintf("callbacks %s %d", t.faultSequence.kind, t.faultSequence.position))}
	t.CallbacksFirst = drawFault(t.callbackFaults.random, s.faultPlan.Reorder)
}

// drawDuplicate draws whether the next callback comes twice.
func (l *callbackFaults) drawDuplicate() bool { return l != nil && drawFault(l.random, l.Duplicate) }
