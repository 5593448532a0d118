package status_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/status"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/payment"
)

const (
	chargeID  = "f3e4995f-bbef-855d-87f6-5224d16525bd"
	messageID = "0f8fad5b-d9cb-869f-a165-70867728950e"
	orderID   = "DemoShop_1001"
	// merchantState is any Unicode text, line ends and control characters included (decision "pay-state").
	merchantState = "a%20b<&>\r\n\t\x01🎁"
)

func newFixture(t testing.TB) *operationtest.Fixture {
	t.Helper()
	w := operationtest.New(t)
	handler := &status.StatusHandler{
		Merchants: w.Merchants, RateLimiter: w.Pipeline.RateLimiter, Reader: w.Ledger,
		References: w.Ledger, Now: w.Clock.Now,
	}
	return w.Serve("status", handler.Routes()...)
}

func loadEvent(t testing.TB, name, parameter, id string) *operationtest.Event {
	t.Helper()
	return operationtest.LoadEvent(t, "testdata/event-"+name+".json").SetPathParameter(parameter, id)
}

func chargeEvent(t testing.TB) *operationtest.Event {
	t.Helper()
	return loadEvent(t, "charge", "transactionId", chargeID)
}

func paymentEvent(t testing.TB) *operationtest.Event {
	t.Helper()
	return loadEvent(t, "payment", "orderId", orderID)
}

func messageEvent(t testing.TB) *operationtest.Event {
	t.Helper()
	return loadEvent(t, "delivery-infos", "requestId", messageID)
}

// newEntry is a transaction of DemoShop in a state.
func newEntry(w *operationtest.Fixture, kind ledger.Kind, id string, state ledger.State) *ledger.Entry {
	demo := operationtest.DemoProfile()
	return &ledger.Entry{
		Key: ledger.Key{Kind: kind, ID: id}, Merchant: ledger.Merchant{ID: demo.ID, Name: demo.Name},
		Call: ledger.Call{State: state, LeaseUntil: w.Clock.Now().Add(25 * time.Second)}, Version: 2,
		CreatedAt: w.Clock.Now(), UpdatedAt: w.Clock.Now(),
		Route:  ledger.Route{Country: "CI", Operator: "orange"},
		Amount: ledger.Amount{Currency: "XOF", Minor: 500, AsSent: "500"},
	}
}

func chargeInState(w *operationtest.Fixture, state ledger.State) *ledger.Entry {
	e := newEntry(w, ledger.Charge, chargeID, state)
	e.Request.Correlator, e.Request.ReferenceCode = "c-1001", "REF-1001"
	return e
}

func paymentWithStatus(w *operationtest.Fixture, state ledger.State, entryStatus ledger.Status) *ledger.Entry {
	e := newEntry(w, ledger.Payment, orderID, state)
	e.Status, e.Request.Channel, e.Request.CountryAsSent = entryStatus, "ussd", "ci"
	e.Request.Reference, e.Request.State = "DemoShop", merchantState
	e.Request.TransactionID, e.Request.MSISDN, e.Outbox.NotifToken = ledger.PaymentTransactionID(orderID),
		operationtest.MSISDN, "nt-secret"
	return e
}

func messageWithStatus(w *operationtest.Fixture, state ledger.State, entryStatus ledger.Status) *ledger.Entry {
	e := newEntry(w, ledger.SMS, messageID, state)
	e.Status, e.Request.Sender, e.Request.Address = entryStatus, "tel:+2250707", "acr:X-Operator-ISE2"
	return e
}

