package sandbox

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"time"

	"mobilegateway/shared/market"
	"mobilegateway/world/operators/kit"
)

// pin confirms one payment on the page, with any number. It is issued with a dummy number.
type pin struct {
	PIN           string    `json:"pin"`
	MSISDN        string    `json:"msisdn"`
	OrderID       string    `json:"order_id,omitempty"` // valid for this payment only; "": for any
	Owner         string    `json:"owner,omitempty"`    // see TestsToken
	Merchant      string    `json:"merchant,omitempty"` // valid for this merchant's payments only; "": for any
	IssuedAt      time.Time `json:"issued_at"`
	ExpiresAt     time.Time `json:"expires_at"`
	Used          bool      `json:"used,omitempty"`
	WrongAttempts int       `json:"wrong,omitempty"` // wrong PINs that came with its number
}

const (
	// pinRetention is how long an expired PIN is kept, so that the page can report that it has expired.
	pinRetention = 24 * time.Hour
	// maxPINs limits the PINs that are kept, so that six random digits are seldom one of them.
	maxPINs = 20_000
	// maxWrongPINs is the number of wrong PINs that end a number's PIN, or that a page takes before it needs a new PIN.
	maxWrongPINs = 5
)

// pinBox has the PINs by their digits.
type pinBox struct {
	*Sandbox
	byCode map[string]*pin
}

func (p *pin) usable(now time.Time) bool { return !p.Used && !p.lost() && now.Before(p.ExpiresAt) }

// lost reports whether too many wrong PINs came with the PIN's number.
func (p *pin) lost() bool { return p.WrongAttempts >= maxWrongPINs }

func (p *pin) hasNumber(number string) bool { return plainNumber(p.MSISDN) == plainNumber(number) }

func (p *pin) isFor(t transaction) bool {
	return (p.OrderID == "" || p.OrderID == t.Key) && isOrderOf(p.Merchant, t.Key)
}

// forgetPINs removes the PINs that expired more than pinRetention ago.
func (s *pinBox) forgetPINs() {
	oldest := s.Now().Add(-s.Scaled(pinRetention))
	maps.DeleteFunc(s.byCode, func(_ string, p *pin) bool { return !oldest.Before(p.ExpiresAt) })
}

// testPINRequest is the body of POST /sandbox/v1/tests. All fields are optional.
type testPINRequest struct {
	MSISDN  string `json:"msisdn"`   // the number to issue instead of a dummy number
	Country string `json:"country"`  // the dummy number's; CI by default
	OrderID string `json:"order_id"` // only this payment takes the PIN, and its page counts down to the PIN's end
}

// issueTestPIN issues a PIN and a dummy number, whose digits select no special outcome.
func (s *pinBox) issueTestPIN(c *kit.Call, body testPINRequest) kit.Response {
	caller := s.callerOf(c)
	country, known := market.ByAlpha2(cmp.Or(body.Country, market.All()[0].Alpha2))
	number, valid := parseNumber(body.MSISDN)
	switch {
	case !known:
		return kit.Refuse(http.StatusBadRequest, "country is not one of the table")
	case body.MSISDN != "" && !valid:
		return kit.Refuse(http.StatusBadRequest, "msisdn is 4 to 15 digits, with or without +")
	case len(body.OrderID) > maxIDLength:
		return kit.Refuse(http.StatusBadRequest, "order_id has at most 30 characters")
	case body.OrderID != "" && !isOrderOf(caller.Merchant, body.OrderID):
		return kit.Refuse(http.StatusBadRequest, "order_id is not yours: your token is for %s", caller.Merchant)
	}
	if body.MSISDN == "" {
		number = s.dummyNumber(country)
	}
	s.forgetPINs()
	if len(s.byCode) >= maxPINs {
		return kit.Refuse(http.StatusConflict, "too many PINs: each is deleted a day after its end")
	}
	if caller.Owner != "" && s.pinsOf(caller.Owner) >= maxOwnedPINs {
		return kit.Refuse(http.StatusConflict, "you have 500 PINs: each is deleted a day after its end")
	}
	now := s.Now()
	p := &pin{
		PIN: s.newPINCode(now), MSISDN: number, OrderID: body.OrderID, Owner: caller.Owner, Merchant: caller.Merchant,
		IssuedAt: now, ExpiresAt: now.Add(s.Scaled(pinLifetime)),
	}
	s.byCode[p.PIN] = p
	s.journal.save(journalRecord{PIN: p})
	return jsonResponse(http.StatusOK, map[string]any{"pin": p.PIN, "msisdn": p.MSISDN, "expires_at": p.ExpiresAt})
}

