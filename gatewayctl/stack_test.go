package gatewayctl_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/proof/kits/gatewayctltest"
)

// stackTool runs a tool's commands with --stack, on the tool's stores in memory.
type stackTool struct {
	*gatewayctltest.Tool
	shop   merchants.Onboarding
	stack  deployment.Stack
	err    error    // of reading the stack
	read   []string // names of the stacks that were read
	random *rand.Rand
	opened deployment.Names // the deployment that the last command opened
	last   deployment.System
}

func newStackTool(t *testing.T) *stackTool {
	t.Helper()
	d, shop := gatewayctltest.NewShop(t)
	d.Variables = map[string]string{}
	return &stackTool{Tool: d, shop: shop, random: rand.New(rand.NewSource(2)),
		stack: deployment.Stack{Variables: map[string]string{
			"LEDGER_TABLE": "s-ledger", "MERCHANT_TABLE": "s-merchants", "LIMIT_TABLE": "s-limits",
			"OPERATOR_CREDENTIALS_SECRET": "operators", "TOKEN_KEY_SECRET": "token-keys",
			"TOKEN_PUBLIC_KEY_SECRET": "token-public-keys", "CALLBACK_KEY_SECRET": "callback-keys",
			"WEBHOOK_KEY_SECRET": "webhook-keys", "AUDIT_LOG_GROUP": "/s/audit", "BASE_URL": "https://api.example.com",
			"SERVICE_ID": "S", "APPLICATION_ID": "A", "CONTACT_ID": "C", "AWS_REGION": "eu-west-3",
		}}}
}

// exec runs a line. change adapts the system before.
func (d *stackTool) exec(line string, change ...func(*deployment.System)) (code int, out, stderr string) {
	var o, n bytes.Buffer
	system := deployment.System{
		Stdin: strings.NewReader(d.Input), Stdout: &o, Stderr: &n,
		Getenv: func(name string) string { return d.Variables[name] },
		User:   "ama@host", Now: d.Clock(), Rand: d.random,
		Connect: func(env deployment.System, names deployment.Names) (*deployment.Stores, error) {
			d.opened, d.last = names, env
			return d.Tool.Connect(env, names)
		},
		ReadStack: func(_ context.Context, name string) (*deployment.Stack, error) {
			d.read = append(d.read, name)
			return &d.stack, d.err
		},
	}
	for _, adapt := range change {
		adapt(&system)
	}
	code = d.Run(context.Background(), strings.Fields(line), system)
	return code, o.String(), n.String()
}

// TestStackNamesTheDeployment: --stack finds all names and addresses. A flag and a variable win over it.
func TestStackNamesTheDeployment(t *testing.T) {
	d := newStackTool(t)
	if code, _, stderr := d.exec("merchant list --stack s"); code != gatewayctl.ExitDone || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if len(d.read) != 1 || d.opened.LedgerTable != "s-ledger" || d.opened.AuditLogGroup != "/s/audit" ||
		d.opened.WebhookKeySecret != "webhook-keys" || d.last.Getenv("AWS_REGION") != "eu-west-3" {
		t.Errorf("read %q, opened %+v", d.read, d.opened)
	}
	d.Variables["MERCHANT_TABLE"] = "own-merchants"
	code, _, stderr := d.exec("--stack s merchant list --ledger-table own-ledger")
	if code != gatewayctl.ExitDone || d.opened.MerchantTable != "own-merchants" ||
		d.opened.LedgerTable != "own-ledger" ||
		d.opened.LimitTable != "s-limits" {
		t.Errorf("exit %d, opened %+v", code, d.opened)
	}
	if !strings.Contains(stderr, "MERCHANT_TABLE of the environment replaces the one of the stack s") {
		t.Errorf("no warning in %q", stderr)
	}
	if d.exec("merchant list --ledger-table l --merchant-table m"); d.last.Getenv("AWS_REGION") != "" ||
		len(d.read) != 2 {
		t.Errorf("a command without --stack uses the stack of before: read %q", d.read)
	}
}

// TestStackAddressReachesMerchants: a merchant gets the stack's address and constants, and a printed command names
// the stack.
func TestStackAddressReachesMerchants(t *testing.T) {
	d := newStackTool(t)
	if code, _, stderr := d.exec("--stack s keys add webhooks --yes --reason r"); code != gatewayctl.ExitDone {
		t.Fatal(stderr)
	}
	_, out, stderr := d.exec("--stack s merchant add ShopB --country ci --operator sandbox --yes --reason r")
	for _, want := range []string{"https://api.example.com", "serviceId"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s %s", want, out, stderr)
		}
	}
	d.AddUnknownCharge(d.shop, "c1")
	if _, out, stderr := d.exec("--stack s attention"); !strings.Contains(out+stderr, "gatewayctl --stack s ") {
		t.Errorf("no command for the stack in %s %s", out, stderr)
	}
}

// TestStackIsRefused: a line with two deployments, or a stack that cannot be read, changes nothing.
func TestStackIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"merchant list --stack=":          "--stack has no name",
		"merchant list --stack gone":      "there is no stack gone",
		"merchant list --stack s --paint": "unknown flag --paint",
		"merchant list --stack s --local": "--local and --stack name two deployments",
	} {
		d := newStackTool(t)
		d.err = errors.New("there is no stack gone")
		d.Variables["LOCAL_DIR"] = t.TempDir()
		for _, name := range []string{"aws.env", "run.json"} {
			if err := os.WriteFile(filepath.Join(d.Variables["LOCAL_DIR"], name), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, _, stderr := d.exec(line)
		if code != gatewayctl.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s", line, code, stderr)
		}
		if !strings.Contains(line, "gone") && len(d.read) > 0 {
			t.Errorf("%s: a wrong line reads the stack", line)
		}
	}
}
