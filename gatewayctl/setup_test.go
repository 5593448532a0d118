package gatewayctl_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/setup"
	"mobilegateway/proof/kits/gatewayctltest"
)

// person types the given values at the terminal: the first question that begins with a name gets the first value of it.
type person struct {
	values  map[string][]string
	asked   []string
	secrets []string // the questions without echo
}

func (p *person) Prompt(question string) (string, error) {
	p.asked = append(p.asked, question)
	for name, values := range p.values {
		if strings.Contains(" "+question, " "+name) && len(values) > 0 {
			p.values[name] = values[1:]
			return values[0], nil
		}
	}
	if strings.Contains(question, "may be empty") {
		return "", nil
	}
	return "", io.EOF
}

func (p *person) PromptSecret(question string) (string, error) {
	p.secrets = append(p.secrets, question)
	return p.Prompt(question)
}

// at puts the person at the terminal.
func (p *person) at(system *deployment.System) { system.Terminal = p }

// newPerson knows an account of the sandbox. The first address that it types is wrong.
func newPerson(t *testing.T, address string) *person {
	t.Helper()
	p := &person{values: map[string][]string{"Platform": {"nowhere", "Sandbox"}}}
	for path, value := range gatewayctltest.NewAccount(t, "sandbox", address, "good") {
		p.values[path] = []string{value}
	}
	p.values["base_url"] = []string{"ftp://x", address}
	return p
}

const initLine = "--stack s init --json"

// steps runs init and returns the state of each step.
func (d *stackTool) steps(t *testing.T, line string, want int, change ...func(*deployment.System)) map[string]string {
	t.Helper()
	code, out, stderr := d.exec(line, change...)
	var list []setup.Step
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != want {
		t.Fatalf("%s: exit %d, want %d; %v; %s %s", line, code, want, err, out, stderr)
	}
	found := map[string]string{}
	for _, step := range list {
		found[step.Step] = step.State
	}
	return found
}

func newEmptyStack(t *testing.T) *stackTool {
	t.Helper()
	d := newStackTool(t)
	d.Tool = gatewayctltest.New(t)
	d.Variables = map[string]string{}
	return d
}

var rings = []string{"token-keys", "token-public-keys", "callback-keys", "webhook-keys"}

// TestInitFillsAnEmptyDeployment: the dry run stores nothing and does not prompt. With --yes the keys are made, the
// credentials typed and checked. The next run finds all of it.
func TestInitFillsAnEmptyDeployment(t *testing.T) {
	d := newEmptyStack(t)
	address, methods := gatewayctltest.NewTokenServer(t)
	ama := newPerson(t, address)
	got := d.steps(t, initLine, gatewayctl.ExitDone, ama.at)
	gatewayctltest.Equal(t, "the steps of the dry run", got, map[string]string{
		"deployment": "there already", "key of tokens": "would be done", "key of callbacks": "would be done",
		"key of webhooks": "would be done", "operators' credentials": "would be done",
	})
	if d.Vault.Puts != 0 || len(d.Audit.Records) != 0 || len(ama.asked) != 0 {
		t.Fatalf("the dry run wrote %d secrets and %d records, and prompted %q", d.Vault.Puts, len(d.Audit.Records),
			ama.asked)
	}
	got = d.steps(t, initLine+" --yes --reason first", gatewayctl.ExitDone, ama.at)
	checked := map[string]string{
		"deployment": "there already", "key of tokens": "done", "key of callbacks": "done", "key of webhooks": "done",
		"operators' credentials": "done", "check sandbox/a1 charge": "done", "check sandbox/a1 pay": "done",
		"check sandbox/a1 sms": "done",
	}
	for name, state := range checked {
		if got[name] != state {
			t.Errorf("%s is %q, want %q", name, got[name], state)
		}
	}
	for _, name := range rings {
		if len(d.Vault.Values[name]) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	if !slices.ContainsFunc(ama.secrets, func(q string) bool { return strings.Contains(q, "access_token") }) ||
		slices.ContainsFunc(ama.secrets, func(q string) bool { return strings.Contains(q, "base_url") }) {
		t.Errorf("prompted without echo: %q", ama.secrets)
	}
	if methods[http.MethodPost] != 0 || methods[http.MethodGet] == 0 {
		t.Errorf("the operator got %v, want only lookups", methods)
	}
	puts, records := d.Vault.Puts, len(d.Audit.Records)
	if records != 4 {
		t.Errorf("%d changes are in the audit, want one for each ring and one for the credentials", records)
	}
	got = d.steps(t, initLine+" --yes --reason again", gatewayctl.ExitDone, ama.at)
	if got["key of tokens"] != "there already" || got["operators' credentials"] != "there already" ||
		d.Vault.Puts != puts || len(d.Audit.Records) != records {
		t.Errorf("the second run: %v, %d more writes", got, d.Vault.Puts-puts)
	}
}

// brokenSecrets refuses to store one secret.
type brokenSecrets struct {
	deployment.SecretStore
	name string
}

func (b brokenSecrets) Put(ctx context.Context, current deployment.StoredSecret, value []byte) error {
	if current.Name == b.name {
		return errors.New("no connection")
	}
	return b.SecretStore.Put(ctx, current, value)
}

// TestInitGoesOnWhereItEnded: after each failed write the next run does the rest, and no key is made twice.
func TestInitGoesOnWhereItEnded(t *testing.T) {
	address, _ := gatewayctltest.NewTokenServer(t)
	for _, broken := range slices.Concat(rings, []string{"operators"}) {
		t.Run(broken, func(t *testing.T) {
			d := newEmptyStack(t)
			file := filepath.Join(t.TempDir(), "credentials.json")
			text := gatewayctltest.CredentialsOf(t, "sandbox", "a1", gatewayctltest.NewAccount(t, "sandbox", address,
				"good"))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			line := initLine + " --yes --reason first --credentials " + file
			d.ChangeStores(func(s *deployment.Stores) { s.Secrets = brokenSecrets{s.Secrets, broken} })
			d.steps(t, line, gatewayctl.ExitFailed)
			d.ChangeStores(func(*deployment.Stores) {})
			d.steps(t, line, gatewayctl.ExitDone)
			for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
				_, out, stderr := d.exec("--stack s --json keys list " + ring)
				var list []struct{ Number int }
				if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
					t.Errorf("ring %s has %d keys, want 1: %v %s", ring, len(list), err, stderr)
				}
			}
		})
	}
}

