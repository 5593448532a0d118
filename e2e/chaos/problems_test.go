//go:build linux

package chaos

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"mobilegateway/local"
	"mobilegateway/shared/ledger"
)

// TestFindProblems checks that each kind of problem is found, and that a correct order has none.
func TestFindProblems(t *testing.T) {
	type world struct {
		order    *order
		entry    *ledger.Entry
		effects  map[effectKey]int
		messages []message
	}
	const id = "DemoShop_1"
	correct := func() *world {
		key := ledger.Key{Kind: ledger.Payment, ID: id}
		webhookID := ledger.NotificationID(key, ledger.Successful)
		return &world{
			order: &order{
				kind: ledger.Payment, id: id, merchant: local.MerchantCredentials{Merchant: "DemoShop"}, digits: "2000",
				response: response{status: http.StatusCreated}, decided: true, requests: 1,
			},
			entry: &ledger.Entry{
				Key: key, Call: ledger.Call{State: ledger.Done}, Progress: ledger.Progress{Status: ledger.Successful},
				Outbox: ledger.Outbox{
					URL:       "http://shop.example.com",
					Delivered: []ledger.Notification{{ID: webhookID, Status: ledger.Successful}},
				},
				UserSMS: ledger.UserSMS{State: ledger.UserSMSSent},
			},
			effects: map[effectKey]int{{"payment", id}: 1, {"sms", id}: 1},
			messages: []message{{
				Headers: map[string]string{"webhook-id": webhookID}, Verdict: "verified", status: ledger.Successful,
			}},
		}
	}
	for want, change := range map[string]func(w *world){
		"":                            func(*world) {},
		"2 effects at the operator":   func(w *world) { w.effects[effectKey{"payment", id}] = 2 },
		"2 SMS to the payer":          func(w *world) { w.effects[effectKey{"sms", id}] = 2 },
		"but the operator has 0":      func(w *world) { delete(w.effects, effectKey{"sms", id}) },
		"with 0 effects":              func(w *world) { delete(w.effects, effectKey{"payment", id}) },
		"with 1 effects":              func(w *world) { w.entry.Status = ledger.Failed },
		"the payment is neither":      func(w *world) { w.entry.Status = ledger.Pending },
		"neither an outcome":          func(w *world) { w.entry.State = ledger.Reserved },
		"the payer's SMS is due":      func(w *world) { w.entry.UserSMS.State = ledger.UserSMSDue },
		"no entry":                    func(w *world) { w.entry = nil },
		"neither use nor retry":       func(w *world) { w.order.response.status = http.StatusNotFound },
		"the merchant has no":         func(w *world) { w.order.decided = false },
		"but the payment expired":     func(w *world) { w.order.payerDone, w.entry.Status = true, ledger.Expired },
		"a notification's signature":  func(w *world) { w.messages[0].Verdict = "not signed" },
		"webhook-id other":            func(w *world) { w.messages[0].Headers["webhook-id"] = "other" },
		"and did not arrive":          func(w *world) { w.messages = nil },
		"was never delivered":         func(w *world) { w.messages, w.entry.Outbox.Delivered = nil, nil },
		"notified as failed":          func(w *world) { w.messages[0].status = ledger.Failed },
		"notification  is not delive": func(w *world) { w.entry.Outbox.Waiting = []ledger.Notification{{}} },
	} {
		w := correct()
		change(w)
		found := strings.Join(findProblems(w.order, w.entry, w.effects, w.messages, time.Now()), "\n")
		if want == "" && found != "" || !strings.Contains(found, want) {
			t.Errorf("found %q, want %q", found, want)
		}
	}
}

// TestStatusOrder checks that an earlier status of an SMS after a later one is found, and that a repeat is not.
func TestStatusOrder(t *testing.T) {
	key := ledger.Key{Kind: ledger.SMS, ID: "1"}
	arrive := func(statuses ...ledger.Status) (all []message) {
		for _, s := range statuses {
			header := map[string]string{"webhook-id": ledger.NotificationID(key, s)}
			all = append(all, message{Headers: header, Verdict: "verified", status: s})
		}
		return all
	}
	first, last := ledger.DeliveredToNetwork, ledger.DeliveredToTerminal
	e := &ledger.Entry{
		Key: key, Call: ledger.Call{State: ledger.Done}, Progress: ledger.Progress{Status: last},
		Outbox: ledger.Outbox{URL: "http://shop.example.com"},
	}
	if found := findNotificationProblems(e, arrive(first, first, last, last)); len(found) != 0 {
		t.Errorf("found %q, want nothing", found)
	}
	if found := findNotificationProblems(e, arrive(first, last, first)); len(found) != 1 {
		t.Errorf("found %q, want the earlier status", found)
	}
}
