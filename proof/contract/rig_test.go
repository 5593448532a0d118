package contract_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/charge"
	"mobilegateway/functions/notif"
	"mobilegateway/functions/pay"
	"mobilegateway/functions/receipt"
	"mobilegateway/functions/report"
	"mobilegateway/functions/resend"
	"mobilegateway/functions/sms"
	"mobilegateway/functions/status"
	"mobilegateway/functions/token"
	"mobilegateway/proof/contract"
	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/strictjson"
)

// provisioned has the values that the onboarding set for the merchant of the examples.
var provisioned = map[string][]string{
	"service_id":     {operationtest.ServiceID},
	"application_id": {operationtest.ApplicationID}, "contact_id": {operationtest.ContactID},
	"mno_name":     operator.NamesWithPlatform(),
	"on_behalf_of": operationtest.DemoProfile().OnBehalfOf, "sender_name": operationtest.DemoProfile().SenderNames,
	"order_prefix": {operationtest.DemoProfile().Name + "_"}, "home_mco": {"OCI"},
}

// The resources that the examples look up.
const (
	chargeID  = "f3e4995f-bbef-855d-87f6-5224d16525bd"
	messageID = "c6e6ffc8-09fa-874d-b30c-df3151b27b84"
	orderID   = "DemoShop_1001"
	sender    = "tel:+2250000"
)

// request is a request that send turns into an event of API Gateway.
type request struct {
	operation contract.Operation
	header    map[string]string
	param     map[string]string
	query     map[string]string
	body      string
}

// gateway has all functions behind one API in memory, with one merchant.
type gateway struct {
	t        testing.TB
	kit      *deliverytest.DeliveryFixture
	client   *merchant.Profile
	password string
}

// keyRing is a secret with one key ring.
type keyRing []byte

// Fetch implements secret.Source.
func (v keyRing) Fetch(context.Context, string) ([]byte, error) {
	return v, nil
}

// newGateway returns a gateway with an empty ledger.
func newGateway(t testing.TB) *gateway {
	t.Helper()
	k := deliverytest.New(t)
	g := &gateway{t: t, kit: k}
	lookup := &status.StatusHandler{
		Merchants: k.Merchants, Reader: k.Ledger, References: k.Ledger, Now: k.Clock.Now,
	}
	lists := &report.Handler{
		Merchants: k.Merchants, Days: k.Ledger, Entries: k.Ledger,
		Accounts: credentials.NewReader(secret.Static(`{}`), k.Clock.Now, operator.CheckBaseURL),
		Circuits: storetest.NewCircuits(), Now: k.Clock.Now,
	}
	resends := &resend.Handler{Merchants: k.Merchants, Book: k.Book, Days: k.Ledger, Now: k.Clock.Now}
	k.UpdateDemo(func(p *merchant.Profile) { p.Operations = merchant.Operations() })
	payments := &notif.CallbackHandler{
		Verifier: k.CallbackKeys, Book: k.Book, Confirmer: k.Confirmer,
		ClaimRecheckInterval: deliverytest.ClaimRecheckInterval, Now: k.Clock.Now,
	}
	receipts := &receipt.ReceiptHandler{
		Verifier: k.CallbackKeys, Book: k.Book, Operators: k.Confirmer.Operators, Messages: k.Ledger, Now: k.Clock.Now,
	}
	k.Serve("contract", append(slices.Concat(lookup.Routes(), lists.Routes(), payments.Routes(), receipts.Routes()),
		resends.Route(),
		(&charge.Operation{
			Pipeline: k.Pipeline, ServiceID: operationtest.ServiceID,
		}).Route(),
		(&pay.Operation{Pipeline: k.Pipeline, CallbackKeys: k.CallbackKeys, FirstPollDelay: time.Minute}).Route(),
		(&sms.Operation{
			Pipeline: k.Pipeline, Messages: k.Ledger, CallbackKeys: k.CallbackKeys,
			ApplicationID: operationtest.ApplicationID, ContactID: operationtest.ContactID,
		}).Route(),
		g.token(k.Clock.Now).Route(),
	)...)
	return g
}

