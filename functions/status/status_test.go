package status_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/status"
	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/payment"
)

const (
	chargeID  = "f3e4995f-bbef-855d-87f6-5224d16525bd"
	messageID = "0f8fad5b-d9cb-869f-a165-70867728950e"
	orderID   = "DemoShop_1001"
)

func shop(t testing.TB) *operationtest.World {
	t.Helper()
	w := operationtest.New(t)
	lookup := &status.Lookup{Merchants: w.Merchants, Rate: w.Desk.Rate, Ledger: w.Ledger, Now: w.Clock.Now}
	return w.Serve("status", lookup.Routes()...)
}

func load(t testing.TB, name, parameter, id string) *operationtest.Event {
	t.Helper()
	return operationtest.Load(t, "testdata/event-"+name+".json").Param(parameter, id)
}

func askCharge(t testing.TB) *operationtest.Event {
	t.Helper()
	return load(t, "charge", "transactionId", chargeID)
}

func askPayment(t testing.TB) *operationtest.Event {
	t.Helper()
	return load(t, "payment", "orderId", orderID)
}

func askMessage(t testing.TB) *operationtest.Event {
	t.Helper()
	return load(t, "delivery-infos", "requestId", messageID)
}

// entry is DemoShop's transaction in a state.
func entry(w *operationtest.World, kind ledger.Kind, id string, state ledger.State) *ledger.Entry {
	demo := operationtest.Demo()
	return &ledger.Entry{
		Key: ledger.Key{Kind: kind, ID: id}, MerchantID: demo.ID, Merchant: demo.Name, State: state, Version: 2,
		CreatedAt: w.Clock.Now(), UpdatedAt: w.Clock.Now(), LeaseUntil: w.Clock.Now().Add(25 * time.Second),
		Country: "CI", Operator: "orange", Currency: "XOF", Minor: 500, AmountText: "500",
	}
}

func chargeIn(w *operationtest.World, state ledger.State) *ledger.Entry {
	e := entry(w, ledger.Charge, chargeID, state)
	e.Correlator, e.ReferenceCode = "c-1001", "REF-1001"
	return e
}

func paymentIn(w *operationtest.World, state ledger.State, told ledger.Status) *ledger.Entry {
	e := entry(w, ledger.Payment, orderID, state)
	e.Status, e.Channel, e.CountryText, e.RefText, e.MerchantState = told, "ussd", "ci", "DemoShop", "a%20b<&>"
	e.PaymentID, e.MSISDN, e.NotifToken = ledger.PaymentTransactionID(orderID), operationtest.MSISDN, "nt-secret"
	return e
}

func messageIn(w *operationtest.World, state ledger.State, told ledger.Status) *ledger.Entry {
	e := entry(w, ledger.SMS, messageID, state)
	e.Status, e.Sender, e.Address = told, "tel:+2250707", "acr:X-Operator-ISE2"
	return e
}

// decision "charge-get".
func TestCharge(t *testing.T) {
	t.Run("decision charge-get: done, the stored answer byte for byte", func(t *testing.T) {
		w := shop(t)
		e := chargeIn(w, ledger.Done)
		e.AnswerStatus, e.AnswerBody = 201, []byte(`{"amountTransaction":{"description":"<a&b>"}}`)
		w.Ledger.Put(e)
		if answer := w.Do(t, askCharge(t)).Succeeds(t, 200); answer.Body != string(e.AnswerBody) {
			t.Errorf("got %s", answer.Body)
		}
		w.Counts(t, 0, 0, 0, 0)
		if w.Ledger.Calls(ledgermem.Get) != 1 {
			t.Errorf("%d reads", w.Ledger.Calls(ledgermem.Get))
		}
	})
	t.Run("decision charge-get: refused, the stored refusal", func(t *testing.T) {
		w := shop(t)
		e := chargeIn(w, ledger.Refused)
		e.AnswerStatus, e.AnswerBody = 403, []byte(`{"requestError":{"policyException":{"messageId":"POL1000","text":"x","variables":[]}}}`)
		w.Ledger.Put(e)
		w.Do(t, askCharge(t)).Fails(t, 403, "POL1000")
	})
	for _, state := range []ledger.State{ledger.Reserved, ledger.Unknown} {
		t.Run("decision charge-get: Processing while "+string(state), func(t *testing.T) {
			w := shop(t)
			w.Ledger.Put(chargeIn(w, state))
			operationtest.GoldenAnswer(t, "testdata/processing.json", w.Do(t, askCharge(t)))
		})
	}
	t.Run("decision unknown-by-hand: a charge that a person found applied was charged", func(t *testing.T) {
		w := shop(t)
		w.Ledger.Put(chargeIn(w, ledger.Done))
		if answer := w.Do(t, askCharge(t)).Succeeds(t, 200); answer.Text("amountTransaction.transactionOperationStatus") != "Charged" {
			t.Errorf("got %s", answer.Body)
		}
	})
	t.Run("another endUserId is no route", func(t *testing.T) {
		w := shop(t)
		w.Ledger.Put(chargeIn(w, ledger.Unknown))
		w.Do(t, askCharge(t).Param("endUserId", "tel%3A%2B225")).Fails(t, 404, "900906")
	})
}

