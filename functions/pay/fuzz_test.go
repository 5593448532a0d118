package pay_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
)

// FuzzBody sends arbitrary bodies on each channel: never 5xx, never a panic, and nothing is stored but for what was paid.
func FuzzBody(f *testing.F) {
	f.Add(webEvent(f).Body(), "web")
	f.Add(ussdEvent(f).Body(), "ussd")
	f.Add(`{"order_id":null}`, "tpe")
	f.Add("[", "web")
	f.Fuzz(func(t *testing.T, body, channel string) {
		w := newFixture(t)
		response := w.Send(t, webEvent(t).SetHeader("channel", channel).SetRawBody(body))
		assertFuzzResponse(t, w, response)
		if response.Status == 201 {
			w.Send(t, webEvent(t).SetHeader("channel", channel).SetRawBody(body)).AssertRepeatOf(t, response)
		}
	})
}

// FuzzHeaders sends arbitrary routing headers.
func FuzzHeaders(f *testing.F) {
	f.Add("orange", "CI", "web", "fr")
	f.Add("ORANGE", "cd", "tpe", "é")
	f.Add("", "%00", "WEB", "f\n")
	f.Fuzz(func(t *testing.T, operator, country, channel, lang string) {
		w := newFixture(t)
		e := ussdEvent(t).SetHeader("mno-name", operator).SetHeader("country-code", country).SetHeader("channel", channel).SetHeader("lang", lang)
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
