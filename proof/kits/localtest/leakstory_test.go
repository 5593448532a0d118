package localtest_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/webhook"
	"mobilegateway/world/inbox"
)

// deliveryTimeout bounds the time until a notification arrives.
const deliveryTimeout = 30 * time.Second

// tokenOperator is the sandbox behind a proxy that knows two tokens. The sandbox accepts the leaked one.
type tokenOperator struct {
	leaked, next         string
	ended                atomic.Bool // the operator refuses the leaked token
	leakedUses, nextUses atomic.Int64
}

// rewrite counts a request by its token, and gives it one that the sandbox accepts or refuses.
func (o *tokenOperator) rewrite(r *httputil.ProxyRequest, sandbox *url.URL) {
	r.SetURL(sandbox)
	accepted := false
	switch r.In.Header.Get("Authorization") {
	case "Bearer " + o.leaked:
		o.leakedUses.Add(1)
		accepted = !o.ended.Load()
	case "Bearer " + o.next:
		o.nextUses.Add(1)
		accepted = true
	}
	r.Out.Header.Set("Authorization", "Bearer refused")
	if accepted {
		r.Out.Header.Set("Authorization", "Bearer "+o.leaked)
	}
}

// startOperator starts the proxy, and makes it the current account of the operator sandbox.
func (s *leakStory) startOperator() {
	type accounts struct {
		Current  string                    `json:"current"`
		Accounts map[string]map[string]any `json:"accounts"`
	}
	operators := map[string]accounts{}
	if err := json.Unmarshal(s.secretValue("OPERATOR_CREDENTIALS_SECRET"), &operators); err != nil {
		s.Fatal(err)
	}
	account := operators["sandbox"].Accounts["local"]
	sandbox, err := url.Parse(s.info.SandboxURL)
	if err != nil {
		s.Fatal(err)
	}
	s.operator = &tokenOperator{leaked: account["access_token"].(string), next: rand.Text()}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { s.operator.rewrite(r, sandbox) },
	})
	s.Cleanup(proxy.Close)
	account["base_url"] = proxy.URL
	changed, err := json.Marshal(map[string]accounts{
		"sandbox": {Current: "proxy", Accounts: map[string]map[string]any{"proxy": account}},
	})
	if err != nil {
		s.Fatal(err)
	}
	file := filepath.Join(s.TempDir(), "operator.json")
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		s.Fatal(err)
	}
	s.runTool("operator", "set", file)
}

// charge charges an end user, if the operator accepts our token. A charge needs no callback key.
func (s *leakStory) charge() {
	s.Helper()
	s.orders++
	body := fmt.Sprintf(`{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{
		"chargingInformation":{"amount":"500","currency":"XOF","description":"A song"},"chargingMetaData":{
		"onBehalfOf":%q,"serviceId":"LOCAL_SERVICE"}},"transactionOperationStatus":"Charged","referenceCode":"ref-%d",
		"clientCorrelator":"leak-%d"}}`, s.info.Merchant, s.orders, s.orders)
	header := http.Header{
		"Authorization": {"Bearer " + s.info.AccessToken}, "Content-Type": {"application/json"},
		"Gw-Token": {"demo-gw-token"}, "Gw-Alias": {fmt.Sprintf("leak-%d-2000", s.orders)},
	}
	address := s.info.BaseURL + "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"
	code, _, text := localtest.Send(s, http.MethodPost, address, body, header)
	if code != http.StatusCreated && (code != http.StatusBadGateway || !s.operator.ended.Load()) {
		s.Fatalf("charge %d: %d %s", s.orders, code, text)
	}
}

// pay requests a payment that succeeds, if the operator accepts our token. It returns the order_id.
func (s *leakStory) pay() string {
	s.Helper()
	order, code, text := s.tryToPay()
	if code != http.StatusCreated {
		s.Fatalf("payment %s: %d %s", order, code, text)
	}
	return order
}

// tryToPay requests a payment, and returns its order_id and the response.
func (s *leakStory) tryToPay() (order string, code int, text string) {
	s.Helper()
	s.orders++
	order = fmt.Sprintf("%s_%d", s.info.Merchant, s.orders)
	body := fmt.Sprintf(`{"order_id":%q,"amount":"1500","currency":"XOF","reference":%q,"state":"leak",
		"return_url":"https://shop.example/","cancel_url":"https://shop.example/","user_msisdn":"+2250712342000"}`,
		order, s.info.Merchant)
	header := http.Header{
		"Authorization": {"Bearer " + s.info.AccessToken}, "Content-Type": {"application/json"},
		"Mno-Name": {"sandbox"}, "Country-Code": {"CI"}, "Channel": {"ussd"}, "Lang": {"fr"},
	}
	code, _, text = localtest.Send(s, http.MethodPost, s.info.BaseURL+"/mobilemoney/v1", body, header)
	return order, code, text
}

