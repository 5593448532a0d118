package localtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobilegateway/internal/local"
	"mobilegateway/internal/localtest"
)

// wait is how long a test waits for what comes by itself.
const wait = 20 * time.Second

// send sends a request and gives status and body.
func send(t *testing.T, method, address, body string, header http.Header) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(wait); !yes(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", wait, what)
		}
	}
}

// curls are the banner's lines.
func curls(r *localtest.Run) []string {
	var banner bytes.Buffer
	r.WriteBanner(&banner)
	var lines []string
	for line := range strings.Lines(banner.String()) {
		if strings.HasPrefix(line, "curl ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestTheBannersLinesWorkAsPrinted(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl here")
	}
	r := localtest.Start(t, localtest.Options{})
	lines := curls(r)
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		output, err := exec.CommandContext(t.Context(), "sh", "-c", line).Output()
		if err != nil || !bytes.HasPrefix(output, []byte("HTTP/1.1 201 ")) {
			t.Errorf("%s\n%s\n%v", line, output, err)
		}
	}
}

func TestAPaymentFromRequestToNotification(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	info := r.Info()
	order := info.Merchant + "_1001"
	body := `{"currency":"XOF","order_id":"` + order + `","amount":"1000","return_url":"` + info.InboxURL + `/back","cancel_url":"` + info.InboxURL +
		`/no","notif_url":"` + info.InboxURL + `/n","reference":"R","state":"a%26<b>"}`
	status, text := send(t, "POST", info.BaseURL+"/mobilemoney/v1", body, payHeaders(info, "web"))
	var answer struct {
		PaymentURL string `json:"payment_url"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	_, text = send(t, "POST", info.SandboxURL+"/sandbox/v1/tests", "", nil)
	var test struct{ PIN, MSISDN string }
	if err := json.Unmarshal([]byte(text), &test); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"msisdn": {test.MSISDN}, "pin": {test.PIN}, "action": {"confirm"}}
	status, text = send(t, "POST", answer.PaymentURL, form.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	if status != 302 && status != 303 {
		t.Fatalf("the page answered %d %s", status, text)
	}
	var got []struct{ Body string }
	eventually(t, "a notification", func() bool {
		_, text := send(t, "GET", info.InboxURL+"/messages?order_id="+order, "", nil)
		return json.Unmarshal([]byte(text), &got) == nil && len(got) > 0
	})
	if !strings.Contains(got[0].Body, `"status":"successful"`) || !strings.Contains(got[0].Body, `"state":"a%26<b>"`) {
		t.Errorf("notification %s", got[0].Body)
	}
	if _, page := send(t, "GET", info.InboxURL+"/", "", nil); !strings.Contains(page, ">verified<") {
		t.Errorf("the inbox does not verify the signature:\n%s", page)
	}
}

func payHeaders(info local.Info, channel string) http.Header {
	return http.Header{
		"Authorization": {"Bearer " + info.AccessToken}, "Content-Type": {"application/json"},
		"Mno-Name": {"sandbox"}, "Country-Code": {"CI"}, "Channel": {channel}, "Lang": {"fr"},
	}
}

func TestDataSurvivesARestartAndAKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "local")
	first := localtest.Start(t, localtest.Options{Dir: dir})
	charge := func(r *localtest.Run, correlator string) string {
		t.Helper()
		info := r.Info()
		body := `{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{"chargingInformation":{"amount":"500","currency":"XOF","description":"d"},` +
			`"chargingMetaData":{"onBehalfOf":"` + info.OnBehalfOf + `","serviceId":"` + info.ServiceID + `"}},"transactionOperationStatus":"Charged","referenceCode":"` + correlator + `","clientCorrelator":"` + correlator + `"}}`
		status, text := send(t, "POST", info.BaseURL+"/payment/v1/acr%3AOperatorAPIToken/transactions/amount", body, http.Header{
			"Authorization": {"Bearer " + info.AccessToken}, "Content-Type": {"application/json"}, "Gw-Token": {info.GWToken}, "Gw-Alias": {info.GWAlias},
		})
		if status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		return text
	}
	answered := charge(first, "c1")
	pids := runFile(t, dir).PIDs
	if len(pids.Functions["charge"]) != 1 || (pids.DynamoDB != 0) != embedded() || pids.Run != os.Getpid() {
		t.Fatalf("pids %+v", pids)
	}
	if err := syscall.Kill(pids.Functions["charge"][0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the dead process leaves run.json", func() bool { return len(runFile(t, dir).PIDs.Functions["charge"]) == 0 })
	if again := charge(first, "c1"); again != answered {
		t.Errorf("a repeat after a kill:\n%s\n%s", again, answered)
	}
	first.Close()
	if _, err := os.Stat(filepath.Join(dir, "run.json")); !os.IsNotExist(err) {
		t.Errorf("run.json after the end: %v", err)
	}
	second := localtest.Start(t, localtest.Options{Dir: dir})
	if second.Info().AccessToken != first.Info().AccessToken || second.Info().WebhookSecret != first.Info().WebhookSecret {
		t.Error("credentials did not survive")
	}
	if again := charge(second, "c1"); again != answered {
		t.Errorf("a repeat after a restart:\n%s\n%s", again, answered)
	}
}

// embedded tells whether the run has an engine of its own.
func embedded() bool { return os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") == "" }

// runFile reads run.json as a program of another language would.
func runFile(t *testing.T, dir string) local.Info {
	t.Helper()
	path := filepath.Join(dir, "run.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var info local.Info
	if err := json.Unmarshal(text, &info); err != nil {
		t.Fatal(err)
	}
	if stat, err := os.Stat(path); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("mode of run.json: %v", stat.Mode())
	}
	return info
}

func TestRunJSONHasEveryField(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	text, err := os.ReadFile(filepath.Join(r.Dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	shop := []string{
		"access_token", "client_id", "client_secret", "merchant", "on_behalf_of", "service_id", "application_id", "contact_id", "gw_token", "gw_alias", "webhook_secret",
	}
	for _, name := range append(slices.Clone(shop), "base_url", "inbox_url", "sandbox_url", "pids", "second_merchant", "limited_merchant") {
		if fields[name] == nil || fields[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	second, _ := fields["second_merchant"].(map[string]any)
	for _, name := range shop {
		if second[name] == nil || second[name] == "" {
			t.Errorf("no %s of the second merchant", name)
		}
	}
	if second["merchant"] != "OtherShop" || fields["merchant"] != "DemoShop" || !strings.HasPrefix(fields["webhook_secret"].(string), "whsec_") {
		t.Errorf("%s", text)
	}
}

func TestTheSecondMerchantMayNotUseTunisia(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	info := r.Info()
	for merchant, want := range map[string]int{"DemoShop": 201, "OtherShop": 403} {
		shop := info.Shop
		if merchant == "OtherShop" {
			shop = info.SecondMerchant
		}
		header := payHeaders(local.Info{Shop: shop}, "ussd")
		header.Set("Country-Code", "tn")
		body := `{"currency":"TND","order_id":"` + merchant + `_7","amount":"1.500","return_url":"` + info.InboxURL + `/","cancel_url":"` + info.InboxURL +
			`/","reference":"R","state":"s","user_msisdn":"21620123456"}`
		if status, text := send(t, "POST", info.BaseURL+"/mobilemoney/v1", body, header); status != want {
			t.Errorf("%s: %d %s", merchant, status, text)
		}
	}
}

