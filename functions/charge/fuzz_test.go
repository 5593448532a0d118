package charge_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
)

// FuzzBody sends arbitrary bodies: never 5xx, never a panic, and nothing is stored but for what was charged.
func FuzzBody(f *testing.F) {
	f.Add(event(f).Body())
	f.Add(event(f).Remove(correlator).Body())
	f.Add(`{"amountTransaction":{"paymentAmount":[]}}`)
	f.Add(`{"amountTransaction":null}`)
	f.Add("{")
	f.Fuzz(func(t *testing.T, body string) {
		w := shop(t)
		answer := w.Do(t, event(t).Raw(body))
		checkFuzzed(t, w, answer)
		if answer.Status == 201 {
			w.Do(t, event(t).Raw(body)).Replays(t, answer)
			w.Counts(t, 2, 1, 1, 1)
		}
	})
}

// FuzzPath sends arbitrary path parameters and headers.
func FuzzPath(f *testing.F) {
	f.Add("acr%3AOperatorAPIToken", "token", "alias", "OCI")
	f.Add("acr:OperatorAPIToken", "", "é", "OCD")
	f.Add("%zz", "a\nb", "%00", " ")
	f.Fuzz(func(t *testing.T, path, token, alias, mco string) {
		w := shop(t)
		e := event(t).Param("endUserId", path).Header("gw-token", token).Header("gw-alias", alias).Header("X-Operator-MCO", mco)
		checkFuzzed(t, w, w.Do(t, e))
	})
}

// checkFuzzed checks what holds of every answer where the operator always succeeds.
func checkFuzzed(t *testing.T, w *operationtest.World, answer operationtest.Answer) {
	t.Helper()
	switch {
	case answer.Status == 201:
		w.Counts(t, 1, 1, 1, 1)
	case answer.Status >= 500 || answer.Status < 400:
		t.Errorf("%d %s", answer.Status, answer.Body)
	default:
		if _, ok := answer.Exception(); !ok {
			t.Errorf("not an error of the API: %s", answer.Body)
		}
		w.Untouched(t)
	}
}
