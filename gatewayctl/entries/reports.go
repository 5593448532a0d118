package entries

import (
	"cmp"
	"fmt"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/timeline"
)

// callEvents are the events of the calls, each with the operator's code.
func callEvents(e *ledger.Entry) []Event {
	codes := map[int64]string{}
	for _, report := range e.Reports() {
		if report.Kind == timeline.Call {
			codes[report.At.UnixMilli()] = codeText(report.Code)
		}
	}
	var events []Event
	for _, a := range Calls(e) {
		event := Event{At: a.At, Event: eventCall, Outcome: a.Outcome, Detail: a.Reason}
		if event.OperatorCode = codes[a.At.UnixMilli()]; event.OperatorCode == "" {
			event.OperatorCode = codeOfReason(a.Reason)
		}
		if event.OperatorCode == a.Reason || event.OperatorCode == unknownCode {
			event.Detail = "" // the code has it
		}
		if a.Outcome == ledger.CallLapsed {
			event.Detail = "no outcome was recorded: the function died, or could not store it"
		}
		for _, part := range []struct {
			isKnown bool
			text    string
		}{
			{a.Seconds > 0, fmt.Sprintf("after %.1f s", a.Seconds)},
			{a.HTTPStatus != 0, fmt.Sprintf("the operator responded %d", a.HTTPStatus)},
			{a.Response != 0, fmt.Sprintf("the merchant was sent %d", a.Response)},
		} {
			if part.isKnown && event.Detail != "" {
				event.Detail += ", "
			}
			if part.isKnown {
				event.Detail += part.text
			}
		}
		events = append(events, event)
	}
	return events
}

// codeText is a kept code for people.
func codeText(code string) string {
	if code == timeline.UnknownCode {
		return unknownCode
	}
	return code
}

// codeOfReason returns the operator's code that the reason of a call is, "" for one of our own reasons.
func codeOfReason(reason string) string {
	const messageIDLength = 7
	isForm := len(reason) == messageIDLength && (reason[:3] == "SVC" || reason[:3] == "POL")
	switch {
	case oneapi.IsMessageID(reason):
		return reason
	case isForm, reason == "unmapped-code":
		return unknownCode
	}
	return ""
}

// reportEventNames are the events of the operator's reports, with the report's kind.
var reportEventNames = map[timeline.Kind]string{
	timeline.Lookup: eventLookup, timeline.ManualLookup: eventLookup, timeline.Callback: eventCallback,
	timeline.Receipt: eventReceipt,
}

// reportOutcomes are the outcomes of reports for people. A status has the ledger's word.
var reportOutcomes = map[timeline.Outcome]string{
	timeline.NotRecorded: "not-recorded", timeline.NotFound: "not-found", timeline.NoResponse: "no-response",
	timeline.Rejected: "rejected", timeline.UnknownStatus: "unknown-status", timeline.NotMade: "not-made",
}

// reportDetails explain the outcomes that are no status.
var reportDetails = map[timeline.Outcome]string{
	timeline.NotRecorded: "the next lookup stores its result; until then the log of the sweep has it",
	timeline.NotFound:    "the operator does not know the transaction",
	timeline.Rejected:    "the operator refused our credentials",
	timeline.NotMade:     "there was no time or rate for it",
}

// outcomeText is the outcome of a report for people.
func reportOutcome(outcome timeline.Outcome) string {
	for _, status := range ledger.Statuses() {
		if ledger.ReportOutcome(status) == outcome {
			return string(status)
		}
	}
	return cmp.Or(reportOutcomes[outcome], "unknown-status")
}

// reportEvents are the events of the operator's reports: the last ones of each kind, and a count of the others.
func reportEvents(e *ledger.Entry) []Event {
	var events []Event
	seen := map[timeline.Kind]bool{}
	for _, report := range e.Reports() {
		name := reportEventNames[report.Kind]
		if name == "" {
			continue
		}
		if earlier := e.Timeline.Earlier(report.Kind); earlier > 0 && !seen[report.Kind] {
			events = append(events, Event{At: report.At, Event: name, Count: earlier})
		}
		seen[report.Kind] = true
		event := Event{
			At: report.At, Event: name, Outcome: reportOutcome(report.Outcome), OperatorCode: codeText(report.Code),
			Detail: reportDetails[report.Outcome],
		}
		if report.Kind == timeline.ManualLookup {
			event.By = "gatewayctl"
		}
		if report.Outcome == timeline.NotRecorded && e.StatusFinal() {
			event.Detail = "it changed nothing; the log of the sweep has it"
		}
		events = append(events, event)
	}
	if e.Kind == ledger.Payment && e.Poll.Attempts > 0 && !seen[timeline.Lookup] {
		events = append(events, Event{
			Event: eventLookup, Count: e.Poll.Attempts, Detail: "an earlier version kept no results",
		})
	}
	return events
}
