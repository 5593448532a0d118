package sandbox

import (
	"strings"

	"mobilegateway/shared/ledger"
)

// The upstream key of a charge or an SMS is the merchant's name, a sign and the merchant's own key: "." before a
// clientCorrelator, "~" before a referenceCode, "!" before a hash of either (decision "upstream-key"). Names are letters
// and digits, so the first sign ends the name. An order_id stands as it is, for the purchaser's SMS too.

// splitKey cuts an upstream key; false where it has no name and sign in front.
func splitKey(key string) (name string, sign byte, ownKey string, ok bool) {
	i := strings.IndexAny(key, ".~!")
	if i <= 0 {
		return "", 0, "", false
	}
	for _, c := range key[:i] {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "", 0, "", false
		}
	}
	return key[:i], key[i], key[i+1:], true
}

// lookupForms are the texts under which a transaction is looked up: its key, and the merchant's own form where the key shows it.
func lookupForms(kind, key string) []string {
	_, sign, ownKey, ok := splitKey(key)
	if kind == kindPayment || !ok || sign == '!' || ownKey == "" {
		return []string{key}
	}
	return []string{key, ownKey}
}

func isHashedKey(kind, key string) bool {
	_, sign, _, ok := splitKey(key)
	return kind != kindPayment && ok && sign == '!'
}

// hashMatches reports whether a hashed key is the one of a merchant's own clientCorrelator or referenceCode, or of a
// full form that was too long to go up as it is.
func hashMatches(key, wanted string) bool {
	name, _, _, _ := splitKey(key)
	ownKey := wanted
	if prefix, _, rest, ok := splitKey(wanted); ok && prefix == name && rest != "" {
		ownKey = rest
	}
	for _, text := range []string{wanted, ownKey} {
		if ledger.UpstreamKey(name, text, "") == key || ledger.UpstreamKey(name, "", text) == key {
			return true
		}
	}
	return false
}

// matchesScriptKey reports whether a script's key, in either form, means an upstream key.
func matchesScriptKey(kind, key, wanted string) bool {
	for _, form := range lookupForms(kind, key) {
		if form == wanted {
			return true
		}
	}
	return isHashedKey(kind, key) && hashMatches(key, wanted)
}
