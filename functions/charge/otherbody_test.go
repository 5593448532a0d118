package charge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// decision "charge-repeat": the 504 of another body under the key of an unknown charge has a reason. It names the parts
// that differ, if they are stored.
func TestOtherBody(t *testing.T) {
	change := func(path, value string) func(*operationtest.Event) {
		return func(e *operationtest.Event) { e.SetBodyPart(path, value) }
	}
	for _, c := range []struct {
		name   string
		change func(*operationtest.Event)
		reason string
		parts  string
	}{
		{"the same request", func(*operationtest.Event) {}, "", ""},
		{"another amount", change(amount, "700"), "other-body", amount},
		{"the amount in another form", change(amount, "500.00"), "other-body", amount},
		{"another currency", func(e *operationtest.Event) {
			e.SetHeader("X-Operator-MCO", "OCM").SetBodyPart(currency, "XAF")
		}, "other-body", currency},
		{"another referenceCode", change(reference, "REF-2"), "other-body", reference},
		{"several parts", func(e *operationtest.Event) {
			e.SetBodyPart(reference, "REF-2").SetBodyPart(amount, "700")
		}, "other-body", amount + ", " + reference},
		{"a part that is not stored", change(description, "B"), "other-body", ""},
		{"another alias", func(e *operationtest.Event) { e.SetHeader("gw-alias", "other") }, "other-body", ""},
	} {
		t.Run("decision charge-repeat: "+c.name, func(t *testing.T) {
			w := suite.LoseFirst(t)
			w.Driver.SetBehaviours(operationtest.LoseResponse)
			before := w.Ledger.CallCount(storetest.Insert)
			event := newEvent(t)
			c.change(event)
			response := w.Send(t, event)
			response.AssertUnknown(t)
			got := [2]string{response.Header["X-Error-Reason"], response.Header["X-Error-Part"]}
			if diff := cmp.Diff([2]string{c.reason, c.parts}, got); diff != "" {
				t.Errorf("X-Error-Reason and X-Error-Part (-want +got):\n%s", diff)
			}
			if sent := len(w.Driver.Calls()) - 1; (sent != 0) != (c.reason == "") {
				t.Errorf("%d requests were sent to the operator", sent)
			}
			state := w.OnlyEntry(t, ledger.Charge).State
			if w.Ledger.CallCount(storetest.Insert) != before+1 || state != ledger.Unknown {
				t.Error("the charge is not the first one, still unknown")
			}
		})
	}
}
