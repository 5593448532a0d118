// Package tape makes the choices of a simulated history, one after the other, and remembers them. The choices decide
// everything that the code under test does not decide itself: which task runs next, which call fails, and what a payer
// does.
//
// A tape made from a seed draws its choices. A tape made from a list repeats them, and continues with zeros. Zero is
// the harmless choice everywhere, so a history becomes simpler when its choices become zero or fewer (see Shrink).
package tape

import "slices"

// firstCapacity is the first capacity of a list of choices.
const firstCapacity = 1024

// Choice is one recorded choice: Value of Count alternatives.
type Choice struct {
	Label string
	Count int
	Value int
}

// Tape makes choices. It is for one goroutine at a time.
type Tape struct {
	state    uint64 // of the generator
	recorded []int  // the choices to repeat first
	random   bool   // false: zeros after the recorded choices
	choices  []Choice
	forced   map[string]int // by label; see Force
}

// FromSeed returns a tape whose choices are drawn from a seed.
func FromSeed(seed uint64) *Tape { return &Tape{state: seed, random: true} }

// Force lets a tape of a seed make the same choice each time at some labels, and returns the tape. A value beyond the
// last alternative is the last one. It makes a situation likely that the history needs for a certain bug.
func (t *Tape) Force(choices map[string]int) *Tape {
	t.forced = choices
	return t
}

// FromChoices returns a tape that repeats choices. A value that does not fit its place counts as zero there.
func FromChoices(values []int) *Tape { return &Tape{recorded: values} }

// Choose returns a number from 0 to count-1. label names the choice in a story. It panics if count is not positive.
func (t *Tape) Choose(label string, count int) int {
	if count <= 0 {
		panic("tape: nothing to choose for " + label)
	}
	value := 0
	switch place := len(t.choices); {
	case count == 1:
		return 0
	case place < len(t.recorded):
		if t.recorded[place] < count {
			value = t.recorded[place]
		}
	case t.random:
		value = int(t.next() % uint64(count)) //nolint:gosec // below count
		if forced, isForced := t.forced[label]; isForced {
			value = min(forced, count-1)
		}
	}
	if len(t.choices) == cap(t.choices) {
		t.choices = slices.Grow(t.choices, max(len(t.choices), firstCapacity)) // append grows a long list slowly
	}
	t.choices = append(t.choices, Choice{Label: label, Count: count, Value: value})
	return value
}

// ChooseApart is Choose for kinds of history that were added later. It takes nothing from the generator, so that the
// other choices of a seed stay as they were. Its value depends on the label and on the choices by Choose before it.
func (t *Tape) ChooseApart(label string, count int) int {
	state := t.state
	defer func() { t.state = state }()
	for _, letter := range []byte(label) {
		t.state = Mix(t.state ^ uint64(letter))
	}
	return t.Choose(label, count)
}

// Happens reports whether something with a rate per mille happens. It is false for zero.
func (t *Tape) Happens(label string, perMille int) bool {
	if perMille <= 0 {
		return false
	}
	return t.Choose(label, 1000) >= 1000-perMille
}

// Read fills buffer with drawn bytes.
func (t *Tape) Read(buffer []byte) (int, error) {
	for i := range buffer {
		buffer[i] = byte(t.Choose("byte", 256)) //nolint:gosec // below 256
	}
	return len(buffer), nil
}

// Draw draws one of some values. The first is the harmless one.
func Draw[T any](t *Tape, label string, values ...T) T { return values[t.Choose(label, len(values))] }

// Choices returns all choices so far. The caller must not change them.
func (t *Tape) Choices() []Choice { return t.choices }

// Values returns the values of all choices so far.
func (t *Tape) Values() []int {
	values := make([]int, len(t.choices))
	for i, choice := range t.choices {
		values[i] = choice.Value
	}
	return values
}

// next is the generator SplitMix64: fast, and good enough for choices.
func (t *Tape) next() uint64 {
	t.state += Increment
	return Mix(t.state)
}

// Increment is what SplitMix64 adds to its state before each value.
const Increment = 0x9e3779b97f4a7c15

// Mix is the finalizer of SplitMix64: it spreads a number over 64 bits.
func Mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