// decision "charge-get".
func TestCharge(t *testing.T) {
	t.Run("decision charge-get: done, the stored response byte for byte", func(t *testing.T) {
		w := newFixture(t)
		e := chargeInState(w, ledger.Done)
		e.Response.Status, e.Response.Body = 201, []byte(`{"amountTransaction":{"description":"<a&b>"}}`)
		w.Ledger.Overwrite(e)
		if response := w.Send(t, chargeEvent(t)).AssertStatus(t, 200); response.Body != string(e.Response.Body) {
			t.Errorf("got %s", response.Body)
		}
		w.AssertCallCounts(t, 0, 0, 0, 0)
		if w.Ledger.CallCount(storetest.Get) != 1 {
			t.Errorf("%d reads", w.Ledger.CallCount(storetest.Get))
		}
	})
	t.Run("decision charge-get: refused, the stored refusal", func(t *testing.T) {
		w := newFixture(t)
		e := chargeInState(w, ledger.Refused)
		e.Response.Status = 403
		e.Response.Body = []byte(
			`{"requestError":{"policyException":{"messageId":"POL1000","text":"x","variables":[]}}}`)
		w.Ledger.Overwrite(e)
		w.Send(t, chargeEvent(t)).AssertError(t, 403, "POL1000")
	})
	for _, state := range []ledger.State{ledger.Reserved, ledger.Unknown} {
		t.Run("decision charge-get: Processing while "+string(state), func(t *testing.T) {
			w := newFixture(t)
			w.Ledger.Overwrite(chargeInState(w, state))
			operationtest.GoldenResponse(t, "testdata/processing.json", w.Send(t, chargeEvent(t)))
		})
	}
	t.Run("decision unknown-by-hand: a charge that was resolved as applied is Charged", func(t *testing.T) {
		w := newFixture(t)
		w.Ledger.Overwrite(chargeInState(w, ledger.Done))
		response := w.Send(t, chargeEvent(t)).AssertStatus(t, 200)
		response.AssertText(t, "amountTransaction.transactionOperationStatus", "Charged")
	})
	t.Run("another endUserId is not a route", func(t *testing.T) {
		w := newFixture(t)
		w.Ledger.Overwrite(chargeInState(w, ledger.Unknown))
		w.Send(t, chargeEvent(t).SetPathParameter("endUserId", "tel%3A%2B225")).AssertError(t, 404, "900906")
	})
}

// decision "pay-getstatus".
func TestPayment(t *testing.T) {
	statuses := []ledger.Status{ledger.Pending, ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired}
	for _, entryStatus := range statuses {
		t.Run("decision pay-getstatus: "+string(entryStatus), func(t *testing.T) {
			w := newFixture(t)
			e := paymentWithStatus(w, ledger.Done, entryStatus)
			if entryStatus.Final() {
				e.FinalAt = w.Clock.Now().Add(time.Hour)
			}
			w.Ledger.Overwrite(e)
			response := w.Send(t, paymentEvent(t)).AssertStatus(t, 200)
			response.AssertText(t, "status", string(entryStatus))
			response.AssertText(t, "meta.type", payment.TypeResponse)
			response.AssertText(t, "state", merchantState)
			if entryStatus == ledger.Successful {
				operationtest.GoldenResponse(t, "testdata/get-status.json", response)
			}
			if strings.Contains(response.Body, "otp") {
				t.Errorf("decision pay-otp: %s", response.Body)
			}
		})
	}
	for _, state := range []ledger.State{ledger.Reserved, ledger.Unknown} {
		t.Run("decision pay-getstatus: pending while "+string(state), func(t *testing.T) {
			w := newFixture(t)
			w.Ledger.Overwrite(paymentWithStatus(w, state, ledger.Pending))
			w.Send(t, paymentEvent(t)).AssertStatus(t, 200).AssertText(t, "status", "pending")
		})
	}
	t.Run("decision pay-getstatus: the second path is the same, and routing headers are optional", func(t *testing.T) {
		w := newFixture(t)
		w.Ledger.Overwrite(paymentWithStatus(w, ledger.Done, ledger.Pending))
		one := w.Send(t, paymentEvent(t))
		alias := paymentEvent(t).SetField("resource", "/mobilemoney/getstatus/v1/{orderId}")
		two := w.Send(t, alias.SetHeader("mno-name", "x").SetHeader("channel", "y"))
		if one.AssertStatus(t, 200); one.Body != two.Body {
			t.Errorf("the paths differ: %s and %s", one.Body, two.Body)
		}
	})
}

