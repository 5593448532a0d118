package sms_test

import (
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/merchant"
)

// TestOrderOfRefusals makes an SMS invalid at each step of decision "order-of-refusals", and in each header and field
// of the specification's tables.
func TestOrderOfRefusals(t *testing.T) {
	route := operationtest.Step{
		notFound("404 another method", func(e *operationtest.Event) { e.SetField("httpMethod", "GET") }),
		notFound("404 a broken path", func(e *operationtest.Event) { e.SetPathParameter("senderAddress", "tel%3") }),
	}
	notEntitled := operationtest.NotEntitled(func(p *merchant.Profile) { p.Operations = []string{"charge", "pay"} })
	operationtest.CheckRefusalOrder(t, newFixture, newEvent, slices.Concat([]operationtest.Step{route},
		operationtest.CommonSteps(), headerSteps(), bodySteps(), []operationtest.Step{notEntitled}))
}

func headerSteps() []operationtest.Step {
	oneOf := func(name, valid string) operationtest.Step {
		another := operationtest.NotAllowedPart("another "+name, name, valid,
			func(e *operationtest.Event) { e.SetHeader(name, "another") })
		return append(operationtest.RequiredHeader(name), another)
	}
	unavailable := addressViolation("unavailable country", 400, "tel:+2250707",
		func(e *operationtest.Event) { e.SetHeader("X-Operator-MCO", "OXX") })
	return []operationtest.Step{
		oneOf("X-OAPI-Application-Id", operationtest.ApplicationID),
		oneOf("X-OAPI-Contact-Id", operationtest.ContactID),
		oneOf("X-OAPI-Resource-Type", "SMS_OSM"),
		operationtest.RequiredHeader("gw-alias"), operationtest.RequiredHeader("gw-token"),
		append(operationtest.RequiredHeader("X-Operator-MCO"), unavailable),
		operationtest.OptionalHeader("X-Operator-ISE2"),
	}
}

// notFound is a violation with the response 404.
func notFound(name string, change func(*operationtest.Event)) operationtest.Violation {
	return operationtest.Violation{
		Name: name, Mutate: func(_ *operationtest.Fixture, e *operationtest.Event) { change(e) },
		Status: 404, MessageID: "900906",
	}
}

// addressViolation is a violation with the response SVC0004 and the address.
func addressViolation(
	name string, status int, reportedAddress string, change func(*operationtest.Event),
) operationtest.Violation {
	return operationtest.Violation{
		Name: name, Mutate: func(_ *operationtest.Fixture, e *operationtest.Event) { change(e) },
		Status: status, MessageID: "SVC0004", Variables: []string{reportedAddress},
	}
}

// bodySteps are the steps of the body in the order of the specification's table (specification, SMS request).
func bodySteps() []operationtest.Step {
	set := func(part string, value any) func(*operationtest.Event) {
		return func(e *operationtest.Event) { e.SetBodyPart(part, value) }
	}
	tooLong := operationtest.Violation{
		Name: "161 characters", Status: 400, MessageID: "SVC0280", Variables: []string{"160"},
		Mutate: func(_ *operationtest.Fixture, e *operationtest.Event) {
			e.SetBodyPart(text, strings.Repeat("x", 161))
		},
	}
	otherName := operationtest.NotAllowedPart(
		"not the merchant's name", senderName, "DEMO, DEMO2", set(senderName, "UNKNOWN"))
	plainHTTP := operationtest.InvalidPart("http", notifyURL, set(notifyURL, "http://shop.example.com/"))
	const withoutURLName = "callbackData without notifyURL"
	withoutURL := operationtest.InvalidPart(withoutURLName, callbackData, func(e *operationtest.Event) {
		if strings.Contains(e.Body(), "https://shop.example.com/receipts") {
			e.RemoveBodyPart(notifyURL)
		}
	})
	return []operationtest.Step{
		addressStep(), senderStep(),
		operationtest.RequiredText(text, 0, tooLong),
		append(operationtest.RequiredText(senderName, 11), otherName),
		operationtest.RequiredText(correlator, 255),
		append(operationtest.InvalidText(notifyURL, 2048), plainHTTP),
		append(operationtest.InvalidText(callbackData, 1024), withoutURL),
	}
}

func addressStep() operationtest.Step {
	type e = operationtest.Event
	const recipient = "acr:X-Operator-ISE2"
	set := func(value any) func(*e) { return func(e *e) { e.SetBodyPart(address, value) } }
	return slices.Concat(operationtest.MissingPart(address), operationtest.Step{
		addressViolation("another recipient", 400, "tel:+2250709998877", set([]any{"tel:+2250709998877"})),
		addressViolation("the recipient twice", 400, recipient, set([]any{recipient, recipient})),
		addressViolation("a second recipient", 400, "x", set([]any{"acr:X-Operator-ISE2", "x"})),
		operationtest.InvalidPart("a text as address", address, set("acr:X-Operator-ISE2")),
		operationtest.InvalidPart("no recipients", address, set([]any{})),
		operationtest.InvalidPart("a number as recipient", address, set([]any{7})),
	})
}

// senderStep are the violations of senderAddress (decision "sms-sender").
func senderStep() operationtest.Step {
	type e = operationtest.Event
	both := func(path, body string) func(*e) {
		return func(e *e) { e.SetPathParameter("senderAddress", path).SetBodyPart(sender, body) }
	}
	long := "tel:+225" + strings.Repeat("1", 30)
	return slices.Concat(operationtest.MissingPart(sender), operationtest.Step{
		addressViolation("path of another sender", 404, shortCode, both("tel%3A%2B2250708", shortCode)),
		addressViolation("body of another country than the path", 404, "tel:+2430707",
			both("tel%3A%2B2250707", "tel:+2430707")),
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
		"not the country": func(p *merchant.Profile) { p.Countries = []string{"SN"} },
		"no operator":     func(p *merchant.Profile) { p.Operators = nil },
	} {
		operationtest.CheckEntitlement(t, newFixture(t), name, newEvent(t), change)
	}
}

func TestMalformedBodies(t *testing.T) { operationtest.CheckMalformedBodies(t, newFixture, newEvent) }
