// Package operators runs the operators: models that speak the gateway's own protocol, and the stubs of the real
// platforms.
package operators

import (
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// Observer learns what operators get and do.
type Observer interface {
	// Confide receives texts that no log line may contain, and no body of another party.
	Confide(texts ...string)
	// Received receives the body of each request to a model.
	Received(operatorName string, body []byte)
	// Called receives each call with an effect, and its response. OtherContent receives one under a key that has come
	// with another content.
	Called(kind, key string, response outside.Exchange)
	// OtherAccount receives an entry that was sent by another account than its own.
	OtherAccount(e *ledger.Entry, account string)
	OtherContent(kind, key string)
	// Applied receives each effect.
	Applied(operatorName string, effect outside.Effect)
	// CalledBack receives the status of the response to a callback.
	CalledBack(callback outside.Callback, status int)
	// PlatformCalledBack receives the status of the response to a platform's callback.
	PlatformCalledBack(report Report, status int)
	// LookedUp receives each lookup at a platform, with its account.
	LookedUp(platform, account string)
	// TokenRefused receives a token that a platform refused although nothing fails.
	TokenRefused(platform, path, response string)
}

// Report is a callback of a platform, or of an attacker.
type Report struct {
	IsForged  bool
	IsForeign bool // another account reports on our payment
	IsOld     bool // it is signed, and may be refused because of its age
	IsReceipt bool
	IsUnread  bool // no driver can read it, or it reports no certain status
	// Payment is the one that it is about, nil for none, and Status is what it reports.
	Payment *ledger.Entry
	Status  ledger.Status
	// Took is how long its response took.
	Took time.Duration
}

// gateway is the gateway, as operators meet it.
type gateway struct {
	*deployment.Deployment
	observer Observer
}
