package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mobilegateway/e2e/harness"
)

// pollInterval is the pause between two attempts of a command.
const pollInterval = 100 * time.Millisecond

// story is the state of one running script.
type story struct {
	target *target
	script *testscript.TestScript
	client *http.Client
	// last is the latest response, notification or operator transaction, which the checks read. previous is the one
	// before.
	last, previous observation
	// saved holds the responses of save-response by name.
	saved map[string]observation
	// pageURL is the payment page of the last web payment.
	pageURL string
}

// storyKey is the key of the story among the values of a script.
type storyKey struct{}

// newStory prepares a script. Ids and addresses are variables; credentials are not.
func newStory(g *target, env *testscript.Env) error {
	env.Values[storyKey{}] = &story{target: g, client: newClient(), saved: map[string]observation{}}
	env.Setenv("RUN", g.newID())
	env.Setenv("MERCHANT", g.Merchant)
	env.Setenv("SECOND", g.SecondMerchant.Merchant)
	env.Setenv("LIMITED", g.LimitedMerchant.Merchant)
	env.Setenv("BASE", g.BaseURL)
	env.Setenv("INBOX", g.InboxURL)
	env.Setenv("SANDBOX", g.SandboxURL)
	env.Setenv("SERVICE_ID", g.ServiceID)
	env.Setenv("APPLICATION_ID", g.ApplicationID)
	env.Setenv("CONTACT_ID", g.ContactID)
	env.Setenv("ON_BEHALF_OF", g.OnBehalfOf)
	return nil
}

// storyCommand is a command of the scripts, with the limits of its number of arguments. most 0 means unlimited.
type storyCommand struct {
	least, most int
	usage       string
	run         func(s *story, arguments []string) error
}

// storyCommands returns the commands, as README.md lists them.
func storyCommands() map[string]storyCommand {
	return map[string]storyCommand{
		// Requests of the merchant.
		"charge":           {0, 0, "-key KEY [options]", (*story).charge},
		"pay":              {1, 0, "CHANNEL [options]", (*story).pay},
		"sms":              {0, 0, "-key KEY [options]", (*story).sms},
		"http":             {2, 0, "METHOD PATH [options]", (*story).http},
		"token":            {0, 0, "[options]", (*story).token},
		"getstatus":        {1, 0, "ORDER [options] [PATH = TEXT]", (*story).getStatus},
		"lookup-charge":    {1, 1, "CORRELATOR", (*story).lookupCharge},
		"parallel-lookups": {2, 0, "N ORDER [options]", (*story).parallelLookups},
		// Checks of the response.
		"status":         {1, 1, "NUMBER", (*story).status},
		"header":         {1, 3, "NAME [= TEXT | matches EXPRESSION]", (*story).header},
		"json":           {1, 3, "PATH [= TEXT | matches EXPRESSION]", (*story).json},
		"raw-json":       {1, 3, "PATH [= JSON | matches EXPRESSION]", (*story).rawJSON},
		"error-response": {2, 0, "STATUS ID [VARIABLE...]", (*story).errorResponse},
		"same-body":      {0, 1, "[NAME]", (*story).sameBody},
		"save-response":  {1, 1, "NAME", (*story).saveResponse},
		"set-variable":   {3, 3, "VARIABLE json PATH | VARIABLE header NAME", (*story).setVariable},
		// The operator.
		"effects":              {2, 3, "KEY NUMBER [charge|payment|sms]", (*story).effects},
		"operator-transaction": {1, 5, "KEY [charge|payment|sms] [PATH = TEXT]", (*story).operatorTransaction},
		"operator-responses":   {2, 0, "KEY [-kind KIND] RESPONSE...", (*story).operatorResponses},
		"complete-payment":     {2, 4, "ORDER STATUS [force] [silent]", (*story).completePayment},
		"callback":             {1, 0, "KEY [options]", (*story).callback},
		"books-differ":         {2, 2, "ORDER CLASS", (*story).booksDiffer},
		"payment-page":         {1, 0, "confirm|cancel [options]", (*story).paymentPage},
		// The merchant's inbox.
		"notifications":     {1, 0, "ORDER [STATUS...]", (*story).notifications},
		"last-notification": {1, 1, "ORDER", (*story).lastNotification},
		"receipts":          {1, 0, "CALLBACKDATA [STATUS...]", (*story).receipts},
		"last-receipt":      {1, 1, "CALLBACKDATA", (*story).lastReceipt},
		"verify-signature":  {0, 2, "[-as second]", (*story).verifySignature},
	}
}

