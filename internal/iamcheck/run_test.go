package iamcheck_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/internal/iamcheck"
	"mobilegateway/internal/local"
	"mobilegateway/internal/local/awscalls"
	"mobilegateway/internal/local/file"
	"mobilegateway/internal/localtest"
	"mobilegateway/internal/template"
)

// deliveryTimeout bounds the wait for asynchronous calls.
const deliveryTimeout = 20 * time.Second

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

// charge sends a charge and looks it up.
func (g *gateway) charge(t *testing.T) {
	t.Helper()
	location := g.post(t, "/payment/v1/acr%3AOperatorAPIToken/transactions/amount",
		`{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{`+
			`"chargingInformation":{"amount":"500","currency":"XOF","description":"d"},`+
			`"chargingMetaData":{"onBehalfOf":"`+g.info.OnBehalfOf+`","serviceId":"`+g.info.ServiceID+`"}},`+
			`"transactionOperationStatus":"Charged","referenceCode":"r1","clientCorrelator":"c1"}}`,
		map[string]string{"gw-token": g.info.GWToken, "gw-alias": g.info.GWAlias})
	g.mustSend(t, http.StatusOK, http.MethodGet, location, "", nil)
}

// pay sends a payment of a terminal. The operator's callback comes later.
func (g *gateway) pay(t *testing.T, order, msisdn, notify string) {
	t.Helper()
	g.post(t, "/mobilemoney/v1",
		`{"currency":"XOF","order_id":"`+order+`","amount":"1000","notif_url":"`+notify+`","reference":"R",`+
			`"state":"s","return_url":"`+notify+`","cancel_url":"`+notify+`",`+
			`"user_msisdn":"`+msisdn+`","otp_code":"1234"}`,
		map[string]string{"mno-name": "sandbox", "country-code": "CI", "channel": "tpe", "lang": "fr"})
}

// sendSMS sends an SMS. The operator's receipts come later.
func (g *gateway) sendSMS(t *testing.T, notify string) {
	t.Helper()
	g.post(t, "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests",
		`{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],"senderAddress":"tel:+2250000",`+
			`"outboundSMSTextMessage":{"message":"Hello"},"senderName":"Demo","clientCorrelator":"s1",`+
			`"receiptRequest":{"notifyURL":"`+notify+`","callbackData":"s1"}}}`,
		map[string]string{
			"gw-token": g.info.GWToken, "gw-alias": g.info.GWAlias,
			"X-Operator-MCO": "OCI", "X-Operator-ISE2": g.info.GWAlias, "X-OAPI-Resource-Type": "SMS_OSM",
			"X-OAPI-Application-Id": g.info.ApplicationID, "X-OAPI-Contact-Id": g.info.ContactID,
		})
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

// fetchToken fetches a token.
func (g *gateway) fetchToken(t *testing.T) {
	t.Helper()
	address := g.info.BaseURL + "/token?grant_type=client_credentials"
	credentials := &http.Request{Header: http.Header{}}
	credentials.SetBasicAuth(g.info.ClientID, g.info.ClientSecret)
	if status, _, _ := localtest.Send(t, http.MethodPost, address, "", credentials.Header); status != http.StatusOK {
		t.Errorf("/token responds %d, want 200", status)
	}
}

// TestRolesMatchObservedCalls makes each function do all that it can, and compares the calls with template.yaml. The
// merchant's server fails once for each notification, so that the sweep delivers it.
func TestRolesMatchObservedCalls(t *testing.T) {
	var posts atomic.Int32
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if posts.Add(1) <= 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(shop.Close)
	run := localtest.Start(t, localtest.Options{Speed: 60})
	g := &gateway{Gateway: run, info: run.Info()}
	g.fetchToken(t)
	g.charge(t)
	g.pay(t, g.info.Merchant+"_1001", "+2250700000000", shop.URL)
	g.sendSMS(t, shop.URL)
	g.exceedLimits(t, shop.URL)

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
