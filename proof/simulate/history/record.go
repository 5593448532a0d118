package history

import (
	"cmp"
	"fmt"
	"time"
)

// Record is what a history shows.
type Record struct {
	// HasStory is true if Story keeps a line for each event.
	HasStory  bool
	Story     []string
	Counts    Counts
	Violation error // the first one, nil for none
	Sites     Sites
	Rows      map[string]int // the writes of entries, by the row of the table of transitions

	faults map[string]int // by kind
}

// Counts count what happened in a history.
type Counts struct {
	Steps    int
	Requests int
	Sweeps   int
	Batches  int
	Commands int
}

// Logf adds a line to the story.
func (r *Record) Logf(format string, values ...any) {
	if r.HasStory {
		at := time.Since(Start)
		r.Story = append(r.Story, fmt.Sprintf("%12s  ", at.Round(time.Millisecond))+fmt.Sprintf(format, values...))
	}
}

// LogText adds a text to the story.
func (r *Record) LogText(text string) { r.Logf("%s", text) }

// Fail ends the history with a violation. The first one counts.
func (r *Record) Fail(format string, values ...any) {
	if r.Violation == nil {
		r.Violation = fmt.Errorf(format, values...)
		r.Logf("VIOLATION: %s", r.Violation)
	}
}

// Count counts an injected fault.
func (r *Record) Count(kind string) { r.faults[kind]++ }

// Site is an outside call of a function: how often it was made, and how often the instance crashed before and after it.
type Site struct {
	Function, Call       string
	Calls, Before, After int
}

// Sites are outside calls by function and call.
type Sites map[[2]string]*Site

// Of returns the counts of an outside call.
func (s Sites) Of(function, call string) *Site {
	name := [2]string{function, call}
	if s[name] == nil {
		s[name] = &Site{Function: function, Call: call}
	}
	return s[name]
}

// ByName compares the names of two outside calls.
func ByName(a, b *Site) int {
	return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Call, b.Call))
}
