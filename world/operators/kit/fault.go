package kit

import (
	"cmp"
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

// Error makes the response of the Spec's error with this name. It panics for a name that the Spec lacks.
func (p *Platform) Error(name, detail string) Response {
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
func (p *Platform) faults(key string) map[string]Response {
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

// script is the modes of the next calls under a key. An empty key or operation matches all.
type script struct {
	Key       string   `json:"key"`
	Operation string   `json:"operation"`
	Calls     []string `json:"calls"`
}

func (p *Platform) nextScripted(operation string, k Keys) (string, bool) {
	for _, s := range p.scripts {
		isFor := cmp.Or(s.Operation, operation) == operation && k.match(s.Key)
		if isFor && len(s.Calls) > 0 {
			mode := s.Calls[0]
			s.Calls = s.Calls[1:]
			return mode, true
		}
	}
	return "", false
}
