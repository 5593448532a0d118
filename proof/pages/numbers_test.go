package pages

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// TestNumbers compares numbers on a page with the constants and the variables of template.yaml that set them.
func TestNumbers(t *testing.T) {
	orange, found := operator.FindCapabilities("orange")
	if !found {
		t.Fatal("the operator orange is missing")
	}
	schedule := strings.Split(templateVariable(t, "DELIVERY_SCHEDULE"), ",")
	for i := range schedule {
		schedule[i] = regexp.MustCompile(`([0-9])m$`).ReplaceAllString(schedule[i], "$1 min")
		schedule[i] = regexp.MustCompile(`([0-9])([sh])$`).ReplaceAllString(schedule[i], "$1 $2")
	}
	last := len(schedule) - 1
	cases := map[string][]string{
		"docs/architecture.md": {
			fmt.Sprintf("reads %d shards of the `due` index", ledger.DueShards),
			fmt.Sprintf("For %d seconds a new notification", ledger.FastLease/time.Second),
			fmt.Sprintf("due in %d seconds", ledger.FastLease/time.Second),
			fmt.Sprintf("Processes keep secrets %d seconds, and profiles ", keyring.RenewalInterval/time.Second) +
				strings.Replace(templateVariable(t, "PROFILE_CACHE_TTL"), "s", " seconds", 1),
		},
		"docs/merchants.md": {
			fmt.Sprintf("| Body | %d KiB, nested %d deep |", apigw.MaxBodyBytes>>10, strictjson.MaxDepth),
			"after " + strings.Join(schedule[1:last], ", ") + " and " + schedule[last],
			"Respond 2xx within " + strings.Replace(templateVariable(t, "WEBHOOK_TIMEOUT"), "s", " seconds", 1),
			fmt.Sprintf("for up to %d hours", orange.ResendWindow/time.Hour-1),
			"no confirmation within " + strings.Replace(templateVariable(t, "PAYMENT_LIFETIME"), "h", " hours", 1),
		},
	}
	failing, unrecorded := hours(deadLetterTimes(t))
	cases["docs/operations.md"] = []string{
		fmt.Sprintf("all attempts failed, for about %d hours", failing),
		fmt.Sprintf("%d attempts in a row left no outcome, for about %d hours", ledger.MaxUnrecordedAttempts, unrecorded),
		fmt.Sprintf("after %d minutes: after about %d minutes |", ledger.StaleAfter/time.Minute,
			firstListing(t)/time.Minute),
		fmt.Sprintf("StaleUnknownsAlarm from about %d minutes on", firstListing(t)/time.Minute),
		resendWindowText(orange),
	}
	cases["docs/architecture.md"] = append(cases["docs/architecture.md"], resendWindowText(orange),
		fmt.Sprintf("After about %d hours of failures", failing), fmt.Sprintf("about %d hours without one", unrecorded))
	for _, platform := range operator.Platforms() {
		if row, _ := operator.FindCapabilities(platform); row.NeverSentAfter > 0 {
			from := confirm.NeverSentFrom(row, &ledger.Entry{}).Sub(time.Time{})
			cases["docs/operations.md"] = append(cases["docs/operations.md"],
				fmt.Sprintf("`%s` %d minutes", platform, from/time.Minute))
		}
	}
	for name, phrases := range cases {
		text := readFile(t, name)
		for _, phrase := range phrases {
			if !strings.Contains(text, phrase) {
				t.Errorf("%s does not say %q", name, phrase)
			}
		}
	}
}

// resendWindowText is a platform's resend window without its margin, as the pages have it.
func resendWindowText(row operator.Capabilities) string {
	window := row.SafeResendWindow()
	return fmt.Sprintf("%d hours and %d minutes", window/time.Hour, window%time.Hour/time.Minute)
}

// hours rounds two times.
func hours(a, b time.Duration) (int, int) {
	return int(a.Round(time.Hour) / time.Hour), int(b.Round(time.Hour) / time.Hour)
}

// durations reads a list of a variable of template.yaml.
func durations(t *testing.T, variable string) (waits []time.Duration) {
	t.Helper()
	for text := range strings.SplitSeq(templateVariable(t, variable), ",") {
		wait, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, wait)
	}
	return waits
}

// deadLetterTimes returns after which time a notification is given up: when each of its attempts fails, and when no
// attempt has an outcome.
func deadLetterTimes(t *testing.T) (failing, unrecorded time.Duration) {
	t.Helper()
	for _, wait := range durations(t, "DELIVERY_SCHEDULE") {
		failing += wait
	}
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	outbox := ledger.Outbox{URL: "https://shop.example/", Waiting: []ledger.Notification{{ID: "n", NextAttemptAt: start}}}
	at := start
	for outbox.Head() != nil {
		at = outbox.Head().NextAttemptAt
		if !outbox.ClaimDelivery(at) {
			t.Fatal("the notification is not due")
		}
	}
	return failing, at.Sub(start)
}

// firstListing is when an unknown payment whose lookups have no response is first counted for a person: at its first
// lookup after ledger.StaleAfter.
func firstListing(t *testing.T) (age time.Duration) {
	t.Helper()
	for _, wait := range durations(t, "POLL_SCHEDULE") {
		if age += wait; age >= ledger.StaleAfter {
			return age
		}
	}
	t.Fatal("no lookup is late enough")
	return 0
}

// templateVariable returns the value of a variable that template.yaml sets for every function.
func templateVariable(t *testing.T, name string) string {
	t.Helper()
	text := readFile(t, "template.yaml")
	found := regexp.MustCompile(`(?m)^ +` + name + `: "?([^"\n]+)"?$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("template.yaml sets no %s", name)
	}
	return found[1]
}
