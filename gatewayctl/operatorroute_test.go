package gatewayctl

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/callback"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// newRouteTool returns a tool whose merchant may use the sandbox in Ivory Coast. Its accounts are a1, the current one,
// a2, half without a service_id, and bad with another token.
func newRouteTool(t *testing.T, address string) (*testTool, onboardingResult) {
	t.Helper()
	d, shop := newShopTool(t)
	platform := operatorCredentials{"a1", map[string]json.RawMessage{}}
	for id, token := range map[string]string{"a1": "good", "a2": "good", "half": "good", "bad": "bad"} {
		account := newAccount(t, "sandbox", address, token)
		if id == "half" {
			delete(account, "service_id")
		}
		fields, err := mergeAccount(nil, account)
		if err != nil {
			t.Fatal(err)
		}
		platform.Accounts[id] = fields
	}
	value, err := storedCredentials{operators: credentialsByOperator{"sandbox": platform}}.encode()
	if err != nil {
		t.Fatal(err)
	}
	d.vault.values["operators"] = value
	return d, shop
}

// stored returns the deployment's credentials.
func (d *testTool) stored() storedCredentials {
	d.t.Helper()
	stored := storedCredentials{secret: StoredSecret{Value: d.vault.values["operators"]}}
	if err := stored.parse(); err != nil {
		d.t.Fatal(err)
	}
	return stored
}

// replaceInSecret changes a text of the stored credentials once, as a person may past the tool.
func (d *testTool) replaceInSecret(from, to string) {
	d.vault.values["operators"] = []byte(strings.Replace(string(d.vault.values["operators"]), from, to, 1))
}

// storedAccount returns an account as it is stored.
func (d *testTool) storedAccount(platform, id string) json.RawMessage {
	d.t.Helper()
	return d.stored().operators[platform].Accounts[id]
}

// Each refusal names its reason, and what is possible. It changes nothing.
func TestRouteRefusals(t *testing.T) {
	d, _ := newRouteTool(t, "http://127.0.0.1:1")
	before := string(d.vault.values["operators"])
	for line, want := range map[string]string{
		"other ci pay --to sandbox/a1":                 `operator "other" is not one of sandbox, orange, mtn`,
		"sandbox ci pay --to other/a1":                 `"other" is not one of those with a driver: sandbox, orange`,
		"sandbox ci pay --to a1":                       `--to is "a1": expected platform/account`,
		"sandbox ci refund --to none":                  `must be one of "charge","pay","sms"`,
		"sandbox ci pay --channel fax":                 "must be one of",
		"sandbox ci pay":                               "--to",
		"sandbox xx pay --to sandbox/a1":               "does not reach sandbox in XX; it reaches sandbox in CI",
		"sandbox ci sms --channel web --to sandbox/a1": "--channel is for pay",
		"sandbox ci pay --to sandbox/a9": `platform sandbox has no account "a9"; its accounts: a1, a2, bad, half. ` +
			"Add one",
		"sandbox ci pay --to orange/a1":       "orange does not reach sandbox in CI; it reaches orange in",
		"orange ci pay --to orange/a1":        `platform orange has no account "a1"; its accounts: none`,
		"sandbox ci charge --to Sandbox/half": "account sandbox/half cannot serve charge: service_id is missing",
		"mtn cd pay --to mtn-momo/ci": "mtn-momo does not reach mtn in CD; it reaches mtn in CI, CM; " +
			"platforms for mtn CD pay: mtn",
		"mtn ci pay --channel web --to mtn-momo/ci": "mtn-momo has no channel web; it has tpe, ussd",
		"mtn ci charge --to mtn-momo/ci":            "mtn-momo has no charge; it has pay",
		"wave cm pay --to wave-checkout/a":          "it reaches wave in SN, CI, BF; platforms for wave CM pay: none",
	} {
		d.expectBoth("operator route set "+line, ExitUsage, want)
	}
	d.expectBoth("operator route set sandbox ci pay --to none", ExitFailed, "sandbox CI pay leads to none already")
	for input, want := range map[string]string{
		`{"routes":{}}`:                       "routes: use operator route set",
		`{"Routes":{"mtn":[]}}`:               "Routes: use operator route set",
		`{"sandbox":{"accounts":{"a/3":{}}}}`: `the id "a/3" of a new account has a slash: choose another id`,
	} {
		d.input = input
		d.expectBoth("operator set -", ExitUsage, want)
	}
	checkEqual(t, "the credentials", string(d.vault.values["operators"]), before)
}

