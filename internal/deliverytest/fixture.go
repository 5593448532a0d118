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
	"mobilegateway/shared/reconcile"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/webhook"
)

// MSISDN is the purchaser's number in the kit's payments; no line may tell it.
const MSISDN = "0709998877"

// The schedules of a deployment.
const (
	PaymentLifetime   = 24 * time.Hour
	UnresponsiveRetry = time.Hour
	ClaimRecheckDelay = 5 * time.Second
	SweepInterval     = time.Minute
)

// PollSchedule is the default of POLL_SCHEDULE.
func PollSchedule() []time.Duration {
	return []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}
}

// DeliveryFixture is everything that a function after the operation meets.
type DeliveryFixture struct {
	*operationtest.Fixture
	Operator       *Operator
	Book           *ledger.Book
	Reconciler     *reconcile.Reconciler
	Courier        *delivery.Courier
	HealthStore    *MemoryHealthStore
	MerchantServer *MerchantServer
	ProfileStore   *ProfileStore
	LogLines       *LogBuffer
}

// New makes a kit whose operator can do everything.
func New(t testing.TB) *DeliveryFixture {
	t.Helper()
	o := &Operator{}
	return NewWithDriver(t, o, o)
}

// NewWithDriver makes a kit with another driver over the operator: one that cannot do everything.
func NewWithDriver(t testing.TB, o *Operator, driver operator.Driver) *DeliveryFixture {
	t.Helper()
	k := &DeliveryFixture{
		Fixture: operationtest.New(t), Operator: o, HealthStore: NewMemoryHealthStore(), MerchantServer: NewMerchantServer(t), ProfileStore: &ProfileStore{}, LogLines: &LogBuffer{},
	}
	k.MerchantServer.now = k.Clock.Now
	o.now = k.Clock.Now
	directory := operator.NewDriverDirectory(map[string]operator.Driver{"gateway": driver})
	k.Book = &ledger.Book{Store: k.Ledger, Reader: k.Ledger, Now: k.Clock.Now, Rand: &UniqueReader{}}
	k.Reconciler = &reconcile.Reconciler{Operators: directory, LookupTimeout: 5 * time.Second}
	k.Courier = &delivery.Courier{
		Profiles:       k.ProfileStore,
		Keys:           keyring.NewRefreshingRing(webhookSecret{}, time.Minute, k.Clock.Now),
		Health:         k.HealthStore,
		Sender:         webhook.NewSender(outgoing.NewClient(outgoing.Policy{AllowLoopback: true}), 15*time.Second, k.Clock.Now),
		Schedule:       webhook.DefaultSchedule(),
		Operators:      directory,
		SMSTimeout:     12 * time.Second,
		SMSRetryDelays: PollSchedule(),
		Now:            k.Clock.Now,
		Rand:           &UniqueReader{},
	}
	t.Cleanup(func() {
		for _, secret := range []string{MSISDN, MSISDN[1:], "whsec_", "canary-state"} {
			if strings.Contains(k.LogLines.String(), secret) {
				t.Errorf("a line tells %s:\n%s", secret, k.LogLines)
			}
		}
	})
	return k
}

// InvocationContext is an invocation's, with the time that Lambda gives to it by the kit's clock.
func (k *DeliveryFixture) InvocationContext(t testing.TB, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), k.Clock.Now().Add(timeout))
	t.Cleanup(cancel)
	return ctx
}

// NewReservedPayment is a payment whose operator is being called: owned by "owner", not stored yet.
func (k *DeliveryFixture) NewReservedPayment(id string) *ledger.Entry {
	e := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: id}, MerchantID: "demo0001", Merchant: "DemoShop",
		LeaseUntil: k.Clock.Now().Add(25 * time.Second), Fingerprint: "f", UpstreamKey: id,
		Country: "CI", CountryAsSent: "CI", Operator: "sandbox", Account: "a1", Channel: "ussd", Lang: "fr",
		AmountMinor: 500, Exponent: 0, Currency: "XOF", AmountAsSent: "500", TransactionID: ledger.PaymentTransactionID(id),
		MerchantState: "canary-state&é", MerchantReference: "DemoShop", MSISDN: MSISDN, NotifyURL: k.MerchantServer.URL + "/demo",
	}
	e.BeginReservation("owner", ledger.Timestamp(k.Clock.Now()))
	return e
}

// StoreEntry puts an entry into the ledger after some changes, and gives it back as it stands there.
func (k *DeliveryFixture) StoreEntry(e *ledger.Entry, changes ...func(*ledger.Entry)) *ledger.Entry {
	for _, change := range changes {
		change(e)
	}
	e.Reschedule()
	k.Ledger.Overwrite(e)
	return e.Clone()
}

// StorePendingPayment stores a payment that the operator accepted now, pending, looked up for the first time in a minute.
func (k *DeliveryFixture) StorePendingPayment(id string, changes ...func(*ledger.Entry)) *ledger.Entry {
	e := k.NewReservedPayment(id)
	now := ledger.Timestamp(k.Clock.Now())
	e.ApplyOutcome("owner", ledger.CallOutcome{
		State: ledger.Done, Status: ledger.Pending, ResponseStatus: 201, ResponseBody: []byte("{}"), OperatorReference: "op-" + id,
		FirstPollAt: now.Add(PollSchedule()[0]),
	}, now)
	return k.StoreEntry(e, changes...)
}

