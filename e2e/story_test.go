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
	last, previous observation
	// saved are the replies that the script gave a name.
	saved map[string]observation
	// pageURL is the payment page of the last web payment.
	pageURL string
}

// storyKey finds the story among a script's values.
type storyKey struct{}

// newStory prepares a script: its ids and addresses are variables, its credentials are not.
func newStory(g *target, env *testscript.Env) error {
	env.Values[storyKey{}] = &story{target: g, client: newClient(), saved: map[string]observation{}}
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

// storyCommand is a command of the scripts.
type storyCommand func(s *story, arguments []string) error

// storyCommands are the commands, as README.md lists them.
func storyCommands() map[string]storyCommand {
	return map[string]storyCommand{
		// What the merchant asks.
		"charge": (*story).charge, "pay": (*story).pay, "sms": (*story).sms, "http": (*story).http, "token": (*story).token,
		"getstatus": (*story).getStatus, "found": (*story).lookupCharge, "rush": (*story).parallelLookups,
		// What came back.
		"status": (*story).status, "header": (*story).header, "json": (*story).json, "raw": (*story).rawJSON, "error": (*story).wireError,
		"same-body": (*story).sameBody, "keep": (*story).saveResponse, "let": (*story).setVariable,
		// The operator.
		"effects": (*story).effects, "operator": (*story).operatorTransaction, "script": (*story).scriptResponses, "settle": (*story).completePayment,
		"callback": (*story).callback, "page": (*story).paymentPage,
		// The merchant's inbox.
		"notifications": (*story).notifications, "notification": (*story).notification, "receipts": (*story).receipts,
		"receipt": (*story).receipt, "verified": (*story).verifySignature,
	}
}

// testscriptCommands are the words as testscript takes them, and those that hold another word.
func testscriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	all := storyCommands()
	all["until"], all["stays"], all["retry"] = eventuallyCommand, consistentlyCommand, retryCommand
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

// parseNestedCommand takes a duration and the word behind it.
func parseNestedCommand(arguments []string) (time.Duration, func(*story) error, error) {
	if len(arguments) < 2 {
		return 0, nil, errors.New("a duration and a command are missing")
	}
	wait, err := time.ParseDuration(arguments[0])
	if err != nil {
		return 0, nil, err
	}
	w, found := storyCommands()[arguments[1]]
	if !found {
		return 0, nil, fmt.Errorf("there is no word %q", arguments[1])
	}
	return wait, func(s *story) error { return w(s, arguments[2:]) }, nil
}

// eventuallyCommand repeats a word until it holds: until 10s notifications $ORDER successful.
func eventuallyCommand(s *story, arguments []string) error {
	wait, run, err := parseNestedCommand(arguments)
	if err != nil {
		return err
	}
	wait = scaledWait(wait)
	started := time.Now()
	for {
		err := run(s)
		if err == nil {
			return nil
		}
		if time.Since(started) > wait {
			return fmt.Errorf("not within %s: %w", wait, err)
		}
		time.Sleep(pollEvery)
	}
}

// consistentlyCommand repeats a word, which must hold all the time: stays 2s notifications $ORDER successful.
func consistentlyCommand(s *story, arguments []string) error {
	wait, run, err := parseNestedCommand(arguments)
	if err != nil {
		return err
	}
	started := time.Now()
	for time.Since(started) < wait {
		if err := run(s); err != nil {
			return fmt.Errorf("no more after %s: %w", time.Since(started).Round(time.Millisecond), err)
		}
		time.Sleep(pollEvery)
	}
	return nil
}

// retryCommand is a patient merchant: it repeats a request until the status comes, and until then allows 409 and 504 with
// Retry-After alone: retry 80s 201 charge -key k. Of two statuses with | between either will do.
func retryCommand(s *story, arguments []string) error {
	if len(arguments) < 3 {
		return errors.New("retry: a duration, a status and a request are missing")
	}
	expected := arguments[1]
	wait, run, err := parseNestedCommand(append([]string{arguments[0]}, arguments[2:]...))
	if err != nil {
		return err
	}
	started := time.Now()
	for {
		if err := run(s); err != nil {
			return err
		}
		waiting := s.last.header.Get("Retry-After") != ""
		switch got := fmt.Sprint(s.last.status); {
		case !waiting && slices.Contains(strings.Split(expected, "|"), got):
			return nil
		case waiting && (got == "409" || got == "504"):
		default:
			return s.last.errorf("status %s on the way to %s", got, expected)
		}
		if time.Since(started) > wait {
			return s.last.errorf("no %s within %s", expected, wait)
		}
		time.Sleep(5 * pollEvery)
	}
}