// decision "sms-delivery-infos".
func TestDeliveryInfos(t *testing.T) {
	for _, c := range []struct {
		state  ledger.State
		stored ledger.Status
		want   ledger.Status
	}{
		{ledger.Done, ledger.DeliveredToTerminal, ledger.DeliveredToTerminal},
		{ledger.Done, ledger.DeliveredToNetwork, ledger.DeliveredToNetwork},
		{ledger.Done, ledger.MessageWaiting, ledger.MessageWaiting},
		{ledger.Reserved, ledger.DeliveredToNetwork, ledger.DeliveredToNetwork},
		{ledger.Unknown, ledger.MessageWaiting, ledger.MessageWaiting},
		{ledger.Refused, "", ledger.DeliveryImpossible},
	} {
		t.Run("decision sms-delivery-infos: "+string(c.state)+" "+string(c.stored), func(t *testing.T) {
			w := newFixture(t)
			w.Ledger.Overwrite(messageWithStatus(w, c.state, c.stored))
			response := w.Send(t, messageEvent(t)).AssertStatus(t, 200)
			if want := `"deliveryStatus":"` + string(c.want) + `"`; !strings.Contains(response.Body, want) {
				t.Errorf("got %s, want %s", response.Body, want)
			}
			if c.want == ledger.DeliveredToTerminal {
				operationtest.GoldenResponse(t, "testdata/delivery-infos.json", response)
			}
		})
	}
	for _, state := range []ledger.State{ledger.Reserved, ledger.Unknown} {
		t.Run("decision sms-delivery-infos: no status while "+string(state), func(t *testing.T) {
			w := newFixture(t)
			w.Ledger.Overwrite(messageWithStatus(w, state, ""))
			operationtest.GoldenResponse(t, "testdata/delivery-infos-unknown.json", w.Send(t, messageEvent(t)))
		})
	}
	for _, path := range []string{"tel%3A%2B2250708", "2250707", "tel%253A%252B2250707"} {
		t.Run("decision sms-sender: another sender in the path "+path, func(t *testing.T) {
			w := newFixture(t)
			w.Ledger.Overwrite(messageWithStatus(w, ledger.Done, ledger.MessageWaiting))
			w.Send(t, messageEvent(t).SetPathParameter("senderAddress", path)).AssertStatus(t, 404)
		})
	}
	t.Run("a decoded path, as the local API front sends it", func(t *testing.T) {
		w := newFixture(t)
		w.Ledger.Overwrite(messageWithStatus(w, ledger.Done, ledger.MessageWaiting))
		w.Send(t, messageEvent(t).SetPathParameter("senderAddress", "tel:+2250707")).AssertStatus(t, 200)
	})
}

// lookup is one lookup. found is an entry that the event finds, parameter its path parameter, and part the name in the
// fault of a missing entry.
type lookup struct {
	*operationtest.Fixture
	event           *operationtest.Event
	found           *ledger.Entry
	parameter, part string
}

func forEachLookup(t *testing.T, check func(*testing.T, lookup)) {
	t.Helper()
	w := newFixture(t)
	message := messageWithStatus(w, ledger.Done, ledger.MessageWaiting)
	for name, l := range map[string]lookup{
		"charge": {w, chargeEvent(t), chargeInState(w, ledger.Unknown), "transactionId", "transactionId"},
		"getStatus": {
			newFixture(t), paymentEvent(t), paymentWithStatus(w, ledger.Done, ledger.Pending), "orderId", "order_id",
		},
		"deliveryInfos": {newFixture(t), messageEvent(t), message, "requestId", "requestId"},
	} {
		t.Run(name, func(t *testing.T) { check(t, l) })
	}
}

