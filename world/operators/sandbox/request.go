package sandbox

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"mobilegateway/world/operators/kit"
)

var (
	amountPattern   = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,12})?$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
)

// request is a charge, a payment or an SMS.
type request struct {
	kind        string
	key         string
	messagePart string // the part of the request with the key, for SVC0005
	payer       string // its last four digits select the outcome
	fingerprint string // of the body without otp_code and notif_url, and of the headers that route
	callbackURL string
	otpCode     string // goes into the response and is never kept
	// check checks the request.
	check func(c *requestChecker)
	// fillTransaction copies the request into a new transaction, with the response that it gets when it is applied.
	fillTransaction func(t transaction)
}

// call makes the operation of a kind of request.
func (s *Sandbox) call(pattern, kind string, parse func(c *kit.Call, in *request) (err error)) kit.Operation {
	return kit.Operation{
		Pattern: pattern, Name: kind, First: true, Serve: s.serve,
		Identify: func(c *kit.Call) {
			in := &request{kind: kind}
			if parse(c, in) != nil {
				in.check = func(c *requestChecker) { c.check("body", false) }
			}
			c.Parsed, c.Keys = in, kit.Keys{Key: in.key, MSISDN: in.payer}
		},
		Check: func(c *kit.Call) kit.Response {
			in, _ := c.Parsed.(*request)
			checker := requestChecker{Call: c}
			media, _, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
			isJSON := err == nil && media == "application/json"
			checker.checkWith(http.StatusUnsupportedMediaType, "content-type", isJSON)
			checker.checkWith(http.StatusRequestEntityTooLarge, "body", len(c.Body) <= kit.MaxBodyBytes)
			if in.check(&checker); checker.firstFault.Status != 0 {
				return checker.firstFault
			}
			t, _ := s.find(kind, in.key)
			if t.isReceived() {
				return inFlightResponse(in.key, in.messagePart)
			}
			return kit.Response{}
		},
	}
}

// requestChecker keeps the response to the first fault of a request.
type requestChecker struct {
	*kit.Call
	firstFault kit.Response
}

func (c *requestChecker) refuse(refusal kit.Response) {
	c.firstFault = kit.FirstOf(c.firstFault, refusal)
}

func (c *requestChecker) check(part string, valid bool) {
	c.checkWith(http.StatusBadRequest, part, valid)
}

func (c *requestChecker) checkWith(status int, part string, valid bool) {
	if !valid {
		c.refuse(invalidPartResponse(status, part))
	}
}

func (c *requestChecker) require(part, value string) { c.check(part, value != "") }

func (c *requestChecker) header(name string) string { return c.Request.Header.Get(name) }

func (c *requestChecker) requireHeaders(names ...string) {
	for _, name := range names {
		c.require(name, c.header(name))
	}
}

func (c *requestChecker) requireOneOf(part, value string, valid ...string) {
	if !slices.Contains(valid, value) {
		c.refuse(errorResponse("SVC0003", part, strings.Join(valid, ", ")))
	}
}

func (c *requestChecker) checkAmount(part, text string) {
	c.check(part, amountPattern.MatchString(text) && strings.Trim(text, "0.") != "")
}

func (c *requestChecker) checkCurrency(part, text string) {
	c.check(part, currencyPattern.MatchString(text))
}

func (c *requestChecker) checkURL(part, text string) {
	u, err := url.Parse(text)
	c.check(part, err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil)
}

// amountText returns the characters of an amount, which is a JSON string or number.
func amountText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(raw))
}

// fingerprint is the SHA-256 of a body in canonical form and of the headers that route. It ignores a payment's
// otp_code, and its notif_url, whose signature changes with the key.
func fingerprint(fields kit.Fields, headers ...string) string {
	body := kit.Fields{}
	for name, value := range fields {
		if name != "otp_code" && name != "notif_url" {
			body[name] = value
		}
	}
	sum := sha256.Sum256(append(marshal(headers), marshal(body)...))
	return hex.EncodeToString(sum[:])
}

// newToken returns random bytes as text that is safe in a URL.
func newToken(random []byte) string { return base64.RawURLEncoding.EncodeToString(random) }

// checkToken refuses a call without one of the bearer tokens. It takes the same time for every token of one length, so
// that timing reveals none.
func checkToken(c *kit.Call, tokens []string) kit.Response {
	authorization := c.Request.Header.Get("Authorization")
	switch {
	case authorization == "":
		return errorResponse("900902")
	case !containsToken(tokens, bearerToken(c)):
		return errorResponse("900901")
	}
	return kit.Response{}
}

