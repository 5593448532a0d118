package iamcheck_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mobilegateway/internal/iamcheck"
	"mobilegateway/internal/local"
	"mobilegateway/internal/local/awscalls"
	"mobilegateway/internal/local/file"
	"mobilegateway/internal/localtest"
	"mobilegateway/internal/template"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
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
	location := g.post(t, chargePath, g.chargeBody("c1"),
		map[string]string{"gw-token": g.info.GWToken, "gw-alias": g.info.GWAlias})
	g.mustSend(t, http.StatusOK, http.MethodGet, location, "", nil)
	g.mustSend(t, http.StatusOK, http.MethodGet, g.info.BaseURL+chargePath+"?referenceCode=rc1", "", nil)
}

// chargeLate sends a charge whose response is lost. A person resolves it, and the merchant is notified.
func (g *gateway) chargeLate(t *testing.T, notify string) {
	t.Helper()
	environment := g.Environment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	g.provision(t, merchantdynamo.NewRegistry(client.DynamoDB(), environment["MERCHANT_TABLE"]), notify)
	location := g.mustSend(t, http.StatusGatewayTimeout, http.MethodPost, g.info.BaseURL+chargePath,
		g.chargeBody("late"), map[string]string{"gw-token": g.info.GWToken, "gw-alias": "late-alias-1005"})
	store := ledgerdynamo.New(client.DynamoDB(), environment["LEDGER_TABLE"])
	book := &ledger.Book{Store: store, Reader: store, Now: time.Now, Rand: rand.Reader}
	key := ledger.Key{Kind: ledger.Charge, ID: path.Base(location)}
	_, err = book.Change(t.Context(), key, func(e *ledger.Entry) error {
		return e.ResolveManually(ledger.ManualOutcome{
			ManualResolution: ledger.ManualResolution{Outcome: ledger.ManuallyApplied},
			Owner:            e.Owner, NotifyURL: notify,
		}, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// provision sets the merchant's own notification address, which a charge's notification goes to.
func (g *gateway) provision(t *testing.T, registry merchant.Registry, notify string) {
	t.Helper()
	profile, err := registry.Profile(t.Context(), g.info.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	changed := profile.Clone()
	changed.NotifURL = notify
	if err := registry.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
}

// pay sends a payment of a terminal. The operator's callback comes later.
func (g *gateway) pay(t *testing.T, order, msisdn, notify string) {
	t.Helper()
	g.post(t, "/mobilemoney/v1",
		`{"currency":"XOF","order_id":"`+order+`","amount":"1000","notif_url":"`+notify+`","reference":"R",`+
			`"state":"s","return_url":"`+notify+`","cancel_url":"`+notify+`",`+
			`"user_msisdn":"`+msisdn+`","otp_code":"1234"}`,
		map[string]string{"mno-name": "sandbox", "country-code": "CI", "channel": "tpe", "lang": "fr"})
	g.mustSend(t, http.StatusOK, http.MethodGet, g.info.BaseURL+"/mobilemoney/v1/getStatus/"+order, "", nil)
}

// sendSMS sends an SMS and looks it up. The operator's receipts come later.
func (g *gateway) sendSMS(t *testing.T, notify string) {
	t.Helper()
	location := g.post(t, "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests",
		`{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],"senderAddress":"tel:+2250000",`+
			`"outboundSMSTextMessage":{"message":"Hello"},"senderName":"Demo","clientCorrelator":"s1",`+
			`"receiptRequest":{"notifyURL":"`+notify+`","callbackData":"s1"}}}`,
		map[string]string{
			"gw-token": g.info.GWToken, "gw-alias": g.info.GWAlias,
			"X-Operator-MCO": "OCI", "X-Operator-ISE2": g.info.GWAlias, "X-OAPI-Resource-Type": "SMS_OSM",
			"X-OAPI-Application-Id": g.info.ApplicationID, "X-OAPI-Contact-Id": g.info.ContactID,
		})
	g.mustSend(t, http.StatusOK, http.MethodGet, location, "", nil)
}

// exceedLimits sends the requests of a merchant with limits. Of its two payments, one fails by a callback, and the
// other by a lookup.
func (g *gateway) exceedLimits(t *testing.T, notify string) {
	t.Helper()
	limited := &gateway{Gateway: g.Gateway, info: g.info}
	limited.info.MerchantCredentials = g.info.LimitedMerchant
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

// TestRolesMatchObservedCalls makes each function do all that it can, and compares the calls with template.yaml.
func TestRolesMatchObservedCalls(t *testing.T) {
	shop := newShop(t)
	run := localtest.Start(t, localtest.Options{Speed: 60})
	g := &gateway{Gateway: run, info: run.Info()}
	g.fetchToken(t)
	g.charge(t)
	g.chargeLate(t, shop+"/charges")
	for number, place := range map[string]string{"1001": "/", "1002": "/gone", "1003": "/left"} {
		g.pay(t, g.info.Merchant+"_"+number, "+2250700000000", shop+place)
	}
	g.sendSMS(t, shop+"/")
	g.exceedLimits(t, shop+"/")

	deployed, err := template.Load(filepath.Join("..", "..", "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for deadline := time.Now().Add(deliveryTimeout); ; time.Sleep(50 * time.Millisecond) {
		faults = iamcheck.Compare(deployed, run.RecordedCalls())
		if len(faults) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, fault := range faults {
		t.Error(fault)
	}
	run.Close()
	checkStored(t, run)
}

// checkStored checks that the record remains after the run.
func checkStored(t *testing.T, run *localtest.Gateway) {
	t.Helper()
	var called []awscalls.Call
	if err := file.ReadJSON(filepath.Join(run.Dir, awscalls.FileName), &called); err != nil {
		t.Fatal(err)
	}
	if len(called) != len(run.RecordedCalls()) {
		t.Errorf("%s has %d calls, want all %d", awscalls.FileName, len(called), len(run.RecordedCalls()))
	}
}
