package sandbox

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// behaviour is one cell of the table of outcomes on demand.
type behaviour struct {
	// FirstResponse names the response mode of the first call under a key; "" is the correct response.
	FirstResponse string
	// RefusalID is the message id of a refusal of a charge or an SMS, or "".
	RefusalID string
	// FinalStatus is the status that a payment gets. A payment with pending stays pending.
	FinalStatus       string
	StatusDescription string
	// CallbackStatuses are the statuses of the callbacks, in the order in which they are sent.
	CallbackStatuses []string
	// CallbacksFirst sends the callbacks before the response.
	CallbacksFirst bool
	// NeverSent is an SMS that is accepted and never sent.
	NeverSent bool
}

// The statusDescriptions of payments that fail. The page has texts for them.
const (
	descriptionRefused    = "Payment operation refused by user"
	descriptionLowBalance = "User has insufficient credit for transaction"
)

// outcomes are the outcomes on demand by the payer's last four digits and the kind (decision "sandbox"). They contain
// only the differences from an ordinary number: see behaviourFor.
var outcomes = map[string]map[string]behaviour{
	"1001": {
		kindPayment: {FinalStatus: failed, StatusDescription: descriptionRefused},
		kindCharge:  {RefusalID: "POL0253"},
		kindSMS:     {CallbackStatuses: []string{deliveryImpossible}, NeverSent: true},
	},
	"1002": {
		kindPayment: {FinalStatus: failed, StatusDescription: descriptionLowBalance},
		kindCharge:  {RefusalID: "POL1000"},
		kindSMS:     {RefusalID: "POL0001"},
	},
	"1003": {
		kindPayment: {FinalStatus: pending, CallbackStatuses: []string{}},
		kindSMS:     {CallbackStatuses: []string{}},
	},
	"1004": firstResponse("slow"),
	"1005": firstResponse("cut"),
	"1006": {
		kindPayment: {CallbackStatuses: []string{successful, successful, successful}},
		kindSMS: {CallbackStatuses: []string{
			deliveredToNetwork, deliveredToNetwork, deliveredToNetwork,
			deliveredToTerminal, deliveredToTerminal, deliveredToTerminal,
		}},
	},
	"1007": {
		kindPayment: {CallbackStatuses: []string{successful, failed}},
		kindSMS:     {CallbackStatuses: []string{deliveredToTerminal, deliveredToNetwork}},
	},
	"1008": {
		kindPayment: {CallbacksFirst: true},
		kindSMS:     {CallbacksFirst: true},
	},
	"1009": firstResponse("down"),
	"1010": firstResponse("garbage"),
	"1011": {
		kindPayment: {CallbackStatuses: []string{}},
	},
}

func firstResponse(mode string) map[string]behaviour {
	b := behaviour{FirstResponse: mode}
	return map[string]behaviour{kindPayment: b, kindCharge: b, kindSMS: b}
}

// behaviourFor returns the outcome of a payer with these last four digits.
func behaviourFor(kind, digits string) behaviour {
	b := outcomes[digits][kind]
	var ordinaryStatuses []string
	switch kind {
	case kindPayment:
		b.FinalStatus = cmp.Or(b.FinalStatus, successful)
		ordinaryStatuses = []string{b.FinalStatus}
	case kindSMS:
		ordinaryStatuses = []string{deliveredToNetwork, deliveredToTerminal}
	}
	if b.CallbackStatuses == nil {
		b.CallbackStatuses = ordinaryStatuses
	}
	if b.FinalStatus == successful {
		b.StatusDescription = "Payment was successful"
	}
	return b
}

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
