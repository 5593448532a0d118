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
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Used      bool      `json:"used,omitempty"`
	Wrong     int       `json:"wrong,omitempty"` // wrong PINs that came with its number
}

// maxWrong is how many wrong PINs a number's PIN and a payment page bear.
const maxWrong = 5

func (p *pin) live(now time.Time) bool {
	return !p.Used && p.Wrong < maxWrong && now.Before(p.ExpiresAt)
}

// postTests issues a PIN and a dummy number: an ordinary one of the country in the body ({"country":"SN"}, by default
// CI), or the number that the body asks for ({"msisdn":"..."}).
func (s *Sandbox) postTests(w http.ResponseWriter, r *http.Request) {
	var body struct {
		MSISDN  string `json:"msisdn"`
		Country string `json:"country"`
	}
	if !readControl(w, r, &body) {
		return
	}
	if body.Country == "" {
		body.Country = market.All()[0].Alpha2
	}
	country, ok := market.ByAlpha2(body.Country)
	if !ok {
		controlFault(w, http.StatusBadRequest, "country is not one of the table")
		return
	}
	number, ok := "", true
	if body.MSISDN != "" {
		number, ok = typedNumber(body.MSISDN)
	}
	if !ok {
		controlFault(w, http.StatusBadRequest, "msisdn is 4 to 15 digits, with or without +")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == "" {
		number = s.dummyNumber(country)
	}
	now := s.now()
	s.pins = slices.DeleteFunc(s.pins, func(old *pin) bool { return !now.Before(old.ExpiresAt) })
	p := &pin{PIN: s.freshPIN(now), MSISDN: number, IssuedAt: now, ExpiresAt: now.Add(s.scaled(s.config.PINLifetime))}
	s.putPIN(p)
	s.keep(record{PIN: p})
	writeJSON(w, http.StatusOK, map[string]any{"pin": p.PIN, "msisdn": p.MSISDN, "expires_at": p.ExpiresAt})
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

// usePIN takes a PIN for a payment page, with the lock held. A wrong one counts against the page and against the PINs
// of the number; false says that it is wrong, used, too old, or issued before the page's fifth wrong one.
func (s *Sandbox) usePIN(o *order, number, text string, take bool) bool {
	now := s.now()
	p := s.findPIN(text)
	if p != nil && p.live(now) && (o.LockedAt.IsZero() || p.IssuedAt.After(o.LockedAt)) {
		if take {
			p.Used = true
			s.keep(record{PIN: p})
		}
		return true
	}
	for _, other := range s.pins {
		if plainNumber(other.MSISDN) == plainNumber(number) && other.live(now) {
			other.Wrong++
			s.keep(record{PIN: other})
		}
	}
	o.Wrong++
	if o.Wrong >= maxWrong {
		o.Wrong, o.LockedAt = 0, now
	}
	return false
}
