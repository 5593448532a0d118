// Package gatewayctltest runs gatewayctl's commands in tests, on stores in memory or on the local AWS.
package gatewayctltest

import (
	"bytes"
	"context"
	"errors"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/counts/daycount"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/pause"
)

// Tool is a deployment in memory and the person at the keyboard.
type Tool struct {
	*gatewayctl.Tool
	T         *testing.T
	Now       time.Time
	Input     string
	Merchants *storetest.Merchants
	Ledger    *storetest.Ledger
	Vault     *Secrets
	Audit     *Audit
	Logs      *Logs // of a tool with real stores
	Health    *storetest.EndpointHealth
	Circuits  *storetest.Circuits
	Counts    *Counts
	limits    *storetest.Limits
	random    *rand.Rand
	Connect   func(deployment.System, deployment.Names) (*deployment.Stores, error)
	Variables map[string]string
}

// New returns a tool on stores in memory.
func New(t *testing.T) *Tool {
	tool, err := gatewayctl.NewTool()
	if err != nil {
		t.Fatal(err)
	}
	d := &Tool{
		Tool: tool, T: t, Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Merchants: storetest.NewMerchants(),
		Ledger:   storetest.NewLedger(t),
		Vault:    &Secrets{map[string][]byte{}, map[string]int{}, 0},
		Audit:    &Audit{Records: map[string]auditlog.Record{}},
		Counts:   &Counts{Forms: map[daycount.Key]string{}},
		Circuits: storetest.NewCircuits(), limits: storetest.NewLimits(), random: rand.New(rand.NewSource(1)),
		Variables: map[string]string{
			"LEDGER_TABLE": "ledger", "MERCHANT_TABLE": "merchants", "OPERATOR_CREDENTIALS_SECRET": "operators",
			"TOKEN_KEY_SECRET": "token-keys", "TOKEN_PUBLIC_KEY_SECRET": "token-public-keys",
			"CALLBACK_KEY_SECRET": "callback-keys", "WEBHOOK_KEY_SECRET": "webhook-keys", "AWS_ACCESS_KEY_ID": "KEYID",
		},
	}
	d.Health = storetest.NewEndpointHealth(d.Clock())
	d.ChangeStores(func(*deployment.Stores) {})
	return d
}

// Stores returns the stores in memory.
func (d *Tool) Stores() *deployment.Stores {
	amounts := &dailyamount.Counter{Store: d.limits, Now: d.Clock(), Rand: d.random, Sleep: pause.For}
	return &deployment.Stores{Merchants: d.Merchants, Ledger: d.Ledger, Batches: d.Ledger,
		EndpointHealth: d.Health, DailyAmounts: amounts,
		Counts:   d.Counts,
		Circuits: &circuit.Writer{Store: d.Circuits, Now: d.Clock(), Rand: d.random},
		Secrets:  d.Vault, Audit: d.Audit, AuditCopies: d.Audit,
		Caller: func(context.Context) (string, error) { return "local:ama@host", nil }}
}

// ChangeStores makes the tool connect to changed stores.
func (d *Tool) ChangeStores(change func(*deployment.Stores)) {
	d.Connect = func(deployment.System, deployment.Names) (*deployment.Stores, error) {
		stores := d.Stores()
		change(stores)
		return stores, nil
	}
}

// Clock returns the clock.
func (d *Tool) Clock() func() time.Time { return func() time.Time { return d.Now } }

// Exec runs the tool with arguments separated by spaces.
func (d *Tool) Exec(line string) (code int, out, stderr string) {
	return d.ExecArguments(strings.Fields(line)...)
}

// ExecArguments runs the tool with arguments.
func (d *Tool) ExecArguments(arguments ...string) (code int, out, stderr string) {
	var o, n bytes.Buffer
	code = d.Run(context.Background(), arguments, deployment.System{
		Stdin: strings.NewReader(d.Input), Stdout: &o, Stderr: &n,
		Getenv: func(name string) string { return d.Variables[name] },
		User:   "ama@host", Now: d.Clock(), Rand: d.random, Connect: d.Connect,
	})
	return code, o.String(), n.String()
}

// mustExec runs a command that must succeed, and returns its output.
func (d *Tool) mustExec(line string) string {
	d.T.Helper()
	code, out, stderr := d.Exec(line)
	if code != gatewayctl.ExitDone {
		d.T.Fatalf("%s: exit %d: %s", line, code, stderr)
	}
	return out
}

// MustRun runs a command that must succeed, and decodes its JSON.
func (d *Tool) MustRun(line string, result any) {
	d.T.Helper()
	out := d.mustExec(line + " --json")
	if result != nil {
		Decode(d.T, out, result)
	}
}

