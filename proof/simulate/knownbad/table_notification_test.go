package knownbad

// postsWithoutClaim lets the relay post a status without a claim although another status may follow.
var postsWithoutClaim = edit{"functions/relay/relay.go", "if !notification.Status.Final() {", "if entry == nil {"}

// repeatedRecords is a history of SMS whose stream records come late and twice.
var repeatedRecords = kindOfOrder(2).with(choices{
	"rate of late records": last, "rate of repeated records": last, "rate of freezes": last, "length of the freeze": 0,
})

// notificationVariants break the outbox, the relay and the payer's SMS.
var notificationVariants = []variant{
	{
		name: "receipt-not-notified", breaks: "a delivery status is stored without its notification",
		invariants: []int{8},
		edits: []edit{{
			"shared/ledger/report.go", "e.Outbox.enqueue(e.Key, status, now)\n", "_ = e.Outbox.enqueue\n",
		}},
	},
	{
		name: "delivered-before-the-post", breaks: "a notification counts as delivered before it is posted",
		invariants: []int{8},
		edits: []edit{{
			deliverFile,
			"entry, leased, err := delivery.Store(ctx, p.Book, entry, func(e *ledger.Entry) ledger.Transition {" +
				"\n\t\treturn ledger.LeaseDelivery.If(e.Outbox.ClaimDelivery(now))",
			"var claim *ledger.DeliveryClaim\n\t" +
				"entry, leased, err := delivery.Store(ctx, p.Book, entry, func(e *ledger.Entry) ledger.Transition {" +
				"\n\t\tchanged := e.Outbox.ClaimDelivery(now)" +
				"\n\t\tif claim = e.Outbox.HeadClaim(); changed && claim != nil {\n\t\t\t" +
				"e.Outbox.MarkDelivered(claim.ID, now)\n\t\t}\n\t\treturn ledger.LeaseDelivery.If(changed)",
		}, {
			deliverFile, "if entry.Outbox.UnrecordedAttempts == 0 {", "if claim == nil {",
		}, {
			deliverFile, "DeliveryClaim: *entry.Outbox.HeadClaim()", "DeliveryClaim: *claim",
		}},
	},
	{
		name: "failure-is-delivered", breaks: "any response of a merchant's server counts as delivered",
		invariants: []int{8},
		edits: []edit{{
			courierFile, "if result.Outcome == webhook.Delivered {\n\t\tline", "if result.Status != 0 {\n\t\tline",
		}},
	},
	{
		name: "attempts-never-counted", breaks: "a notification is posted without limit", invariants: []int{7, 8},
		world: serverDown(1),
		edits: []edit{{
			outboxFile, "head.Attempts, head.NextAttemptAt, o.UnrecordedAttempts = a.Number, next, 0",
			"head.NextAttemptAt, o.UnrecordedAttempts = next, 0",
		}},
	},
	{
		name: "claims-counted-as-attempts", breaks: "a claim without an outcome costs an attempt", invariants: []int{8},
		world: serverDown(1),
		edits: []edit{{
			outboxFile, "a.Number, a.Status, a.Reason = claim.Attempts+1,",
			"a.Number, a.Status, a.Reason = claim.Attempts+claim.UnrecordedAttempts+1,",
		}},
	},
	{
		name: "dead-letter-dropped", breaks: "a notification that was given up disappears", invariants: []int{8},
		world: serverDown(1),
		edits: []edit{{
			outboxFile, "head.DeadReason, head.NextAttemptAt, head.Parked = reason, time.Time{}, false\n",
			"o.Waiting = o.Waiting[1:]\n",
		}},
	},
	{
		name: "dead-letter-blocks", breaks: "a dead letter keeps the later notifications from being delivered",
		invariants: []int{2, 8},
		world:      serverDown(1),
		edits: []edit{{
			outboxFile, "return slices.IndexFunc(o.Waiting, func(n Notification) bool { return n.DeadReason == \"\" })",
			"return min(0, len(o.Waiting)-1)",
		}},
	},
	{
		name: "newest-first", breaks: "a later status is delivered before an earlier one", invariants: []int{4},
		edits: []edit{{
			outboxFile, "return slices.IndexFunc(o.Waiting, func(n Notification) bool { return n.DeadReason == \"\" })",
			"for i := len(o.Waiting) - 1; i >= 0; i-- {\n\t\tif o.Waiting[i].DeadReason == \"\" {\n\t\t\treturn " +
				"i\n\t\t}\n\t}\n\treturn -1",
		}},
	},
	{
		name: "next-not-scheduled", breaks: "the notification behind a delivered one is never due",
		invariants: []int{8},
		edits: []edit{{outboxFile, "if at == head {\n\t\to.scheduleHead(now)",
			"if at != head {\n\t\to.scheduleHead(now)"}},
	},
	{
		name: "failure-not-rescheduled", breaks: "a failed attempt has no next one", invariants: []int{8},
		edits: []edit{{
			outboxFile, "head.Attempts, head.NextAttemptAt, o.UnrecordedAttempts = a.Number, next, 0",
			"head.Attempts, head.NextAttemptAt, o.UnrecordedAttempts = a.Number, time.Time{}, 0",
		}},
	},
	{
		name: "never-unparked", breaks: "a parked notification stays parked after its endpoint was enabled",
		invariants: []int{8},
		world:      serverDown(last),
		excluded:   "the notification must be parked within the seconds in which a person enables its endpoint",
		edits: []edit{{deliverFile, "if enabled {\n\t\t\t\treturn ledger.Unpark",
			"if !enabled && p.SweepInterval < 0 {\n\t\t\t\treturn ledger.Unpark"}},
	},
	{
		name: "endpoint-never-enabled", breaks: "the command that enables an endpoint leaves it disabled",
		invariants: []int{10},
		world:      serverDown(last),
		edits: []edit{{
			"shared/webhook/health.go", "h.LastReason, h.LastStatus, h.ChangedAt, h.DisabledAt = \"\", 0, now, " +
				"time.Time{}",
			"h.LastReason, h.LastStatus, h.ChangedAt = \"\", 0, now",
		}},
	},
	{
		name: "old-image-posted", breaks: "the relay posts an old stream image", invariants: []int{4},
		world: repeatedRecords.with(choices{"lateness of the stream": 3}),
		edits: []edit{{
			"functions/relay/relay.go", "|| entry.Outbox.Head().NextAttemptAt.Sub(r.Now()) < ledger.FastMargin {",
			"|| entry.Outbox.Head() == nil {",
		}, {
			"functions/relay/relay.go", "notAfter := notification.NextAttemptAt.Add(-clockMargin)",
			"notAfter := notification.NextAttemptAt.Add(time.Hour)",
		}, postsWithoutClaim},
	},
	{
		name: "relay-woken-twice", breaks: "each write before the delivery wakes the relay again", invariants: []int{4},
		world: repeatedRecords,
		edits: []edit{{outboxFile, "head.RelayNotified = true", "head.RelayNotified = false"}, postsWithoutClaim},
	},
	{
		name: "image-stored-unconditionally", breaks: "the relay stores its old stream image over newer writes",
		invariants: []int{2},
		edits: []edit{{
			"functions/relay/relay.go", "stored, transition, err := r.Book.ChangeKnown(ctx, entry, ",
			"read, cancel := context.WithTimeout(context.WithoutCancel(ctx), delivery.StoreTimeout)\n\t" +
				"defer cancel()\n\tif newer, _ := r.Book.Find(read, entry.Key); newer != nil {\n\t\t" +
				"entry.Version = newer.Version\n\t}\n\t" +
				"stored, transition, err := r.Book.ChangeKnown(ctx, entry, ",
		}},
	},
	{
		name: "relay-outlives-its-return", breaks: "the relay continues after its return", invariants: []int{13},
		edits: []edit{{
			"functions/relay/relay.go",
			"ctx, cancel := context.WithTimeoutCause(ctx, r.Limits.total(), webhook.ErrCutOff)\n\tdefer cancel()",
			"ctx = context.WithoutCancel(ctx)",
		}, {
			"functions/relay/relay.go", "group.Wait()\n\tr.Courier",
			"done := make(chan struct{})\n\tr.Start.Start(func() {\n\t\tgroup.Wait()\n\t\tclose(done)\n\t})\n\t" +
				"select {\n\tcase <-done:\n\tcase <-time.After(r.Limits.Prepare):\n\t}\n\tr.Courier",
		}},
	},
	{
		name: "cut-off-spends-an-attempt", breaks: "a post that the relay cut off counts as a failed attempt",
		invariants: []int{13},
		edits: []edit{{
			courierFile, "if result.Outcome == webhook.CutOff {\n\t\treturn nil",
			"if result.Outcome == webhook.CutOff {\n\t\tresult.Reason = webhook.ReasonTimeout",
		}},
	},
	{
		name: "cut-off-sms-forgotten", breaks: "a payer's SMS that the relay cut off counts as certainly not sent",
		invariants: []int{13},
		edits: []edit{{
			userSMSFile, "maybeSent := result.Outcome == operator.Unknown && !result.DuplicateKey || claim.Unleased",
			"maybeSent := result.Outcome == operator.Unknown && !result.DuplicateKey && !claim.Unleased",
		}},
	},
	{
		name: "relay-sms-without-a-trace", breaks: "a refusal of the relay's SMS also counts for an attempt before it",
		invariants: []int{13},
		edits: []edit{{
			userSMSFile, "!result.DuplicateKey || claim.Unleased\n", "!result.DuplicateKey\n",
		}},
	},
	{
		name: "user-sms-new-key", breaks: "each attempt at the payer's SMS has another key", invariants: []int{1},
		world: kindOfOrder(1).with(choices{"has a hanging operator": last, "kind of outage": 0,
			"fault of outage": 1, "operator": 1,
			"length of a hazard": last, "start of a hazard": 0, "length of the faults": last, "content": 1,
			"orders": 0}),
		edits: []edit{{
			userSMSFile, "call.MayRepeat = claim.MayHaveBeenSent",
			"call.MayRepeat, call.UpstreamKey = claim.MayHaveBeenSent, " +
				"call.UpstreamKey+strings.Repeat(\"r\", claim.Attempts)",
		}},
	},
	{
		name: "user-sms-not-rescheduled", breaks: "a failed SMS to the payer has no next attempt", invariants: []int{8},
		edits: []edit{{
			"shared/ledger/user_sms.go", "if outcome.State == UserSMSDue {\n\t\ts.At = outcome.NextAttemptAt",
			"if outcome.State == UserSMSDue {\n\t\ts.At = time.Time{}",
		}},
	},
	{
		name: "parked-late-not-replayed", breaks: "a notification that was parked late is found by no command",
		invariants: []int{8, 10},
		world: serverDown(last).with(kindOfOrder(1)).with(choices{"has a hanging operator": last, "kind of outage": 1,
			"fault of outage": 2, "an outage of a week": last, "start of a hazard": 0,
			"merchant: start of the failure": last}),
		edits: []edit{{
			"gatewayctl/entries/read.go", "p.CreatedAt.Before(first) {\n\t\treturn p.CreatedAt",
			"p.CreatedAt.Before(first) {\n\t\treturn first",
		}, {
			outboxFile, "o.UnrecordedAttempts = true, now.Add(firstParkedCheck), 0",
			"o.UnrecordedAttempts = true, time.Time{}, 0",
		}},
	},
	{
		name: "body-of-the-attempt", breaks: "the body of a notification has one more space with each attempt",
		invariants: []int{15},
		world:      serverDown(1),
		edits: []edit{{
			courierFile, "Body: NotificationBody(e, n, c.BaseURL), ",
			"Body: append(NotificationBody(e, n, c.BaseURL), []byte(\"          \")[:min(n.Attempts, 10)]...), ",
		}},
	},
	{
		name: "retries-together", breaks: "notifications that failed together are retried together",
		invariants: []int{8},
		world:      serverDown(1),
		edits: []edit{{
			"shared/webhook/schedule.go", "err != nil || maxShift == 0 {", "err == nil || maxShift == 0 {",
		}},
	},
	{
		name: "resend-new-id", breaks: "a notification that its merchant has sent again gets another webhook-id",
		invariants: []int{8, 18},
		edits: []edit{{
			replayFile, "o.SelectAddress(false)\n\to.ReplayNotification(id, now)",
			"o.SelectAddress(false)\n\to.ReplayNotification(id, now)\n\to.Head().ID += \"r\"",
		}},
	},
	{
		name: "resend-after-later", breaks: "a resend of an earlier status is queued after a later one was delivered",
		invariants: []int{18},
		edits: []edit{{
			replayFile, "case slices.ContainsFunc(o.Delivered, isLater):",
			"case slices.ContainsFunc(o.Delivered, isLater) && len(o.Delivered) == 0:",
		}},
	},
	{
		name: "resend-beside-a-post", breaks: "a resend is queued while a post of the transaction is in progress",
		invariants: []int{18},
		edits:      []edit{{replayFile, "case o.Head() != nil:", "case o.Head() != nil && o.Head().Parked:"}},
	},
	{
		name: "resend-without-a-write", breaks: "a resend whose write failed gets 202", invariants: []int{18},
		world: choices{"merchants resend": last, "resends of one order": last, "another resend at once": last},
		edits: []edit{{
			resendFile, "finds it outstanding\n\t\treturn nil, fault.NewInternal(err)",
			"finds it outstanding\n\t\treturn entry, nil",
		}},
	},
	{
		name: "resend-of-others", breaks: "a merchant has the notifications of another one sent again",
		invariants: []int{5},
		edits: []edit{{
			resendFile, "if entry == nil || entry.Merchant.ID != p.ID {", "if entry == nil || p.ID == \"\" {",
		}},
	},
	{
		name: "resend-without-bound", breaks: "a merchant has a notification sent again without limit",
		invariants: []int{18},
		world:      choices{"merchants resend": last, "resends of one order": last, "another resend at once": last},
		edits:      []edit{{replayFile, "case len(o.Replays) >= MaxResends:", "case len(o.Replays) > 2*MaxResends:"}},
	},
}
