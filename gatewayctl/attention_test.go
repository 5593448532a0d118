package gatewayctl

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

// newQuietTool returns a deployment in which nothing waits for a person.
func newQuietTool(t *testing.T) (*testTool, onboardingResult) {
	t.Helper()
	d, shop := newShopTool(t)
	d.apply("keys add tokens", "keys add callbacks")
	d.useSandboxOperator()
	return d, shop
}

// attentionLine is a line without its time.
type attentionLine struct{ What, Merchant, Subject, Detail, Command string }

// mustAttend runs attention, which must end with a code, and returns its lines.
func (d *testTool) mustAttend(line string, want int) []attentionLine {
	d.t.Helper()
	code, out, stderr := d.run(line + " --json")
	if code != want {
		d.t.Fatalf("%s: exit %d, want %d: %s%s", line, code, want, out, stderr)
	}
	var views []attentionView
	mustDecode(d.t, out, &views)
	var lines []attentionLine
	for i, v := range views {
		if i > 0 && v.Since.Before(views[i-1].Since) {
			d.t.Errorf("%s: line %d is older than the one before it: %s", line, i, out)
		}
		lines = append(lines, attentionLine{v.What, v.Merchant, v.Subject, v.Detail, v.Command})
	}
	return lines
}

// The list leaves out everything that the gateway ends by itself.
func TestAttentionIsEmpty(t *testing.T) {
	d, shop := newQuietTool(t)
	d.addDeliveredPayment(shop, 1, d.now)
	waiting := d.addDeliveredPayment(shop, 2, d.now)
	waiting.Outbox, waiting.Delivered = waiting.Delivered, nil
	waiting.Outbox[0].NextAttemptAt, waiting.Outbox[0].LastReason = d.now.Add(time.Hour), "server"
	waiting.Reschedule()
	d.ledger.Overwrite(waiting)
	parked := d.addDeliveredPayment(shop, 3, d.now) // its endpoint is enabled: the sweep queues it
	parked.Outbox, parked.Delivered = parked.Delivered, nil
	parked.Outbox[0].Parked, parked.Outbox[0].NextAttemptAt = true, d.now.Add(time.Hour)
	parked.Reschedule()
	d.ledger.Overwrite(parked)
	d.addUnknownPayment(shop)      // its lookups continue
	d.addUnknownCharge(shop, "c1") // the merchant may still retry
	checkEqual(t, "lines", len(d.mustAttend("attention", ExitDone)), 0)
	if _, out, stderr := d.run("attention"); out != "" || !strings.Contains(stderr, "There is none") {
		t.Errorf("an empty list: %q, %q", out, stderr)
	}
}

func TestAttentionUnknown(t *testing.T) {
	d, shop := newQuietTool(t)
	charge := d.mustReadEntry(d.addUnknownCharge(shop, "c1"))
	charge.ReservedAt, charge.SentAt, charge.UpstreamKey = d.now, d.now, "ShopA.c1"
	d.ledger.Overwrite(charge)
	d.now = d.now.Add(time.Second)
	pay := d.addDeliveredPayment(shop, 1, d.now)
	pay.Status, pay.FinalAt, pay.Delivered, pay.PollAt, pay.ReservedAt = ledger.Pending, time.Time{}, nil,
		d.now.Add(time.Minute), d.now
	pay.Reschedule()
	d.ledger.Overwrite(pay)
	charged := attentionLine{waitsUnknown, "ShopA", charge.Key.String(),
		"the merchant may send the same request again until 2026-03-02T11:50:00Z, ShopA.c1",
		"gatewayctl unknown resolve charge " + charge.ID + " --as OUTCOME --yes --reason REASON"}
	d.now = d.now.Add(time.Hour)
	checkEqual(t, "an hour later", d.mustAttend("attention --no-lookup", ExitWaiting), []attentionLine{charged})
	checkEqual(t, "unknown list", len(query[[]unknownView](d, "unknown list")), 1)
	d.now = d.now.Add(24 * time.Hour)
	charged.Detail = "get the outcome from the operator by the upstream key, ShopA.c1"
	paid := attentionLine{waitsUnknown, "ShopA", "pay#ShopA_1", "past its lifetime, and no lookup has ended it",
		"gatewayctl unknown resolve pay ShopA_1 --yes --reason REASON"}
	checkEqual(t, "a day later", d.mustAttend("attention --no-lookup", ExitWaiting), []attentionLine{charged, paid})
	// A payment that was accepted and is pending past its lifetime was missing in this list.
	checkEqual(t, "unknown list", len(query[[]unknownView](d, "unknown list")), 2)
	checkEqual(t, "unknown list of a merchant",
		len(query[[]unknownView](d, "unknown list ShopA --from 2026-03-01 --to 2026-03-01")), 2)
	pay.Claim = ledger.Claim{Status: ledger.Failed, At: d.now}
	d.ledger.Overwrite(pay)
	lines := d.mustAttend("attention --no-lookup", ExitWaiting)
	checkEqual(t, "claimed", lines[1].Detail, "the operator claimed failed, and no lookup confirms it")
	d.apply("unknown resolve pay ShopA_1 --as failed", "unknown resolve charge "+charge.ID+" --as not-applied")
	checkEqual(t, "resolved", len(d.mustAttend("attention --no-lookup", ExitDone)), 0)
}

