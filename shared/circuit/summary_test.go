package circuit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// openedBy is a circuit that results opened.
func openedBy(reports ...reported) (s State) {
	for _, one := range reports {
		s.apply(&one.r, at(one.at), maxSlow)
	}
	return s
}

func TestSummarize(t *testing.T) {
	moment := func(seconds float64) time.Time { return time.UnixMilli(at(seconds)) }
	byResults, byPerson := openedBy(fail(1, 9), succeed(7, 4), fail(8, 3)), OpenedByPerson(start, time.Hour)
	slowCalls := openedBy(succeed(0, 900), slow(1, 401))
	taken := byResults
	taken.Successes, taken.Probes = 1, []int64{at(39), at(50), at(51)}
	for name, c := range map[string]struct {
		state State
		at    float64
		want  Summary
	}{
		"closed": {State{}, 0, Summary{}},
		"suspect": {openedBy(fail(6, 2), succeed(11, 3), slow(12, 1)), 13, Summary{
			Phase: Suspect, Since: moment(5), EndsAt: moment(42),
			Results: Results{Slot: slotOf(at(5)), Failures: 3, Successes: 3, Slow: 1},
		}},
		"suspect, and the window has moved on": {openedBy(fail(0, 2), fail(20, 1)), 49, Summary{
			Phase: Suspect, Since: moment(20), EndsAt: moment(50),
			Results: Results{Slot: slotOf(at(20)), Failures: 1},
		}},
		"suspect after a failure that was taken back": {State{SuspectUntil: at(30)}, 10, Summary{
			Phase: Suspect, Since: moment(0), EndsAt: moment(30),
		}},
		"open by failures": {byResults, 20, Summary{
			Phase: Open, Since: moment(8), ProbesAt: moment(38), EndsAt: moment(338),
			Results: Results{Slot: slotOf(at(1)), Failures: 12, Successes: 4},
		}},
		"open by slow calls": {slowCalls, 20, Summary{
			Phase: Open, Since: moment(1), ProbesAt: moment(31), EndsAt: moment(331),
			Results: Results{Slot: slotOf(at(1)), Failures: 401, Successes: 900, Slow: 401},
		}},
		"half open, with probes": {taken, 40, Summary{
			Phase: HalfOpen, Since: moment(38), ProbesAt: moment(38), EndsAt: moment(338),
			Results: Results{Slot: slotOf(at(1)), Failures: 12, Successes: 4}, Probes: 2, Succeeded: 1,
		}},
		"ended by itself": {byResults, 338, Summary{}},
		"open by a person": {byPerson, 20, Summary{
			Phase: Open, Since: moment(0), ProbesAt: moment(3600), EndsAt: moment(3900), ByPerson: true,
		}},
		"open by a probe that failed": {opened(at(40)), 41, Summary{
			Phase: Open, Since: moment(40), ProbesAt: moment(70), EndsAt: moment(370),
		}},
	} {
		if diff := cmp.Diff(c.want, c.state.Summarize(moment(c.at))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The results that opened a circuit are for people: they neither end it nor open it again, also for a clock that is
// behind the one that opened it.
func TestResultsOfAnOpenCircuitDecideNothing(t *testing.T) {
	for name, c := range map[string]struct {
		at   float64
		end  report
		want State
	}{
		"after its end":               {360, fail(360, 1).r, suspect(390, results(360, 1, 0, 0))},
		"by a clock far behind":       {-26, fail(-26, 1).r, suspect(4, results(-26, 1, 0, 0))},
		"after a failed probe":        {60, slowFailure(70, 60), opened(at(60))},
		"after probes that succeeded": {60, endOf(71, Responded), State{}},
	} {
		s := openedBy(fail(0, 6), fail(20, 6))
		if len(s.Results) == 0 {
			t.Fatal("the results are not kept")
		}
		s.Successes, s.Probes = 2, []int64{at(70), at(71)}
		s.apply(&c.end, at(c.at), maxSlow)
		s.writer = 0
		if diff := cmp.Diff(c.want, s, cmp.AllowUnexported(State{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
