package gatewayctl

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// callAttemptView is one attempt to call the operator.
type callAttemptView struct {
	At         time.Time `json:"at"`
	Seconds    float64   `json:"seconds"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason,omitempty"`
	HTTPStatus int       `json:"operator_status,omitempty"`
	Response   int       `json:"response_status,omitempty"` // of the response to the merchant
}

// callAttemptViews lists an entry's attempts. A success at once has no attempt of its own: the entry describes it.
func callAttemptViews(e *ledger.Entry) []callAttemptView {
	const perSecond = 1000
	if len(e.CallAttempts) == 0 && e.State == ledger.Done && e.ResponseStatus != 0 && !e.EverUnknown {
		return []callAttemptView{{At: e.ReservedAt, Outcome: ledger.CallSucceeded, Response: e.ResponseStatus}}
	}
	return mapAll(e.CallAttempts, func(a ledger.CallAttempt) callAttemptView {
		return callAttemptView{
			a.At, float64(a.Millis) / perSecond, a.Outcome, a.Reason, a.HTTPStatus, a.Response,
		}
	})
}

// callEvents are the events of an entry's attempts to call the operator.
func callEvents(e *ledger.Entry) []historyEvent {
	return mapAll(callAttemptViews(e), func(a callAttemptView) historyEvent {
		detail := a.Outcome
		if a.Reason != "" {
			detail += ": " + a.Reason
		}
		if a.Outcome == ledger.CallLapsed {
			detail = "no outcome was recorded: the function died, or could not store it"
		}
		if a.Seconds > 0 {
			detail += fmt.Sprintf(", after %.1f s", a.Seconds)
		}
		if a.HTTPStatus != 0 {
			detail += fmt.Sprintf(", the operator responded %d", a.HTTPStatus)
		}
		if a.Response != 0 {
			detail += fmt.Sprintf(", the merchant was sent %d", a.Response)
		}
		return historyEvent{a.At, "call attempt", detail}
	})
}

// responseText is the stored response to the merchant: its status, and the message id of an error.
func responseText(e *ledger.Entry) string {
	var body struct {
		RequestError map[string]struct {
			MessageID string `json:"messageId"`
		} `json:"requestError"`
	}
	text := strconv.Itoa(e.ResponseStatus)
	if json.Unmarshal(e.ResponseBody, &body) == nil {
		for _, exception := range body.RequestError {
			text += " " + exception.MessageID
		}
	}
	return text
}

// firstSend returns when the first request can have reached the operator, zero for never.
func firstSend(e *ledger.Entry) time.Time {
	for _, a := range e.CallAttempts {
		if a.Outcome != ledger.CallNotSent && (a.Outcome != ledger.CallNotApplied || a.HTTPStatus != 0) {
			return a.At
		}
	}
	switch {
	case e.State == ledger.Released && (len(e.CallAttempts) > 0 || e.Fingerprint == ""):
		return time.Time{}
	case len(e.CallAttempts) > 0:
		return e.ReservedAt
	}
	return e.SentAt
}

// nextLookup returns when the gateway looks the entry up again, or why it does not.
func nextLookup(e *ledger.Entry, now time.Time) (at time.Time, reason string) {
	row := operator.CapabilitiesOf(e)
	switch {
	case e.StatusFinal() && (e.Kind == ledger.Payment || e.State != ledger.Unknown):
		return at, "its status is final"
	case e.Leased(now):
		return at, "an attempt is in flight until " + formatTime(e.LeaseUntil)
	case e.Kind != ledger.Payment && (e.State == ledger.Unknown || e.State == ledger.Reserved):
		return at, "no operator has a status lookup for it: " + resendAdvice(e, row, now)
	case e.Kind != ledger.Payment:
		return at, "its outcome is known"
	case e.State == ledger.Reserved:
		return e.LeaseUntil.Add(ledger.LapseMargin), ""
	case e.State == ledger.Released && e.Claim.Status == "":
		return at, "it was certainly not applied"
	case !row.HasStatusLookup:
		return at, "operator " + e.Operator + " has no status lookup"
	case e.PollAt.IsZero() || !e.Claim.CheckAt.IsZero() && e.Claim.CheckAt.Before(e.PollAt):
		return e.Claim.CheckAt, ""
	}
	return e.PollAt, ""
}

// resendAdvice returns what can end an unknown outcome that has no lookup.
func resendAdvice(e *ledger.Entry, row operator.Capabilities, now time.Time) string {
	if end := e.SentAt.Add(row.SafeResendWindow()); now.Before(end) {
		return "the merchant may send the same request again until " + formatTime(end)
	}
	return "get the outcome from the operator by the upstream key"
}