// Apply runs commands that must succeed, with --yes.
func (d *Tool) Apply(lines ...string) {
	d.T.Helper()
	for _, line := range lines {
		d.MustRun(line+Confirm, nil)
	}
}

// Query runs a command that must succeed and returns its JSON.
func Query[T any](d *Tool, line string) (result T) {
	d.T.Helper()
	d.MustRun(line, &result)
	return result
}

// Change makes a change that must succeed and returns its JSON.
func Change[T any](d *Tool, line string) T {
	d.T.Helper()
	return Query[T](d, line+Confirm)
}

// QueryExit runs a command that must end with an exit code and returns its JSON, and its standard error.
func QueryExit[T any](d *Tool, line string, want int) (result T, stderr string) {
	d.T.Helper()
	code, out, stderr := d.Exec(line + " --json")
	if code != want {
		d.T.Fatalf("%s: exit %d, want %d: %s%s", line, code, want, out, stderr)
	}
	Decode(d.T, out, &result)
	return result, stderr
}

// Confirm makes a command's change happen.
const Confirm = " --yes --reason test"

// NewShop returns a tool whose deployment has the merchant ShopA.
func NewShop(t *testing.T) (*Tool, merchants.Onboarding) {
	t.Helper()
	d := New(t)
	return d, d.Onboard("ShopA")
}

// NewQuiet returns a deployment in which nothing waits for a person.
func NewQuiet(t *testing.T) (*Tool, merchants.Onboarding) {
	t.Helper()
	d, shop := NewShop(t)
	d.Apply("keys add tokens", "keys add callbacks")
	d.UseSandboxOperator()
	return d, shop
}

// Onboard onboards a merchant, with the key that its webhook secret needs.
func (d *Tool) Onboard(name string) merchants.Onboarding {
	d.T.Helper()
	if len(d.Vault.Values["webhook-keys"]) == 0 {
		d.Apply("keys add webhooks")
	}
	var output merchants.Onboarding
	d.MustRun("merchant add "+name+" --country ci --operator sandbox --notif-url https://shop.example/n"+Confirm,
		&output)
	return output
}

// MustReadEntry returns a stored entry.
func (d *Tool) MustReadEntry(key ledger.Key) *ledger.Entry {
	d.T.Helper()
	e, err := d.Ledger.Get(context.Background(), key)
	if err != nil || e == nil {
		d.T.Fatalf("%v: %v, %v", key, e, err)
	}
	return e
}

// Update changes a stored entry past the tool, without its due time, and returns it.
func (d *Tool) Update(key ledger.Key, change func(*ledger.Entry)) *ledger.Entry {
	d.T.Helper()
	e := d.MustReadEntry(key)
	change(e)
	d.Ledger.Overwrite(e)
	return e
}

// Secrets is a SecretStore in memory. A revision counts the changes.
type Secrets struct {
	Values    map[string][]byte
	Revisions map[string]int
	Puts      int
}

// Get implements deployment.SecretStore.
func (v *Secrets) Get(_ context.Context, name string) (deployment.StoredSecret, error) {
	return deployment.StoredSecret{Name: name, Value: v.Values[name], Revision: strconv.Itoa(v.Revisions[name])}, nil
}

// Put implements deployment.SecretStore.
func (v *Secrets) Put(_ context.Context, current deployment.StoredSecret, value []byte) error {
	if strconv.Itoa(v.Revisions[current.Name]) != current.Revision {
		return deployment.SecretChangedError(current.Name)
	}
	v.Values[current.Name], v.Puts = value, v.Puts+1
	v.Revisions[current.Name]++
	return nil
}

// Audit is an AuditLog in memory with its copies. It refuses records whose outcome is failAt.
type Audit struct {
	Stored   []auditlog.Item
	Copies   []string
	Records  map[string]auditlog.Record // the last one of each change
	Outcomes []string                   // outcomes in the order in which they were written
	FailAt   string
}

// Append implements auditlog.Log.
func (a *Audit) Append(_ context.Context, r auditlog.Record) (auditlog.Item, error) {
	if a.FailAt == r.Outcome {
		return auditlog.Item{}, errors.New("no audit record")
	}
	item := auditlog.LastLink(a.Stored).Next(r)
	a.Stored, a.Records[r.ID] = append(a.Stored, item), r
	a.Outcomes = append(a.Outcomes, r.Outcome)
	return item, nil
}

// Items implements auditlog.Log.
func (a *Audit) Items(context.Context) ([]auditlog.Item, error) { return a.Stored, nil }

// Write implements auditlog.Copies.
func (a *Audit) Write(_ context.Context, _ time.Time, document string) error {
	a.Copies = append(a.Copies, document)
	return nil
}

// Documents implements auditlog.Copies.
func (a *Audit) Documents(context.Context) ([]string, error) { return a.Copies, nil }
