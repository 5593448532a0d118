package attention_test

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/attention"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

// The list leaves out everything that the gateway ends by itself.
func TestAttentionIsEmpty(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	d.AddDeliveredPayment(shop, 1, d.Now)
	d.AddWaitingPayment(shop, 2, func(e *ledger.Entry) { e.Outbox.Waiting[0].LastReason = "server" })
	d.AddWaitingPayment(shop, 3, func(e *ledger.Entry) { // its endpoint is enabled: the sweep queues it
		e.Outbox.Waiting[0].Parked = true
	})
	d.AddUnknownPayment(shop)      // its lookups continue
	d.AddUnknownCharge(shop, "c1") // the merchant may still retry
	d.ExpectAttention("lines", "attention")
	if _, out, stderr := d.Exec("attention"); out != "" || !strings.Contains(stderr, "There is none") {
		t.Errorf("an empty list: %q, %q", out, stderr)
	}
}

func TestAttentionUnknown(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	charge := d.Update(d.AddUnknownCharge(shop, "c1"), func(e *ledger.Entry) { e.Route.UpstreamKey = "ShopA.c1" })
	d.Now = d.Now.Add(time.Second)
	pay := d.AddPendingPayment(shop, 1, d.Now)
	charged := gatewayctltest.Line{What: "unknown-outcome", Merchant: "ShopA", Subject: charge.Key.String(),
		Detail:  "the merchant may send the same request again until 2026-03-02T11:50:00Z, ShopA.c1",
		Command: "gatewayctl unknown resolve charge " + charge.ID + " --as OUTCOME --yes --reason REASON"}
	d.Now = d.Now.Add(time.Hour)
	d.ExpectAttention("an hour later", "attention --no-lookup", charged)
	d.ExpectCount("unknown list", "unknown list", 1)
	d.Now = d.Now.Add(24 * time.Hour)
	charged.Detail = "get the outcome from the operator by the upstream key, ShopA.c1"
	paid := gatewayctltest.Line{What: "unknown-outcome", Merchant: "ShopA", Subject: "pay#ShopA_1",
		Detail:  "past its lifetime, and no lookup has ended it",
		Command: "gatewayctl unknown resolve pay ShopA_1 --yes --reason REASON"}
	d.ExpectAttention("a day later", "attention --no-lookup", charged, paid)
	// A payment that was accepted and is pending past its lifetime was missing in this list.
	d.ExpectCount("unknown list", "unknown list", 2)
	d.ExpectCount("unknown list of a merchant", "unknown list ShopA --from 2026-03-01 --to 2026-03-01", 2)
	pay.Claim = ledger.Claim{Status: ledger.Failed, At: d.Now}
	d.Ledger.Overwrite(pay)
	lines := d.Attend("attention --no-lookup", gatewayctl.ExitWaiting)
	d.Equal("claimed", lines[1].Detail, "the operator claimed failed, and no lookup confirms it")
	d.Apply("unknown resolve pay ShopA_1 --as failed", "unknown resolve charge "+charge.ID+" --as not-applied")
	d.ExpectAttention("resolved", "attention --no-lookup")
}

// A conflict and a dead letter are listed until a person closes them, and again if another one follows.
func TestAttentionClose(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	conflict := func(status ledger.Status) ledger.Conflict {
		return ledger.Conflict{Status: status, Reason: "final", Source: "callback", At: d.Now}
	}
	e := d.AddDeliveredPayment(shop, 1, d.Now)
	e.Conflicts = []ledger.Conflict{conflict(ledger.Failed)}
	d.Ledger.Overwrite(e)
	want := gatewayctltest.Line{What: "conflict", Merchant: "ShopA", Subject: "pay#ShopA_1",
		Detail:  "callback reported failed (final), we have successful; operator's reference none",
		Command: "gatewayctl attention close pay ShopA_1 --yes --reason REASON"}
	d.ExpectAttention("conflict", "attention", want)
	d.Now = d.Now.Add(time.Hour)
	d.ExpectJSON("closed", "attention close pay ShopA_1",
		attention.ClosedView{Subject: "pay#ShopA_1", Merchant: "ShopA", Closed: "1 conflict"})
	d.Apply("attention close pay ShopA_1")
	d.ExpectAttention("closed", "attention")
	d.Equal("the entry is unchanged", d.MustReadEntry(e.Key).Version, e.Version)
	d.ExpectBoth("attention close pay ShopA_1", gatewayctl.ExitFailed, "no open conflict")
	d.ExpectExit("attention close pay ShopA_9", gatewayctl.ExitFailed, "no payment")
	d.Now = d.Now.Add(time.Hour)
	e.Conflicts = append(e.Conflicts, conflict(ledger.Cancelled))
	d.Ledger.Overwrite(e)
	d.Equal("another one", len(d.Attend("attention", gatewayctl.ExitWaiting)), 1)
	d.Now = d.Now.Add(30 * session.Day)
	d.ExpectAttention("old transactions", "attention")
	d.Equal("old transactions with --since", len(d.Attend("attention --since 2026-03-01", gatewayctl.ExitWaiting)), 1)
}

