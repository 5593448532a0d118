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
	rungs := []operationtest.Rung{{
		{Name: "404 another method", Status: 404, ID: "900906", Break: func(_ *operationtest.World, e *operationtest.Event) { e.Field("httpMethod", "GET") }},
		{Name: "404 a broken path", Status: 404, ID: "900906", Break: func(_ *operationtest.World, e *operationtest.Event) { e.Param("senderAddress", "tel%3") }},
	}}
	rungs = append(append(append(rungs, operationtest.Door()...), headers()...), fields()...)
	rungs = append(rungs, operationtest.Rung{{
		Name: "403 not entitled", Status: 403, ID: "900908",
		Break: func(w *operationtest.World, _ *operationtest.Event) {
			w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.Operations = []string{"charge", "pay"} })
		},
	}})
	operationtest.Climb(t, shop, event, rungs)
}

func headers() []operationtest.Rung {
	type e = operationtest.Event
	repeated := func(name string) []operationtest.Way {
		return []operationtest.Way{
			operationtest.Invalid("two values of "+name, name, func(e *e) { e.Headers(name, "a", "b") }),
			operationtest.Invalid("too long "+name, name, func(e *e) { e.Header(name, strings.Repeat("x", 2049)) }),
			operationtest.Invalid("other script in "+name, name, func(e *e) { e.Header(name, "é") }),
		}
	}
	required := func(name string, more ...operationtest.Way) operationtest.Rung {
		lost := operationtest.Invalid("no "+name, name, func(e *e) { e.Headers(name) })
		return slices.Concat(operationtest.Rung{lost}, more, repeated(name))
	}
	one := func(name, valid string) operationtest.Rung {
		return required(name, operationtest.NotAllowed("another "+name, name, valid, func(e *e) { e.Header(name, "another") }))
	}
	unavailable := addressWay("unavailable country", 400, "tel:+2250707", func(e *e) { e.Header("X-Operator-MCO", "OXX") })
	return []operationtest.Rung{
		one("X-OAPI-Application-Id", operationtest.ApplicationID), one("X-OAPI-Contact-Id", operationtest.ContactID), one("X-OAPI-Resource-Type", "SMS_OSM"),
		required("gw-alias"), required("gw-token"), required("X-Operator-MCO", unavailable), repeated("X-Operator-ISE2"),
	}
}

// addressWay is a way that answers SVC0004 with the address.
func addressWay(name string, status int, told string, change func(*operationtest.Event)) operationtest.Way {
	return operationtest.Way{
		Name: name, Break: func(_ *operationtest.World, e *operationtest.Event) { change(e) },
		Status: status, ID: "SVC0004", Variables: []string{told},
	}
}

// fields are the rungs of the body in the order of the specification's table (specification, SMS request).
func fields() []operationtest.Rung {
	type e = operationtest.Event
	plain := func(part string, limit int, more ...operationtest.Way) operationtest.Rung {
		return slices.Concat(operationtest.Lost(part), operationtest.Wrong(part, limit), more)
	}
	tooLong := operationtest.Way{
		Name: "161 characters", Status: 400, ID: "SVC0280", Variables: []string{"160"},
		Break: func(_ *operationtest.World, e *e) { e.Set(text, strings.Repeat("x", 161)) },
	}
	message := slices.Concat(operationtest.Rung{tooLong}, operationtest.Lost(text), operationtest.Wrong(text, 0))
	return []operationtest.Rung{
		addresses(), senders(), message,
		plain(senderName, 11, operationtest.NotAllowed("not the merchant's name", senderName, "DEMO, DEMO2", func(e *e) { e.Set(senderName, "NOBODY") })),
		plain(correlator, 255),
		append(operationtest.Wrong(notifyURL, 2048), operationtest.Invalid("http", notifyURL, func(e *e) { e.Set(notifyURL, "http://shop.example.com/") })),
		append(operationtest.Wrong(callbackData, 1024), operationtest.Invalid("callbackData alone", callbackData, func(e *e) {
			if strings.Contains(e.Body(), "https://shop.example.com/receipts") {
				e.Remove(notifyURL)
			}
		})),
	}
}

func addresses() operationtest.Rung {
	type e = operationtest.Event
	set := func(value any) func(*e) { return func(e *e) { e.Set(address, value) } }
	return slices.Concat(operationtest.Lost(address), operationtest.Rung{
		addressWay("another recipient", 400, "tel:+2250709998877", set([]any{"tel:+2250709998877"})),
		addressWay("the recipient twice", 400, "acr:X-Operator-ISE2", set([]any{"acr:X-Operator-ISE2", "acr:X-Operator-ISE2"})),
		addressWay("a second recipient", 400, "x", set([]any{"acr:X-Operator-ISE2", "x"})),
		operationtest.Invalid("a text as address", address, set("acr:X-Operator-ISE2")),
		operationtest.Invalid("no recipients", address, set([]any{})),
		operationtest.Invalid("a number as recipient", address, set([]any{7})),
	})
}

// senders are the ways to break senderAddress (decision "sms-sender").
func senders() operationtest.Rung {
	type e = operationtest.Event
	both := func(path, body string) func(*e) {
		return func(e *e) { e.Param("senderAddress", path).Set(sender, body) }
	}
	long := "tel:+225" + strings.Repeat("1", 30)
	return slices.Concat(operationtest.Lost(sender), operationtest.Rung{
		addressWay("path of another sender", 404, shortCode, both("tel%3A%2B2250708", shortCode)),
		addressWay("body of another country than the path", 404, "tel:+2430707", both("tel%3A%2B2250707", "tel:+2430707")),
		addressWay("body without tel:", 404, "+2250707", both("tel%3A%2B2250707", "+2250707")),
		addressWay("body too long", 404, long, both("tel%3A%2B2250707", long)),
		addressWay("malformed path", 404, "+2250707", both("%2B2250707", "+2250707")),
		addressWay("path encoded twice", 404, "tel%3A%2B2250707", both("tel%253A%252B2250707", shortCode)),
		addressWay("path too long", 404, long, both(long, long)),
		addressWay("a prefix without a number", 400, "tel:+225", both("tel%3A%2B225", "tel:+225")),
		addressWay("another country's prefix", 400, "tel:+2430707", both("tel%3A%2B2430707", "tel:+2430707")),
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
			w := shop(t)
			w.Merchants.Change(operationtest.DemoToken, change)
			w.Do(t, event(t)).Fails(t, 403, "900908")
			w.Untouched(t)
		})
	}
}