func TestTokensOfTheTokenEndpoint(t *testing.T) {
	r := localtest.Start(t, localtest.Options{Speed: 60})
	info := r.Info()
	for _, path := range []string{"/token", "/token/"} {
		request, err := http.NewRequestWithContext(t.Context(), "POST", info.BaseURL+path, strings.NewReader("grant_type=client_credentials"))
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth(info.ClientID, info.ClientSecret)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			AccessToken string `json:"access_token"`
			ExpiresIn   int    `json:"expires_in"`
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != 200 || answer.ExpiresIn != 60 {
			t.Errorf("%s: %d %+v %v: at SPEED=60 a token lives 60 s", path, response.StatusCode, answer.ExpiresIn, err)
		}
		info.AccessToken = answer.AccessToken
		if status, text := send(t, "GET", info.BaseURL+"/mobilemoney/v1/getStatus/DemoShop_1", "", payHeaders(info, "web")); status != 404 {
			t.Errorf("an unknown order with the token: %d %s", status, text)
		}
	}
}

func TestStoppedRunsLeaveNothing(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	send(t, "POST", r.Info().BaseURL+"/token", "", nil)
	pids := runFile(t, r.Dir).PIDs
	r.Close()
	all := slices.Concat(pids.Functions["token"], pids.Functions["sweep"])
	if embedded() {
		all = append(all, pids.DynamoDB)
	}
	for _, pid := range all {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d of %+v is still there", pid, pids)
		}
	}
}
