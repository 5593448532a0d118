package iamcheck_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/internal/file"
	"mobilegateway/local"
	"mobilegateway/proof/iamcheck"
	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/world/awscalls"
	"mobilegateway/world/template/roles"
)

// deliveryTimeout bounds the wait for asynchronous calls.
const deliveryTimeout = time.Minute

// gateway is a local run with the credentials of its requests.
type gateway struct {
	*localtest.Gateway
	info local.Info
}

// post sends a JSON body and returns the response's Location. The test fails if the status is not 201.
func (g *gateway) post(t *testing.T, path, body string, header map[string]string) string {
	t.Helper()
	return g.mustSend(t, http.StatusCreated, http.MethodPost, g.info.BaseURL+path, body, header)
}

func (g *gateway) mustSend(t *testing.T, status int, method, address, body string, header map[string]string) string {
	t.Helper()
	all := http.Header{"Authorization": {"Bearer " + g.info.AccessToken}, "Content-Type": {"application/json"}}
	for name, value := range header {
		all.Set(name, value)
	}
	got, response, text := localtest.Send(t, method, address, body, all)
	if got != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, address, got, status, text)
	}
	return response.Get("Location")
}

const chargePath = "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"

// chargeBody is the body of a charge.
func (g *gateway) chargeBody(correlator string) string {
	return `{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{` +
		`"chargingInformation":{"amount":"500","currency":"XOF","description":"d"},` +
		`"chargingMetaData":{"onBehalfOf":"` + g.info.OnBehalfOf + `","serviceId":"` + g.info.ServiceID + `"}},` +
		`"transactionOperationStatus":"Charged","referenceCode":"r` + correlator + `",` +
		`"clientCorrelator":"` + correlator + `"}}`
}

// charge sends a charge and looks it up, by its id and by its reference.
func (g *gateway) charge(t *testing.T) {
	t.Helper()
	location := g.post(t, chargePath, g.chargeBody("c1"), g.userHeaders())
	g.mustSend(t, http.StatusOK, http.MethodGet, location, "", nil)
	g.mustSend(t, http.StatusOK, http.MethodGet, g.info.BaseURL+chargePath+"?referenceCode=rc1", "", nil)
}

