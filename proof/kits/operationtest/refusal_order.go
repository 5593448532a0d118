package operationtest

import (
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/merchant"
)

// Violation is one way to make a request invalid, and the expected refusal.
type Violation struct {
	Name      string
	Mutate    func(*Fixture, *Event)
	Status    int
	MessageID string
	Variables []string
}

// Step is one step of the order in which requests are refused, with its violations.
type Step []Violation

// CheckRefusalOrder makes a valid request invalid at each step: by itself, together with each violation of the next
// step, and together with all later steps. The earliest step decides the response, and nothing is stored or sent
// (decision "order-of-refusals").
func CheckRefusalOrder(
	t *testing.T, newFixture func(testing.TB) *Fixture, loadEvent func(testing.TB) *Event, steps []Step,
) {
	t.Helper()
	for point, step := range steps {
		for _, violation := range step {
			t.Run(violation.Name, func(t *testing.T) { violation.checkRefused(t, newFixture(t), loadEvent(t)) })
			if point+1 == len(steps) {
				continue
			}
			for _, next := range steps[point+1] {
				t.Run(violation.Name+" before "+next.Name, func(t *testing.T) {
					violation.checkRefused(t, newFixture(t), loadEvent(t), next)
				})
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

// checkRefused applies several violations, the later ones first, and checks that the response reports this one.
func (v Violation) checkRefused(t *testing.T, w *Fixture, e *Event, later ...Violation) {
	t.Helper()
	for i := len(later) - 1; i >= 0; i-- {
		later[i].Mutate(w, e)
	}
	v.Mutate(w, e)
	w.Send(t, e).AssertError(t, v.Status, v.MessageID, v.Variables...)
	w.AssertNoSideEffects(t)
	w.assertCauseHasRule(t)
}

// assertCauseHasRule checks that the log line of a refusal as invalid or forbidden has the rule that was broken. The
// response has it in neither case.
func (f *Fixture) assertCauseHasRule(t testing.TB) {
	t.Helper()
	cause, _ := f.LastLine(t)["Cause"].(string)
	kind, rule, _ := strings.Cut(cause, ": ")
	if (strings.HasPrefix(kind, "invalid in ") || kind == "forbidden") && rule == "" {
		t.Errorf("the log line has the cause %q, want the rule that was broken", cause)
	}
}

// InvalidPart is a violation with the response 400 SVC0002 and the part.
func InvalidPart(name, part string, change func(*Event)) Violation {
	return Violation{name, func(_ *Fixture, e *Event) { change(e) }, 400, "SVC0002", []string{part}}
}

// NotAllowedPart is a violation with the response 400 SVC0003, the part and its valid values.
func NotAllowedPart(name, part, valid string, change func(*Event)) Violation {
	return Violation{name, func(_ *Fixture, e *Event) { change(e) }, 400, "SVC0003", []string{part, valid}}
}

// MissingPart are the violations in which a required part of the body is missing.
func MissingPart(part string) []Violation {
	return []Violation{
		InvalidPart("no "+part, part, func(e *Event) { e.RemoveBodyPart(part) }),
		InvalidPart("null "+part, part, func(e *Event) { e.SetBodyPart(part, nil) }),
	}
}

// InvalidText are the violations of a text in the body: another type, empty, with a control character, too long.
// maxLength is in characters; 0 is for a text of any length.
func InvalidText(part string, maxLength int) []Violation {
	violations := []Violation{
		InvalidPart("a list as "+part, part, func(e *Event) { e.SetBodyPart(part, []any{}) }),
		InvalidPart("an object as "+part, part, func(e *Event) { e.SetBodyPart(part, map[string]any{}) }),
		InvalidPart("true as "+part, part, func(e *Event) { e.SetBodyPart(part, true) }),
		InvalidPart("empty "+part, part, func(e *Event) { e.SetBodyPart(part, "") }),
		InvalidPart("a control character in "+part, part, func(e *Event) { e.SetBodyPart(part, "a\x01b") }),
	}
	if maxLength > 0 {
		tooLong := func(e *Event) { e.SetBodyPart(part, LongText(maxLength+1)) }
		violations = append(violations, InvalidPart("too long "+part, part, tooLong))
	}
	return violations
}

// LongText is a text of a number of characters that take two bytes each.
func LongText(characters int) string {
	return strings.Repeat("é", characters)
}

// RequiredHeader are the violations of a required header.
func RequiredHeader(name string) Step {
	return append(OptionalHeader(name),
		InvalidPart("no "+name, name, func(e *Event) { e.SetHeader(name) }),
		InvalidPart("empty "+name, name, func(e *Event) { e.SetHeader(name, " ") }))
}

// OptionalHeader are the violations of a header that may be absent.
func OptionalHeader(name string) Step {
	return Step{
		InvalidPart("two values of "+name, name, func(e *Event) { e.SetHeader(name, "a", "b") }),
		InvalidPart("too long "+name, name, func(e *Event) { e.SetHeader(name, strings.Repeat("x", 2049)) }),
		InvalidPart("other script in "+name, name, func(e *Event) { e.SetHeader(name, "é") }),
	}
}

// RequiredText are the violations of a required text in the body.
func RequiredText(part string, maxLength int, more ...Violation) Step {
	return slices.Concat(more, MissingPart(part), InvalidText(part, maxLength))
}

// NotEntitled is the last step: the merchant's profile does not allow the request.
func NotEntitled(change func(*merchant.Profile)) Step {
	return Step{{
		Name: "403 not entitled", Status: 403, MessageID: "900908",
		Mutate: func(w *Fixture, _ *Event) { w.UpdateDemo(change) },
	}}
}

// CheckEntitlement changes the merchant's profile and checks that the request is refused with 403 and has no side
// effects (decision "authentication").
func CheckEntitlement(
	t *testing.T, w *Fixture, name string, e *Event, change func(*merchant.Profile),
) {
	t.Helper()
	t.Run("decision authentication: "+name, func(t *testing.T) {
		w.UpdateDemo(change)
		w.Send(t, e).AssertError(t, 403, "900908")
		w.AssertNoSideEffects(t)
		w.assertCauseHasRule(t)
	})
}

// CommonSteps are the steps that all operations share, from the size of the body to its JSON.
func CommonSteps() []Step {
	header := func(name string, values ...string) func(*Fixture, *Event) {
		return func(_ *Fixture, e *Event) { e.SetHeader(name, values...) }
	}
	raw := func(body string) func(*Fixture, *Event) { return func(_ *Fixture, e *Event) { e.SetRawBody(body) } }
	tooDeep := `{"a":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`
	media, body := []string{"Content-Type"}, []string{"body"}
	return []Step{
		{{"413 body over 64 KiB", raw(strings.Repeat(" ", 64<<10+1)), 413, "SVC0002", body}},
		{
			{"401 no Authorization", header("Authorization"), 401, "900902", nil},
			{"401 unknown token", header("Authorization", "Bearer unknown"), 401, "900901", nil},
			{"401 two tokens", header("Authorization", "Bearer unknown", "Bearer "+DemoToken), 401, "900901", nil},
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
			{"400 too deep", raw(tooDeep), 400, "SVC0002", body},
			{"400 a key twice", raw(`{"a":1,"a":1}`), 400, "SVC0002", []string{"a"}},
			{"400 a key twice within", raw(`{"a":{"b":1,"\u0062":2}}`), 400, "SVC0002", []string{"a.b"}},
		},
	}
}
