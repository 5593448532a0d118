package entries

import (
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/timeline"
)

// Final is what made an outcome final.
type Final struct {
	Outcome string    `json:"outcome"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

// String is the text for people.
func (f Final) String() string { return f.Outcome + " at " + output.FormatTime(f.At) + ", by " + f.By }

// The sources of a final outcome, beside a person.
const (
	byResponse  = "the operator's response"
	byLookup    = "lookup"
	byCallback  = "callback"
	byConfirmed = "callback, confirmed by a lookup"
	byReceipt   = "receipt"
	byLifetime  = "the end of its lifetime, after a lookup"
	byNeverSent = "lookup: it was never sent"
	notRecorded = "a source that an earlier version did not record"
)

// finalOf returns what made the outcome of an entry final, nil for an entry without a final outcome.
func finalOf(e *ledger.Entry) *Final {
	switch {
	case e.StatusFinal():
		return &Final{Outcome: string(e.Status), By: finalBy(e), At: e.FinalAt}
	case e.Kind == ledger.Payment || e.State != ledger.Done && e.State != ledger.Refused || e.Kind == ledger.SMS:
		return nil
	}
	final := &Final{Outcome: string(e.State), By: byResponse, At: respondedAt(e)}
	if e.Manual.Outcome != "" && !e.Manual.At.Before(lastCall(e)) {
		final.By, final.At = e.Manual.Who, e.Manual.At
	}
	return final
}

// finalBy is what made a status final.
func finalBy(e *ledger.Entry) string {
	byKind := map[timeline.Kind]bool{}
	for _, report := range e.Reports() {
		if reportOutcome(report.Outcome) == string(e.Status) {
			byKind[report.Kind] = true
		}
		if report.Outcome == timeline.NotFound && e.Status == ledger.Failed {
			byKind[neverSent] = true
		}
		byKind[anyLookup] = byKind[anyLookup] || report.Kind == timeline.Lookup
	}
	switch {
	case e.Manual.Outcome != "" && e.Manual.At.Equal(e.FinalAt):
		return e.Manual.Who
	case e.State == ledger.Refused:
		return byResponse
	case byKind[timeline.Lookup] && byKind[timeline.Callback]:
		return byConfirmed
	case byKind[timeline.Lookup]:
		return byLookup
	case byKind[timeline.ManualLookup]:
		return byLookup + " by gatewayctl"
	case byKind[timeline.Receipt]:
		return byReceipt
	case byKind[timeline.Callback]:
		return byCallback
	case e.Status == ledger.Expired && byKind[anyLookup]:
		return byLifetime
	case byKind[neverSent]:
		return byNeverSent
	case e.Kind == ledger.SMS && e.FinalAt.Equal(respondedAt(e)):
		return byResponse
	}
	return notRecorded
}

// The keys of finalBy that are not the kind of a report with the final status.
const (
	neverSent timeline.Kind = 1
	anyLookup timeline.Kind = 2
)

// lastCall is when the last call was made.
func lastCall(e *ledger.Entry) time.Time {
	at := e.ReservedAt
	for _, call := range Calls(e) {
		if call.At.After(at) {
			at = call.At
		}
	}
	return at
}

// respondedAt is when the response to the merchant was stored, as far as the entry knows: at the end of its call.
func respondedAt(e *ledger.Entry) time.Time {
	for _, a := range e.Call.Attempts {
		if a.Response == e.Response.Status && e.Response.Status != 0 {
			return a.At.Add(time.Duration(a.Millis) * time.Millisecond)
		}
	}
	const afterCall = 2
	if e.Version == afterCall {
		return e.UpdatedAt
	}
	return e.ReservedAt
}

// Next is what the gateway does next with an entry, and when.
type Next struct {
	What string    `json:"what"`
	At   time.Time `json:"at"`
}

// String is the text for people.
func (n Next) String() string { return n.What + " at " + output.FormatTime(n.At) }

// nextOf returns the earliest timer of an entry, nil for none.
func nextOf(e *ledger.Entry) *Next {
	var first *Next
	add := func(isDue bool, what string, at time.Time) {
		if isDue && !at.IsZero() && (first == nil || at.Before(first.At)) {
			first = &Next{what, at}
		}
	}
	isOpen := e.Kind == ledger.Payment && !e.StatusFinal() && e.State != ledger.Reserved
	add(e.State == ledger.Reserved, "end of the lease", e.LeaseUntil.Add(ledger.LapseMargin))
	add(isOpen, eventLookup, e.Poll.At)
	add(e.Kind != ledger.Payment && e.State == ledger.Unknown, "listed for a person", e.Poll.At)
	add(e.Claim.Status != "" && !e.StatusFinal(), "lookup of the claim", e.Claim.CheckAt)
	if head := e.Outbox.Head(); head != nil {
		add(head.Parked, "check of the disabled endpoint", head.NextAttemptAt)
		add(!head.Parked, "delivery attempt", head.NextAttemptAt)
	}
	add(e.UserSMS.State == ledger.UserSMSDue, "payer's SMS", e.UserSMS.At)
	add(true, "binding of the message", e.BindAt)
	return first
}
