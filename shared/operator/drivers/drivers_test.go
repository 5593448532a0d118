package drivers_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
)

// none is no credentials.
type none struct{}

// Get implements drivers.Secrets.
func (none) Get(context.Context) (secret.Value, error) { return secret.Value{}, nil }

// Refresh implements drivers.Secrets.
func (none) Refresh(context.Context) (secret.Value, error) { return secret.Value{}, nil }

func TestEveryOperatorHasItsDriver(t *testing.T) {
	directory := drivers.Directory(none{}, time.Now)
	for _, name := range operator.Names() {
		_, row, found := directory.Driver(name)
		if !found {
			t.Errorf("%s: there is no driver %q", name, row.Driver)
		}
		if _, offered := directory.StatusReader(name); offered != row.StatusLookup {
			t.Errorf("%s: its row says %v of a status lookup, its driver %v", name, row.StatusLookup, offered)
		}
		if _, _, offered := directory.UserNotifier(name); offered == row.SendsUserSMS {
			t.Errorf("%s: nobody, or everybody, sends the purchaser's SMS", name)
		}
	}
}
