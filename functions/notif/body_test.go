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
		{"not JSON", "body", func(e *operationtest.Event) { e.Raw("status=successful") }},
		{"empty", "body", func(e *operationtest.Event) { e.Raw("") }},
		{"a list", "body", func(e *operationtest.Event) { e.Raw("[]") }},
		{"a key twice", "status", func(e *operationtest.Event) { e.Raw(`{"status":"failed","status":"successful"}`) }},
		{"a key twice within", "meta.type", func(e *operationtest.Event) { e.Raw(`{"status":"failed","meta":{"type":"a","type":"b"}}`) }},
		{"no status", "status", func(e *operationtest.Event) { e.Remove("status") }},
		{"a status of no platform", "status", func(e *operationtest.Event) { e.Set("status", "Exploded") }},
		{"a status that is no text", "status", func(e *operationtest.Event) { e.Set("status", 1) }},
		{"a status under another name", "status", func(e *operationtest.Event) { e.Raw(`{"Status":"successful"}`) }},
		{"another order", "order-id", func(e *operationtest.Event) { e.Set("order-id", "DemoShop_1002") }},
		{"an amount that is an object", "amount", func(e *operationtest.Event) { e.Set("amount", map[string]any{}) }},
		{"a currency that is a number", "currency", func(e *operationtest.Event) { e.Set("currency", 952) }},
		{"another order in the payload", "payload.order-id", func(e *operationtest.Event) {
			e.Raw(`{"payload":{"status":"successful","order-id":"DemoShop_1002"}}`)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := kit(t)
			k.Operator.Says("Successful")
			k.Payment(order)
			e := event(t, k)
			c.change(e)
			k.Do(t, e).Fails(t, 400, "SVC0002", c.part)
			if reads(k) != 0 {
				t.Errorf("%d calls of the ledger", reads(k))
			}
		})
	}
	t.Run("too large", func(t *testing.T) {
		k := kit(t)
		k.Do(t, event(t, k).Raw(string(make([]byte, 64<<10+1)))).Fails(t, 413, "SVC0002", "body")
	})
}

// What decides nothing may have any form: platforms send empty texts, numbers and fields of their own.
func TestTolerated(t *testing.T) {
	cases := map[string]func(*operationtest.Event){
		"empty texts": func(e *operationtest.Event) {
			e.Set("user_msisdn", "").Set("Transaction-id", "").Set("notif_token", "")
		},
		"numbers":            func(e *operationtest.Event) { e.Set("user_msisdn", 2250709998877).Set("Transaction-id", 12) },
		"objects":            func(e *operationtest.Event) { e.Set("user_msisdn", map[string]any{}).Set("Transaction-id", []any{}) },
		"nothing but status": func(e *operationtest.Event) { e.Raw(`{"status":"Successful"}`) },
		"unknown fields":     func(e *operationtest.Event) { e.Set("loyalty", map[string]any{"points": 3}) },
		"a payload": func(e *operationtest.Event) {
			e.Raw(`{"meta":{"type":"payment-notif"},"payload":{"status":"Successful","amount":"500","currency":"XOF","order-id":"DemoShop_1001"}}`)
		},
		"another media type": func(e *operationtest.Event) { e.Header("Content-Type", "text/plain") },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			k := kit(t)
			k.Operator.Says("Successful")
			entry := k.Payment(order)
			e := event(t, k)
			change(e)
			committed(t, k, e)
			if k.Get(t, entry).Status != ledger.Successful {
				t.Errorf("%+v", k.Get(t, entry))
			}
		})
	}
}

// FuzzCallback sends arbitrary bodies with a genuine token: 200 or 400, and a final status only where it is final.
func FuzzCallback(f *testing.F) {
	golden := operationtest.Load(f, "testdata/event.json")
	f.Add(golden.Body(), "Successful")
	f.Add(`{"status":"Failed","amount":500.00}`, "pending")
	f.Add(`{"payload":{"status":"cancelled"}}`, "Expired")
	f.Add(`{"status":"Successful","amount":"1e9","currency":""}`, "")
	f.Add(`{"status":null}`, "failed")
	f.Fuzz(func(t *testing.T, body, says string) {
		k := kit(t)
		k.Operator.Says(says)
		entry := k.Payment(order)
		check := func(answer operationtest.Answer) *ledger.Entry {
			if answer.Status != 200 && answer.Status != 400 && answer.Status != 413 {
				t.Fatalf("%d %s", answer.Status, answer.Body)
			}
			return k.Get(t, entry)
		}
		first := check(k.Do(t, event(t, k).Raw(body)))
		if first.Settled() != (len(first.Outbox) == 1) {
			t.Errorf("%s with %d notifications", first.Status, len(first.Outbox))
		}
		if again := check(k.Do(t, event(t, k).Raw(body))); again.Version != first.Version {
			t.Errorf("a repeat wrote: %+v after %+v", again, first)
		}
	})
}
