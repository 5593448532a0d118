package charge_test

import "testing"

// FuzzBody sends arbitrary bodies: never a 5xx, never a panic, and only a charge leaves side effects.
func FuzzBody(f *testing.F) {
	f.Add(newEvent(f).Body())
	f.Add(newEvent(f).RemoveBodyPart(correlator).Body())
	f.Add(`{"amountTransaction":{"paymentAmount":[]}}`)
	f.Add(`{"amountTransaction":null}`)
	f.Add("{")
	f.Fuzz(func(t *testing.T, body string) {
		suite.FuzzRequest(t, newEvent(t).SetRawBody(body))
	})
}

// FuzzPath sends arbitrary path parameters and headers.
func FuzzPath(f *testing.F) {
	f.Add("acr%3AOperatorAPIToken", "token", "alias", "OCI")
	f.Add("acr:OperatorAPIToken", "", "é", "OCD")
	f.Add("%zz", "a\nb", "%00", " ")
	f.Fuzz(func(t *testing.T, path, token, alias, mco string) {
		e := newEvent(t).SetPathParameter("endUserId", path).
			SetHeader("gw-token", token).SetHeader("gw-alias", alias).SetHeader("X-Operator-MCO", mco)
		suite.FuzzRequest(t, e)
	})
}
