package sandbox

import (
	"fmt"
	"net/http"
	"slices"
)

// FaultSettings is the seeded unkindness of the operator. All rates are 0 by default, and again after a restart. The same
// seed and the same calls one after another give the same unkindness, whatever the time between them; calls side by side
// do not, for nobody decides which comes first. Scripted calls and calls whose outcome the digits decide are left alone by
// Delay, Unavailable and LostResponse.
type FaultSettings struct {
	// Seed decides what is drawn. Setting it, to the same value too, begins to count keys anew.
	Seed uint64 `json:"seed"`
	// Delay is the share of calls (0 to 1) that are applied at once and answered up to MaxDelayMS milliseconds later.
	Delay      float64 `json:"delay"`
	MaxDelayMS int     `json:"max_delay_ms"`
	// Duplicate is the share of callbacks that are sent twice.
	Duplicate float64 `json:"duplicate"`
	// Reorder is the share of transactions whose callbacks come before the operator's own answer, receipts last first.
	Reorder float64 `json:"reorder"`
	// LostResponse is the share of calls that are applied and whose connection is then cut.
	LostResponse float64 `json:"lost_answer"`
	// Unavailable is the share of calls that are answered 503 and not applied.
	Unavailable float64 `json:"unavailable"`
}

// defaultMaxDelayMS is MaxDelayMS where none is given, maxDelayLimitMS the most: under the gateway's timeouts nothing is lost.
const (
	defaultMaxDelayMS = 2000
	maxDelayLimitMS   = 60_000
)

func (v FaultSettings) validate() error {
	for _, rate := range []float64{v.Delay, v.Duplicate, v.Reorder, v.LostResponse, v.Unavailable} {
		if !(rate >= 0 && rate <= 1) {
			return fmt.Errorf("a rate is between 0 and 1")
		}
	}
	if v.MaxDelayMS < 0 || v.MaxDelayMS > maxDelayLimitMS {
		return fmt.Errorf("max_delay_ms is between 0 and %d", maxDelayLimitMS)
	}
	return nil
}

func (s *Sandbox) getFaultSettings(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	writeJSON(w, http.StatusOK, s.faultPlan.FaultSettings)
}

// putFaultSettings replaces the whole steering.
func (s *Sandbox) putFaultSettings(w http.ResponseWriter, r *http.Request) {
	var v FaultSettings
	if !readControlBody(w, r, &v) {
		return
	}
	err := v.validate()
	if err != nil {
		writeControlError(w, http.StatusBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faultPlan = newFaultPlan(v)
	writeJSON(w, http.StatusOK, s.faultPlan.FaultSettings)
}

// script says how the next calls under a key are answered, one word a call.
type script struct {
	Key   string   `json:"key"`
	Kind  string   `json:"kind,omitempty"` // charge, payment, sms or getstatus; "": charge, payment and sms
	Calls []string `json:"calls"`
}

// maxScripts bounds the scripts that wait, and the words of one.
const maxScripts = 1000

// postScript adds a script. Words are those of responseModeNames, with "-applied" or "-unapplied" where they fit.
func (s *Sandbox) postScript(w http.ResponseWriter, r *http.Request) {
	var v script
	if !readControlBody(w, r, &v) {
		return
	}
	kinds := []string{"", kindCharge, kindPayment, kindSMS, kindLookup}
	if v.Key == "" || len(v.Calls) == 0 || len(v.Calls) > maxScripts || !slices.Contains(kinds, v.Kind) {
		writeControlError(w, http.StatusBadRequest, "a script has a key, a kind (charge, payment, sms, getstatus or none) and calls")
		return
	}
	for _, modeName := range v.Calls {
		if _, ok := parseResponseMode(modeName); !ok {
			writeControlError(w, http.StatusBadRequest, fmt.Sprintf("calls are of %v, a spoilt one may end in -applied or -unapplied", responseModeNames()))
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.scripts) >= maxScripts {
		writeControlError(w, http.StatusConflict, "too many scripts")
		return
	}
	s.scripts = append(s.scripts, &v)
	writeJSON(w, http.StatusCreated, v)
}

// getScripts lists what is left of the scripts.
func (s *Sandbox) getScripts(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	writeJSON(w, http.StatusOK, append([]*script{}, s.scripts...))
}

// deleteScripts forgets the scripts of ?key=, or all of them.
func (s *Sandbox) deleteScripts(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.URL.Query().Get("key")
	s.scripts = slices.DeleteFunc(s.scripts, func(v *script) bool { return key == "" || v.Key == key })
	w.WriteHeader(http.StatusNoContent)
}

// nextScriptedMode takes the next word for a call, with the lock held. The oldest script that fits comes first.
func (s *Sandbox) nextScriptedMode(kind, key string) (responseMode, bool) {
	for i, v := range s.scripts {
		if v.Kind != kind && (v.Kind != "" || kind == kindLookup) || !matchesScriptKey(kind, key, v.Key) {
			continue
		}
		m, _ := parseResponseMode(v.Calls[0])
		v.Calls = v.Calls[1:]
		if len(v.Calls) == 0 {
			s.scripts = slices.Delete(s.scripts, i, i+1)
		}
		return m, true
	}
	return responseMode{}, false
}