func TestCallbackLength(t *testing.T) {
	row := operator.Capabilities{Platform: "orange-webpay", MaxCallbackURL: 120}
	path := callback.PaymentPath("orange", strings.Repeat("0", 30)) + "/" + strings.Repeat("t", callback.TokenLength)
	longest := "https://" + strings.Repeat("h", 120-len(path)-len("https://"))
	for name, c := range map[string]struct {
		variables             map[string]string
		wantError, wantOutput string
	}{
		"at the limit":       {map[string]string{"BASE_URL": longest + "/"}, "", ""},
		"one above":          {map[string]string{"BASE_URL": longest + "h"}, "121: shorten the base address by 1", ""},
		"own callback base":  {map[string]string{"BASE_URL": longest + "h", "CALLBACK_BASE_URL": longest}, "", ""},
		"long callback base": {map[string]string{"BASE_URL": longest, "CALLBACK_BASE_URL": longest + "hh"}, "by 2", ""},
		"unknown base":       {nil, "", "could not be checked: set CALLBACK_BASE_URL or BASE_URL"},
	} {
		var output strings.Builder
		s := &session{System: System{Stderr: &output, Getenv: func(name string) string { return c.variables[name] }}}
		got := ""
		if err := checkCallbackLength(s, row, "orange"); err != nil {
			got = err.Error()
		}
		if (got == "") != (c.wantError == "") || !strings.Contains(got, c.wantError) {
			t.Errorf("%s: error %q, want %q", name, got, c.wantError)
		}
		if !strings.Contains(output.String(), c.wantOutput) || c.wantOutput == "" && output.Len() > 0 {
			t.Errorf("%s: wrote %q, want %q", name, output.String(), c.wantOutput)
		}
		row.MaxCallbackURL = 0
		checkEqual(t, name+", without a limit", checkCallbackLength(s, row, "orange"), nil)
		row.MaxCallbackURL = 120
	}
}

// A dry run shows what changes, and changes nothing. Live transactions stay with the account that the route leaves.
func TestRouteSet(t *testing.T) {
	d, shop := newRouteTool(t, "http://127.0.0.1:1")
	d.addUnknownPayment(shop)
	d.addDeliveredPayment(shop, 2, d.now)
	const line, left = "operator route set sandbox ci pay --to Sandbox/a2", "sandbox/a1 stops taking new orders"
	before, puts := string(d.vault.values["operators"]), d.vault.puts
	d.expectExit(line, ExitDone, left+" of the services below; its live transactions (1) stay with it.")
	checkEqual(t, "a dry run changed the secret", string(d.vault.values["operators"]), before)
	checkEqual(t, "writes of a dry run", d.vault.puts, puts)
	d.expectExit(line+" --yes", ExitUsage, "--reason")
	change := func(channel string) string {
		return `  {
    "operator": "sandbox",
    "country": "CI",
    "operation": "pay",
    "channel": "` + channel + `",
    "from": "sandbox/a1 (default)",
    "to": "sandbox/a2",
    "live_transactions": 1
  }`
	}
	_, out, _ := d.run(line + " --json" + confirmFlags)
	checkEqual(t, "JSON", out, "[\n"+change("web")+",\n"+change("tpe")+",\n"+change("ussd")+"\n]\n")
	checkEqual(t, "routes", d.stored().routes, map[string][]operator.Route{
		"sandbox": {{Country: "CI", Operation: "pay", To: "sandbox/a2"}},
	})
	d.expectBoth(line, ExitFailed, "nothing changes")
	d.expectOutput("audit", "set a route", "sandbox CI pay",
		"none -> sandbox/a2")

	// A route with a channel comes before the one for all channels.
	d.apply("operator route set sandbox ci pay --channel tpe --to sandbox/a1")
	checkEqual(t, "routes", d.stored().routes["sandbox"], []operator.Route{
		{Country: "CI", Operation: "pay", Channel: "tpe", To: "sandbox/a1"},
		{Country: "CI", Operation: "pay", To: "sandbox/a2"},
	})
	d.apply("operator route set sandbox ci pay --to none")
	const remove = "operator route set sandbox ci pay --channel tpe --to none"
	checkEqual(t, "without the route", query[[]routeChange](d, remove),
		[]routeChange{{serviceView{"sandbox", "CI", "pay", "tpe"}, "sandbox/a1", "sandbox/a1 (default)", 0}})
	d.apply(remove)
	checkEqual(t, "routes after the last one", string(d.vault.values["operators"]), before)
}

