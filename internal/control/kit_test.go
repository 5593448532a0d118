package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/limitmem"
	"mobilegateway/internal/merchantmem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/webhook"
)

// memoryVault is a Vault in memory; a mark counts the changes.
type memoryVault struct {
	values map[string][]byte
	marks  map[string]int
	puts   int
}

func (v *memoryVault) Get(_ context.Context, name string) (Held, error) {
	return Held{name, v.values[name], strconv.Itoa(v.marks[name])}, nil
}

func (v *memoryVault) Put(_ context.Context, held Held, value []byte) error {
	if strconv.Itoa(v.marks[held.Name]) != held.Mark {
		return errors.New("changed by another hand")
	}
	v.values[held.Name], v.puts = value, v.puts+1
	v.marks[held.Name]++
	return nil
}

// memoryAudit is an AuditLog in memory, which can be made to fail at its first or its second half.
type memoryAudit struct {
	records map[string]Record
	halves  []string // outcomes in the order in which they were written
	failAt  string
}

func (a *memoryAudit) Record(_ context.Context, r Record) error {
	if a.failAt == r.Outcome {
		return errors.New("no audit record")
	}
	a.records[r.ID] = r
	a.halves = append(a.halves, r.Outcome)
	return nil
}

func (a *memoryAudit) Records(context.Context) ([]Record, error) {
	records := []Record{}
	for _, r := range a.records {
		records = append(records, r)
	}
	return records, nil
}

// memoryHealth is a HealthStore in memory.
type memoryHealth map[webhook.Endpoint]webhook.Health

func (m memoryHealth) Health(_ context.Context, at webhook.Endpoint) (webhook.Health, error) {
	h := m[at]
	h.Endpoint = at
	return h, nil
}

func (m memoryHealth) SaveHealth(_ context.Context, h webhook.Health) (bool, error) {
	if m[h.Endpoint].Version != h.Version {
		return false, nil
	}
	h.Version++
	m[h.Endpoint] = h
	return true, nil
}

func (m memoryHealth) SaveDisabled(_ context.Context, h webhook.Health) (bool, error) {
	if m[h.Endpoint].DisabledVersion != h.DisabledVersion {
		return false, nil
	}
	h.DisabledVersion++
	m[h.Endpoint] = h
	return true, nil
}

// desk is a deployment in memory and a person who types.
type desk struct {
	t         *testing.T
	now       time.Time
	input     string
	merchants *merchantmem.Store
	ledger    *ledgermem.Store
	vault     *memoryVault
	audit     *memoryAudit
	health    memoryHealth
	limits    *limitmem.Store
	random    *rand.Rand
	connect   func(System, Places) (*Stores, error)
	variables map[string]string
}

func newDesk(t *testing.T) *desk {
	d := &desk{
		t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), merchants: &merchantmem.Store{}, ledger: ledgermem.New(),
		vault: &memoryVault{map[string][]byte{}, map[string]int{}, 0}, audit: &memoryAudit{records: map[string]Record{}},
		health: memoryHealth{}, limits: &limitmem.Store{}, random: rand.New(rand.NewSource(1)),
		variables: map[string]string{
			"LEDGER_TABLE": "ledger", "MERCHANT_TABLE": "merchants", "OPERATOR_SECRET": "operators", "TOKEN_KEY_SECRET": "token-keys",
			"CALLBACK_KEY_SECRET": "callback-keys", "WEBHOOK_KEY_SECRET": "webhook-keys", "AWS_ACCESS_KEY_ID": "KEYID",
		},
	}
	d.connect = func(System, Places) (*Stores, error) {
		return d.stores(d.ledger), nil
	}
	return d
}

// stores are the desk's, with a ledger.
func (d *desk) stores(in Ledger) *Stores {
	amounts := &limit.Amounts{Store: d.limits, Now: d.nowFunc(), Rand: d.random, Pause: pause}
	return &Stores{Merchants: d.merchants, Ledger: in, Health: d.health, Amounts: amounts, Secrets: d.vault, Audit: d.audit}
}

// nowFunc is the clock.
func (d *desk) nowFunc() func() time.Time { return func() time.Time { return d.now } }

// run runs the tool on words that a space parts.
func (d *desk) run(line string) (code int, out, notes string) {
	return d.runIn(context.Background(), line)
}

func (d *desk) runIn(ctx context.Context, line string) (code int, out, notes string) {
	d.t.Helper()
	return d.wordsIn(ctx, strings.Fields(line)...)
}

// words runs the tool on arguments.
func (d *desk) words(arguments ...string) (code int, out, notes string) {
	d.t.Helper()
	return d.wordsIn(context.Background(), arguments...)
}

func (d *desk) wordsIn(ctx context.Context, arguments ...string) (code int, out, notes string) {
	var o, n bytes.Buffer
	code = Run(ctx, arguments, System{
		In: strings.NewReader(d.input), Out: &o, Notes: &n, Variable: func(name string) string { return d.variables[name] },
		Who: "ama@desk", Now: d.nowFunc(), Rand: d.random, Connect: d.connect,
	})
	return code, o.String(), n.String()
}

// do runs a command that must succeed and gives its JSON.
func (d *desk) do(line string, into any) {
	d.t.Helper()
	code, out, notes := d.run(line + " --json")
	if code != ExitDone {
		d.t.Fatalf("%s: exit %d: %s", line, code, notes)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(out), into); err != nil {
			d.t.Fatalf("%s: %v in %s", line, err, out)
		}
	}
}

// refused runs a command that must end with a code, and whose notes have a text.
func (d *desk) refused(line string, want int, text string) {
	d.t.Helper()
	code, out, notes := d.run(line)
	if code != want || !strings.Contains(notes, text) {
		d.t.Errorf("%s: exit %d (want %d), %q lacks %q; out %s", line, code, want, notes, text, out)
	}
}

// yes makes a command's change happen.
const yes = " --yes --why test"

// shop onboards the merchant ShopA, with the key that its webhook secret needs.
func (d *desk) shop() onboarded {
	d.t.Helper()
	if len(d.vault.values["webhook-keys"]) == 0 {
		d.do("keys add webhooks"+yes, nil)
	}
	var made onboarded
	d.do("merchant add ShopA --country ci --operator sandbox --notif-url https://shop.example/n"+yes, &made)
	return made
}

// payment places a payment that was told of its success.
func (d *desk) payment(shop onboarded, number int, at time.Time) *ledger.Entry {
	id := shop.Name + "_" + strconv.Itoa(number)
	key := ledger.Key{Kind: ledger.Payment, ID: id}
	e := &ledger.Entry{
		Key: key, MerchantID: shop.ID, Merchant: shop.Name, Version: 3, State: ledger.Done, Status: ledger.Successful,
		CreatedAt: at, SentAt: at, UpdatedAt: at.Add(time.Second), FinalAt: at.Add(time.Second), Operator: "sandbox", Account: "a1",
		Country: "CI", Channel: "ussd", Minor: 1000, Currency: "XOF", UpstreamKey: id, MSISDN: "0707072000", AnswerStatus: 201,
		NotifyURL: "https://shop.example/n", Told: []ledger.Notification{{
			ID: ledger.NotificationID(key, ledger.Successful), Status: ledger.Successful, At: at.Add(time.Second), Attempt: 1, ToldAt: at.Add(2 * time.Second),
		}},
	}
	d.ledger.Put(e)
	return e
}
