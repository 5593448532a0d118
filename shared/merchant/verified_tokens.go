package merchant

import (
	"bytes"
	"sync"
	"time"

	"mobilegateway/shared/keyring"
)

const (
	maxVerifiedTokens   = 1024
	verifiedTokenMaxAge = time.Minute
)

// verifiedTokens remembers signatures that were verified, because verifying one takes longer than all else that
// authenticates a token. It remembers nothing about the profile, the expiry or the ring: the caller checks these each
// time. It is safe for concurrent use.
type verifiedTokens struct {
	mutex sync.Mutex
	known map[string]verification // by the token
}

// verification is a verified signature.
type verification struct {
	publicKey []byte
	at        time.Time
}

// verify reports whether the key verifies the token's signature. text is the whole token.
func (v *verifiedTokens) verify(text string, token shortLivedToken, key keyring.Key, now time.Time) bool {
	now = now.Round(0)
	v.mutex.Lock()
	known, found := v.known[text]
	v.mutex.Unlock()
	age := now.Sub(known.at)
	if found && age >= 0 && age < verifiedTokenMaxAge && bytes.Equal(known.publicKey, key.Value) {
		return true
	}
	if !token.verify(key) {
		return false
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.known == nil || len(v.known) >= maxVerifiedTokens {
		v.known = map[string]verification{}
	}
	v.known[text] = verification{key.Value, now}
	return true
}
