package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// observation is what the checks read: a response, or with status 0 a notification or an operator transaction.
type observation struct {
	source string
	status int
	header http.Header
	body   []byte
}

// API Gateway renames one header of a function's response. Clients find the challenge of a 401 under the second name.
const (
	authenticateHeader         = "WWW-Authenticate"
	remappedAuthenticateHeader = "X-Amzn-Remapped-Www-Authenticate"
)

// headerRemapTransport restores the header that API Gateway renamed.
type headerRemapTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r headerRemapTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if challenge := response.Header.Get(remappedAuthenticateHeader); challenge != "" {
		response.Header.Set(authenticateHeader, challenge)
	}
	return response, nil
}

// newClient returns a client that follows no redirect, so that a story can check where it leads.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       35 * time.Second,
		Transport:     contractTransport{headerRemapTransport{&http.Transport{MaxIdleConnsPerHost: 16}}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// exchange sends a request and reads the whole response.
func exchange(client *http.Client, request *http.Request) (observation, error) {
	response, err := client.Do(request)
	if err != nil {
		return observation{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return observation{}, err
	}
	return observation{request.Method + " " + request.URL.Path, response.StatusCode, response.Header, body}, nil
}

// errorf returns an error that shows the observation.
func (r observation) errorf(format string, arguments ...any) error {
	body := r.body
	if len(body) > 2000 {
		body = body[:2000]
	}
	var headers bytes.Buffer
	_ = r.header.Write(&headers)
	return fmt.Errorf("%s\nof %s: %d\n%s%s", fmt.Sprintf(format, arguments...), r.source, r.status, headers.String(),
		body)
}

// value returns the JSON value at a path of names and positions, separated by dots.
func (r observation) value(path string) (json.RawMessage, error) {
	value := json.RawMessage(r.body)
	for part := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		if json.Unmarshal(value, &object) == nil {
			next, found := object[part]
			if !found {
				return nil, r.errorf("there is no %s (%s)", path, part)
			}
			value = next
			continue
		}
		position, err := strconv.Atoi(part)
		if err != nil || json.Unmarshal(value, &list) != nil || position >= len(list) {
			return nil, r.errorf("there is no %s (%s)", path, part)
		}
		value = list[position]
	}
	return value, nil
}

// textValue returns the value at a path as text: strings without quotes.
func (r observation) textValue(path string) (string, error) {
	raw, err := r.value(path)
	if err != nil {
		return "", err
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		return text, nil
	}
	return string(raw), nil
}

// matchText checks a text against the rest of a command: nothing, "= text" or "matches expression".
func (r observation) matchText(what, text string, rest []string) error {
	switch {
	case len(rest) == 0:
		return nil
	case len(rest) == 2 && rest[0] == "=":
		if text != rest[1] {
			return r.errorf("%s is %q, want %q", what, text, rest[1])
		}
		return nil
	case len(rest) == 2 && rest[0] == "matches":
		expression, err := regexp.Compile("^(?:" + rest[1] + ")$")
		if err != nil {
			return err
		}
		if !expression.MatchString(text) {
			return r.errorf("%s is %q, which does not match %s", what, text, rest[1])
		}
		return nil
	}
	return fmt.Errorf("%s: = TEXT or matches EXPRESSION is missing", what)
}

// record makes an observation the latest one.
func (s *story) record(r observation) { s.previous, s.last = s.last, r }

// status checks the status of the last response.
func (s *story) status(arguments []string) error {
	if fmt.Sprint(s.last.status) != arguments[0] {
		return s.last.errorf("status %d, want %s", s.last.status, arguments[0])
	}
	return nil
}

// header checks a header of the last response; without a text, that the header is present.
func (s *story) header(arguments []string) error {
	values := s.last.header.Values(arguments[0])
	if len(values) == 0 {
		return s.last.errorf("there is no header %s", arguments[0])
	}
	return s.last.matchText(arguments[0], strings.Join(values, ", "), arguments[1:])
}

// json checks a value of the last body; without a text, that the value is present.
func (s *story) json(arguments []string) error {
	text, err := s.last.textValue(arguments[0])
	if err != nil {
		return err
	}
	return s.last.matchText(arguments[0], text, arguments[1:])
}

// rawJSON checks a value as it is encoded, including quotes.
func (s *story) rawJSON(arguments []string) error {
	value, err := s.last.value(arguments[0])
	if err != nil {
		return err
	}
	return s.last.matchText(arguments[0], string(value), arguments[1:])
}

// sameBody checks that the last body equals the previous or a saved one, byte for byte.
func (s *story) sameBody(arguments []string) error {
	other, found := s.previous, true
	if len(arguments) == 1 {
		other, found = s.saved[arguments[0]]
	}
	if !found {
		return fmt.Errorf("no response is saved as %s", arguments[0])
	}
	if !bytes.Equal(s.last.body, other.body) {
		return s.last.errorf("the body differs from\n%s", other.body)
	}
	return nil
}

// saveResponse saves the last response under a name.
func (s *story) saveResponse(arguments []string) error {
	s.saved[arguments[0]] = s.last
	return nil
}

// setVariable sets a variable from the last response: set-variable ID json amountTransaction.serverReferenceCode.
func (s *story) setVariable(arguments []string) error {
	text := s.last.header.Get(arguments[2])
	var err error
	switch arguments[1] {
	case "header":
	case "json":
		text, err = s.last.textValue(arguments[2])
	default:
		err = fmt.Errorf("set-variable: use json or header, not %q", arguments[1])
	}
	s.script.Setenv(arguments[0], text)
	return err
}

// errorTexts repeats the table of decision "error-table", independently of the product's code.
var errorTexts = map[string]string{
	"SVC0001": "A service error occurred. Error code is %1",
	"SVC0002": "Invalid input value for message part %1",
	"SVC0003": "Invalid input value for message part %1, valid values are %2",
	"SVC0004": "No valid addresses provided in message part %1",
	"SVC0005": "Correlator %1 specified in message part %2 is a duplicate",
	"SVC0270": "Charging operation failed, the charge was not applied",
	"SVC0280": "Message too long; maximum length is %1 characters",
	"POL0001": "A policy error occurred. Error code is %1",
	"POL0253": "Payment operation refused by user",
	"POL1000": "User has insufficient credit for transaction",
	"900800":  "Message throttled out",
	"900901":  "Invalid Credentials",
	"900902":  "Missing Credentials",
	"900906":  "No matching resource found",
	"900908":  "Resource forbidden",
}

// errorResponse checks that the last response is exactly this error: error-response 400 SVC0002 amount.
func (s *story) errorResponse(arguments []string) error {
	if err := s.status(arguments[:1]); err != nil {
		return err
	}
	id, variables := arguments[1], append([]string{}, arguments[2:]...)
	side := "policyException"
	if strings.HasPrefix(id, "SVC") {
		side = "serviceException"
	}
	type exception struct {
		MessageID string   `json:"messageId"`
		Text      string   `json:"text"`
		Variables []string `json:"variables"`
	}
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	body := map[string]map[string]exception{"requestError": {side: {id, errorTexts[id], variables}}}
	if err := encoder.Encode(body); err != nil {
		return err
	}
	if !bytes.Equal(s.last.body, bytes.TrimSpace(want.Bytes())) {
		return s.last.errorf("want the error\n%s", want.Bytes())
	}
	return s.header([]string{"Content-Type", "=", "application/json"})
}
