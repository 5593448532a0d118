//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/shared/market"
)

// emptyAccount is docs/deploy.md's way from an account without anything to a payment: make deploy, and three commands
// of gatewayctl. It uses none of the suite's own shortcuts to a stack.
type emptyAccount struct {
	*suite
	checkout string // a copy, because a deployment writes into its checkout
	program  string // gatewayctl
	account  *account
}

// account is a proxy of LocalStack. It does what LocalStack cannot do: CloudFormation's SetStackPolicy.
type account struct {
	url        string
	localStack http.Handler

	mu        sync.Mutex
	protected []string // stacks with a policy
}

// openAccount serves an account.
func openAccount(localStack string) (*account, error) {
	target, err := url.Parse(localStack)
	if err != nil {
		return nil, err
	}
	a := &account{localStack: harness.NewProxy(target)}
	a.url, err = harness.ListenAndServe("127.0.0.1", a)
	return a, err
}

// maxQueryBytes bounds a request of CloudFormation: a template has at most 51,200 bytes in it.
const maxQueryBytes = 1 << 20

// ServeHTTP implements http.Handler.
func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"),
		"application/x-www-form-urlencoded") {
		a.localStack.ServeHTTP(w, r)
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQueryBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	query, err := url.ParseQuery(string(text))
	if err == nil && query.Get("Action") == "SetStackPolicy" {
		a.mu.Lock()
		a.protected = append(a.protected, query.Get("StackName"))
		a.mu.Unlock()
		_, _ = io.WriteString(w, `<SetStackPolicyResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">`+
			`<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></SetStackPolicyResponse>`)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	a.localStack.ServeHTTP(w, r)
}

// isProtected reports whether a stack has a policy.
func (a *account) isProtected(stack string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.protected, stack)
}

