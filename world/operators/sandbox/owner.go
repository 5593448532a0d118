package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"mobilegateway/world/operators/kit"
)

// Limits of one tests token or merchant. The control tokens, and a sandbox without any, have none.
const (
	maxOwnedPINs  = 500 // PINs of the last day
	maxOwnedSlots = 10  // slots that have not ended
)

// TestsToken opens tests and slots for one merchant, who owns the PINs and slots that it makes.
type TestsToken struct {
	// Merchant is the name with which the merchant's order_ids begin. Without it the token itself is the owner,
	// and its PINs confirm the payments of every merchant.
	Merchant string
	Token    string
}

// owner names whose PINs and slots a token makes. It does not reveal the token.
func (t TestsToken) owner() string {
	if t.Merchant != "" {
		return t.Merchant
	}
	sum := sha256.Sum256([]byte(t.Token))
	return "token-" + hex.EncodeToString(sum[:4])
}

// testsCaller is who calls tests and slots. The zero value may do everything.
type testsCaller struct{ Owner, Merchant string }

// callerOf returns whose tests token a request has: the zero value for a control token, or without any.
func (s *Sandbox) callerOf(c *kit.Call) testsCaller {
	token := bearerToken(c)
	isToken := func(t TestsToken) bool { return containsToken([]string{t.Token}, token) }
	if i := slices.IndexFunc(s.config.TestsTokens, isToken); i >= 0 {
		return testsCaller{s.config.TestsTokens[i].owner(), s.config.TestsTokens[i].Merchant}
	}
	return testsCaller{}
}

// mayUse reports whether a caller may see and change what an owner has.
func (c testsCaller) mayUse(owner string) bool { return c.Owner == "" || c.Owner == owner }

// isOrderOf reports whether an order_id is a merchant's. Every order_id is one of the merchant "".
func isOrderOf(merchant, orderID string) bool {
	return merchant == "" || strings.HasPrefix(orderID, merchant+"_")
}
