package sandbox

import (
	"cmp"
	"net/http"
	"slices"
	"time"
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

const (
	defaultSlotLength = time.Hour // without ends_at
	maxSlotLength     = 8 * time.Hour
	maxSlots          = 10_000
	maxSlotLead       = 90 * 24 * time.Hour // from now to the start, with a tests token
	maxMerchantBytes  = 100
)

// listSlots lists all slots. Of another merchant's slot it shows only the time.
func (s *Sandbox) listSlots(r *http.Request, _ struct{}) response {
	caller, list := s.callerOf(r), []slot{}
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
func (s *Sandbox) bookSlot(r *http.Request, v slot) response {
	caller := s.callerOf(r)
	v.Owner, v.Merchant = caller.Owner, cmp.Or(v.Merchant, caller.Merchant)
	if v.StartsAt.IsZero() {
		v.StartsAt = s.now()
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
		return controlError(http.StatusBadRequest, "a slot has a merchant of up to 100 bytes and lasts up to 8 hours")
	case !v.EndsAt.After(s.now()):
		return controlError(http.StatusBadRequest, "ends_at is in the past: choose a later time")
	case caller.Merchant != "" && v.Merchant != caller.Merchant:
		return controlError(http.StatusBadRequest, "merchant is not yours: your token is for "+caller.Merchant)
	case caller.Owner != "" && v.StartsAt.Sub(s.now()) > maxSlotLead:
		return controlError(http.StatusBadRequest, "a slot starts within 90 days")
	}
	if i := slices.IndexFunc(s.slots, overlaps); i >= 0 && caller.mayUse(s.slots[i].Owner) {
		return controlError(http.StatusConflict, "taken by slot "+s.slots[i].ID)
	} else if i >= 0 {
		return controlError(http.StatusConflict, "taken by another merchant: choose another time")
	}
	if caller.Owner != "" && s.openSlotsOf(caller.Owner) >= maxOwnedSlots {
		return controlError(http.StatusConflict, "you have 10 slots that have not ended: free one")
	}
	if len(s.slots) >= maxSlots {
		s.removeEndedSlots()
	}
	if len(s.slots) >= maxSlots {
		return controlError(http.StatusConflict, "too many slots: free some")
	}
	v.ID = s.newUUID()
	s.slots = append(s.slots, &v)
	s.save(journalRecord{Slot: &v})
	return jsonResponse(http.StatusCreated, v)
}

func (s *Sandbox) freeSlot(r *http.Request, _ struct{}) response {
	id, caller := r.PathValue("id"), s.callerOf(r)
	isOwn := func(v *slot) bool { return v.ID == id && caller.mayUse(v.Owner) }
	if !slices.ContainsFunc(s.slots, isOwn) || !s.removeSlot(id) {
		return controlError(http.StatusNotFound, "there is no such slot")
	}
	s.save(journalRecord{FreedSlotID: id})
	return response{Status: http.StatusNoContent}
}

// openSlotsOf returns how many slots of an owner have not ended.
func (s *Sandbox) openSlotsOf(owner string) (open int) {
	for _, v := range s.slots {
		if v.Owner == owner && v.EndsAt.After(s.now()) {
			open++
		}
	}
	return open
}

func (s *Sandbox) removeEndedSlots() {
	now, before := s.now(), slices.Clone(s.slots)
	ended := func(v *slot) bool { return !v.EndsAt.After(now) }
	s.slots = slices.DeleteFunc(s.slots, ended)
	for _, v := range before {
		if ended(v) {
			s.save(journalRecord{FreedSlotID: v.ID})
		}
	}
}

// removeSlot reports whether there was such a slot.
func (s *Sandbox) removeSlot(id string) bool {
	before := len(s.slots)
	s.slots = slices.DeleteFunc(s.slots, func(v *slot) bool { return v.ID == id })
	return len(s.slots) < before
}
