package sandbox

import (
	"net/http"
	"slices"
	"time"
)

// slot is a booked time for an end-to-end test (specification, What the service does). Slots are only a calendar: they
// do not overlap, and nothing else depends on them.
type slot struct {
	ID       string    `json:"id"`
	Merchant string    `json:"merchant"`
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
}

const (
	defaultSlotLength = time.Hour // without ends_at
	maxSlotLength     = 8 * time.Hour
	maxSlots          = 10_000
	maxMerchantBytes  = 100
)

func (s *Sandbox) listSlots(*http.Request, struct{}) response {
	return jsonResponse(http.StatusOK, append([]*slot{}, s.slots...))
}

// bookSlot books {"merchant","starts_at","ends_at"}: by default from now, for an hour. A 409 names the conflicting
// slot.
func (s *Sandbox) bookSlot(_ *http.Request, v slot) response {
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
	}
	if i := slices.IndexFunc(s.slots, overlaps); i >= 0 {
		return controlError(http.StatusConflict, "taken by slot "+s.slots[i].ID)
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
	id := r.PathValue("id")
	if !s.removeSlot(id) {
		return controlError(http.StatusNotFound, "there is no such slot")
	}
	s.save(journalRecord{FreedSlotID: id})
	return response{Status: http.StatusNoContent}
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
