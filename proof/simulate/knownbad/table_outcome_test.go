package knownbad

import "mobilegateway/proof/simulate/outside"

// forgottenSMS is a history of SMS that are requested again after their entries have expired. The operator still knows
// their keys.
var forgottenSMS = kindOfOrder(2).with(choices{
	"has a short retention": last, "retention of SMS": 0, "duplicates": last, "another body": 0,
	"time of the duplicate": last, "length of the faults": last, "start": 0, "has faults of operator call": 0,
})

// outcomeVariants break what the gateway concludes from an attempt, and who may make the next one.
var outcomeVariants = []variant{
	{
		name: "no-fencing", breaks: "the outcome of a former owner ends its successor's reservation",
		invariants: []int{1, 3, 6},
		world: calls(0, outside.Unavailable, outside.ConnectRefused, outside.Throttled, outside.ResetAfter,
			outside.HangAfter,
			outside.ServerErrorAfter, outside.GarbageAfter).with(choices{"rate of table faults": last,
			"kind of table fault": 0, "orders": last,
			"duplicates": last, "time of the duplicate": 1, "another body": 0}),
		edits: []edit{{
			outcomeFile, "if e.Owner != owner || (e.State != Reserved && e.State != Unknown) {",
			"if e.State != Reserved && e.State != Unknown {",
		}},
	},
	{
		name: "unknown-forgotten", breaks: "a takeover forgets that an earlier attempt may have been applied",
		invariants: []int{1, 6},
		world:      calls(0, outside.HangAfter, outside.Unavailable),
		edits: []edit{{
			outcomeFile, "next.EverUnknown = e.EverUnknown || e.State == Unknown || e.State == Reserved",
			"next.EverUnknown = false",
		}},
	},
	{
		name: "lapsed-lease-is-free", breaks: "a lapsed reservation counts as never sent", invariants: []int{1, 6},
		world: calls(0, outside.Unavailable).with(choices{"rate of crashes": last, "time of the duplicate": 2,
			"wait before the retry": 2}),
		edits: []edit{{
			outcomeFile, "next.EverUnknown = e.EverUnknown || e.State == Unknown || e.State == Reserved",
			"next.EverUnknown = e.EverUnknown || e.State == Unknown",
		}},
	},
	{
		name: "release-after-unknown", breaks: "a later \"not applied\" releases what an earlier attempt may have " +
			"applied",
		invariants: []int{1, 6},
		world:      calls(0, outside.HangAfter, outside.Unavailable),
		edits: []edit{
			{callFile, "case result.Outcome == operator.NotApplied && !reservation.EverUnknown:",
				"case result.Outcome == operator.NotApplied:"},
			{outcomeFile, "return o.UnbindBody || !e.EverUnknown", "return true"},
		},
	},
	{
		name: "unknown-released", breaks: "an unknown outcome releases the key", invariants: []int{1, 6},
		edits: []edit{
			{callFile, "outcome.State = ledger.Unknown", "outcome.State = ledger.Released"},
		},
	},
	{
		name: "payment-released-while-unknown", breaks: "an unknown outcome of a payment counts as not applied",
		invariants: []int{17},
		world: calls(1, outside.HangAfter, outside.ResetAfter).
			with(faultsOf(outside.CallbackTimes, outside.CallbackNever)),
		edits: []edit{{
			callFile, "outcome.DuplicateKey = result.DuplicateKey",
			"outcome.DuplicateKey = result.DuplicateKey\n\t\tif reservation.Kind == ledger.Payment {\n" +
				"\t\t\toutcome.State = ledger.Released\n\t\t}",
		}},
	},
	{
		name: "retry-at-another-operator", breaks: "a retry of an unknown charge goes to another operator",
		invariants: []int{17},
		world:      calls(0, outside.HangAfter, outside.ResetAfter).with(choices{"duplicates": last}),
		edits: []edit{{
			carrierAPIFile, "target, err := d.accounts.Find(ctx, call.Platform, call.AccountID)",
			"if other := map[string]string{\"sandbox\": \"orange\", \"orange\": \"mtn\", \"mtn\": \"sandbox\"}; " +
				"call.MayRepeat {\n\t\tcall.Platform, call.AccountID = other[call.Platform], \"\"\n\t}\n\t" +
				"target, err := d.accounts.Find(ctx, call.Platform, call.AccountID)",
		}},
	},
	{
		name: "delete-on-error", breaks: "an unknown outcome deletes the entry", invariants: []int{1, 3, 6, 7},
		edits: []edit{{
			callFile, "logOutcome(line, updated, result)",
			"if updated.State == ledger.Unknown {\n" +
				"_, _ = p.Book.ApplyChange(ctx, updated, func(e *ledger.Entry) ledger.Transition { " +
				"e.ExpireAt = p.Now(); return ledger.RecordUnknown })\n}\n" +
				"logOutcome(line, updated, result)",
		}},
	},
	{
		name: "first-outcome-wins", breaks: "a success that comes after another outcome is dropped",
		invariants: []int{1, 3, 7, 10, 11},
		edits: []edit{{
			outcomeFile, "case e.State == Refused:\n\t\treturn e.addConflict",
			"case e.State != Reserved:\n\t\treturn e.addConflict",
		}},
	},
	{
		name: "blind-retry", breaks: "a request that may have been applied is sent again, and only the second " +
			"response counts",
		invariants: []int{1, 6},
		world:      calls(0, outside.ResetAfter, outside.Unavailable),
		edits: []edit{{
			carrierAPIFile, "if sent.ConnectionLost && d.canRetry(ctx, call) {\n\t\tsent.retried = true",
			"if sent.Err != nil && ctx.Err() == nil {",
		}},
	},
	{
		name: "retry-result-only", breaks: "the outcome of a retry hides that of the cut attempt before",
		invariants: []int{1, 6},
		world:      calls(0, outside.StaleAfter, outside.Unavailable),
		edits: []edit{{
			carrierAPIFile, "if sent.retried {\n\t\t*result = outcomeAfterRetry(*result)\n\t}", "_ = sent.retried",
		}},
	},
	{
		name: "resend-after-window", breaks: "a request is sent again after the operator has forgotten its key",
		invariants: []int{1},
		edits: []edit{{
			"shared/ledger/verdict.go", "if resendWindow > 0 && now.Sub(existing.SentAt) < resendWindow {",
			"if resendWindow > 0 {",
		}},
	},
	{
		name: "upstream-key-per-attempt", breaks: "a second attempt has another key at the operator",
		invariants: []int{1},
		edits: []edit{{
			callFile, "call.MayRepeat = a.Stored.EverUnknown",
			"if call.MayRepeat = a.Stored.EverUnknown; call.MayRepeat {\n\t\tcall.UpstreamKey += \"r\"\n\t}",
		}},
	},
	{
		name: "timeout-is-not-applied", breaks: "a call without a response counts as not applied",
		invariants: []int{1, 6},
		world:      calls(0, outside.HangAfter, outside.ResetAfter),
		edits:      []edit{{"shared/operator/upstream/outcome.go", "case !x.MayHaveSent:", "case x.Err != nil:"}},
	},
	{
		name: "server-error-is-not-applied", breaks: "a 500 counts as not applied", invariants: []int{1, 6},
		world: calls(0, outside.ServerErrorAfter),
		edits: []edit{{
			classifyFile, "if !isRequestError {\n\t\treturn upstream.Unknown(",
			"if !isRequestError {\n\t\treturn upstream.NotApplied(fault.OperatorUnavailable, ",
		}},
	},
	{
		name: "garbage-is-success", breaks: "any 2xx response counts as a success", invariants: []int{1},
		edits: []edit{{
			classifyFile, "return upstream.Unknown(logsafe.Errorf(\"the operator's response %d lacks fields of a " +
				"success\", x.Status))",
			"return operator.Result{Outcome: operator.Succeeded}",
		}},
	},
	{
		name:       "duplicate-without-a-send",
		breaks:     "a duplicate counts as sent although no send of ours reached the operator",
		invariants: []int{1},
		world:      forgottenSMS,
		edits: []edit{{
			"functions/sms/sms.go", "if result.DuplicateKey && a.Stored.MayHaveSent() && !a.Stored.ForeignKey {",
			"if result.DuplicateKey && a.Stored.EverUnknown {",
		}},
	},
	{
		name: "duplicate-is-success", breaks: "a duplicate of a key that only another could have sent counts as " +
			"our success",
		invariants: []int{1},
		world:      forgottenSMS,
		edits: []edit{{
			classifyFile, "result.DuplicateKey, result.OperatorReference = true, " +
				"smsRequestID(x.Header.Get(\"Location\"))",
			"result.Outcome, result.Fault = operator.Succeeded, nil",
		}},
	},
	{
		name: "lease-shorter-than-call", breaks: "a lease ends while its own call may still be in progress",
		invariants: []int{7},
		world: calls(0, outside.HangAfter, outside.SlowAfter).with(choices{"duplicates": last,
			"time of the duplicate": 0, "another body": 0}),
		edits: []edit{{
			reserveFile, "e.LeaseUntil = a.Request.Deadline.Add(leaseMargin)",
			"e.LeaseUntil = p.Now().Add(time.Second)",
		}},
	},
	{
		name:       "sms-with-a-receipt-stays-unknown",
		breaks:     "an SMS whose receipt came before its failed send is listed forever",
		invariants: []int{10},
		world: calls(2, outside.LieUnavailable).with(faultsOf(outside.CallbackTimes, outside.CallbackEarly)).
			with(faultsOf(outside.Receipts, outside.ReceiptImpossible)).with(choices{"the operator lies": last}),
		edits: []edit{{
			outcomeFile, "(e.Kind == SMS || o.State == Unknown && e.Response.Status != 0)",
			"o.State == Unknown && (e.Kind == SMS || e.Response.Status != 0)",
		}, {
			"shared/ledger/manual.go", "if e.Kind == SMS && e.State == Unknown {",
			"if e.Kind == SMS && e.State == Unknown && e.Version < 0 {",
		}},
	},
	{
		name: "claim-of-a-released-payment", breaks: "no person can end the unconfirmed claim of a released payment",
		invariants: []int{10},
		world: kindOfOrder(1).with(always(outside.OperatorCalls, outside.LieUnavailable)).
			with(always(outside.Payers, outside.PayerNever)).
			with(always(outside.CallbackContents, outside.CallbackContradicting)).
			with(choices{"the operator lies": last, "has " + string(outside.LieDuplicate): 0,
				"has " + string(outside.LieReversed): 0}),
		edits: []edit{{
			"shared/ledger/manual.go", "case e.State == Released && e.Claim.Status != \"\" && status != Successful:",
			"case e.State == Released && e.Claim.Status != \"\" && status == \"\":",
		}},
	},
	{
		name:       "foreign-key-forgotten",
		breaks:     "a duplicate counts as sent although the key was another's before our send",
		invariants: []int{1},
		world: forgottenSMS.with(choices{"rate of freezes": last, "length of the freeze": 1, "rate of crashes": 0,
			"rate of lost responses": 0, "wait before the retry": 3, "orders": last}),
		edits: []edit{{
			"functions/sms/sms.go", "a.Stored.MayHaveSent() && !a.Stored.ForeignKey {", "a.Stored.MayHaveSent() {",
		}},
	},
}
