package ledger

import "time"

// Verdict is what becomes of a request whose key may be held already.
type Verdict int

// The verdicts. With Fresh and Retaken the reservation is the caller's and it calls the operator; with all others it
// must not.
const (
	NewReservation Verdict = iota // nothing was there; ours
	TakenOver                     // an earlier attempt was taken over; ours, the operator hears the same upstream key
	StoredResponse                // the stored answer again
	InFlight                      // another attempt is in flight
	KeyTaken                      // the key belongs to another request, or to one that is done (SMS)
	StillUnknown                  // an earlier attempt may have been applied, and it may not be sent again
)

// String names the verdict for logs and tests.
func (v Verdict) String() string {
	names := [...]string{"Fresh", "Retaken", "Replay", "Busy", "Taken", "StillUnknown"}
	if v < 0 || int(v) >= len(names) {
		return "Verdict?"
	}
	return names[v]
}

// Decide says what becomes of incoming where existing holds its key. repeatSafeFor is how long after the first send
// a repeat under the same upstream key is safe at existing's operator; 0 for never (decision "repeat-window").
// Retaken means that the caller may try to take existing over. An expired entry counts as absent: Fresh.
func Decide(existing, incoming *Entry, now time.Time, repeatSafeFor time.Duration) Verdict {
	if existing == nil || existing.PastRetention(now) {
		return NewReservation
	}
	if existing.MerchantID != incoming.MerchantID {
		return KeyTaken
	}
	if existing.Leased(now) {
		return InFlight
	}
	repeat := StillUnknown
	if now.Sub(existing.SentAt) < repeatSafeFor {
		repeat = TakenOver
	}
	same := existing.Fingerprint == incoming.Fingerprint
	switch existing.Kind {
	case Charge:
		return decideCharge(existing, same, repeat)
	case Payment:
		return decidePayment(existing, same, repeat)
	case SMS:
		return decideSMS(existing, same, repeat)
	default:
		return KeyTaken
	}
}

// decideCharge follows decisions "charge-repeat" and "charge-unknown": a repeat raises no error whatever its body, but
// another body is never sent. A charge that a person found applied has no answer yet: the same request makes it, and of
// another nobody could say what it was (decision "unknown-by-hand").
func decideCharge(existing *Entry, same bool, repeat Verdict) Verdict {
	switch existing.State {
	case Done, Refused:
		if existing.ResponseStatus == 0 && !same {
			return KeyTaken
		}
		return StoredResponse
	case Released:
		return decideReleased(existing, same)
	default: // Unknown, or a reservation that lapsed
		if !same {
			return StillUnknown
		}
		return repeat
	}
}

// decidePayment follows decisions "pay-repeat" and "pay-unknown". A payment whose status is final is never sent again,
// even where no answer was stored: getStatus tells what became of it.
func decidePayment(existing *Entry, same bool, repeat Verdict) Verdict {
	switch {
	case existing.State == Released:
		return decideReleased(existing, same)
	case !same:
		return KeyTaken
	case existing.ResponseStatus != 0:
		return StoredResponse
	case existing.StatusFinal():
		return KeyTaken
	default:
		return repeat
	}
}

// decideSMS follows decision "sms-duplicate". A message that a receipt has come for was sent, whatever its state.
func decideSMS(existing *Entry, same bool, repeat Verdict) Verdict {
	switch existing.State {
	case Done:
		return KeyTaken
	case Refused:
		if !same {
			return KeyTaken
		}
		return StoredResponse
	case Released:
		return decideReleased(existing, same)
	default: // Unknown, or a reservation that lapsed
		if !same || existing.reportedByOperator() {
			return KeyTaken
		}
		return repeat
	}
}

// decideReleased follows decision "released": the same request may come again, and any where the release bound none.
func decideReleased(existing *Entry, same bool) Verdict {
	if same || existing.Fingerprint == "" {
		return TakenOver
	}
	return KeyTaken
}