// pinsOf returns how many PINs of an owner are kept.
func (s *pinBox) pinsOf(owner string) (count int) {
	for _, p := range s.byCode {
		if p.Owner == owner {
			count++
		}
	}
	return count
}

// newPINCode returns six digits that no usable PIN has.
func (s *pinBox) newPINCode(now time.Time) string {
	for {
		code := fmt.Sprintf("%06d", binary.BigEndian.Uint32(s.NewBytes(4))%1_000_000)
		if p := s.byCode[code]; p == nil || !p.usable(now) {
			return code
		}
	}
}

// dummyNumber returns a number of the country without the digits of an outcome on demand.
func (s *pinBox) dummyNumber(country market.Country) string {
	lead, digits := "7", country.NationalLengths[0]
	if country.Alpha2 == "CI" {
		lead = "07" // only in this number plan the national numbers begin with 0
	}
	ending := 2000 + binary.BigEndian.Uint32(s.NewBytes(4))%8000
	return fmt.Sprintf("+%s%s%0*d", country.CallingCode, lead, digits-len(lead), ending)
}

// latestPINFor returns the PIN that expires last among those that a payment takes, also an expired one. It was issued
// for the payment or for its number. nil: there is none.
func (s *pinBox) latestPINFor(t transaction, input string) *pin {
	number, valid := parseNumber(input)
	var latest *pin
	for _, p := range s.byCode {
		issuedFor := p.OrderID == t.Key || p.OrderID == "" && valid && p.hasNumber(number)
		taken := !p.Used && !p.lost() && isOrderOf(p.Merchant, t.Key) &&
			p.ExpiresAt.After(t.CreatedAt) && !t.Payment.issuedBeforeLock(p)
		if issuedFor && taken && (latest == nil || p.ExpiresAt.After(latest.ExpiresAt)) {
			latest = p
		}
	}
	return latest
}

// issuedBeforeLock reports whether a PIN was issued before the page's fifth wrong one.
func (o *paymentDetails) issuedBeforeLock(p *pin) bool {
	return !o.LockedAt.IsZero() && !p.IssuedAt.After(o.LockedAt)
}

// waitsForNewPIN reports whether the page needs a new PIN, and got no wrong one since.
func (o *paymentDetails) waitsForNewPIN() bool { return !o.LockedAt.IsZero() && o.WrongPINs == 0 }

// checkPIN checks a PIN for a payment page, and consumes it on request. It returns "", or the fault to show. Only a PIN
// that was never valid for the payment counts as a wrong one.
func (s *pinBox) checkPIN(t transaction, number, code string, consume bool) string {
	texts := s.pages.textFor(t.Payment.Lang)
	p := s.byCode[code]
	switch {
	case p == nil || !p.isFor(t):
		return texts.wrongPINText(s.countWrongPIN(t, number))
	case p.Used:
		return texts.UsedPIN
	case !s.Now().Before(p.ExpiresAt):
		return texts.ExpiredPIN
	case p.lost() || t.Payment.issuedBeforeLock(p):
		return texts.Locked
	}
	if consume {
		p.Used = true
		s.journal.save(journalRecord{PIN: p})
	}
	return ""
}

// noUsablePINLeft reports whether five wrong PINs have ended every PIN that a page would take.
func (s *pinBox) noUsablePINLeft(t transaction, number string, now time.Time) bool {
	lost := !t.Payment.LockedAt.IsZero()
	for _, p := range s.byCode {
		if p.usable(now) && p.isFor(t) && !t.Payment.issuedBeforeLock(p) {
			return false
		}
		lost = lost || p.lost() && p.hasNumber(number) && isOrderOf(p.Merchant, t.Key)
	}
	return lost
}

// countWrongPIN counts a wrong PIN against the page and the number's PINs. It returns the number of tries that are
// left.
func (s *pinBox) countWrongPIN(t transaction, number string) int {
	now := s.Now()
	if s.noUsablePINLeft(t, number, now) {
		return 0
	}
	o := t.Payment
	o.WrongPINs++
	left := maxWrongPINs - o.WrongPINs
	if left == 0 {
		o.WrongPINs, o.LockedAt = 0, now
	}
	for _, p := range s.byCode {
		if p.hasNumber(number) && p.usable(now) && isOrderOf(p.Merchant, t.Key) {
			p.WrongAttempts++
			left = min(left, maxWrongPINs-p.WrongAttempts)
			s.journal.save(journalRecord{PIN: p})
		}
	}
	return left
}
