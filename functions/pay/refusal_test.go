package pay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

var (
	operators = strings.Join(operator.Names(), ", ")
	countries = strings.Join(market.Alpha2s(), ", ")
	channels  = "web, tpe, ussd"
)

// TestOrderOfRefusals breaks a payment at each step of decision "order-of-refusals", and in each header and field of the
// specification's tables.
func TestOrderOfRefusals(t *testing.T) {
	rungs := []operationtest.Rung{{{
		Name: "404 another method", Status: 404, ID: "900906",
		Break: func(_ *operationtest.World, e *operationtest.Event) { e.Field("httpMethod", "PUT") },
	}}}
	rungs = append(append(append(rungs, operationtest.Door()...), headers()...), fields()...)
	rungs = append(rungs, operationtest.Rung{{
		Name: "403 not entitled", Status: 403, ID: "900908",
		Break: func(w *operationtest.World, _ *operationtest.Event) {
			w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.Operators = []string{"mtn"} })
		},
	}})
	operationtest.Climb(t, shop, ussd, rungs)
}

func headers() []operationtest.Rung {
	type e = operationtest.Event
	lost := func(name string) operationtest.Rung {
		return operationtest.Rung{
			operationtest.Invalid("no "+name, name, func(e *e) { e.Headers(name) }),
			operationtest.Invalid("two values of "+name, name, func(e *e) { e.Headers(name, "a", "b") }),
			operationtest.Invalid("other script in "+name, name, func(e *e) { e.Header(name, "é") }),
		}
	}
	one := func(name, valid string) operationtest.Rung {
		wrong := operationtest.NotAllowed("unknown "+name, name, valid, func(e *e) { e.Header(name, "zz") })
		return append(operationtest.Rung{wrong}, lost(name)...)
	}
	lang := append(lost("lang"),
		operationtest.Invalid("three letters of lang", "lang", func(e *e) { e.Header("lang", "fra") }),
		operationtest.Invalid("digits in lang", "lang", func(e *e) { e.Header("lang", "f1") }))
	return []operationtest.Rung{one("mno-name", operators), one("country-code", countries), one("channel", channels), lang}
}

// fields are the rungs of the body in the order of the specification's table (specification, Mobile money payment request).
func fields() []operationtest.Rung {
	type e = operationtest.Event
	set := func(part string, value any) operationtest.Way {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return operationtest.Invalid(part+" "+string(text), part, func(e *e) { e.Set(part, value) })
	}
	text := func(part string, limit int, more ...operationtest.Way) operationtest.Rung {
		return slices.Concat(more, operationtest.Lost(part), operationtest.Wrong(part, limit))
	}
	link := func(part string) operationtest.Rung {
		return text(part, 2048, set(part, "http://shop.example.com/x"), set(part, "shop.example.com"), set(part, "https://10.0.0.1/x"),
			set(part, "https://localhost/x"), set(part, "javascript:alert(1)"))
	}
	currency := operationtest.NotAllowed("another currency", "currency", "XOF", func(e *e) { e.Set("currency", "EURO") })
	otp := slices.DeleteFunc(operationtest.Wrong("otp_code", 32), func(way operationtest.Way) bool {
		return way.Name == "empty otp_code" // it counts as absent
	})
	return []operationtest.Rung{
		text("currency", 0, currency),
		text("order_id", 30, set("order_id", "DemoShop"), set("order_id", "DemoShop_"), set("order_id", "_1"), set("order_id", "DemoShop_1a"),
			set("order_id", "Demo Shop_1"), set("order_id", "DemoShop_1_2"), set("order_id", "DemoShop-1"), set("order_id", "DemoShop_"+strings.Repeat("1", 22))),
		append(operationtest.Rung(operationtest.Lost("amount")), set("amount", "five"), set("amount", true)),
		link("return_url"),
		link("cancel_url"),
		append(operationtest.Wrong("notif_url", 2048), set("notif_url", "https://other.example.com/x"), set("notif_url", "http://shop.example.com/x")),
		text("reference", 30),
		text("user_msisdn", 20, set("user_msisdn", "07 09 99 88 77"), set("user_msisdn", "+33612345678"), set("user_msisdn", "070999887")),
		otp,
		text("state", 1024, set("state", operationtest.Long(513))),
	}
}

// decision "pay-order-id" and "authentication".
func TestEntitlement(t *testing.T) {
	forbidden := func(name string, e *operationtest.Event, change func(*merchant.Profile)) {
		t.Run("decision authentication: "+name, func(t *testing.T) {
			w := shop(t)
			w.Merchants.Change(operationtest.DemoToken, change)
			w.Do(t, e).Fails(t, 403, "900908")
			w.Untouched(t)
		})
	}
	keep := func(*merchant.Profile) {}
	forbidden("decision pay-order-id: another merchant's order_id", web(t).Set("order_id", "OtherShop_1"), keep)
	forbidden("decision pay-order-id: another case", web(t).Set("order_id", "demoshop_1"), keep)
	forbidden("not the operation", web(t), func(p *merchant.Profile) { p.Operations = []string{"charge"} })
	forbidden("not the country", web(t), func(p *merchant.Profile) { p.Countries = []string{"SN"} })
	forbidden("not the operator", web(t), func(p *merchant.Profile) { p.Operators = []string{"sandbox"} })
	t.Run("decision authentication: OtherShop may not use Tunisia", func(t *testing.T) {
		e := web(t).Header("Authorization", operationtest.OtherToken).Header("country-code", "tn").Header("mno-name", "sandbox")
		shop(t).Do(t, e.Set("order_id", "OtherShop_1").Set("currency", "TND")).Fails(t, 403, "900908")
	})
	t.Run("decision pay-order-id: exactly 30 characters", func(t *testing.T) {
		shop(t).Do(t, web(t).Set("order_id", "DemoShop_"+strings.Repeat("1", 21))).Succeeds(t, 201)
	})
}

// decision "unknown-fields".
func TestUnknownFields(t *testing.T) {
	w := shop(t)
	answer := w.Do(t, web(t).Set("extra", 1).Header("X-Other", "x")).Succeeds(t, 201)
	if strings.Contains(answer.Body, "extra") {
		t.Errorf("echoed: %s", answer.Body)
	}
	twice := strings.Replace(web(t).Body(), `"amount":1500`, `"amount":1500,"amount":1`, 1)
	w.Do(t, web(t).Raw(twice)).Fails(t, 400, "SVC0002", "amount")
}
