package notif_test

import (
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// decision "unread-callbacks": an authentic callback that cannot be read makes a lookup due, and gets 200.
func TestUnreadCallbacks(t *testing.T) {
	set := func(part string, value any) func(*operationtest.Event) {
		return func(e *operationtest.Event) { e.SetBodyPart(part, value) }
	}
	raw := func(body string) func(*operationtest.Event) {
		return func(e *operationtest.Event) { e.SetRawBody(body) }
	}
	cases := []struct {
		name   string
		change func(*operationtest.Event)
	}{
		{"not JSON", raw("status=successful")},
		{"empty", raw("")},
		{"a list", raw("[]")},
		{"a key twice", raw(`{"status":"failed","status":"successful"}`)},
		{"a nested key twice", raw(`{"status":"failed","meta":{"type":"a","type":"b"}}`)},
		{"no status", func(e *operationtest.Event) { e.RemoveBodyPart("status") }},
		{"an unknown status", set("status", "Exploded")},
		{"a status that is a number", set("status", 1)},
		{"a status under another name", raw(`{"Status":"successful"}`)},
		{"another order", set("order-id", "DemoShop_1002")},
		{"an amount that is an object", set("amount", map[string]any{})},
		{"a currency that is a number", set("currency", 952)},
		{"another order in the payload", raw(`{"payload":{"status":"successful","order-id":"DemoShop_1002"}}`)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t, "Successful")
			stored := k.StorePendingPayment(order)
			e := newEvent(t, k)
			c.change(e)
			k.AssertCommitted(t, e)
			k.AssertCounted(t, "UnreadCallbacks")
			k.AssertCommitted(t, e)
			assertCalls(t, k, 3, 0) // the lookup is due already at the second callback
			if after := k.MustGet(t, stored); !after.Poll.At.Equal(k.Clock.Now()) || after.Status != ledger.Pending {
				t.Errorf("the lookup is due at %s, the status is %s", after.Poll.At, after.Status)
			}
		})
	}
	t.Run("the lookup cannot be stored as due", func(t *testing.T) {
		k := newFixture(t, "Successful")
		k.StorePendingPayment(order)
		k.Ledger.FailNext(storetest.Replace, storetest.FailedBeforeApply)
		k.Send(t, newEvent(t, k).SetRawBody("{")).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	})
	t.Run("a final payment has no lookup", func(t *testing.T) {
		k := newFixture(t, "Successful")
		final := k.StoreFinalPayment(order, ledger.Successful)
		k.AssertCommitted(t, newEvent(t, k).SetRawBody("{"))
		if after := k.MustGet(t, final); after.Version != final.Version {
			t.Errorf("version %d after %d", after.Version, final.Version)
		}
	})
	t.Run("too large", func(t *testing.T) {
		k := newFixture(t, "Successful")
		k.Send(t, newEvent(t, k).SetRawBody(string(make([]byte, 64<<10+1)))).AssertError(t, 413, "SVC0002", "body")
	})
}

// Parts that decide nothing may have any form: operators send empty texts, numbers and fields of their own.
func TestTolerantParsing(t *testing.T) {
	cases := map[string]func(*operationtest.Event){
		"empty texts": func(e *operationtest.Event) {
			e.SetBodyPart("user_msisdn", "").SetBodyPart("Transaction-id", "").SetBodyPart("notif_token", "")
		},
		"numbers": func(e *operationtest.Event) {
			e.SetBodyPart("user_msisdn", 2250709998877).SetBodyPart("Transaction-id", 12).SetBodyPart("amount", 500)
		},
		"objects": func(e *operationtest.Event) {
			e.SetBodyPart("user_msisdn", map[string]any{}).SetBodyPart("Transaction-id", []any{})
		},
		"only a status":  func(e *operationtest.Event) { e.SetRawBody(`{"status":"Successful"}`) },
		"unknown fields": func(e *operationtest.Event) { e.SetBodyPart("loyalty", map[string]any{"points": 3}) },
		"a payload": func(e *operationtest.Event) {
			e.SetRawBody(`{"meta":{"type":"payment-notif"},
				"payload":{"status":"Successful","amount":"500","currency":"XOF","order-id":"DemoShop_1001"}}`)
		},
		"another media type": func(e *operationtest.Event) { e.SetHeader("Content-Type", "text/plain") },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			k := newFixture(t, "Successful")
			entry := k.StorePendingPayment(order)
			e := newEvent(t, k)
			change(e)
			k.AssertCommitted(t, e)
			k.AssertEntry(t, entry, successful)
		})
	}
}

// FuzzCallback sends arbitrary bodies with a valid token. The response is 200 or an error of the request; a
// notification exists exactly if the status is final.
func FuzzCallback(f *testing.F) {
	golden := operationtest.LoadEvent(f, "testdata/event.json")
	f.Add(golden.Body(), "Successful")
	f.Add(`{"status":"Failed","amount":500.00}`, "pending")
	f.Add(`{"payload":{"status":"cancelled"}}`, "Expired")
	f.Add(`{"status":"Successful","amount":"1e9","currency":""}`, "")
	f.Add(`{"status":null}`, "failed")
	f.Fuzz(func(t *testing.T, body, lookupStatus string) {
		k := newFixture(t, lookupStatus)
		entry := k.StorePendingPayment(order)
		send := func() *ledger.Entry {
			response := k.Send(t, newEvent(t, k).SetRawBody(body))
			if response.Status != 200 && response.Status != 413 {
				t.Fatalf("response %d %s, want 200 or 413", response.Status, response.Body)
			}
			return k.MustGet(t, entry)
		}
		first := send()
		if first.StatusFinal() != (len(first.Outbox.Waiting) == 1) {
			t.Errorf("status %s with %d notifications", first.Status, len(first.Outbox.Waiting))
		}
		if again := send(); again.Version != first.Version {
			t.Errorf("a repeated callback wrote version %d after %d", again.Version, first.Version)
		}
	})
}
