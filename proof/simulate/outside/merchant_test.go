package outside

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/charge"
	"mobilegateway/functions/pay"
	"mobilegateway/functions/sms"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

const notification = `{"order-id":"DemoShop_1","status":"successful"}`

var signingSecret = webhook.Secret("0123456789abcdef0123456789abcdef")

// notify posts a notification that the gateway's own code signs.
func notify(s *MerchantServer, at time.Time, secrets []webhook.Secret, c Chooser) Exchange {
	body := notification
	request := httptest.NewRequest(http.MethodPost, "https://shop.example.com/", strings.NewReader(body))
	request.Header.Set(webhook.HeaderID, "id-1")
	request.Header.Set(webhook.HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(webhook.HeaderSignature, webhook.Sign(secrets, "id-1", at, []byte(body)))
	return s.Serve(start, request, []byte(body), c)
}

func TestMerchantVerifiesSignature(t *testing.T) {
	other := webhook.Secret("another-secret-another-secret-12")
	cases := map[string]struct {
		at      time.Time
		secrets []webhook.Secret
		want    int
	}{
		"signed":                   {start, []webhook.Secret{signingSecret}, 200},
		"signed during a rotation": {start, []webhook.Secret{other, signingSecret}, 200},
		"signed by another secret": {start, []webhook.Secret{other}, 401},
		"not signed":               {start, nil, 401},
		"signed six minutes ago":   {start.Add(-6 * time.Minute), []webhook.Secret{signingSecret}, 401},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &MerchantServer{Secrets: []string{signingSecret.Text()}, Faults: &Faults{}}
			if e := notify(s, c.at, c.secrets, script{}); e.Status != c.want {
				t.Errorf("status %d, want %d", e.Status, c.want)
			}
			got := s.Received()[0]
			isSigned := c.want == 200
			if got.Signed != isSigned || got.Processed != isSigned || got.Acknowledged != isSigned {
				t.Errorf("receipt %+v", got)
			}
			if got.ID != "id-1" || got.Order != "DemoShop_1" || got.Status != "successful" {
				t.Errorf("receipt %+v", got)
			}
		})
	}
}

func TestMerchantFaults(t *testing.T) {
	cases := map[Fault]struct {
		status    int
		failure   Failure
		processed bool
	}{
		NoFault:           {200, NoFailure, true},
		ConnectRefused:    {0, ConnectionRefused, false},
		ResetBefore:       {0, ConnectionReset, false},
		ResetAfter:        {0, ConnectionReset, true},
		HangBefore:        {0, NoResponse, false},
		HangAfter:         {0, NoResponse, true},
		SlowAfter:         {200, NoFailure, true},
		ServerErrorBefore: {500, NoFailure, false},
		Redirected:        {302, NoFailure, false},
		Rejected:          {400, NoFailure, false},
		Throttled:         {429, NoFailure, false},
		EndpointGone:      {410, NoFailure, false},
	}
	for fault, want := range cases {
		t.Run(string(fault), func(t *testing.T) {
			s := &MerchantServer{Secrets: []string{signingSecret.Text()}, Faults: only(Notifications, fault)}
			secrets := []webhook.Secret{signingSecret}
			e := notify(s, start, secrets, script{string(Notifications): 1})
			if e.Status != want.status || e.Failure != want.failure {
				t.Errorf("status %d, failure %d, want %+v", e.Status, e.Failure, want)
			}
			if received := len(s.Received()); received != 1 && fault != ConnectRefused {
				t.Fatalf("received %d notifications", received)
			}
			for _, receipt := range s.Received() {
				if receipt.Processed != want.processed || receipt.Acknowledged != (want.status == 200) {
					t.Errorf("receipt %+v, want %+v", receipt, want)
				}
			}
			if isSlow := e.Delay > 0; isSlow != (fault == SlowAfter) {
				t.Errorf("delay %s", e.Delay)
			}
			if e := notify(s, start, secrets, script{}); e.Status != 200 {
				t.Errorf("the next notification got %d", e.Status)
			}
		})
	}
}

func TestMerchantOutage(t *testing.T) {
	s := &MerchantServer{Secrets: []string{signingSecret.Text()}, Faults: only(MerchantServers, ServerDown)}
	s.PlanHealth(start.Add(-time.Minute), 8*time.Hour, script{
		string(MerchantServers): 1, "merchant: kind of failure": 1, "merchant: length of the failure": 1,
	})
	if len(s.Outages) != 1 {
		t.Fatalf("outages %+v, want one", s.Outages)
	}
	before := s.Hash()
	secrets := []webhook.Secret{signingSecret}
	if e := notify(s, start, secrets, script{}); e.Status != 500 {
		t.Errorf("status %d in the outage, want 500", e.Status)
	}
	s.Outages[0].To = start
	if e := notify(s, start, secrets, script{}); e.Status != 200 {
		t.Errorf("status %d after the outage, want 200", e.Status)
	}
	if s.Hash() == before {
		t.Error("the receipts do not change the hash")
	}
}

