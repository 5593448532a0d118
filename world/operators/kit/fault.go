package kit

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Error is an error of an operator. Its name is a fault of scripts, and so is its status from 400: the first Error of a
// status is meant.
type Error struct {
	Name    string
	Status  int
	Message string
}

// NewError makes one row of a table of errors.
func NewError(name string, status int, message string) Error { return Error{name, status, message} }

// Errors makes errors of one status, whose messages are their names in small letters.
func Errors(status int, names ...string) []Error {
	var all []Error
	for _, name := range names {
		message := strings.NewReplacer("_", " ", "-", " ").Replace(strings.ToLower(name))
		all = append(all, Error{name, status, message})
	}
	return all
}

// steering selects what happens to a call: by the Spec, the settings, the scripts and the switches.
type steering struct {
	*source `unhashed:"the time and the settings are not state"`
	spec    Spec `unhashed:"never changes"`
	scripts []*Script
	quirks  map[string]bool
}

// Quirk reports whether a switch is on. It panics for a name that the Spec lacks.
func (p *steering) Quirk(name string) bool {
	if !slices.Contains(p.spec.Quirks, name) {
		panic("kit: no quirk " + name)
	}
	return p.quirks[name]
}

// match reports whether a wanted key is one of those of a kind's transaction.
func (p *steering) match(kind string, k Keys, wanted string) bool {
	if p.spec.Extension != nil && wanted != "" {
		return p.spec.Extension.Match(kind, k.Key, wanted)
	}
	return k.match(wanted)
}

// Error makes the response of the Spec's error with this name. It panics for a name that the Spec lacks.
func (p *steering) Error(name, detail string) Response {
	i := slices.IndexFunc(p.spec.Errors, func(e Error) bool { return e.Name == name })
	return p.spec.ErrorForm(p.spec.Errors[i], detail)
}

// commonFaults are the faults that all stubs know.
var commonFaults = map[string]Response{
	"cut":     {Close: true},
	"garbage": {Status: http.StatusOK, Type: jsonType, Body: []byte("<html>OK{{\x00 no JSON")},
	"html":    HTML(http.StatusOK, "Request Rejected"),
	"empty":   {Status: http.StatusOK},
	"500":     HTML(http.StatusInternalServerError, "Internal Server Error"),
	"503":     HTML(http.StatusServiceUnavailable, "Service Unavailable"),
	"429":     HTML(http.StatusTooManyRequests, "Too Many Requests"),
}

// faults returns all faults of a call with this key by name: the Spec's replace its errors, which replace the common
// ones.
func (p *steering) faults(key string) map[string]Response {
	detail := ""
	if p.spec.NamesKey {
		detail = key
	}
	faults := maps.Clone(commonFaults)
	for _, e := range slices.Backward(p.spec.Errors) {
		response := p.spec.ErrorForm(e, detail)
		faults[e.Name] = response
		if e.Status >= http.StatusBadRequest {
			faults[strconv.Itoa(e.Status)] = response
		}
	}
	maps.Copy(faults, p.spec.Faults)
	return faults
}

// Fault returns the fault of a mode, whether it is one, and whether the call takes effect before it.
func (p *steering) Fault(mode, key string) (fault Response, isFault, isApplied bool) {
	if mode == "" || mode == "ok" {
		return Response{}, false, false
	}
	name, isApplied := strings.CutSuffix(mode, "-applied")
	fault, isFault = p.faults(key)[strings.TrimSuffix(name, "-unapplied")]
	return fault, isFault, isApplied || slices.Contains(p.spec.Applied, mode)
}

// isMode reports whether a mode is none of the faults, and each operation of a script understands it.
func (p *steering) isMode(mode string) bool {
	return slices.Contains([]string{"ok", "slow", "twice"}, mode) || slices.Contains(p.spec.Refusals, mode)
}

// Script is the modes of the next calls under a key. An empty key or operation matches all.
type Script struct {
	Key       string   `json:"key"`
	Operation string   `json:"operation"`
	Calls     []string `json:"calls"`
}

// AddScript adds a script, or returns an error that names what works.
func (p *steering) AddScript(s Script) error {
	var operations []string
	for _, o := range p.spec.Operations {
		if !o.Plain {
			operations = append(operations, o.Name)
		}
	}
	if s.Operation != "" && !slices.Contains(operations, s.Operation) {
		return fmt.Errorf("operation %q is unknown; use one of: %s", s.Operation, strings.Join(operations, ", "))
	}
	faults := p.faults("")
	for _, mode := range s.Calls {
		_, isFault := faults[strings.TrimSuffix(strings.TrimSuffix(mode, "-applied"), "-unapplied")]
		if !isFault && !p.isMode(mode) {
			known := slices.AppendSeq(slices.Clone(p.spec.Refusals), maps.Keys(faults))
			slices.Sort(known)
			return fmt.Errorf(`mode %q is unknown; use one of: ok, slow, twice, %s, or a fault with the suffix `+
				`"-applied"`, mode, strings.Join(known, ", "))
		}
	}
	p.scripts = append(p.scripts, &s)
	return nil
}

// Scripts returns the scripts that have calls left.
func (p *steering) Scripts() []*Script {
	p.scripts = slices.DeleteFunc(p.scripts, func(s *Script) bool { return len(s.Calls) == 0 })
	return append([]*Script{}, p.scripts...)
}

// DeleteScripts deletes the scripts of a key, and all for "".
func (p *steering) DeleteScripts(key string) {
	p.scripts = slices.DeleteFunc(p.scripts, func(s *Script) bool { return key == "" || s.Key == key })
}

// nextScripted takes the next mode for a call from the oldest script that fits.
func (p *steering) nextScripted(o Operation, k Keys) (string, bool) {
	for _, s := range p.scripts {
		isFor := cmp.Or(s.Operation, o.Name) == o.Name && (s.Operation != "" || !o.OnlyNamed)
		if isFor && len(s.Calls) > 0 && p.match(o.Name, k, s.Key) {
			mode := s.Calls[0]
			s.Calls = s.Calls[1:]
			return mode, true
		}
	}
	return "", false
}