func TestAttentionNotifications(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	dead := func(number int) {
		d.AddWaitingPayment(shop, number, func(e *ledger.Entry) {
			e.Outbox.Waiting[0].DeadReason = "server"
			e.Outbox.FailedAttempts = []ledger.FailedAttempt{{Status: ledger.Successful, At: d.Now.Add(time.Hour)}}
		})
	}
	dead(1)
	one := gatewayctltest.Line{What: "dead-letter", Merchant: "ShopA", Subject: "1 notification", Detail: "ShopA_1",
		Command: "gatewayctl deliveries replay ShopA_1 --yes --reason REASON"}
	d.ExpectAttention("one dead letter", "attention", one)
	for number := 2; number <= 5; number++ {
		dead(number)
	}
	many := gatewayctltest.Line{What: "dead-letter", Merchant: "ShopA", Subject: "5 notifications",
		Detail: "ShopA_1, ShopA_2, ShopA_3 and 2 more",
		Command: "gatewayctl deliveries replay --merchant ShopA --from 2026-03-01 --to 2026-03-01 --dead-letters " +
			"--yes --reason REASON"}
	d.ExpectAttention("dead letters", "attention", many)
	d.Apply("attention close pay ShopA_1")
	d.Equal("one closed before it died", d.Attend("attention", gatewayctl.ExitWaiting)[0].Subject, "5 notifications")
	d.Now = d.Now.Add(2 * time.Hour)
	d.Apply("attention close pay ShopA_1")
	d.Equal("one closed", d.Attend("attention", gatewayctl.ExitWaiting)[0].Subject, "4 notifications")
	d.Apply(strings.TrimSuffix(strings.TrimPrefix(many.Command, "gatewayctl "), " --yes --reason REASON"))
	d.ExpectAttention("replayed", "attention")

	parked := d.AddWaitingPayment(shop, 9, func(e *ledger.Entry) {
		e.Outbox.URL, e.Outbox.Waiting[0].Parked = "https://shop.example/n?x=1&y", true
	})
	d.Health.StoreHealth(webhook.Health{Endpoint: webhook.Endpoint{MerchantID: shop.ID, URL: parked.Outbox.URL},
		LastReason: "gone", LastStatus: 410, DisabledAt: d.Now})
	d.ExpectAttention("a disabled endpoint", "attention", gatewayctltest.Line{
		What: "endpoint-disabled", Merchant: "ShopA",
		Subject: "https://shop.example/n?***", Detail: "gone 410: 1 notification parked",
		Command: "gatewayctl endpoint enable ShopA --url 'https://shop.example/n?***' --yes --reason REASON"})
	d.Apply("endpoint enable ShopA --url https://shop.example/n?***")
	d.ExpectAttention("enabled", "attention")
}

func TestAttentionCredentialsAndKeys(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	call := func(number int, outcome, reason string, status int) {
		e := d.AddDeliveredPayment(shop, number, d.Now)
		e.State, e.Response.Status, e.Outbox.Delivered = ledger.Released, 0, nil
		e.Call.Attempts = []ledger.CallAttempt{{At: d.Now, Outcome: outcome, Reason: reason, HTTPStatus: status}}
		d.Ledger.Overwrite(e)
		d.Now = d.Now.Add(time.Minute)
	}
	call(1, ledger.CallNotApplied, ledger.ReasonRejected, 401)
	call(2, ledger.CallSucceeded, "", 201)
	d.ExpectAttention("accepted again", "attention")
	call(3, ledger.CallNotApplied, ledger.ReasonRejected, 401)
	call(4, ledger.CallNotApplied, ledger.ReasonRejected, 403)
	call(5, ledger.CallUnknown, "timeout", 0)
	rejected := gatewayctltest.Line{What: "credentials", Subject: "sandbox a1",
		Detail:  "2 calls rejected, none accepted since",
		Command: "gatewayctl operator rotate-token sandbox FILE --account a1 --yes --reason REASON"}
	d.ExpectAttention("rejected", "attention", rejected)
	d.Input = "renewed"
	d.Apply("operator rotate-token sandbox -")
	d.ExpectAttention("renewed", "attention")
	d.Now = d.Now.Add(time.Minute)
	call(7, ledger.CallNotApplied, ledger.ReasonRejected, 401)
	d.Equal("rejected again", len(d.Attend("attention", gatewayctl.ExitWaiting)), 1)
	call(6, ledger.CallNotApplied, "unavailable", 503)
	d.ExpectAttention("another response", "attention")

	d.Now = d.Now.Add(370 * session.Day)
	var due []string
	for _, line := range d.Attend("attention", gatewayctl.ExitWaiting) {
		due = append(due, line.What+" "+line.Command)
	}
	d.Equal("old rings", due, []string{
		"key-due gatewayctl keys add callbacks --yes --reason REASON",
		"key-due gatewayctl keys add tokens --yes --reason REASON",
		"key-due gatewayctl keys add webhooks --yes --reason REASON",
	})
	d.ExpectAttention("a longer age", "attention --key-age 20000h")
	d.Apply("keys add tokens", "keys add callbacks", "keys add webhooks")
	d.ExpectAttention("new keys", "attention")

	d.Apply("merchant change ShopA --operator sandbox,orange")
	lines := d.Attend("attention", gatewayctl.ExitWaiting)
	if len(lines) != 1 || lines[0].What != "credentials" || lines[0].Subject != "orange" {
		t.Errorf("an operator without an account: %+v", lines)
	}
	d.Apply("merchant suspend ShopA")
	d.ExpectAttention("of a suspended merchant", "attention")
}

