package circuit

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// start is on the border of a slot.
var start = time.UnixMilli(1_790_000_000_000)

// at is a time in milliseconds, so many seconds after the start.
func at(seconds float64) int64 { return start.UnixMilli() + int64(math.Round(seconds*1000)) }

const (
	maxSlow    = 400
	probeLapse = 17_000
)

// opened is a circuit that opened at a time.
func opened(at int64) (s State) {
	s.open(at, openTime)
	return s
}

// results are those of one moment.
func results(seconds float64, failures, successes, slow int64) Results {
	return Results{slotOf(at(seconds)), failures, successes, slow}
}

func TestPhase(t *testing.T) {
	open := opened(at(0))
	forPerson := OpenedByPerson(start, time.Hour)
	for name, c := range map[string]struct {
		state State
		at    float64
		want  Phase
	}{
		"zero":                          {State{}, 0, Closed},
		"suspect":                       {State{SuspectUntil: at(30)}, 29.999, Suspect},
		"no longer suspect":             {State{SuspectUntil: at(30)}, 30, Closed},
		"suspect by a clock 20 s ahead": {State{SuspectUntil: at(50)}, 0, Suspect},
		"suspect by a clock 40 s ahead": {State{SuspectUntil: at(70)}, 0, Suspect},
		"suspect until a time that no clock can mean": {State{SuspectUntil: at(75)}, 0, Closed},
		"just opened":                             {open, 0, Open},
		"open":                                    {open, 29.999, Open},
		"half open":                               {open, 30, HalfOpen},
		"half open to its end":                    {open, 329.999, HalfOpen},
		"ended by itself":                         {open, 330, Closed},
		"opened by a clock 20 s ahead":            {open, -20, Open},
		"opened by a clock 40 s ahead":            {open, -40, Open}, // one is 20 s fast, and one 20 s slow
		"opened by a clock 46 s ahead":            {open, -46, Closed},
		"opened by a clock that is an hour ahead": {open, -3600, Closed},
		"a clock 20 s behind still refuses":       {open, 29.999 - 20, Open},
		"opened by a person":                      {forPerson, 3599, Open},
		"then half open":                          {forPerson, 3600, HalfOpen},
		"then closed":                             {forPerson, 3900, Closed},
	} {
		if got := c.state.Phase(time.UnixMilli(at(c.at))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestPhaseNames(t *testing.T) {
	names := map[Phase]string{Closed: "closed", Suspect: "suspect", Open: "open", HalfOpen: "half-open"}
	for phase, want := range names {
		if phase.String() != want {
			t.Errorf("%s, want %s", phase, want)
		}
	}
}

func TestOpenedByPersonIsBounded(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		-time.Second: 0, time.Hour: time.Hour, 25 * time.Hour: MaxOpenTime,
	} {
		s := OpenedByPerson(start, wait)
		got := time.Duration(s.ProbesAt-s.OpenedAt) * time.Millisecond
		if got != want || s.ByPerson != 1 || !s.isUsable() {
			t.Errorf("%s: probes after %s, want %s; usable %v", wait, got, want, s.isUsable())
		}
	}
}

// reported is a report with the time at which it is applied.
type reported struct {
	at float64
	r  report
}

func fail(seconds float64, n int64) reported {
	return reported{seconds, report{results: []Results{results(seconds, n, 0, 0)}}}
}

func succeed(seconds float64, n int64) reported {
	return reported{seconds, report{results: []Results{results(seconds, 0, n, 0)}}}
}

func slow(seconds float64, n int64) reported {
	return reported{seconds, report{results: []Results{results(seconds, n, 0, n)}}}
}

// takeBack is the late success of n calls that were slow from a time on.
func takeBack(seconds, from float64, n int64) reported {
	return reported{seconds, report{results: []Results{results(from, -n, 0, -n), results(seconds, 0, n, 0)}}}
}

func TestResultsOpenACircuit(t *testing.T) {
	for name, c := range map[string]struct {
		reports []reported
		want    Phase // at the last report
	}{
		"one failure":                           {[]reported{fail(0, 1)}, Suspect},
		"nine failures":                         {[]reported{fail(0, 9)}, Suspect},
		"ten failures":                          {[]reported{fail(0, 10)}, Open},
		"ten failures of many reports":          {[]reported{fail(0, 3), fail(8, 3), fail(20, 3), fail(24, 1)}, Open},
		"half of the results":                   {[]reported{succeed(0, 10), fail(1, 10)}, Open},
		"less than half of the results":         {[]reported{succeed(0, 11), fail(1, 10)}, Suspect},
		"failures of more than 30 s":            {[]reported{fail(0, 9), fail(30, 9)}, Suspect},
		"successes do not extend the suspicion": {[]reported{fail(0, 1), succeed(29, 5), succeed(30, 5)}, Closed},
		"failures extend the suspicion":         {[]reported{fail(0, 1), fail(29, 1), succeed(58, 5)}, Suspect},
		"failures by a clock 20 s ahead":        {[]reported{fail(0, 5), {0, fail(20, 5).r}}, Open},
		"failures by a clock 20 s behind":       {[]reported{fail(20, 5), {20, fail(0, 5).r}}, Open},
		"failures by a clock 40 s ahead":        {[]reported{fail(0, 5), {0, fail(40, 5).r}}, Suspect},
		"failures that were taken back": {
			[]reported{slow(0, 10).only(9), takeBack(1, 0, 5), fail(2, 5)}, Suspect,
		},
		"slow calls at the share":      {[]reported{succeed(0, 900), slow(1, 400)}, Suspect},
		"slow calls above the share":   {[]reported{succeed(0, 900), slow(1, 401)}, Open},
		"slow calls of several slots":  {[]reported{succeed(0, 900), slow(1, 200), slow(9, 201)}, Open},
		"slow calls of dead processes": {[]reported{succeed(0, 900), slow(1, 400), slow(20, 1)}, Suspect},
		"slow calls that ended": {
			[]reported{succeed(0, 900), slow(1, 400), ended(2, 1, 9), slow(3, 9)}, Suspect,
		},
		"waiting calls are no failures of the ten yet": {[]reported{slow(0, 50), slow(5, 50)}, Suspect},
		"waiting calls that waited for 8 s are":        {[]reported{slow(0, 10), slow(10, 1)}, Open},
		"waiting calls that ended without a response":  {[]reported{slow(0, 10), ended(9, 0, 10)}, Open},
		"a take-back whose failure was not reported":   {[]reported{takeBack(0, 0, 5), fail(0, 10)}, Open},
	} {
		s, last := State{}, 0.0
		for _, one := range c.reports {
			s.apply(&one.r, at(one.at), maxSlow)
			last = one.at
		}
		if got := s.phase(at(last)); got != c.want {
			t.Errorf("%s: %s with %v, want %s", name, got, s.Results, c.want)
		}
	}
}

// only leaves out failures of a report.
func (r reported) only(failures int64) reported {
	changed := slices.Clone(r.r.results)
	changed[0].Failures = failures
	return reported{r.at, report{results: changed}}
}

// ended is the end of n calls that were slow from a time on, without a success.
func ended(seconds, from float64, n int64) reported {
	return reported{seconds, report{results: []Results{results(from, 0, 0, -n)}}}
}

// probing is a half-open state at 40 s, with probes that lapse at these seconds.
func probing(successes int64, lapses ...float64) State {
	s := opened(at(0))
	s.Successes = successes
	for _, lapse := range lapses {
		s.Probes = append(s.Probes, at(lapse))
	}
	return s
}

func endOf(lapse float64, outcome Evidence) report {
	return report{probe: at(lapse), began: at(40), outcome: outcome}
}

// slowFailure is the failure of a probe that began at a time.
func slowFailure(lapse, began float64) report {
	return report{probe: at(lapse), began: at(began), outcome: Failed}
}

// openedFor is a circuit that opened at 40 s for a time in seconds.
func openedFor(seconds int64) (s State) {
	s.open(at(40), seconds*1000)
	return s
}

// Each row is one report at 40 s, which is the money's view of a probe: who may send next.
func TestProbesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		state   State
		r       report
		want    State
		changes bool
	}{
		"the first success":       {probing(0, 50, 51), endOf(50, Responded), probing(1, 51), true},
		"the last success":        {probing(2, 50, 51), endOf(51, Responded), State{}, true},
		"a failure opens again":   {probing(2, 50, 51), endOf(51, Failed), opened(at(40)), true},
		"a failure after 12 s":    {probing(2, 50), slowFailure(50, 28), openedFor(18), true},
		"a failure after a day":   {probing(2, 50), slowFailure(50, -86400), openedFor(0), true},
		"a clock that went back":  {probing(2, 50), slowFailure(50, 99), openedFor(30), true},
		"no evidence":             {probing(1, 50, 51), endOf(51, None), probing(1, 50), true},
		"a lapsed one, replaced":  {probing(1, 50, 51), endOf(39, Responded), probing(1, 50, 51), false},
		"its end twice":           {probing(1, 50), endOf(51, Responded), probing(1, 50), false},
		"other results":           {probing(1, 50), fail(40, 50).r, probing(1, 50), false},
		"open again meanwhile":    {opened(at(39)), endOf(50, Responded), opened(at(39)), false},
		"closed meanwhile":        {State{}, endOf(50, Failed), State{}, false},
		"ended by itself":         {probingAt(-400), endOf(50, Failed), State{}, false},
		"a failure after the end": {probingAt(-400), fail(40, 1).r, suspect(70, results(40, 1, 0, 0)), true},
	} {
		got := c.state
		changes := got.apply(&c.r, at(40), maxSlow)
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(State{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if changes != c.changes {
			t.Errorf("%s: changes %v, want %v", name, changes, c.changes)
		}
	}
}

// probingAt is a circuit that opened at a time, with a probe.
func probingAt(seconds float64) State {
	s := opened(at(seconds))
	s.Probes = []int64{at(50)}
	return s
}

func suspect(until float64, all ...Results) State {
	return State{SuspectUntil: at(until), Results: all}
}

func TestProbesAreTaken(t *testing.T) {
	for name, c := range map[string]struct {
		state State
		want  []float64 // the lapses afterwards, at 40 s
		taken bool
	}{
		"the first":                       {probing(0), []float64{57}, true},
		"the third":                       {probing(0, 50, 51), []float64{50, 51, 57}, true},
		"too many":                        {probing(0, 50, 51, 52), []float64{50, 51, 52}, false},
		"a probe whose process died":      {probing(0, 40, 51, 52), []float64{51, 52, 57}, true},
		"beside one that lapsed":          {probing(0, 39), []float64{39, 57}, true},
		"taken in the same millisecond":   {probing(0, 57), []float64{57, 57.001}, true},
		"taken by clocks that are behind": {probing(0, 37, 38, 39), []float64{38, 39, 57}, true},
		"taken by clocks that are ahead":  {probing(0, 77, 77.1, 77.2), []float64{77, 77.1, 77.2}, false},
	} {
		var want []int64
		for _, lapse := range c.want {
			want = append(want, at(lapse))
		}
		got := c.state
		lapse := got.takeProbe(at(40), probeLapse)
		if !slices.Equal(got.Probes, want) || lapse != 0 != c.taken || c.taken && lapse != want[len(want)-1] {
			t.Errorf("%s: probes %v, the new one lapses at %d; want %v, %v", name, got.Probes, lapse, want, c.taken)
		}
	}
}

func TestStoredForm(t *testing.T) {
	full := probing(2, 50, 51)
	full.writer, full.ByPerson, full.SuspectUntil = 7, 1, at(9)
	full.Results = []Results{results(0, 1, -2, 3), results(5, 4, 5, 6)}
	for name, state := range map[string]State{
		"zero": {}, "suspect": suspect(30, results(0, 1, 0, 0)), "open": opened(at(0)), "full": full,
		"by a person": OpenedByPerson(start, MaxOpenTime),
	} {
		got, err := Decode(state.Encode())
		if diff := cmp.Diff(state, got, cmp.AllowUnexported(State{}), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	const golden = "1 0 0 1790000000000 1790000030000 1790000330000 0 1 2 1790000050000 1790000051000 ."
	s := probing(1, 50, 51)
	if got := s.Encode(); got != golden {
		t.Errorf("the form is %q, want %q", got, golden)
	}
}

// A state that cannot be trusted is closed. Each prefix of a form is torn.
func TestUnreadableForms(t *testing.T) {
	state := probing(1, 50, 51)
	form := state.Encode()
	cases := map[string]error{
		"2 something else": ErrNewer, "99": ErrNewer,
		"0 1":  ErrUnreadable,
		"-1 1": ErrUnreadable,
		"x":    ErrUnreadable,
		" ":    ErrUnreadable,
		"1 .":  ErrUnreadable,
		"{}":   ErrUnreadable,
		"1 0 0 1790000000000 1790000030000 1790000330000 0 0 9 .":       ErrUnreadable, // nine probes
		"1 0 0 1790000000000 1790000030000 1790000330000 0 0 -1 .":      ErrUnreadable,
		"1 0 0 1790000000000 1790000030000 1790000330000 0 0 0 1 2 .":   ErrUnreadable, // half a slot
		"1 0 0 1790000000000 1790000030000 1790000330000 0 0 x .":       ErrUnreadable,
		"1 0 0 1790000000000 1790000031000 1790000330000 0 0 0 .":       ErrUnreadable, // open too long
		"1 0 0 1790000000000 1790000030000 1790000331000 0 0 0 .":       ErrUnreadable, // half open too long
		"1 0 0 1790000000000 1789999999999 1790000300000 0 0 0 .":       ErrUnreadable, // ends before it begins
		"1 0 0 1790000000000 1790000030000 1790000029000 0 0 0 .":       ErrUnreadable,
		"1 0 0 1790000000000 1790086400001 1790086500000 1 0 0 .":       ErrUnreadable, // a person's, too long
		"1 0 0 0 1790000030000 1790000330000 0 0 0 .":                   ErrUnreadable, // closed with an end
		"1 0 0 1790000000000 1790000030000 1790000330000 0 0 0 5 1 1 1": ErrUnreadable,
	}
	for length := 1; length < len(form); length++ {
		cases[form[:length]] = ErrUnreadable
	}
	for text, want := range cases {
		got, err := Decode(text)
		if !errors.Is(err, want) || got.phase(at(1)) != Closed || got.phase(at(35)) != Closed {
			t.Errorf("%q: %v, phase %s; want %v, closed", text, err, got.phase(at(1)), want)
		}
	}
	if s, err := Decode(""); err != nil || s.phase(at(0)) != Closed {
		t.Errorf("no form: %v, %v", s, err)
	}
}
