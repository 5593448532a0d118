package gatewayctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/pause"
)

// memorySecretStore is a SecretStore in memory. A revision counts the changes.
type memorySecretStore struct {
	values    map[string][]byte
	revisions map[string]int
	puts      int
}

func (v *memorySecretStore) Get(_ context.Context, name string) (StoredSecret, error) {
	return StoredSecret{name, v.values[name], strconv.Itoa(v.revisions[name])}, nil
}

func (v *memorySecretStore) Put(_ context.Context, current StoredSecret, value []byte) error {
	if strconv.Itoa(v.revisions[current.Name]) != current.Revision {
		return secretChangedError(current.Name)
	}
	v.values[current.Name], v.puts = value, v.puts+1
	v.revisions[current.Name]++
	return nil
}

// memoryAudit is an AuditLog in memory with its copies. It refuses records whose outcome is failAt.
type memoryAudit struct {
	items    []AuditItem
	copies   []string
	records  map[string]Record // the last one of each change
	outcomes []string          // outcomes in the order in which they were written
	failAt   string
}

func (a *memoryAudit) Append(_ context.Context, r Record) (AuditItem, error) {
	if a.failAt == r.Outcome {
		return AuditItem{}, errors.New("no audit record")
	}
	item := lastLink(a.items).next(r)
	a.items, a.records[r.ID] = append(a.items, item), r
	a.outcomes = append(a.outcomes, r.Outcome)
	return item, nil
}

func (a *memoryAudit) Items(context.Context) ([]AuditItem, error) { return a.items, nil }

func (a *memoryAudit) Write(_ context.Context, _ time.Time, document string) error {
	a.copies = append(a.copies, document)
	return nil
}

func (a *memoryAudit) Documents(context.Context) ([]string, error) { return a.copies, nil }

// testTool is a deployment in memory and the person at the keyboard.
type testTool struct {
	*Tool
	t         *testing.T
	now       time.Time
	input     string
	merchants *storetest.Merchants
	ledger    *storetest.Ledger
	vault     *memorySecretStore
	audit     *memoryAudit
	logs      *stubLogs // of a tool with real stores
	health    *storetest.EndpointHealth
	limits    *storetest.Limits
	random    *rand.Rand
	connect   func(System, Deployment) (*Stores, error)
	variables map[string]string
}

func newTestTool(t *testing.T) *testTool {
	tool, err := NewTool()
	if err != nil {
		t.Fatal(err)
	}
	d := &testTool{
		Tool: tool, t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), merchants: storetest.NewMerchants(),
		ledger: storetest.NewLedger(),
		vault:  &memorySecretStore{map[string][]byte{}, map[string]int{}, 0},
		audit:  &memoryAudit{records: map[string]Record{}},
		limits: storetest.NewLimits(), random: rand.New(rand.NewSource(1)),
		variables: map[string]string{
			"LEDGER_TABLE": "ledger", "MERCHANT_TABLE": "merchants", "OPERATOR_CREDENTIALS_SECRET": "operators",
			"TOKEN_KEY_SECRET": "token-keys", "TOKEN_PUBLIC_KEY_SECRET": "token-public-keys",
			"CALLBACK_KEY_SECRET": "callback-keys", "WEBHOOK_KEY_SECRET": "webhook-keys", "AWS_ACCESS_KEY_ID": "KEYID",
		},
	}
	d.health = storetest.NewEndpointHealth(d.nowFunc())
	d.changeStores(func(*Stores) {})
	return d
}

// stores returns the stores in memory.
func (d *testTool) stores() *Stores {
	amounts := &dailyamount.Counter{Store: d.limits, Now: d.nowFunc(), Rand: d.random, Sleep: pause.For}
	return &Stores{Merchants: d.merchants, Ledger: d.ledger, EndpointHealth: d.health, DailyAmounts: amounts,
		Secrets: d.vault, Audit: d.audit, AuditCopies: d.audit,
		Caller: func(context.Context) (string, error) { return "local:ama@host", nil }}
}

// changeStores makes the tool connect to changed stores.
func (d *testTool) changeStores(change func(*Stores)) {
	d.connect = func(System, Deployment) (*Stores, error) {
		stores := d.stores()
		change(stores)
		return stores, nil
	}
}

// nowFunc returns the clock.
func (d *testTool) nowFunc() func() time.Time { return func() time.Time { return d.now } }

// run runs the tool with arguments separated by spaces.
func (d *testTool) run(line string) (code int, out, stderr string) {
	return d.runArguments(strings.Fields(line)...)
}

