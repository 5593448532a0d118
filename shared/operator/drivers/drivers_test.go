package drivers_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
)

func TestEveryOperatorHasADriver(t *testing.T) {
	directory := drivers.NewDirectory(secret.Static(nil), nil, time.Now)
	for _, name := range operator.Platforms() {
		driver, row, found := directory.Driver(name)
		if !found {
			t.Errorf("%s: there is no driver %q", name, row.DriverName)
		}
		if _, prepares := driver.(operator.Preparer); prepares != row.Prepares {
			t.Errorf("%s: the row declares that it prepares: %v; the driver does: %v", name, row.Prepares, prepares)
		}
		e := &ledger.Entry{Operator: "x", Account: name + "/a", Material: "m"}
		if _, offered := directory.StatusLookup(e); offered != row.HasStatusLookup {
			t.Errorf("%s: the row declares a lookup: %v; the driver has one: %v", name, row.HasStatusLookup, offered)
		}
		if _, _, offered := directory.UserSMSSender(e); offered == row.SendsUserSMS {
			t.Errorf("%s: either the operator or its driver must send the payer's SMS", name)
		}
	}
}
