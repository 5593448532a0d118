package sms_test

import "testing"

// FuzzBody sends arbitrary bodies: never a 5xx, never a panic, and only a sent message leaves side effects.
func FuzzBody(f *testing.F) {
	f.Add(newEvent(f).Body())
	f.Add(newEvent(f).RemoveBodyPart(receipt).Body())
	f.Add(`{"outboundSMSMessageRequest":{"address":[null]}}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, body string) {
		suite.FuzzRequest(t, newEvent(t).SetRawBody(body))
	})
}

// FuzzPath sends arbitrary sender addresses in path and body, and arbitrary countries.
func FuzzPath(f *testing.F) {
	f.Add("tel%3A%2B2250707", "tel:+2250707", "OCI", "ise2")
	f.Add("tel:+2250707", "tel:+225 0707", "OCD", "é")
	f.Add("%", "%00", "", "\n")
	f.Fuzz(func(t *testing.T, path, from, mco, ise2 string) {
		e := newEvent(t).SetPathParameter("senderAddress", path).SetBodyPart(sender, from).
			SetHeader("X-Operator-MCO", mco).SetHeader("X-Operator-ISE2", ise2)
		suite.FuzzRequest(t, e)
	})
}