// runArguments runs the tool with arguments.
func (d *testTool) runArguments(arguments ...string) (code int, out, stderr string) {
	var o, n bytes.Buffer
	code = d.Run(context.Background(), arguments, System{
		Stdin: strings.NewReader(d.input), Stdout: &o, Stderr: &n,
		Getenv: func(name string) string { return d.variables[name] },
		User:   "ama@host", Now: d.nowFunc(), Rand: d.random, Connect: d.connect,
	})
	return code, o.String(), n.String()
}

// mustRun runs a command that must succeed, and decodes its JSON.
func (d *testTool) mustRun(line string, result any) {
	d.t.Helper()
	code, out, stderr := d.run(line + " --json")
	if code != ExitDone {
		d.t.Fatalf("%s: exit %d: %s", line, code, stderr)
	}
	if result != nil {
		if err := json.Unmarshal([]byte(out), result); err != nil {
			d.t.Fatalf("%s: %v in %s", line, err, out)
		}
	}
}

// apply runs commands that must succeed, with --yes.
func (d *testTool) apply(lines ...string) {
	d.t.Helper()
	for _, line := range lines {
		d.mustRun(line+confirmFlags, nil)
	}
}

// query runs a command that must succeed and returns its JSON.
func query[T any](d *testTool, line string) (result T) {
	d.t.Helper()
	d.mustRun(line, &result)
	return result
}

// checkEqual fails unless two values are equal. what names the rule that broke.
func checkEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// expectOutput runs a command that must succeed, and whose output has the parts in this order.
func (d *testTool) expectOutput(line string, parts ...string) {
	d.t.Helper()
	code, out, stderr := d.run(line)
	if code != ExitDone {
		d.t.Fatalf("%s: exit %d: %s", line, code, stderr)
	}
	rest := out
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			d.t.Fatalf("%s: %q is missing or out of order: %s", line, part, out)
		}
		rest = after
	}
}

// expectExit runs a command that must end with an exit code, and whose standard error has a text.
func (d *testTool) expectExit(line string, want int, text string) {
	d.t.Helper()
	code, out, stderr := d.run(line)
	if code != want || !strings.Contains(stderr, text) {
		d.t.Errorf("%s: exit %d (want %d), %q lacks %q; out %s", line, code, want, stderr, text, out)
	}
}

// expectBoth is expectExit of the dry run and of the change.
func (d *testTool) expectBoth(line string, want int, text string) {
	d.t.Helper()
	d.expectExit(line, want, text)
	d.expectExit(line+confirmFlags, want, text)
}

// confirmFlags makes a command's change happen.
const confirmFlags = " --yes --reason test"

// newShopTool returns a tool whose deployment has the merchant ShopA.
func newShopTool(t *testing.T) (*testTool, onboardingResult) {
	t.Helper()
	d := newTestTool(t)
	return d, d.onboardShop()
}

// onboardShop onboards the merchant ShopA.
func (d *testTool) onboardShop() onboardingResult { return d.onboard("ShopA") }

// onboard onboards a merchant, with the key that its webhook secret needs.
func (d *testTool) onboard(name string) onboardingResult {
	d.t.Helper()
	if len(d.vault.values["webhook-keys"]) == 0 {
		d.apply("keys add webhooks")
	}
	var output onboardingResult
	d.mustRun("merchant add "+name+" --country ci --operator sandbox --notif-url https://shop.example/n"+confirmFlags,
		&output)
	return output
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// addDeliveredPayment stores a payment whose success was delivered.
func (d *testTool) addDeliveredPayment(shop onboardingResult, number int, at time.Time) *ledger.Entry {
	id := shop.Name + "_" + strconv.Itoa(number)
	key := ledger.Key{Kind: ledger.Payment, ID: id}
	e := &ledger.Entry{
		Key: key, MerchantID: shop.ID, Merchant: shop.Name, Version: 3, State: ledger.Done, Status: ledger.Successful,
		CreatedAt: at, SentAt: at, ReservedAt: at, UpdatedAt: at.Add(time.Second), FinalAt: at.Add(time.Second),
		Operator: "sandbox", Account: "a1", Country: "CI", Channel: "ussd", AmountMinor: 1000, Currency: "XOF",
		UpstreamKey: id, MSISDN: "0707072000", ResponseStatus: 201,
		NotifyURL: "https://shop.example/n", Delivered: []ledger.Notification{{
			ID: ledger.NotificationID(key, ledger.Successful), Status: ledger.Successful, At: at.Add(time.Second),
			Attempts: 1, DeliveredAt: at.Add(2 * time.Second),
		}},
	}
	d.ledger.Overwrite(e)
	return e
}

// sampleValues returns values for the fields of accounts: each field takes one of them.
func sampleValues() []string {
	return []string{
		"v", "tel:+2250000", "https://op.example", "ci", "sandbox", "11111111-1111-4111-8111-111111111111",
		"1234", "123456789", "201",
	}
}