// call checks the number of arguments and runs the command.
func (c storyCommand) call(s *story, name string, arguments []string) error {
	if len(arguments) < c.least || c.most > 0 && len(arguments) > c.most {
		return fmt.Errorf("usage: %s %s", name, c.usage)
	}
	return c.run(s, arguments)
}

// testscriptCommands returns the commands in testscript's form, with those that run another command.
func testscriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	all := storyCommands()
	all["eventually"] = storyCommand{2, 0, "DURATION COMMAND...", eventuallyCommand}
	all["consistently"] = storyCommand{2, 0, "DURATION COMMAND...", consistentlyCommand}
	all["retry"] = storyCommand{3, 0, "DURATION STATUS REQUEST...", retryCommand}
	found := map[string]func(*testscript.TestScript, bool, []string){}
	for name, command := range all {
		found[name] = func(script *testscript.TestScript, negated bool, arguments []string) {
			s, _ := script.Value(storyKey{}).(*story)
			s.script = script
			err := command.call(s, name, arguments)
			switch {
			case err != nil && !negated:
				script.Fatalf("%v", err)
			case err == nil && negated:
				script.Fatalf("! %s %s: it succeeded, but must fail", name, strings.Join(arguments, " "))
			}
		}
	}
	return found
}

// parseNestedCommand parses a duration and the command after it.
func parseNestedCommand(arguments []string) (time.Duration, func(*story) error, error) {
	wait, err := time.ParseDuration(arguments[0])
	if err != nil {
		return 0, nil, err
	}
	command, found := storyCommands()[arguments[1]]
	if !found {
		return 0, nil, fmt.Errorf("there is no command %q", arguments[1])
	}
	return wait, func(s *story) error { return command.call(s, arguments[1], arguments[2:]) }, nil
}

// eventuallyCommand repeats a command until it succeeds: eventually 10s notifications $ORDER successful.
func eventuallyCommand(s *story, arguments []string) error {
	wait, run, err := parseNestedCommand(arguments)
	if err != nil {
		return err
	}
	wait = scaledWait(wait)
	if err := harness.Poll(context.Background(), wait, func() error { return run(s) }); err != nil {
		return fmt.Errorf("not within %s: %w", wait, err)
	}
	return nil
}

// consistentlyCommand repeats a command, which must succeed all the time: consistently 2s notifications $ORDER
// successful.
func consistentlyCommand(s *story, arguments []string) error {
	wait, run, err := parseNestedCommand(arguments)
	if err != nil {
		return err
	}
	started := time.Now()
	for time.Since(started) < wait {
		if err := run(s); err != nil {
			return fmt.Errorf("failed after %s: %w", time.Since(started).Round(time.Millisecond), err)
		}
		time.Sleep(pollInterval)
	}
	return nil
}

// retryCommand repeats a request as a merchant would: retry 80s 201 charge -key k. It ends at the expected status,
// which may be two with | in between. Until then only 409 and 504 with Retry-After are allowed.
func retryCommand(s *story, arguments []string) error {
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
			return s.last.errorf("status %s while waiting for %s", got, expected)
		}
		if time.Since(started) > wait {
			return s.last.errorf("no %s within %s", expected, wait)
		}
		time.Sleep(5 * pollInterval)
	}
}
