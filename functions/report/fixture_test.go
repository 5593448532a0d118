package report_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/functions/report"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
)

// fixture is the report function over a ledger, with the routes, accounts and circuits of its operators.
type fixture struct {
	*operationtest.Fixture
	accounts *accounts
	circuits *storetest.Circuits
}

// accounts are the routes, and the accounts by "platform/id". The current account of a platform is "a1".
type accounts struct {
	routes operator.Routes
	err    error // of the routes
	broken string
	finds  int
}

func (a *accounts) Routes(context.Context) (operator.Routes, error) { return a.routes, a.err }

func (a *accounts) Find(_ context.Context, platform, id string) (credentials.Account, error) {
	a.finds++
	if platform == a.broken {
		return credentials.Account{}, errors.New("no account")
	}
	if id == "" {
		id = "a1"
	}
	return credentials.Account{Platform: platform, ID: id}, nil
}

// newFixture returns a fixture whose DemoShop has every entitlement.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{
		Fixture: operationtest.New(t), accounts: &accounts{}, circuits: storetest.NewCircuits(),
	}
	handler := &report.Handler{
		Merchants: f.Merchants, RateLimiter: f.Pipeline.RateLimiter, Days: f.Ledger, Entries: f.Ledger,
		Accounts: f.accounts, Circuits: f.circuits, Now: f.Clock.Now,
	}
	f.Serve("report", handler.Routes()...)
	f.UpdateDemo(func(p *merchant.Profile) { p.Operations = merchant.Operations() })
	return f
}

// entitleOther adds every entitlement to OtherShop's profile.
func (f *fixture) entitleOther() {
	all := func(p *merchant.Profile) { p.Operations = merchant.Operations() }
	f.Merchants.UpdateProfile(operationtest.OtherToken, all)
}

// day is the UTC day of the fixture's clock.
const day = "2096-11-21"

// list is a request of a list with query parameters.
func list(t testing.TB, query map[string]string) *operationtest.Event {
	t.Helper()
	return operationtest.LoadEvent(t, "testdata/event-transactions.json").SetField("queryStringParameters", query)
}

func operators(t testing.TB) *operationtest.Event {
	t.Helper()
	return operationtest.LoadEvent(t, "testdata/event-operators.json")
}

// newEntry is a transaction of DemoShop that was created some seconds after the fixture's time.
func (f *fixture) newEntry(kind ledger.Kind, id string, state ledger.State, second int) *ledger.Entry {
	demo := operationtest.DemoProfile()
	at := f.Clock.Now().Add(time.Duration(second) * time.Second)
	return &ledger.Entry{
		Key: ledger.Key{Kind: kind, ID: id}, Merchant: ledger.Merchant{ID: demo.ID, Name: demo.Name},
		Call: ledger.Call{State: state}, Version: 2, CreatedAt: at, UpdatedAt: at,
		Route:  ledger.Route{Country: "CI", Operator: "orange", Account: "a1"},
		Amount: ledger.Amount{Currency: "XOF", Minor: 500, AsSent: "500.00"},
	}
}

// payment is a payment with a status on the ussd channel.
func (f *fixture) payment(id string, status ledger.Status, second int) *ledger.Entry {
	e := f.newEntry(ledger.Payment, id, ledger.Done, second)
	e.Status, e.Request.Channel, e.Request.MSISDN = status, "ussd", operationtest.MSISDN
	e.Request.TransactionID = ledger.PaymentTransactionID(id)
	return e
}

// store stores entries as they are.
func (f *fixture) store(entries ...*ledger.Entry) {
	for _, e := range entries {
		f.Ledger.Overwrite(e)
	}
}