// newGatewayFor returns a gateway with the entries that an operation needs: callbacks refer to stored ones.
func newGatewayFor(t testing.TB, o contract.Operation) *gateway {
	t.Helper()
	g := newGateway(t)
	if strings.HasPrefix(o.Path, "/callbacks/") {
		g.seed()
	}
	return g
}

// token returns the token endpoint with one client.
func (g *gateway) token(now func() time.Time) *token.Operation {
	ring, err := keyring.AddKey(nil, merchanttest.SeededReader(9), now())
	if err != nil {
		g.t.Fatal(err)
	}
	store := storetest.NewMerchants()
	g.client = merchanttest.NewProfile(g.t, "DemoShop", 1)
	if g.password, err = merchant.ClientSecret.Issue(g.client, merchanttest.SeededReader(2), now()); err != nil {
		g.t.Fatal(err)
	}
	if err := store.Create(context.Background(), g.client); err != nil {
		g.t.Fatal(err)
	}
	cache := secret.NewCache(keyRing(ring), "token-keys", time.Minute, time.Minute, now)
	keys := keyring.NewRefreshingRing(cache, time.Minute, now)
	return &token.Operation{Store: store, Keys: keys, TokenLifetime: time.Hour, Now: now}
}

// seed stores the payment and the message that lookups and callbacks refer to.
func (g *gateway) seed() *gateway {
	g.kit.StorePendingPayment(orderID, examplePayment)
	message := g.kit.StoreMessage(messageID)
	message.Request.Sender = sender
	g.kit.StoreEntry(message)
	return g
}

// examplePayment sets the values of the examples in a payment.
func examplePayment(e *ledger.Entry) {
	e.Request.State, e.Request.MSISDN, e.Amount.AsSent, e.Amount.Minor = "cart%3D42", "+2250700002000", "1000", 1000
}

// call returns the request of an example of an operation.
func (g *gateway) call(o contract.Operation, e contract.Example) *request {
	c := &request{operation: o, header: headersOf(o, e), param: map[string]string{}, query: map[string]string{}}
	for _, p := range o.Parameters {
		switch {
		case p.In == "path":
			c.param[p.Name] = p.Example
		case p.In == "query" && p.Example != "":
			c.query[p.Name] = p.Example
		}
	}
	c.header["authorization"] = operationtest.DemoToken
	for name := range o.Body {
		c.header["content-type"] = name
	}
	switch {
	case o.ID == "issueToken":
		c.header["authorization"] = basic(g.client.ID, g.password)
		form := url.Values{}
		for name, value := range e.Value.(contract.Object) {
			form.Set(name, value.(string))
		}
		c.body = form.Encode()
	case o.Body != nil:
		c.body = string(strictjson.Marshal(e.Value))
	}
	g.sign(c)
	return c
}

// sign puts a valid token into the path of a callback.
func (g *gateway) sign(c *request) {
	if c.param["token"] == "" {
		return
	}
	ring, err := g.kit.CallbackKeys.Ring(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	path := callback.PaymentPath(c.param["operator"], c.param["orderId"])
	if c.param["requestId"] != "" {
		path = callback.ReceiptPath(c.param["operator"], c.param["requestId"])
	}
	c.param["token"] = ring.Sign(path)
}

// send sends a request as an event of API Gateway and returns the response.
func (g *gateway) send(c *request) operationtest.Response {
	g.t.Helper()
	headers, several, params := map[string]string{}, map[string][]string{}, map[string]string{}
	for name, value := range c.header {
		headers[name], several[name] = value, []string{value}
	}
	for name, value := range c.param {
		params[name] = url.PathEscape(value)
	}
	resource := strings.Replace(c.operation.Path, "acr%3AOperatorAPIToken", "{endUserId}", 1)
	if resource != c.operation.Path {
		params["endUserId"] = "acr%3AOperatorAPIToken"
	}
	return g.kit.Invoke(g.t, strictjson.Marshal(map[string]any{
		"resource": resource, "path": c.operation.Path, "httpMethod": c.operation.Method,
		"headers": headers, "multiValueHeaders": several, "pathParameters": params, "queryStringParameters": c.query,
		"body": c.body, "requestContext": map[string]string{"requestId": "r-1"},
	}))
}
