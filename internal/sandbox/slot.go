package sandbox

import (
	"net/http"
	"slices"
	"time"
)

// slot is a booked time for an end-to-end test (specification, What the service does). Slots are a calendar: they do not
// overlap, and nothing else depends on them.
type slot struct {
	ID       string    `json:"id"`
	Merchant string    `json:"merchant"`
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
}

const (
	defaultSlotLength = time.Hour // where ends_at is absent
	maxSlotLength     = 8 * time.Hour
	maxSlots          = 10_000
	maxMerchantBytes  = 100 // bytes of a slot's merchant
)

func (s *Sandbox) getSlots(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	writeJSON(w, http.StatusOK, append([]*slot{}, s.slots...))
}

// postSlot books {"merchant","starts_at","ends_at"}: starts_at is now where absent, ends_at an hour later. 409 names the
// slot that is in the way.
func (s *Sandbox) postSlot(w http.ResponseWriter, r *http.Request) {
	var v slot
	if !readControlBody(w, r, &v) {
		return
	}
	if v.StartsAt.IsZero() {
		v.StartsAt = s.now()
	}
	if v.EndsAt.IsZero() {
		v.EndsAt = v.StartsAt.Add(defaultSlotLength)
	}
	v.StartsAt, v.EndsAt = v.StartsAt.UTC(), v.EndsAt.UTC()
	length := v.EndsAt.Sub(v.StartsAt)
	if v.Merchant == "" || len(v.Merchant) > maxMerchantBytes || length <= 0 || length > maxSlotLength {
		writeControlError(w, http.StatusBadRequest, "a slot has a merchant of up to 100 bytes and lasts up to 8 hours")
		return
	}
	if !v.EndsAt.After(s.now()) {
		writeControlError(w, http.StatusBadRequest, "the slot would be over: ends_at is in the future")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if conflict := s.bookingConflict(&v); conflict != "" {
		writeControlError(w, http.StatusConflict, conflict)
		return
	}
	v.ID = s.newUUID()
	s.slots = append(s.slots, &v)
	s.appendToJournal(journalRecord{Slot: &v})
	writeJSON(w, http.StatusCreated, v)
}

func (s *Sandbox) deleteSlot(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.removeSlot(r.PathValue("id")) {
		writeControlError(w, http.StatusNotFound, "no such slot")
		return
	}
	s.appendToJournal(journalRecord{FreedSlotID: r.PathValue("id")})
	w.WriteHeader(http.StatusNoContent)
}

// bookingConflict is why there is no room for a slot, "" where there is, with the lock held.
func (s *Sandbox) bookingConflict(v *slot) string {
	for _, other := range s.slots {
		if v.StartsAt.Before(other.EndsAt) && other.StartsAt.Before(v.EndsAt) {
			return "taken by slot " + other.ID
		}
	}
	if len(s.slots) >= maxSlots {
		s.removeEndedSlots()
	}
	if len(s.slots) >= maxSlots {
		return "too many slots: free some"
	}
	return ""
}

// removeEndedSlots forgets the slots that are over.
func (s *Sandbox) removeEndedSlots() {
	now := s.now()
	var gone []string
	s.slots = slices.DeleteFunc(s.slots, func(v *slot) bool {
		over := !v.EndsAt.After(now)
		if over {
			gone = append(gone, v.ID)
		}
		return over
	})
	for _, id := range gone {
		s.appendToJournal(journalRecord{FreedSlotID: id})
	}
}

func (s *Sandbox) removeSlot(id string) bool {
	before := len(s.slots)
	s.slots = slices.DeleteFunc(s.slots, func(v *slot) bool { return v.ID == id })
	return len(s.slots) < before
}
