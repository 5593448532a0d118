// Package settings reads the environment of a function: names, durations, lists of durations and switches.
//
// One table has the names and defaults of all variables. A lookup function replaces the process environment in tests.
// Err reports every fault at once. The package does not know which function needs which variable. Its invariant: if Err
// returned nil, every returned value was within its limits.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/localhost"
)

// Environment reads variables, collects faults, and scales durations by SPEED. FromEnv makes it. It is not safe for
// concurrent use.
type Environment struct {
	lookup func(string) string
	speed  int64
	errs   []error
}

// maxSpeed bounds SPEED: at 3600 an hour passes in a second.
const maxSpeed = 3600

// minScaled is the minimum of a scaled duration that is not zero, because zero would change its meaning.
const minScaled = time.Millisecond

// FromEnv makes an Environment. lookup is os.Getenv on Lambda. A SPEED that is not a whole number from 1 to 3600
// is a fault.
func FromEnv(lookup func(string) string) *Environment {
	speed, err := strconv.ParseInt(cmp.Or(lookup(Speed), "1"), 10, 64)
	e := &Environment{lookup: lookup, speed: speed}
	if err != nil || speed < 1 || speed > maxSpeed {
		e.addError(Speed, "must be a whole number from 1 to %d", maxSpeed)
		e.speed = 1
	}
	return e
}

// Err returns every fault so far as one error, nil if there is none. Call it after the last read.
func (e *Environment) Err() error { return errors.Join(e.errs...) }

// Text returns a variable, or its default from the table if it is empty. "" is a valid value.
func (e *Environment) Text(name string) string {
	return cmp.Or(e.lookup(name), definitionOf(name).defaultValue)
}

// Required returns a variable. An empty one is a fault.
func (e *Environment) Required(name string) string {
	text := e.Text(name)
	if text == "" {
		e.addError(name, "is not set: set it")
	}
	return text
}

// URL returns a variable without trailing slashes. It must be empty or an absolute http or https URL without query and
// fragment.
func (e *Environment) URL(name string) string {
	text := strings.TrimRight(e.Text(name), "/")
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		(u.Scheme != "http" && u.Scheme != "https") {
		e.addError(name, "is not an absolute http or https URL")
		return ""
	}
	return text
}

// SecureURL is URL for an address whose requests carry a token. It must be https, or http to this machine. If
// LoopbackAllowed, it may also be http to a private network.
func (e *Environment) SecureURL(name string) string {
	text := e.URL(name)
	host, isSecure := hostOf(text), text == "" || strings.HasPrefix(strings.ToLower(text), "https:")
	if isSecure || localhost.IsLoopback(host) || localhost.IsNear(host) && e.LoopbackAllowed() {
		return text
	}
	e.addError(name, "is not an https address")
	return ""
}

// hostOf returns the host of an address without its port; "" for none.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Duration returns a variable in Go's notation ("90s", "24h"), or its default, within the limits of the table. SPEED
// divides it unless its name ends in _TIMEOUT or _LEASE: those depend on the outside world.
func (e *Environment) Duration(name string) time.Duration {
	return e.duration(name, e.Text(name))
}

// Durations returns a comma-separated list of at least one duration, each by the rules of Duration.
func (e *Environment) Durations(name string) []time.Duration {
	var list []time.Duration
	for item := range strings.SplitSeq(e.Text(name), ",") {
		list = append(list, e.duration(name, strings.TrimSpace(item)))
	}
	return list
}

// WholeNumber returns a number from 1 to maximum, 0 for an empty variable.
func (e *Environment) WholeNumber(name string, maximum int64) int64 {
	text := e.Text(name)
	if text == "" {
		return 0
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 || number > maximum {
		e.addError(name, "must be a whole number from 1 to %d", maximum)
		return 0
	}
	return number
}

// Bool returns a switch: "true" is on, "false" and empty are off, and anything else is a fault.
func (e *Environment) Bool(name string) bool {
	text := e.Text(name)
	if text != "true" && text != "false" && text != "" {
		e.addError(name, `must be "true", "false" or empty`)
	}
	return text == "true"
}

// LoopbackAllowed returns ALLOW_LOOPBACK: whether notification and return URLs may be plain http on 127.0.0.1. It is
// only for the local run. It is a fault unless DynamoDB is on this machine or at an address of a private network. It is
// a fault if Lambda names its runtime. Then the function does not start (decision "outgoing-addresses").
func (e *Environment) LoopbackAllowed() bool {
	allowed := e.Bool(AllowLoopback)
	host := hostOf(cmp.Or(e.lookup(dynamoDBEndpoint), e.lookup(defaultEndpoint)))
	if allowed && (!localhost.IsNear(host) || e.lookup(executionEnvironment) != "") {
		e.addError(AllowLoopback, "is true in a deployed function: remove it, it is only for the local run")
		return false
	}
	return allowed
}

// duration reads one duration of a variable, checks the limits and scales it.
func (e *Environment) duration(name, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		e.addError(name, `is not a duration such as "90s"`)
		return 0
	}
	limits := definitionOf(name)
	if d < 0 || (limits.maximum > 0 && d > limits.maximum) {
		e.addError(name, "must be from 0s to %s", limits.maximum)
		return 0
	}
	if d < limits.minimum && (d != 0 || !limits.allowsZero) {
		e.addError(name, "must be at least %s", limits.minimum)
		return 0
	}
	if d == 0 || strings.HasSuffix(name, "_TIMEOUT") || strings.HasSuffix(name, "_LEASE") {
		return d
	}
	return max(d/time.Duration(e.speed), minScaled)
}

// addError adds a fault. It omits the variable's value, which could be a secret in the wrong variable.
func (e *Environment) addError(name, format string, args ...any) {
	e.errs = append(e.errs, errors.New("setting "+name+" "+fmt.Sprintf(format, args...)))
}
