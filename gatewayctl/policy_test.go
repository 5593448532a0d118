package gatewayctl_test

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// arnPattern matches a resource of the policy: a table or a secret by the name after the stack's, with an index, or the
// stream of audit records.
var arnPattern = regexp.MustCompile(`^arn:aws:[a-z]+:eu-west-1:123456789012:` +
	`(?:(?:table/mobile-gateway-prod-|secret:mobile-gateway-prod/)([A-Za-z-]+)-(?:\*|\?{6})(/index/[a-z]+)?` +
	`|log-group:/mobile-gateway-prod/(audit:log-stream:audit))$`)

// policyPermissions are the permissions for tables, secrets and audit records in the page's policy.
func policyPermissions(t *testing.T) []string {
	t.Helper()
	_, rest, _ := strings.Cut(gatewayctltest.ReadFile(t, "../docs/gatewayctl.md"), "```json\n")
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
				parts := arnPattern.FindStringSubmatch(resource)
				if strings.HasPrefix(action, "cloudformation:Describe") {
					continue // package stack calls it, for --stack
				}
				if parts == nil || statement.Effect != "Allow" || strings.Contains(action, "*") {
					t.Fatalf("cannot parse the permission %s of %s", action, resource)
				}
				found[action+" "+parts[1]+parts[2]+parts[3]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// TestPolicyMatchesCalls runs a command of each kind: the page's policy allows their calls, and no others.
func TestPolicyMatchesCalls(t *testing.T) {
	d, client, record := gatewayctltest.NewOnLocalAWS(t)
	d.Variables["LIMIT_TABLE"] = "limits"
	d.Apply("keys add tokens", "keys add callbacks", "keys add webhooks")
	d.UseSandboxOperator()
	shop := d.Onboard("ShopA")
	d.Apply("merchant suspend ShopA")
	e := d.AddPendingPayment(shop, 1, d.Now, func(e *ledger.Entry) {
		e.Version, e.Amount.CountsDaily, e.State = 1, true, ledger.Unknown
	})
	store := ledgerdynamo.New(client.DynamoDB(), "ledger")
	if _, err := store.Insert(context.Background(), e, ledger.Reserve); err != nil {
		t.Fatal(err)
	}
	d.MustRun("list ShopA --day 2026-03-01", nil)
	d.ExpectOutput("find --amount 1000 --since 2026-03-01", "ShopA_1")
	d.MustRun("unknown list", nil)
	d.Apply("unknown resolve pay ShopA_1 --as failed")
	d.Apply("operator circuit open sandbox/a1")
	d.MustRun("endpoint show ShopA", nil)
	d.MustRun("audit verify", nil)
	d.Now = d.Now.Add(24 * time.Hour)
	d.Apply("counts --day yesterday")
	called := map[string]bool{}
	for _, action := range d.Logs.Actions {
		called["logs:"+action+" audit:log-stream:audit"] = true
	}
	for _, call := range record.Calls() {
		called[call.Action+" "+call.Resource] = true
	}
	if got, want := slices.Sorted(maps.Keys(called)), policyPermissions(t); !slices.Equal(got, want) {
		t.Errorf("called\n%s\nallowed\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
