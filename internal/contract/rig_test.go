package contract_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/charge"
	"mobilegateway/functions/notif"
	"mobilegateway/functions/pay"
	"mobilegateway/functions/receipt"
	"mobilegateway/functions/sms"
	"mobilegateway/functions/status"
	"mobilegateway/functions/token"
	"mobilegateway/internal/contract"
	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/merchantmem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/merchanttest"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/strictjson"
)

// provisioned is what the onboarding gave to the merchant of the examples.
var provisioned = map[string][]string{
	"service_id": {operationtest.ServiceID}, "application_id": {operationtest.ApplicationID}, "contact_id": {operationtest.ContactID},
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

// call is a request before it becomes API Gateway's event.
type call struct {
	operation contract.Operation
	header    map[string]string
	param     map[string]string
	query     map[string]string
	body      string
}

// gateway is every function behind one gateway, in memory, with a merchant and the resources of the examples.
type gateway struct {
	t        testing.TB
	kit      *deliverytest.DeliveryFixture
	client   *merchant.Profile
	password string
}

// vault is a secret that holds one key ring.
type vault []byte

// Fetch is secret.Source's.
func (v vault) Fetch(context.Context, string) (secret.Value, error) {
	return secret.Value{Bytes: v}, nil
}

// open makes a gateway where nothing has happened yet.
func open(t testing.TB) *gateway {
	t.Helper()
	k := deliverytest.New(t)
	g := &gateway{t: t, kit: k}
	lookup := &status.StatusHandler{Merchants: k.Merchants, Reader: k.Ledger, Now: k.Clock.Now}
	payments := &notif.CallbackHandler{Verifier: k.CallbackKeys, Book: k.Book, Reconciler: k.Reconciler, DailyAmounts: k.Pipeline.DailyAmounts, ClaimRecheckDelay: deliverytest.ClaimRecheckDelay, Now: k.Clock.Now}
	receipts := &receipt.ReceiptHandler{Verifier: k.CallbackKeys, Book: k.Book, Now: k.Clock.Now}
	k.Serve("contract", append(lookup.Routes(),
		(&charge.Operation{Pipeline: k.Pipeline, References: k.Fixture.Writer, ServiceID: operationtest.ServiceID}).Route(),
		(&pay.Operation{Pipeline: k.Pipeline, CallbackKeys: k.CallbackKeys, FirstPollDelay: time.Minute}).Route(),
		(&sms.Operation{Pipeline: k.Pipeline, CallbackKeys: k.CallbackKeys, ApplicationID: operationtest.ApplicationID, ContactID: operationtest.ContactID}).Route(),
		payments.Route(), receipts.Route(), g.token(k.Clock.Now).Route(),
	)...)
	return g
}

// token is the token endpoint with one client.
func (g *gateway) token(now func() time.Time) *token.Operation {
	ring, err := keyring.AddKey(nil, merchanttest.SeededReader(9), now())
	if err != nil {
		g.t.Fatal(err)
	}
	store := &merchantmem.Store{}
	g.client = merchanttest.NewProfile(g.t, "DemoShop", 1)
	if g.password, err = merchant.IssueClientSecret(g.client, merchanttest.SeededReader(2), now()); err != nil {
		g.t.Fatal(err)
	}
	if err := store.Create(context.Background(), g.client); err != nil {
		g.t.Fatal(err)
	}
	cache := secret.NewCache(vault(ring), "token-keys", time.Minute, time.Minute, now)
	return &token.Operation{Store: store, Keys: keyring.NewRefreshingRing(cache, time.Minute, now), TokenLifetime: time.Hour, Now: now}
}

// stock puts the resources that lookups and callbacks speak of into the ledger.
func (g *gateway) stock() *gateway {
	g.kit.StorePendingPayment(orderID, purchase)
	message := g.kit.StoreMessage(messageID)
	message.Sender = sender
	g.kit.StoreEntry(message)
	return g
}

// purchase gives the kit's payment the values of the examples.
func purchase(e *ledger.Entry) {
	e.MerchantState, e.MSISDN, e.AmountAsSent, e.AmountMinor = "cart%3D42", "+2250700002000", "1000", 1000
}

// example makes the call of an operation's example.
func (g *gateway) example(o contract.Operation, e contract.Example) *call {
	c := &call{operation: o, header: headersOf(o, e), param: map[string]string{}, query: map[string]string{}}
	for _, p := range o.Parameters {
		if p.In == "path" {
			c.param[p.Name] = p.Example
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

// sign puts a genuine token into the address of a callback.
func (g *gateway) sign(c *call) {
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

// do sends a call as API Gateway would.
func (g *gateway) do(c *call) operationtest.Response {
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
		"resource": resource, "path": c.operation.Path, "httpMethod": c.operation.Method, "headers": headers, "multiValueHeaders": several,
		"pathParameters": params, "queryStringParameters": c.query, "body": c.body, "requestContext": map[string]string{"requestId": "r-1"},
	}))
}