// The first route of an operator ends its default, unless its own platform has accounts. The difference shows all
// services that the operator loses.
func TestFirstRouteEndsTheDefault(t *testing.T) {
	d, _ := newRouteTool(t, "http://127.0.0.1:1")
	stored := d.stored()
	stored.routes = map[string][]operator.Route{"mtn": {{Country: "CI", Operation: "pay", To: "mtn-momo/ci"}}}
	stored.operators["mtn-momo"] = operatorCredentials{"ci", stored.operators["sandbox"].Accounts}
	stored.operators["mtn"] = operatorCredentials{"m1", stored.operators["sandbox"].Accounts}
	pin, routed := stored.accountOf(serviceView{"mtn", "CI", "pay", "web"})
	checkEqual(t, "web", selectionText(pin, routed), "mtn/m1 (default)")
	pin, routed = stored.accountOf(serviceView{"mtn", "CI", "pay", "tpe"})
	checkEqual(t, "tpe", selectionText(pin, routed), "mtn-momo/ci")
	delete(stored.operators, "mtn")
	pin, routed = stored.accountOf(serviceView{"mtn", "CI", "pay", "web"})
	checkEqual(t, "web without accounts", selectionText(pin, routed), noRoute)
}

// Every command that writes the credentials keeps the routes. An account of a route is in use.
func TestRoutesSurviveChangesOfCredentials(t *testing.T) {
	d, _ := newRouteTool(t, "http://127.0.0.1:1")
	d.apply("operator route set sandbox ci pay --to sandbox/a2")
	routes := d.stored().routes
	d.now = d.now.Add(6 * time.Minute)
	for line, input := range map[string]string{
		"operator set -":                             `{"sandbox":{"accounts":{"a2":{"access_token":"t2"}}}}`,
		"operator rotate-token sandbox":              "t3",
		"operator rotate-token sandbox --account a2": "t4",
	} {
		d.input = input
		d.apply(line)
		checkEqual(t, line, d.stored().routes, routes)
	}
	moved := `{"sandbox":{"accounts":{"a2":{"base_url":"http://127.0.0.1:2"}}}}`
	others := `{"sandbox":{"accounts":{"a1":{},"half":{"service_id":"v"},"bad":{}}}}`
	d.input = moved
	d.expectBoth("operator set -", ExitFailed, "base_url of account a2 of sandbox cannot be changed: "+
		"route sandbox CI pay leads to it")
	d.input = others
	d.expectBoth("operator set - --replace", ExitFailed, "a2 of sandbox cannot be dropped: route sandbox CI pay leads")
	d.apply("operator route set sandbox ci pay --to none")
	d.now = d.now.Add(4 * time.Minute)
	d.expectBoth("operator set - --replace", ExitFailed, "a2 of sandbox cannot be dropped: functions may use it")
	d.now = d.now.Add(2 * time.Minute)
	d.apply("operator set - --replace")
	checkEqual(t, "the dropped account", len(d.storedAccount("sandbox", "a2")), 0)
	d.apply("operator route set sandbox ci pay --to sandbox/half")
	d.now = d.now.Add(6 * time.Minute)
	d.input = `{"orange":{"current":"o","accounts":{"o":{}}}}`
	d.expectBoth("operator set - --replace", ExitUsage, "orange.accounts.o is incomplete")
	d.input = `{"sandbox":{"accounts":{"a1":{},"half":{}}}}`
	d.apply("operator set - --replace")
	checkEqual(t, "routes after --replace", d.stored().routes["sandbox"][0].To, "sandbox/half")
}

