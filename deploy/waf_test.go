package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"mobilegateway/world/template"
)

// The rules of the kinds of requests.
const (
	merchantRules  = "AddressRate"
	callbackRules  = "CallbackRate AddressRate"
	tokenRules     = "AnonymousRate AddressRate"
	anonymousRules = "AnonymousRate AnonymousTotal AddressRate"
	wrongMethod    = "CallbackMethod"
	tooLarge       = "BodySize"
)

// TestExemptions checks which requests escape the rates of anonymous requests: those with a gateway's token, callbacks
// and, from the rate of all addresses, those of a token. The path counts as it was sent.
func TestExemptions(t *testing.T) {
	const lookup = "/mobilemoney/v1/getStatus/Shop_1"
	const callback = "/callbacks/v1/payments/orange/Shop_1/t"
	rules := mustLoadWAFRules(t)
	for _, c := range []struct {
		method, path, authorization, want string
	}{
		{"GET", lookup, "Bearer gwl_x", merchantRules},
		{"GET", lookup, "Bearer gws_x", merchantRules},
		{"GET", lookup, "bearer gws_x", merchantRules},
		{"POST", "/mobilemoney/v1", "BEARER GWL_x", merchantRules},
		{"POST", "/token", "Bearer gwl_x", merchantRules},
		{"GET", lookup, "", anonymousRules},
		{"GET", lookup, "Bearer x", anonymousRules},
		{"GET", lookup, "Bearer  gwl_x", anonymousRules},
		{"GET", lookup, "gwl_x", anonymousRules},
		{"GET", lookup, "Basic Bearer gwl_x", anonymousRules},
		{"GET", "/", "", anonymousRules},
		{"GET", "/x", "", anonymousRules},
		{"OPTIONS", lookup, "", anonymousRules},

		{"POST", callback, "", callbackRules},
		{"PUT", callback, "", callbackRules},
		{"POST", callback, "Bearer gwl_x", callbackRules},
		{"POST", "/dev" + callback, "", callbackRules},
		{"PUT", "/prod1/callbacks/v1/accounts/payments/mtn/a/s", "", callbackRules},
		{"POST", "/callbacks/v1/payments/orange/Shop%2F1/t", "", callbackRules},
		{"POST", "/callbacks/v1/", "", callbackRules},
		{"GET", callback, "", wrongMethod},
		{"HEAD", callback, "", wrongMethod},
		{"DELETE", "/dev" + callback, "", wrongMethod},
		{"post", callback, "", wrongMethod},
		{"POSTS", callback, "", wrongMethod},
		{"GET", "/callbacks/v1/x", "Bearer gwl_x", wrongMethod},
		{"POST", "/callbacks/v1", "", anonymousRules},
		{"GET", "/callbacks/v1", "", anonymousRules},
		{"POST", "/callbacks/x", "", anonymousRules},
		{"POST", "/Callbacks/v1/x", "", anonymousRules},
		{"POST", "/DEV" + callback, "", anonymousRules},
		{"POST", "/a/b/callbacks/v1/x", "", anonymousRules},
		{"POST", "//callbacks/v1/x", "", anonymousRules},
		{"POST", "/c%61llbacks/v1/payments/orange/Shop_1/t", "", anonymousRules},
		{"POST", "/dev%2Fcallbacks%2Fv1%2Fx", "", anonymousRules},
		{"POST", lookup + "/callbacks/v1/x", "", anonymousRules},
		{"GET", lookup + "/callbacks/v1/x", "", anonymousRules},
		{"POST", lookup + "%2Fcallbacks%2F", "", anonymousRules},
		{"POST", lookup + "%2Fcallbacks%2Fv1%2F", "", anonymousRules},
		{"POST", lookup + "%252Fcallbacks%252Fv1%252F", "", anonymousRules},
		{"POST", "/payment/v1/x%2Fcallbacks%2Fv1%2F/transactions/", "", anonymousRules},
		{"GET", lookup + "%2Fcallbacks%2Fv1%2Fx", "Bearer gwl_x", merchantRules},

		{"POST", "/token", "Basic x", tokenRules},
		{"POST", "/token", "", tokenRules},
		{"POST", "/token/", "", tokenRules},
		{"POST", "/prod/token", "", tokenRules},
		{"GET", "/token", "", tokenRules},
		{"POST", "/tokens", "", anonymousRules},
		{"POST", "/token//", "", anonymousRules},
		{"POST", "/token/x", "", anonymousRules},
		{"POST", "/Token", "", anonymousRules},
		{"POST", "//token", "", anonymousRules},
		{"POST", "/%74oken", "", anonymousRules},
		{"POST", "/dev%2Ftoken", "", anonymousRules},
		{"POST", lookup + "/token", "", anonymousRules},
		{"POST", lookup + "%2Ftoken", "", anonymousRules},
	} {
		request := wafRequest{method: c.method, path: c.path, authorization: c.authorization, bodyBytes: 64 << 10}
		if got := matchedRules(rules, request); got != c.want {
			t.Errorf("%s %s with %q matches %s, want %s", c.method, c.path, c.authorization, got, c.want)
		}
		request.bodyBytes++
		if got := matchedRules(rules, request); got != tooLarge {
			t.Errorf("%s %s with a larger body matches %s, want %s", c.method, c.path, got, tooLarge)
		}
	}
}

