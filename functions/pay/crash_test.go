package pay_test

import (
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
)

// newSuite is the suite of one channel.
func newSuite(channel string) operationtest.Suite {
	event := func(t testing.TB) *operationtest.Event { return loadEvent(t, channel) }
	return operationtest.Suite{
		Platform: "orange", NewFixture: newFixture, NewEvent: event, Kind: ledger.Payment,
		Effect: expectedEffect, Replays: true,
		OtherEvent: func(t testing.TB) *operationtest.Event { return event(t).SetBodyPart("amount", 1) },
		Key:        []string{order, "order_id"}, Writes: []string{"Insert", "Replace"},
	}
}

var webSuite = newSuite("web")

// forEachChannel runs a check on the web channel and on a terminal's.
func forEachChannel(t *testing.T, check func(*testing.T, string)) {
	t.Helper()
	for _, channel := range []string{"web", "ussd"} {
		t.Run(channel, func(t *testing.T) { check(t, channel) })
	}
}

// decision "in-flight".
func TestInFlight(t *testing.T) {
	forEachChannel(t, func(t *testing.T, channel string) { newSuite(channel).CheckInFlight(t, nil) })
}

func TestParallel(t *testing.T) {
	forEachChannel(t, func(t *testing.T, channel string) { newSuite(channel).CheckParallel(t) })
}

func TestCrashes(t *testing.T) {
	forEachChannel(t, func(t *testing.T, channel string) { newSuite(channel).CheckCrashes(t) })
}
