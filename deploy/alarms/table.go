package alarms

import (
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
)

// sum adds counters. Several metrics have no point without an event, and a line may arrive after its period was
// evaluated.
const sum = "SUM(FILL(METRICS(), 0))"

// periodsSoFar numbers the periods of requests from 1.
const periodsSoFar = "RUNNING_SUM(IF(FILL(requests, 0) < 0, 0, 1))"

// The functions by what they do.
var (
	transactions = []string{"charge", "pay", "sms"}
	background   = []string{"relay", "sweep"}
	routed       = []string{"charge", "pay", "sms", "status", "report", "resend", "token", "notif", "receipt"}
	essential    = []string{"charge", "pay", "sms", "status", "token", "notif", "receipt", "relay", "sweep"}
)

// All returns every alarm: first those of template.yaml, then the others by subject.
func All() []Alarm {
	return slices.Concat(gatewayAlarms(), notificationAlarms(), outcomeAlarms(), capacityAlarms(), credentialAlarms(),
		trafficAlarms(), operatorAlarms())
}

// gatewayAlarms are those that a gradual deployment obeys, and the one without which nothing else is seen.
func gatewayAlarms() []Alarm {
	found := []Alarm{
		{
			Name: "SweepSilentAlarm", Description: "The sweep does not run",
			expression: "FILL(runs, 0)", metrics: []metric{lambda("runs", "Invocations", "sweep")},
			period: 5 * time.Minute, below: true, threshold: 1, points: 2, periods: 2, missing: filled,
			goesOff: "no run",
		},
		{
			Name: "ApiErrorsAlarm", Description: "One response in twenty of the API is a 5xx",
			expression: "IF(requests >= 10, 100 * errors / requests, 0)",
			metrics:    []metric{api("errors", "5XXError", "Sum"), api("requests", "Count", "Sum")},
			period:     5 * time.Minute, threshold: 5, points: 2, periods: 3, missing: notBreaching,
			goesOff: "5 % of at least ten responses are 5xx",
		},
		// A 500 is always a fault of the gateway. The alarm evaluates each of the last five minutes, so that a broken
		// new version is found while it has a tenth of the traffic.
		count("InternalErrorsAlarm", "The functions responded 500 several times in a minute", 3, time.Minute,
			counters(telemetry.InternalErrors, routed...)),
		// The functions respond to their own faults: an error here is a crash, a timeout or a failed start.
		count("FunctionErrorsAlarm", "A function crashed, timed out or could not start", 1, 5*time.Minute,
			lambdas("Errors", essential...)),
	}
	found[2].periods = 5
	for i := range found {
		found[i].InGateway, found[i].Runbook = true, found[i].Name
	}
	return found
}

func notificationAlarms() []Alarm {
	return []Alarm{
		count("DeadLettersAlarm", "A notification to a merchant was given up after all attempts", 1, 5*time.Minute,
			counters(telemetry.DeadLetters, background...)),
		count("EndpointsDisabledAlarm",
			"A merchant responded 410 Gone, and its notifications to that address are parked", 1, 5*time.Minute,
			counters(telemetry.EndpointsDisabled, background...)),
		count("UserSmsFailuresAlarm", "The SMS to the payer was given up for several payments", 5, time.Hour,
			counters(telemetry.UserSMSFailures, background...)),
		// After a minute the sweep delivers instead.
		{
			Name: "StreamLagAlarm", Runbook: "StreamLagAlarm", Description: "The fast path of notifications lags",
			metrics: []metric{statistic("Maximum", lambda("age", "IteratorAge", "relay"))},
			period:  time.Minute, threshold: 30_000, points: 3, periods: 5, missing: notBreaching,
			goesOff: "30 seconds behind",
		},
		// Without traffic the relay has no run. So its silence counts only while the sweep delivers in its place.
		{
			Name: "RelaySilentAlarm", Runbook: "RelaySilentAlarm",
			Description: "The relay does not run while notifications are due",
			expression:  "IF(FILL(swept, 0) >= 5 AND FILL(runs, 0) < 1, 1, 0)",
			metrics: []metric{lambda("runs", "Invocations", "relay"),
				own("swept", telemetry.DeliveredNotifications.String(), "sweep")},
			period: 5 * time.Minute, threshold: 1, points: 3, periods: 4, missing: filled,
			goesOff: "no run, and five notifications delivered by the sweep",
		},
		// The age of the oldest notification or SMS that a sweep found due and could not send.
		maximum("StalledWorkAlarm", "A notification or an SMS cannot be sent for more than half an hour",
			"StalledMillis", 30*time.Minute, "something cannot be sent for 30 minutes"),
		parked(),
	}
}

// parked is the alarm of the oldest parked notification. The sweep checks each once a day.
func parked() Alarm {
	a := maximum("OldestParkedAlarm", "A merchant's notifications are parked for more than a day", "ParkedMillis",
		24*time.Hour, "the oldest is parked for a day")
	a.expression, a.missing, a.period, a.periods = "FILL(value, 0)", filled, time.Hour, 24
	return a
}

