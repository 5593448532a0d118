// Package drivers is the list of the operators' drivers: one map, for the functions and for gatewayctl alike, so that what
// is checked by hand is the protocol that is spoken.
//
// It decides nothing. Its invariant: every row of the operator table finds its driver here.
package drivers

import (
	"context"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/gateway"
	"mobilegateway/shared/secret"
)

// Secrets gives the operators' credentials to the drivers: *secret.Cache over OPERATOR_CREDENTIALS_SECRET.
type Secrets interface {
	// Get gives the credentials, as they are kept.
	Get(ctx context.Context) (secret.Value, error)
	// Refresh reads them anew, because what was kept did not do.
	Refresh(ctx context.Context) (secret.Value, error)
}

// NewDirectory is every operator with its driver. A new driver is a line.
func NewDirectory(secrets Secrets, now func() time.Time) *operator.DriverDirectory {
	return operator.NewDriverDirectory(map[string]operator.Driver{
		gateway.DriverName: gateway.New(secrets, now),
	})
}
