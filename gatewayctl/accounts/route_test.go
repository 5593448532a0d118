package accounts_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// newRouteTool returns a tool whose merchant may use the sandbox in Ivory Coast. Its accounts are a1, the current one,
// a2, half without a service_id, and bad with another token.
func newRouteTool(t *testing.T, address string) (*gatewayctltest.Tool, merchants.Onboarding) {
	t.Helper()
	d, shop := gatewayctltest.NewShop(t)
	accounts := map[string]any{}
	for id, token := range map[string]string{"a1": "good", "a2": "good", "half": "good", "bad": "bad"} {
		account := gatewayctltest.NewAccount(t, "sandbox", address, token)
		if id == "half" {
			delete(account, "service_id")
		}
		accounts[id] = gatewayctltest.AccountDocument(account)
	}
	d.Vault.Values["operators"] = []byte(gatewayctltest.CredentialsDocument(t, "sandbox", "a1", accounts))
	return d, shop
}

// inCI is a service of the sandbox in Ivory Coast.
func inCI(operation, channel string) accounts.ServiceView {
	return accounts.ServiceView{Operator: "sandbox", Country: "CI", Operation: operation, Channel: channel}
}

// storedPlatform is one platform in the secret.
type storedPlatform struct {
	Current  string
	Accounts map[string]json.RawMessage
}

// storedPlatforms returns the platforms and the routes in the secret.
func storedPlatforms(d *gatewayctltest.Tool) (platforms map[string]storedPlatform, routes map[string][]operator.Route) {
	d.T.Helper()
	if value := string(d.Vault.Values["operators"]); value != "" {
		var document struct{ Routes map[string][]operator.Route }
		gatewayctltest.Decode(d.T, value, &document)
		gatewayctltest.Decode(d.T, value, &platforms)
		routes = document.Routes
	}
	delete(platforms, "routes")
	return platforms, routes
}

func storedRoutes(d *gatewayctltest.Tool) map[string][]operator.Route {
	_, routes := storedPlatforms(d)
	return routes
}

// replaceInSecret changes a text of the stored credentials once, as a person may past the tool.
func replaceInSecret(d *gatewayctltest.Tool, from, to string) {
	d.Vault.Values["operators"] = []byte(strings.Replace(string(d.Vault.Values["operators"]), from, to, 1))
}

// storedAccount returns an account as it is stored.
func storedAccount(d *gatewayctltest.Tool, platform, id string) json.RawMessage {
	d.T.Helper()
	platforms, _ := storedPlatforms(d)
	return platforms[platform].Accounts[id]
}

// Each refusal names its reason, and what is possible. It changes nothing.
func TestRouteRefusals(t *testing.T) {
	d, _ := newRouteTool(t, "http://127.0.0.1:1")
	before := string(d.Vault.Values["operators"])
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
		d.ExpectBoth("operator route set "+line, gatewayctl.ExitUsage, want)
	}
	d.ExpectBoth("operator route set sandbox ci pay --to none", gatewayctl.ExitFailed,
		"sandbox CI pay leads to none already")
	for input, want := range map[string]string{
		`{"routes":{}}`:                       "routes: use operator route set",
		`{"Routes":{"mtn":[]}}`:               "Routes: use operator route set",
		`{"sandbox":{"accounts":{"a/3":{}}}}`: `the id "a/3" of a new account has a slash: choose another id`,
	} {
		d.Input = input
		d.ExpectBoth("operator set -", gatewayctl.ExitUsage, want)
	}
	d.Equal("the credentials", string(d.Vault.Values["operators"]), before)
}

