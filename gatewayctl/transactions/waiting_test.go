package transactions_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// addOutage stores payments of several ages, and what is not waiting.
func addOutage(t *testing.T) *gatewayctltest.Tool {
	t.Helper()
	d, shop := gatewayctltest.NewShop(t)
	for i, age := range []time.Duration{
		30 * time.Second, 5 * time.Minute, 50 * time.Minute, 2 * time.Hour, 30 * time.Hour,
	} {
		d.AddPendingPayment(shop, i+1, d.Now.Add(-age), func(e *ledger.Entry) { e.Poll.At = d.Now.Add(age) })
	}
	d.AddDeliveredPayment(shop, 8, d.Now)
	d.AddUnknownCharge(shop, "c1")
	d.AddPendingPayment(shop, 9, d.Now, func(e *ledger.Entry) {
		e.Route.Operator, e.Route.Account = "mtn", "mtn-momo/ci"
	})
	return d
}

func TestUnknownWaiting(t *testing.T) {
	d := addOutage(t)
	now := d.Now
	want := transactions.WaitingView{
		Platform: "sandbox", Account: "a1", Kind: ledger.Payment, Waiting: 5, Minute: 1, TenMinutes: 1, Hour: 1, Day: 1,
		Older: 1, Oldest: now.Add(-30 * time.Hour), NextLookup: now.Add(30 * time.Second),
	}
	d.Equal("sandbox/a1", gatewayctltest.Query[[]transactions.WaitingView](d, "unknown waiting sandbox/a1"),
		[]transactions.WaitingView{want})
	d.ExpectCount("all accounts", "unknown waiting", 3)
	d.ExpectCount("a platform in capitals", "unknown waiting MTN-MoMo", 1)
	d.ExpectCount("another account", "unknown waiting sandbox/a2", 0)
}

// A lookup of all that waits applies each response. Its dry run calls no operator.
func TestUnknownLookup(t *testing.T) {
	d := addOutage(t)
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		w.Header().Set("Content-Type", "application/json")
		status := "successful"
		if strings.HasSuffix(r.URL.Path, "_4") {
			status = "pending"
		}
		//nolint:gosec // no browser reads it
		_, _ = w.Write([]byte(`{"order-id":"` + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:] +
			`","amount":"1000","currency":"XOF","status":"` + status + `"}`))
	}))
	t.Cleanup(server.Close)
	d.UseAccount("sandbox", "a1", server.URL, "t")
	planned := gatewayctltest.Query[transactions.LookupView](d, "unknown lookup sandbox --at-most 3")
	d.Equal("the dry run", planned, transactions.LookupView{
		Account: "sandbox", Payments: 5, LookedUp: 3, Oldest: d.Now.Add(-30 * time.Hour), NoLookup: 1,
	})
	if calls != 0 {
		t.Errorf("the dry run made %d calls", calls)
	}
	done := gatewayctltest.Change[transactions.LookupView](d, "unknown lookup sandbox --at-most 3")
	d.Equal("what was done", done, transactions.LookupView{
		Account: "sandbox", Payments: 5, LookedUp: 3, Ended: 2, Open: 1, NoLookup: 1,
		Oldest: d.Now.Add(-30 * time.Hour),
	})
	for number, want := range map[string]ledger.Status{
		"1": ledger.Pending, "3": ledger.Successful, "4": ledger.Pending, "5": ledger.Successful, "9": ledger.Pending,
	} {
		d.Equal(number, d.MustReadEntry(ledger.Key{Kind: ledger.Payment, ID: "ShopA_" + number}).Status, want)
	}
	d.ExpectExit("unknown lookup wave", gatewayctl.ExitFailed, "no payment with a status lookup waits at wave")
}

// An operator that does not respond gets three lookups.
func TestUnknownLookupEndsEarly(t *testing.T) {
	d := addOutage(t)
	d.UseSandboxOperator()
	code, _, stderr := d.Exec("unknown lookup sandbox --timeout 1s" + gatewayctltest.Confirm)
	if code != gatewayctl.ExitFailed || !strings.Contains(stderr, "3 lookups in a row got no response") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	last := d.Audit.Stored[len(d.Audit.Stored)-1]
	if !strings.Contains(last.Document, "3 looked up, 0 ended") {
		t.Errorf("the audit has %s", last.Document)
	}
}