// decision "pay-getstatus".
func TestPayment(t *testing.T) {
	for _, told := range []ledger.Status{ledger.Pending, ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired} {
		t.Run("decision pay-getstatus: "+string(told), func(t *testing.T) {
			w := shop(t)
			e := paymentIn(w, ledger.Done, told)
			if told.Final() {
				e.FinalAt = w.Clock.Now().Add(time.Hour)
			}
			w.Ledger.Put(e)
			answer := w.Do(t, askPayment(t)).Succeeds(t, 200)
			if answer.Text("status") != string(told) || answer.Text("meta.type") != payment.TypeAnswer || answer.Text("state") != "a%20b<&>" {
				t.Errorf("got %s", answer.Body)
			}
			if told == ledger.Successful {
				operationtest.GoldenAnswer(t, "testdata/get-status.json", answer)
			}
			if strings.Contains(answer.Body, "otp") {
				t.Errorf("decision pay-otp: %s", answer.Body)
			}
		})
	}
	for _, state := range []ledger.State{ledger.Reserved, ledger.Unknown} {
		t.Run("decision pay-getstatus: pending while "+string(state), func(t *testing.T) {
			w := shop(t)
			w.Ledger.Put(paymentIn(w, state, ledger.Pending))
			if got := w.Do(t, askPayment(t)).Succeeds(t, 200).Text("status"); got != "pending" {
				t.Errorf("status %s", got)
			}
		})
	}
	t.Run("decision pay-getstatus: the second path is the same, and routing headers are optional", func(t *testing.T) {
		w := shop(t)
		w.Ledger.Put(paymentIn(w, ledger.Done, ledger.Pending))
		one := w.Do(t, askPayment(t))
		two := w.Do(t, askPayment(t).Field("resource", status.PaymentResourceToo).Header("mno-name", "x").Header("channel", "y"))
		if one.Status != 200 || one.Body != two.Body {
			t.Errorf("got %s and %s", one.Body, two.Body)
		}
	})
}

