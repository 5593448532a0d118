package pay_test

import "testing"

// FuzzBody sends arbitrary bodies on each channel: never a 5xx, never a panic, and only a payment leaves side effects.
func FuzzBody(f *testing.F) {
	f.Add(webEvent(f).Body(), "web")
	f.Add(ussdEvent(f).Body(), "ussd")
	f.Add(`{"order_id":null}`, "tpe")
	f.Add("[", "web")
	f.Fuzz(func(t *testing.T, body, channel string) {
		newSuite(channel).FuzzRequest(t, webEvent(t).SetHeader("channel", channel).SetRawBody(body))
	})
}

// FuzzHeaders sends arbitrary routing headers.
func FuzzHeaders(f *testing.F) {
	f.Add("orange", "CI", "web", "fr")
	f.Add("ORANGE", "cd", "tpe", "é")
	f.Add("", "%00", "WEB", "f\n")
	f.Fuzz(func(t *testing.T, operator, country, channel, lang string) {
		e := ussdEvent(t).SetHeader("mno-name", operator).SetHeader("country-code", country).
			SetHeader("channel", channel).SetHeader("lang", lang)
		newSuite(channel).FuzzRequest(t, e)
	})
}