// An account without a fixed token is renewed by its fields.
func TestAttentionProposesTheCommandOfThePlatform(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	d.UseAccount("mtn-momo", "m1", "http://127.0.0.1:1", "t")
	d.Now = d.Now.Add(time.Minute)
	e := d.AddDeliveredPayment(shop, 1, d.Now)
	e.State, e.Response.Status, e.Outbox.Delivered, e.Route.Account = ledger.Released, 0, nil, "mtn-momo/m1"
	e.Call.Attempts = []ledger.CallAttempt{{
		At: d.Now, Outcome: ledger.CallNotApplied, Reason: ledger.ReasonRejected, HTTPStatus: 401,
	}}
	d.Ledger.Overwrite(e)
	d.ExpectAttention("lines", "attention", gatewayctltest.Line{What: "credentials",
		Subject: "mtn-momo m1", Detail: "1 call rejected, none accepted since",
		Command: "gatewayctl operator set FILE --yes --reason REASON"})
}

// SINCE is what the transactions prove: the first call that failed after the last proof that the operator works.
// Without such a call it is empty, and the line has the last proof. The count is that of operator route set.
func TestAttentionOutage(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	start := d.Now
	add := func(number int, at time.Time, change func(e *ledger.Entry)) {
		d.AddPendingPayment(shop, number, at, func(e *ledger.Entry) { e.Poll.At = at.Add(5 * time.Hour) }, change)
	}
	add(1, start, func(*ledger.Entry) {})
	d.Now = start.Add(3 * time.Hour)
	since := func(detail string) time.Time {
		views, _ := gatewayctltest.QueryExit[[]attention.View](d, "attention --timeout 1s", gatewayctl.ExitWaiting)
		if len(views) != 1 || views[0].What != "lookups-fail" || !strings.Contains(views[0].Detail, detail) {
			t.Fatalf("lines %+v", views)
		}
		return views[0].Since
	}
	d.Equal("only one that waits", since("the last proof that it works is of 2026-03-01T12:00:00Z"), time.Time{})
	add(2, start.Add(time.Minute), func(e *ledger.Entry) {
		e.Status, e.FinalAt, e.Poll.At = ledger.Successful, start.Add(2*time.Hour), time.Time{}
	})
	d.Equal("after a final status", since("the last proof that it works is of 2026-03-01T14:00:00Z"), time.Time{})
	for number := 3; number <= 4; number++ {
		add(number, start.Add(2*time.Hour+time.Duration(number)*time.Minute), func(e *ledger.Entry) {
			e.State, e.Response.Status = ledger.Unknown, 0
			e.Call.Attempts = []ledger.CallAttempt{{At: e.ReservedAt, Outcome: ledger.CallUnknown, Reason: "timeout"}}
		})
	}
	d.Equal("after calls that failed", since(""), start.Add(2*time.Hour+3*time.Minute))
	d.ExpectExit("attention --timeout 1s", gatewayctl.ExitWaiting, "first do what docs/operations.md")
	counts, _,
		err := accounts.CountLive(&session.Session{Context: t.Context(), System: deployment.System{Now: d.Clock()},
		Flags: &session.Flags{}, Stores: d.Stores()})
	lines := d.Attend("attention --timeout 1s", gatewayctl.ExitWaiting)
	if err != nil || counts[operator.Pin{Platform: "sandbox", Account: "a1"}] != 3 ||
		!strings.Contains(lines[0].Detail, "; 3 live transactions") {
		t.Errorf("%v live by operator route set, %v: %+v", counts, err, lines)
	}
}

