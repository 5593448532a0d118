// Package deliverytest is the test fixture of callbacks, lookups and notifications. It has an operator whose responses
// a test sets, a merchant's HTTP server, a clock that only a test advances, and a ledger in memory.
//
// It is never deployed. Its invariant: at the end of each test the fixture fails the test if a log line contains an
// MSISDN or a secret of its entries.
package deliverytest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/webhook"
)

// MSISDN is the payer's number in the fixture's payments. No log line may contain it.
const MSISDN = "0709998877"

// The intervals of a deployment.
const (
	PaymentLifetime      = 24 * time.Hour
	UnresponsiveRetry    = time.Hour
	ClaimRecheckInterval = 5 * time.Second
	SweepInterval        = time.Minute
)

// PollSchedule returns the default of POLL_SCHEDULE.
func PollSchedule() []time.Duration {
	return []time.Duration{
		time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
	}
}

// DeliveryFixture extends the fixture of the operations by the dependencies of callbacks, relay and sweep.
type DeliveryFixture struct {
	*operationtest.Fixture
	Operator       *Operator
	Book           *ledger.Book
	Confirmer      *confirm.Confirmer
	Courier        *delivery.Courier
	HealthStore    *storetest.EndpointHealth
	MerchantServer *MerchantServer
	ProfileStore   *ProfileStore
}

// New returns a fixture whose operator has every capability.
func New(t testing.TB) *DeliveryFixture {
	t.Helper()
	o := &Operator{}
	return NewWithDriver(t, o, o)
}

// NewWithDriver returns a fixture with a driver that wraps the operator and lacks some of its capabilities.
func NewWithDriver(t testing.TB, o *Operator, driver operator.Driver) *DeliveryFixture {
	t.Helper()
	k := &DeliveryFixture{
		Fixture: operationtest.New(t), Operator: o,
		MerchantServer: NewMerchantServer(t), ProfileStore: &ProfileStore{},
	}
	k.HealthStore = storetest.NewEndpointHealth(k.Clock.Now)
	k.MerchantServer.now = k.Clock.Now
	o.now = k.Clock.Now
	client := outgoing.NewClient(outgoing.Policy{AllowLoopback: true}, nil)
	directory := operationtest.SingleDriverDirectory(driver)
	k.Book = &ledger.Book{Store: k.Ledger, Reader: k.Ledger, Now: k.Clock.Now, Rand: &operationtest.UniqueReader{}}
	k.Confirmer = &confirm.Confirmer{
		Operators: directory, LookupTimeout: 5 * time.Second, DailyAmounts: k.Pipeline.DailyAmounts,
	}
	k.Courier = &delivery.Courier{
		Profiles:       k.ProfileStore,
		Keys:           WebhookKeys(k.Clock.Now),
		Health:         k.HealthStore,
		Sender:         webhook.NewSender(client, 15*time.Second, k.Clock.Now),
		Schedule:       webhook.DefaultSchedule(),
		Operators:      directory,
		SMSTimeout:     12 * time.Second,
		SMSRetryDelays: PollSchedule(),
		AllowLoopback:  true,
		Now:            k.Clock.Now,
		Rand:           &operationtest.UniqueReader{},
	}
	t.Cleanup(func() {
		for _, secret := range []string{MSISDN, MSISDN[1:], "whsec_", "canary-state"} {
			if strings.Contains(k.LogLines.String(), secret) {
				t.Errorf("the log lines contain %s, which must never be logged:\n%s", secret, k.LogLines)
			}
		}
	})
	return k
}

// InvocationContext returns the context of an invocation. Its deadline is timeout from now by the fixture's clock.
func (k *DeliveryFixture) InvocationContext(t testing.TB, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), k.Clock.Now().Add(timeout))
	t.Cleanup(cancel)
	return ctx
}

// NewReservedPayment returns a payment during the operator call, reserved by "owner" and not stored.
func (k *DeliveryFixture) NewReservedPayment(id string) *ledger.Entry {
	e := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: id}, Merchant: ledger.Merchant{ID: "demo0001", Name: "DemoShop"},
		Call: ledger.Call{LeaseUntil: k.Clock.Now().Add(25 * time.Second)},
		Request: ledger.Request{
			Fingerprint: "f", CountryAsSent: "CI", Channel: "ussd", Lang: "fr",
			TransactionID: ledger.PaymentTransactionID(id), State: "canary-state&é", Reference: "DemoShop",
			MSISDN: MSISDN,
		},
		Route:  ledger.Route{UpstreamKey: id, Country: "CI", Operator: "sandbox", Account: "a1"},
		Amount: ledger.Amount{Minor: 500, Exponent: 0, Currency: "XOF", AsSent: "500"},
		Outbox: ledger.Outbox{URL: k.MerchantServer.URL + "/demo"},
	}
	e.BeginReservation("owner", ledger.Timestamp(k.Clock.Now()))
	return e
}