// TestRulesOfRoutes checks every route of template.yaml, at a domain and at the stage's own address.
func TestRulesOfRoutes(t *testing.T) {
	deployed, err := template.Load(filepath.Join(checkout, "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rules := mustLoadWAFRules(t)
	count := map[string]int{}
	for _, route := range deployed.Routes {
		want := map[string]string{
			"NotifFunction": callbackRules, "ReceiptFunction": callbackRules, "TokenFunction": tokenRules,
		}[route.Function]
		want = cmp.Or(want, anonymousRules)
		count[want]++
		for _, stage := range []string{"", "/dev", "/staging", "/prod"} {
			if got := matchedRules(rules, wafRequest{method: route.Method, path: stage + route.Resource}); got != want {
				t.Errorf("%s %s%s of %s matches %s, want %s", route.Method, stage, route.Resource, route.Function, got,
					want)
			}
		}
	}
	if len(count) != 3 {
		t.Errorf("the routes match %v, want callbacks, tokens and others", count)
	}
}

// TestRuleResponses checks the response of each rule, and what docs/security.md states of the rates. AWS counts them.
func TestRuleResponses(t *testing.T) {
	var acl struct {
		Parameters map[string]struct {
			Default string `yaml:"Default"`
		} `yaml:"Parameters"`
		Resources struct {
			WebACL struct {
				Properties struct {
					DefaultAction map[string]map[string]string `yaml:"DefaultAction"`
					Bodies        map[string]map[string]string `yaml:"CustomResponseBodies"`
				} `yaml:"Properties"`
			} `yaml:"WebAcl"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(read(t, "deploy/waf.yaml"), &acl); err != nil {
		t.Fatal(err)
	}
	if action := fmt.Sprint(acl.Resources.WebACL.Properties.DefaultAction); action != "map[Allow:map[]]" {
		t.Errorf("the default action is %s, want Allow", action)
	}
	code := regexp.MustCompile(`"messageId":"\w+"`)
	var got []string
	for _, rule := range mustLoadWAFRules(t) {
		response, rate := rule.Action.Block.Response, rule.Statement.Rate
		body := acl.Resources.WebACL.Properties.Bodies[response.BodyKey]
		line := fmt.Sprintf("%s %d %s %v", rule.Name, response.Code, code.FindString(body["Content"]), response.Headers)
		if rate != nil {
			line += fmt.Sprintf(" over %s in %d s by %s", acl.Parameters[rate.Limit].Default, rate.Seconds, rate.Key)
		}
		got = append(got, line)
	}
	const throttled = ` 429 "messageId":"900800" [map[Name:Retry-After Value:60]] over `
	want := []string{
		`BodySize 413 "messageId":"SVC0002" []`,
		`CallbackMethod 404 "messageId":"900906" []`,
		"CallbackRate" + throttled + "6000 in 60 s by IP",
		"AnonymousRate" + throttled + "50 in 60 s by IP",
		"AnonymousTotal" + throttled + "600 in 60 s by CONSTANT",
		"AddressRate" + throttled + "6000 in 60 s by IP",
		"KnownBadInputs 0  []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rules are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestUnsupportedRules checks that no rule is evaluated in part.
func TestUnsupportedRules(t *testing.T) {
	text := string(read(t, "deploy/waf.yaml"))
	for name, c := range map[string][2]string{
		"another field":         {"{UriPath: {}}", "{QueryString: {}}"},
		"another header":        {"Name: authorization}", "Name: x-token}"},
		"another position":      {"PositionalConstraint: EXACTLY", "PositionalConstraint: ENDS_WITH"},
		"a decoded path":        {"{Priority: 0, Type: NONE}", "{Priority: 0, Type: URL_DECODE}"},
		"a decoded header":      {"Type: LOWERCASE", "Type: URL_DECODE"},
		"an invalid regex":      {"^(/[a-z0-9]+)?/token", "^((/[a-z0-9]+)?/token"},
		"another operator":      {"ComparisonOperator: GT", "ComparisonOperator: LT"},
		"another oversize":      {"OversizeHandling: MATCH", "OversizeHandling: CONTINUE"},
		"another statement":     {"RegexMatchStatement:", "LabelMatchStatement:"},
		"two statements":        {"            SizeC", "            NotStatement: {}\n            SizeC"},
		"another action":        {"Action: {Block:", "Action: {Count:"},
		"another field of rate": {"AggregateKeyType: IP", "ForwardedIPConfig: {}"},
		"another resource":      {"  WebAcl:", "  Other:"},
	} {
		changed := strings.ReplaceAll(text, c[0], c[1])
		if _, err := loadWAFRules([]byte(changed)); err == nil || changed == text {
			t.Errorf("%s was accepted", name)
		}
	}
}
