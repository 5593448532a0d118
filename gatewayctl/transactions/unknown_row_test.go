package transactions_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// addUnknownAt stores an unknown payment in Cameroon at an account of a platform of an operator.
func addUnknownAt(d *gatewayctltest.Tool, shop merchants.Onboarding, operatorName, account string) *ledger.Entry {
	return d.Update(d.AddUnknownPayment(shop), func(e *ledger.Entry) {
		e.Route.Operator, e.Route.Country, e.Route.Account = operatorName, "CM", account
	})
}

// newMoMoServer is a platform of MTN that has no payment.
func newMoMoServer(t *testing.T) (address string) {
	return newMoMoServerOf(t, http.StatusNotFound, `{"code":"RESOURCE_NOT_FOUND"}`)
}

// newMoMoServerOf is a platform of MTN with one response to each lookup.
func newMoMoServerOf(t *testing.T, status int, response string) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := `{"access_token":"t","expires_in":3600}`
		if r.Method == http.MethodGet {
			w.WriteHeader(status)
			body = response
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A lookup ends a payment by the rules of its platform's row, as the sweep does (decisions "never-sent" and "prepare").
// The clock of the engineer's machine may be 2 minutes ahead.
func TestResolveByTheRowOfThePlatform(t *testing.T) {
	const neverSent = time.Minute + 15*time.Minute + ledger.ClockMargin
	const tooEarly = "If this is still so at 2026-03-01T12:18:00Z, it was never sent"
	released := resolution{State: ledger.Released, Status: ledger.Pending}
	failed := resolution{State: ledger.Done, Status: ledger.Failed, ResponseStatus: 201, Notifications: 1}
	for _, c := range []struct {
		name, account string
		response      int
		change        func(*ledger.Entry)
		age           time.Duration
		text          string
		want          resolution // the zero value for a refusal
	}{
		{"the merchant got 504", "mtn-momo/a1", 0, nil, neverSent, "of platform mtn-momo the payment is released",
			released},
		{"the merchant got 201", "mtn-momo/a1", 201, nil, neverSent, "platform mtn-momo the payment is done failed",
			failed},
		{"too early by the clock's margin", "mtn-momo/a1", 0, nil, neverSent - time.Second, tooEarly, resolution{}},
		{"it was released", "mtn-momo/a1", 0, func(e *ledger.Entry) {
			e.State, e.Poll.At = ledger.Released, time.Time{}
		}, time.Hour, "it was certainly not applied", resolution{}},
		{"the key is another's", "mtn-momo/a1", 0, func(e *ledger.Entry) { e.ForeignKey = true }, time.Hour,
			"confirm it with the operator", resolution{}},
		{"a page that was stored", "orange-webpay/a1", 0, nil, time.Hour, "no status lookup", resolution{}},
		{"never prepared", "orange-cm/a1", 0, nil, time.Minute, `platform orange-cm the payment is released`, released},
		{"past its lifetime", "mtn-momo/a1", 201, func(e *ledger.Entry) { e.State = ledger.Done }, 30 * time.Hour,
			"confirm it with the operator", resolution{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, shop := gatewayctltest.NewShop(t)
			e := addUnknownAt(d, shop, "mtn", c.account)
			e.Response.Status, e.EverUnknown, e.Amount.CountsDaily = c.response, true, true
			if c.change != nil {
				c.change(e)
			}
			d.Ledger.Overwrite(e)
			platform, _, _ := strings.Cut(c.account, "/")
			d.UseAccount(platform, "a1", newMoMoServer(t), "t")
			d.Now = e.ReservedAt.Add(c.age)
			if c.want == (resolution{}) {
				d.ExpectBoth("unknown resolve pay ShopA_1", gatewayctl.ExitFailed, c.text)
				d.Equal("version", d.MustReadEntry(e.Key).Version, e.Version)
				return
			}
			d.ExpectExit("unknown resolve pay ShopA_1", gatewayctl.ExitDone, c.text)
			d.Equal("after a dry run", d.MustReadEntry(e.Key).State, ledger.Unknown)
			d.ExpectExit("unknown resolve pay ShopA_1"+gatewayctltest.Confirm, gatewayctl.ExitDone, c.text)
			d.Equal("payment", resolutionOf(d.MustReadEntry(e.Key)), c.want)
		})
	}
}

// A payment whose response was lost at a platform that finds it only by that response has no lookup: each list names
// the command that works. One that was never prepared was never sent: the lookup's pass ends it.
func TestPaymentThatNoLookupFinds(t *testing.T) {
	for account, byLookup := range map[string]bool{"orange-webpay/a1": false, "orange-cm/a1": true} {
		d, shop := gatewayctltest.NewQuiet(t)
		e := addUnknownAt(d, shop, "orange", account)
		d.Now = e.ReservedAt.Add(ledger.StaleAfter)
		command := "gatewayctl unknown resolve pay ShopA_1 --as OUTCOME --yes --reason REASON"
		var want []gatewayctltest.Line
		if byLookup {
			command = strings.Replace(command, " --as OUTCOME", "", 1)
		} else {
			want = []gatewayctltest.Line{{What: "unknown-outcome", Merchant: "ShopA", Subject: "pay#ShopA_1",
				Detail:  "operator orange has no status lookup without its response to the payment, which was lost",
				Command: command}}
		}
		view := gatewayctltest.Query[[]transactions.UnknownView](d, "unknown list")[0]
		d.Equal(account, view.LookupSupported, byLookup)
		d.Equal("command", view.Command, command)
		history := gatewayctltest.Query[entries.History](d, "payment show ShopA_1")
		d.Equal("next lookup", !history.NextLookup.IsZero(), byLookup)
		code := map[bool]int{true: gatewayctl.ExitDone, false: gatewayctl.ExitWaiting}[byLookup]
		d.Equal("attention", d.Attend("attention --no-lookup", code), want)
	}
}

// A lookup without a response names what helps: the command that renews refused credentials, or to wait.
func TestLookupThatFailsNamesWhatHelps(t *testing.T) {
	for status, text := range map[int]string{
		http.StatusUnauthorized:       "gatewayctl operator set FILE --yes --reason REASON",
		http.StatusServiceUnavailable: "change none",
	} {
		d, shop := gatewayctltest.NewShop(t)
		addUnknownAt(d, shop, "mtn", "mtn-momo/a1")
		d.UseAccount("mtn-momo", "a1", newMoMoServerOf(t, status, `{}`), "t")
		d.ExpectBoth("unknown resolve pay ShopA_1", gatewayctl.ExitFailed, text)
	}
}

// A dry run states what it would record: the conflict of a lookup is not stored.
func TestConflictOfADryRun(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	e := d.Update(addUnknownAt(d, shop, "mtn", "mtn-momo/a1").Key, func(e *ledger.Entry) { e.Amount.Currency = "XAF" })
	server := newMoMoServerOf(t, http.StatusOK,
		`{"externalId":"ShopA_1","status":"SUCCESSFUL","amount":"99","currency":"XAF"}`)
	d.UseAccount("mtn-momo", "a1", server, "t")
	const text = "A status that contradicts the payment "
	d.ExpectExit("unknown resolve pay ShopA_1", gatewayctl.ExitDone, text+"would be recorded as a conflict.")
	d.Equal("conflicts of a dry run", len(d.MustReadEntry(e.Key).Conflicts), 0)
	d.ExpectExit("unknown resolve pay ShopA_1"+gatewayctltest.Confirm, gatewayctl.ExitDone,
		text+"is recorded as a conflict.")
	d.Equal("conflicts", len(d.MustReadEntry(e.Key).Conflicts), 1)
}
