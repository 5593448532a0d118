package flouci_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/flouci"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
	stub "mobilegateway/world/operators/flouci"
	"mobilegateway/world/operators/kit"
)

const account = `{"flouci-checkout":{"current":"tn","accounts":{"tn":{"base_url":"https://stub.test",` +
	`"public_key":"app-1","private_key":"stub"}}}}`

// bench is a stub, and the driver over it.
type bench struct {
	*stubtest.Stub
	driver *flouci.Driver
	call   operator.Call
}

func newBench(t *testing.T, privateKey string) *bench {
	accepted := stub.Credentials{PublicKey: "app-1", PrivateKey: privateKey, PageURL: "https://stub.test"}
	b := &bench{Stub: stubtest.NewStub(t, "flouci", "", func(client *http.Client) http.Handler {
		return stub.New(kit.Config{Client: client}, accepted).Handler()
	})}
	client := upstream.NewClient(stubtest.Client(b).Transport)
	accounts := credentials.NewReader(secret.Static(account), time.Now, operator.CheckBaseURL)
	b.driver = flouci.New(accounts, client, time.Now)
	b.call = operator.Call{Platform: "flouci-checkout", UpstreamKey: "DemoShop_42", Country: "TN"}
	return b
}

func (b *bench) pay() operator.PayResponse {
	response := b.driver.Pay(b.Context(), operator.PayCall{
		Call: b.call, Channel: "web", Amount: "1.5", Currency: "TND", ReturnURL: "https://m.test/ok",
		CancelURL: "https://m.test/ko", NotifyURL: "https://gateway.test/cb",
	})
	b.call.DriverData = response.DriverData
	return response
}

func (b *bench) status() ledger.Status {
	return b.driver.LookUpPayment(b.Context(), operator.StatusCall{Call: b.call}).Status
}

// The driver reads each outcome of the page: soon after it, and when a failure counts.
func TestPayments(t *testing.T) {
	for _, c := range []struct {
		name, form  string
		soon, later ledger.Status
		callbacks   int
	}{
		{"paid", "action=confirm&msisdn=21620000000", ledger.Successful, ledger.Successful, 1},
		{"refused", "action=confirm&msisdn=21620001001", ledger.Pending, ledger.Failed, 1},
		{"undecided", "action=confirm&msisdn=21620001003", ledger.Pending, ledger.Pending, 0},
		{"three callbacks", "action=confirm&msisdn=21620001006", ledger.Successful, ledger.Successful, 3},
		{"early callback", "action=confirm&msisdn=21620001008", ledger.Successful, ledger.Successful, 1},
		{"cancelled", "action=cancel", ledger.Pending, ledger.Failed, 1},
		{"closed", "action=close", ledger.Pending, ledger.Expired, 0},
		{"no number", "action=confirm", ledger.Pending, ledger.Expired, 0},
	} {
		stubtest.Run(t, c.name, func(t *testing.T) {
			b := newBench(t, "stub")
			page := b.pay()
			if page.Outcome != operator.Succeeded {
				t.Fatal(page.Fault)
			}
			path := strings.TrimPrefix(page.PaymentURL, "https://stub.test")
			if _, text := b.Do("GET", path, ""); !strings.Contains(text, "DemoShop_42: 1500 ") {
				t.Errorf("page %s", text)
			}
			b.Do("POST", path, c.form)
			time.Sleep(time.Minute)
			soon := b.status()
			time.Sleep(time.Hour)
			if later := b.status(); soon != c.soon || later != c.later {
				t.Errorf("statuses %q and %q, want %q and %q", soon, later, c.soon, c.later)
			}
			if got := b.Callbacks.All(); len(got) != c.callbacks {
				t.Errorf("%d callbacks, want %d", len(got), c.callbacks)
			}
			if effects := b.Effects("DemoShop_42"); (effects == 1) != (c.later == ledger.Successful) || effects > 1 {
				t.Errorf("%d effects", effects)
			}
		})
	}
}

// A statement has dinars, and the end of the payer's number.
func TestStatement(t *testing.T) {
	stubtest.Run(t, "paid", func(t *testing.T) {
		b := newBench(t, "stub")
		path := strings.TrimPrefix(b.pay().PaymentURL, "https://stub.test")
		b.Do("POST", path, "action=confirm&msisdn=21620000000")
		time.Sleep(time.Minute)
		_, text := b.Do("GET", "/stub/v1/statement", "")
		lines := strings.Split(text, "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[1], ",DemoShop_42,1.500,TND,paid,2") ||
			!strings.HasSuffix(lines[1], ",,****0000") {
			t.Errorf("the statement is %q", text)
		}
		if _, text := b.Do("GET", "/stub/v1/statement?day=1999-01-01", ""); strings.Count(text, "\n") != 1 {
			t.Errorf("the statement of another day is %q", text)
		}
		if status, text := b.Do("GET", "/stub/v1/statement?day=x", ""); status != http.StatusBadRequest {
			t.Errorf("%d %s", status, text)
		}
	})
}

func TestRefusals(t *testing.T) {
	b := newBench(t, "another key")
	if page := b.pay(); page.Outcome != operator.NotApplied || page.HTTPStatus != http.StatusUnauthorized {
		t.Errorf("outcome %d, %v", page.Outcome, page.Fault)
	}
	b.call.DriverData = "unknown 1"
	if status := b.status(); status != "" {
		t.Errorf("status %q", status)
	}
	const path = "/api/v2/generate_payment"
	header := []string{"Authorization", "Bearer app-1:another key"}
	if status, _ := b.Do("POST", path, `{"amount":"1.5"}`, header...); status != http.StatusBadRequest {
		t.Errorf("a wrong amount: %d", status)
	}
}
