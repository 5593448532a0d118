package sandbox

import (
	"net/http"
	"strings"
)

// responseMode is how one call is answered.
type responseMode struct {
	// applies is true where the call takes effect all the same.
	applies bool
	// appliesLater applies only when the slow answer's time has passed.
	appliesLater bool
	// faultyResponse is what is answered instead of the true answer; nil gives the true one.
	faultyResponse *response
	// refusalID is the message id of a refusal that is final and kept; "" for none.
	refusalID string
}

// responseModeNames are the words of a script, in the order of the documentation.
func responseModeNames() []string {
	return []string{"ok", "slow", "cut", "garbage", "html", "empty", "lost", "503", "down", "500", "redirect", "400",
		"401", "409", "429", "POL0001", "POL0253", "POL1000", "SVC0270"}
}

// parseResponseMode reads a word. A spoilt answer may be followed by "-applied" or "-unapplied" to say what else becomes of the
// call; without it a call with a spoilt 2xx and a cut one are applied, any other is not.
func parseResponseMode(modeName string) (responseMode, bool) {
	base, applied := strings.CutSuffix(modeName, "-applied")
	base, unapplied := strings.CutSuffix(base, "-unapplied")
	m, ok := baseResponseMode(base)
	if (applied || unapplied) && m.faultyResponse == nil {
		return responseMode{}, false
	}
	m.applies = m.applies && !unapplied || applied
	return m, ok
}

func baseResponseMode(modeName string) (responseMode, bool) {
	switch modeName {
	case "ok":
		return responseMode{applies: true}, true
	case "slow":
		return responseMode{applies: true, appliesLater: true}, true
	case "cut":
		return responseMode{applies: true, faultyResponse: &response{CloseConnection: true}}, true
	case "lost":
		return responseMode{faultyResponse: &response{CloseConnection: true}}, true
	case "POL0001", "POL0253", "POL1000", "SVC0270":
		return responseMode{applies: true, refusalID: modeName}, true
	}
	faulty, applies := faultyResponse(modeName)
	return responseMode{applies: applies, faultyResponse: faulty}, faulty != nil
}

// faultyResponse is what a word answers instead of the truth, and whether the call is applied nevertheless.
func faultyResponse(modeName string) (*response, bool) {
	page := func(status int, text string) *response {
		return &response{Status: status, ContentType: "text/html; charset=utf-8", Body: []byte("<!doctype html><html><body>" + text + "</body></html>\n")}
	}
	fault := func(status int, id string, variables ...string) *response {
		a := errorResponse(status, id, variables)
		return &a
	}
	switch modeName {
	case "garbage":
		return &response{Status: http.StatusOK, ContentType: jsonType, Body: []byte("<html>OK{{\x00 not what you want")}, true
	case "html":
		return page(http.StatusOK, "It works!"), true
	case "empty":
		return &response{Status: http.StatusCreated, ContentType: jsonType, Body: []byte("{}")}, true
	case "503", "down":
		a := fault(http.StatusServiceUnavailable, "SVC0001", "PDK_SMSW_0013")
		a.RetryAfter = "5"
		return a, false
	case "500":
		return page(http.StatusInternalServerError, "Internal Server Error"), false
	case "redirect":
		a := page(http.StatusFound, "Found")
		a.Location = "/elsewhere"
		return a, false
	case "400":
		return fault(http.StatusBadRequest, "SVC0002", "scripted"), false
	case "401":
		return fault(http.StatusUnauthorized, "900901"), false
	case "409":
		a := inFlightResponse("scripted", "scripted")
		return &a, false
	case "429":
		a := fault(http.StatusTooManyRequests, "900800")
		a.RetryAfter = "1"
		return a, false
	}
	return nil, false
}