// A dry run shows what changes. Live transactions stay with the account that the route leaves.
func TestRouteSet(t *testing.T) {
	d, shop := newRouteTool(t, "http://127.0.0.1:1")
	d.AddUnknownPayment(shop)
	d.AddDeliveredPayment(shop, 2, d.Now)
	const line, left = "operator route set sandbox ci pay --to Sandbox/a2", "sandbox/a1 stops taking new orders"
	before := string(d.Vault.Values["operators"])
	d.ExpectExit(line, gatewayctl.ExitDone, left+" of the services below; its live transactions (1) stay with it.")
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
	_, out, _ := d.Exec(line + " --json" + gatewayctltest.Confirm)
	d.Equal("JSON", out, "[\n"+change("web")+",\n"+change("tpe")+",\n"+change("ussd")+"\n]\n")
	d.Equal("routes", storedRoutes(d), map[string][]operator.Route{
		"sandbox": {{Country: "CI", Operation: "pay", To: "sandbox/a2"}},
	})
	d.ExpectBoth(line, gatewayctl.ExitFailed, "nothing changes")
	d.ExpectOutput("audit", "set a route", "sandbox CI pay", "none -> sandbox/a2")

	// A route with a channel comes before the one for all channels.
	d.Apply("operator route set sandbox ci pay --channel tpe --to sandbox/a1")
	d.Equal("routes", storedRoutes(d)["sandbox"], []operator.Route{
		{Country: "CI", Operation: "pay", Channel: "tpe", To: "sandbox/a1"},
		{Country: "CI", Operation: "pay", To: "sandbox/a2"},
	})
	d.Apply("operator route set sandbox ci pay --to none")
	const remove = "operator route set sandbox ci pay --channel tpe --to none"
	d.ExpectJSON("without the route", remove,
		[]accounts.RouteChange{{ServiceView: inCI("pay", "tpe"), From: "sandbox/a1", To: "sandbox/a1 (default)"}})
	d.Apply(remove)
	d.Equal("routes after the last one", string(d.Vault.Values["operators"]), before)
}

// Every command that writes the credentials keeps the routes. An account of a route is in use.
func TestRoutesSurviveChangesOfCredentials(t *testing.T) {
	d, _ := newRouteTool(t, "http://127.0.0.1:1")
	d.Apply("operator route set sandbox ci pay --to sandbox/a2")
	routes := storedRoutes(d)
	d.Now = d.Now.Add(6 * time.Minute)
	for line, input := range map[string]string{
		"operator set -":                             `{"sandbox":{"accounts":{"a2":{"access_token":"t2"}}}}`,
		"operator rotate-token sandbox":              "t3",
		"operator rotate-token sandbox --account a2": "t4",
	} {
		d.Input = input
		d.Apply(line)
		d.Equal(line, storedRoutes(d), routes)
	}
	moved := `{"sandbox":{"accounts":{"a2":{"base_url":"http://127.0.0.1:2"}}}}`
	others := `{"sandbox":{"accounts":{"a1":{},"half":{"service_id":"v"},"bad":{}}}}`
	d.Input = moved
	d.ExpectBoth("operator set -", gatewayctl.ExitFailed, "base_url of account a2 of sandbox cannot be changed: "+
		"route sandbox CI pay leads to it")
	d.Input = others
	d.ExpectBoth("operator set - --replace", gatewayctl.ExitFailed,
		"a2 of sandbox cannot be dropped: route sandbox CI pay leads")
	d.Apply("operator route set sandbox ci pay --to none")
	d.Now = d.Now.Add(4 * time.Minute)
	d.ExpectBoth("operator set - --replace", gatewayctl.ExitFailed,
		"a2 of sandbox cannot be dropped: functions may use it")
	d.Now = d.Now.Add(2 * time.Minute)
	d.Apply("operator set - --replace")
	d.Equal("the dropped account", len(storedAccount(d, "sandbox", "a2")), 0)
	d.Apply("operator route set sandbox ci pay --to sandbox/half")
	d.Now = d.Now.Add(6 * time.Minute)
	d.Input = `{"orange":{"current":"o","accounts":{"o":{}}}}`
	d.ExpectBoth("operator set - --replace", gatewayctl.ExitUsage, "orange.accounts.o is incomplete")
	d.Input = `{"sandbox":{"accounts":{"a1":{},"half":{}}}}`
	d.Apply("operator set - --replace")
	d.Equal("routes after --replace", storedRoutes(d)["sandbox"][0].To, "sandbox/half")
}