// The oldest waiting payment of each account is looked up: an account whose lookups fail is in the list.
func TestAttentionLookups(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	for number := 1; number <= 2; number++ {
		d.AddPendingPayment(shop, number, d.Now, func(e *ledger.Entry) {
			e.ReservedAt = d.Now.Add(time.Duration(number) * time.Minute)
		})
	}
	d.ExpectAttention("at once", "attention")
	d.Now = d.Now.Add(time.Hour)
	lines := d.Attend("attention --timeout 1s", gatewayctl.ExitWaiting)
	if len(lines) != 1 || lines[0].What != "lookups-fail" || lines[0].Subject != "sandbox a1" ||
		!strings.HasSuffix(lines[0].Detail, "2 live transactions, such as ShopA_1") ||
		lines[0].Command != "gatewayctl operator check sandbox" {
		t.Errorf("failing lookups: %+v", lines)
	}
	d.ExpectAttention("without lookups", "attention --no-lookup")
}

// The printed command of an address has no part of its query, also if the path has characters of shells and texts.
func TestPrintedCommandMasksWholeAddress(t *testing.T) {
	for _, address := range []string{
		"https://shop.example/n(1)/?s3cret", `https://shop.example/"/?s3cret`,
		"https://shop.example/a'b`<c>?a=(s3cret)",
	} {
		d, shop := gatewayctltest.NewShop(t)
		d.AddWaitingPayment(shop, 1, func(e *ledger.Entry) { e.Outbox.URL, e.Outbox.Waiting[0].Parked = address, true })
		at := webhook.Health{Endpoint: webhook.Endpoint{MerchantID: shop.ID, URL: address}, DisabledAt: d.Now}
		d.Health.StoreHealth(at)
		for _, flags := range []string{"", " --json"} {
			code, out, stderr := d.Exec("attention" + flags)
			isListed := code == gatewayctl.ExitWaiting && strings.Contains(out, "endpoint enable")
			if strings.Contains(out+stderr, "s3cret") || !isListed {
				t.Errorf("%s: exit %d, %s%s", address, code, out, stderr)
			}
		}
	}
}

// addClaimedPayment stores a payment in a state, with an open claim of success.
func addClaimedPayment(d *gatewayctltest.Tool, shop merchants.Onboarding, state ledger.State) *ledger.Entry {
	return d.AddPendingPayment(shop, 1, d.Now, func(e *ledger.Entry) {
		e.State, e.Poll.At = state, time.Time{}
		e.Claim = ledger.Claim{Status: ledger.Successful, At: d.Now, CheckAt: d.Now.Add(time.Hour)}
	})
}

// decision "pay-claims": a claim of success is listed from 48 hours on, with the command that ends it.
func TestFlaggedClaim(t *testing.T) {
	const command = "gatewayctl unknown resolve pay ShopA_1 --as OUTCOME --yes --reason REASON"
	for _, state := range []ledger.State{ledger.Done, ledger.Unknown, ledger.Released} {
		for outcome, want := range map[string]ledger.Status{
			"successful": ledger.Successful, "failed": ledger.Failed, "cancelled": ledger.Cancelled,
		} {
			d, shop := gatewayctltest.NewQuiet(t)
			e := addClaimedPayment(d, shop, state)
			claimedAt := d.Now
			d.Now = claimedAt.Add(ledger.ClaimFlagAfter - time.Second)
			d.ExpectAttention("before 48 hours", "attention --no-lookup")
			d.Equal("the command before 48 hours",
				gatewayctltest.Query[[]transactions.UnknownView](d, "unknown list")[0].Command,
				"gatewayctl unknown resolve pay ShopA_1 --yes --reason REASON")
			d.Now = claimedAt.Add(ledger.ClaimFlagAfter)
			d.ExpectAttention(string(state), "attention --no-lookup", gatewayctltest.Line{
				What: "unknown-outcome", Merchant: "ShopA", Subject: "pay#ShopA_1",
				Detail: "the operator claimed successful at " + output.FormatTime(claimedAt) +
					", and no lookup confirms it",
				Command: command,
			})
			d.Equal("the command of the list", gatewayctltest.Query[[]transactions.UnknownView](d,
				"unknown list")[0].Command, command)
			d.Apply("unknown resolve pay ShopA_1 --as " + outcome)
			after := d.MustReadEntry(e.Key)
			if state == ledger.Released && outcome != "successful" {
				want = ledger.Pending // it was certainly not applied, and the merchant knows
			}
			d.Equal(string(state)+" as "+outcome, after.Status, want)
			d.Equal("the claim is over", after.Claim, ledger.Claim{})
			d.ExpectCount("unknown list", "unknown list", 0)
			d.ExpectFailed("unknown resolve pay ShopA_1 --as failed", "outcome is known")
		}
	}
}
