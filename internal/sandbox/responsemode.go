package sandbox

import (
	"net/http"
	"slices"
	"strings"
)

// responseMode is the way in which one call is handled.
type responseMode struct {
	name string
	// applies: the call takes effect, also when its response is faulty.
	applies bool
	// appliesLater: the call takes effect, and gets its response, after slowResponseDelay.
	appliesLater bool
	// faultyResponse replaces the correct response; nil keeps it.
	faultyResponse *response
	// refusalID is the message id of a permanent refusal, or "".
	refusalID string
}

// responseModes are the modes of scripts and of outcomes on demand, in the order of the documentation.
var responseModes = []responseMode{
	{name: "ok", applies: true},
	{name: "slow", applies: true, appliesLater: true},
	{name: "cut", applies: true, faultyResponse: &response{CloseConnection: true}},
	{name: "garbage", applies: true, faultyResponse: &response{
		Status: http.StatusOK, ContentType: jsonType, Body: []byte("<html>OK{{\x00 not what you want"),
	}},
	{name: "html", applies: true, faultyResponse: htmlResponse(http.StatusOK, "", "It works!")},
	{name: "empty", applies: true, faultyResponse: new(jsonResponse(http.StatusCreated, struct{}{}))},
	{name: "lost", faultyResponse: &response{CloseConnection: true}},
	{name: "503", faultyResponse: retryableResponse(http.StatusServiceUnavailable, "5", "SVC0001", "PDK_SMSW_0013")},
	{name: "down", faultyResponse: retryableResponse(http.StatusServiceUnavailable, "5", "SVC0001", "PDK_SMSW_0013")},
	{name: "500", faultyResponse: htmlResponse(http.StatusInternalServerError, "", "Internal Server Error")},
	{name: "redirect", faultyResponse: htmlResponse(http.StatusFound, "/elsewhere", "Found")},
	{name: "400", faultyResponse: new(errorResponse("SVC0002", "scripted"))},
	{name: "401", faultyResponse: new(errorResponse("900901"))},
	{name: "409", faultyResponse: new(inFlightResponse("scripted", "scripted"))},
	{name: "429", faultyResponse: retryableResponse(http.StatusTooManyRequests, "1", "900800")},
	{name: "POL0001", applies: true, refusalID: "POL0001"},
	{name: "POL0253", applies: true, refusalID: "POL0253"},
	{name: "POL1000", applies: true, refusalID: "POL1000"},
	{name: "SVC0270", applies: true, refusalID: "SVC0270"},
}

func htmlResponse(status int, location, text string) *response {
	body := []byte("<!doctype html><html><body>" + text + "</body></html>\n")
	return &response{Status: status, Location: location, ContentType: htmlType, Body: body}
}

func retryableResponse(status int, retryAfter, id string, variables ...string) *response {
	refusal := errorResponse(id, variables...)
	refusal.Status, refusal.RetryAfter = status, retryAfter
	return &refusal
}

// responseModeNames lists the modes without suffixes.
func responseModeNames() []string {
	var names []string
	for _, m := range responseModes {
		names = append(names, m.name)
	}
	return names
}

// parseResponseMode finds a mode by its name; false for an unknown one. A faulty mode may end in "-applied" or
// "-unapplied", which overrules whether the call takes effect.
func parseResponseMode(text string) (responseMode, bool) {
	name, applied := strings.CutSuffix(text, "-applied")
	name, unapplied := strings.CutSuffix(name, "-unapplied")
	i := slices.IndexFunc(responseModes, func(m responseMode) bool { return m.name == name })
	if i < 0 || (applied || unapplied) && responseModes[i].faultyResponse == nil {
		return responseMode{}, false
	}
	m := responseModes[i]
	m.applies = m.applies && !unapplied || applied
	return m, true
}
