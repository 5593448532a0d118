// Package drivers lists the operators' drivers in one map, for the functions and for gatewayctl, so that both use the
// same protocols.
//
// It decides nothing. Its invariant: every row of the operator table finds its driver here.
package drivers

import (
	"context"
	"net/http"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/flouci"
	"mobilegateway/shared/operator/mtn"
	"mobilegateway/shared/operator/orangecm"
	"mobilegateway/shared/operator/orangesms"
	"mobilegateway/shared/operator/orangewebpay"
	"mobilegateway/shared/operator/pawapay"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/operator/wave"
	"mobilegateway/shared/secret"
)

// Outside is what drivers reach outside their own memory.
type Outside struct {
	// Transport sends requests; nil for connections of the drivers' own.
	Transport http.RoundTripper
	Now       func() time.Time
	// Await waits for the token exchange of another goroutine; nil for pause.Until.
	Await func(ctx context.Context, done <-chan struct{}) error
	// AcceptsPrivateNetworks lets the drivers reach operators at http addresses of private networks, in a function that
	// is not deployed (decision "outgoing-addresses").
	AcceptsPrivateNetworks bool
}

// NewDirectory returns the drivers of all platforms over their own connections. secrets has their credentials
// (OPERATOR_CREDENTIALS_SECRET).
func NewDirectory(
	secrets secret.Reader, transport http.RoundTripper, now func() time.Time,
) *operator.DriverDirectory {
	return New(secrets, Outside{Transport: transport, Now: now})
}

// New returns the drivers of all platforms by their names in the rows of the operator table. A new driver is a line.
// The driver of the specification's own protocol has its name from before its package had one.
func New(secrets secret.Reader, outside Outside) *operator.DriverDirectory {
	checkBaseURL := operator.CheckBaseURL
	if outside.AcceptsPrivateNetworks {
		checkBaseURL = operator.CheckNearBaseURL
	}
	accounts := credentials.NewReader(secrets, outside.Now, checkBaseURL)
	client, tokens := upstream.NewClient(outside.Transport), upstream.NewTokens(outside.Now, outside.Await)
	return operator.NewDriverDirectory(map[string]operator.Driver{
		"gateway":      carrierapi.New(accounts, client, outside.Now),
		"mtn":          mtn.New(accounts, client, tokens),
		"pawapay":      pawapay.New(accounts, client),
		"orangecm":     orangecm.New(accounts, client, tokens),
		"orangesms":    orangesms.New(accounts, client, tokens),
		"orangewebpay": orangewebpay.New(accounts, client, tokens),
		"wave":         wave.New(accounts, client, outside.Now),
		"flouci":       flouci.New(accounts, client, outside.Now),
	}, accounts)
}
