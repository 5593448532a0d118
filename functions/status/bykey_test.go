package status_test

import (
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// keyEvent is a lookup by key, with each query parameter once.
func keyEvent(t testing.TB, query map[string]string) *operationtest.Event {
	t.Helper()
	const resource = "/payment/v1/{endUserId}/transactions/amount"
	return chargeEvent(t).SetField("resource", resource).SetField("queryStringParameters", query)
}

// storeCharge stores a charge of DemoShop under its own key, with its reference if it is bound.
func storeCharge(t testing.TB, w *operationtest.Fixture, correlator string, bound bool) *ledger.Entry {
	t.Helper()
	e := chargeInState(w, ledger.Unknown)
	e.ID, e.Request.Correlator = ledger.ChargeID(e.Merchant.ID, correlator, e.Request.ReferenceCode), correlator
	w.Ledger.Overwrite(e)
	if bound {
		if owner, err := w.Ledger.ClaimReference(t.Context(), e); err != nil || owner != e.ID {
			t.Fatal(owner, err)
		}
	}
	return e
}

// decision "charge-by-key".
func TestChargeByKey(t *testing.T) {
	byCorrelator := map[string]string{"clientCorrelator": "c-1001"}
	byReference := map[string]string{"referenceCode": "REF-1001"}
	for name, c := range map[string]struct {
		correlator string
		bound      bool
		query      map[string]string
		reads      int
	}{
		"by its correlator":                      {"c-1001", true, byCorrelator, 1},
		"by its reference":                       {"c-1001", true, byReference, 2},
		"by its reference, without a correlator": {"", true, byReference, 2},
		"it died before its reference was bound": {"", false, byReference, 2},
		"the other parameter is empty: it counts none": {"c-1001", true, map[string]string{
			"clientCorrelator": "c-1001", "referenceCode": ""}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			e := storeCharge(t, w, c.correlator, c.bound)
			reads := w.Ledger.CallCount(storetest.Get)
			response := w.Send(t, keyEvent(t, c.query)).AssertStatus(t, 200)
			response.AssertText(t, "amountTransaction.transactionOperationStatus", "Processing")
			response.AssertText(t, "amountTransaction.serverReferenceCode", e.ID)
			if made := w.Ledger.CallCount(storetest.Get) - reads; made != c.reads {
				t.Errorf("%d reads of entries, want %d", made, c.reads)
			}
			e.State, e.Response.Status, e.Response.Body = ledger.Refused, 400, []byte(
				`{"requestError":{"serviceException":{"messageId":"SVC0270","text":"x","variables":[]}}}`)
			w.Ledger.Overwrite(e)
			w.Send(t, keyEvent(t, c.query)).AssertError(t, 400, "SVC0270")
		})
	}
	t.Run("nothing, or another merchant's", func(t *testing.T) {
		w := newFixture(t)
		w.Send(t, keyEvent(t, byCorrelator)).AssertError(t, 404, "SVC0002", "clientCorrelator")
		w.Send(t, keyEvent(t, byReference)).AssertError(t, 404, "SVC0002", "referenceCode")
		e := storeCharge(t, w, "c-1001", true)
		e.Merchant.ID = operationtest.OtherProfile().ID
		w.Ledger.Overwrite(e)
		w.Send(t, keyEvent(t, byCorrelator)).AssertError(t, 404, "SVC0002", "clientCorrelator")
	})
	t.Run("without exactly one: no route, before the token is read", func(t *testing.T) {
		w := newFixture(t)
		storeCharge(t, w, "c-1001", true)
		for _, query := range []map[string]string{
			nil, {}, {"clientCorrelator": ""}, {"clientcorrelator": "c-1001"}, {"order_id": "x"},
			{"clientCorrelator": "c-1001", "referenceCode": "REF-1001"},
		} {
			w.Send(t, keyEvent(t, query)).AssertError(t, 404, "900906")
			w.Send(t, keyEvent(t, query).SetHeader("Authorization")).AssertError(t, 404, "900906")
		}
		twice := map[string][]string{"clientCorrelator": {"c-1000", "c-1001"}}
		w.Send(t, keyEvent(t, byCorrelator).SetField("multiValueQueryStringParameters", twice)).
			AssertError(t, 404, "900906")
		w.Send(t, keyEvent(t, byCorrelator).SetHeader("Authorization")).AssertError(t, 401, "900902")
		w.Send(t, keyEvent(t, byCorrelator).SetPathParameter("endUserId", "tel")).AssertError(t, 404, "900906")
	})
	t.Run("the store fails", func(t *testing.T) {
		w := newFixture(t)
		w.Ledger.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
		w.Send(t, keyEvent(t, byReference)).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
	})
}
