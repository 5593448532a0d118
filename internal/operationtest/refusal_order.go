package operationtest

import "testing"

// Violation is one way to break a request, and how it is refused then.
type Violation struct {
	Name      string
	Mutate    func(*Fixture, *Event)
	Status    int
	MessageID string
	Variables []string
}

// Step is one step of the order in which requests are refused, with the ways to stumble over it.
type Step []Violation

// CheckRefusalOrder breaks a good request at each rung: alone, together with each way of the next rung, and together with all
// later rungs. The lower rung is always the one that is told, and nothing is ever stored or sent
// (decision "order-of-refusals").
func CheckRefusalOrder(t *testing.T, newFixture func(testing.TB) *Fixture, loadEvent func(testing.TB) *Event, steps []Step) {
	t.Helper()
	for point, step := range steps {
		for _, violation := range step {
			t.Run(violation.Name, func(t *testing.T) { violation.checkRefused(t, newFixture(t), loadEvent(t)) })
			if point+1 == len(steps) {
				continue
			}
			for _, next := range steps[point+1] {
				t.Run(violation.Name+" before "+next.Name, func(t *testing.T) { violation.checkRefused(t, newFixture(t), loadEvent(t), next) })
			}
			t.Run(violation.Name+" before all later", func(t *testing.T) {
				var later []Violation
				for _, step := range steps[point+1:] {
					later = append(later, step[0])
				}
				violation.checkRefused(t, newFixture(t), loadEvent(t), later...)
			})
		}
	}
}

// checkRefused breaks a request in several ways, the later ones first, and checks that this way is told.
func (violation Violation) checkRefused(t *testing.T, w *Fixture, e *Event, later ...Violation) {
	t.Helper()
	for i := len(later) - 1; i >= 0; i-- {
		later[i].Mutate(w, e)
	}
	violation.Mutate(w, e)
	w.Send(t, e).AssertError(t, violation.Status, violation.MessageID, violation.Variables...)
	w.AssertNoSideEffects(t)
}

// InvalidPart is a way that answers 400 SVC0002 with the part.
func InvalidPart(name, part string, change func(*Event)) Violation {
	return Violation{name, func(_ *Fixture, e *Event) { change(e) }, 400, "SVC0002", []string{part}}
}

// NotAllowedPart is a way that answers 400 SVC0003 with the part and its valid values.
func NotAllowedPart(name, part, valid string, change func(*Event)) Violation {
	return Violation{name, func(_ *Fixture, e *Event) { change(e) }, 400, "SVC0003", []string{part, valid}}
}

// MissingPart are the ways in which a required part of the body is not there.
func MissingPart(part string) []Violation {
	return []Violation{
		InvalidPart("no "+part, part, func(e *Event) { e.RemoveBodyPart(part) }),
		InvalidPart("null "+part, part, func(e *Event) { e.SetBodyPart(part, nil) }),
	}
}

// InvalidText are the ways in which a text of the body is not one: another type, empty, with a control character, too long.
// longest is in characters; 0 for a text of any length.
func InvalidText(part string, maxLength int) []Violation {
	violations := []Violation{
		InvalidPart("a list as "+part, part, func(e *Event) { e.SetBodyPart(part, []any{}) }),
		InvalidPart("an object as "+part, part, func(e *Event) { e.SetBodyPart(part, map[string]any{}) }),
		InvalidPart("true as "+part, part, func(e *Event) { e.SetBodyPart(part, true) }),
		InvalidPart("empty "+part, part, func(e *Event) { e.SetBodyPart(part, "") }),
		InvalidPart("a control character in "+part, part, func(e *Event) { e.SetBodyPart(part, "a\x01b") }),
	}
	if maxLength > 0 {
		violations = append(violations, InvalidPart("too long "+part, part, func(e *Event) { e.SetBodyPart(part, LongText(maxLength+1)) }))
	}
	return violations
}

// LongText is a text of a number of characters that take two bytes each.
func LongText(characters int) string {
	text := make([]rune, characters)
	for i := range text {
		text[i] = 'é'
	}
	return string(text)
}

// CommonSteps are the rungs that are the same in every operation, from the size of the body to its JSON.
func CommonSteps() []Step {
	header := func(name string, values ...string) func(*Fixture, *Event) {
		return func(_ *Fixture, e *Event) { e.SetHeaderValues(name, values...) }
	}
	raw := func(body string) func(*Fixture, *Event) { return func(_ *Fixture, e *Event) { e.SetRawBody(body) } }
	tooLarge := make([]byte, 64<<10+1)
	for i := range tooLarge {
		tooLarge[i] = ' '
	}
	media := []string{"Content-Type"}
	body := []string{"body"}
	return []Step{
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
			{"400 too deep", raw(`{"a":` + nestedArrays(20) + `}`), 400, "SVC0002", body},
			{"400 a key twice", raw(`{"a":1,"a":1}`), 400, "SVC0002", []string{"a"}},
			{"400 a key twice within", raw(`{"a":{"b":1,"\u0062":2}}`), 400, "SVC0002", []string{"a.b"}},
		},
	}
}

func nestedArrays(depth int) string {
	if depth == 0 {
		return "1"
	}
	return "[" + nestedArrays(depth-1) + "]"
}
