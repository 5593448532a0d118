package pay_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
)

// FuzzBody sends arbitrary bodies on each channel: never 5xx, never a panic, and nothing is stored but for what was paid.
func FuzzBody(f *testing.F) {
	f.Add(web(f).Body(), "web")
	f.Add(ussd(f).Body(), "ussd")
	f.Add(`{"order_id":null}`, "tpe")
	f.Add("[", "web")
	f.Fuzz(func(t *testing.T, body, channel string) {
		w := shop(t)
		answer := w.Do(t, web(t).Header("channel", channel).Raw(body))
		checkFuzzed(t, w, answer)
		if answer.Status == 201 {
			w.Do(t, web(t).Header("channel", channel).Raw(body)).Replays(t, answer)
		}
	})
}

// FuzzHeaders sends arbitrary routing headers.
func FuzzHeaders(f *testing.F) {
	f.Add("orange", "CI", "web", "fr")
	f.Add("ORANGE", "cd", "tpe", "é")
	f.Add("", "%00", "WEB", "f\n")
	f.Fuzz(func(t *testing.T, operator, country, channel, lang string) {
		w := shop(t)
		e := ussd(t).Header("mno-name", operator).Header("country-code", country).Header("channel", channel).Header("lang", lang)
		checkFuzzed(t, w, w.Do(t, e))
	})
}

func checkFuzzed(t *testing.T, w *operationtest.World, answer operationtest.Answer) {
	t.Helper()
	switch {
	case answer.Status == 201:
		w.Counts(t, 1, 0, 1, 1)
	case answer.Status >= 500 || answer.Status < 400:
		t.Errorf("%d %s", answer.Status, answer.Body)
	default:
		if _, ok := answer.Exception(); !ok {
			t.Errorf("not an error of the API: %s", answer.Body)
		}
		w.Untouched(t)
	}
}
