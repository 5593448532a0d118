package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
	opcredentials "mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
	"mobilegateway/world/operators/sandbox"
)

const (
	operatorToken = "operator-token-for-the-tests"
	controlToken  = "control-token-for-the-tests"
	testsToken    = "tests-token-for-the-tests"
)

func lookupIn(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, ok := pairs[name]; return value, ok }
}

func TestConfigureRefuses(t *testing.T) {
	for _, c := range []struct{ name, flags, tokens, control, tests, want string }{
		{"no token", "", "", controlToken, "", "SANDBOX_TOKENS is needed"},
		{"a short token", "", "short", controlToken, "", "at least 24"},
		{"open to all", "-listen 0.0.0.0:1", operatorToken, "", "", "SANDBOX_CONTROL_TOKENS is needed"},
		{"open by default", "-listen :1", operatorToken, "", "", "SANDBOX_CONTROL_TOKENS is needed"},
		{"behind another machine", "-base-url https://sandbox.example.com", operatorToken, "", "",
			"SANDBOX_CONTROL_TOKENS is needed"},
		{"a bad address", "-base-url sandbox.example.com", operatorToken, controlToken, "", "base-url"},
		{"an argument too many", "start", operatorToken, controlToken, "", "unknown argument"},
		{"a short token for tests", "", operatorToken, controlToken, "short",
			"SANDBOX_TESTS_TOKENS: a token has at least 24"},
		{"a token for tests beside an open port", "", operatorToken, "", testsToken,
			"SANDBOX_CONTROL_TOKENS is needed"},
		{"loopback", "-listen [::1]:1 -base-url http://localhost:1", operatorToken, "", "", ""},
		{"public", "-listen :1 -base-url https://sandbox.example.com", operatorToken + "," + operatorToken,
			controlToken, "", ""},
		{"with a token for tests", "-listen :1 -base-url https://sandbox.example.com", operatorToken, controlToken,
			testsToken + "," + testsToken, ""},
		{"with tokens of merchants for tests", "", operatorToken, controlToken, "ShopA:" + testsToken, ""},
		{"a short token of a merchant for tests", "", operatorToken, controlToken, "LongMerchantNameOfAShop:short",
			"SANDBOX_TESTS_TOKENS: a token has at least 24"},
	} {
		t.Run(c.name, func(t *testing.T) {
			variables := map[string]string{
				operatorTokensVariable: c.tokens, controlTokensVariable: c.control, testsTokensVariable: c.tests,
			}
			_, _, err := parseConfig(strings.Fields(c.flags), lookupIn(variables), io.Discard)
			text := fmt.Sprint(err)
			if (err == nil) != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("error %q, want %q", text, c.want)
			}
			for _, token := range variables {
				if token != "" && strings.Contains(text, token) {
					t.Errorf("the error contains a token: %s", text)
				}
			}
		})
	}
}

// TestOpenControlPortRefusesWebPages: without control tokens only programs of this machine set outcomes.
func TestOpenControlPortRefusesWebPages(t *testing.T) {
	for _, c := range []struct{ name, token, host, origin, want string }{
		{"a program", "", "127.0.0.1:3001", "", "404"},
		{"a page of another origin", "", "127.0.0.1:3001", "https://page.example", "403"},
		{"a page by rebinding", "", "page.example", "", "403"},
		{"with control tokens the token decides", controlToken, "sandbox.example.com", "https://page.example", "401"},
	} {
		t.Run(c.name, func(t *testing.T) {
			variables := map[string]string{operatorTokensVariable: operatorToken, controlTokensVariable: c.token}
			_, config, err := parseConfig(nil, lookupIn(variables), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			config.BaseURL = "http://127.0.0.1:3001"
			operator, err := sandbox.New(config)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = operator.Close() }()
			body := strings.NewReader(`{"key":"ShopA_1","status":"successful"}`)
			request := httptest.NewRequest(http.MethodPost, "http://"+c.host+"/sandbox/v1/settle", body)
			if c.origin != "" {
				request.Header.Set("Origin", c.origin)
			}
			response := httptest.NewRecorder()
			protected(config, operator.Handler()).ServeHTTP(response, request)
			if got := fmt.Sprint(response.Code); got != c.want {
				t.Errorf("status %s, want %s", got, c.want)
			}
		})
	}
}

// program is the built program, running.
type program struct {
	*testing.T
	url     string
	command *exec.Cmd
	logRead chan struct{} // closed at the end of the log
}

func buildProgram(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "gateway-sandbox")
	output, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return path
}

// startProgram starts the program and reads from its first line where it listens.
func startProgram(t *testing.T, path, dir string) *program {
	t.Helper()
	command := exec.Command(path, "-listen", "127.0.0.1:0", "-dir", dir)
	command.Env = append(os.Environ(), operatorTokensVariable+"=another-token-of-24-letters,"+operatorToken,
		controlTokensVariable+"="+controlToken, testsTokensVariable+"="+testsToken)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	lines, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	log := bufio.NewScanner(lines)
	if !log.Scan() || !strings.HasPrefix(log.Text(), "gateway-sandbox: http://127.0.0.1:") {
		t.Fatalf("first line of the log: %q %v", log.Text(), log.Err())
	}
	p := &program{t, strings.Fields(log.Text())[1], command, make(chan struct{})}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-p.logRead
	})
	go func() {
		defer close(p.logRead)
		for log.Scan() {
			for _, token := range []string{operatorToken, controlToken, testsToken} {
				if strings.Contains(log.Text(), token) {
					t.Errorf("the log contains a token: %s", log.Text())
				}
			}
		}
	}()
	return p
}

