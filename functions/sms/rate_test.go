package sms

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// The messages of an account stay within its platform's rate. A table that does not respond limits nothing.
func TestAccountRate(t *testing.T) {
	const burst = 5 // of orange-sms
	w := operationtest.New(t)
	o := &Operation{Pipeline: w.Pipeline}
	assertSent := func(name, account string, want, isFailure bool) {
		t.Helper()
		a := w.NewAttempt(&ledger.Entry{Key: ledger.Key{Kind: ledger.SMS, ID: "1"}, Operator: "orange"})
		a.Stored = a.Entry
		a.Stored.Account = account
		calls := len(w.Driver.Calls())
		result := o.send(t.Context(), a, w.Driver, operator.SMSCall{})
		if sent := len(w.Driver.Calls()) > calls; sent != want {
			t.Errorf("%s: sent %v, want %v", name, sent, want)
		}
		if !want && (result.Outcome != operator.NotApplied || result.Fault.Kind != fault.OperatorUnavailable) {
			t.Errorf("%s: %v, want it refused", name, result)
		}
		var line bytes.Buffer
		if err := a.Request.LogLine.Write(&line); err != nil {
			t.Fatal(err)
		}
		if counted := strings.Contains(line.String(), `"LimitStoreFailures":1`); counted != isFailure {
			t.Errorf("%s: failure counted %v, want %v", name, counted, isFailure)
		}
	}
	for range burst {
		assertSent("within the rate", "orange-sms/sn", true, false)
	}
	assertSent("one message too many", "orange-sms/sn", false, false)
	assertSent("another account", "orange-sms/ci", true, false)
	w.Clock.Advance(time.Second / burst)
	assertSent("after a fifth of a second", "orange-sms/sn", true, false)
	w.LimitStore.FailNext(storetest.UpdateRate, storetest.FailedBeforeApply)
	assertSent("a table that does not respond", "orange-sms/bf", true, true)
	calls := w.LimitStore.CallCount(storetest.UpdateRate)
	assertSent("a platform without a rate", "mtn-momo/ci", true, false)
	if w.LimitStore.CallCount(storetest.UpdateRate) != calls {
		t.Error("a platform without a rate costs a write")
	}
}
