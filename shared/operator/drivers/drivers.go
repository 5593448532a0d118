// Package drivers lists the operators' drivers in one map, for the functions and for gatewayctl, so that both use the
// same protocols.
//
// It decides nothing. Its invariant: every row of the operator table finds its driver here.
package drivers

import (
	"net/http"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/gateway"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

// NewDirectory returns the drivers of all platforms. secrets has their credentials (OPERATOR_CREDENTIALS_SECRET).
// transport sends their requests; nil for connections of their own. A new driver is a line.
func NewDirectory(
	secrets secret.Reader, transport http.RoundTripper, now func() time.Time,
) *operator.DriverDirectory {
	accounts, client := credentials.NewReader(secrets, now), upstream.NewClient(transport)
	return operator.NewDriverDirectory(map[string]operator.Driver{
		gateway.DriverName: gateway.New(accounts, client, now),
	}, accounts)
}