// An id from before routes may have a slash. A transaction is pinned to it as to platform/id.
func TestAccountInUseWithASlash(t *testing.T) {
	d, shop := newRouteTool(t, "http://127.0.0.1:1")
	replaceInSecret(d, `"half"`, `"sandbox/2024"`)
	e := d.MustReadEntry(d.AddUnknownPayment(shop))
	e.Route.Operator, e.Route.Account = "sandbox", "sandbox/2024"
	d.Ledger.Overwrite(e)
	d.Input = `{"sandbox":{"accounts":{"sandbox/2024":{"service_id":"v","base_url":"http://127.0.0.1:2"}}}}`
	d.ExpectBoth("operator set -", gatewayctl.ExitFailed,
		"base_url of account sandbox/2024 of sandbox cannot be changed")
	d.Input = `{"sandbox":{"accounts":{"a1":{},"a2":{},"bad":{}}}}`
	d.ExpectBoth("operator set - --replace", gatewayctl.ExitFailed,
		"sandbox/2024 of sandbox cannot be dropped: it has 1")
	replaceInSecret(d, `"current":"a1"`, `"current":"sandbox/2024"`)
	e.State, e.Status, e.Poll.At = ledger.Done, ledger.Successful, time.Time{}
	d.Ledger.Overwrite(e)
	d.ExpectBoth("operator set - --replace", gatewayctl.ExitUsage, "there is no account")
	d.Input = `{"sandbox":{"current":"a1","accounts":{"a1":{},"a2":{},"bad":{}}}}`
	d.ExpectBoth("operator set - --replace", gatewayctl.ExitFailed,
		"sandbox/2024 of sandbox cannot be dropped: it is current")
}

func TestRouteList(t *testing.T) {
	d, _ := newRouteTool(t, "http://127.0.0.1:1")
	d.Onboard("ShopB")
	d.Apply("operator route set sandbox ci pay --channel ussd --to sandbox/a2", "merchant suspend ShopB")
	services := gatewayctltest.Query[[]accounts.RoutedService](d, "operator route list")
	d.Equal("services", len(services), 30)
	of := map[string]accounts.RoutedService{}
	for _, service := range services {
		of[service.Text()] = service
	}
	d.Equal("the route", of["sandbox CI pay ussd"], accounts.RoutedService{
		ServiceView: inCI("pay", "ussd"), Platform: "sandbox", Account: "a2", By: "route", Merchants: 1})
	d.Equal("the default", of["sandbox CI sms"], accounts.RoutedService{
		ServiceView: inCI("sms", ""), Platform: "sandbox", Account: "a1", By: "default", Merchants: 1})
	d.Equal("another country", of["sandbox TN charge"].Merchants, 0)
	_, out, _ := d.Exec("operator route list mtn --json")
	d.Equal("JSON of none", out, "[]\n")
	_, out, _ = d.Exec("operator route list sandbox --json")
	d.Equal("JSON", strings.HasPrefix(out, `[
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
	address, methods := gatewayctltest.NewTokenServer(t)
	d, _ := newRouteTool(t, address)
	d.ExpectExit("operator route check", gatewayctl.ExitDone, "There is none")
	d.Apply("operator route set sandbox ci pay --to sandbox/a2", "operator route set sandbox sn pay --to sandbox/a2")
	inSN := accounts.ServiceView{Operator: "sandbox", Country: "SN", Operation: "pay"}
	good := []accounts.RouteResult{
		{ServiceView: inCI("pay", ""), To: "sandbox/a2", OK: true}, {ServiceView: inSN, To: "sandbox/a2", OK: true},
	}
	d.ExpectJSON("good routes", "operator route check", good)
	d.Equal("lookups of one account", maps.Clone(methods), map[string]int{"GET": 1})
	d.Apply("operator route set sandbox ci sms --to sandbox/bad")
	replaceInSecret(d, "sandbox/a2", "sandbox/a8")
	code, out, stderr := d.Exec("operator route check")
	if code != gatewayctl.ExitFailed || !strings.Contains(out, `has no account "a8"`) ||
		!strings.Contains(out, "401") ||
		!strings.Contains(stderr, "a route does not work") || strings.Contains(out+stderr, "good") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
}

// attention also checks the accounts of routes.
func TestAttentionChecksRoutes(t *testing.T) {
	d, _ := newRouteTool(t, "http://127.0.0.1:1")
	replaceInSecret(d, "{", `{"routes":{"sandbox":[{"country":"CI","operation":"pay","to":"sandbox/a8"},`+
		`{"country":"CI","operation":"sms","to":"other/a1"}],"mtn":[{"country":"CI","operation":"pay","to":"mtn/x"}]},`)
	got := map[string]string{}
	for _, view := range d.Attend("attention", gatewayctl.ExitWaiting) {
		if view.What == "credentials" {
			got[view.Subject] = view.Detail
		}
	}
	d.Equal("accounts", got, map[string]string{
		"sandbox a8":       "the operator's account is not in the credentials: add it",
		"sandbox other/a1": "the operator's account is not in the credentials: add it",
	})
}
