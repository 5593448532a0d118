package kit

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// callRecord is one call or callback, without secrets.
type callRecord struct {
	Operation string    `json:"operation"`
	Key       string    `json:"key"`
	OrderID   string    `json:"order_id,omitempty"`
	Status    int       `json:"status"`
	At        time.Time `json:"at"`

	keys Keys
}

func (p *Platform) record(operation string, k Keys, status int) {
	p.mu.Lock()
	p.calls = append(p.calls, callRecord{operation, k.Key, k.OrderID, status, p.Now(), k})
	p.mu.Unlock()
	p.config.Logf("%s: %s %s: %d", p.spec.Operator, operation, k.Key, status)
}

// addControl adds the control paths, which doc.go lists.
func (p *Platform) addControl(mux *http.ServeMux) {
	control := func(pattern string, f func(r *http.Request) Response) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			p.mu.Lock()
			response := f(r)
			p.mu.Unlock()
			writeResponse(w, response)
		})
	}
	control("GET /stub/v1/effects", func(r *http.Request) Response {
		key := r.URL.Query().Get("key")
		return listOf(p.effects, func(e Effect) bool { return e.keys.match(key) })
	})
	control("GET /stub/v1/calls", func(r *http.Request) Response {
		key := r.URL.Query().Get("key")
		return listOf(p.calls, func(c callRecord) bool { return c.keys.match(key) })
	})
	control("POST /stub/v1/script", p.addScript)
	control("GET /stub/v1/script", func(*http.Request) Response {
		return listOf(p.scripts, func(s *script) bool { return len(s.Calls) > 0 })
	})
	control("DELETE /stub/v1/script", func(r *http.Request) Response {
		key := r.URL.Query().Get("key")
		p.scripts = slices.DeleteFunc(p.scripts, func(s *script) bool { return key == "" || s.Key == key })
		return Response{Status: http.StatusNoContent}
	})
	control("GET /stub/v1/quirks", func(*http.Request) Response { return p.listQuirks() })
	control("PUT /stub/v1/quirks", p.replaceQuirks)
	control("POST /stub/v1/revoke-tokens", func(*http.Request) Response {
		return JSON(http.StatusOK, map[string]int{"revoked": p.revokeTokens()})
	})
}

func listOf[T any](all []T, fits func(T) bool) Response {
	found := []T{}
	for _, v := range all {
		if fits(v) {
			found = append(found, v)
		}
	}
	return JSON(http.StatusOK, found)
}

func (p *Platform) addScript(r *http.Request) Response {
	var s script
	if err := decodeBody(r, &s); err != nil {
		return refuse("body: %v", err)
	}
	var operations []string
	for _, o := range p.spec.Operations {
		operations = append(operations, o.Name)
	}
	if s.Operation != "" && !slices.Contains(operations, s.Operation) {
		return refuse("operation %q is unknown; use one of: %s", s.Operation, strings.Join(operations, ", "))
	}
	for _, mode := range s.Calls {
		_, isFault := p.faults("")[strings.TrimSuffix(mode, "-applied")]
		if !isFault && !slices.Contains([]string{"ok", "slow", "twice"}, mode) {
			return refuse(`mode %q is unknown; use one of: ok, slow, twice, %s, or a fault with the suffix "-applied"`,
				mode, strings.Join(slices.Sorted(maps.Keys(p.faults(""))), ", "))
		}
	}
	p.scripts = append(p.scripts, &s)
	return JSON(http.StatusOK, s)
}

func (p *Platform) listQuirks() Response {
	all := map[string]bool{}
	for _, name := range p.spec.Quirks {
		all[name] = p.quirks[name]
	}
	return JSON(http.StatusOK, all)
}

func (p *Platform) replaceQuirks(r *http.Request) Response {
	wanted := map[string]bool{}
	if err := decodeBody(r, &wanted); err != nil {
		return refuse("body: %v", err)
	}
	for name := range wanted {
		if !slices.Contains(p.spec.Quirks, name) {
			return refuse("quirk %q is unknown; use: %s", name, strings.Join(p.spec.Quirks, ", "))
		}
	}
	p.quirks = wanted
	return p.listQuirks()
}

func refuse(format string, args ...any) Response {
	return JSON(http.StatusBadRequest, map[string]string{"error": fmt.Sprintf(format, args...)})
}

func decodeBody(r *http.Request, v any) error {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes))
	if err != nil {
		return err
	}
	return decodeObject(raw, v)
}
