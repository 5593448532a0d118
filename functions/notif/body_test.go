package notif_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
)

func TestMalformed(t *testing.T) {
	cases := []struct {
		name, part string
		change     func(*operationtest.Event)
	}{
		{"not JSON", "body", func(e *operationtest.Event) { e.SetRawBody("status=successful") }},
		{"empty", "body", func(e *operationtest.Event) { e.SetRawBody("") }},
		{"a list", "body", func(e *operationtest.Event) { e.SetRawBody("[]") }},
		{"a key twice", "status", func(e *operationtest.Event) { e.SetRawBody(`{"status":"failed","status":"successful"}`) }},
		{"a key twice within", "meta.type", func(e *operationtest.Event) { e.SetRawBody(`{"status":"failed","meta":{"type":"a","type":"b"}}`) }},
		{"no status", "status", func(e *operationtest.Event) { e.RemoveBodyPart("status") }},
		{"a status of no platform", "status", func(e *operationtest.Event) { e.SetBodyPart("status", "Exploded") }},
		{"a status that is no text", "status", func(e *operationtest.Event) { e.SetBodyPart("status", 1) }},
		{"a status under another name", "status", func(e *operationtest.Event) { e.SetRawBody(`{"Status":"successful"}`) }},
		{"another order", "order-id", func(e *operationtest.Event) { e.SetBodyPart("order-id", "DemoShop_1002") }},
		{"an amount that is an object", "amount", func(e *operationtest.Event) { e.SetBodyPart("amount", map[string]any{}) }},
		{"a currency that is a number", "currency", func(e *operationtest.Event) { e.SetBodyPart("currency", 952) }},
		{"another order in the payload", "payload.order-id", func(e *operationtest.Event) {
			e.SetRawBody(`{"payload":{"status":"successful","order-id":"DemoShop_1002"}}`)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t)
			k.Operator.SetStatus("Successful")
			k.StorePendingPayment(order)
			e := newEvent(t, k)
			c.change(e)
			k.Send(t, e).AssertError(t, 400, "SVC0002", c.part)
			if storeCalls(k) != 0 {
				t.Errorf("%d calls of the ledger", storeCalls(k))
			}
		})
	}
	t.Run("too large", func(t *testing.T) {
		k := newFixture(t)
		k.Send(t, newEvent(t, k).SetRawBody(string(make([]byte, 64<<10+1)))).AssertError(t, 413, "SVC0002", "body")
	})
}

// What decides nothing may have any form: platforms send empty texts, numbers and fields of their own.
func TestTolerantParsing(t *testing.T) {
	cases := map[string]func(*operationtest.Event){
		"empty texts": func(e *operationtest.Event) {
			e.SetBodyPart("user_msisdn", "").SetBodyPart("Transaction-id", "").SetBodyPart("notif_token", "")
		},
		"numbers": func(e *operationtest.Event) {
			e.SetBodyPart("user_msisdn", 2250709998877).SetBodyPart("Transaction-id", 12)
		},
		"objects": func(e *operationtest.Event) {
			e.SetBodyPart("user_msisdn", map[string]any{}).SetBodyPart("Transaction-id", []any{})
		},
		"nothing but status": func(e *operationtest.Event) { e.SetRawBody(`{"status":"Successful"}`) },
		"unknown fields":     func(e *operationtest.Event) { e.SetBodyPart("loyalty", map[string]any{"points": 3}) },
		"a payload": func(e *operationtest.Event) {
			e.SetRawBody(`{"meta":{"type":"payment-notif"},"payload":{"status":"Successful","amount":"500","currency":"XOF","order-id":"DemoShop_1001"}}`)
		},
		"another media type": func(e *operationtest.Event) { e.SetHeader("Content-Type", "text/plain") },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			k := newFixture(t)
			k.Operator.SetStatus("Successful")
			entry := k.StorePendingPayment(order)
			e := newEvent(t, k)
			change(e)
			assertCommitted(t, k, e)
			if k.MustGet(t, entry).Status != ledger.Successful {
				t.Errorf("%+v", k.MustGet(t, entry))
			}
		})
	}
}

// FuzzCallback sends arbitrary bodies with a genuine token: 200 or 400, and a final status only where it is final.
func FuzzCallback(f *testing.F) {
	golden := operationtest.LoadEvent(f, "testdata/event.json")
	f.Add(golden.Body(), "Successful")
	f.Add(`{"status":"Failed","amount":500.00}`, "pending")
	f.Add(`{"payload":{"status":"cancelled"}}`, "Expired")
	f.Add(`{"status":"Successful","amount":"1e9","currency":""}`, "")
	f.Add(`{"status":null}`, "failed")
	f.Fuzz(func(t *testing.T, body, says string) {
		k := newFixture(t)
		k.Operator.SetStatus(says)
		entry := k.StorePendingPayment(order)
		check := func(lookup operationtest.Response) *ledger.Entry {
			if lookup.Status != 200 && lookup.Status != 400 && lookup.Status != 413 {
				t.Fatalf("%d %s", lookup.Status, lookup.Body)
			}
			return k.MustGet(t, entry)
		}
		first := check(k.Send(t, newEvent(t, k).SetRawBody(body)))
		if first.StatusFinal() != (len(first.Outbox) == 1) {
			t.Errorf("%s with %d notifications", first.Status, len(first.Outbox))
		}
		if again := check(k.Send(t, newEvent(t, k).SetRawBody(body))); again.Version != first.Version {
			t.Errorf("a repeat wrote: %+v after %+v", again, first)
		}
	})
}
