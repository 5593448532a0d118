package explore

import (
	"cmp"
	"fmt"
	"slices"
)

// branch is one choice of a path: value of count alternatives.
type branch struct {
	label        string
	count, value int
}

// compare compares the value of the branch with another one.
func (b branch) compare(value int) int { return cmp.Compare(b.value, value) }

// search walks a tree of choices depth first. Each run repeats the path so far and takes the first alternative of every
// further choice. It remembers the states that it has seen, so that each one is explored once.
type search struct {
	path   []branch
	place  int             // of the next choice of the run
	states map[uint64]int8 // by hash: the greatest number of faults left with which the state was explored
	ends   map[uint64]bool // the states in which all actors have ended
	frozen bool            // the run makes no choice any more: the rest of it is known
	// keepsPaths is true if states that repeat are explored again.
	keepsPaths bool
	runs       int
	depth      int // the longest path
	// isReplay is true for the repetition of one path: known ends are run again.
	isReplay bool
	until    []int // the values of the choices at which the search ends, nil for none
}

func newSearch() *search {
	return &search{states: map[uint64]int8{}, ends: map[uint64]bool{}}
}

// newPart returns a search of the paths from one to another, by the values of their first choices. The second is not in
// the part.
func newPart(from, until []int) *search {
	s := newSearch()
	s.until = until
	for _, value := range from {
		s.path = append(s.path, branch{value: value})
	}
	return s
}

// begin starts the next run.
func (s *search) begin() {
	s.place, s.frozen = 0, false
	s.runs++
}

// choose makes a choice of the run: one of count alternatives.
func (s *search) choose(label string, count int) int {
	if count <= 1 || s.frozen {
		return 0
	}
	if s.place < len(s.path) {
		b := &s.path[s.place]
		if b.count == 0 { // of the first path of a part
			b.label, b.count = label, count
		}
		if b.value >= count {
			panic(fmt.Sprintf("explore: a part begins at alternative %d of %q, which has %d", b.value, label, count))
		}
		if b.label != label || b.count != count {
			panic(fmt.Sprintf("explore: %q of %d was %q of %d in an earlier run: the history is not deterministic",
				label, count, b.label, b.count))
		}
		s.place++
		return b.value
	}
	s.path = append(s.path, branch{label: label, count: count})
	s.place++
	s.depth = max(s.depth, len(s.path))
	return 0
}

// isRepeating reports whether the run still repeats an earlier one.
func (s *search) isRepeating() bool { return s.place < len(s.path) }

// enter reports whether a state must be explored: it is new, or was explored with fewer faults left. A run that repeats
// an earlier one does not enter the states of that one again.
func (s *search) enter(state uint64, faultsLeft int) bool {
	if s.frozen {
		return false
	}
	before, known := s.states[state]
	if known && int(before) >= faultsLeft && !s.keepsPaths {
		s.frozen = true
		return false
	}
	s.states[state] = int8(faultsLeft) //nolint:gosec // below ten
	return true
}

// explored is the part of the tree that is explored, if all branches of a choice were equally long.
func (s *search) explored() float64 {
	done, part := 0.0, 1.0
	for _, b := range s.path {
		part /= float64(b.count)
		done += part * float64(b.value)
	}
	return done
}

// next changes the path to the next unexplored one. It returns false if there is none in the part.
func (s *search) next() bool {
	for len(s.path) > 0 {
		last := &s.path[len(s.path)-1]
		if last.value++; last.value < last.count {
			return s.until == nil || slices.CompareFunc(s.path, s.until, branch.compare) < 0
		}
		s.path = s.path[:len(s.path)-1]
	}
	return false
}
