package knownbad

// onPlatforms is a history of payments by the operators' platforms with frequent faults.
func onPlatforms(more choices) choices {
	return choices{"rate of platform faults": last}.with(more)
}

// platformVariants break what the gateway concludes about payments by the operators' platforms.
var platformVariants = []variant{
	{
		name: "not-found-at-once", breaks: "a platform that does not know a payment yet counts as never called",
		invariants: []int{1, 6}, platforms: true,
		world: onPlatforms(choices{"kind of platform fault": 3, "orders": 0, "platform": 0}),
		edits: []edit{{
			applyFile, "!now.Before(NeverSentFrom(row, e))", "!now.Before(e.ReservedAt.Add(maxSendTime))",
		}},
	},
	{
		name: "retry-over-a-new-route", breaks: "a retry goes over the route of now", invariants: []int{2},
		platforms: true,
		world: onPlatforms(choices{"routes change": last, "platform": 0, "kind of platform fault": 0,
			"wait before the retry": 4}),
		edits: []edit{{
			outcomeFile, "next.NothingSent = e.NothingSent && e.State != Reserved",
			"next.NothingSent, next.Route.Account = e.NothingSent && e.State != Reserved, incoming.Route.Account",
		}},
	},
	{
		name: "reference-anew-at-the-retry", breaks: "a retry has a new reference at the platform",
		invariants: []int{2}, platforms: true,
		world: onPlatforms(choices{"platform": 0, "kind of platform fault": 0}),
		edits: []edit{{
			outcomeFile, "next.NothingSent = e.NothingSent && e.State != Reserved",
			"next.NothingSent, next.Route.UpstreamKey = e.NothingSent && e.State != Reserved, " +
				"incoming.Route.UpstreamKey",
		}},
	},
	{
		name: "unread-callback-dropped", breaks: "a callback that cannot be read makes no lookup due",
		invariants: []int{8}, platforms: true,
		world: onPlatforms(choices{"content of the callback": 2, "delay of the callback": 0,
			"copies of the callback": 1, "clock skew": 0, "rate of freezes": 0, "rate of table faults": 0,
			"platform": 0}),
		edits: []edit{{
			notifFile, "e.RequestLookup(ledger.Timestamp(h.Now()))",
			"e.Poll.At.IsZero() && e.RequestLookup(ledger.Timestamp(h.Now()))",
		}},
	},
	{
		name: "static-secret-unchecked", breaks: "a forged callback to an account's address is accepted",
		invariants: []int{5}, platforms: true,
		world: onPlatforms(choices{"content of the callback": 1}),
		edits: []edit{{
			"shared/callback/request.go", "if !valid {\n\t\treturn nil, fault.New(",
			"if !valid && req == nil {\n\t\treturn nil, fault.New(",
		}},
	},
	{
		name: "echo-by-the-new-route", breaks: "a repeat echoes the one-time code by the rule of a new route",
		invariants: []int{3}, platforms: true,
		world: onPlatforms(choices{"routes change": last, "platform": 0, "duplicates": last}),
		edits: []edit{{
			"functions/pay/pay.go", "isUsed := operator.CapabilitiesOf(a.Stored).OTPRule != operator.OTPUnused",
			"isUsed := a.Choice.OTPRule != operator.OTPUnused",
		}},
	},
	{
		name: "static-claim-final", breaks: "a callback to an account's address is final without a lookup",
		invariants: []int{1}, platforms: true,
		world: onPlatforms(choices{"content of the callback": 3, "platform": 1}),
		edits: []edit{{
			notifFile, "if entry.StatusFinal() || claimReport.Contradicts(entry) {",
			"if entry.StatusFinal() || claimReport.Contradicts(entry) || req.Params[\"secret\"] != \"\" {",
		}},
	},
	{
		name: "callback-of-another-account", breaks: "an account reports on payments that are pinned to another",
		invariants: []int{5}, platforms: true,
		world: onPlatforms(choices{"content of the callback": 4, "platform": 1}),
		edits: []edit{{
			"shared/callback/request.go", "return e != nil && operator.PinOf(e) == pin",
			"return e != nil && operator.PinOf(e).Platform == pin.Platform",
		}},
	},
	{
		name: "not-found-is-proof", breaks: "a deposit that pawaPay does not know counts as never sent",
		invariants: []int{1, 6}, platforms: true,
		world: onPlatforms(choices{"kind of platform fault": 3, "orders": 0, "platform": 1,
			"lateness of the call": last}),
		edits: []edit{{
			applyFile, "return row.NeverSentAfter > 0 && ", "return ",
		}},
	},
	{
		name: "lookups-above-the-rate", breaks: "the sweep ignores the rate of an account's lookups",
		invariants: []int{14}, platforms: true,
		world: choices{"a history without faults": last, "lookups at the platforms": last},
		edits: []edit{{
			lookupFile, "supported && row.LookupsPerSecond > 0", "supported && row.LookupsPerSecond < 0",
		}},
	},
	{
		name:       "lookup-outlasts-the-callback",
		breaks:     "a callback's lookup is longer than its operator waits, and the operator repeats the callback",
		invariants: []int{14}, platforms: true,
		world: choices{"a history without faults": last, "lookups at the platforms": 2,
			"platforms repeat a callback": last, "platform": 0, "orders": 0},
		edits: []edit{{
			"shared/confirm/rate.go", "CallbackPatience; patience > 0 {",
			"CallbackPatience; patience > 0 && sinceStart < 0 {",
		}},
	},
	{
		name: "receipt-dropped", breaks: "a receipt gets 200 and is not stored", invariants: []int{8},
		platforms: true,
		world:     onPlatforms(choices{"platform": last, "SMS by a platform": last, "rate of table faults": 0}),
		edits: []edit{{
			"functions/receipt/receipt.go", "changed := callback.IsPinned(req, e) && e.ApplyReceipts(" +
				"append(early, statuses...), ledger.Timestamp(h.Now()))",
			"changed := !callback.IsPinned(req, e) && early != nil",
		}},
	},
	{
		name: "binding-forgotten", breaks: "a sent message whose binding failed is never bound", invariants: []int{8},
		platforms: true,
		world:     onPlatforms(choices{"platform": last, "SMS by a platform": last, "rate of table faults": last}),
		edits: []edit{{
			"functions/sms/sms.go", "bindAt = ledger.Timestamp(o.Pipeline.Now()).Add(ledger.FirstBindWait)",
			"bindAt = time.Time{}",
		}},
	},
}