// notifications returns what the merchant received for the order.
func (s *leakStory) notifications() (received []inbox.Message) {
	s.Helper()
	_, _, text := localtest.Send(s, http.MethodGet, s.info.InboxURL+"/messages?order_id="+s.notified, "", nil)
	if err := json.Unmarshal([]byte(text), &received); err != nil {
		s.Fatal(err)
	}
	return received
}

// awaitNotifications waits until the merchant has received so many notifications, and returns the last one.
func (s *leakStory) awaitNotifications(count int) inbox.Message {
	s.Helper()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for startedAt := time.Now(); time.Since(startedAt) < deliveryTimeout; <-poll.C {
		if received := s.notifications(); len(received) >= count {
			return received[len(received)-1]
		}
	}
	s.Fatalf("the merchant has not received %d notifications after %s", count, deliveryTimeout)
	return inbox.Message{}
}

// notifyAgain sends the notification again, and returns it as the merchant received it.
func (s *leakStory) notifyAgain() inbox.Message {
	s.Helper()
	s.awaitNotifications(1)
	count := len(s.notifications())
	s.runTool("deliveries", "replay", s.notified)
	return s.awaitNotifications(count + 1)
}

// signedWith reports whether one of a notification's signatures is that of a secret (whsec_...).
func signedWith(t *testing.T, m inbox.Message, text string) bool {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil || len(key) == 0 {
		t.Fatalf("the webhook secret is not in the form whsec_: %v", err)
	}
	seconds, err := strconv.ParseInt(m.Headers["webhook-timestamp"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	signature := webhook.Sign([]webhook.Secret{key}, m.Headers["webhook-id"], time.Unix(seconds, 0), []byte(m.Body))
	return slices.Contains(strings.Fields(m.Headers["webhook-signature"]), signature)
}

// shortLivedToken requests a token.
func (s *leakStory) shortLivedToken() string {
	s.Helper()
	code, text := s.tryToGetToken()
	var response struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(text), &response); err != nil || response.AccessToken == "" {
		s.Fatalf("no token: %d %s", code, text)
	}
	return response.AccessToken
}

// tryToGetToken requests a token, and returns the response.
func (s *leakStory) tryToGetToken() (code int, text string) {
	s.Helper()
	credentials := base64.StdEncoding.EncodeToString([]byte(s.info.ClientID + ":" + s.info.ClientSecret))
	header := http.Header{
		"Authorization": {"Basic " + credentials}, "Content-Type": {"application/x-www-form-urlencoded"},
	}
	code, _, text = localtest.Send(s, http.MethodPost, s.info.BaseURL+"/token", "grant_type=client_credentials", header)
	return code, text
}

// signedCallbacks signs callback addresses of a payment and of an SMS with the ring that leaked.
func (s *leakStory) signedCallbacks() []string {
	s.Helper()
	leaked := secret.Static(s.secretValue("CALLBACK_KEY_SECRET"))
	keys := callback.New(keyring.NewRefreshingRing(leaked, time.Minute, time.Now), time.Minute)
	ring, err := keys.Ring(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return []string{
		ring.PaymentURL(s.info.BaseURL, "orange", "DemoShop_absent"),
		ring.ReceiptURL(s.info.BaseURL, "orange", "12345678-1234-5678-9234-567812345678"),
	}
}

// secretValue returns the value of the secret that a variable of the functions names.
func (s *leakStory) secretValue(variable string) []byte {
	s.Helper()
	environment := s.gateway.Environment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		s.Fatal(err)
	}
	value, err := local.Deployment{Client: client}.SecretValue(s.Context(), environment[variable])
	if err != nil {
		s.Fatal(err)
	}
	return value
}

// runTool runs gatewayctl on the local run, and returns its standard output.
func (s *leakStory) runTool(arguments ...string) []byte {
	s.Helper()
	var stdout, stderr bytes.Buffer
	code := gatewayctl.Run(s.Context(), append([]string{"--local", "--yes", "--reason", "leaked"}, arguments...),
		deployment.System{
			Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, User: "test",
			Now: time.Now, Rand: rand.Reader,
			Getenv: func(name string) string {
				if name == "LOCAL_DIR" {
					return s.gateway.Dir
				}
				return os.Getenv(name)
			},
			Connect: deployment.Connect,
		})
	if code != gatewayctl.ExitDone {
		s.Fatalf("%v: exit %d: %s", arguments, code, stderr.String())
	}
	return stdout.Bytes()
}