func outcomeAlarms() []Alarm {
	overdue := maximum("OverdueAlarm", "Due work is taken up more than ten minutes late", "ScheduleDelayMillis",
		10*time.Minute, "the oldest due is ten minutes late")
	overdue.points = 2
	return []Alarm{
		count("ConflictsAlarm", "An operator contradicted a final status, our amount or our currency", 1, 5*time.Minute,
			counters(telemetry.StatusConflicts, "charge", "pay", "sms", "notif", "sweep")),
		// The operator had a reason to call: a payment is looked up, but the status of a receipt is lost.
		count("UnreadCallbacksAlarm", "An operator's callback or receipt cannot be read", 1, 5*time.Minute,
			counters(telemetry.UnreadCallbacks, "notif", "receipt", "sms")),
		// A charge or an SMS is counted hourly, and daily once it is a day old. A payment past its lifetime is counted
		// hourly.
		count("StaleUnknownsAlarm",
			"A transaction is unknown for more than 15 minutes, or past its lifetime, and needs a person", 1, time.Hour,
			counters(telemetry.StaleUnknownOutcomes, "sweep")),
		// A single failed lookup is normal.
		count("LookupFailuresAlarm", "An operator does not respond to getStatus", 10, 15*time.Minute,
			counters(telemetry.LookupFailures, "sweep")),
		overdue,
		count("UndecodableEntriesAlarm", "A due item cannot be decoded, and is tried again each hour", 1, time.Hour,
			counters(telemetry.UndecodableEntries, "sweep")),
		// New transactions of the account are refused; those that were sent are looked up as always.
		count("OpenedCircuitsAlarm",
			"An account at an operator does not respond, and its new transactions are refused", 1, 5*time.Minute,
			counters(telemetry.OpenedCircuits, transactions...)),
	}
}

func capacityAlarms() []Alarm {
	throttles := count("TableThrottlesAlarm", "DynamoDB throttles a table or an index", 10, 5*time.Minute,
		throttledTables())
	throttles.missing = ignored
	return []Alarm{
		count("FunctionThrottlesAlarm", "Lambda throttled a function, because its concurrency is used up", 1,
			5*time.Minute, lambdas("Throttles", essential...)),
		// The two alarms above have the nine functions that money and notifications need, of ten at most.
		count("ReportFunctionsAlarm",
			"A function for reports or resends crashed, timed out, could not start or was throttled", 1,
			5*time.Minute, []metric{
				lambda("report", "Errors", "report"), lambda("reportThrottles", "Throttles", "report"),
				lambda("resend", "Errors", "resend"), lambda("resendThrottles", "Throttles", "resend"),
			}),
		{
			Name: "ConcurrencyAlarm", Runbook: "ConcurrencyAlarm",
			Description: "Four fifths of AccountConcurrency are in use",
			expression:  "100 * FILL(used, 0) / ${AccountConcurrency}", substitutes: true,
			metrics: []metric{{"used", "AWS/Lambda", "ConcurrentExecutions", "Maximum", nil}},
			period:  time.Minute, threshold: 80, points: 3, periods: 5, missing: filled,
			goesOff: "80 % of AccountConcurrency in use",
		},
		throttles,
		// A limit that cannot be read refuses nothing, or each request: decision "merchant-limits".
		count("LimitFailuresAlarm", "The table of limits does not respond", 10, 5*time.Minute,
			counters(telemetry.LimitStoreFailures, "charge", "pay", "sms", "status", "report", "resend", "token",
				"notif", "sweep")),
	}
}

func credentialAlarms() []Alarm {
	return []Alarm{
		count("OperatorAuthFailuresAlarm", "An operator refuses our own credentials, or they are incomplete", 1,
			5*time.Minute, counters(telemetry.OperatorAuthFailures, transactions...)),
		count("ExhaustedAccountsAlarm", "An account at an operator has no units left, so its messages are not sent", 1,
			5*time.Minute, counters(telemetry.ExhaustedAccounts, "sms")),
		count("StaleKeyRingsAlarm",
			"A function uses a key ring that it cannot read again, so a revoked key may still be accepted", 1,
			5*time.Minute, counters(telemetry.StaleKeyRings, routed...)),
	}
}

func trafficAlarms() []Alarm {
	return []Alarm{
		// The mean is that of the periods that CloudWatch reads, so the alarm ends by itself when they are all quiet.
		{
			Name: "TrafficCollapseAlarm", Runbook: "TrafficCollapseAlarm",
			Description: "The API has a tenth of the requests of the last three hours",
			// The mean is that of the periods up to each one. Otherwise the rise of a morning would make the night
			// before it a collapse.
			expression: "IF(RUNNING_SUM(FILL(requests, 0)) < 20 * " + periodsSoFar + ", 100, " +
				"100 * FILL(requests, 0) * " + periodsSoFar + " / RUNNING_SUM(FILL(requests, 0)))",
			metrics: []metric{api("requests", "Count", "Sum")},
			period:  5 * time.Minute, below: true, threshold: 10, points: 3, periods: 36, missing: filled,
			goesOff: "less than 10 % of the mean until then, which is at least 20 requests",
		},
		{
			Name: "LatencyAlarm", Runbook: "LatencyAlarm",
			Description: "One response in a hundred of the API takes more than ten seconds",
			expression:  "IF(requests >= 100, latency, 0)",
			metrics:     []metric{api("latency", "Latency", "p99"), api("requests", "Count", "Sum")},
			period:      5 * time.Minute, threshold: 10_000, points: 3, periods: 3, missing: notBreaching,
			goesOff: "p99 of at least 100 responses is 10 seconds",
		},
	}
}

