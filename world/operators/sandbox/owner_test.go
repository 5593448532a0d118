package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// newOwnedSandbox returns a sandbox as it is deployed: with tokens for two merchants, and one without a merchant.
func newOwnedSandbox(t *testing.T) *testSandbox {
	t.Helper()
	return newTestSandbox(t, func(c *Config) {
		c.ControlTokens = []string{"control"}
		c.TestsTokens = []TestsToken{{"ShopA", "a"}, {"ShopA", "a before"}, {"ShopB", "b"}, {"", "plain"}}
	})
}

// call makes a call with a token, which must have a status, and returns the decoded body.
func (r *testSandbox) call(rule, token, call, body string, want int) (decoded map[string]any) {
	r.Helper()
	method, path, _ := strings.Cut(call, " ")
	response := r.do(method, "/sandbox/v1"+path, body, map[string]string{"Authorization": "Bearer " + token})
	equal(r, rule, response.status, want)
	_ = json.Unmarshal([]byte(response.body), &decoded) // a list, or nothing, leaves nil
	return decoded
}

func TestPINsBelongToTheirMerchant(t *testing.T) {
	r := newOwnedSandbox(t)
	const number, body = "+2250700002000", `{"msisdn":"+2250700002000"}`
	r.call("a PIN for another merchant's order", "a", "POST /tests", `{"order_id":"ShopB_1"}`, 400)
	code := fmt.Sprint(r.call("a PIN for the own merchant", "a", "POST /tests", body, 200)["pin"])
	foreign, own := r.payWeb("ShopB_1", ""), r.payWeb("ShopA_1", "")
	for range maxWrongPINs { // on another merchant's page, with the PIN's number
		equal(t, "another merchant's page", r.confirm(foreign.path(), number, code).status, 403)
	}
	equal(t, "the own page, after them", r.confirm(own.path(), number, code).status, 303)
	r.payWeb("ShopAB_1", "")
	issued := r.call("one more PIN", "a before", "POST /tests", body, 200)
	similar := r.payWeb("ShopAB_2", "")
	equal(t, "the page of a merchant with a longer name",
		r.confirm(similar.path(), number, fmt.Sprint(issued["pin"])).status, 403)
	issued = r.call("a PIN of no merchant", "plain", "POST /tests", "", 200)
	equal(t, "a page with a PIN of no merchant",
		r.confirm(similar.path(), fmt.Sprint(issued["msisdn"]), fmt.Sprint(issued["pin"])).status, 303)
}

func TestPINsPerMerchantAreLimited(t *testing.T) {
	r := newOwnedSandbox(t)
	for i := range maxOwnedPINs {
		r.call("a PIN", []string{"a", "a before"}[i%2], "POST /tests", "", 200)
	}
	for token, want := range map[string]int{"a": 409, "a before": 409, "b": 200, "plain": 200, "control": 200} {
		r.call("one more PIN with "+token, token, "POST /tests", "", want)
	}
}

func TestSlotsBelongToTheirMerchant(t *testing.T) {
	r := newOwnedSandbox(t)
	booked := r.call("a slot", "a", "POST /slots", "", 201)
	equal(t, "the slot's merchant", booked["merchant"], any("ShopA"))
	id := fmt.Sprint(booked["id"])
	r.call("a slot in another merchant's name", "a", "POST /slots", `{"merchant":"ShopB"}`, 400)
	refused := r.call("a slot at the same time", "b", "POST /slots", "", 409)
	equal(t, "the other slot's id is shown", strings.Contains(fmt.Sprint(refused["error"]), id), false)
	mayRead := map[string]bool{"a": true, "a before": true, "control": true, "b": false, "plain": false}
	for token, want := range mayRead {
		list := r.do("GET", "/sandbox/v1/slots", "", map[string]string{"Authorization": "Bearer " + token}).body
		equal(t, "the list shows the slot to "+token, strings.Contains(list, id), want)
		equal(t, "the list shows the merchant to "+token, strings.Contains(list, "ShopA"), want)
		equal(t, "the list shows the time to "+token, strings.Contains(list, "starts_at"), true)
	}
	r.call("another merchant frees the slot", "b", "DELETE /slots/"+id, "", 404)
	r.call("a token of no merchant frees the slot", "plain", "DELETE /slots/"+id, "", 404)
	r.call("its merchant frees the slot", "a before", "DELETE /slots/"+id, "", 204)
}

func TestSlotsPerMerchantAreLimited(t *testing.T) {
	r := newOwnedSandbox(t)
	slotOf := func(day int) string {
		return fmt.Sprintf(`{"merchant":"ShopA","starts_at":%q}`, r.clock.Now().AddDate(0, 0, day).Format(time.RFC3339))
	}
	for day := range maxOwnedSlots {
		r.call("a slot", "a", "POST /slots", slotOf(day+1), 201)
	}
	r.call("a slot too many", "a", "POST /slots", slotOf(30), 409)
	r.call("a slot too late", "plain", "POST /slots", slotOf(91), 400)
	r.call("a slot of the control port", "control", "POST /slots", slotOf(91), 201)
}