// An id from before routes may have a slash. A transaction is pinned to it as to platform/id.
func TestAccountInUseWithASlash(t *testing.T) {
	d, shop := newRouteTool(t, "http://127.0.0.1:1")
	d.replaceInSecret(`"half"`, `"sandbox/2024"`)
	e := d.mustReadEntry(d.addUnknownPayment(shop))
	e.Operator, e.Account = "sandbox", "sandbox/2024"
	d.ledger.Overwrite(e)
	d.input = `{"sandbox":{"accounts":{"sandbox/2024":{"service_id":"v","base_url":"http://127.0.0.1:2"}}}}`
	d.expectBoth("operator set -", ExitFailed, "base_url of account sandbox/2024 of sandbox cannot be changed")
	d.input = `{"sandbox":{"accounts":{"a1":{},"a2":{},"bad":{}}}}`
	d.expectBoth("operator set - --replace", ExitFailed, "sandbox/2024 of sandbox cannot be dropped: it has 1")
	d.replaceInSecret(`"current":"a1"`, `"current":"sandbox/2024"`)
	e.State, e.Status, e.PollAt = ledger.Done, ledger.Successful, time.Time{}
	d.ledger.Overwrite(e)
	d.expectBoth("operator set - --replace", ExitUsage, "there is no account")
	d.input = `{"sandbox":{"current":"a1","accounts":{"a1":{},"a2":{},"bad":{}}}}`
	d.expectBoth("operator set - --replace", ExitFailed, "sandbox/2024 of sandbox cannot be dropped: it is current")
}

func TestRouteList(t *testing.T) {
	d, _ := newRouteTool(t, "http://127.0.0.1:1")
	d.onboard("ShopB")
	d.apply("operator route set sandbox ci pay --channel ussd --to sandbox/a2", "merchant suspend ShopB")
	services := query[[]routedService](d, "operator route list")
	checkEqual(t, "services", len(services), 30)
	of := map[string]routedService{}
	for _, service := range services {
		of[service.text()] = service
	}
	checkEqual(t, "the route", of["sandbox CI pay ussd"],
		routedService{serviceView{"sandbox", "CI", "pay", "ussd"}, "sandbox", "a2", "route", 1})
	checkEqual(t, "the default", of["sandbox CI sms"],
		routedService{serviceView{"sandbox", "CI", "sms", ""}, "sandbox", "a1", "default", 1})
	checkEqual(t, "another country", of["sandbox TN charge"].Merchants, 0)
	_, out, _ := d.run("operator route list mtn --json")
	checkEqual(t, "JSON of none", out, "[]\n")
	_, out, _ = d.run("operator route list sandbox --json")
	checkEqual(t, "JSON", strings.HasPrefix(out, `[
  {
    "operator": "sandbox",
    "country": "CI",
    "operation": "charge",
    "platform": "sandbox",
    "account": "a1",
    "by": "default",
    "merchants": 1
  },
`), true)
}

func TestRouteCheck(t *testing.T) {
	address, methods := newTokenServer(t)
	d, _ := newRouteTool(t, address)
	d.expectExit("operator route check", ExitDone, "There is none")
	d.apply("operator route set sandbox ci pay --to sandbox/a2", "operator route set sandbox sn pay --to sandbox/a2")
	good := []routeResult{
		{serviceView{"sandbox", "CI", "pay", ""}, "sandbox/a2", true, ""},
		{serviceView{"sandbox", "SN", "pay", ""}, "sandbox/a2", true, ""},
	}
	checkEqual(t, "good routes", query[[]routeResult](d, "operator route check"), good)
	checkEqual(t, "lookups of one account", maps.Clone(methods), map[string]int{"GET": 1})
	d.apply("operator route set sandbox ci sms --to sandbox/bad")
	d.replaceInSecret("sandbox/a2", "sandbox/a8")
	code, out, stderr := d.run("operator route check")
	if code != ExitFailed || !strings.Contains(out, `has no account "a8"`) || !strings.Contains(out, "401") ||
		!strings.Contains(stderr, "a route does not work") || strings.Contains(out+stderr, "good") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
}

// attention also checks the accounts of routes.
func TestAttentionChecksRoutes(t *testing.T) {
	d, _ := newRouteTool(t, "http://127.0.0.1:1")
	d.replaceInSecret("{", `{"routes":{"sandbox":[{"country":"CI","operation":"pay","to":"sandbox/a8"},`+
		`{"country":"CI","operation":"sms","to":"other/a1"}],"mtn":[{"country":"CI","operation":"pay","to":"mtn/x"}]},`)
	got := map[string]string{}
	for _, view := range d.mustAttend("attention", ExitWaiting) {
		if view.What == waitsCredentials {
			got[view.Subject] = view.Detail
		}
	}
	checkEqual(t, "accounts", got, map[string]string{
		"sandbox a8":       "the operator's account is not in the credentials: add it",
		"sandbox other/a1": "the operator's account is not in the credentials: add it",
	})
}
