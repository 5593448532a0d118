package pages

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/receipt"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// The pages with numbers of the code.
const (
	architecturePage = "docs/architecture.md"
	operationsPage   = "docs/operations.md"
	securityPage     = "docs/security.md"
	decisionsPage    = "docs/unspecified.md"
	internalsPage    = "docs/internals.md"
)

// phrase is a text with a number that a page must have.
type phrase struct{ page, text string }

// TestNumbers compares numbers on a page with the constants and the variables of template.yaml that set them.
func TestNumbers(t *testing.T) {
	for _, part := range []func(*testing.T) []phrase{entryNumbers, lookupNumbers, deliveryNumbers, limitNumbers} {
		for _, p := range part(t) {
			if !strings.Contains(readFile(t, p.page), p.text) {
				t.Errorf("%s does not say %q", p.page, p.text)
			}
		}
	}
}

// entryNumbers are those of entries and of what functions keep.
func entryNumbers(t *testing.T) []phrase {
	t.Helper()
	orange, found := operator.FindCapabilities("orange")
	if !found {
		t.Fatal("the operator orange is missing")
	}
	window := orange.SafeResendWindow()
	windowText := fmt.Sprintf("%d hours and %d minutes", window/time.Hour, window%time.Hour/time.Minute)
	return []phrase{
		{architecturePage, fmt.Sprintf("reads %d shards of the `due` index", ledger.DueShards)},
		{internalsPage, fmt.Sprintf("(`DueShardsWritten`). Both are %d.", ledger.DueShardsWritten)},
		{architecturePage, windowText},
		{operationsPage, windowText},
		{merchantsPage, fmt.Sprintf("for up to %d hours", orange.ResendWindow/time.Hour-1)},
		{architecturePage, fmt.Sprintf("%d days if only a receipt has come", receipt.KeepReceipts/(24*time.Hour))},
		{architecturePage, "| `sms#<UUID of merchant and correlator>` | " + smsRetention(t)},
		{decisionsPage, "| SMS items | " + smsRetention(t)}, {merchantsPage, "an SMS for " + smsRetention(t)},
		{architecturePage, fmt.Sprintf("Processes keep secrets %d seconds, and profiles %s",
			keyring.RenewalInterval/time.Second, inWords(templateVariable(t, "PROFILE_CACHE_TTL")))},
		{merchantsPage, "no confirmation within " + inWords(templateVariable(t, "PAYMENT_LIFETIME"))},
	}
}

// lookupNumbers are those of lookups, and of when a transaction is listed for a person.
func lookupNumbers(t *testing.T) []phrase {
	t.Helper()
	var waits []string
	var age, firstListing time.Duration
	for _, wait := range durations(t, "POLL_SCHEDULE") {
		waits = append(waits, fmt.Sprint(int(wait/time.Minute)))
		if age += wait; firstListing == 0 && age >= ledger.StaleAfter {
			firstListing = age / time.Minute // an unknown payment without a response is counted at a lookup
		}
	}
	last := len(waits) - 1
	schedule := strings.Join(waits[:last], ", ") + " and " + waits[last] + " minutes"
	stale, flagged := ledger.StaleAfter/time.Minute, ledger.ClaimFlagAfter/time.Hour
	phrases := []phrase{
		{decisionsPage, "The waits before our polls are " + schedule}, {operationsPage, "after waits of " + schedule},
		{operationsPage, fmt.Sprintf("after %d minutes: after about %d minutes |", stale, firstListing)},
		{internalsPage, fmt.Sprintf("An unknown charge or SMS is listed after %d minutes", stale)},
		{reliabilityPage, fmt.Sprintf("a charge or an SMS %d minutes after its lease", stale)},
		{decisionsPage, fmt.Sprintf("flagged for a person %d hours after its first callback", flagged)},
		{reliabilityPage, fmt.Sprintf("with an unconfirmed claim of success %d hours after the claim", flagged)},
		{operationsPage, fmt.Sprintf("| %d hours after the claim;", flagged)},
	}
	for _, platform := range operator.Platforms() {
		row, _ := operator.FindCapabilities(platform)
		if row.NeverSentAfter > 0 {
			from := confirm.NeverSentFrom(row, &ledger.Entry{}).Sub(time.Time{}) / time.Minute
			phrases = append(phrases, phrase{operationsPage, fmt.Sprintf("`%s` %d minutes", platform, from)})
		}
		if row.LookupsPerSecond > 0 {
			phrases = append(phrases, phrase{internalsPage, fmt.Sprintf("in a second: MTN %d.", row.LookupsPerSecond)},
				phrase{internalsPage, fmt.Sprintf("half a second of lookups, for MTN %d.", row.LookupBurst())})
		}
	}
	return phrases
}

