package tape_test

import (
	"slices"
	"testing"

	"mobilegateway/proof/simulate/tape"
)

func TestTapeRepeatsItsChoices(t *testing.T) {
	drawn := tape.FromSeed(7)
	for range 50 {
		drawn.Choose("a", 10)
		drawn.Happens("b", 300)
		drawn.Choose("only one", 1)
	}
	repeated := tape.FromChoices(drawn.Values())
	for place, choice := range drawn.Choices() {
		if got := repeated.Choose(choice.Label, choice.Count); got != choice.Value {
			t.Fatalf("choice %d is %d, want %d", place, got, choice.Value)
		}
	}
	if got := repeated.Choose("after the end", 10); got != 0 {
		t.Errorf("after its choices the tape chose %d, want 0", got)
	}
	if tape.FromChoices([]int{12}).Choose("too small now", 10) != 0 {
		t.Error("a value that does not fit is not zero")
	}
}

func TestForceFixesTheChoicesOfALabel(t *testing.T) {
	forced := tape.FromSeed(7).Force(map[string]int{"a": 3, "b": 99})
	for range 20 {
		if a, b := forced.Choose("a", 10), forced.Choose("b", 10); a != 3 || b != 9 {
			t.Fatalf("chose %d and %d, want 3 and 9", a, b)
		}
	}
	repeated := tape.FromChoices(forced.Values())
	for place, choice := range forced.Choices() {
		if got := repeated.Choose(choice.Label, choice.Count); got != choice.Value {
			t.Fatalf("choice %d is %d, want %d", place, got, choice.Value)
		}
	}
}

func TestChooseApartLeavesTheOtherChoices(t *testing.T) {
	alone, beside := tape.FromSeed(7), tape.FromSeed(7)
	apart := map[int]bool{}
	for range 40 {
		apart[beside.ChooseApart("apart", 8)] = true
		if a, b := alone.Choose("a", 1000), beside.Choose("a", 1000); a != b {
			t.Fatalf("chose %d, and %d beside choices apart", a, b)
		}
	}
	if len(apart) != 8 {
		t.Errorf("chose only %v apart", apart)
	}
	repeated := tape.FromChoices(beside.Values())
	for place, choice := range beside.Choices() {
		if got := repeated.Choose(choice.Label, choice.Count); got != choice.Value {
			t.Fatalf("choice %d is %d, want %d", place, got, choice.Value)
		}
	}
}

func TestHappensKeepsItsRate(t *testing.T) {
	drawn, happened := tape.FromSeed(1), 0
	for range 10_000 {
		if drawn.Happens("x", 200) {
			happened++
		}
	}
	if happened < 1_800 || happened > 2_200 {
		t.Errorf("a rate of 200 per mille happened %d times in 10,000", happened)
	}
	if drawn.Happens("never", 0) {
		t.Error("a rate of 0 happened")
	}
}

func TestShrinkFindsTheSimplestFailure(t *testing.T) {
	values := tape.FromSeed(3)
	for range 200 {
		values.Choose("x", 50)
	}
	fails := func(list []int) bool { // some value over 30, and a later one over 10
		first := slices.IndexFunc(list, func(v int) bool { return v > 30 })
		return first >= 0 && slices.ContainsFunc(list[first+1:], func(v int) bool { return v > 10 })
	}
	got := tape.Shrink(values.Values(), 2_000, fails)
	if !fails(got) || len(got) != 2 || got[0] > 62 || got[1] > 22 {
		t.Errorf("shrunk to %v, want two values", got)
	}
}
