package stubtest

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Outcome is how a payment or an SMS ends.
type Outcome struct {
	Response  string // the HTTP status, and what the test adds
	Status    string // at the platform, in the test's words
	Effects   int
	Callbacks string // their statuses, in order
}

// Words are the words of a platform in the outcomes that all stubs know.
type Words struct {
	Accepted                          string // Outcome.Response
	Paid, Refused, NoFunds, Undecided string // Outcome.Status
	Unknown                           string // Outcome.Status of a payment that was not applied
	Success, Failure                  string // in Outcome.Callbacks
}

// ended is the outcome of a payment that was accepted, with its status at last.
func (w Words) ended(status string) Outcome {
	switch status {
	case w.Paid:
		return Outcome{w.Accepted, status, 1, w.Success}
	case w.Undecided:
		return Outcome{w.Accepted, status, 0, ""}
	}
	return Outcome{w.Accepted, status, 0, w.Failure}
}

// Outcomes returns the outcomes of the digits that all stubs know, for numbers with a prefix. Then come the platform's
// own: the statuses of accepted payments, and whole outcomes, which replace the common ones of their numbers. A key is
// a number, or "<number> with <quirks>".
func (w Words) Outcomes(prefix string, statuses map[string]string, own map[string]Outcome) map[string]Outcome {
	all := map[string]Outcome{
		prefix + "0000": w.ended(w.Paid),
		prefix + "1001": w.ended(w.Refused),
		prefix + "1002": w.ended(w.NoFunds),
		prefix + "1003": w.ended(w.Undecided),
		prefix + "1004": w.ended(w.Paid),
		prefix + "1005": {"0", w.Paid, 1, w.Success},
		prefix + "1006": {w.Accepted, w.Paid, 1, strings.Join([]string{w.Success, w.Success, w.Success}, " ")},
		prefix + "1007": {w.Accepted, w.Paid, 1, w.Success + " " + w.Failure},
		prefix + "1008": w.ended(w.Paid),
		prefix + "1009": {"503", w.Unknown, 0, ""},
		prefix + "1010": {"200", w.Paid, 1, w.Success},
		prefix + "1011": {w.Accepted, w.Paid, 1, ""},
	}
	for number, status := range statuses {
		all[number] = w.ended(status)
	}
	maps.Copy(all, own)
	return all
}

// Trial makes one payment or SMS at a stub.
type Trial struct {
	*Stub
	Pay    func(number string) (response string)
	Status func() string
	// Words describes the callbacks; nil for their field "status".
	Words func() string
	Key   string // of the effects
}

// CheckOutcomes makes a payment or an SMS for each outcome, and looks at it half an hour later. Only 1008 has a
// callback before the response; that of 1004 comes after the test.
func CheckOutcomes(t *testing.T, outcomes map[string]Outcome, start func(t *testing.T, quirks string) Trial) {
	t.Helper()
	for name, want := range outcomes {
		Run(t, name, func(t *testing.T) {
			number, quirks, _ := strings.Cut(name, " with ")
			trial := start(t, quirks)
			if trial.Words == nil {
				trial.Words = func() string { return trial.Stub.Words("status") }
			}
			got := Outcome{Response: trial.Pay(number)}
			early := len(trial.Callbacks.All())
			if (early > 0) != strings.HasSuffix(number, "1008") && !strings.HasSuffix(number, "1004") {
				t.Errorf("%d callbacks before the response", early)
			}
			time.Sleep(30 * time.Minute)
			got.Status, got.Effects, got.Callbacks = trial.Status(), trial.Effects(trial.Key), trial.Words()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the outcome differs (-want +got):\n%s", diff)
			}
		})
	}
}

// CheckScript scripts one call of an operation, and checks that its response, "<status> <body>", has a text.
func (s *Stub) CheckScript(operation, key, mode, want string, call func() (int, string)) {
	s.Helper()
	s.Script(operation, key, mode)
	status, text := call()
	if got := fmt.Sprint(status, " ", text); !strings.Contains(got, want) {
		s.Errorf("%s: %s, want %s", mode, got, want)
	}
}

// TokenUser calls a stub with a token.
type TokenUser struct {
	*Stub
	Renew func() // the token
	Call  func() (status int, text string)
}

// CheckTokens makes a call with a token that has expired, after its life, or was revoked: the response is 401 with a
// text, and nothing is applied. With a new token the same call succeeds.
func CheckTokens(t *testing.T, life time.Duration, want string, start func(t *testing.T) TokenUser) {
	t.Helper()
	for name, invalidate := range map[string]func(*Stub){
		"expired": func(*Stub) { time.Sleep(life) },
		"revoked": func(s *Stub) { s.Do("POST", "/stub/v1/revoke-tokens", "") },
	} {
		Run(t, name, func(t *testing.T) {
			c := start(t)
			invalidate(c.Stub)
			if status, text := c.Call(); status != 401 || !strings.Contains(text, want) || c.Effects("") != 0 {
				t.Errorf("%d %s with %d effects, want 401 with %s", status, text, c.Effects(""), want)
			}
			c.Renew()
			if status, text := c.Call(); status/100 != 2 {
				t.Errorf("with a new token: %d %s", status, text)
			}
		})
	}
}
