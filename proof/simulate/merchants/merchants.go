package merchants

import (
	"net/http"
	"slices"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
)

// Merchants are all merchants of a history.
type Merchants struct {
	*deployment.Deployment
	Accounts
	Shops   []*fixture.Shop
	Servers map[string]*outside.MerchantServer // by host
	Orders  []*Order
	// Kinds are those of the next orders.
	Kinds Kinds
	// HasDeniedAddresses lets some orders have an address to which no notification may go.
	HasDeniedAddresses bool
	// Without are the places of orders that send nothing.
	Without []int
	// Visit, if set, lets a payer use the page that a response may have.
	Visit func(payer, response string)

	observer Observer
	// resendsAtReceipt lets merchants have notifications sent again while their posts are in progress.
	resendsAtReceipt bool
}

// New makes the merchants, and lets them serve the deployment's notifications.
func New(d *deployment.Deployment, shops []*fixture.Shop, observer Observer) *Merchants {
	m := &Merchants{
		Deployment: d, Accounts: newAccounts(shops), Shops: shops, Servers: map[string]*outside.MerchantServer{},
		observer: observer,
	}
	for _, s := range shops {
		m.observer.Confide(s.Token, s.Secret, s.ClientSecret)
		m.Servers[s.Host] = &outside.MerchantServer{
			Name: s.Name, Secrets: []string{s.Secret}, Faults: d.Faults, Trace: d.LogText,
			OnReceipt: func(receipt outside.Receipt) { m.received(s, receipt) },
		}
	}
	d.Merchants = m.serve
	return m
}

// serve passes a notification to the merchant's server.
func (m *Merchants) serve(request *http.Request, body []byte) outside.Exchange {
	server := m.Servers[request.URL.Host]
	if server == nil {
		m.observer.NotifiedDenied(request.URL)
		return outside.Exchange{Failure: outside.ConnectionRefused}
	}
	return server.Serve(time.Now(), request, body, m.Tape)
}

// Limited is the merchant with a daily amount.
func (m *Merchants) Limited() *fixture.Shop {
	return m.Shops[slices.IndexFunc(m.Shops, func(s *fixture.Shop) bool { return s.Limited })]
}

// other is another merchant.
func (m *Merchants) other(s *fixture.Shop) *fixture.Shop {
	return m.Shops[slices.IndexFunc(m.Shops, func(other *fixture.Shop) bool { return other.Name != s.Name })]
}

// PlanHealth decides when a merchant's server is down.
func (m *Merchants) PlanHealth(s *fixture.Shop, length time.Duration) {
	server := m.Servers[s.Host]
	server.PlanHealth(history.Start, length, m.Tape)
	for _, broken := range server.Outages {
		m.BrokenUntil(broken.To)
	}
}

// sameContent is the interval of the numbers that select the same content.
const sameContent = 10 * largeAmountInterval * largeAmountInterval

// Add adds an order. number selects its content. Two hazards may add an order of a merchant under one number. The
// second then gets the next number that selects the same content, because each order has its own key.
func (m *Merchants) Add(s *fixture.Shop, function string, number int) *Order {
	for slices.ContainsFunc(m.Orders, func(o *Order) bool {
		return o.Shop.Name == s.Name && o.Function == function && o.Number == number
	}) {
		number += sameContent
	}
	return m.Take(m.Kinds.newOrder(s, function, number))
}

// Take takes in an order that was made before.
func (m *Merchants) Take(o *Order) *Order {
	if o.Function == deployment.Pay {
		m.observer.ConfideNumber(o.Wanted.Payer)
	}
	o.isDropped = slices.Contains(m.Without, len(m.Orders))
	m.Orders = append(m.Orders, o)
	return o
}

// Revise takes in that an order wants something else. Its other body has another text.
func (m *Merchants) Revise(o *Order) {
	o.encode(false)
	m.observer.ConfideNumber(o.Wanted.Payer)
}
