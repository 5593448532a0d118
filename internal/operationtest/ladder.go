package operationtest

import "testing"

// Way is one way to break a request, and how it is refused then.
type Way struct {
	Name      string
	Break     func(*World, *Event)
	Status    int
	ID        string
	Variables []string
}

// Rung is one step of the order in which requests are refused, with the ways to stumble over it.
type Rung []Way

// Climb breaks a good request at each rung: alone, together with each way of the next rung, and together with all
// later rungs. The lower rung is always the one that is told, and nothing is ever stored or sent
// (decision "order-of-refusals").
func Climb(t *testing.T, world func(testing.TB) *World, load func(testing.TB) *Event, rungs []Rung) {
	t.Helper()
	for at, rung := range rungs {
		for _, way := range rung {
			t.Run(way.Name, func(t *testing.T) { way.refused(t, world(t), load(t)) })
			if at+1 == len(rungs) {
				continue
			}
			for _, next := range rungs[at+1] {
				t.Run(way.Name+" before "+next.Name, func(t *testing.T) { way.refused(t, world(t), load(t), next) })
			}
			t.Run(way.Name+" before all later", func(t *testing.T) {
				var later []Way
				for _, rung := range rungs[at+1:] {
					later = append(later, rung[0])
				}
				way.refused(t, world(t), load(t), later...)
			})
		}
	}
}

// refused breaks a request in several ways, the later ones first, and checks that this way is told.
func (way Way) refused(t *testing.T, w *World, e *Event, later ...Way) {
	t.Helper()
	for i := len(later) - 1; i >= 0; i-- {
		later[i].Break(w, e)
	}
	way.Break(w, e)
	w.Do(t, e).Fails(t, way.Status, way.ID, way.Variables...)
	w.Untouched(t)
}

// Invalid is a way that answers 400 SVC0002 with the part.
func Invalid(name, part string, change func(*Event)) Way {
	return Way{name, func(_ *World, e *Event) { change(e) }, 400, "SVC0002", []string{part}}
}

// NotAllowed is a way that answers 400 SVC0003 with the part and its valid values.
func NotAllowed(name, part, valid string, change func(*Event)) Way {
	return Way{name, func(_ *World, e *Event) { change(e) }, 400, "SVC0003", []string{part, valid}}
}

// Lost are the ways in which a required part of the body is not there.
func Lost(part string) []Way {
	return []Way{
		Invalid("no "+part, part, func(e *Event) { e.Remove(part) }),
		Invalid("null "+part, part, func(e *Event) { e.Set(part, nil) }),
	}
}

// Wrong are the ways in which a text of the body is not one: another type, empty, with a control character, too long.
// longest is in characters; 0 for a text of any length.
func Wrong(part string, longest int) []Way {
	ways := []Way{
		Invalid("a list as "+part, part, func(e *Event) { e.Set(part, []any{}) }),
		Invalid("an object as "+part, part, func(e *Event) { e.Set(part, map[string]any{}) }),
		Invalid("true as "+part, part, func(e *Event) { e.Set(part, true) }),
		Invalid("empty "+part, part, func(e *Event) { e.Set(part, "") }),
		Invalid("a control character in "+part, part, func(e *Event) { e.Set(part, "a\x01b") }),
	}
	if longest > 0 {
		ways = append(ways, Invalid("too long "+part, part, func(e *Event) { e.Set(part, Long(longest+1)) }))
	}
	return ways
}

// Long is a text of a number of characters that take two bytes each.
func Long(characters int) string {
	text := make([]rune, characters)
	for i := range text {
		text[i] = 'é'
	}
	return string(text)
}

// Door are the rungs that are the same in every operation, from the size of the body to its JSON.
func Door() []Rung {
	header := func(name string, values ...string) func(*World, *Event) {
		return func(_ *World, e *Event) { e.Headers(name, values...) }
	}
	raw := func(body string) func(*World, *Event) { return func(_ *World, e *Event) { e.Raw(body) } }
	tooLarge := make([]byte, 64<<10+1)
	for i := range tooLarge {
		tooLarge[i] = ' '
	}
	media := []string{"Content-Type"}
	body := []string{"body"}
	return []Rung{
		{{"413 body over 64 KiB", raw(string(tooLarge)), 413, "SVC0002", body}},
		{
			{"401 no Authorization", header("Authorization"), 401, "900902", nil},
			{"401 unknown token", header("Authorization", "Bearer nobody"), 401, "900901", nil},
			{"401 two tokens", header("Authorization", "Bearer nobody", "Bearer "+DemoToken), 401, "900901", nil},
		},
		{
			{"415 no Content-Type", header("Content-Type"), 415, "SVC0002", media},
			{"415 a form", header("Content-Type", "application/x-www-form-urlencoded"), 415, "SVC0002", media},
			{"415 two media types", header("Content-Type", "text/plain", "application/json"), 415, "SVC0002", media},
		},
		{
			{"400 not JSON", raw("{"), 400, "SVC0002", body},
			{"400 empty body", raw(""), 400, "SVC0002", body},
			{"400 a list", raw("[]"), 400, "SVC0002", body},
			{"400 null", raw("null"), 400, "SVC0002", body},
			{"400 two values", raw("{}{}"), 400, "SVC0002", body},
			{"400 not UTF-8 in an escape", raw(`{"a":"\ud800"}`), 400, "SVC0002", body},
			{"400 too deep", raw(`{"a":` + nested(20) + `}`), 400, "SVC0002", body},
			{"400 a key twice", raw(`{"a":1,"a":1}`), 400, "SVC0002", []string{"a"}},
			{"400 a key twice within", raw(`{"a":{"b":1,"\u0062":2}}`), 400, "SVC0002", []string{"a.b"}},
		},
	}
}

func nested(depth int) string {
	if depth == 0 {
		return "1"
	}
	return "[" + nested(depth-1) + "]"
}
