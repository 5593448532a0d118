package outside

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sendAll sends the callbacks of a month, all acknowledged, and describes them: "2s successful".
func (b *bench) sendAll() []string {
	var lines []string
	for {
		next, found := b.Next()
		if !found || next.After(start.Add(month)) {
			return lines
		}
		for _, callback := range b.Due(next) {
			line := fmt.Sprint(next.Sub(start), " ", callback.Status)
			if callback.Content != NoFault {
				line += ", " + string(callback.Content)
			}
			lines = append(lines, line)
			b.Report(next, callback, http.StatusOK)
		}
	}
}

// callbackFaults returns a fault of the payer or of the callbacks that is the choice 1 of its group.
func callbackFaults(fault Fault) *Faults {
	for _, group := range []Group{Payers, Receipts, CallbackTimes, CallbackContents} {
		if slices.Contains(FaultsOf(group), fault) {
			return only(group, fault)
		}
	}
	return &Faults{}
}

// callbacksOf are the callbacks of a call with a fault of the payer or of the callbacks.
func callbacksOf(t *testing.T, call driverCall, fault Fault, choices script) []string {
	t.Helper()
	b := newBench(t, callbackFaults(fault), choices)
	b.OnCall = func(_, _ string, response Exchange) {
		if (response.Delay > 0) != (fault == CallbackEarly) {
			t.Errorf("%s: the response is delayed by %s", fault, response.Delay)
		}
	}
	call.send(t.Context(), b)
	return b.sendAll()
}

func TestPaymentCallbacks(t *testing.T) {
	for fault, want := range map[Fault][]string{
		NoFault:               {"2s successful"},
		CallbackNever:         nil,
		CallbackLate:          {"10m2s successful"},
		CallbackEarly:         {"0s successful"},
		CallbackTwice:         {"2s successful", "2s successful"},
		CallbackReordered:     {"2s successful", "3s pending"},
		CallbackContradicting: {"2s successful", "12s failed"},
		CallbackForged:        {"1s failed, forged callback", "2s successful"},
		CallbackWrongAmount:   {"2s successful, callback with a wrong amount"},
		CallbackWrongToken:    {"2s successful, callback with a wrong notif_token"},
		CallbackGarbage:       {"2s successful, callback without JSON"},
		PayerCancels:          {"2s cancelled"},
		PayerInstant:          {"0s successful"},
		PayerNever:            nil,
		LieReversed:           {"2s successful", "12s failed"},
	} {
		if diff := cmp.Diff(want, callbacksOf(t, payOn("web"), fault, everyGroup())); diff != "" {
			t.Errorf("%s: %s", fault, diff)
		}
	}
	choices := everyGroup()
	choices["operator: order of the contradicting callback"] = 1
	early := callbacksOf(t, payOn("web"), CallbackContradicting, choices)
	if diff := cmp.Diff([]string{"1s failed", "2s successful"}, early); diff != "" {
		t.Errorf("contradicting, before the final status: %s", diff)
	}
}

func TestReceipts(t *testing.T) {
	for fault, want := range map[Fault][]string{
		NoFault:            {"0s DeliveredToNetwork", "1s DeliveredToTerminal"},
		ReceiptImpossible:  {"0s DeliveredToNetwork", "1s DeliveryImpossible"},
		ReceiptUncertain:   {"0s DeliveredToNetwork", "1s DeliveryUncertain"},
		ReceiptNetworkOnly: {"0s DeliveredToNetwork"},
		CallbackNever:      nil,
		CallbackEarly:      {"0s DeliveredToNetwork", "0s DeliveredToTerminal"},
		CallbackReordered:  {"0s DeliveredToTerminal", "1s DeliveredToNetwork"},
		CallbackTwice: {
			"0s DeliveredToNetwork", "0s DeliveredToNetwork", "1s DeliveredToTerminal", "1s DeliveredToTerminal",
		},
	} {
		if diff := cmp.Diff(want, callbacksOf(t, sendSMS, fault, everyGroup())); diff != "" {
			t.Errorf("%s: %s", fault, diff)
		}
	}
}

// An authentic callback without a 2xx response is retried ten times with growing waits, a forged one never.
func TestCallbackRetries(t *testing.T) {
	for fault, want := range map[Fault]int{NoFault: 10, CallbackForged: 11} {
		b := newBench(t, callbackFaults(fault), everyGroup())
		payOn("web").send(t.Context(), b)
		sent := 0
		for next, found := b.Next(); found; next, found = b.Next() {
			for _, callback := range b.Due(next) {
				b.Report(next, callback, []int{0, http.StatusServiceUnavailable}[sent%2])
				sent++
			}
		}
		if sent != want {
			t.Errorf("%s: sent %d callbacks, want %d", fault, sent, want)
		}
	}
}

// Equal histories have equal hashes, also in another order of keys; each fault changes the hash.
func TestOperatorHash(t *testing.T) {
	hash := func(faults *Faults, calls ...driverCall) uint64 {
		b := newBench(t, faults, everyGroup())
		for _, call := range calls {
			call.send(t.Context(), b)
		}
		b.Due(b.now)
		return b.Hash()
	}
	pay := payOn("web")
	want := hash(&Faults{}, pay, sendSMS)
	if got := hash(&Faults{}, sendSMS, pay); got != want {
		t.Errorf("the order of the keys changes the hash: %x, %x", got, want)
	}
	for _, fault := range []Fault{PayerFails, PayerLate, CallbackForged, CallbackTwice} {
		if hash(callbackFaults(fault), pay, sendSMS) == want {
			t.Errorf("%s does not change the hash", fault)
		}
	}
	for _, fault := range []Fault{ResetBefore, FinalRefusal, HangLate, SlowAfter, LieUnavailable} {
		if hash(only(OperatorCalls, fault), pay, sendSMS) == want {
			t.Errorf("%s does not change the hash", fault)
		}
	}
}
