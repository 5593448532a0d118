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
	PIN       string    `json:"pin"`
	MSISDN    string    `json:"msisdn"`
	OrderID   string    `json:"order_id,omitempty"` // good for this payment alone; "": for any
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Used      bool      `json:"used,omitempty"`
	Wrong     int       `json:"wrong,omitempty"` // wrong PINs that came with its number
}

// pinMemory is for how long an expired PIN is remembered, so that the page can say that it has expired.
const pinMemory = 24 * time.Hour

// maxPINs is how many PINs are known at once: so few that six digits taken at random are seldom one of them.
const maxPINs = 20_000

// maxWrong is how many wrong PINs a number's PIN and a payment page bear.
const maxWrong = 5

func (p *pin) live(now time.Time) bool {
	return !p.Used && p.Wrong < maxWrong && now.Before(p.ExpiresAt)
}

// forgotten tells whether a PIN has been expired for so long that nothing need be known of it.
func (s *Sandbox) forgotten(p *pin, now time.Time) bool {
	return !now.Before(p.ExpiresAt.Add(s.scaled(pinMemory)))
}

// test is the body of POST /sandbox/v1/tests; none is as good as an empty one.
type test struct {
	MSISDN  string `json:"msisdn"`
	Country string `json:"country"`
	OrderID string `json:"order_id"`
}

// postTests issues a PIN and a dummy number: an ordinary one of the country in the body ({"country":"SN"}, by default
// CI), or the number that the body asks for ({"msisdn":"..."}). With {"order_id":"..."} the PIN is good for that payment
// alone, and its page counts down to the PIN's end.
func (s *Sandbox) postTests(w http.ResponseWriter, r *http.Request) {
	var body test
	if !readControl(w, r, &body) {
		return
	}
	if body.Country == "" {
		body.Country = market.All()[0].Alpha2
	}
	country, known := market.ByAlpha2(body.Country)
	number, wellFormed := "", true
	if body.MSISDN != "" {
		number, wellFormed = typedNumber(body.MSISDN)
	}
	switch {
	case !known:
		controlFault(w, http.StatusBadRequest, "country is not one of the table")
		return
	case !wellFormed:
		controlFault(w, http.StatusBadRequest, "msisdn is 4 to 15 digits, with or without +")
		return
	case len(body.OrderID) > maxID:
		controlFault(w, http.StatusBadRequest, "order_id has at most 30 characters")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == "" {
		number = s.dummyNumber(country)
	}
	p := s.issue(number, body.OrderID)
	if p == nil {
		controlFault(w, http.StatusConflict, "too many PINs at once: they are forgotten a day after their end")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"pin": p.PIN, "msisdn": p.MSISDN, "expires_at": p.ExpiresAt})
}

// issue makes and keeps a PIN, with the lock held; nil where there are too many.
func (s *Sandbox) issue(number, order string) *pin {
	now := s.now()
	s.pins = slices.DeleteFunc(s.pins, func(old *pin) bool { return s.forgotten(old, now) })
	if len(s.pins) >= maxPINs {
		return nil
	}
	p := &pin{PIN: s.freshPIN(now), MSISDN: number, OrderID: order, IssuedAt: now, ExpiresAt: now.Add(s.scaled(s.config.PINLifetime))}
	s.putPIN(p)
	s.keep(record{PIN: p})
	return p
}

// freshPIN is six digits that no live PIN has.
func (s *Sandbox) freshPIN(now time.Time) string {
	for {
		text := fmt.Sprintf("%06d", binary.BigEndian.Uint32(s.random(4))%1_000_000)
		if p := s.findPIN(text); p == nil || !p.live(now) {
			return text
		}
	}
}

// dummyNumber is a number of the country that no row of the outcomes ends in.
func (s *Sandbox) dummyNumber(country market.Country) string {
	lead, digits := "7", country.NationalDigits[0]
	if country.Alpha2 == "CI" {
		lead = "07" // the one number plan of the table whose national numbers begin with 0
	}
	ending := 2000 + binary.BigEndian.Uint32(s.random(4))%8000
	return fmt.Sprintf("+%s%s%0*d", country.CallingCode, lead, digits-len(lead), ending)
}

// putPIN keeps a PIN in the place of an earlier one of the same digits.
func (s *Sandbox) putPIN(p *pin) {
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

// pinFor is the PIN that was issued last for a payment or for the number that pays it, expired ones too; nil where there
// is none that the payment would take.
func (s *Sandbox) pinFor(t *transaction, typed string) *pin {
	number, ok := typedNumber(typed)
	var last *pin
	for _, p := range s.pins {
		fits := p.OrderID == t.Key || p.OrderID == "" && ok && plainNumber(p.MSISDN) == plainNumber(number)
		fits = fits && p.ExpiresAt.After(t.CreatedAt)
		if fits && !p.Used && p.Wrong < maxWrong && !t.Payment.tooOld(p) && (last == nil || p.ExpiresAt.After(last.ExpiresAt)) {
			last = p
		}
	}
	return last
}

// tooOld tells whether a PIN was issued before the page's fifth wrong one.
func (o *order) tooOld(p *pin) bool { return !o.LockedAt.IsZero() && !p.IssuedAt.After(o.LockedAt) }

// locked tells whether the page waits for a new PIN, and no other was tried since.
func (o *order) locked() bool { return !o.LockedAt.IsZero() && o.Wrong == 0 }

// usePIN takes a PIN for a payment page, with the lock held. It returns "", or what to tell the purchaser: that it is
// wrong, used, expired, or issued before the fifth wrong one. A wrong one counts against the page and against the PINs of
// the number; one that was good once does not.
func (s *Sandbox) usePIN(t *transaction, number, text string, take bool) string {
	words, _ := textFor(t.Payment.Lang)
	now := s.now()
	p := s.findPIN(text)
	switch {
	case p == nil || p.OrderID != "" && p.OrderID != t.Key:
		left := s.countWrong(t, number, now)
		if left == 0 {
			return words.Locked
		}
		return words.wrongPIN(left)
	case p.Used:
		return words.UsedPIN
	case !now.Before(p.ExpiresAt):
		return words.ExpiredPIN
	case p.Wrong >= maxWrong || t.Payment.tooOld(p):
		return words.Locked
	}
	if take {
		p.Used = true
		s.keep(record{PIN: p})
	}
	return ""
}

// spent tells whether five wrong PINs have ended every PIN that a page would take: there is nothing left to try.
func (s *Sandbox) spent(t *transaction, number string, now time.Time) bool {
	lost := !t.Payment.LockedAt.IsZero()
	for _, p := range s.pins {
		if p.live(now) && !t.Payment.tooOld(p) && (p.OrderID == "" || p.OrderID == t.Key) {
			return false
		}
		lost = lost || p.Wrong >= maxWrong && plainNumber(p.MSISDN) == plainNumber(number)
	}
	return lost
}

// countWrong notes a wrong PIN and returns how many tries are left; 0 when the page or the number's PIN has had five.
func (s *Sandbox) countWrong(t *transaction, number string, now time.Time) int {
	if s.spent(t, number, now) {
		return 0
	}
	o := t.Payment
	o.Wrong++
	left := maxWrong - o.Wrong
	if left == 0 {
		o.Wrong, o.LockedAt = 0, now
	}
	for _, p := range s.pins {
		if plainNumber(p.MSISDN) == plainNumber(number) && p.live(now) {
			p.Wrong++
			left = min(left, maxWrong-p.Wrong)
			s.keep(record{PIN: p})
		}
	}
	return left
}