// StoreUnknown stores a payment or another entry whose operator call was lost now.
func (k *DeliveryFixture) StoreUnknown(e *ledger.Entry) *ledger.Entry {
	e.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Unknown}, ledger.Timestamp(k.Clock.Now()))
	return k.StoreEntry(e)
}

// StoreFinalPayment stores a payment that has become final now, its notification in the outbox.
func (k *DeliveryFixture) StoreFinalPayment(id string, status ledger.Status, changes ...func(*ledger.Entry)) *ledger.Entry {
	return k.StorePendingPayment(id, append([]func(*ledger.Entry){func(e *ledger.Entry) {
		e.ApplyFinalStatus(ledger.StatusReport{Status: status, Source: "getStatus", UserSMS: true}, ledger.Timestamp(k.Clock.Now()))
	}}, changes...)...)
}

// StoreDueNotification stores a payment whose notification is the sweep's now.
func (k *DeliveryFixture) StoreDueNotification(id string, changes ...func(*ledger.Entry)) *ledger.Entry {
	return k.StoreFinalPayment(id, ledger.Failed, append(changes, func(e *ledger.Entry) { e.Outbox[0].NextAttemptAt = ledger.Timestamp(k.Clock.Now()) })...)
}

// StoreMessage stores an SMS that was sent, with the receipts that have come for it.
func (k *DeliveryFixture) StoreMessage(id string, receipts ...ledger.Status) *ledger.Entry {
	now := ledger.Timestamp(k.Clock.Now())
	e := k.NewMessage(id)
	e.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}, now)
	for _, status := range receipts {
		e.ApplyReceipt(status, now)
	}
	return k.StoreEntry(e)
}

// NewMessage is an SMS whose operator is being called, not stored yet.
func (k *DeliveryFixture) NewMessage(id string) *ledger.Entry {
	e := k.NewReservedPayment(id)
	e.Kind, e.Status = ledger.SMS, ""
	e.Address, e.Sender, e.CallbackData = "acr:X-Operator-ISE2", "tel:+2250700000000", "my-data"
	e.Reschedule()
	return e
}

// MustGet is an entry as it stands in the ledger.
func (k *DeliveryFixture) MustGet(t testing.TB, e *ledger.Entry) *ledger.Entry {
	t.Helper()
	for _, stored := range k.Ledger.All() {
		if stored.Key == e.Key {
			return stored
		}
	}
	t.Fatalf("%s is not in the ledger", e.Key)
	return nil
}

// MustHead is the one notification of an entry that may be delivered.
func (k *DeliveryFixture) MustHead(t testing.TB, e *ledger.Entry) ledger.Notification {
	t.Helper()
	head := k.MustGet(t, e).OutboxHead()
	if head == nil {
		t.Fatalf("nothing is in the outbox of %s", e.Key)
	}
	return *head
}

// UniqueReader gives bytes that never repeat and are the same in every run. It is safe for parallel use.
type UniqueReader struct{ callCounter }

// Read is io.Reader's.
func (r *UniqueReader) Read(p []byte) (int, error) {
	copy(p, fmt.Sprintf("%08d", r.increment()))
	return len(p), nil
}

// webhookSecret is the secret of the webhook keys: one key.
type webhookSecret struct{}

// Get is keyring.Source's.
func (webhookSecret) Get(context.Context) (secret.Value, error) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, keyring.KeySize))
	return secret.Value{Bytes: fmt.Appendf(nil, `{"keys":[{"number":1,"key":%q,"added":"2026-01-01T00:00:00Z"}]}`, key)}, nil
}

// Refresh is keyring.Source's.
func (r webhookSecret) Refresh(ctx context.Context) (secret.Value, error) { return r.Get(ctx) }

// WebhookSecret is the text of the secret that a merchant's notifications are signed with.
func WebhookSecret(merchantID string, version int) string {
	key := keyring.Key{Number: 1, Value: bytes.Repeat([]byte{9}, keyring.KeySize)}
	return webhook.DeriveSecret(key, merchantID, version).Text()
}

// FailNextLedgerCall makes the next call of an operation of the ledger end in an error; nothing was applied.
func (k *DeliveryFixture) FailNextLedgerCall(operation ledgermem.Operation) {
	pending := true
	k.Ledger.InjectFaults(func(call ledgermem.Call) ledgermem.InjectedFault {
		if pending && call.Operation == operation {
			pending = false
			return ledgermem.FailedBeforeApply
		}
		return ledgermem.NoFault
	})
}

var _ delivery.Profiles = (*ProfileStore)(nil)

// ProfileStore knows every merchant, each with two secrets, until Fail says otherwise.
type ProfileStore struct {
	callCounter
	err     error
	missing bool
}

// SetError makes every read fail, or with nil every merchant unknown; Heal ends that.
func (p *ProfileStore) SetError(failure error) { p.err, p.missing = failure, failure == nil }

// ClearError ends a failure.
func (p *ProfileStore) ClearError() { p.err, p.missing = nil, false }

// Profile is delivery.Profiles'.
func (p *ProfileStore) Profile(_ context.Context, id string) (*merchant.Profile, error) {
	p.increment()
	if p.err != nil || p.missing {
		return nil, p.err
	}
	return &merchant.Profile{
		ID: id, Name: "DemoShop", Status: merchant.StatusActive,
		WebhookSecrets: []merchant.WebhookSecret{{Version: 2, KeyNumber: 1}, {Version: 1, KeyNumber: 1}},
	}, nil
}