// onboarded is a merchant as merchant add prints it.
type onboarded struct {
	Name         string `json:"name"`
	BaseURL      string `json:"base_url"`
	AccessToken  string `json:"access_token"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// The times that parts of the story may take.
const (
	firstDeployTimeout = 10 * time.Minute
	paymentTimeout     = time.Minute
)

// runEmptyAccountStory makes a gateway as one stack, and another one with its data in a stack of its own.
func (s *suite) runEmptyAccountStory(ctx context.Context) error {
	a := &emptyAccount{suite: s, checkout: filepath.Join(s.Dir, "checkout")}
	if err := copyCheckout(ctx, s.Root, a.checkout); err != nil {
		return err
	}
	var err error
	if a.account, err = openAccount(s.server.url); err != nil {
		return err
	}
	if a.program, err = harness.BuildProgram(ctx, s.Dir, "gatewayctl"); err != nil {
		return err
	}
	for _, g := range []struct{ stack, data string }{{"account-one", ""}, {"account-two", "account-two-data"}} {
		if err := a.makeGateway(ctx, g.stack, g.data); err != nil {
			return fmt.Errorf("the stack %s: %w", g.stack, err)
		}
	}
	for _, stack := range []string{"account-one", "account-two"} { // its sweeps would slow the other stories down
		if _, err := s.server.callStack(ctx, "DeleteStack", stack); err != nil {
			return err
		}
	}
	return nil
}

// makeGateway deploys a gateway, and makes a merchant's first payment. data is the stack of its data, "" for its own.
func (a *emptyAccount) makeGateway(ctx context.Context, stack, data string) (err error) {
	g := &suite{Workspace: a.Workspace, stack: stack, environments: a.environments, server: a.server}
	g.Dir = filepath.Join(a.Dir, stack)
	if err := os.MkdirAll(g.Dir, 0o700); err != nil {
		return err
	}
	if g.stubs, err = harness.NewStubs(g.Dir, "127.0.0.1"); err != nil {
		return err
	}
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	base := "http://" + g.listener.Addr().String()
	// LocalStack has no address of a stage that this machine can resolve, and its functions run here.
	given := "BaseUrl=" + base + " Architecture=" + a.parameters["Architecture"]
	if data != "" {
		given += " DataStack=" + data
	}
	if err := a.make(ctx, filepath.Join(g.Dir, "deploy.log"), "ENV=dev", "STACK="+stack, "YES=1",
		"PARAMETERS="+given); err != nil {
		return err
	}
	if g.outputs, err = g.server.readOutputs(ctx, stack); err != nil {
		return err
	}
	if err := a.checkData(ctx, stack, data); err != nil {
		return err
	}
	handler, err := g.limitedProxy()
	if err != nil {
		return err
	}
	harness.Serve(g.listener, handler)
	a.Logf("%s: make deploy", stack)
	shop, err := a.setUp(ctx, g)
	if err != nil {
		return err
	}
	if shop.BaseURL != base {
		return fmt.Errorf("the merchant is shown the address %q, want %s", shop.BaseURL, base)
	}
	if err := payAndWait(ctx, shop); err != nil {
		return err
	}
	a.Logf("%s: a payment is successful", stack)
	return nil
}

// setUp runs the three commands after a deployment. The first one is run again, which must change nothing.
func (a *emptyAccount) setUp(ctx context.Context, g *suite) (shop onboarded, err error) {
	credentials, senders := filepath.Join(g.Dir, "operators.json"), map[string]string{}
	for _, country := range market.All() { // the sandbox serves each
		senders[country.Alpha2] = country.SenderPrefix() + "0000"
	}
	text, err := json.Marshal(map[string]any{"sandbox": map[string]any{
		"current": "first", "accounts": map[string]any{"first": map[string]any{
			"base_url": g.stubs.SandboxURL, "access_token": g.stubs.SandboxToken, "service_id": g.outputs["ServiceId"],
			"application_id": g.outputs["ApplicationId"], "contact_id": g.outputs["ContactId"],
			"user_sms": map[string]any{
				"gw_token": "first-gw-token", "sender": senders, "sender_name": "Gateway",
			},
		}},
	}})
	if err != nil {
		return shop, err
	}
	if err := os.WriteFile(credentials, text, 0o600); err != nil {
		return shop, err
	}
	run := func(into any, variables []string, arguments ...string) error {
		return a.gatewayctl(ctx, into, variables, append([]string{"--stack", g.stack, "--json"}, arguments...)...)
	}
	confirm := []string{"--yes", "--reason", "the first deployment"}
	initialise := []string{"init", "--credentials", credentials}
	for _, c := range []struct {
		flags []string
		want  string
	}{{nil, "would be done"}, {confirm, "done"}, {confirm, "there already"}} {
		var steps []step
		if err := run(&steps, nil, slices.Concat(initialise, c.flags)...); err != nil {
			return shop, err
		}
		// Three rings of keys, and the credentials; after them the checks of these.
		if count(steps, c.want) < 4 || count(steps, "failed")+count(steps, "open") > 0 {
			return shop, fmt.Errorf("init %v: %+v, want four steps %q", c.flags, steps, c.want)
		}
	}
	a.Logf("%s: gatewayctl init", g.stack)
	add := []string{"merchant", "add", "FirstShop", "--country", "ci", "--operator", "sandbox", "--notif-url",
		g.stubs.InboxURL + "/inbox"}
	if err := run(&shop, nil, slices.Concat(add, confirm)...); err != nil {
		return shop, err
	}
	var checks []struct {
		Check, Error string
		OK           bool
	}
	variables := []string{"MERCHANT=" + shop.Name, "CLIENT_ID=" + shop.ClientID, "ACCESS_TOKEN=" + shop.AccessToken,
		"CLIENT_SECRET=" + shop.ClientSecret}
	failed := run(&checks, variables, "smoke") // it fails if one check fails
	passed := 0
	for _, c := range checks {
		switch known := slices.Contains(unknownRoutes, c.Check); {
		case c.OK:
			passed++
		case !known || !strings.Contains(c.Error, "403"):
			return shop, fmt.Errorf("smoke: %s: %s", c.Check, c.Error)
		}
	}
	if passed < 25 {
		return shop, fmt.Errorf("smoke: %d checks passed: %w", passed, failed)
	}
	a.Logf("%s: gatewayctl merchant add, and %d of %d checks of gatewayctl smoke", g.stack, passed, len(checks))
	return shop, nil
}

// unknownRoutes are the checks of smoke for which LocalStack responds 403: it has no responses of an API for a request
// that no route takes.
var unknownRoutes = []string{
	"the root", "an unknown path", "an unknown path, a token", "an unknown method of pay",
	"an unknown method of charge", "an unknown version",
}

// step is a row of init.
type step struct{ Step, State, Detail string }

func count(steps []step, state string) (found int) {
	for _, s := range steps {
		if s.State == state {
			found++
		}
	}
	return found
}

// checkData checks that the tables and secrets are where they should be.
func (a *emptyAccount) checkData(ctx context.Context, stack, data string) error {
	if data == "" {
		if outputs, err := a.server.readOutputs(ctx, stack+"-data"); err == nil && len(outputs) > 0 {
			return fmt.Errorf("a stack %s-data was made", stack)
		}
		return nil
	}
	outputs, err := a.server.readOutputs(ctx, data)
	if err != nil {
		return err
	}
	gateway, err := a.server.readOutputs(ctx, stack)
	if err != nil {
		return err
	}
	for _, name := range []string{"LedgerTable", "MerchantTable", "OperatorSecret"} {
		if outputs[name] == "" || outputs[name] != gateway[name] {
			return fmt.Errorf("%s is %q in the data stack, %q in the gateway's", name, outputs[name], gateway[name])
		}
	}
	if !a.account.isProtected(data) {
		return fmt.Errorf("the stack %s has no policy against replacement", data)
	}
	return nil
}

// payAndWait sends a payment to the address that the merchant got, and waits until its status is successful.
func payAndWait(ctx context.Context, shop onboarded) error {
	header := http.Header{}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + shop.AccessToken, "Content-Type": "application/json", "mno-name": "sandbox",
		"country-code": "CI", "channel": "ussd", "lang": "en",
	} {
		header.Set(name, value)
	}
	body, err := json.Marshal(map[string]string{
		"order_id": shop.Name + "_1", "amount": "1500", "currency": "XOF", "reference": shop.Name, "state": "first",
		"user_msisdn": "0700002000", "return_url": "https://shop.example/", "cancel_url": "https://shop.example/",
	})
	if err != nil {
		return err
	}
	_, _, err = harness.Call(ctx, http.MethodPost, shop.BaseURL+"/mobilemoney/v1", string(body), header)
	if err != nil {
		return err
	}
	return harness.Poll(ctx, paymentTimeout, func() error {
		text, _, err := harness.Call(ctx, http.MethodGet, shop.BaseURL+"/mobilemoney/v1/getStatus/"+shop.Name+"_1", "",
			header)
		if err != nil {
			return err
		}
		var found struct{ Status string }
		if err := json.Unmarshal(text, &found); err != nil || found.Status != "successful" {
			return fmt.Errorf("the payment is %s", text)
		}
		return nil
	})
}

// environment leads the AWS tools to LocalStack.
func (a *emptyAccount) environment() []string {
	environment := append(harness.SAMEnvironment(a.Workspace, ""), "SAM_CLI_POLL_DELAY=1", "ALLOW_LOOPBACK=true")
	environment = slices.DeleteFunc(environment, func(variable string) bool {
		return strings.HasPrefix(variable, "GOFLAGS=") || strings.HasPrefix(variable, "CGO_ENABLED=")
	})
	values := a.server.environment()
	values["AWS_ENDPOINT_URL"] = a.account.url
	for _, name := range slices.Sorted(maps.Keys(values)) {
		environment = append(environment, name+"="+values[name])
	}
	return environment
}

// make runs make deploy in the copy of the checkout.
func (a *emptyAccount) make(ctx context.Context, log string, variables ...string) error {
	ctx, cancel := context.WithTimeout(ctx, firstDeployTimeout)
	defer cancel()
	command := harness.Command{Log: log, Dir: a.checkout, Environment: a.environment()}
	return command.Run(ctx, "make", append([]string{"deploy"}, variables...)...)
}

// gatewayctl runs a command, and decodes its output, also if the command fails.
func (a *emptyAccount) gatewayctl(ctx context.Context, into any, variables []string, arguments ...string) error {
	command := exec.CommandContext(ctx, a.program, arguments...)
	command.Env = append(a.environment(), variables...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("gatewayctl %s: %w\n%s%s", strings.Join(arguments, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return errors.Join(err, json.Unmarshal(stdout.Bytes(), into))
}

// copyCheckout copies the files that git knows, and the tools by a link.
func copyCheckout(ctx context.Context, from, to string) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-co", "--exclude-standard", "-z")
	list.Dir = from
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", from, err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue // removed, and not yet committed
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(to, ".local"), 0o700); err != nil {
		return err
	}
	return os.Symlink(harness.ToolsDir(from), filepath.Join(to, ".local", "tools"))
}