// TestNotFound checks that missing, foreign, released and expired entries look the same.
func TestNotFound(t *testing.T) {
	forEachLookup(t, func(t *testing.T, w lookup) {
		event, found, parameter, part := w.event, w.found, w.parameter, w.part
		missing := func(why string) {
			t.Helper()
			t.Log(why)
			w.Send(t, event).AssertError(t, 404, "SVC0002", part)
		}
		missing("no entry")
		w.Ledger.Overwrite(found)
		w.Send(t, event).AssertStatus(t, 200)
		found.Merchant.ID = operationtest.OtherProfile().ID
		w.Ledger.Overwrite(found)
		missing("decision charge-get, pay-getstatus: an entry of another merchant")
		found.Merchant.ID, found.State = operationtest.DemoProfile().ID, ledger.Released
		w.Ledger.Overwrite(found)
		missing("decision released: getStatus returns 404")
		found.State, found.ExpireAt = ledger.Done, w.Clock.Now()
		w.Ledger.Overwrite(found)
		missing("decision retention: expired, even if the table has not deleted it")
		reads := w.Ledger.CallCount(storetest.Get)
		w.Send(t, event.SetPathParameter(parameter, strings.Repeat("a", 256))).AssertError(t, 404, "SVC0002", part)
		if w.Ledger.CallCount(storetest.Get) != reads {
			t.Error("the table is read with a key that it cannot have")
		}
		for _, id := range []string{"%2F..%2F", "é", "'--", " "} {
			w.Send(t, event.SetPathParameter(parameter, id)).AssertError(t, 404, "SVC0002", part)
		}
	})
}

func TestRefusals(t *testing.T) {
	forEachLookup(t, func(t *testing.T, w lookup) {
		event := w.event
		w.Ledger.Overwrite(w.found)
		w.Ledger.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
		w.Send(t, event).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
		w.Merchants.Err = errors.New("the table is gone")
		w.Send(t, event).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
		w.Merchants.Err = nil
		w.Send(t, event.SetHeader("Authorization", "Bearer unknown")).AssertError(t, 401, "900901")
		w.Send(t, event.SetHeader("Authorization")).AssertError(t, 401, "900902")
		w.Send(t, event.SetField("httpMethod", "DELETE")).AssertError(t, 404, "900906")
	})
}

// decision "merchant-limits": lookups are requests too.
func TestRate(t *testing.T) {
	w := newFixture(t).UpdateDemo(func(p *merchant.Profile) { p.RequestsPerSecond, p.Burst = 1, 1 })
	w.Send(t, paymentEvent(t)).AssertError(t, 404, "SVC0002", "order_id")
	w.Send(t, paymentEvent(t)).AssertError(t, 429, "900800")
	w.AssertCounted(t, "RateLimitedRequests")
	if name := w.LastLine(t)["Merchant"]; name != "DemoShop" {
		t.Errorf("merchant %v in the log line, want DemoShop", name)
	}
}

// FuzzPath sends arbitrary ids and sender addresses: never a 5xx, never a panic, never another merchant's entry.
func FuzzPath(f *testing.F) {
	f.Add(chargeID, "acr%3AOperatorAPIToken", "tel%3A%2B2250707")
	f.Add(orderID, "acr:OperatorAPIToken", "tel:+2250707")
	f.Add("%", "%00", "é")
	f.Fuzz(func(t *testing.T, id, endUser, sender string) {
		w := newFixture(t)
		for _, event := range []*operationtest.Event{
			chargeEvent(t).SetPathParameter("transactionId", id).SetPathParameter("endUserId", endUser),
			paymentEvent(t).SetPathParameter("orderId", id),
			messageEvent(t).SetPathParameter("requestId", id).SetPathParameter("senderAddress", sender),
		} {
			w.Send(t, event).AssertStatus(t, 404)
		}
	})
}
