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

// mood is a steering, and how many keys of each kind had their first call since it was set. The sandbox's lock guards it.
type mood struct {
	Steering
	keys map[string]int
}

func newMood(v Steering) *mood {
	if v.MaxDelay == 0 {
		v.MaxDelay = defaultMaxDelay
	}
	return &mood{Steering: v, keys: map[string]int{}}
}

// dice are the numbers that stand under a name, the same ones under the same name and seed.
func (m *mood) dice(name string) *rand.Rand {
	key := sha256.Sum256(fmt.Appendf(nil, "%d %s", m.Seed, name))
	return rand.New(rand.NewChaCha8(key)) //nolint:gosec // it has to be repeatable, and guards nothing
}

// hits draws in any case, so that a rate decides about nothing but its own unkindness.
func hits(dice *rand.Rand, rate float64) bool { return dice.Float64() < rate }

// turn is whose turn it is: the place of a transaction in a mood, and how many of its calls were drawn there.
type turn struct {
	mood  *mood
	kind  string
	place int // from 1; 0: its payment's first call came before this process
	calls int
}

// luck is what a transaction's callbacks are drawn from, under the steering that it began with. Nil is kind.
type luck struct {
	*mood
	numbers *rand.Rand
}

// takeTurn gives a transaction its place at its first call under a steering. The purchaser's SMS, which nobody knows when
// the gateway sends, takes its payment's.
func (s *Sandbox) takeTurn(t *transaction) {
	if t.turn.mood == s.mood {
		return
	}
	t.turn = turn{mood: s.mood, kind: t.Kind}
	if paid := s.book.byKey[[2]string{kindPayment, t.Key}]; t.Kind == kindSMS && paid != nil {
		t.turn.kind, t.turn.place = "purchaser's sms", paid.turn.place
		return
	}
	s.mood.keys[t.Kind]++
	t.turn.place = s.mood.keys[t.Kind]
}

// drawManner draws how a call is answered, and how late.
func (s *Sandbox) drawManner(t *transaction) (manner, time.Duration) {
	t.turn.calls++
	dice := s.mood.dice(fmt.Sprintf("call %s %d %d", t.turn.kind, t.turn.place, t.turn.calls))
	late, down, lost := hits(dice, s.mood.Delay), hits(dice, s.mood.Unavailable), hits(dice, s.mood.LostAnswer)
	var delay time.Duration
	if late {
		delay = time.Duration(dice.IntN(s.mood.MaxDelay)+1) * time.Millisecond
	}
	word := "ok"
	switch {
	case down:
		word = "503"
	case lost:
		word = "cut"
	}
	drawn, _ := mannerOf(word)
	return drawn, delay
}

// drawLuck draws whether a transaction's callbacks come early, and keeps the numbers for the callbacks themselves.
func (s *Sandbox) drawLuck(t *transaction) {
	t.luck = &luck{s.mood, s.mood.dice(fmt.Sprintf("callbacks %s %d", t.turn.kind, t.turn.place))}
	t.Early = hits(t.luck.numbers, s.mood.Reorder)
}

// duplicated draws whether the next callback comes twice.
func (l *luck) duplicated() bool { return l != nil && hits(l.numbers, l.Duplicate) }
