package callback

import (
	"slices"
	"testing"
	"time"

	"mobilegateway/shared/keyring"
)

// decision "key-rings": a function that cannot renew its ring signs with an old key. The entry names it, so that it
// verifies at any time, but not once it is revoked.
func TestNamedKeyVerifiesAtAnyTime(t *testing.T) {
	at := start.Add(24 * time.Hour)
	v := &fakeSecretSource{text: ringText(t, start, start.Add(time.Hour), start.Add(2*time.Hour))}
	keys := newKeys(v, &at)
	entry := entryOf(at, at)
	for _, named := range [][]int{nil, {1}, {1, 2}} {
		entry.Route.CallbackKeys = named
		for number := 1; number <= 3; number++ {
			want := number == 3 || slices.Contains(named, number)
			if got, err := (Proof{keys, number}).Covers(t.Context(), entry); got != want || err != nil {
				t.Errorf("key %d for an entry of the keys %v: %v, %v, want %v", number, named, got, err, want)
			}
		}
	}
	text, err := keyring.RevokeKey(v.text, 1, at)
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := keyring.Parse(text)
	if err != nil || MayHaveSigned(revoked, 1, entry, life) || !MayHaveLost(revoked, entry, life) {
		t.Errorf("after the revocation of key 1 it verifies, or the entry does not count as lost: %v", err)
	}
}
