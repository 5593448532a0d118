package sms_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
)

// FuzzBody sends arbitrary bodies: never 5xx, never a panic, and nothing is stored but for what was sent.
func FuzzBody(f *testing.F) {
	f.Add(event(f).Body())
	f.Add(event(f).Remove(receipt).Body())
	f.Add(`{"outboundSMSMessageRequest":{"address":[null]}}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, body string) {
		w := shop(t)
		answer := w.Do(t, event(t).Raw(body))
		checkFuzzed(t, w, answer)
		if answer.Status == 201 {
			w.Do(t, event(t).Raw(body)).Succeeds(t, 409)
		}
	})
}

// FuzzPath sends arbitrary sender addresses in path and body, and arbitrary countries.
func FuzzPath(f *testing.F) {
	f.Add("tel%3A%2B2250707", "tel:+2250707", "OCI", "ise2")
	f.Add("tel:+2250707", "tel:+225 0707", "OCD", "é")
	f.Add("%", "%00", "", "\n")
	f.Fuzz(func(t *testing.T, path, from, mco, ise2 string) {
		w := shop(t)
		e := event(t).Param("senderAddress", path).Set(sender, from).Header("X-Operator-MCO", mco).Header("X-Operator-ISE2", ise2)
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