// A conflict and a dead letter are listed until a person closes them, and again if another one follows.
func TestAttentionClose(t *testing.T) {
	d, shop := newQuietTool(t)
	conflict := func(status ledger.Status) ledger.Conflict {
		return ledger.Conflict{Status: status, Reason: "final", Source: "callback", At: d.now}
	}
	e := d.addDeliveredPayment(shop, 1, d.now)
	e.Conflicts = []ledger.Conflict{conflict(ledger.Failed)}
	d.ledger.Overwrite(e)
	want := attentionLine{waitsConflict, "ShopA", "pay#ShopA_1",
		"callback reported failed (final), we have successful; operator's reference none",
		"gatewayctl attention close pay ShopA_1 --yes --reason REASON"}
	checkEqual(t, "conflict", d.mustAttend("attention", ExitWaiting), []attentionLine{want})
	d.now = d.now.Add(time.Hour)
	checkEqual(t, "closed", query[closedView](d, "attention close pay ShopA_1"),
		closedView{"pay#ShopA_1", "ShopA", "1 conflict"})
	checkEqual(t, "after a dry run", len(d.mustAttend("attention", ExitWaiting)), 1)
	d.apply("attention close pay ShopA_1")
	checkEqual(t, "closed", len(d.mustAttend("attention", ExitDone)), 0)
	checkEqual(t, "the entry is unchanged", d.mustReadEntry(e.Key).Version, e.Version)
	d.expectBoth("attention close pay ShopA_1", ExitFailed, "no open conflict")
	d.expectExit("attention close pay ShopA_9", ExitFailed, "no payment")
	d.now = d.now.Add(time.Hour)
	e.Conflicts = append(e.Conflicts, conflict(ledger.Cancelled))
	d.ledger.Overwrite(e)
	checkEqual(t, "another one", len(d.mustAttend("attention", ExitWaiting)), 1)
	d.now = d.now.Add(30 * day)
	checkEqual(t, "old transactions", len(d.mustAttend("attention", ExitDone)), 0)
	checkEqual(t, "old transactions with --since", len(d.mustAttend("attention --since 2026-03-01", ExitWaiting)), 1)
}

func TestAttentionNotifications(t *testing.T) {
	d, shop := newQuietTool(t)
	dead := func(number int) {
		e := d.addDeliveredPayment(shop, number, d.now)
		e.Outbox, e.Delivered = e.Delivered, nil
		e.Outbox[0].DeadReason, e.Outbox[0].DeliveredAt = "server", time.Time{}
		e.FailedAttempts = []ledger.FailedAttempt{{Status: ledger.Successful, At: d.now.Add(time.Hour)}}
		d.ledger.Overwrite(e)
	}
	dead(1)
	one := attentionLine{waitsDeadLetter, "ShopA", "1 notification", "ShopA_1",
		"gatewayctl deliveries replay ShopA_1 --yes --reason REASON"}
	checkEqual(t, "one dead letter", d.mustAttend("attention", ExitWaiting), []attentionLine{one})
	for number := 2; number <= 5; number++ {
		dead(number)
	}
	many := attentionLine{waitsDeadLetter, "ShopA", "5 notifications", "ShopA_1, ShopA_2, ShopA_3 and 2 more",
		"gatewayctl deliveries replay --merchant ShopA --from 2026-03-01 --to 2026-03-01 --dead-letters --yes " +
			"--reason REASON"}
	checkEqual(t, "dead letters", d.mustAttend("attention", ExitWaiting), []attentionLine{many})
	d.apply("attention close pay ShopA_1")
	checkEqual(t, "one closed before it died", d.mustAttend("attention", ExitWaiting)[0].Subject, "5 notifications")
	d.now = d.now.Add(2 * time.Hour)
	d.apply("attention close pay ShopA_1")
	checkEqual(t, "one closed", d.mustAttend("attention", ExitWaiting)[0].Subject, "4 notifications")
	d.apply(strings.TrimSuffix(strings.TrimPrefix(many.Command, "gatewayctl "), " --yes --reason REASON"))
	checkEqual(t, "replayed", len(d.mustAttend("attention", ExitDone)), 0)

	parked := d.addDeliveredPayment(shop, 9, d.now)
	parked.NotifyURL, parked.Outbox, parked.Delivered = "https://shop.example/n?x=1&y", parked.Delivered, nil
	parked.Outbox[0].Parked, parked.Outbox[0].NextAttemptAt = true, d.now.Add(time.Hour)
	parked.Reschedule()
	d.ledger.Overwrite(parked)
	d.health.StoreHealth(webhook.Health{Endpoint: webhook.Endpoint{MerchantID: shop.ID, URL: parked.NotifyURL},
		LastReason: "gone", LastStatus: 410, DisabledAt: d.now})
	checkEqual(t, "a disabled endpoint", d.mustAttend("attention", ExitWaiting), []attentionLine{{
		waitsEndpoint, "ShopA",
		"https://shop.example/n?***", "gone 410: 1 notification parked",
		"gatewayctl endpoint enable ShopA --url 'https://shop.example/n?***' --yes --reason REASON"}})
	d.apply("endpoint enable ShopA --url https://shop.example/n?***")
	checkEqual(t, "enabled", len(d.mustAttend("attention", ExitDone)), 0)
}

