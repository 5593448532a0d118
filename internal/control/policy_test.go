package control

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// place is what a resource of the policy stands for: the name behind the stack's, and an index.
var place = regexp.MustCompile(`^arn:aws:[a-z]+:eu-west-1:123456789012:(?:table/mobile-gateway-prod-|secret:mobile-gateway-prod/)([A-Za-z-]+)-(?:\*|\?{6})(/index/[a-z]+)?$`)

// allowed are the permissions of the page's policy for tables and secrets.
func allowed(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/gatewayctl.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, _ := strings.Cut(rest, "```")
	var policy struct {
		Statement []struct {
			Effect           string
			Action, Resource []string
		}
	}
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, statement := range policy.Statement {
		for _, action := range statement.Action {
			for _, resource := range statement.Resource {
				parts := place.FindStringSubmatch(resource)
				if action == "cloudformation:DescribeStacks" {
					continue // the AWS CLI's, for the variables
				}
				if parts == nil || statement.Effect != "Allow" || strings.Contains(action, "*") {
					t.Fatalf("%s %s is not understood", action, resource)
				}
				found[action+" "+parts[1]+parts[2]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// TestThePolicyIsWhatTheToolCalls plays a command of each kind: the page's policy allows what they call, and nothing more.
func TestThePolicyIsWhatTheToolCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a database")
	}
	d, client, record := deployed(t)
	d.variables["LIMIT_TABLE"] = "limits"
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		d.do("keys add "+ring+yes, nil)
	}
	d.input = `{"sandbox":{"current":"a","accounts":{"a":{"base_url":"https://o.example","access_token":"t"}}}}`
	d.refused("operator set -"+yes, ExitFailed, "there is no secret operators")
	shop := d.shop()
	d.do("merchant suspend ShopA"+yes, nil)
	e := d.payment(shop, 1, d.now)
	e.Version, e.Limited, e.State, e.Status, e.FinalAt, e.Told, e.PollAt = 1, true, ledger.Unknown, ledger.Pending, time.Time{}, nil, d.now.Add(time.Minute)
	e.Reschedule()
	if _, err := ledgerdynamo.New(client.DynamoDB(), "ledger").Insert(context.Background(), e); err != nil {
		t.Fatal(err)
	}
	d.do("list --merchant ShopA --day 2026-03-01", nil)
	d.do("unknown list", nil)
	d.do("unknown resolve pay ShopA_1 --as failed"+yes, nil)
	d.do("endpoint show --merchant ShopA", nil)
	d.do("audit", nil)
	called := map[string]bool{}
	for _, call := range record.Calls() {
		called[call.Action+" "+call.Resource] = true
	}
	if got, want := slices.Sorted(maps.Keys(called)), allowed(t); !slices.Equal(got, want) {
		t.Errorf("called\n%s\nallowed\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
