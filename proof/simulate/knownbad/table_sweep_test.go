package knownbad

import "mobilegateway/proof/simulate/outside"

// crowd is a history with many due entries of one merchant at one operator, and payments of the others.
var crowd = choices{
	"only one merchant and one operator have faults": last, "a crowd of due entries": last, "kind of order": 1,
	"start of a hazard": 0, "start": 0, "length of the faults": 1, "orders": last,
}

// sweepVariants break timers, lookups and the sweep.
var sweepVariants = []variant{
	{
		name: "no-rescheduling", breaks: "an unknown outcome leaves the due index", invariants: []int{7},
		edits: []edit{{entryFile, "if e.pollable(e.Kind, e.State) {\n\t\tdue = sooner(due, e.Poll.At)",
			"if e.pollable(e.Kind, e.State) && due.IsZero() {\n\t\tdue = time.Time{}"}},
	},
	{
		name: "lease-not-scheduled", breaks: "a reservation is not in the due index", invariants: []int{7},
		edits: []edit{{entryFile, "due = sooner(due, e.LeaseUntil.Add(LapseMargin))", "due = time.Time{}"}},
	},
	{
		name: "notification-not-scheduled", breaks: "a notification is not in the due index", invariants: []int{8},
		edits: []edit{{entryFile, "due = sooner(due, head.NextAttemptAt)", "_ = head"}},
	},
	{
		name: "user-sms-not-scheduled", breaks: "the payer's SMS is not in the due index", invariants: []int{8},
		edits: []edit{{entryFile, "due = sooner(due, e.UserSMS.At)", "_ = e"}},
	},
	{
		name: "poll-time-never-moves", breaks: "a lookup does not move the time of the next one", invariants: []int{7},
		edits: []edit{{paymentFile, "e.Poll.At = next\n\te.Poll.Attempts++", "e.Poll.Attempts++"}},
	},
	{
		name: "lookup-writes-a-reason", breaks: "a lookup writes the reason of a failure", invariants: []int{11},
		edits: []edit{{paymentFile, "e.Poll.At = next\n\te.Poll.Attempts++",
			"e.Poll.At = next\n\te.Poll.Attempts++\n\te.FailureReason = \"polled\""}},
	},
	{
		name: "unknown-never-due", breaks: "an unknown charge or SMS has no time for a person's list",
		invariants: []int{7},
		edits:      []edit{{outcomeFile, "e.Poll.At = now.Add(StaleAfter)", "e.Poll.At = time.Time{}"}},
	},
	{
		name: "unknown-never-listed", breaks: "an unknown charge or SMS is not counted for the alarm",
		invariants: []int{7},
		edits: []edit{{
			lookupFile, "if err == nil && leased {", "if err != nil && leased {",
		}},
	},
	{
		name: "overdue-never-listed", breaks: "a payment that its operator never ends is not counted for the alarm",
		invariants: []int{7},
		world: kindOfOrder(1).with(faultsOf(outside.Payers, outside.PayerNever)).
			with(faultsOf(outside.CallbackContents, outside.CallbackContradicting)),
		edits: []edit{{lookupFile, "case e.ClaimFlagged(now):\n\t\treturn true",
			"case e.ClaimFlagged(now):\n\t\treturn false"}},
	},
	{
		name: "lapsed-never-marked", breaks: "a lapsed reservation stays reserved", invariants: []int{7},
		world: kindOfOrder(0).with(choices{"rate of crashes": last}),
		edits: []edit{{lookupFile, "e.MarkLapsed(now, next)", "e.MarkLapsed(now.Add(-1000*time.Hour), next)"}},
	},
	{
		name: "lapsed-never-polled", breaks: "a lapsed payment has no lookup", invariants: []int{7},
		edits: []edit{{lookupFile, "next := now\n\tif entry.Kind", "next := time.Time{}\n\tif entry.Kind"}},
	},
	{
		name: "lapsed-is-released", breaks: "the sweep frees the key of a lapsed reservation",
		invariants: []int{1, 6, 11},
		edits: []edit{{
			outcomeFile, "if e.hasReport(e.Kind) {\n\t\te.State, e.Poll.At = Done, time.Time{}",
			"e.State, e.EverUnknown, e.Poll.At = Released, false, time.Time{}\n\t" +
				"if e.hasReport(e.Kind) {\n\t\te.State, e.Poll.At = Done, time.Time{}",
		}},
	},
	{
		name: "lapse-without-margin", breaks: "a sweep whose clock is ahead marks a live reservation as lapsed",
		invariants: []int{7},
		world: calls(0, outside.HangBefore, outside.HangAfter,
			outside.HangLate).with(choices{"second of the start": 50, "orders": last}),
		edits: []edit{{
			"shared/ledger/call.go", "return c.LeaseLapsed(now.Add(-LapseMargin))", "return c.LeaseLapsed(now)",
		}, {entryFile, "sooner(due, e.LeaseUntil.Add(LapseMargin))", "sooner(due, e.LeaseUntil)"}},
	},
	{
		name: "half-of-the-shards", breaks: "the sweep reads only half of the shards", invariants: []int{0, 7},
		edits: []edit{{"functions/sweep/pages.go", "ledger.DueQuery{Shard: shard, Before",
			"ledger.DueQuery{Shard: shard / 2 * 2, Before"}},
	},
	{
		name: "acts-without-claim", breaks: "the sweep posts without a claim", invariants: []int{4, 8},
		world: kindOfOrder(2).with(choices{"has sweeps started twice": last, "rate of late records": last,
			"lateness of the stream": 2,
			"rate of freezes":        last, "length of the freeze": 0, "orders": last}),
		edits: []edit{{
			deliverFile, "return ledger.LeaseDelivery.If(e.Outbox.ClaimDelivery(now))", "if !now.IsZero() {\n\t\t\t" +
				"return ledger.NoTransition\n\t\t}\n\t\treturn ledger.LeaseDelivery.If(e.Outbox.ClaimDelivery(now))",
		}, {
			deliverFile, "leased == ledger.NoTransition {\n\t\treturn entry, err\n\t}\n\t" +
				"if entry.Outbox.UnrecordedAttempts == 0 {",
			"leased != ledger.NoTransition {\n\t\treturn entry, err\n\t}\n\t" +
				"if entry.Outbox.HeadClaim() == nil {",
		}},
	},
	{
		name: "lookup-without-claim", breaks: "the sweep looks up without a claim", invariants: []int{0, 7},
		edits: []edit{{
			lookupFile, "if due {\n\t\t\te.ReschedulePoll(p.nextPollAt(e, now))\n\t\t}\n\t\treturn ",
			"due = due && now.IsZero()\n\t\treturn ",
		}},
	},
	{
		name: "hanging-sms-takes-all-workers", breaks: "the workers of the sweep wait for an operator's payers' SMS",
		invariants: []int{9},
		world:      crowd.with(choices{"due of the crowd": 1}),
		edits: []edit{{
			deliverFile, "return preparedJob{requirement{dependencies: []dependency{{userSMSOf, e.Route.Operator}}}, " +
				"p.sendUserSMS}, nil",
			"return preparedJob{do: p.sendUserSMS}, nil",
		}},
	},
	{
		name: "unmoved-keys-hide-others", breaks: "due entries that cannot move hide all behind them",
		invariants: []int{9},
		world:      crowd.with(choices{"due of the crowd": 0}),
		edits: []edit{{
			"functions/sweep/pages.go", "page, cursor, err := queue.DueKeys(ctx, r.query)",
			"page, cursor, err := queue.DueKeys(ctx, r.query)\n\tcursor = \"\"",
		}, {
			"functions/sweep/queue.go", "w.errs = append(w.errs, err)\n\t\t\tw.postpone(ctx, next, now)",
			"w.errs, w.progressed = append(w.errs, err), true",
		}},
	},
	{
		name: "payer-sms-never-sent", breaks: "the sweep claims the payer's SMS and does not send it",
		invariants: []int{8},
		world:      kindOfOrder(1),
		edits: []edit{{
			deliverFile, "if err == nil && made != ledger.NoTransition && !entry.UserSMS.GivenUp() {",
			"if err != nil && made != ledger.NoTransition && !entry.UserSMS.GivenUp() {",
		}},
	},
	{
		name: "flagged-claim-each-hour", breaks: "a payment that waits for a person is looked up each hour",
		invariants: []int{7},
		world: kindOfOrder(1).with(faultsOf(outside.Payers, outside.PayerNever)).
			with(faultsOf(outside.CallbackContents, outside.CallbackContradicting)),
		edits: []edit{{
			lookupFile, "case e.ClaimFlagged(now) && age >= ledger.ClaimFlagAfter:",
			"case e.ClaimFlagged(now) && age < ledger.ClaimFlagAfter:",
		}},
	},
}