func TestAttentionCredentialsAndKeys(t *testing.T) {
	d, shop := newQuietTool(t)
	call := func(number int, outcome, reason string, status int) {
		e := d.addDeliveredPayment(shop, number, d.now)
		e.State, e.ResponseStatus, e.Delivered = ledger.Released, 0, nil
		e.CallAttempts = []ledger.CallAttempt{{At: d.now, Outcome: outcome, Reason: reason, HTTPStatus: status}}
		d.ledger.Overwrite(e)
		d.now = d.now.Add(time.Minute)
	}
	call(1, ledger.CallNotApplied, ledger.ReasonRejected, 401)
	call(2, ledger.CallSucceeded, "", 201)
	checkEqual(t, "accepted again", len(d.mustAttend("attention", ExitDone)), 0)
	call(3, ledger.CallNotApplied, ledger.ReasonRejected, 401)
	call(4, ledger.CallNotApplied, ledger.ReasonRejected, 403)
	call(5, ledger.CallUnknown, "timeout", 0)
	rejected := attentionLine{waitsCredentials, "", "sandbox a1", "2 calls rejected, none accepted since",
		"gatewayctl operator rotate-token sandbox FILE --account a1 --yes --reason REASON"}
	checkEqual(t, "rejected", d.mustAttend("attention", ExitWaiting), []attentionLine{rejected})
	d.input = "renewed"
	d.apply("operator rotate-token sandbox -")
	checkEqual(t, "renewed", len(d.mustAttend("attention", ExitDone)), 0)
	d.now = d.now.Add(time.Minute)
	call(7, ledger.CallNotApplied, ledger.ReasonRejected, 401)
	checkEqual(t, "rejected again", len(d.mustAttend("attention", ExitWaiting)), 1)
	call(6, ledger.CallNotApplied, "unavailable", 503)
	checkEqual(t, "another response", len(d.mustAttend("attention", ExitDone)), 0)

	d.now = d.now.Add(370 * day)
	var due []string
	for _, line := range d.mustAttend("attention", ExitWaiting) {
		due = append(due, line.What+" "+line.Command)
	}
	checkEqual(t, "old rings", due, []string{
		"key-due gatewayctl keys add callbacks --yes --reason REASON",
		"key-due gatewayctl keys add tokens --yes --reason REASON",
		"key-due gatewayctl keys add webhooks --yes --reason REASON",
	})
	checkEqual(t, "a longer age", len(d.mustAttend("attention --key-age 20000h", ExitDone)), 0)
	d.apply("keys add tokens", "keys add callbacks", "keys add webhooks")
	checkEqual(t, "new keys", len(d.mustAttend("attention", ExitDone)), 0)

	d.apply("merchant change ShopA --operator sandbox,orange")
	lines := d.mustAttend("attention", ExitWaiting)
	if len(lines) != 1 || lines[0].What != waitsCredentials || lines[0].Subject != "orange" {
		t.Errorf("an operator without an account: %+v", lines)
	}
	d.apply("merchant suspend ShopA")
	checkEqual(t, "of a suspended merchant", len(d.mustAttend("attention", ExitDone)), 0)
}

