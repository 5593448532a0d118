package operationtest_test

import (
	"bytes"
	"math/rand"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/secret"
)

// revokeCallbackKey replaces the callback key of a fixture, as keys revoke --compromised does.
func revokeCallbackKey(t *testing.T, w *operationtest.Fixture) {
	t.Helper()
	random, now := rand.New(rand.NewSource(1)), w.Clock.Now()
	text := []byte(operationtest.RingSecret(keyring.Key{
		Number: 1, Value: bytes.Repeat([]byte{7}, keyring.KeySize), AddedAt: now.Add(-time.Hour),
	}))
	text, err := keyring.AddKey(text, random, now)
	if err == nil {
		text, err = keyring.RevokeKey(text, 1, now)
	}
	if err != nil {
		t.Fatal(err)
	}
	const cacheLifetime = 5 * time.Minute
	*w.CallbackKeys = *callback.New(
		keyring.NewRefreshingRing(secret.Static(text), cacheLifetime, w.Clock.Now), cacheLifetime)
}

// decision "key-rings": until the key that replaces a revoked one signs, a payment and an SMS whose key is new or
// released are 503, and nothing is written. A stored one has its response, and an unknown one is not sent again.
func TestNothingIsSentUntilAKeySigns(t *testing.T) {
	const web, ussd = "pay/testdata/event-web.json", "pay/testdata/event-ussd.json"
	const message = "sms/testdata/event-encoded.json"
	refuse := operationtest.RefuseFinally("POL1000")
	for name, c := range map[string]struct {
		event  string
		first  operationtest.Behaviour // of the operator before the revocation
		before int                     // the status before the revocation, 0 for no request
		other  string                  // the part that the repeat changes; "" for none
		want   int
	}{
		"pay, new key":               {web, nil, 0, "", 503},
		"pay, released":              {web, operationtest.RespondUnavailable, 503, "", 503},
		"pay, released credential":   {web, operationtest.RejectCredentials, 502, "", 503},
		"pay, stored":                {web, operationtest.Succeed, 201, "", 201},
		"pay, stored refusal":        {web, refuse, 403, "", 403},
		"pay, another body":          {web, operationtest.Succeed, 201, "state", 409},
		"pay, unknown on the web":    {web, operationtest.LoseResponse, 504, "", 504},
		"pay, unknown on a terminal": {ussd, operationtest.LoseResponse, 201, "", 201},
		"pay, lapsed":                {web, operationtest.PanicAfter, 500, "", 504},
		"sms, new key":               {message, nil, 0, "", 503},
		"sms, released":              {message, operationtest.RespondUnavailable, 503, "", 503},
		"sms, stored":                {message, operationtest.Succeed, 201, "", 409},
		"sms, unknown":               {message, operationtest.LoseResponse, 504, "", 504},
		"sms, lapsed":                {message, operationtest.PanicAfter, 500, "", 504},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			event := func() *operationtest.Event { return operationtest.LoadEvent(t, "../../../functions/"+c.event) }
			if c.before != 0 {
				w.Driver.SetBehaviours(c.first)
				w.Send(t, event()).AssertStatus(t, c.before)
			}
			revokeCallbackKey(t, w)
			w.Clock.Advance(keyring.SigningDelay - time.Second)
			calls, writes := len(w.Driver.Calls()), w.Ledger.WriteCount()
			repeat := event()
			if c.other != "" {
				repeat.SetBodyPart(c.other, "another")
			}
			response := w.Send(t, repeat).AssertStatus(t, c.want)
			if c.want == 503 {
				response.AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
				response.AssertHeader(t, "Retry-After", "5")
			}
			if len(w.Driver.Calls()) != calls {
				t.Errorf("%d calls of the operator, want none", len(w.Driver.Calls())-calls)
			}
			if written := w.Ledger.WriteCount() - writes; written != 0 && c.want == 503 {
				t.Errorf("%d writes, want none", written)
			}
			w.Clock.Advance(time.Second)
			w.Driver.SetBehaviours(operationtest.Succeed)
			if c.want == 503 || c.want == 504 {
				w.Send(t, event()).AssertStatus(t, 201)
				kind := ledger.Payment
				if c.event == message {
					kind = ledger.SMS
				}
				if keys := w.OnlyEntry(t, kind).Route.CallbackKeys; keys[len(keys)-1] != 2 {
					t.Errorf("the address was signed with the keys %v, want 2", keys)
				}
			}
		})
	}
}
