package operatorstub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// script is the modes of the next calls under a key. An empty key or operation matches all.
type script struct {
	Key       string   `json:"key"`
	Operation string   `json:"operation"`
	Calls     []string `json:"calls"`
}

func (p *Platform) nextScripted(operation string, k Keys) (string, bool) {
	for _, s := range p.scripts {
		fits := (s.Operation == "" || s.Operation == operation) && (s.Key == "" || matches(s.Key, k.Key, k.OrderID))
		if fits && len(s.Calls) > 0 {
			mode := s.Calls[0]
			s.Calls = s.Calls[1:]
			return mode, true
		}
	}
	return "", false
}

// matches reports whether wanted is one of the keys. Empty wants all.
func matches(wanted, key, orderID string) bool {
	return wanted == "" || wanted == key || wanted == orderID
}

// addControl adds the control paths, which doc.go lists.
func (p *Platform) addControl(mux *http.ServeMux, operations []Operation) {
	control := func(pattern string, f func(r *http.Request) Response) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			p.mu.Lock()
			response := f(r)
			p.mu.Unlock()
			w.Header().Set("Content-Type", response.Type)
			w.WriteHeader(response.Status)
			_, _ = w.Write(response.Body)
		})
	}
	control("GET /stub/v1/effects", func(r *http.Request) Response {
		key := r.URL.Query().Get("key")
		return listOf(p.effects, func(e Effect) bool { return matches(key, e.Key, e.orderID) })
	})
	control("GET /stub/v1/calls", func(r *http.Request) Response {
		key := r.URL.Query().Get("key")
		return listOf(p.calls, func(c callRecord) bool { return matches(key, c.Key, c.OrderID) })
	})
	control("POST /stub/v1/script", func(r *http.Request) Response { return p.addScript(r, operations) })
	control("GET /stub/v1/quirks", func(*http.Request) Response { return p.listQuirks() })
	control("PUT /stub/v1/quirks", p.replaceQuirks)
	control("POST /stub/v1/revoke-tokens", func(*http.Request) Response {
		revoked := len(p.tokens)
		clear(p.tokens)
		return JSON(http.StatusOK, map[string]int{"revoked": revoked})
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

func (p *Platform) addScript(r *http.Request, operations []Operation) Response {
	var s script
	if err := decodeStrictly(r.Body, &s); err != nil {
		return refuse("body: %v", err)
	}
	var names []string
	for _, o := range operations {
		names = append(names, o.Name)
	}
	if s.Operation != "" && !slices.Contains(names, s.Operation) {
		return refuse("operation %q is unknown; use one of: %s", s.Operation, strings.Join(names, ", "))
	}
	for _, mode := range s.Calls {
		if !p.validMode(mode) {
			return refuse(`mode %q is unknown; use one of: ok, slow, %s, or a fault with the suffix "-applied"`,
				mode, strings.Join(slices.Sorted(maps.Keys(p.faults)), ", "))
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
	if err := decodeStrictly(r.Body, &wanted); err != nil {
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

// decodeStrictly reads exactly one JSON object with known fields.
func decodeStrictly(body io.Reader, v any) error {
	raw, err := io.ReadAll(io.LimitReader(body, maxBodyBytes))
	if err != nil {
		return err
	}
	if raw = bytes.TrimSpace(raw); !bytes.HasPrefix(raw, []byte("{")) {
		return errors.New("a JSON object is required")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text follows the JSON object")
	}
	return nil
}