// An account without a fixed token is renewed by its fields.
func TestAttentionProposesTheCommandOfThePlatform(t *testing.T) {
	d, shop := newQuietTool(t)
	d.input = credentialsOf(t, "mtn-momo", "m1", newAccount(t, "mtn-momo", "http://127.0.0.1:1", "t"))
	d.apply("operator set -")
	d.now = d.now.Add(time.Minute)
	e := d.addDeliveredPayment(shop, 1, d.now)
	e.State, e.ResponseStatus, e.Delivered, e.Account = ledger.Released, 0, nil, "mtn-momo/m1"
	e.CallAttempts = []ledger.CallAttempt{{
		At: d.now, Outcome: ledger.CallNotApplied, Reason: ledger.ReasonRejected, HTTPStatus: 401,
	}}
	d.ledger.Overwrite(e)
	checkEqual(t, "lines", d.mustAttend("attention", ExitWaiting), []attentionLine{{waitsCredentials, "",
		"mtn-momo m1", "1 call rejected, none accepted since",
		"gatewayctl operator set FILE --yes --reason REASON"}})
}

// SINCE is what the transactions prove: the first call that failed after the last proof that the operator works. The
// count is that of operator route set.
func TestAttentionOutage(t *testing.T) {
	d, shop := newQuietTool(t)
	start := d.now
	add := func(number int, at time.Time, change func(e *ledger.Entry)) {
		e := d.addDeliveredPayment(shop, number, at)
		e.Status, e.FinalAt, e.Delivered, e.PollAt = ledger.Pending, time.Time{}, nil, at.Add(5*time.Hour)
		change(e)
		e.Reschedule()
		d.ledger.Overwrite(e)
	}
	add(1, start, func(*ledger.Entry) {})
	d.now = start.Add(3 * time.Hour)
	since := func() time.Time {
		_, out, _ := d.run("attention --timeout 1s --json")
		var views []attentionView
		mustDecode(t, out, &views)
		if len(views) != 1 || views[0].What != waitsLookups {
			t.Fatalf("lines %+v", views)
		}
		return views[0].Since
	}
	checkEqual(t, "only one that waits", since(), start)
	add(2, start.Add(time.Minute), func(e *ledger.Entry) {
		e.Status, e.FinalAt, e.PollAt = ledger.Successful, start.Add(2*time.Hour), time.Time{}
	})
	checkEqual(t, "after a final status", since(), start.Add(2*time.Hour))
	for number := 3; number <= 4; number++ {
		add(number, start.Add(2*time.Hour+time.Duration(number)*time.Minute), func(e *ledger.Entry) {
			e.State, e.ResponseStatus = ledger.Unknown, 0
			e.CallAttempts = []ledger.CallAttempt{{At: e.ReservedAt, Outcome: ledger.CallUnknown, Reason: "timeout"}}
		})
	}
	checkEqual(t, "after calls that failed", since(), start.Add(2*time.Hour+3*time.Minute))
	d.expectExit("attention --timeout 1s", ExitWaiting, "waits for a person")
	counts, _, err := countLiveEntries(&session{Context: t.Context(), System: System{Now: d.nowFunc()},
		flags: &d.grammar.flags, stores: d.stores()})
	lines := d.mustAttend("attention --timeout 1s", ExitWaiting)
	if err != nil || counts[accountRef{"sandbox", "a1"}] != 3 ||
		!strings.Contains(lines[0].Detail, "; 3 live transactions") {
		t.Errorf("%v live by operator route set, %v: %+v", counts, err, lines)
	}
}

// The oldest waiting payment of each account is looked up: an account whose lookups fail is in the list.
func TestAttentionLookups(t *testing.T) {
	d, shop := newQuietTool(t)
	for number := 1; number <= 2; number++ {
		e := d.addDeliveredPayment(shop, number, d.now)
		e.Status, e.FinalAt, e.Delivered, e.PollAt, e.ReservedAt = ledger.Pending, time.Time{}, nil,
			d.now.Add(time.Minute), d.now.Add(time.Duration(number)*time.Minute)
		e.Reschedule()
		d.ledger.Overwrite(e)
	}
	checkEqual(t, "at once", len(d.mustAttend("attention", ExitDone)), 0)
	d.now = d.now.Add(time.Hour)
	lines := d.mustAttend("attention --timeout 1s", ExitWaiting)
	if len(lines) != 1 || lines[0].What != waitsLookups || lines[0].Subject != "sandbox a1" ||
		!strings.HasSuffix(lines[0].Detail, "2 live transactions, such as ShopA_1") ||
		lines[0].Command != "gatewayctl operator check sandbox" {
		t.Errorf("failing lookups: %+v", lines)
	}
	checkEqual(t, "without lookups", len(d.mustAttend("attention --no-lookup", ExitDone)), 0)
}
