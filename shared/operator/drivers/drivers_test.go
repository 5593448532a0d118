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
		_, row, found := directory.Driver(name)
		if !found {
			t.Errorf("%s: there is no driver %q", name, row.DriverName)
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
