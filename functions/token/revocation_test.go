package token

import (
	"testing"
	"time"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/keyring"
)

// decision "key-rings": no token is issued until the key that replaces a revoked one signs.
func TestAfterARevocation(t *testing.T) {
	for since, want := range map[time.Duration]int{
		0: 503, keyring.SigningDelay - time.Second: 503, keyring.SigningDelay: 200,
	} {
		d := newFixture(t)
		pair := keyring.Pair{Private: d.secrets.text, Public: d.public}
		next, err := pair.RevokeKey(1, merchanttest.SeededReader(3), start.Add(-since), 5*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		d.secrets.text = next.Private
		a := d.send(tokenCall{authorization: basicAuth(d.profile.ID, d.secret), body: grantForm})
		if a.Status != want {
			t.Errorf("response %d %s %v after the revocation, want %d", a.Status, a.Raw, since, want)
		}
		if want == 200 {
			continue
		}
		assertHeaders(t, a, map[string]string{"Retry-After": "5", "Cache-Control": "no-store", "WWW-Authenticate": ""})
		operationtest.Golden(t, "testdata/no-signing-key.json", []byte(a.Raw))
		wrong := d.send(tokenCall{authorization: basicAuth(d.profile.ID, otherSecretOf(t, d)), body: grantForm})
		if wrong.Status != 401 {
			t.Errorf("a wrong secret: %d %s, want 401", wrong.Status, wrong.Raw)
		}
	}
}
