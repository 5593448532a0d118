package sandbox

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"time"

	"mobilegateway/shared/market"
)

// pin is what a payment is confirmed with: issued with a dummy number, good once, for a while, with any number.
type pin struct {
	PIN           string    `json:"pin"`
	MSISDN        string    `json:"msisdn"`
	OrderID       string    `json:"order_id,omitempty"` // good for this payment alone; "": for any
	IssuedAt      time.Time `json:"issued_at"`
	ExpiresAt     time.Time `json:"expires_at"`
	Used          bool      `json:"used,omitempty"`
	WrongAttempts int       `json:"wrong,omitempty"` // wrong PINs that came with its number
}

// pinRetention is for how long an expired PIN is remembered, so that the page can say that it has expired.
const pinRetention = 24 * time.Hour

// maxPINs is how many PINs are known at once: so few that six digits taken at random are seldom one of them.
const maxPINs = 20_000

// maxWrongPINs is how many wrong PINs a number's PIN and a payment page bear.
const maxWrongPINs = 5

func (p *pin) usable(now time.Time) bool {
	return !p.Used && p.WrongAttempts < maxWrongPINs && now.Before(p.ExpiresAt)
}

// pinForgotten tells whether a PIN has been expired for so long that nothing need be known of it.
func (s *Sandbox) pinForgotten(p *pin, now time.Time) bool {
	return !now.Before(p.ExpiresAt.Add(s.scaleDuration(pinRetention)))
}

// testPINRequest is the body of POST /sandbox/v1/tests; none is as good as an empty one.
type testPINRequest struct {
	MSISDN  string `json:"msisdn"`
	Country string `json:"country"`
	OrderID string `json:"order_id"`
}

// postTestPIN issues a PIN and a dummy number: an ordinary one of the country in the body ({"country":"SN"}, by default
// CI), or the number that the body asks for ({"msisdn":"..."}). With {"order_id":"..."} the PIN is good for that payment
// alone, and its page counts down to the PIN's end.
func (s *Sandbox) postTestPIN(w http.ResponseWriter, r *http.Request) {
	var body testPINRequest
	if !readControlBody(w, r, &body) {
		return
	}
	if body.Country == "" {
		body.Country = market.All()[0].Alpha2
	}
	country, known := market.ByAlpha2(body.Country)
	number, wellFormed := "", true
	if body.MSISDN != "" {
		number, wellFormed = parseNumber(body.MSISDN)
	}
	switch {
	case !known:
		writeControlError(w, http.StatusBadRequest, "country is not one of the table")
		return
	case !wellFormed:
		writeControlError(w, http.StatusBadRequest, "msisdn is 4 to 15 digits, with or without +")
		return
	case len(body.OrderID) > maxIDLength:
		writeControlError(w, http.StatusBadRequest, "order_id has at most 30 characters")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == "" {
		number = s.dummyNumber(country)
	}
	p := s.issuePIN(number, body.OrderID)
	if p == nil {
		writeControlError(w, http.StatusConflict, "too many PINs at once: they are forgotten a day after their end")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"pin": p.PIN, "msisdn": p.MSISDN, "expires_at": p.ExpiresAt})
}

// issuePIN makes and keeps a PIN, with the lock held; nil where there are too many.
func (s *Sandbox) issuePIN(number, order string) *pin {
	now := s.now()
	s.pins = slices.DeleteFunc(s.pins, func(old *pin) bool { return s.pinForgotten(old, now) })
	if len(s.pins) >= maxPINs {
		return nil
	}
	p := &pin{PIN: s.newPINCode(now), MSISDN: number, OrderID: order, IssuedAt: now, ExpiresAt: now.Add(s.scaleDuration(s.config.PINLifetime))}
	s.storePIN(p)
	s.appendToJournal(journalRecord{PIN: p})
	return p
}

// newPINCode is six digits that no live PIN has.
func (s *Sandbox) newPINCode(now time.Time) string {
	for {
		text := fmt.Sprintf("%06d", binary.BigEndian.Uint32(s.randomBytes(4))%1_000_000)
		if p := s.findPIN(text); p == nil || !p.usable(now) {
			return text
		}
	}
}

