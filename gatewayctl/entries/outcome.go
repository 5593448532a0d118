package entries

import (
	"cmp"
	"fmt"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// Call is one call of the operator.
type Call struct {
	At         time.Time `json:"at"`
	Seconds    float64   `json:"seconds"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason,omitempty"`
	HTTPStatus int       `json:"operator_status,omitempty"`
	Response   int       `json:"response_status,omitempty"` // of the response to the merchant
}

// Calls lists an entry's attempts. A success at once has no attempt of its own: the entry describes it.
func Calls(e *ledger.Entry) []Call {
	const perSecond = 1000
	if len(e.Call.Attempts) == 0 && e.State == ledger.Done && e.Response.Status != 0 && !e.EverUnknown {
		return []Call{{At: e.ReservedAt, Outcome: ledger.CallSucceeded, Response: e.Response.Status}}
	}
	return output.MapAll(e.Call.Attempts, func(a ledger.CallAttempt) Call {
		return Call{
			a.At, float64(a.Millis) / perSecond, a.Outcome, a.Reason, a.HTTPStatus, a.Response,
		}
	})
}

// firstSend returns when the first request can have reached the operator, zero for never.
func firstSend(e *ledger.Entry) time.Time {
	for _, a := range e.Call.Attempts {
		if a.Outcome != ledger.CallNotSent && (a.Outcome != ledger.CallNotApplied || a.HTTPStatus != 0) {
			return a.At
		}
	}
	switch {
	case e.State == ledger.Released && (len(e.Call.Attempts) > 0 || e.Request.Fingerprint == ""):
		return time.Time{}
	case len(e.Call.Attempts) > 0:
		return e.ReservedAt
	}
	return e.SentAt
}

// PastLifetime reports whether a payment is not final at the end of its lifetime, although it is looked up.
func PastLifetime(s *session.Session, e *ledger.Entry) bool {
	lookedUp := !e.Poll.At.IsZero() || e.Claim.Status != ""
	return e.Kind == ledger.Payment && !e.StatusFinal() && lookedUp && s.Now().Sub(e.ReservedAt) >= s.PaymentLifetime
}

// RetryEnd returns until when the same request of the merchant is sent again, and may so get the outcome from the
// operator. It is zero if it is not sent any more.
func RetryEnd(e *ledger.Entry, now time.Time) time.Time {
	end := e.SentAt.Add(operator.CapabilitiesOf(e).SafeResendWindow())
	if !now.Before(end) || e.Request.Restored() || e.Kind == ledger.Payment && e.Response.Status != 0 {
		return time.Time{}
	}
	return end
}

// HasKeyAtOperator reports whether the operator can find an entry by its upstream key. A platform that treats each
// second send of an SMS as another one gets no key.
func HasKeyAtOperator(e *ledger.Entry, row operator.Capabilities) bool {
	return e.Kind != ledger.SMS || row.ResendWindow > 0
}

// AwaitsCallback reports whether the operator may still report a status of an entry.
func AwaitsCallback(e *ledger.Entry) bool {
	return e.Kind != ledger.Charge && !e.StatusFinal() && !e.NotApplied()
}

// ComesByLookup reports whether a lookup ends an entry without a callback.
func ComesByLookup(e *ledger.Entry) bool { return e.Kind == ledger.Payment && WhyNoLookup(e) == "" }

// WhyNoLookup returns why no lookup can end a payment, "" if one can. A payment that was never prepared needs none: it
// was never sent, and ends when its lookup is due (decision "prepare").
func WhyNoLookup(e *ledger.Entry) string {
	row := operator.CapabilitiesOf(e)
	switch {
	case !row.HasStatusLookup:
		return "operator " + e.Route.Operator + " has no status lookup"
	case e.LostUpstreamKey():
		return "operator " + e.Route.Operator + " cannot look it up: a restore of the ledger lost its upstream key"
	case row.LookupNeedsDriverData && e.DriverData == "" && (!row.Prepares || e.Request.Restored()):
		return "operator " + e.Route.Operator +
			" has no status lookup without its response to the payment, which was lost"
	}
	return ""
}

// MayCallOperator reports whether an entry is live: it may cause another call with its account.
func MayCallOperator(e *ledger.Entry) bool {
	if e.Unknowable() {
		return false
	}
	pending := e.Kind == ledger.Payment && e.State != ledger.Released && !e.StatusFinal()
	claimed := e.Claim.Status != "" && !e.StatusFinal()
	return pending || claimed || e.State == ledger.Reserved || e.State == ledger.Unknown ||
		e.UserSMS.State == ledger.UserSMSDue
}

// nextLookup returns when the gateway looks the entry up again, or why it does not.
func nextLookup(e *ledger.Entry, now time.Time) (at time.Time, reason string) {
	row := operator.CapabilitiesOf(e)
	switch {
	case e.StatusFinal() && (e.Kind == ledger.Payment || e.State != ledger.Unknown):
		return at, "its status is final"
	case e.Unknowable():
		return at, "it was closed as unknowable: only a receipt or a later decision ends it"
	case e.Leased(now):
		return at, "an attempt is in flight until " + output.FormatTime(e.LeaseUntil)
	case e.Kind != ledger.Payment && (e.State == ledger.Unknown || e.State == ledger.Reserved):
		return at, "no operator has a status lookup for it: " + ResendAdvice(e, row, now)
	case e.Kind != ledger.Payment:
		return at, "its outcome is known"
	case e.State == ledger.Released && e.Claim.Status == "":
		return at, "it was certainly not applied"
	case !ComesByLookup(e):
		return at, WhyNoLookup(e)
	case e.State == ledger.Reserved:
		return e.LeaseUntil.Add(ledger.LapseMargin), ""
	case e.Poll.At.IsZero() || !e.Claim.CheckAt.IsZero() && e.Claim.CheckAt.Before(e.Poll.At):
		return e.Claim.CheckAt, ""
	}
	return e.Poll.At, ""
}

// ResendAdvice returns what can end an unknown outcome that has no lookup.
func ResendAdvice(e *ledger.Entry, row operator.Capabilities, now time.Time) string {
	if end := RetryEnd(e, now); !end.IsZero() {
		return "the merchant may send the same request again until " + output.FormatTime(end)
	}
	if !HasKeyAtOperator(e, row) {
		return fmt.Sprintf("operator %s got no key of it. Search its records by the time %s, the sender %s and the "+
			"recipient, which the merchant knows (operator's reference: %s). Otherwise close it as unknowable",
			e.Route.Operator, output.FormatTime(e.SentAt), e.Request.Sender, cmp.Or(e.OperatorReference, "none"))
	}
	return "get the outcome from the operator by the upstream key"
}

// ResolveArguments are the arguments of the command that ends an unknown outcome. It is a lookup. It is a person's
// decision where no lookup can end it, or none has for ledger.ClaimFlagAfter.
func ResolveArguments(e *ledger.Entry, now time.Time) []string {
	arguments := []string{"unknown", "resolve", string(e.Kind), e.ID}
	if !ComesByLookup(e) || e.ClaimFlagged(now) {
		arguments = append(arguments, "--as", "OUTCOME")
	}
	return session.ConfirmArguments(arguments...)
}
