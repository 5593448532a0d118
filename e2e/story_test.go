package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// pollEvery is how often until looks again.
const pollEvery = 100 * time.Millisecond

// story is one script on its way.
type story struct {
	target *target
	script *testscript.TestScript
	client *http.Client
	// last is what the checking words look at: an answer, a notification, or what the operator knows. before is the one
	// before it.
	last, before reply
	// kept are the replies that the script gave a name.
	kept map[string]reply
	// pageURL is the payment page of the last web payment.
	pageURL string
}

// storyKey finds the story among a script's values.
type storyKey struct{}

// newStory prepares a script: its ids and addresses are variables, its credentials are not.
func newStory(g *target, env *testscript.Env) error {
	env.Values[storyKey{}] = &story{target: g, client: newClient(), kept: map[string]reply{}}
	env.Setenv("RUN", g.newID())
	env.Setenv("MERCHANT", g.Merchant)
	env.Setenv("SECOND", g.Second.Merchant)
	env.Setenv("LIMITED", g.Limited.Merchant)
	env.Setenv("BASE", g.BaseURL)
	env.Setenv("INBOX", g.InboxURL)
	env.Setenv("SANDBOX", g.SandboxURL)
	env.Setenv("SERVICE_ID", g.ServiceID)
	env.Setenv("APPLICATION_ID", g.ApplicationID)
	env.Setenv("CONTACT_ID", g.ContactID)
	env.Setenv("ON_BEHALF_OF", g.OnBehalfOf)
	return nil
}

// word is a command of the scripts.
type word func(s *story, arguments []string) error

// words are the commands, as README.md lists them.
func words() map[string]word {
	return map[string]word{
		// What the merchant asks.
		"charge": (*story).charge, "pay": (*story).pay, "sms": (*story).sms, "http": (*story).http, "token": (*story).token,
		"getstatus": (*story).getStatus, "found": (*story).found, "rush": (*story).rush,
		// What came back.
		"status": (*story).status, "header": (*story).header, "json": (*story).json, "raw": (*story).raw, "error": (*story).wireError,
		"same-body": (*story).sameBody, "keep": (*story).keep, "let": (*story).let,
		// The operator.
		"effects": (*story).effects, "operator": (*story).operator, "script": (*story).scriptCalls, "settle": (*story).settle,
		"callback": (*story).callback, "page": (*story).page,
		// The merchant's inbox.
		"notifications": (*story).notifications, "notification": (*story).notification, "receipts": (*story).receipts,
		"receipt": (*story).receipt, "verified": (*story).verified,
	}
}

// commands are the words as testscript takes them, and those that hold another word.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := words()
	all["until"], all["stays"], all["retry"] = until, stays, retry
	found := map[string]func(*testscript.TestScript, bool, []string){}
	for name, w := range all {
		found[name] = func(script *testscript.TestScript, negated bool, arguments []string) {
			s, _ := script.Value(storyKey{}).(*story)
			s.script = script
			err := w(s, arguments)
			switch {
			case err != nil && !negated:
				script.Fatalf("%v", err)
			case err == nil && negated:
				script.Fatalf("! %s %s: it does, and should not", name, strings.Join(arguments, " "))
			}
		}
	}
	return found
}

// inner takes a duration and the word behind it.
func inner(arguments []string) (time.Duration, func(*story) error, error) {
	if len(arguments) < 2 {
		return 0, nil, errors.New("a duration and a command are missing")
	}
	wait, err := time.ParseDuration(arguments[0])
	if err != nil {
		return 0, nil, err
	}
	w, found := words()[arguments[1]]
	if !found {
		return 0, nil, fmt.Errorf("there is no word %q", arguments[1])
	}
	return wait, func(s *story) error { return w(s, arguments[2:]) }, nil
}

// until repeats a word until it holds: until 10s notifications $ORDER successful.
func until(s *story, arguments []string) error {
	wait, run, err := inner(arguments)
	if err != nil {
		return err
	}
	wait = patiently(wait)
	began := time.Now()
	for {
		err := run(s)
		if err == nil {
			return nil
		}
		if time.Since(began) > wait {
			return fmt.Errorf("not within %s: %w", wait, err)
		}
		time.Sleep(pollEvery)
	}
}

// stays repeats a word, which must hold all the time: stays 2s notifications $ORDER successful.
func stays(s *story, arguments []string) error {
	wait, run, err := inner(arguments)
	if err != nil {
		return err
	}
	began := time.Now()
	for time.Since(began) < wait {
		if err := run(s); err != nil {
			return fmt.Errorf("no more after %s: %w", time.Since(began).Round(time.Millisecond), err)
		}
		time.Sleep(pollEvery)
	}
	return nil
}

// retry is a patient merchant: it repeats a request until the status comes, and until then allows 409 and 504 with
// Retry-After alone: retry 80s 201 charge -key k. Of two statuses with | between either will do.
func retry(s *story, arguments []string) error {
	if len(arguments) < 3 {
		return errors.New("retry: a duration, a status and a request are missing")
	}
	wanted := arguments[1]
	wait, run, err := inner(append([]string{arguments[0]}, arguments[2:]...))
	if err != nil {
		return err
	}
	began := time.Now()
	for {
		if err := run(s); err != nil {
			return err
		}
		waiting := s.last.header.Get("Retry-After") != ""
		switch got := fmt.Sprint(s.last.status); {
		case !waiting && slices.Contains(strings.Split(wanted, "|"), got):
			return nil
		case waiting && (got == "409" || got == "504"):
		default:
			return s.last.wrong("status %s on the way to %s", got, wanted)
		}
		if time.Since(began) > wait {
			return s.last.wrong("no %s within %s", wanted, wait)
		}
		time.Sleep(5 * pollEvery)
	}
}