func (p *program) stop() {
	p.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	<-p.logRead // Wait closes the log
	if err := p.command.Wait(); err != nil {
		p.Errorf("the program ended with %v", err)
	}
}

func (p *program) call(method, path, bearer, body string) (int, string) {
	p.Helper()
	header := http.Header{}
	if bearer != "" {
		header.Set("Authorization", "Bearer "+bearer)
	}
	status, _, text := localtest.Send(p, method, p.url+path, body, header)
	return status, text
}

// newDriver makes the driver of the sandbox at an address, with one account.
func newDriver(url string) *carrierapi.Driver {
	credentials := fmt.Appendf(nil, `{"sandbox":{"current":"a1","accounts":{"a1":{"base_url":%q,"access_token":%q,
		"service_id":"S","application_id":"A","contact_id":"C"}}}}`, url, operatorToken)
	accounts := opcredentials.NewReader(secret.Static(credentials), time.Now, operator.CheckBaseURL)
	return carrierapi.New(accounts, upstream.NewClient(nil), time.Now)
}

// TestGatewayDriverAgainstSandbox uses the program as a gateway and a merchant's engineer do. It makes a charge, and a
// web payment with a PIN of the control port, its callback and its status. Both survive a restart.
func TestGatewayDriverAgainstSandbox(t *testing.T) {
	path, dir := buildProgram(t), t.TempDir()
	callbacks := make(chan string, 10)
	merchant := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		callbacks <- string(body)
	}))
	defer merchant.Close()
	p := startProgram(t, path, dir)
	driver := newDriver(p.url)
	call := operator.Call{Platform: "sandbox", Operator: "sandbox", AccountID: "a1", MCO: "OCI", Country: "CI",
		GWToken: "t", GWAlias: "alias-5555", UpstreamKey: "Shop.c1"}
	charged := driver.Charge(t.Context(), operator.ChargeCall{
		Call: call, ReferenceCode: "r1", Amount: "500", Currency: "XOF", Description: "d", OnBehalfOf: "Shop"})
	if charged.Outcome != operator.Succeeded {
		t.Fatalf("charge: %+v", charged)
	}
	call.UpstreamKey = "Shop_1"
	paid := driver.Pay(t.Context(), operator.PayCall{
		Call: call, Channel: "web", Lang: "fr", Amount: "1500", Currency: "XOF", State: "s",
		ReturnURL: merchant.URL + "/return", CancelURL: merchant.URL +
			"/cancel", NotifyURL: merchant.URL, Reference: "Shop"})
	if paid.Outcome != operator.Succeeded || !strings.HasPrefix(paid.PaymentURL, p.url+"/pay/") {
		t.Fatalf("pay: %+v", paid)
	}
	p.checkControlNeedsToken()
	status, body := p.call("POST", "/sandbox/v1/tests", testsToken, `{"order_id":"Shop_1"}`)
	var issued struct{ PIN, MSISDN string }
	if err := json.Unmarshal([]byte(body), &issued); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	form := url.Values{"msisdn": {issued.MSISDN}, "pin": {issued.PIN}, "action": {"confirm"}}.Encode()
	status, redirect, _ := localtest.Send(t, "POST", paid.PaymentURL, form,
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	if redirect.Get("Location") != merchant.URL+"/return" {
		t.Fatalf("no redirect to the merchant: %d %v", status, redirect)
	}
	if body := <-callbacks; !strings.Contains(body, `"status":"successful"`) {
		t.Errorf("callback %s", body)
	}
	p.stop()

	p = startProgram(t, path, dir)
	driver = newDriver(p.url)
	found := driver.LookUpPayment(t.Context(), operator.StatusCall{Call: call, Channel: "web", Lang: "fr"})
	if found.Status != ledger.Successful {
		t.Errorf("status after a restart: %+v", found)
	}
	if _, body := p.call("GET", "/sandbox/v1/effects?key=c1", controlToken, ""); strings.Count(body, `"kind"`) != 1 {
		t.Errorf("effects of the charge after a restart: %s", body)
	}
	p.stop()
}

// checkControlNeedsToken checks that each variable's tokens open what they are for: the sandbox's own
// TestControlPortWithTokens has every address.
func (p *program) checkControlNeedsToken() {
	p.Helper()
	for _, c := range []struct {
		call, bearer string
		want         int
	}{
		{"GET /healthz", "", 204},
		{"GET /mobilemoney/v1/getStatus/Shop_1", controlToken, 401},
		{"GET /sandbox/v1/effects", "", 401},
		{"GET /sandbox/v1/effects", operatorToken, 401},
		{"GET /sandbox/v1/effects", testsToken, 401},
		{"GET /sandbox/v1/effects", controlToken, 200},
		{"GET /sandbox/v1/slots", testsToken, 200},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		if status, _ := p.call(method, path, c.bearer, "{}"); status != c.want {
			p.Errorf("%s with the token %q: %d, want %d", c.call, c.bearer, status, c.want)
		}
	}
}
