// Package deliverytest is the test kit of what comes after an operation: callbacks in, lookups, notifications out. An
// operator that says what a script says, a merchant's server at the wire, a clock that stands still, and the ledger in
// memory.
//
// It never ships. Its invariant: every kit, when its test ends, has looked through its lines for the numbers and secrets
// of its entries, whatever else the test was about.
package deliverytest

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/settlement"
	"mobilegateway/shared/webhook"
)

// MSISDN is the purchaser's number in the kit's payments; no line may tell it.
const MSISDN = "0709998877"

// The schedules of a deployment.
const (
	Lifetime    = 24 * time.Hour
	RetrySilent = time.Hour
	Recheck     = 5 * time.Second
	Interval    = time.Minute
)

// PollSchedule is the default of POLL_SCHEDULE.
func PollSchedule() []time.Duration {
	return []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}
}

// Kit is everything that a function after the operation meets.
type Kit struct {
	*operationtest.World
	Operator   *Operator
	Book       *ledger.Book
	Settlement *settlement.Desk
	Courier    *delivery.Courier
	Health     *Health
	Shop       *Shop
	Profiles   *Profiles
	Lines      *Lines
}

// New makes a kit whose operator can do everything.
func New(t testing.TB) *Kit {
	t.Helper()
	o := &Operator{}
	return With(t, o, o)
}

// With makes a kit with another driver over the operator: one that cannot do everything.
func With(t testing.TB, o *Operator, driver operator.Driver) *Kit {
	t.Helper()
	k := &Kit{
		World: operationtest.New(t), Operator: o, Health: NewHealth(), Shop: NewShop(t), Profiles: &Profiles{}, Lines: &Lines{},
	}
	k.Shop.now = k.Clock.Now
	o.now = k.Clock.Now
	directory := operator.NewDirectory(map[string]operator.Driver{"gateway": driver})
	k.Book = &ledger.Book{Store: k.Ledger, Reader: k.Ledger, Now: k.Clock.Now, Rand: &Random{}}
	k.Settlement = &settlement.Desk{Operators: directory, Amounts: k.Desk.Amounts, Timeout: 5 * time.Second}
	k.Courier = &delivery.Courier{
		Profiles:    k.Profiles,
		Keys:        keyring.New(ring{}, time.Minute, k.Clock.Now),
		Health:      k.Health,
		Sender:      webhook.NewSender(outgoing.Client(outgoing.Policy{AllowLoopback: true}), 15*time.Second, k.Clock.Now),
		Schedule:    webhook.DefaultSchedule(),
		Operators:   directory,
		SMSTimeout:  12 * time.Second,
		SMSSchedule: PollSchedule(),
		Now:         k.Clock.Now,
		Rand:        &Random{},
	}
	t.Cleanup(func() {
		for _, secret := range []string{MSISDN, MSISDN[1:], "whsec_", "canary-state"} {
			if strings.Contains(k.Lines.String(), secret) {
				t.Errorf("a line tells %s:\n%s", secret, k.Lines)
			}
		}
	})
	return k
}

// Context is an invocation's, with the time that Lambda gives to it by the kit's clock.
func (k *Kit) Context(t testing.TB, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), k.Clock.Now().Add(timeout))
	t.Cleanup(cancel)
	return ctx
}

// Reserved is a payment whose operator is being called: owned by "owner", not stored yet.
func (k *Kit) Reserved(id string) *ledger.Entry {
	e := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: id}, MerchantID: "demo0001", Merchant: "DemoShop",
		LeaseUntil: k.Clock.Now().Add(25 * time.Second), Fingerprint: "f", UpstreamKey: id,
		Country: "CI", CountryText: "CI", Operator: "sandbox", Account: "a1", Channel: "ussd", Lang: "fr",
		Minor: 500, Exponent: 0, Currency: "XOF", AmountText: "500", PaymentID: ledger.PaymentTransactionID(id),
		MerchantState: "canary-state&é", RefText: "DemoShop", MSISDN: MSISDN, NotifyURL: k.Shop.URL + "/demo",
	}
	e.Begin("owner", ledger.Moment(k.Clock.Now()))
	return e
}

// Store puts an entry into the ledger after some changes, and gives it back as it stands there.
func (k *Kit) Store(e *ledger.Entry, changes ...func(*ledger.Entry)) *ledger.Entry {
	for _, change := range changes {
		change(e)
	}
	e.Reschedule()
	k.Ledger.Put(e)
	return e.Clone()
}

// Payment stores a payment that the operator accepted now, pending, looked up for the first time in a minute.
func (k *Kit) Payment(id string, changes ...func(*ledger.Entry)) *ledger.Entry {
	e := k.Reserved(id)
	now := ledger.Moment(k.Clock.Now())
	e.Settle("owner", ledger.Settlement{
		State: ledger.Done, Status: ledger.Pending, AnswerStatus: 201, AnswerBody: []byte("{}"), OperatorReference: "op-" + id,
		Due: now.Add(PollSchedule()[0]),
	}, now)
	return k.Store(e, changes...)
}

