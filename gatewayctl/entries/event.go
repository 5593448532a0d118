package entries

import (
	"slices"
	"strconv"
	"time"

	"mobilegateway/gatewayctl/output"
)

// Event is one event of a timeline (decision "order-timeline"). An event that repeats has at most its last three
// occurrences, and before them one with Count, the number of the others.
type Event struct {
	At      time.Time `json:"at,omitzero"`
	Event   string    `json:"event"`
	Outcome string    `json:"outcome,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	// OperatorCode is the operator's code of the outcome, as its driver knows it; unknownCode for another one.
	OperatorCode string `json:"operator_code,omitempty"`
	Count        int    `json:"count,omitempty"`
	By           string `json:"by,omitempty"`
}

// The events.
const (
	eventRequest      = "request"
	eventReservation  = "reservation"
	eventCall         = "call"
	eventResponse     = "response"
	eventLookup       = "lookup"
	eventCallback     = "callback"
	eventReceipt      = "receipt"
	eventClaim        = "claim"
	eventConflict     = "conflict"
	eventFinal        = "final"
	eventResolution   = "resolution"
	eventNotification = "notification"
	eventDelivery     = "delivery"
	eventReplay       = "replay"
	eventPayerSMS     = "payer-sms"
	eventWrite        = "last-write"
	eventExpiry       = "expiry"
)

// unknownCode is a code that the operator's driver does not know.
const unknownCode = "unknown code"

// text is an event's text for people, without its time and name.
func (e Event) text() string {
	parts := []string{e.Outcome, e.Detail}
	if e.Count > 0 {
		parts = append(parts, strconv.Itoa(e.Count)+" more before")
	}
	if e.OperatorCode == unknownCode {
		parts = append(parts, "the operator's "+unknownCode)
	} else if e.OperatorCode != "" {
		parts = append(parts, "the operator's code "+e.OperatorCode)
	}
	if e.By != "" {
		parts = append(parts, "by "+e.By)
	}
	return output.JoinComma(slices.DeleteFunc(parts, func(part string) bool { return part == "" }))
}

// SortEvents sorts events by time. Those without a time come last.
func SortEvents(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		if a.At.IsZero() != b.At.IsZero() {
			return b.At.Compare(a.At)
		}
		return a.At.Compare(b.At)
	})
}

// EventRows are the rows of events.
func EventRows(events []Event) output.Table {
	return output.MapAll(events, func(e Event) []string {
		return []string{output.FormatTime(e.At), e.Event, e.text()}
	})
}
