package sms_test

import (
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/merchant"
)

// TestOrderOfRefusals breaks an SMS at each step of decision "order-of-refusals", and in each header and field of the
// specification's tables.
func TestOrderOfRefusals(t *testing.T) {
	steps := []operationtest.Step{{
		{Name: "404 another method", Status: 404, MessageID: "900906", Mutate: func(_ *operationtest.Fixture, e *operationtest.Event) { e.SetField("httpMethod", "GET") }},
		{Name: "404 a broken path", Status: 404, MessageID: "900906", Mutate: func(_ *operationtest.Fixture, e *operationtest.Event) { e.SetPathParameter("senderAddress", "tel%3") }},
	}}
	steps = append(append(append(steps, operationtest.CommonSteps()...), headerSteps()...), bodySteps()...)
	steps = append(steps, operationtest.Step{{
		Name: "403 not entitled", Status: 403, MessageID: "900908",
		Mutate: func(w *operationtest.Fixture, _ *operationtest.Event) {
			w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) { p.Operations = []string{"charge", "pay"} })
		},
	}})
	operationtest.CheckRefusalOrder(t, newFixture, newEvent, steps)
}

func headerSteps() []operationtest.Step {
	type e = operationtest.Event
	repeated := func(name string) []operationtest.Violation {
		return []operationtest.Violation{
			operationtest.InvalidPart("two values of "+name, name, func(e *e) { e.SetHeaderValues(name, "a", "b") }),
			operationtest.InvalidPart("too long "+name, name, func(e *e) { e.SetHeader(name, strings.Repeat("x", 2049)) }),
			operationtest.InvalidPart("other script in "+name, name, func(e *e) { e.SetHeader(name, "é") }),
		}
	}
	required := func(name string, more ...operationtest.Violation) operationtest.Step {
		lostResponse := operationtest.InvalidPart("no "+name, name, func(e *e) { e.SetHeaderValues(name) })
		return slices.Concat(operationtest.Step{lostResponse}, more, repeated(name))
	}
	one := func(name, valid string) operationtest.Step {
		return required(name, operationtest.NotAllowedPart("another "+name, name, valid, func(e *e) { e.SetHeader(name, "another") }))
	}
	unavailable := addressViolation("unavailable country", 400, "tel:+2250707", func(e *e) { e.SetHeader("X-Operator-MCO", "OXX") })
	return []operationtest.Step{
		one("X-OAPI-Application-Id", operationtest.ApplicationID), one("X-OAPI-Contact-Id", operationtest.ContactID), one("X-OAPI-Resource-Type", "SMS_OSM"),
		required("gw-alias"), required("gw-token"), required("X-Operator-MCO", unavailable), repeated("X-Operator-ISE2"),
	}
}

// addressViolation is a way that answers SVC0004 with the address.
func addressViolation(name string, status int, reportedAddress string, change func(*operationtest.Event)) operationtest.Violation {
	return operationtest.Violation{
		Name: name, Mutate: func(_ *operationtest.Fixture, e *operationtest.Event) { change(e) },
		Status: status, MessageID: "SVC0004", Variables: []string{reportedAddress},
	}
}

// bodySteps are the rungs of the body in the order of the specification's table (specification, SMS request).
func bodySteps() []operationtest.Step {
	type e = operationtest.Event
	plain := func(part string, limit int, more ...operationtest.Violation) operationtest.Step {
		return slices.Concat(operationtest.MissingPart(part), operationtest.InvalidText(part, limit), more)
	}
	tooLong := operationtest.Violation{
		Name: "161 characters", Status: 400, MessageID: "SVC0280", Variables: []string{"160"},
		Mutate: func(_ *operationtest.Fixture, e *e) { e.SetBodyPart(text, strings.Repeat("x", 161)) },
	}
	params := slices.Concat(operationtest.Step{tooLong}, operationtest.MissingPart(text), operationtest.InvalidText(text, 0))
	return []operationtest.Step{
		addressStep(), senderStep(), params,
		plain(senderName, 11, operationtest.NotAllowedPart("not the merchant's name", senderName, "DEMO, DEMO2", func(e *e) { e.SetBodyPart(senderName, "NOBODY") })),
		plain(correlator, 255),
		append(operationtest.InvalidText(notifyURL, 2048), operationtest.InvalidPart("http", notifyURL, func(e *e) { e.SetBodyPart(notifyURL, "http://shop.example.com/") })),
		append(operationtest.InvalidText(callbackData, 1024), operationtest.InvalidPart("callbackData alone", callbackData, func(e *e) {
			if strings.Contains(e.Body(), "https://shop.example.com/receipts") {
				e.RemoveBodyPart(notifyURL)
			}
		})),
	}
}

func addressStep() operationtest.Step {
	type e = operationtest.Event
	set := func(value any) func(*e) { return func(e *e) { e.SetBodyPart(address, value) } }
	return slices.Concat(operationtest.MissingPart(address), operationtest.Step{
		addressViolation("another recipient", 400, "tel:+2250709998877", set([]any{"tel:+2250709998877"})),
		addressViolation("the recipient twice", 400, "acr:X-Operator-ISE2", set([]any{"acr:X-Operator-ISE2", "acr:X-Operator-ISE2"})),
		addressViolation("a second recipient", 400, "x", set([]any{"acr:X-Operator-ISE2", "x"})),
		operationtest.InvalidPart("a text as address", address, set("acr:X-Operator-ISE2")),
		operationtest.InvalidPart("no recipients", address, set([]any{})),
		operationtest.InvalidPart("a number as recipient", address, set([]any{7})),
	})
}

// senderStep are the ways to break senderAddress (decision "sms-sender").
func senderStep() operationtest.Step {
	type e = operationtest.Event
	both := func(path, body string) func(*e) {
		return func(e *e) { e.SetPathParameter("senderAddress", path).SetBodyPart(sender, body) }
	}
	long := "tel:+225" + strings.Repeat("1", 30)
	return slices.Concat(operationtest.MissingPart(sender), operationtest.Step{
		addressViolation("path of another sender", 404, shortCode, both("tel%3A%2B2250708", shortCode)),
		addressViolation("body of another country than the path", 404, "tel:+2430707", both("tel%3A%2B2250707", "tel:+2430707")),
		addressViolation("body without tel:", 404, "+2250707", both("tel%3A%2B2250707", "+2250707")),
		addressViolation("body too long", 404, long, both("tel%3A%2B2250707", long)),
		addressViolation("malformed path", 404, "+2250707", both("%2B2250707", "+2250707")),
		addressViolation("path encoded twice", 404, "tel%3A%2B2250707", both("tel%253A%252B2250707", shortCode)),
		addressViolation("path too long", 404, long, both(long, long)),
		addressViolation("a prefix without a number", 400, "tel:+225", both("tel%3A%2B225", "tel:+225")),
		addressViolation("another country's prefix", 400, "tel:+2430707", both("tel%3A%2B2430707", "tel:+2430707")),
	})
}

// decision "authentication".
func TestEntitlement(t *testing.T) {
	for name, change := range map[string]func(*merchant.Profile){
		"not the operation": func(p *merchant.Profile) { p.Operations = []string{"charge"} },
		"not the country":   func(p *merchant.Profile) { p.Countries = []string{"SN"} },
		"no operator":       func(p *merchant.Profile) { p.Operators = nil },
	} {
		t.Run("decision authentication: "+name, func(t *testing.T) {
			w := newFixture(t)
			w.Merchants.UpdateProfile(operationtest.DemoToken, change)
			w.Send(t, newEvent(t)).AssertError(t, 403, "900908")
			w.AssertNoSideEffects(t)
		})
	}
}