// operatorAlarms are the success rates of each operation at each operator. An alarm cannot SEARCH for metrics, so each
// pair is an alarm, from the table of platforms. The sandbox has no alarm.
func operatorAlarms() []Alarm {
	var found []Alarm
	for _, operation := range transactions {
		for _, name := range operator.Names() {
			if name == "sandbox" || !serves(name, operation) {
				continue
			}
			of := func(id, metricName string) metric {
				m := own(id, metricName, operation)
				m.dimensions = append(m.dimensions, dimension{"Operator", name})
				return m
			}
			found = append(found, Alarm{
				Name: title(operation) + title(name) + "SuccessAlarm", Runbook: "SuccessAlarm",
				Description: "Half of the requests of " + operation + " at " + name + " fail with 5xx",
				expression:  "IF(requests >= 10, 100 - 100 * errors / requests, 100)",
				metrics:     []metric{of("errors", "Errors"), of("requests", "Requests")},
				period:      5 * time.Minute, below: true, threshold: 50, points: 2, periods: 3, missing: notBreaching,
				goesOff: "less than 50 % of at least ten requests of an operation at an operator succeed",
			})
		}
	}
	return found
}

// serves reports whether a platform reaches the operator with an operation.
func serves(name, operation string) bool {
	return slices.ContainsFunc(operator.Platforms(), func(platform string) bool {
		row, found := operator.FindCapabilities(platform)
		return found && slices.Contains(row.Operations, operation) &&
			slices.ContainsFunc(row.Reach, func(r operator.Reach) bool { return r.Operator == name })
	})
}

// count is an alarm of the sum of counters. It evaluates one period more than the last, whose value may be a filled 0.
func count(name, description string, threshold int, period time.Duration, metrics []metric) Alarm {
	return Alarm{
		Name: name, Runbook: name, Description: description, expression: sum, metrics: metrics, period: period,
		threshold: threshold, points: 1, periods: 2, missing: filled,
	}
}

// maximum is an alarm of the greatest value of the sweep's lines, in milliseconds.
func maximum(name, description, metricName string, threshold time.Duration, goesOff string) Alarm {
	return Alarm{
		Name: name, Runbook: name, Description: description,
		metrics: []metric{statistic("Maximum", own("value", metricName, "sweep"))}, period: 5 * time.Minute,
		threshold: int(threshold.Milliseconds()), points: 1, periods: 2, missing: notBreaching, goesOff: goesOff,
	}
}

// own is a metric of a function's log lines. Their dimensions are the stack, and the operation: the function's name.
func own(id, name, function string) metric {
	return metric{id, telemetry.Namespace, name, "Sum",
		[]dimension{{"Stack", "!Ref Gateway"}, {"Operation", function}}}
}

func counters(counter telemetry.Counter, functions ...string) []metric {
	var found []metric
	for _, function := range functions {
		found = append(found, own(function, counter.String(), function))
	}
	return found
}

func lambda(id, name, function string) metric {
	return metric{id, "AWS/Lambda", name, "Sum", []dimension{{"FunctionName", "!Ref " + title(function) + "Function"}}}
}

func lambdas(name string, functions ...string) []metric {
	var found []metric
	for _, function := range functions {
		found = append(found, lambda(function, name, function))
	}
	return found
}

func api(id, name, stat string) metric {
	return metric{id, "AWS/ApiGateway", name, stat, []dimension{{"ApiName", "!Ref Gateway"}, {"Stage", "!Ref Stage"}}}
}

func statistic(name string, m metric) metric {
	m.statistic = name
	return m
}

// throttledTables are the throttles of each table and of the indexes of the ledger.
func throttledTables() []metric {
	var found []metric
	for _, place := range []struct{ id, table, index string }{
		{"ledger", "LedgerTable", ""}, {"due", "LedgerTable", "due"}, {"day", "LedgerTable", "day"},
		{"merchants", "MerchantTable", ""}, {"limits", "LimitTable", ""},
	} {
		dimensions := []dimension{{"TableName", "!Ref " + place.table}}
		if place.index != "" {
			dimensions = append(dimensions, dimension{"GlobalSecondaryIndexName", place.index})
		}
		for _, kind := range []string{"Read", "Write"} {
			found = append(found, metric{place.id + kind + "s", "AWS/DynamoDB", kind + "ThrottleEvents", "Sum",
				dimensions})
		}
	}
	return found
}

// title makes the first letter of a name large.
func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