// bearerToken returns the token of a call, "" for none or another scheme.
func bearerToken(c *kit.Call) string {
	scheme, token, _ := strings.Cut(c.Request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func containsToken(tokens []string, token string) bool {
	found := 0
	for _, known := range tokens {
		found |= subtle.ConstantTimeCompare([]byte(known), []byte(token))
	}
	return found == 1
}

// marshal makes JSON without escaping for HTML: a merchant's "&" stays "&" (decision "pay-state").
func marshal(v any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic("sandbox: " + err.Error())
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

func jsonResponse(status int, v any) kit.Response {
	return kit.Response{Status: status, Type: "application/json", Body: marshal(v), Header: map[string]string{}}
}

// createdResponse is a success with the address of the result, which may be "".
func createdResponse(location string, body any) kit.Response {
	return withHeader(jsonResponse(http.StatusCreated, body), "Location", location)
}

// withHeader returns a response with a header, unless its value is "".
func withHeader(r kit.Response, name, value string) kit.Response {
	if value != "" {
		r.Header[name] = value
	}
	return r
}

// messages are the operator's messages by their id (specification, Error codes).
var messages = map[string]struct {
	status int
	text   string
}{
	"SVC0001": {http.StatusInternalServerError, "A service error occurred. Error code is %1"},
	"SVC0002": {http.StatusBadRequest, "Invalid input value for message part %1"},
	"SVC0003": {http.StatusBadRequest, "Invalid input value for message part %1, valid values are %2"},
	"SVC0004": {http.StatusBadRequest, "No valid addresses provided in message part %1"},
	"SVC0005": {http.StatusConflict, "Correlator %1 specified in message part %2 is a duplicate"},
	"SVC0270": {http.StatusBadRequest, "Charging operation failed, the charge was not applied"},
	"SVC0280": {http.StatusBadRequest, "Message too long; maximum length is %1 characters"},
	"POL0001": {http.StatusForbidden, "A policy error occurred. Error code is %1"},
	"POL0253": {http.StatusForbidden, "Payment operation refused by user"},
	"POL1000": {http.StatusForbidden, "User has insufficient credit for transaction"},
	"900800":  {http.StatusTooManyRequests, "Message throttled out"},
	"900901":  {http.StatusUnauthorized, "Invalid Credentials"},
	"900902":  {http.StatusUnauthorized, "Missing Credentials"},
	"900906":  {http.StatusNotFound, "No matching resource found"},
}

type exception struct {
	MessageID string   `json:"messageId"`
	Text      string   `json:"text"`
	Variables []string `json:"variables"`
}

// errorResponse is a requestError with a message and its status. Only service errors are not policy exceptions.
func errorResponse(id string, variables ...string) kit.Response {
	kind, message := "policyException", messages[id]
	if strings.HasPrefix(id, "SVC") {
		kind = "serviceException"
	}
	body := map[string]any{kind: exception{id, message.text, append([]string{}, variables...)}}
	r := jsonResponse(message.status, map[string]any{"requestError": body})
	if r.Status == http.StatusUnauthorized {
		r.Header["WWW-Authenticate"] = `Bearer realm="sandbox"`
	}
	return r
}

func withStatus(status int, r kit.Response) kit.Response {
	r.Status = status
	return r
}

func invalidPartResponse(status int, part string) kit.Response {
	return withStatus(status, errorResponse("SVC0002", part))
}

// finalRefusal is the operator's permanent refusal with a message id.
func finalRefusal(id string) kit.Response {
	if id == "POL0001" {
		return errorResponse(id, "Not enough credit")
	}
	return errorResponse(id)
}

// inFlightResponse is the conflict with a call in progress. It has a Retry-After, and a duplicate has a Location
// instead.
func inFlightResponse(key, part string) kit.Response {
	return withHeader(duplicateResponse(key, part, ""), "Retry-After", "1")
}

// duplicateResponse is the conflict with an earlier call under the key. location is its result's address, or "".
func duplicateResponse(key, part, location string) kit.Response {
	return withHeader(errorResponse("SVC0005", key, part), "Location", location)
}

// refusals are the modes of scripts that refuse a call permanently.
var refusals = []string{"POL0001", "POL0253", "POL1000", "SVC0270"}

// faults are the forms of the faults of scripts and of outcomes on demand.
var faults = map[string]kit.Response{
	"lost":      {Close: true},
	"garbage":   {Status: http.StatusOK, Type: "application/json", Body: []byte("<html>OK{{\x00 not what you want")},
	"html":      htmlResponse(http.StatusOK, "", "It works!"),
	"empty":     jsonResponse(http.StatusCreated, struct{}{}),
	"503":       unavailable,
	"down":      unavailable,
	"500":       htmlResponse(http.StatusInternalServerError, "", "Internal Server Error"),
	"redirect":  htmlResponse(http.StatusFound, "/elsewhere", "Found"),
	"400":       errorResponse("SVC0002", "scripted"),
	"401":       errorResponse("900901"),
	"409":       inFlightResponse("scripted", "scripted"),
	"429":       withHeader(errorResponse("900800"), "Retry-After", "1"),
	"duplicate": duplicateResponse("scripted", "scripted", ""),
}

var unavailable = withHeader(
	withStatus(http.StatusServiceUnavailable, errorResponse("SVC0001", "PDK_SMSW_0013")), "Retry-After", "5")

func htmlResponse(status int, location, text string) kit.Response {
	r := kit.HTML(status, "")
	r.Body, r.Header = []byte("<!doctype html><html><body>"+text+"</body></html>\n"), map[string]string{}
	return withHeader(r, "Location", location)
}