// deliveryNumbers are those of notifications.
func deliveryNumbers(t *testing.T) []phrase {
	t.Helper()
	schedule := strings.Split(templateVariable(t, "DELIVERY_SCHEDULE"), ",")
	for i := range schedule {
		schedule[i] = regexp.MustCompile(`([0-9])m$`).ReplaceAllString(schedule[i], "$1 min")
		schedule[i] = regexp.MustCompile(`([0-9])([sh])$`).ReplaceAllString(schedule[i], "$1 $2")
	}
	last := len(schedule) - 1
	retries := "after " + strings.Join(schedule[1:last], ", ") + " and " + schedule[last]
	failing, unrecorded := deadLetterHours(t)
	fast, most := ledger.FastLease/time.Second, ledger.MaxUnrecordedAttempts
	timeout := inWords(templateVariable(t, "WEBHOOK_TIMEOUT"))
	return []phrase{
		{architecturePage, fmt.Sprintf("For %d seconds a new notification", fast)},
		{architecturePage, fmt.Sprintf("due in %d seconds", fast)},
		{architecturePage, fmt.Sprintf("delivers the batch again, within %s seconds and %s times at most",
			templateVariable(t, "MaximumRecordAgeInSeconds"), templateVariable(t, "MaximumRetryAttempts"))},
		{merchantsPage, retries},
		{decisionsPage, fmt.Sprintf("at once, then %s: about %d hours in total", retries, failing)},
		{merchantsPage, "Respond 2xx within " + timeout},
		{decisionsPage, "the same body, and a timeout of " + timeout},
		{operationsPage, fmt.Sprintf("all attempts failed, for about %d hours", failing)},
		{operationsPage, fmt.Sprintf("%d attempts in a row left no outcome, for about %d hours", most, unrecorded)},
		{architecturePage, fmt.Sprintf("After about %d hours of failures", failing)},
		{architecturePage, fmt.Sprintf("%d attempts in about %d hours without one", most, unrecorded)},
		{decisionsPage, fmt.Sprintf("After %d unrecorded attempts in a row, about %d hours", most, unrecorded)},
		{reliabilityPage, fmt.Sprintf("within about %d hours while the server", failing)},
		{reliabilityPage, fmt.Sprintf("without any outcome %d attempts within about %d hours", most, unrecorded)},
	}
}

// limitNumbers are those of requests.
func limitNumbers(*testing.T) []phrase {
	rate, burst := merchant.DefaultRequestsPerSecond, merchant.DefaultBurst
	return []phrase{
		{merchantsPage, fmt.Sprintf("| Body | %d KiB, nested %d deep |", apigw.MaxBodyBytes>>10, strictjson.MaxDepth)},
		{merchantsPage, fmt.Sprintf("your own: %d per second and %d at once", rate, burst)},
		{decisionsPage, fmt.Sprintf("%d requests per second, and %d at once", rate, burst)},
		{securityPage, fmt.Sprintf("the merchant's own rate, %d a second by default", rate)},
	}
}

// smsRetention is how long an SMS is kept, in days.
func smsRetention(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%d days", durations(t, "SMS_RETENTION")[0]/(24*time.Hour))
}

// inWords writes a duration of the template as the pages do: "15s" is "15 seconds".
func inWords(text string) string {
	return strings.NewReplacer("s", " seconds", "h", " hours").Replace(text)
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

// deadLetterHours returns after how many hours a notification is given up: when each of its attempts fails, and when no
// attempt has an outcome.
func deadLetterHours(t *testing.T) (failing, unrecorded int) {
	t.Helper()
	var schedule time.Duration
	for _, wait := range durations(t, "DELIVERY_SCHEDULE") {
		schedule += wait
	}
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	at, first := start, ledger.Notification{ID: "n", NextAttemptAt: start}
	outbox := ledger.Outbox{URL: "https://shop.example/", Waiting: []ledger.Notification{first}}
	for outbox.Head() != nil {
		at = outbox.Head().NextAttemptAt
		if !outbox.ClaimDelivery(at) {
			t.Fatal("the notification is not due")
		}
	}
	return int(schedule.Round(time.Hour).Hours()), int(at.Sub(start).Round(time.Hour).Hours())
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