// chargeLate sends a charge whose response is lost. A person resolves it, and the merchant is notified.
func (g *gateway) chargeLate(t *testing.T, notify string) {
	t.Helper()
	g.changeProfile(t, g.info.MerchantCredentials, func(p *merchant.Profile) { p.NotifURL = notify })
	location := g.mustSend(t, http.StatusGatewayTimeout, http.MethodPost, g.info.BaseURL+chargePath,
		g.chargeBody("late"), map[string]string{"gw-token": g.info.GWToken, "gw-alias": "late-alias-1005"})
	store := ledgerdynamo.New(g.client(t).DynamoDB(), g.Environment()["LEDGER_TABLE"])
	book := &ledger.Book{Store: store, Reader: store, Now: time.Now, Rand: rand.Reader}
	key := ledger.Key{Kind: ledger.Charge, ID: path.Base(location)}
	_, err := book.Change(t.Context(), key, func(e *ledger.Entry) (ledger.Transition, error) {
		return ledger.ResolveManually, e.ResolveManually(ledger.ManualOutcome{
			ManualResolution: ledger.ManualResolution{Outcome: ledger.ManuallyApplied},
			Owner:            e.Owner, NotifyURL: notify,
		}, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (g *gateway) client(t *testing.T) *awsclient.Client {
	t.Helper()
	environment := g.Environment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// changeProfile changes a merchant's profile. Functions that have read it may use the former one for a moment.
func (g *gateway) changeProfile(t *testing.T, m local.MerchantCredentials, change func(*merchant.Profile)) {
	t.Helper()
	registry := merchantdynamo.NewRegistry(g.client(t).DynamoDB(), g.Environment()["MERCHANT_TABLE"])
	profile, err := registry.Profile(t.Context(), m.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	changed := profile.Clone()
	change(changed)
	if err := registry.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
}

// as returns the gateway with another merchant.
func (g *gateway) as(m local.MerchantCredentials) *gateway {
	other := &gateway{Gateway: g.Gateway, info: g.info}
	other.info.MerchantCredentials = m
	return other
}

// sendWithoutRoute sends the requests of a merchant whose only operator is Wave, which takes web payments. Each
// function reads whether the key has an entry before it refuses.
func (g *gateway) sendWithoutRoute(t *testing.T, notify string) {
	t.Helper()
	other := g.as(g.info.SecondMerchant)
	g.changeProfile(t, g.info.SecondMerchant, func(p *merchant.Profile) { p.Operators = []string{"wave"} })
	other.mustSend(t, http.StatusForbidden, http.MethodPost, g.info.BaseURL+chargePath, other.chargeBody("c2"),
		other.userHeaders())
	other.mustSend(t, http.StatusForbidden, http.MethodPost, g.info.BaseURL+smsPath, smsBody(notify),
		other.smsHeaders())
	other.mustSend(t, http.StatusBadRequest, http.MethodPost, g.info.BaseURL+payPath,
		payBody(other.info.Merchant+"_1", "+2250700000000", notify), payHeaders("wave"))
}

const payPath = "/mobilemoney/v1"

func payHeaders(operatorName string) map[string]string {
	return map[string]string{"mno-name": operatorName, "country-code": "CI", "channel": "tpe", "lang": "fr"}
}

// payBody is the body of a payment of a terminal.
func payBody(order, msisdn, notify string) string {
	return `{"currency":"XOF","order_id":"` + order + `","amount":"1000","notif_url":"` + notify + `",` +
		`"reference":"R","state":"s","return_url":"` + notify + `","cancel_url":"` + notify + `",` +
		`"user_msisdn":"` + msisdn + `","otp_code":"1234"}`
}

// pay sends a payment of a terminal. The operator's callback comes later.
func (g *gateway) pay(t *testing.T, order, msisdn, notify string) {
	t.Helper()
	g.payAt(t, "sandbox", order, msisdn, notify)
}

// payAt is pay at an operator.
func (g *gateway) payAt(t *testing.T, operatorName, order, msisdn, notify string) {
	t.Helper()
	g.post(t, payPath, payBody(order, msisdn, notify), payHeaders(operatorName))
	g.mustSend(t, http.StatusOK, http.MethodGet, g.info.BaseURL+"/mobilemoney/v1/getStatus/"+order, "", nil)
}

const smsPath = "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"

// userHeaders has the values of the end user.
func (g *gateway) userHeaders() map[string]string {
	return map[string]string{"gw-token": g.info.GWToken, "gw-alias": g.info.GWAlias}
}

func (g *gateway) smsHeaders() map[string]string {
	return map[string]string{
		"gw-token": g.info.GWToken, "gw-alias": g.info.GWAlias,
		"X-Operator-MCO": "OCI", "X-Operator-ISE2": g.info.GWAlias, "X-OAPI-Resource-Type": "SMS_OSM",
		"X-OAPI-Application-Id": g.info.ApplicationID, "X-OAPI-Contact-Id": g.info.ContactID,
	}
}

func smsBody(notify string) string {
	return `{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],"senderAddress":"tel:+2250000",` +
		`"outboundSMSTextMessage":{"message":"Hello"},"senderName":"Demo","clientCorrelator":"s1",` +
		`"receiptRequest":{"notifyURL":"` + notify + `","callbackData":"s1"}}}`
}

// sendSMS sends an SMS and looks it up. The operator's receipts come later.
func (g *gateway) sendSMS(t *testing.T, notify string) {
	t.Helper()
	location := g.post(t, smsPath, smsBody(notify), g.smsHeaders())
	g.mustSend(t, http.StatusOK, http.MethodGet, location, "", nil)
}

// exceedLimits sends the requests of a merchant with limits. Its SMS goes over Orange, which sends all receipts to one
// address. Of its two payments, one fails by a callback, and the other by a lookup.
func (g *gateway) exceedLimits(t *testing.T, notify string) {
	t.Helper()
	operators := []string{"orange", "sandbox"}
	g.changeProfile(t, g.info.LimitedMerchant, func(p *merchant.Profile) { p.Operators = operators })
	limited := g.as(g.info.LimitedMerchant)
	limited.info.GWAlias = "2250700002000"
	limited.charge(t)
	limited.sendSMS(t, notify)
	for number, silent := range map[string]string{"1": "false", "2": "true"} {
		order := limited.info.Merchant + "_" + number
		limited.pay(t, order, "+2250700001003", notify)
		g.mustSend(t, http.StatusOK, http.MethodPost, g.info.SandboxURL+"/sandbox/v1/settle",
			`{"key":"`+order+`","status":"failed","silent":`+silent+`}`, nil)
	}
}

// fetchToken fetches a token for a merchant with a rate.
func (g *gateway) fetchToken(t *testing.T) {
	t.Helper()
	address := g.info.BaseURL + "/token?grant_type=client_credentials"
	credentials := &http.Request{Header: http.Header{}}
	credentials.SetBasicAuth(g.info.LimitedMerchant.ClientID, g.info.LimitedMerchant.ClientSecret)
	if status, _, _ := localtest.Send(t, http.MethodPost, address, "", credentials.Header); status != http.StatusOK {
		t.Errorf("/token responds %d, want 200", status)
	}
}

// loseResponses sends a payment and an SMS whose connections are cut: the first failure of an account is written
// (decision "circuit-breaker"). That of a charge is in chargeLate.
func (g *gateway) loseResponses(t *testing.T, notify string) {
	t.Helper()
	g.pay(t, g.info.Merchant+"_1006", "+2250700001005", notify)
	header := g.smsHeaders()
	header["X-Operator-ISE2"] = "late-alias-1005"
	body := strings.ReplaceAll(smsBody(notify), `"s1"`, `"lost"`)
	g.mustSend(t, http.StatusGatewayTimeout, http.MethodPost, g.info.BaseURL+smsPath, body, header)
}

// readAndResend lists the first merchant's transactions and operators, and has a notification of each operation sent
// again. The merchant gets a rate, so that the requests are counted.
func (g *gateway) readAndResend(t *testing.T) {
	t.Helper()
	g.changeProfile(t, g.info.MerchantCredentials, func(p *merchant.Profile) { p.RequestsPerSecond = 1000 })
	g.mustSend(t, http.StatusOK, http.MethodGet, g.info.BaseURL+"/operators/v1", "", nil)
	resent := map[string]bool{}
	for deadline := time.Now().Add(deliveryTimeout); len(resent) < 3; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %v have a notification to send again", resent)
		}
		for _, row := range g.listTransactions(t) {
			for _, n := range row.Notifications {
				if resent[row.Operation] || n.State == "waiting" || n.State == "parked" {
					continue
				}
				address := g.info.BaseURL + "/notifications/v1/" + n.WebhookID + "/resend"
				status, _, _ := localtest.Send(t, http.MethodPost, address, "",
					http.Header{"Authorization": {"Bearer " + g.info.AccessToken}})
				if status == http.StatusAccepted { // not after a later status of an SMS
					resent[row.Operation] = true
				}
			}
		}
	}
}

// reportedTransaction has the fields of a listed transaction that readAndResend needs.
type reportedTransaction struct {
	Operation     string
	Notifications []struct {
		WebhookID string `json:"webhook_id"`
		State     string
	}
}

func (g *gateway) listTransactions(t *testing.T) []reportedTransaction {
	t.Helper()
	status, _, text := localtest.Send(t, http.MethodGet, g.info.BaseURL+"/reports/v1/transactions?limit=100", "",
		http.Header{"Authorization": {"Bearer " + g.info.AccessToken}})
	var list struct{ Transactions []reportedTransaction }
	if err := json.Unmarshal([]byte(text), &list); status != http.StatusOK || err != nil {
		t.Fatalf("the list: status %d, %v: %s", status, err, text)
	}
	return list.Transactions
}

// newShop returns a merchant's server. It fails the first attempt of each notification, so that the sweep delivers it.
// /gone responds 410 at once, and /left at the second attempt.
func newShop(t *testing.T) string {
	t.Helper()
	var attempted sync.Map
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, again := attempted.LoadOrStore(r.Header.Get("webhook-id"), true)
		switch {
		case r.URL.Path == "/gone", r.URL.Path == "/left" && again:
			w.WriteHeader(http.StatusGone)
		case !again:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(shop.Close)
	return shop.URL
}

// rareCalls returns calls that follow only a failure of the database, so no run of the test makes them. The sweep binds
// a message that its send could not bind (decision "static-callbacks").
func rareCalls(t *testing.T) []awscalls.Call {
	t.Helper()
	var calls []awscalls.Call
	if err := file.ReadJSON(filepath.Join("testdata", "rare-calls.json"), &calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

// TestRolesMatchObservedCalls makes each function do all that it can, and compares the calls with template.yaml.
func TestRolesMatchObservedCalls(t *testing.T) {
	shop := newShop(t)
	run := localtest.Start(t, localtest.Options{Speed: 60, Stubs: true})
	g := &gateway{Gateway: run, info: run.Info()}
	g.fetchToken(t)
	g.charge(t)
	g.chargeLate(t, shop+"/charges")
	for number, place := range map[string]string{"1001": "/", "1002": "/gone", "1003": "/left"} {
		g.pay(t, g.info.Merchant+"_"+number, "+2250700000000", shop+place)
	}
	// MTN's lookups have a rate: one is made by a callback, the other, whose callback is lost, by the sweep.
	other := newShop(t) // a server that fails often gets few attempts
	g.payAt(t, "mtn", g.info.Merchant+"_1004", "+2250500000000", other+"/")
	g.payAt(t, "mtn", g.info.Merchant+"_1005", "+2250500001011", other+"/")
	g.sendSMS(t, other+"/")
	g.loseResponses(t, newShop(t)+"/")
	g.exceedLimits(t, newShop(t)+"/")
	g.sendWithoutRoute(t, shop+"/")
	g.readAndResend(t)

	deployed, err := roles.Load(filepath.Join("..", "..", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for deadline := time.Now().Add(deliveryTimeout); ; time.Sleep(50 * time.Millisecond) {
		faults = iamcheck.Compare(deployed, append(run.RecordedCalls(), rareCalls(t)...))
		if len(faults) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}