// StoreEntry applies changes to an entry, stores it in the ledger, and returns a copy of the stored entry.
func (k *DeliveryFixture) StoreEntry(e *ledger.Entry, changes ...func(*ledger.Entry)) *ledger.Entry {
	for _, change := range changes {
		change(e)
	}
	e.Reschedule()
	k.Ledger.Overwrite(e)
	return e.Clone()
}

// StorePendingPayment stores a payment that the operator accepted now. It is pending; its first lookup is due in a
// minute.
func (k *DeliveryFixture) StorePendingPayment(id string, changes ...func(*ledger.Entry)) *ledger.Entry {
	e := k.NewReservedPayment(id)
	now := ledger.Timestamp(k.Clock.Now())
	e.ApplyOutcome("owner", ledger.CallOutcome{
		State: ledger.Done, Status: ledger.Pending, ResponseStatus: 201, ResponseBody: []byte("{}"),
		OperatorReference: "op-" + id, FirstPollAt: now.Add(PollSchedule()[0]),
	}, now)
	return k.StoreEntry(e, changes...)
}

// StoreUnknown stores an entry whose operator call ended now with an unknown outcome.
func (k *DeliveryFixture) StoreUnknown(e *ledger.Entry) *ledger.Entry {
	e.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Unknown}, ledger.Timestamp(k.Clock.Now()))
	return k.StoreEntry(e)
}

// StoreFinalPayment stores a payment that reached a final status now, with its notification in the outbox.
func (k *DeliveryFixture) StoreFinalPayment(
	id string, status ledger.Status, changes ...func(*ledger.Entry),
) *ledger.Entry {
	report := ledger.StatusReport{Status: status, Source: "getStatus", UserSMS: true}
	finish := func(e *ledger.Entry) { e.ApplyFinalStatus(report, ledger.Timestamp(k.Clock.Now())) }
	return k.StorePendingPayment(id, slices.Insert(changes, 0, finish)...)
}

// StoreDueNotification stores a failed payment whose notification is due for the sweep now.
func (k *DeliveryFixture) StoreDueNotification(id string, changes ...func(*ledger.Entry)) *ledger.Entry {
	makeDue := func(e *ledger.Entry) { e.Outbox.Waiting[0].NextAttemptAt = ledger.Timestamp(k.Clock.Now()) }
	return k.StoreFinalPayment(id, ledger.Failed, append(changes, makeDue)...)
}

// StoreMessage stores an SMS that was sent and received these delivery receipts.
func (k *DeliveryFixture) StoreMessage(id string, receipts ...ledger.Status) *ledger.Entry {
	now := ledger.Timestamp(k.Clock.Now())
	e := k.NewMessage(id)
	outcome := ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}
	e.ApplyOutcome("owner", outcome, now)
	for _, status := range receipts {
		e.ApplyReceipt(status, now)
	}
	return k.StoreEntry(e)
}

// NewMessage returns an SMS during the operator call, reserved by "owner" and not stored.
func (k *DeliveryFixture) NewMessage(id string) *ledger.Entry {
	e := k.NewReservedPayment(id)
	e.Kind, e.Status = ledger.SMS, ""
	e.Request.Address, e.Request.Sender, e.Request.CallbackData = "acr:X-Operator-ISE2", "tel:+2250700000000", "my-data"
	e.Reschedule()
	return e
}

// MustGet returns the stored version of an entry. It is not counted as a call of the ledger.
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

// MustHead returns the first notification in the stored outbox of an entry.
func (k *DeliveryFixture) MustHead(t testing.TB, e *ledger.Entry) ledger.Notification {
	t.Helper()
	head := k.MustGet(t, e).Outbox.Head()
	if head == nil {
		t.Fatalf("the outbox of %s is empty, want a notification", e.Key)
	}
	return *head
}
