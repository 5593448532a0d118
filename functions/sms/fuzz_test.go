package sms_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
)

// FuzzBody sends arbitrary bodies: never 5xx, never a panic, and nothing is stored but for what was sent.
func FuzzBody(f *testing.F) {
	f.Add(newEvent(f).Body())
	f.Add(newEvent(f).RemoveBodyPart(receipt).Body())
	f.Add(`{"outboundSMSMessageRequest":{"address":[null]}}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, body string) {
		w := newFixture(t)
		response := w.Send(t, newEvent(t).SetRawBody(body))
		assertFuzzResponse(t, w, response)
		if response.Status == 201 {
			w.Send(t, newEvent(t).SetRawBody(body)).AssertStatus(t, 409)
		}
	})
}

// FuzzPath sends arbitrary sender addresses in path and body, and arbitrary countries.
func FuzzPath(f *testing.F) {
	f.Add("tel%3A%2B2250707", "tel:+2250707", "OCI", "ise2")
	f.Add("tel:+2250707", "tel:+225 0707", "OCD", "é")
	f.Add("%", "%00", "", "\n")
	f.Fuzz(func(t *testing.T, path, from, mcoCode, ise2 string) {
		w := newFixture(t)
		e := newEvent(t).SetPathParameter("senderAddress", path).SetBodyPart(sender, from).SetHeader("X-Operator-MCO", mcoCode).SetHeader("X-Operator-ISE2", ise2)
		assertFuzzResponse(t, w, w.Send(t, e))
	})
}

func assertFuzzResponse(t *testing.T, w *operationtest.Fixture, response operationtest.Response) {
	t.Helper()
	switch {
	case response.Status == 201:
		w.AssertCallCounts(t, 1, 0, 1, 1)
	case response.Status >= 500 || response.Status < 400:
		t.Errorf("%d %s", response.Status, response.Body)
	default:
		if _, ok := response.Exception(); !ok {
			t.Errorf("not an error of the API: %s", response.Body)
		}
		w.AssertNoSideEffects(t)
	}
}