// dummyNumber is a number of the country that no row of the outcomes ends in.
func (s *Sandbox) dummyNumber(country market.Country) string {
	lead, digits := "7", country.NationalLengths[0]
	if country.Alpha2 == "CI" {
		lead = "07" // the one number plan of the table whose national numbers begin with 0
	}
	ending := 2000 + binary.BigEndian.Uint32(s.randomBytes(4))%8000
	return fmt.Sprintf("+%s%s%0*d", country.CallingCode, lead, digits-len(lead), ending)
}

// storePIN keeps a PIN in the place of an earlier one of the same digits.
func (s *Sandbox) storePIN(p *pin) {
	for i, old := range s.pins {
		if old.PIN == p.PIN {
			s.pins[i] = p
			return
		}
	}
	s.pins = append(s.pins, p)
}

func (s *Sandbox) findPIN(text string) *pin {
	for _, p := range s.pins {
		if p.PIN == text {
			return p
		}
	}
	return nil
}

// latestPINFor is the PIN that was issued last for a payment or for the number that pays it, expired ones too; nil where there
// is none that the payment would take.
func (s *Sandbox) latestPINFor(t *transaction, input string) *pin {
	number, ok := parseNumber(input)
	var last *pin
	for _, p := range s.pins {
		fits := p.OrderID == t.Key || p.OrderID == "" && ok && plainNumber(p.MSISDN) == plainNumber(number)
		fits = fits && p.ExpiresAt.After(t.CreatedAt)
		if fits && !p.Used && p.WrongAttempts < maxWrongPINs && !t.Payment.issuedBeforeLock(p) && (last == nil || p.ExpiresAt.After(last.ExpiresAt)) {
			last = p
		}
	}
	return last
}

// issuedBeforeLock tells whether a PIN was issued before the page's fifth wrong one.
func (o *paymentDetails) issuedBeforeLock(p *pin) bool {
	return !o.LockedAt.IsZero() && !p.IssuedAt.After(o.LockedAt)
}

// waitsForNewPIN tells whether the page waits for a new PIN, and no other was tried since.
func (o *paymentDetails) waitsForNewPIN() bool { return !o.LockedAt.IsZero() && o.WrongPINs == 0 }

// checkPIN takes a PIN for a payment page, with the lock held. It returns "", or what to tell the purchaser: that it is
// wrong, used, expired, or issued before the fifth wrong one. A wrong one counts against the page and against the PINs of
// the number; one that was good once does not.
func (s *Sandbox) checkPIN(t *transaction, number, text string, consume bool) string {
	texts, _ := textFor(t.Payment.Lang)
	now := s.now()
	p := s.findPIN(text)
	switch {
	case p == nil || p.OrderID != "" && p.OrderID != t.Key:
		left := s.countWrongPIN(t, number, now)
		if left == 0 {
			return texts.Locked
		}
		return texts.wrongPINText(left)
	case p.Used:
		return texts.UsedPIN
	case !now.Before(p.ExpiresAt):
		return texts.ExpiredPIN
	case p.WrongAttempts >= maxWrongPINs || t.Payment.issuedBeforeLock(p):
		return texts.Locked
	}
	if consume {
		p.Used = true
		s.appendToJournal(journalRecord{PIN: p})
	}
	return ""
}

// noUsablePINLeft tells whether five wrong PINs have ended every PIN that a page would take: there is nothing left to try.
func (s *Sandbox) noUsablePINLeft(t *transaction, number string, now time.Time) bool {
	lost := !t.Payment.LockedAt.IsZero()
	for _, p := range s.pins {
		if p.usable(now) && !t.Payment.issuedBeforeLock(p) && (p.OrderID == "" || p.OrderID == t.Key) {
			return false
		}
		lost = lost || p.WrongAttempts >= maxWrongPINs && plainNumber(p.MSISDN) == plainNumber(number)
	}
	return lost
}

// countWrongPIN notes a wrong PIN and returns how many tries are left; 0 when the page or the number's PIN has had five.
func (s *Sandbox) countWrongPIN(t *transaction, number string, now time.Time) int {
	if s.noUsablePINLeft(t, number, now) {
		return 0
	}
	o := t.Payment
	o.WrongPINs++
	left := maxWrongPINs - o.WrongPINs
	if left == 0 {
		o.WrongPINs, o.LockedAt = 0, now
	}
	for _, p := range s.pins {
		if plainNumber(p.MSISDN) == plainNumber(number) && p.usable(now) {
			p.WrongAttempts++
			left = min(left, maxWrongPINs-p.WrongAttempts)
			s.appendToJournal(journalRecord{PIN: p})
		}
	}
	return left
}
