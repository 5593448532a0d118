package operatortest

import (
	"maps"
	"testing"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
)

// operations are the sample calls of the platform, with the suite's data of the driver.
func (s Suite) operations(account string, mayRepeat bool) []Operation {
	return operations(s.Platform, account, s.DriverData, mayRepeat)
}

func (s Suite) statusCall() operator.StatusCall {
	call := SampleStatus(s.Platform, "")
	call.Channel, call.DriverData = rowOf(s.Platform).Channels[0], s.DriverData
	return call
}

// stub starts a stub whose requests are the business requests.
func (s Suite) stub(t *testing.T, responders ...Responder) *StubOperator {
	stub := NewStubOperator(t, responders...)
	stub.preparatory = s.Preparatory
	return stub
}

// startTime is the time of all calls.
func startTime() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) }

// newDriver makes the platform's driver with its account at a stub.
func (s Suite) newDriver(t *testing.T, stub *StubOperator) operator.Driver {
	t.Helper()
	return s.newDriverRenewing(t, stub, nil)
}

// newDriverRenewing makes a driver whose account has other fields after a refresh of the secret.
func (s Suite) newDriverRenewing(t *testing.T, stub *StubOperator, renewed map[string]any) operator.Driver {
	t.Helper()
	fields := maps.Clone(s.Account)
	fields["base_url"] = stub.URL
	secret := &RenewedSecret{Value: Secret(s.Platform, "a1", fields)}
	maps.Copy(fields, renewed)
	secret.Renewed = Secret(s.Platform, "a1", fields)
	directory := drivers.New(secret, drivers.Outside{Now: startTime})
	driver, _, found := directory.Driver(s.Platform)
	if !found {
		t.Fatalf("the directory has no driver for %s", s.Platform)
	}
	return driver
}

// lookUp makes the lookup of a driver with one.
func (s Suite) lookUp(t *testing.T, stub *StubOperator, call operator.StatusCall) operator.StatusResponse {
	t.Helper()
	reader, ok := s.newDriver(t, stub).(operator.StatusLookup)
	if !ok {
		t.Fatal("the driver has no lookup")
	}
	return reader.LookUpPayment(t.Context(), call)
}
