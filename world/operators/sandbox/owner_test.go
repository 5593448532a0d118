package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// newOwnedSandbox returns a sandbox as it is deployed: with tokens for two merchants, and one without a merchant.
func newOwnedSandbox(t *testing.T) *testSandbox {
	t.Helper()
	return newTestSandbox(t, func(c *Config) {
		c.ControlTokens = []string{"control"}
		c.TestsTokens = []TestsToken{{"ShopA", "a"}, {"ShopA", "a before"}, {"ShopB", "b"}, {"", "plain"}}
	})
}

// call sends a call with a token, and returns the status and the decoded body.
func (r *testSandbox) call(token, call, body string) (status int, decoded map[string]any) {
	r.Helper()
	method, path, _ := strings.Cut(call, " ")
	response := r.do(method, path, body, map[string]string{"Authorization": "Bearer " + token})
	_ = json.Unmarshal([]byte(response.body), &decoded) // a list, or nothing, leaves nil
	return response.status, decoded
}

func TestPINsBelongToTheirMerchant(t *testing.T) {
	r := newOwnedSandbox(t)
	status, _ := r.call("a", "POST /sandbox/v1/tests", `{"order_id":"ShopB_1"}`)
	equal(t, "a PIN for another merchant's order", status, 400)
	status, issued := r.call("a", "POST /sandbox/v1/tests", `{"msisdn":"+2250700002000"}`)
	equal(t, "a PIN for the own merchant", status, 200)
	code := fmt.Sprint(issued["pin"])
	foreign, own := r.payWeb("ShopB_1", ""), r.payWeb("ShopA_1", "")
	for range maxWrongPINs { // on another merchant's page, with the PIN's number
		equal(t, "another merchant's page", r.confirm(foreign.path(), "+2250700002000", code).status, 403)
	}
	equal(t, "the own page, after them", r.confirm(own.path(), "+2250700002000", code).status, 303)
	r.payWeb("ShopAB_1", "")
	_, issued = r.call("a before", "POST /sandbox/v1/tests", `{"msisdn":"+2250700002000"}`)
	similar := r.payWeb("ShopAB_2", "")
	equal(t, "the page of a merchant with a longer name",
		r.confirm(similar.path(), "+2250700002000", fmt.Sprint(issued["pin"])).status, 403)
	_, issued = r.call("plain", "POST /sandbox/v1/tests", "")
	equal(t, "a page with a PIN of no merchant",
		r.confirm(similar.path(), fmt.Sprint(issued["msisdn"]), fmt.Sprint(issued["pin"])).status, 303)
}

func TestPINsPerMerchantAreLimited(t *testing.T) {
	r := newOwnedSandbox(t)
	for i := range maxOwnedPINs {
		token := []string{"a", "a before"}[i%2]
		if status, _ := r.call(token, "POST /sandbox/v1/tests", ""); status != 200 {
			t.Fatalf("PIN %d has the status %d", i+1, status)
		}
	}
	for token, want := range map[string]int{"a": 409, "a before": 409, "b": 200, "plain": 200, "control": 200} {
		status, _ := r.call(token, "POST /sandbox/v1/tests", "")
		equal(t, "one more PIN with "+token, status, want)
	}
}

func TestSlotsBelongToTheirMerchant(t *testing.T) {
	r := newOwnedSandbox(t)
	status, booked := r.call("a", "POST /sandbox/v1/slots", "")
	equal(t, "a slot of the token's merchant", []any{status, booked["merchant"]}, []any{201, "ShopA"})
	id := fmt.Sprint(booked["id"])
	status, _ = r.call("a", "POST /sandbox/v1/slots", `{"merchant":"ShopB"}`)
	equal(t, "a slot in another merchant's name", status, 400)
	status, refused := r.call("b", "POST /sandbox/v1/slots", "")
	equal(t, "a slot at the same time", status, 409)
	equal(t, "the other slot's id is shown", strings.Contains(fmt.Sprint(refused["error"]), id), false)
	mayRead := map[string]bool{"a": true, "a before": true, "control": true, "b": false, "plain": false}
	for token, want := range mayRead {
		list := r.do("GET", "/sandbox/v1/slots", "", map[string]string{"Authorization": "Bearer " + token}).body
		equal(t, "the list shows the slot to "+token, strings.Contains(list, id), want)
		equal(t, "the list shows the merchant to "+token, strings.Contains(list, "ShopA"), want)
		equal(t, "the list shows the time to "+token, strings.Contains(list, "starts_at"), true)
	}
	for _, token := range []string{"b", "plain"} {
		status, _ = r.call(token, "DELETE /sandbox/v1/slots/"+id, "")
		equal(t, "the slot is freed by "+token, status, 404)
	}
	status, _ = r.call("a before", "DELETE /sandbox/v1/slots/"+id, "")
	equal(t, "the slot is freed by its merchant", status, 204)
}

func TestSlotsPerMerchantAreLimited(t *testing.T) {
	r := newOwnedSandbox(t)
	now := r.clock.Now()
	slotOf := func(day int) string {
		at := now.AddDate(0, 0, day)
		return fmt.Sprintf(`{"merchant":"ShopA","starts_at":%q}`, at.Format("2006-01-02T15:04:05Z"))
	}
	for day := range maxOwnedSlots {
		status, _ := r.call("a", "POST /sandbox/v1/slots", slotOf(day+1))
		equal(t, "a slot", status, 201)
	}
	status, _ := r.call("a", "POST /sandbox/v1/slots", slotOf(30))
	equal(t, "a slot too many", status, 409)
	status, _ = r.call("plain", "POST /sandbox/v1/slots", slotOf(91))
	equal(t, "a slot too late", status, 400)
	status, _ = r.call("control", "POST /sandbox/v1/slots", slotOf(91))
	equal(t, "a slot of the control port", status, 201)
}
