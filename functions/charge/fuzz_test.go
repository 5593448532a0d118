package charge_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
)

// FuzzBody sends arbitrary bodies: never 5xx, never a panic, and nothing is stored but for what was charged.
func FuzzBody(f *testing.F) {
	f.Add(newEvent(f).Body())
	f.Add(newEvent(f).RemoveBodyPart(correlator).Body())
	f.Add(`{"amountTransaction":{"paymentAmount":[]}}`)
	f.Add(`{"amountTransaction":null}`)
	f.Add("{")
	f.Fuzz(func(t *testing.T, body string) {
		w := newFixture(t)
		response := w.Send(t, newEvent(t).SetRawBody(body))
		assertFuzzResponse(t, w, response)
		if response.Status == 201 {
			w.Send(t, newEvent(t).SetRawBody(body)).AssertRepeatOf(t, response)
			w.AssertCallCounts(t, 2, 1, 1, 1)
		}
	})
}

// FuzzPath sends arbitrary path parameters and headers.
func FuzzPath(f *testing.F) {
	f.Add("acr%3AOperatorAPIToken", "token", "alias", "OCI")
	f.Add("acr:OperatorAPIToken", "", "é", "OCD")
	f.Add("%zz", "a\nb", "%00", " ")
	f.Fuzz(func(t *testing.T, path, token, alias, mcoCode string) {
		w := newFixture(t)
		e := newEvent(t).SetPathParameter("endUserId", path).SetHeader("gw-token", token).SetHeader("gw-alias", alias).SetHeader("X-Operator-MCO", mcoCode)
		assertFuzzResponse(t, w, w.Send(t, e))
	})
}

// assertFuzzResponse checks what holds of every answer where the operator always succeeds.
func assertFuzzResponse(t *testing.T, w *operationtest.Fixture, response operationtest.Response) {
	t.Helper()
	switch {
	case response.Status == 201:
		w.AssertCallCounts(t, 1, 1, 1, 1)
	case response.Status >= 500 || response.Status < 400:
		t.Errorf("%d %s", response.Status, response.Body)
	default:
		if _, ok := response.Exception(); !ok {
			t.Errorf("not an error of the API: %s", response.Body)
		}
		w.AssertNoSideEffects(t)
	}
}