// Unknown stores a payment or another entry whose operator call was lost now.
func (k *Kit) Unknown(e *ledger.Entry) *ledger.Entry {
	e.Settle("owner", ledger.Settlement{State: ledger.Unknown}, ledger.Moment(k.Clock.Now()))
	return k.Store(e)
}

// Final stores a payment that has become final now, its notification in the outbox.
func (k *Kit) Final(id string, status ledger.Status, changes ...func(*ledger.Entry)) *ledger.Entry {
	return k.Payment(id, append([]func(*ledger.Entry){func(e *ledger.Entry) {
		e.Resolve(ledger.Resolution{Status: status, Source: "getStatus", UserSMS: true}, ledger.Moment(k.Clock.Now()))
	}}, changes...)...)
}

// Due stores a payment whose notification is the sweep's now.
func (k *Kit) Due(id string, changes ...func(*ledger.Entry)) *ledger.Entry {
	return k.Final(id, ledger.Failed, append(changes, func(e *ledger.Entry) { e.Outbox[0].Next = ledger.Moment(k.Clock.Now()) })...)
}

// Message stores an SMS that was sent, with the receipts that have come for it.
func (k *Kit) Message(id string, receipts ...ledger.Status) *ledger.Entry {
	now := ledger.Moment(k.Clock.Now())
	e := k.NewMessage(id)
	e.Settle("owner", ledger.Settlement{State: ledger.Done, AnswerStatus: 201, AnswerBody: []byte("{}")}, now)
	for _, status := range receipts {
		e.Receipt(status, now)
	}
	return k.Store(e)
}

// NewMessage is an SMS whose operator is being called, not stored yet.
func (k *Kit) NewMessage(id string) *ledger.Entry {
	e := k.Reserved(id)
	e.Kind, e.Status = ledger.SMS, ""
	e.Address, e.Sender, e.CallbackData = "acr:X-Operator-ISE2", "tel:+2250700000000", "my-data"
	e.Reschedule()
	return e
}

// Get is an entry as it stands in the ledger.
func (k *Kit) Get(t testing.TB, e *ledger.Entry) *ledger.Entry {
	t.Helper()
	for _, stored := range k.Ledger.All() {
		if stored.Key == e.Key {
			return stored
		}
	}
	t.Fatalf("%s is not in the ledger", e.Key)
	return nil
}

// Head is the one notification of an entry that may be delivered.
func (k *Kit) Head(t testing.TB, e *ledger.Entry) ledger.Notification {
	t.Helper()
	head := k.Get(t, e).Head()
	if head == nil {
		t.Fatalf("nothing is in the outbox of %s", e.Key)
	}
	return *head
}

// Random gives bytes that never repeat and are the same in every run. It is safe for parallel use.
type Random struct{ counter }

// Read is io.Reader's.
func (r *Random) Read(p []byte) (int, error) {
	copy(p, fmt.Sprintf("%08d", r.next()))
	return len(p), nil
}

// ring is the secret of the webhook keys: one key.
type ring struct{}

// Get is keyring.Source's.
func (ring) Get(context.Context) (secret.Value, error) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, keyring.KeySize))
	return secret.Value{Current: fmt.Appendf(nil, `{"keys":[{"number":1,"key":%q,"added":"2026-01-01T00:00:00Z"}]}`, key)}, nil
}

// Refresh is keyring.Source's.
func (r ring) Refresh(ctx context.Context) (secret.Value, error) { return r.Get(ctx) }

// Secret is the text of the secret that a merchant's notifications are signed with.
func Secret(merchantID string, version int) string {
	key := keyring.Key{Number: 1, Value: bytes.Repeat([]byte{9}, keyring.KeySize)}
	return webhook.DeriveSecret(key, merchantID, version).Text()
}

// Lost makes the next call of an operation of the ledger end in an error; nothing was applied.
func (k *Kit) Lost(of ledgermem.Operation) {
	once := true
	k.Ledger.SetFaults(func(call ledgermem.Call) ledgermem.Fault {
		if once && call.Operation == of {
			once = false
			return ledgermem.Error
		}
		return ledgermem.None
	})
}

var _ delivery.Profiles = (*Profiles)(nil)

// Profiles knows every merchant, each with two secrets, until Fail says otherwise.
type Profiles struct {
	counter
	failure error
	missing bool
}

// Fail makes every read fail, or with nil every merchant unknown; Heal ends that.
func (p *Profiles) Fail(failure error) { p.failure, p.missing = failure, failure == nil }

// Heal ends a failure.
func (p *Profiles) Heal() { p.failure, p.missing = nil, false }

// Profile is delivery.Profiles'.
func (p *Profiles) Profile(_ context.Context, id string) (*merchant.Profile, error) {
	p.next()
	if p.failure != nil || p.missing {
		return nil, p.failure
	}
	return &merchant.Profile{
		ID: id, Name: "DemoShop", Status: merchant.StatusActive,
		WebhookSecrets: []merchant.WebhookSecret{{Version: 2, KeyNumber: 1}, {Version: 1, KeyNumber: 1}},
	}, nil
}
