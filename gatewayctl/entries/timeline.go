package entries

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/money"
	"mobilegateway/shared/oneapi"
)

// timelineOf lists an entry's events in the order of time. Those without a time come last.
func timelineOf(e *ledger.Entry) []Event {
	amount := ""
	if e.Amount.Currency != "" {
		amount = money.Format(e.Amount.Minor, e.Amount.Exponent) + " " + e.Amount.Currency + ", "
	}
	events := []Event{{
		At: e.CreatedAt, Event: eventRequest, By: "merchant " + e.Merchant.Name,
		Detail: amount + "to " + e.Route.Operator + " in " + e.Route.Country,
	}, {
		At: e.ReservedAt, Event: eventReservation,
		Detail: "first send " + cmp.Or(output.FormatTime(firstSend(e)), "never") + " with account " + e.Route.Account,
	}}
	events = append(events, callEvents(e)...)
	if e.Response.Status != 0 {
		events = append(events, Event{
			At: respondedAt(e), Event: eventResponse, Outcome: responseText(e), Detail: "stored for repeats",
		})
	}
	events = append(events, reportEvents(e)...)
	for _, c := range e.Conflicts {
		events = append(events, Event{
			At: c.At, Event: eventConflict, Outcome: string(c.Status), By: c.Source,
			Detail: "recorded and not applied: " + c.Reason,
		})
	}
	if e.Claim.Status != "" {
		events = append(events, Event{
			At: e.Claim.At, Event: eventClaim, Outcome: string(e.Claim.Status), By: ledger.SourceCallback,
			Detail: "not confirmed; next status lookup at " + output.FormatTime(e.Claim.CheckAt),
		})
	}
	if e.Manual.Outcome != "" {
		events = append(events, Event{
			At: e.Manual.At, Event: eventResolution, Outcome: e.Manual.Outcome, By: e.Manual.Who,
			Detail: e.Manual.Reason + "; operator's reference: " + cmp.Or(e.Manual.Reference, "none"),
		})
	}
	if final := finalOf(e); final != nil {
		events = append(events, Event{
			At: final.At, Event: eventFinal, Outcome: final.Outcome, By: final.By,
			Detail: string(e.WhyNotPaid(e.Status)),
		})
	}
	events = append(events, NotificationEvents(e)...)
	if e.UserSMS.State != "" {
		events = append(events, userSMSEvent(e))
	}
	events = append(events, Event{
		At: e.UpdatedAt, Event: eventWrite, Outcome: string(e.State), Detail: fmt.Sprintf("version %d", e.Version),
	})
	if !e.ExpireAt.IsZero() {
		events = append(events, Event{At: e.ExpireAt, Event: eventExpiry, Detail: "the entry counts as absent"})
	}
	events = slices.DeleteFunc(events, func(event Event) bool {
		return event.Event == eventReservation && event.At.IsZero()
	})
	SortEvents(events)
	return events
}

// userSMSEvent is the event of the payer's SMS. Only one that is due has a time.
func userSMSEvent(e *ledger.Entry) Event {
	event := Event{At: e.UserSMS.At, Event: eventPayerSMS, Outcome: string(e.UserSMS.State)}
	event.Detail = output.Plural(e.UserSMS.Attempts, "attempt") + " made"
	if e.UserSMS.UnrecordedAttempts > 0 {
		event.Detail += fmt.Sprintf(", %d without a recorded outcome", e.UserSMS.UnrecordedAttempts)
	}
	if e.UserSMS.MaybeSent && e.UserSMS.State != ledger.UserSMSSent {
		event.Detail += ", it may have been sent"
	}
	return event
}

// responseText is the stored response to the merchant: its status, and the message id of an error.
func responseText(e *ledger.Entry) string {
	text := strconv.Itoa(e.Response.Status)
	if exception, isRequestError := oneapi.DecodeRequestError(e.Response.Body); isRequestError {
		text += " " + exception.MessageID
	}
	return text
}
