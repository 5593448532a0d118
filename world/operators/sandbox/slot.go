package sandbox

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"mobilegateway/world/operators/kit"
)

// slot is a booked time for an end-to-end test (specification, What the service does). Slots are only a calendar: they
// do not overlap, and nothing else depends on them.
type slot struct {
	ID       string    `json:"id"`
	Owner    string    `json:"owner,omitempty"` // see TestsToken; "": only control tokens change it
	Merchant string    `json:"merchant"`
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
}

// calendar has the slots.
type calendar struct {
	*Sandbox
	slots []*slot
}

const (
	defaultSlotLength = time.Hour // without ends_at
	maxSlotLength     = 8 * time.Hour
	maxSlots          = 10_000
	maxSlotLead       = 90 * 24 * time.Hour // from now to the start, with a tests token
	maxMerchantBytes  = 100
)

// listSlots lists all slots. Of another merchant's slot it shows only the time.
func (s *calendar) listSlots(c *kit.Call, _ struct{}) kit.Response {
	caller, list := s.callerOf(c), []slot{}
	for _, v := range s.slots {
		if caller.mayUse(v.Owner) {
			list = append(list, *v)
		} else {
			list = append(list, slot{StartsAt: v.StartsAt, EndsAt: v.EndsAt})
		}
	}
	return jsonResponse(http.StatusOK, list)
}

// bookSlot books {"merchant","starts_at","ends_at"}: by default from now, for an hour. A 409 names the conflicting slot
// if it is the caller's.
func (s *calendar) bookSlot(c *kit.Call, v slot) kit.Response {
	caller := s.callerOf(c)
	v.Owner, v.Merchant = caller.Owner, cmp.Or(v.Merchant, caller.Merchant)
	if v.StartsAt.IsZero() {
		v.StartsAt = s.Now()
	}
	if v.EndsAt.IsZero() {
		v.EndsAt = v.StartsAt.Add(defaultSlotLength)
	}
	v.StartsAt, v.EndsAt = v.StartsAt.UTC(), v.EndsAt.UTC()
	length := v.EndsAt.Sub(v.StartsAt)
	overlaps := func(other *slot) bool {
		return v.StartsAt.Before(other.EndsAt) && other.StartsAt.Before(v.EndsAt)
	}
	switch {
	case v.Merchant == "" || len(v.Merchant) > maxMerchantBytes || length <= 0 || length > maxSlotLength:
		return kit.Refuse(http.StatusBadRequest, "a slot has a merchant of up to 100 bytes and lasts up to 8 hours")
	case !v.EndsAt.After(s.Now()):
		return kit.Refuse(http.StatusBadRequest, "ends_at is in the past: choose a later time")
	case caller.Merchant != "" && v.Merchant != caller.Merchant:
		return kit.Refuse(http.StatusBadRequest, "merchant is not yours: your token is for %s", caller.Merchant)
	case caller.Owner != "" && v.StartsAt.Sub(s.Now()) > maxSlotLead:
		return kit.Refuse(http.StatusBadRequest, "a slot starts within 90 days")
	}
	if i := slices.IndexFunc(s.slots, overlaps); i >= 0 && caller.mayUse(s.slots[i].Owner) {
		return kit.Refuse(http.StatusConflict, "taken by slot %s", s.slots[i].ID)
	} else if i >= 0 {
		return kit.Refuse(http.StatusConflict, "taken by another merchant: choose another time")
	}
	if caller.Owner != "" && s.openSlotsOf(caller.Owner) >= maxOwnedSlots {
		return kit.Refuse(http.StatusConflict, "you have 10 slots that have not ended: free one")
	}
	if len(s.slots) >= maxSlots {
		s.removeEndedSlots()
	}
	if len(s.slots) >= maxSlots {
		return kit.Refuse(http.StatusConflict, "too many slots: free some")
	}
	v.ID = s.NewUUID()
	s.slots = append(s.slots, &v)
	s.journal.save(journalRecord{Slot: &v})
	return jsonResponse(http.StatusCreated, v)
}

func (s *calendar) freeSlot(c *kit.Call, _ struct{}) kit.Response {
	id, caller := c.Request.PathValue("id"), s.callerOf(c)
	isOwn := func(v *slot) bool { return v.ID == id && caller.mayUse(v.Owner) }
	if !slices.ContainsFunc(s.slots, isOwn) || !s.removeSlot(id) {
		return kit.Refuse(http.StatusNotFound, "there is no such slot")
	}
	s.journal.save(journalRecord{FreedSlotID: id})
	return kit.Response{Status: http.StatusNoContent}
}

// openSlotsOf returns how many slots of an owner have not ended.
func (s *calendar) openSlotsOf(owner string) (open int) {
	for _, v := range s.slots {
		if v.Owner == owner && v.EndsAt.After(s.Now()) {
			open++
		}
	}
	return open
}

func (s *calendar) removeEndedSlots() {
	now, before := s.Now(), slices.Clone(s.slots)
	ended := func(v *slot) bool { return !v.EndsAt.After(now) }
	s.slots = slices.DeleteFunc(s.slots, ended)
	for _, v := range before {
		if ended(v) {
			s.journal.save(journalRecord{FreedSlotID: v.ID})
		}
	}
}

// removeSlot reports whether there was such a slot.
func (s *calendar) removeSlot(id string) bool {
	before := len(s.slots)
	s.slots = slices.DeleteFunc(s.slots, func(v *slot) bool { return v.ID == id })
	return len(s.slots) < before
}