// TestInitReadsTheInput: without a terminal the credentials come from a file or the standard input. The error names a
// field that is missing.
func TestInitReadsTheInput(t *testing.T) {
	address, _ := gatewayctltest.NewTokenServer(t)
	account := gatewayctltest.NewAccount(t, "sandbox", address, "good")
	good := gatewayctltest.CredentialsOf(t, "sandbox", "a1", account)
	wrongToken := strings.ReplaceAll(good, `"good"`, `"bad"`)
	delete(account, "service_id")
	for name, c := range map[string]struct {
		line, input string
		code        int
		want        string
		stored      bool
	}{
		"from the input": {"--credentials -", good, gatewayctl.ExitDone, "Next, a merchant and the smoke test",
			true},
		"none": {"", "", gatewayctl.ExitFailed, "give --credentials FILE, or run this at a terminal",
			false},
		"not JSON":   {"--credentials -", "{", gatewayctl.ExitUsage, "not a JSON object", false},
		"no account": {"--credentials -", "{}", gatewayctl.ExitUsage, "name no account", false},
		"a missing field": {"--credentials -", gatewayctltest.CredentialsOf(t, "sandbox", "a1", account),
			gatewayctl.ExitUsage, "service_id is missing", false},
		"a refused token": {"--credentials -", wrongToken, gatewayctl.ExitFailed,
			"operator rotate-token sandbox FILE", true},
		"two ways": {"--credentials - --operator orange", good, gatewayctl.ExitUsage, "use one of them",
			false},
		"without a reason":   {"", "", gatewayctl.ExitUsage, "--yes needs --reason", false},
		"an input that ends": {"--operator sandbox", "", gatewayctl.ExitFailed, "nothing of them was stored", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newEmptyStack(t)
			d.Input = c.input
			line := "--stack s init --yes --reason first "
			if name == "without a reason" {
				line = "--stack s init --yes "
			}
			code, out, stderr := d.exec(line+c.line, func(s *deployment.System) {
				if name == "an input that ends" {
					s.Terminal = &person{}
				}
			})
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit %d, want %d; %s %s lacks %q", code, c.code, out, stderr, c.want)
			}
			if stored := len(d.Vault.Values["operators"]) > 0; stored != c.stored {
				t.Errorf("credentials are stored: %v, want %v", stored, c.stored)
			}
		})
	}
}

// TestInitShowsNoSecret: neither the output nor the audit has a credential.
func TestInitShowsNoSecret(t *testing.T) {
	d := newEmptyStack(t)
	const token = "a-very-secret-token"
	ama := newPerson(t, "http://127.0.0.1:1")
	ama.values["access_token"] = []string{"not a token", token}
	_, out, stderr := d.exec("--stack s init --yes --reason first --operator sandbox --timeout 1s", ama.at)
	records, err := json.Marshal(d.Audit.Records)
	if err != nil || len(d.Audit.Records) != 4 {
		t.Fatalf("%d records, %v", len(d.Audit.Records), err)
	}
	stored := string(d.Vault.Values["operators"])
	all := out + stderr + string(records) + strings.Join(ama.asked, "")
	if strings.Contains(all, token) || strings.Contains(all, "not a token") || !strings.Contains(stored, token) {
		t.Errorf("a secret is shown, or none is stored: %s", all)
	}
}

// TestInitNeedsTheDeployment: without a stack it names each variable that is not set.
func TestInitNeedsTheDeployment(t *testing.T) {
	d := newEmptyStack(t)
	code, _, stderr := d.exec("init")
	if code != gatewayctl.ExitUsage || !strings.Contains(stderr, "LEDGER_TABLE") ||
		!strings.Contains(stderr, "CALLBACK_KEY_SECRET") || strings.Contains(stderr, "SANDBOX_URL") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestSmokeCommand: a server that refuses as the contract says passes the open checks, and another one fails. The first
// request is a curl without a secret.
func TestSmokeCommand(t *testing.T) {
	d := newEmptyStack(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(broken.Close)
	d.stack.Variables["BASE_URL"] = broken.URL + "/"
	code, out, stderr := d.exec("--stack s smoke")
	if code != gatewayctl.ExitFailed || !strings.Contains(stderr, "18 of 18 checks of "+broken.URL+" failed") ||
		!strings.Contains(out, "the root") || strings.Contains(stderr, "curl") {
		t.Errorf("exit %d: %s %s", code, out, stderr)
	}
	delete(d.stack.Variables, "BASE_URL")
	if code, _, stderr := d.exec("--stack s smoke"); code != gatewayctl.ExitUsage ||
		!strings.Contains(stderr, "--base-url") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	d.stack.Variables["BASE_URL"] = "http://api.example.com"
	if code, out, _ := d.exec("--stack s smoke --json"); code != gatewayctl.ExitUsage ||
		!strings.Contains(out, "needs https") {
		t.Errorf("plain http to another machine: exit %d, %s", code, out)
	}
	if len(d.Audit.Records) != 0 {
		t.Error("a smoke test is in the audit")
	}
}
