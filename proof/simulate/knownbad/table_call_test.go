package knownbad

import "mobilegateway/proof/simulate/outside"

// callVariants break amounts, secrets, signatures and callbacks.
var callVariants = []variant{
	{
		name: "minor-units-as-major", breaks: "an amount in minor units is read as major units", invariants: []int{6},
		edits: []edit{{
			"functions/charge/request.go", "if p.country.ChargesInMinorUnits {",
			"if p.country.ChargesInMinorUnits && p.minor > 0 {",
		}},
	},
	{
		name: "refund-of-applied-amount", breaks: "the amount of a success is taken out of its day",
		invariants: []int{6},
		edits: []edit{{
			counterFile, "if !e.Amount.CountsDaily || !e.NotApplied() {",
			"if !e.Amount.CountsDaily || e.State == ledger.Reserved {",
		}},
	},
	{
		name: "no-refund", breaks: "the amount of a refusal stays in its day", invariants: []int{6},
		edits: []edit{{
			counterFile, "if !e.Amount.CountsDaily || !e.NotApplied() {", "if e.Version > 0 {",
		}},
	},
	{
		name: "amount-not-counted", breaks: "an amount is never counted before its call", invariants: []int{6},
		edits: []edit{{
			counterFile, "if !reservation.Amount.CountsDaily {", "if reservation.Version > 0 {",
		}},
	},
	{
		name: "daily-limit-ignored", breaks: "no amount is over the limit of its day", invariants: []int{6},
		world: kindOfOrder(0).with(choices{"shop": 1, "orders": last, "duplicates": last, "another body": last,
			"time of the duplicate": 1}),
		edits: []edit{{counterFile, "if !limited || reservation.EverUnknown {", "if limited {"}},
	},
	{
		name: "sum-not-per-day", breaks: "the sum of a month counts as that of a day", invariants: []int{6},
		world: kindOfOrder(0).with(choices{"shop": 1, "orders": last, "length of the faults": last}),
		edits: []edit{{counterFile, "Day: sent.Format(time.DateOnly), TransactionKey",
			"Day: sent.Format(\"2006-01\"), TransactionKey"}},
	},
	{
		name: "refund-without-fence", breaks: "a late refund takes out an amount that was counted again",
		invariants: []int{6},
		world: calls(0, outside.Unavailable, outside.ConnectRefused, outside.Throttled).with(choices{"shop": 1,
			"rate of freezes":      last,
			"length of the freeze": 0, "rate of crashes": 0, "duplicates": last, "another body": 0,
			"time of the duplicate": 0, "orders": last}),
		edits: []edit{{
			"shared/limit/dynamo/store.go", "condition := \"amount = :from AND fence <= :fence\"",
			"condition := \"amount = :from AND (fence <= :fence OR fence > :fence)\"",
		}},
	},
	{
		name: "late-success-uncounted", breaks: "a success that comes after the release is not counted again",
		invariants: []int{6},
		world: calls(1, outside.LieUnavailable).with(choices{"the operator lies": last, "shop": 1,
			"wait before the retry": last}),
		edits: []edit{{
			"shared/dailyamount/change.go", "changed && e.Amount.CountsDaily && mayBeUncounted(g.before)",
			"changed && e.Version < 0 && mayBeUncounted(g.before)",
		}},
	},
	{
		name: "late-success-counted-once", breaks: "a payment that was released again meanwhile ends uncounted",
		invariants: []int{6},
		world: calls(1, outside.LieUnavailable).with(choices{"the operator lies": last, "shop": 1, "duplicates": last,
			"another body": 0}),
		edits: []edit{{
			"shared/dailyamount/change.go", "isLateSuccess && g.before.Version != g.counted",
			"isLateSuccess && g.counted < 0",
		}},
	},
	{
		name: "retry-after-midnight-uncounted", breaks: "an amount is counted on no day after midnight",
		invariants: []int{6},
		world: calls(0, outside.HangAfter).with(choices{"shop": 1, "rate of crashes": last, "length of the faults": 2,
			"start": last, "wait before the retry": 5}),
		edits: []edit{{counterFile, "case !dayOpen:\n\t\tmaxSum = unlimited", "case !dayOpen:\n\t\treturn nil"}},
	},
	{
		name: "stale-ring-404", breaks: "an authentic callback under a new key is refused while its key cannot be read",
		invariants: []int{8},
		world: kindOfOrder(1).with(choices{"has a rotation of keys": last, "has an unreadable secret": last,
			"ring": 0, "secret": 0}),
		edits: []edit{{"shared/keyring/refreshing.go", "if !found && k.mayLack(", "if found && k.mayLack("}},
	},
	{
		name: "forged-token-accepted", breaks: "a callback needs no valid token", invariants: []int{5},
		edits: []edit{{
			"shared/callback/keys.go", "return Proof{k, number}, hmac.Equal(tag, pathMAC(key, path)), nil",
			"return Proof{k, number}, len(tag) == len(pathMAC(key, path)), nil",
		}},
	},
	{
		name: "callback-404-on-error", breaks: "a correct callback is refused for good while the ledger cannot be read",
		invariants: []int{8},
		world: kindOfOrder(2).with(choices{"rate of table faults": last, "kind of table fault": 1,
			"orders": last}),
		edits: []edit{{
			"shared/callback/request.go", "entry, err := book.Find(ctx, key)\n\tif err != nil {",
			"entry, err := book.Find(ctx, key)\n\tif err != nil {\n\t\treturn nil, " +
				"fault.New(fault.RouteNotFound)\n\t}\n\tif err != nil {",
		}},
	},
	{
		name: "callback-accepted-unstored", breaks: "a receipt that could not be stored gets 200", invariants: []int{8},
		world: kindOfOrder(2).with(faultsOf(outside.CallbackTimes, outside.CallbackLate)).with(choices{
			"has a table that fails": last, "failing table": last, "start of a hazard": 1, "length of a hazard": 1,
			"length of the faults": 0, "operator: delay of the callback": 0, "start": 0, "orders": last,
		}),
		edits: []edit{{
			"functions/receipt/receipt.go",
			"if err == nil {\n\t\treq.LogLine.SetOutcome(string(updated.Status))\n\t}\n\treturn callback.Response(err)",
			"_ = updated\n\treturn callback.Response(nil)",
		}},
	},
	{
		name: "payment-callback-unstored", breaks: "a callback of a payment that could not be stored gets 200",
		invariants: []int{8},
		world: kindOfOrder(1).with(faultsOf(outside.CallbackTimes, outside.CallbackLate)).with(choices{
			"has a table that fails": last, "failing table": last, "start of a hazard": 1, "length of a hazard": 1,
			"length of the faults": 0, "operator: delay of the callback": 0, "start": 0, "orders": last,
		}),
		edits: []edit{{
			notifFile, "RouteNotFound)\n\t}\n\treturn callback.Response(h.storeReport(ctx, req, entry, report))",
			"RouteNotFound)\n\t}\n\t_ = h.storeReport(ctx, req, entry, report)\n\treturn callback.Response(nil)",
		}},
	},
	{
		name: "token-in-log", breaks: "the access token of the gateway is in a log line", invariants: []int{5},
		edits: []edit{
			{"shared/operator/upstream/client.go", "return Exchange{Err: sanitizeError(err), MayHaveSent",
				"return Exchange{Err: errors.Join(errors.New(request.Header.Get(\"Authorization\")), " +
					"sanitizeError(err)), MayHaveSent"},
			{"shared/logsafe/logsafe.go", "name := fmt.Sprintf(\"%T\", err)", "name := err.Error()"},
		},
	},
	{
		name: "end-user-token-in-log", breaks: "the token of an end user is in a log line", invariants: []int{5},
		edits: []edit{{
			reserveFile, "line.SetTransactionKey(a.Key.Value)",
			"line.SetTransactionKey(a.Request.Header(\"gw-token\"))",
		}},
	},
	{
		name: "wrong-signing-secret", breaks: "a notification is signed with a secret that its merchant does not have",
		invariants: []int{5},
		edits: []edit{{
			courierFile, "webhook.DeriveSecret(key, merchantID, named.Version)",
			"webhook.DeriveSecret(key, merchantID, named.Version+1)",
		}},
	},
	{
		name: "body-not-signed", breaks: "the signature does not cover the body", invariants: []int{5},
		edits: []edit{{"shared/webhook/sign.go", "hash.Write(body)", "hash.Write(nil)"}},
	},
	{
		name: "unsigned-notification", breaks: "a notification is posted before its secrets can be read",
		invariants: []int{5},
		edits: []edit{
			{courierFile, "return Target{Health: health, secrets: secrets}, err",
				"return Target{Health: health, secrets: secrets}, nil"},
			{"shared/webhook/sender.go", "if len(r.Secrets) == 0 {", "if r.URL == \"\" {"},
		},
	},
	{
		name:       "refund-forgotten-after-a-lost-response",
		breaks:     "an amount stays counted after a failure's write without a response",
		invariants: []int{6},
		world: kindOfOrder(1).with(always(outside.Payers, outside.PayerFails)).
			with(always(outside.CallbackTimes, outside.CallbackNever)).
			with(always(outside.Notifications, outside.ServerErrorBefore)).with(choices{"shop": 1,
			"rate of table faults": last, "kind of table fault": 0, "rate of crashes": 0, "rate of freezes": 0}),
		edits: []edit{{
			"shared/dailyamount/change.go", "if guarded.sent || guarded.counted >= 0 {",
			"if updated.Version != guarded.before.Version || guarded.counted >= 0 {",
		}},
	},
	{
		name: "signing-key-not-kept", breaks: "a callback gets 404 if its address was signed with an old key",
		invariants: []int{8},
		world: kindOfOrder(1).with(faultsOf(outside.SecretFetches, outside.SecretError)).with(choices{
			"has a rotation of keys": last, "has an unreadable secret": last, "ring": 0, "secret": 0}),
		edits: []edit{{
			"shared/callback/keys.go", "live && slices.Contains(e.Route.CallbackKeys, number) {",
			"live && number < 0 && slices.Contains(e.Route.CallbackKeys, number) {",
		}},
	},
	{
		name: "earlier-day-not-refunded", breaks: "an amount stays counted on the day before its retry",
		invariants: []int{6},
		world: calls(0, outside.Unavailable, outside.ConnectRefused, outside.Throttled).with(choices{"shop": 1,
			"rate of table faults": last, "length of the faults": last, "start": last, "second of the start": 5,
			"orders": last, "duplicates": last, "another body": 0, "time of the duplicate": 1, "kind of table fault": 0,
			"rate of crashes": 0, "rate of freezes": 0}),
		edits: []edit{{
			"shared/operation/outcome.go", "errors.Join(p.DailyAmounts.Refund(ctx, updated), " +
				"p.DailyAmounts.RefundMoved(ctx, reservation, updated))",
			"p.DailyAmounts.Refund(ctx, updated)",
		}},
	},
	{
		name: "new-orders-not-taken-in", breaks: "a request under a new key stores nothing", invariants: []int{9},
		edits: []edit{{reserveFile, "case a.Choice.NotYet != nil:", "case a.Choice.NotYet == nil:"}},
	},
	{
		name: "no-limit-is-zero", breaks: "a platform without a greatest amount takes none", invariants: []int{12},
		edits: []edit{{
			"shared/operator/platform.go", "(r.Max == 0 || minor <= r.Max)", "minor <= r.Max",
		}},
	},
	{
		name: "conflict-is-final", breaks: "another transaction at the same time makes a request fail",
		invariants: []int{9},
		world: choices{"only one merchant and one operator have faults": last, "contention for the limits": 1,
			"kind of order": 0},
		edits: []edit{{
			counterFile, "if err := c.backOff(ctx, attempt); err != nil {",
			"if err := c.backOff(ctx, attempt); err == nil {\nreturn result, errTooManyConflicts\n} else {",
		}},
	},
	{
		name: "whole-limit-refused", breaks: "an amount of the whole daily limit is refused", invariants: []int{6},
		edits: []edit{{"shared/limit/dynamo/store.go", "case a.MaxSumBefore < 0:", "case a.MaxSumBefore <= 0:"}},
	},
}
