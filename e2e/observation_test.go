package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// observation is what is looked at: an answer, or with status 0 a notification or what the operator knows.
type observation struct {
	source string
	status int
	header http.Header
	body   []byte
}

// API Gateway gives one header of a function's answer another name: a client there finds the challenge of a 401 under it.
const (
	authenticateHeader         = "WWW-Authenticate"
	remappedAuthenticateHeader = "X-Amzn-Remapped-Www-Authenticate"
)

// headerRemapTransport gives an answer's header the name back that the function gave it.
type headerRemapTransport struct{ http.RoundTripper }

// RoundTrip is http.RoundTripper's.
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

// newClient follows no redirect: where one leads is for the story to look at.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       35 * time.Second,
		Transport:     contractTransport{headerRemapTransport{&http.Transport{MaxIdleConnsPerHost: 16}}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// exchange sends a request and reads the whole answer.
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

// errorf is an error that shows the reply.
func (r observation) errorf(format string, arguments ...any) error {
	shown := r.body
	if len(shown) > 2000 {
		shown = shown[:2000]
	}
	var headers bytes.Buffer
	_ = r.header.Write(&headers)
	return fmt.Errorf("%s\nof %s: %d\n%s%s", fmt.Sprintf(format, arguments...), r.source, r.status, headers.String(), shown)
}

// value finds a value by its path, names and positions with dots between.
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

// textValue is a value as a person reads it: strings without quotes.
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

// matchText compares a text by the rest of a check: nothing, "= text" or "matches expression".
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

// record makes a reply the one that is looked at.
func (s *story) record(r observation) { s.previous, s.last = s.last, r }

// status: the last answer's status.
func (s *story) status(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("status: NUMBER")
	}
	if fmt.Sprint(s.last.status) != arguments[0] {
		return s.last.errorf("status %d, want %s", s.last.status, arguments[0])
	}
	return nil
}

// header: a header of the last reply; alone, that it is there.
func (s *story) header(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("header: NAME [= TEXT | matches EXPRESSION]")
	}
	values := s.last.header.Values(arguments[0])
	if len(values) == 0 {
		return s.last.errorf("there is no header %s", arguments[0])
	}
	return s.last.matchText(arguments[0], strings.Join(values, ", "), arguments[1:])
}

// json: a value of the last reply's body; alone, that it is there.
func (s *story) json(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("json: PATH [= TEXT | matches EXPRESSION]")
	}
	text, err := s.last.textValue(arguments[0])
	if err != nil {
		return err
	}
	return s.last.matchText(arguments[0], text, arguments[1:])
}

// rawJSON: as json, with the value as it is written, quotes and all.
func (s *story) rawJSON(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("raw: PATH [= JSON | matches EXPRESSION]")
	}
	value, err := s.last.value(arguments[0])
	if err != nil {
		return err
	}
	return s.last.matchText(arguments[0], string(value), arguments[1:])
}

// sameBody: the last body equals the one before, or the one kept by a name, byte for byte.
func (s *story) sameBody(arguments []string) error {
	other, found := s.previous, true
	if len(arguments) == 1 {
		other, found = s.saved[arguments[0]]
	}
	if !found {
		return fmt.Errorf("nothing is kept as %s", arguments[0])
	}
	if !bytes.Equal(s.last.body, other.body) {
		return s.last.errorf("the body differs from\n%s", other.body)
	}
	return nil
}

// saveResponse gives the last reply a name.
func (s *story) saveResponse(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("keep: NAME")
	}
	s.saved[arguments[0]] = s.last
	return nil
}

// setVariable makes a value of the last reply a variable: let ID json amountTransaction.serverReferenceCode.
func (s *story) setVariable(arguments []string) error {
	if len(arguments) != 3 || !slices.Contains([]string{"json", "header"}, arguments[1]) {
		return errors.New("let: VARIABLE json PATH, or VARIABLE header NAME")
	}
	text := s.last.header.Get(arguments[2])
	if arguments[1] == "json" {
		var err error
		if text, err = s.last.textValue(arguments[2]); err != nil {
			return err
		}
	}
	s.script.Setenv(arguments[0], text)
	return nil
}

// errorTexts is the table of decision "error-table", written down a second time.
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

// wireError: the last answer is this error, whole: error 400 SVC0002 amount. The body is compared byte for byte.
func (s *story) wireError(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("error: STATUS ID [VARIABLE...]")
	}
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
