package knownbad

import "mobilegateway/proof/simulate/outside"

// ledgerVariants break how entries are stored, found and replayed.
var ledgerVariants = []variant{
	{
		name: "unconditional-write", breaks: "a write overwrites the one that came first", invariants: []int{2},
		edits: []edit{{
			storeFile, "attributeVersion + \" = :value AND \"", "attributeVersion + \" >= :value AND \"",
		}, {
			storeFile, "condition, dynamoitem.Number(e.Version-1))", "condition, dynamoitem.Number(0))",
		}},
	},
	{
		name: "unconditional-insert", breaks: "a repeat overwrites the entry of the first request",
		invariants: []int{1, 2},
		edits: []edit{{
			storeFile, "return s.putEntry(ctx, \"inserting\", e, condition,",
			"return s.putEntry(ctx, \"inserting\", e, condition + \" OR \" + attributeVersion + \" >= :value\" +" +
				" \" OR \" + attributeVersion + \" < :value\",",
		}},
	},
	{
		name: "any-writer-is-us", breaks: "another's write of the same version counts as our own",
		invariants: []int{1, 2, 3, 7, 8},
		edits: []edit{{
			storeFile, "if e.Writer != \"\" && existing.Writer == e.Writer && existing.Version == e.Version {",
			"if existing.Version == e.Version {",
		}},
	},
	{
		name: "outbox-after-the-state", breaks: "the notification is stored by a second write, which a crash prevents",
		invariants: []int{8},
		edits: []edit{{
			bookFile, "next.Reschedule()\n\t\tcurrent, err := b.Store.Replace(ctx, next, t)",
			"queued := next.Outbox.Waiting\nsplit := len(queued) > len(known.Outbox.Waiting)\nif split {\n" +
				"next.Outbox.Waiting = known.Outbox.Waiting\n}\nnext.Reschedule()\n" +
				"current, err := b.Store.Replace(ctx, next, t)\n" +
				"if split && err == nil && current == nil {\nnext = next.Clone()\n" +
				"next.Outbox.Waiting, next.Version = queued, next.Version+1\nnext.Reschedule()\n" +
				"current, err = b.Store.Replace(ctx, next, t)\n}",
		}},
	},
	{
		name: "replay-keyed-by-body", breaks: "the same key with another body is another message",
		invariants: []int{1, 3},
		edits: []edit{{
			"functions/sms/sms.go", "ledger.SMSID(a.Profile.ID, params.correlator)",
			"ledger.SMSID(a.Profile.ID, params.correlator+string(params.canonical))",
		}},
	},
	{
		name: "other-body-executes", breaks: "the same key with another body takes an unknown payment over",
		invariants: []int{3},
		world: calls(1, outside.HangAfter, outside.ResetAfter,
			outside.ServerErrorBefore).with(choices{"duplicates": last, "another body": last}),
		edits: []edit{{
			"shared/ledger/verdict.go", "same := existing.Request.Fingerprint == incoming.Request.Fingerprint",
			"same := true",
		}},
	},
	{
		name: "key-without-merchant", breaks: "two merchants share one space of idempotency keys", invariants: []int{3},
		world: kindOfOrder(2).with(choices{"content": last}),
		edits: []edit{{
			"shared/ledger/id.go", "return derive(\"sms/correlator\", merchantID, correlator)",
			"return derive(\"sms/correlator\", correlator)",
		}},
	},
	{
		name: "correlator-without-merchant", breaks: "two merchants share one space of charges", invariants: []int{3},
		world: kindOfOrder(0).with(choices{"content": 8}),
		edits: []edit{{
			"shared/ledger/id.go", "return derive(\"charge/correlator\", merchantID, correlator)",
			"return derive(\"charge/correlator\", correlator)",
		}},
	},
	{
		name: "reference-without-merchant", breaks: "two merchants share one space of referenceCodes",
		invariants: []int{3},
		world:      kindOfOrder(0).with(choices{"content": 8}),
		edits: []edit{{
			"shared/ledger/id.go", "return derive(\"reference\", merchantID, referenceCode)",
			"return derive(\"reference\", referenceCode)",
		}},
	},
	{
		name: "upstream-key-without-merchant", breaks: "two merchants share the keys at the operator",
		invariants: []int{1, 6},
		edits: []edit{{
			"shared/ledger/id.go", "key := merchantName + \".\" + correlator", "key := \".\" + correlator",
		}},
	},
	{
		name: "replay-not-marked", breaks: "a repeat gets the stored response as if it were the first",
		invariants: []int{3},
		edits:      []edit{{callFile, "if replayed {", "if replayed && a.Stored == nil {"}},
	},
	{
		name: "response-rebuilt", breaks: "a repeat gets a response of now instead of the stored one",
		invariants: []int{3},
		edits: []edit{{
			"functions/pay/pay.go", "response := a.StoredResponse(replayed)",
			"response := a.StoredResponse(replayed)\nif replayed && params.channel != channelWeb {\n" +
				"response.Body = payment.ResponseBody(a.Stored, a.Stored.Status)\n}",
		}},
	},
	{
		name: "final-status-overwritten", breaks: "a contradicting report changes a final status", invariants: []int{2},
		world: kindOfOrder(1).with(faultsOf(outside.Payers,
			outside.LieReversed)).with(choices{"the operator lies": last}),
		edits: []edit{{
			paymentFile, "if e.StatusFinal() {\n\t\tif e.Status == r.Status {",
			"if e.StatusFinal() {\n\t\tif e.Status != r.Status {\n" +
				"r.makeFinal(e, now)\nreturn Applied\n}\nif e.Status == r.Status {",
		}},
	},
	{
		name: "receipt-steps-back", breaks: "an SMS returns to an earlier delivery status", invariants: []int{2, 4},
		edits: []edit{{
			"shared/ledger/report.go", "status.progress() <= e.Status.progress() {", "status == e.Status {",
		}},
	},
	{
		name: "callback-is-final", breaks: "a callback's claim becomes final without a lookup", invariants: []int{1, 2},
		world: kindOfOrder(1).with(faultsOf(outside.CallbackContents, outside.CallbackContradicting)),
		edits: []edit{{
			notifFile, "if !lookup.StatusFinal {",
			"if report.Status.Final() {\n\t\treturn func(e *ledger.Entry) ledger.Transition { " +
				"return ledger.EndPayment.After(e.ApplyFinalStatus(claimReport, now)) }\n\t}\n\t" +
				"if !lookup.StatusFinal {",
		}},
	},
	{
		name: "not-found-is-failed", breaks: "a payment that getStatus does not find yet is failed",
		invariants: []int{1, 6},
		world:      kindOfOrder(1).with(faultsOf(outside.Lookups, outside.NotFoundYet)),
		edits: []edit{{
			applyFile, "case lookup.StatusFinal:\n\t\treport :=",
			"case lookup.NotFound:\n\t\tfailed := ledger.StatusReport{Status: ledger.Failed, Source: \"getStatus\"}\n" +
				"\t\tmade = ledger.EndPayment.After(e.ApplyFinalStatus(failed, now))\n" +
				"\tcase lookup.StatusFinal:\n\t\treport :=",
		}},
	},
	{
		name: "expires-early", breaks: "a payment expires while its operator may still end it", invariants: []int{1},
		world: kindOfOrder(1).with(faultsOf(outside.Payers,
			outside.PayerLate)).with(choices{"length of the faults": 2, "operator: time of the payer": 2}),
		edits: []edit{{
			paymentFile, "if now.Sub(e.ReservedAt) < lifetime || e.Claim.Status",
			"if now.Sub(e.ReservedAt) < lifetime/24 || e.Claim.Status",
		}},
	},
	{
		name: "expires-without-response", breaks: "a payment expires although its operator does not respond",
		invariants: []int{1, 2},
		world: kindOfOrder(1).with(faultsOf(outside.Payers,
			outside.PayerLate)).with(choices{"length of the faults": last, "operator: time of the payer": 2,
			"start": 0}).
			with(faultsOf(outside.Lookups, outside.ConnectRefused, outside.ResetBefore, outside.StaleBefore,
				outside.HangBefore, outside.TruncatedAfter, outside.GarbageBefore,
				outside.ServerErrorBefore)).with(faultsOf(outside.CallbackTimes, outside.CallbackNever)),
		edits: []edit{
			{"shared/confirm/lookup.go", "return r.Supported && !r.Responded", "return r.Supported && !r.Supported"},
			{applyFile, "ledger.NoTransition && lookup.Responded && !", "ledger.NoTransition && !"},
		},
	},
	{
		name: "claims-without-a-bound", breaks: "a notification is claimed again and again without an outcome",
		invariants: []int{8},
		world: choices{"has notifications without an outcome": last, "start": 0, "length of the faults": last,
			"only one merchant and one operator have faults": 0},
		edits: []edit{{
			outboxFile, "if o.UnrecordedAttempts >= MaxUnrecordedAttempts {", "if o.UnrecordedAttempts < 0 {",
		}},
	},
	{
		name: "reason-dropped", breaks: "the reason of a failed payment is not stored", invariants: []int{12},
		world: kindOfOrder(1).with(faultsOf(outside.Payers, outside.PayerFails)),
		edits: []edit{{paymentFile, "if r.Status == Failed {", "if r.Status != Failed {"}},
	},
}