// decision "sms-delivery-infos".
func TestDeliveryInfos(t *testing.T) {
	for _, c := range []struct {
		state ledger.State
		told  ledger.Status
		want  ledger.Status
	}{
		{ledger.Done, ledger.DeliveredToTerminal, ledger.DeliveredToTerminal}, {ledger.Done, ledger.DeliveredToNetwork, ledger.DeliveredToNetwork},
		{ledger.Done, ledger.MessageWaiting, ledger.MessageWaiting}, {ledger.Unknown, "", ledger.MessageWaiting},
		{ledger.Reserved, "", ledger.MessageWaiting}, {ledger.Refused, "", ledger.DeliveryImpossible},
	} {
		t.Run("decision sms-delivery-infos: "+string(c.state)+" "+string(c.told), func(t *testing.T) {
			w := shop(t)
			w.Ledger.Put(messageIn(w, c.state, c.told))
			answer := w.Do(t, askMessage(t)).Succeeds(t, 200)
			if !strings.Contains(answer.Body, `"deliveryStatus":"`+string(c.want)+`"`) {
				t.Errorf("got %s", answer.Body)
			}
			if c.want == ledger.DeliveredToTerminal {
				operationtest.GoldenAnswer(t, "testdata/delivery-infos.json", answer)
			}
		})
	}
	for _, path := range []string{"tel%3A%2B2250708", "2250707", "tel%253A%252B2250707"} {
		t.Run("decision sms-sender: another sender in the path "+path, func(t *testing.T) {
			w := shop(t)
			w.Ledger.Put(messageIn(w, ledger.Done, ledger.MessageWaiting))
			if answer := w.Do(t, askMessage(t).Param("senderAddress", path)); answer.Status != 404 {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		})
	}
	t.Run("the path decoded, as the local front hands it over", func(t *testing.T) {
		w := shop(t)
		w.Ledger.Put(messageIn(w, ledger.Done, ledger.MessageWaiting))
		w.Do(t, askMessage(t).Param("senderAddress", "tel:+2250707")).Succeeds(t, 200)
	})
}

// lookups are the three lookups with an entry that each finds, and what a missing one is told as.
func lookups(t *testing.T, each func(t *testing.T, w *operationtest.World, ask *operationtest.Event, found *ledger.Entry, parameter, part string)) {
	t.Helper()
	t.Run("charge", func(t *testing.T) {
		w := shop(t)
		each(t, w, askCharge(t), chargeIn(w, ledger.Unknown), "transactionId", "transactionId")
	})
	t.Run("getStatus", func(t *testing.T) {
		w := shop(t)
		each(t, w, askPayment(t), paymentIn(w, ledger.Done, ledger.Pending), "orderId", "order_id")
	})
	t.Run("deliveryInfos", func(t *testing.T) {
		w := shop(t)
		each(t, w, askMessage(t), messageIn(w, ledger.Done, ledger.MessageWaiting), "requestId", "requestId")
	})
}

// TestMissing: what is not there, not the caller's, released or expired all looks the same.
func TestMissing(t *testing.T) {
	lookups(t, func(t *testing.T, w *operationtest.World, ask *operationtest.Event, found *ledger.Entry, parameter, part string) {
		missing := func(why string) {
			t.Helper()
			t.Log(why)
			w.Do(t, ask).Fails(t, 404, "SVC0002", part)
		}
		missing("nothing is there")
		w.Ledger.Put(found)
		w.Do(t, ask).Succeeds(t, 200)
		found.MerchantID = operationtest.Other().ID
		w.Ledger.Put(found)
		missing("decision charge-get, pay-getstatus: another merchant's")
		found.MerchantID, found.State = operationtest.Demo().ID, ledger.Released
		w.Ledger.Put(found)
		missing("decision released: getStatus says 404")
		found.State, found.ExpireAt = ledger.Done, w.Clock.Now()
		w.Ledger.Put(found)
		missing("decision retention: expired, whether or not the table has deleted it")
		reads := w.Ledger.Calls(ledgermem.Get)
		w.Do(t, ask.Param(parameter, strings.Repeat("a", 256))).Fails(t, 404, "SVC0002", part)
		if w.Ledger.Calls(ledgermem.Get) != reads {
			t.Error("the table was asked for a key that it cannot hold")
		}
		for _, id := range []string{"%2F..%2F", "é", "'--", " "} {
			w.Do(t, ask.Param(parameter, id)).Fails(t, 404, "SVC0002", part)
		}
	})
}

func TestRefused(t *testing.T) {
	lookups(t, func(t *testing.T, w *operationtest.World, ask *operationtest.Event, found *ledger.Entry, _, _ string) {
		w.Ledger.Put(found)
		w.Ledger.SetFaults(func(ledgermem.Call) ledgermem.Fault { return ledgermem.Error })
		w.Do(t, ask).Fails(t, 500, "SVC0001", "PDK_SMSW_0001")
		w.Merchants.Fail(errors.New("the table is gone"))
		w.Do(t, ask).Fails(t, 500, "SVC0001", "PDK_SMSW_0001")
		w.Merchants.Fail(nil)
		w.Do(t, ask.Header("Authorization", "Bearer nobody")).Fails(t, 401, "900901")
		w.Do(t, ask.Headers("Authorization")).Fails(t, 401, "900902")
		w.Do(t, ask.Field("httpMethod", "DELETE")).Fails(t, 404, "900906")
	})
}

// FuzzPath sends arbitrary ids and sender addresses: never 5xx, never a panic, never another's.
func FuzzPath(f *testing.F) {
	f.Add(chargeID, "acr%3AOperatorAPIToken", "tel%3A%2B2250707")
	f.Add(orderID, "acr:OperatorAPIToken", "tel:+2250707")
	f.Add("%", "%00", "é")
	f.Fuzz(func(t *testing.T, id, endUser, sender string) {
		w := shop(t)
		for _, ask := range []*operationtest.Event{
			askCharge(t).Param("transactionId", id).Param("endUserId", endUser),
			askPayment(t).Param("orderId", id),
			askMessage(t).Param("requestId", id).Param("senderAddress", sender),
		} {
			if answer := w.Do(t, ask); answer.Status != 404 {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		}
	})
}