func TestSecrets(t *testing.T) {
	const label = string(SecretFetches)
	s := &Secrets{Faults: only(SecretFetches, SecretError, SecretTimeout, SecretStale)}
	if _, err := s.Fetch(start, "id", script{}); !errors.Is(err, ErrSecretUnreadable) {
		t.Errorf("a secret that does not exist: %v", err)
	}
	s.Set(start, "id", []byte("one"))
	s.Set(start, "id", []byte("two"))
	s.SetUnreadable("id", Window{start.Add(time.Hour), start.Add(2 * time.Hour)})
	cases := []struct {
		name   string
		at     time.Duration
		choice int
		want   string
		err    error
	}{
		{"current", 0, 0, "two", nil},
		{"error", 0, 1, "", ErrSecretUnreadable},
		{"timeout", 0, 2, "", context.DeadlineExceeded},
		{"stale", 0, 3, "one", nil},
		{"no longer stale", staleReadLimit, 3, "two", nil},
		{"unreadable", time.Hour, 0, "", ErrSecretUnreadable},
		{"readable again", 2 * time.Hour, 0, "two", nil},
	}
	for _, c := range cases {
		value, err := s.Fetch(start.Add(c.at), "id", script{label: c.choice})
		if string(value) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v, want %q, %v", c.name, value, err, c.want, c.err)
		}
	}
	if current, found := s.Current("id"); !found || string(current) != "two" {
		t.Errorf("current value %q, %v", current, found)
	}
}

var demoShop = Shop{
	Name: "DemoShop", ServiceID: operationtest.ServiceID, ApplicationID: operationtest.ApplicationID,
	ContactID: operationtest.ContactID, OnBehalfOf: "DemoShop", SenderName: "DEMO",
	NotifyURL: "https://shop.example.com/notify", Operators: operator.NamesWithPlatform(),
	Countries: market.Alpha2s(),
}

// readResponse reads a response of the fixture as a merchant does.
func readResponse(t *testing.T, response operationtest.Response) Response {
	t.Helper()
	payload, err := json.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadResponse(payload)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// The real functions accept every request of a shop, and recognize a retry.
func TestShopRequestsAreValid(t *testing.T) {
	token := strings.TrimPrefix(operationtest.DemoToken, "Bearer ")
	w := operationtest.New(t)
	w.Serve("all",
		(&charge.Operation{Pipeline: w.Pipeline, ServiceID: demoShop.ServiceID}).Route(),
		(&pay.Operation{Pipeline: w.Pipeline, CallbackKeys: w.CallbackKeys, FirstPollDelay: time.Minute}).Route(),
		(&sms.Operation{
			Pipeline: w.Pipeline, CallbackKeys: w.CallbackKeys, Retention: time.Hour,
			ApplicationID: demoShop.ApplicationID, ContactID: demoShop.ContactID,
		}).Route(),
	)
	for number := range 60 {
		for name, event := range map[string][]byte{
			"charge": demoShop.Charge(number).Event(token), "pay": demoShop.Pay(number).Event(token),
			"sms": demoShop.SMS(number).Event(token),
		} {
			first := readResponse(t, w.Invoke(t, event))
			if first.Status != http.StatusCreated || first.Replayed {
				t.Fatalf("%s %d: %d %s", name, number, first.Status, first.Body)
			}
			isWeb := name == "pay" && number%3 == 0
			if (first.ID == "") != isWeb {
				t.Errorf("%s %d: id %q in %s", name, number, first.ID, first.Body)
			}
			second := readResponse(t, w.Invoke(t, event))
			isReplay := second.Replayed && second.ID == first.ID
			isDuplicate := name == "sms" && second.Status == http.StatusConflict && second.Location == first.Location
			if !isReplay && !isDuplicate {
				t.Errorf("%s %d: the retry got %d %s", name, number, second.Status, second.Body)
			}
		}
	}
	refused := readResponse(t, w.Invoke(t, demoShop.Charge(1).Event("unknown")))
	if refused.Status != http.StatusUnauthorized || refused.MessageID != "900901" {
		t.Errorf("an unknown token got %+v", refused)
	}
}

func TestLookupEvents(t *testing.T) {
	paymentStatus, deliveryInfos := PaymentStatusEvent("t", "DemoShop_1"), DeliveryInfosEvent("t", "tel:+2250000", "id")
	cases := map[string][]byte{
		"/prod/mobilemoney/v1/getStatus/DemoShop_1":                                 paymentStatus,
		"/prod/payment/v1/acr%3AOperatorAPIToken/transactions/amount/id":            ChargeStatusEvent("t", "id"),
		"/prod/smsmessaging/v1/outbound/tel%3A%2B2250000/requests/id/deliveryInfos": deliveryInfos,
	}
	for path, payload := range cases {
		var event proxyEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			t.Fatal(err)
		}
		if "/"+apiStage+event.Path != path || event.Method != http.MethodGet {
			t.Errorf("%s %s, want %s", event.Method, event.Path, path)
		}
	}
}

func TestCallbackEvent(t *testing.T) {
	payload, err := CallbackEvent(callbackURL, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	var event proxyEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		t.Fatal(err)
	}
	if event.PathParameters["orderId"] != "DemoShop_1" || event.PathParameters["operator"] != "sandbox" {
		t.Errorf("path parameters %v", event.PathParameters)
	}
	if _, err := CallbackEvent("https://shop.example.com/", nil); err == nil {
		t.Error("an address of another server is accepted")
	}
}

func TestMerchantAcknowledges(t *testing.T) {
	s := &MerchantServer{
		Secrets: []string{signingSecret.Text()}, Faults: &Faults{},
		Outages: []Outage{{Window: Window{start, start.Add(time.Hour)}, Fault: ServerErrorBefore}},
	}
	notify(s, start, []webhook.Secret{signingSecret}, script{})
	if s.Acknowledged("id-1") {
		t.Error("a notification that got 500 is acknowledged")
	}
	s.Outages = nil
	notify(s, start, []webhook.Secret{signingSecret}, script{})
	if !s.Acknowledged("id-1") || s.Acknowledged("id-2") {
		t.Error("id-1 is not acknowledged, or id-2 is")
	}
}
