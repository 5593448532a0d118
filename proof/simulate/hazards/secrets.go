package hazards

import (
	"slices"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
	"mobilegateway/shared/keyring"
)

// rings are the secrets with key rings.
var rings = []string{fixture.CallbackSecret, fixture.WebhookSecret, fixture.TokenSecret}

func planRotations(w *world.World, length time.Duration) {
	for range 1 + w.Tape.Choose("rotations", 3) {
		ring := tape.Draw(w.Tape, "ring", rings...)
		w.Kernel.At(w.DrawStart(length), "rotation", func() {
			if w.Secrets.Unreadable(time.Now(), ring) {
				return // a person cannot read it either
			}
			w.Logf("%s: a new key", ring)
			if err := addRingKey(w, ring); err != nil {
				w.Fail("add a key: %s", err)
			}
		})
	}
}

// addRingKey adds a key to a ring, as gatewayctl does: the public ring of the token keys is written first.
func addRingKey(w *world.World, ring string) error {
	current, _ := w.Secrets.Current(ring)
	random, now := w.Tape, time.Now()
	if ring != fixture.TokenSecret {
		next, err := keyring.AddKey(current, random, now)
		if err == nil {
			w.Secrets.Set(now, ring, next)
		}
		return err
	}
	public, _ := w.Secrets.Current(fixture.PublicSecret)
	next, err := keyring.Pair{Private: current, Public: public}.AddKey(random, now)
	if err == nil {
		w.Secrets.Set(now, fixture.PublicSecret, next.Public)
		w.Secrets.Set(now, fixture.TokenSecret, next.Private)
	}
	return err
}

// planTokenRotation changes the access token of every operator. The old one stays valid for an hour, or for a second.
func planTokenRotation(w *world.World, length time.Duration) {
	overlap := tape.Draw(w.Tape, "overlap of access tokens", time.Hour, time.Second)
	const next = "operator-access-token-2"
	w.Kernel.At(w.DrawStart(length), "token rotation", func() {
		w.Logf("operators: a new access token")
		changeAccounts(w, func(name string, p *platform) {
			for id := range p.Accounts {
				p.Accounts[id]["access_token"] = fixture.AccessToken(next, name)
			}
		})
		w.Operators.SetAccessTokens(next, fixture.OperatorToken)
		w.Kernel.At(time.Now().Add(overlap), "end of the old token", func() { w.Operators.SetAccessTokens(next) })
	})
}

func planUnreadableSecret(w *world.World, length time.Duration) {
	all := append(slices.Clone(rings), fixture.PublicSecret, fixture.OperatorSecret)
	broken := w.DrawWindow(length, 10*time.Minute, 3*time.Hour, 26*time.Hour)
	w.Secrets.SetUnreadable(tape.Draw(w.Tape, "secret", all...), broken)
}

// planRevokedSecret ends a merchant's client secret, or the key of all tokens, while the merchant uses it.
func planRevokedSecret(w *world.World, length time.Duration) {
	s, at := tape.Draw(w.Tape, "shop", w.Merchants.Shops...), w.DrawStart(length).Add(time.Minute)
	revoke := tape.Draw(w.Tape, "revoked secret", w.Engineers.EndClientSecret, w.Engineers.RevokeTokenKey)
	w.Engineers.At(at, "revocation", func(i *deployment.Instance) { revoke(s, i) })
	for _, wait := range []time.Duration{-time.Minute, -30 * time.Second, 0, 30 * time.Second, 4 * time.Minute} {
		w.Kernel.At(at.Add(wait), "token request", func() { w.Merchants.RequestToken(s) })
	}
	for number := range 2 {
		o := w.Merchants.Add(s, deployment.Charge, 10*extraOrders+number)
		o.Start = at.Add(time.Duration(3+number) * time.Minute)
		w.Merchants.Schedule(o, "order")
	}
}
