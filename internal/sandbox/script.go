package sandbox

import (
	"fmt"
	"net/http"
	"slices"
)

// script lists the response modes of the next calls under a key, one for each call.
type script struct {
	Key   string   `json:"key"`
	Kind  string   `json:"kind,omitempty"` // charge, payment, sms or getstatus; "": charge, payment and sms
	Calls []string `json:"calls"`
}

// maxScripts limits the scripts that wait, and the calls of one.
const maxScripts = 1000

// addScript adds a script. Its calls are names of parseResponseMode.
func (s *Sandbox) addScript(_ *http.Request, v script) response {
	kinds := []string{"", kindCharge, kindPayment, kindSMS, kindLookup}
	if v.Key == "" || len(v.Calls) == 0 || len(v.Calls) > maxScripts || !slices.Contains(kinds, v.Kind) {
		return controlError(http.StatusBadRequest,
			"a script has a key, a kind (charge, payment, sms, getstatus or none) and 1 to 1000 calls")
	}
	for _, name := range v.Calls {
		if _, ok := parseResponseMode(name); !ok {
			return controlError(http.StatusBadRequest, fmt.Sprintf("%q is not a call: use one of %v, "+
				"with -applied or -unapplied after a faulty one", name, responseModeNames()))
		}
	}
	if len(s.scripts) >= maxScripts {
		return controlError(http.StatusConflict, "too many scripts: delete some")
	}
	s.scripts = append(s.scripts, &v)
	return jsonResponse(http.StatusCreated, v)
}

func (s *Sandbox) listScripts(*http.Request, struct{}) response {
	return jsonResponse(http.StatusOK, append([]*script{}, s.scripts...))
}

// deleteScripts deletes the scripts of ?key=, or all of them.
func (s *Sandbox) deleteScripts(r *http.Request, _ struct{}) response {
	key := r.URL.Query().Get("key")
	s.scripts = slices.DeleteFunc(s.scripts, func(v *script) bool { return key == "" || v.Key == key })
	return response{Status: http.StatusNoContent}
}

// nextScriptedMode takes the next mode for a call from the oldest script that fits, with the lock held.
func (s *Sandbox) nextScriptedMode(kind, key string) (responseMode, bool) {
	for i, v := range s.scripts {
		if v.Kind != kind && (v.Kind != "" || kind == kindLookup) || !matchesKey(kind, key, v.Key) {
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
