package timeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/timeline"
)

var created = time.Date(2026, 11, 21, 10, 30, 0, 123e6, time.UTC)

func at(seconds int) time.Time { return created.Add(time.Duration(seconds) * time.Second) }

func lookup(seconds int, outcome timeline.Outcome) timeline.Event {
	return timeline.Event{Kind: timeline.Lookup, At: at(seconds), Outcome: outcome}
}

func TestLog(t *testing.T) {
	times := timeline.Times{Created: created, Final: at(90)}
	callback := timeline.Event{Kind: timeline.Callback, At: at(90), Outcome: timeline.Successful}
	code := timeline.Event{Kind: timeline.Call, At: created, Code: "NOT_ENOUGH_FUNDS"}
	foreign := timeline.Event{Kind: timeline.Callback, At: at(5), Outcome: timeline.Failed, Code: timeline.UnknownCode}
	for name, c := range map[string]struct {
		added   []timeline.Event
		stored  timeline.Log
		want    []timeline.Event
		earlier int
	}{
		"nothing":             {nil, "", nil, 0},
		"at the final status": {[]timeline.Event{callback, lookup(90, timeline.Successful)}, "cs ls", nil, 0},
		"before it":           {[]timeline.Event{lookup(60, timeline.Pending)}, "l60000p", nil, 0},
		"no outcome":          {[]timeline.Event{lookup(60, timeline.NotRecorded)}, "l60000", nil, 0},
		"before the creation": {
			[]timeline.Event{lookup(-9, timeline.Pending)}, "l0p", []timeline.Event{lookup(0, timeline.Pending)}, 0,
		},
		"a code":             {[]timeline.Event{code}, "o0:NOT_ENOUGH_FUNDS", nil, 0},
		"a code of no table": {[]timeline.Event{foreign}, "c5000f:?", nil, 0},
		"the last three":     {repeated(5), "2l l3000p l4000p l5000p", repeated(5)[2:], 2},
		"another kind": {
			append(repeated(4), callback), "1l l2000p l3000p l4000p cs", append(repeated(4)[1:], callback), 1,
		},
	} {
		var log timeline.Log
		for _, e := range c.added {
			log = log.Add(times, e)
		}
		if c.want == nil {
			c.want = c.added
		}
		if log != c.stored {
			t.Errorf("%s: %q, want %q", name, log, c.stored)
		}
		if diff := cmp.Diff(c.want, log.Events(times)); diff != "" || log.Earlier(timeline.Lookup) != c.earlier {
			t.Errorf("%s: %d earlier (-want +got):\n%s", name, log.Earlier(timeline.Lookup), diff)
		}
	}
}

// repeated are pending lookups, one a second.
func repeated(count int) (events []timeline.Event) {
	for second := range count {
		events = append(events, lookup(second+1, timeline.Pending))
	}
	return events
}

// A lookup gets its outcome later, if the text still has it.
func TestComplete(t *testing.T) {
	times := timeline.Times{Created: created}
	log := timeline.Log("").Add(times, lookup(60, timeline.NotRecorded)).Add(times, lookup(180, timeline.NotRecorded))
	times.Final = at(181)
	log = log.Complete(times, lookup(60, timeline.NoResponse)).Complete(times, lookup(180, timeline.Successful))
	if want := timeline.Log("l60000t l180000s"); log != want {
		t.Errorf("%q, want %q", log, want)
	}
	for _, unknown := range []timeline.Event{lookup(60, timeline.Pending), lookup(7, timeline.Pending), {}} {
		if got := log.Complete(times, unknown); got != log {
			t.Errorf("the outcome of %+v: %q", unknown, got)
		}
	}
}

// However many reports there are, the text stays short, and keeps the words of a later version.
func TestLogIsBounded(t *testing.T) {
	const limit = 620
	times := timeline.Times{Created: created}
	log := timeline.Log("newer:1")
	kinds := []timeline.Kind{timeline.Lookup, timeline.ManualLookup, timeline.Callback, timeline.Receipt, timeline.Call}
	for i := range 5000 {
		for _, kind := range kinds {
			log = log.Add(times, timeline.Event{
				Kind: kind, At: at(i * 3600), Outcome: timeline.Failed, Code: strings.Repeat("C", 20),
			})
		}
	}
	if len(log) > limit || !strings.Contains(string(log), "newer:1") {
		t.Errorf("%d bytes, want at most %d: %s", len(log), limit, log)
	}
	for _, kind := range kinds {
		if got := log.Earlier(kind); got != 4997 {
			t.Errorf("%d earlier reports of %c", got, kind)
		}
	}
	long := timeline.Event{Kind: timeline.Call, At: created, Code: strings.Repeat("C", 41)}
	spaced := timeline.Event{Kind: timeline.Call, At: created, Code: "a b"}
	if got := timeline.Log("").Add(times, long).Add(times, spaced); got != "o0 o0" {
		t.Errorf("codes that no table has: %q", got)
	}
}

// FuzzEvents reads any stored text.
func FuzzEvents(f *testing.F) {
	for _, text := range []string{"", "cs ls", "2l l3000p", ":x", "l", "9", "l99999999999999999999p", "c5f:?", "lpp"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		times := timeline.Times{Created: created, Final: at(90)}
		log := timeline.Log(text)
		before := len(log.Events(times))
		log = log.Add(times, lookup(60, timeline.Pending))
		if after := log.Events(times); len(after) > before+1 || len(after) == 0 {
			t.Errorf("%q has %d events, then %d", text, before, len(after))
		}
	})
}
