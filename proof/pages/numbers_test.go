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
			fmt.Sprintf("(%d hours, less 10 minutes)", orange.ResendWindow/time.Hour),
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
