package ledger

import "time"

// Verdict is the decision on a request whose key may exist already.
type Verdict int

// The verdicts. Only with NewReservation and TakenOver does the caller own the reservation and call the operator.
const (
	NewReservation Verdict = iota // the key was free
	TakenOver                     // from an earlier attempt; the operator gets the same upstream key again
	StoredResponse                // send the stored response again
	InFlight                      // another attempt is in flight
	KeyTaken                      // the key belongs to another request, or to an SMS that was sent
	StillUnknown                  // an earlier attempt may have been applied, and must not be sent again
)

// String names the verdict for logs and tests.
func (v Verdict) String() string {
	names := [...]string{"NewReservation", "TakenOver", "StoredResponse", "InFlight", "KeyTaken", "StillUnknown"}
	if v < 0 || int(v) >= len(names) {
		return "Verdict?"
	}
	return names[v]
}

// Decide compares a request with the entry that has its key. TakenOver means that the caller may try to take existing
// over. An entry past its retention counts as absent. resendWindow is how long after SentAt existing's operator treats
// a repeat under the same upstream key as the same transaction; 0 for never (decision "repeat-window").
func Decide(existing, incoming *Entry, now time.Time, resendWindow time.Duration) Verdict {
	if existing == nil || existing.PastRetention(now) {
		return NewReservation
	}
	if existing.Merchant.ID != incoming.Merchant.ID {
		return KeyTaken
	}
	if existing.Leased(now) {
		return InFlight
	}
	repeat := StillUnknown
	if resendWindow > 0 && now.Sub(existing.SentAt) < resendWindow { // SentAt may be ahead of this process's clock
		repeat = TakenOver
	}
	same := existing.Request.Fingerprint == incoming.Request.Fingerprint
	switch {
	case existing.State == Released && (same || existing.Request.Fingerprint == ""):
		return TakenOver // decision "released": the same request, or any request if the release binds no body
	case existing.State == Released:
		return KeyTaken
	case existing.Kind == Charge:
		return decideCharge(existing, same, repeat)
	case existing.Kind == Payment && same:
		return decidePayment(existing, repeat)
	case existing.Kind == SMS && same:
		return decideSMS(existing, repeat)
	default:
		return KeyTaken
	}
}

// decideCharge follows decisions "charge-repeat" and "charge-unknown": a repeat is never an error, but another body is
// never sent. A charge that was manually resolved as applied has no response yet. The same request makes it; any other
// request gets KeyTaken, because it may describe another charge (decision "unknown-by-hand").
func decideCharge(existing *Entry, same bool, repeat Verdict) Verdict {
	known := existing.State == Done || existing.State == Refused
	switch {
	case known && existing.Response.Status == 0 && !same:
		return KeyTaken
	case known:
		return StoredResponse
	case !same:
		return StillUnknown
	default: // Unknown, or a reservation that lapsed
		return repeat
	}
}

// decidePayment follows decisions "pay-repeat" and "pay-unknown" for the same body. A payment with a final status is
// never sent again, even if no response was stored: getStatus reports it.
func decidePayment(existing *Entry, repeat Verdict) Verdict {
	switch {
	case existing.Response.Status != 0:
		return StoredResponse
	case existing.StatusFinal():
		return KeyTaken
	default:
		return repeat
	}
}

// decideSMS follows decision "sms-duplicate" for the same body. A message with a receipt was sent, in any state.
func decideSMS(existing *Entry, repeat Verdict) Verdict {
	switch {
	case existing.State == Refused:
		return StoredResponse
	case existing.State == Done || existing.hasReport(existing.Kind):
		return KeyTaken
	default: // Unknown, or a reservation that lapsed
		return repeat
	}
}

// restoredFingerprint is the fingerprint of an entry whose body a restore of the ledger lost. No body has it, because
// Fingerprint has 43 characters. So no request takes the entry over: a charge gets 504, a payment and an SMS get 409
// (decision "restored").
const restoredFingerprint = "restored"

// Restored is true for an entry that was stored because a restore of the ledger lost its transaction, or its last
// attempt. Only a status of its operator or a person ends it: that its operator does not know it proves nothing.
func (r *Request) Restored() bool { return r.Fingerprint == restoredFingerprint }

// LostUpstreamKey is true for a restored payment whose platform's key was random: no lookup can find it.
func (e *Entry) LostUpstreamKey() bool { return e.Request.Restored() && e.Route.UpstreamKey == "" }

// LoseRelease makes a released entry unknown, because a restore of the ledger lost a later attempt. It returns whether
// the entry changed.
func (e *Entry) LoseRelease(now time.Time) bool {
	if e.State != Released {
		return false
	}
	e.loseAttempts(now)
	return true
}

// LoseRetry applies that a restore of the ledger lost a later attempt of an uncertain entry: one that began at last, or
// earlier. A proof that a payment was never sent, and its lifetime, then count from last. If the platform prepares its
// payments, the attempt may have stored driver data that is lost: without any, the entry is as one that Restore stores.
// It returns whether the entry changed.
func (e *Entry) LoseRetry(last time.Time, prepares bool, now time.Time) bool {
	if e.State != Reserved && e.State != Unknown || e.Leased(now) || e.StatusFinal() || e.Request.Restored() {
		return false
	}
	changed := e.NothingSent
	e.NothingSent = false
	if e.Kind != Payment {
		return changed
	}
	if e.ReservedAt.Before(last) {
		e.ReservedAt, changed = last, true
	}
	if prepares && e.DriverData == "" {
		e.loseAttempts(now)
		return true
	}
	return changed
}

// loseAttempts makes the entry unknown, for each body. The lookup of a payment is due at once.
func (e *Entry) loseAttempts(now time.Time) {
	e.Request.Fingerprint = restoredFingerprint
	e.State, e.EverUnknown, e.NothingSent = Unknown, true, false
	e.Poll = Poll{At: now}
	if e.Kind != Payment {
		e.Poll.At = now.Add(StaleAfter)
	}
}
