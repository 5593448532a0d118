package knownbad

// smooth is a history of the operators' platforms without faults.
var smooth = choices{"a history without faults": last}

// hazardVariants break what only a certain hazard, a history without faults, or a look at the content shows.
var hazardVariants = []variant{
	{
		name: "refusal-reported-unstored", breaks: "a refusal is reported although the write of it failed",
		invariants: []int{2},
		world:      kindOfOrder(0).with(choices{"has operators that forget refusals": last}),
		edits: []edit{{
			callFile, "line.Increment(telemetry.UnknownOutcomes)\n\t\treturn",
			"line.Increment(telemetry.UnknownOutcomes)\n\t\tif result.Outcome == operator.Refused {\n" +
				"return result.Fault\n}\nreturn",
		}},
	},
	{
		name: "refusal-sent-again", breaks: "a refused charge is sent again, and its operator has forgotten it",
		invariants: []int{2, 3},
		world: kindOfOrder(0).with(choices{"has operators that forget refusals": last, "duplicates": last,
			"another body": 0}),
		edits: []edit{{
			callFile, "outcome.State, outcome.ResponseStatus, outcome.ResponseBody = ledger.Refused, " +
				"response.Status, response.Body",
			"_, outcome.State = response, ledger.Released",
		}},
	},
	{
		name: "last-session-decides", breaks: "the last Wave session of a payment decides, not the paid one",
		invariants: []int{1, 7, 8, 10}, platforms: true,
		world: onPlatforms(choices{"platform": 5, "kind of platform fault": 3, "wait before the retry": 0,
			"act at the page": 0, "time at the page": 1}),
		edits: []edit{{
			"shared/operator/wave/session.go", "for _, status := range precedence {",
			"if len(sessions) > 1 {\n\t\treturn sessions[len(sessions)-1]\n\t}\n\tfor _, status := range precedence {",
		}},
	},
	{
		name: "change-without-its-time", breaks: "a replay goes to the address of before a change",
		invariants: []int{8},
		world: kindOfOrder(1).with(choices{"has a new address": last, "has faults of payer": 0, "rate of crashes": 0,
			"rate of late records": 0, "rate of cold starts": 0}),
		edits: []edit{{
			"gatewayctl/merchants/merchant.go", "p.UpdatedAt = s.Now().UTC().Truncate(time.Millisecond)",
			"p.UpdatedAt = p.UpdatedAt.UTC().Truncate(time.Millisecond)",
		}},
	},
	{
		name: "token-of-another-account", breaks: "the accounts of a platform share one token", invariants: []int{6},
		platforms: true,
		world:     smooth.with(choices{"platform": 4, "orders": last}),
		edits: []edit{{
			"shared/operator/upstream/client_credentials.go", "token, err := b.Tokens.Get(ctx, key, ",
			"token, err := b.Tokens.Get(ctx, b.Credentials.Path, ",
		}},
	},
	{
		name: "token-kept-too-long", breaks: "a token is used after its end", invariants: []int{6}, platforms: true,
		world: smooth.with(choices{"platform": 0, "orders": last}),
		edits: []edit{{
			"shared/operator/upstream/tokens.go", "start.Add(lifetime - min(margin, lifetime/2))}",
			"start.Add(2*lifetime - min(margin, lifetime/2))}",
		}},
	},
	{
		name: "pay-token-not-stored", breaks: "the token of a payment's lookup is not stored", invariants: []int{7},
		platforms: true,
		world:     smooth.with(choices{"platform": 4, "act at the page": 0}),
		edits: []edit{{outcomeFile, "e.DriverData = cmp.Or(e.DriverData, o.DriverData)",
			"_ = o.DriverData"}},
	},
	{
		name: "reconciliation-is-failed", breaks: "pawaPay's IN_RECONCILIATION counts as failed", invariants: []int{1},
		platforms: true,
		world: onPlatforms(choices{"further quirks": last, "quirk: /pawapay in_reconciliation": last,
			"platform": 1}),
		edits: []edit{{
			"shared/operator/pawapay/status.go", "case \"COMPLETED\":",
			"case \"COMPLETED\", \"IN_RECONCILIATION\":",
		}, {
			"shared/operator/pawapay/status.go", "\"PROCESSING\", \"IN_RECONCILIATION\":", "\"PROCESSING\":",
		}, {
			"shared/operator/pawapay/status.go", "report.Status = ledger.Successful", "report.Status = ledger.Failed",
		}},
	},
	{
		name: "lookup-of-another-amount", breaks: "a lookup that reports another amount counts",
		invariants: []int{1, 2},
		world:      kindOfOrder(1).with(choices{"has lookups of another payment": last}),
		edits: []edit{{
			progressFile, "case r.HasAmount && r.AmountMinor != a.Minor:",
			"case r.HasAmount && r.AmountMinor < 0:",
		}},
	},
	{
		name: "lookup-of-another-currency", breaks: "a lookup that reports another currency counts",
		invariants: []int{1, 2},
		world:      kindOfOrder(1).with(choices{"has lookups of another payment": last}),
		edits: []edit{{
			progressFile, "case r.Currency != \"\" && r.Currency != a.Currency:",
			"case r.Currency != \"\" && a.Currency == \"\":",
		}},
	},
	{
		name: "profile-never-stale", breaks: "each request prolongs the life of its cached profile",
		invariants: []int{5},
		world:      choices{"has a busy merchant": last, "change of a busy merchant": 0},
		edits: []edit{{
			"shared/merchant/cached_store.go", "return entry.profile, true",
			"entry.readAt = c.now().Round(0)\n\t\t\tentries[id] = entry\n\t\t\treturn entry.profile, true",
		}},
	},
	{
		name: "rate-ignored", breaks: "the rate of a merchant is not limited", invariants: []int{5},
		world: choices{"has a busy merchant": last, "change of a busy merchant": last},
		edits: []edit{{
			pipelineFile, "if wait <= 0 {", "if wait <= time.Hour {",
		}},
	},
	{
		name: "payer-sms-in-minor-units", breaks: "the payer's SMS has the amount in minor units", invariants: []int{6},
		world: kindOfOrder(1),
		edits: []edit{{
			userSMSFile, "Amount: money.Format(e.Amount.Minor, e.Amount.Exponent)",
			"Amount: money.Format(e.Amount.Minor, 0)",
		}},
	},
	{
		name: "webhook-id-of-its-own", breaks: "a notification has another webhook-id than its entry",
		invariants: []int{8},
		edits: []edit{{
			courierFile, "URL: target.URL, ID: n.ID, Body: NotificationBody(e, n, c.BaseURL)",
			"URL: target.URL, ID: n.ID + \"-\" + e.ID, Body: NotificationBody(e, n, c.BaseURL)",
		}},
	},
	{
		name: "late-success-not-notified", breaks: "an outcome that comes after a lapsed lease is not notified",
		invariants: []int{8},
		world:      kindOfOrder(0).with(choices{"has timers that stop in a freeze": last, "length of the freeze": 1}),
		edits: []edit{{
			outcomeFile, "late, status := e.State == Unknown || e.LeaseLapsed(now), e.Status",
			"late, status := e.State == Unknown, e.Status",
		}},
	},
	{
		name: "change-before-its-record", breaks: "gatewayctl changes before it writes the audit record",
		invariants: []int{10},
		world:      choices{"has changes by an engineer": last},
		edits: []edit{{
			"gatewayctl/session/execute.go", "record, err := s.newRecord(action, subject)",
			"first, changed := change()\n\tchange = func() (string, error) { return first, changed }\n\t" +
				"record, err := s.newRecord(action, subject)",
		}},
	},
	{
		name: "copy-of-another-record", breaks: "the copy of the record that begins a change is not the record",
		invariants: []int{10},
		world:      choices{"has changes by an engineer": last},
		edits: []edit{{
			"gatewayctl/session/execute.go", "return s.Stores.AuditCopies.Write(ctx, s.Now(), item.Document)",
			"if r.Outcome == auditlog.OutcomeStarted {\n\t\titem.Document += \" \"\n\t}\n\t" +
				"return s.Stores.AuditCopies.Write(ctx, s.Now(), item.Document)",
		}},
	},
	{
		name: "current-account-instead", breaks: "an order is sent by the current account after its own was removed",
		invariants: []int{6},
		world:      choices{"has a removed account": last, "account removed manually": last},
		edits: []edit{{
			"shared/operator/credentials/credentials.go",
			"return Account{}, logsafe.New(\"the operator's account is not in the credentials: add it\")",
			"stored = p.Accounts[p.CurrentID]",
		}},
	},
	{
		name: "account-in-use-dropped", breaks: "gatewayctl drops an account that an order needs",
		invariants: []int{10},
		world:      choices{"has a removed account": last, "account removed manually": 0},
		edits: []edit{{
			"gatewayctl/accounts/use.go", "case counts[account] > 0:", "case counts[account] > 0 && isCurrent:",
		}},
	},
	{
		name: "ended-client-secret", breaks: "a client secret that has ended gets a token", invariants: []int{5},
		world: choices{"has a revoked secret": last, "revoked secret": 0},
		edits: []edit{{
			"shared/merchant/token.go", "_, isActive := findCredential(p.ClientSecrets, text, now)",
			"isActive, _ := findCredential(p.ClientSecrets, text, now)",
		}},
	},
	{
		name: "revoked-key-verifies", breaks: "a revoked key still verifies tokens", invariants: []int{5},
		world: choices{"has a revoked secret": last, "revoked secret": last},
		edits: []edit{{
			"shared/keyring/pair.go", "return Pair{private, public}, nil",
			"_ = public\n\treturn Pair{private, next.Public}, nil",
		}},
	},
	{
		name: "one-partition-exported", breaks: "an export reads only the first partition of a day",
		invariants: []int{10},
		world:      choices{"has partitions of a merchant's days": last},
		edits: []edit{{
			"shared/dayindex/dayindex.go", "parts: make([]part, of.Shards)", "parts: make([]part, 1)",
		}},
	},
	{
		name: "former-partitions-unread", breaks: "an export reads only the partitions that are written now",
		invariants: []int{10},
		world:      choices{"has partitions of a merchant's days": last},
		edits: []edit{{
			"shared/merchant/partitions.go", "max(1, p.DayShards, p.MostDayShards)", "max(1, p.DayShards)",
		}},
	},
}
