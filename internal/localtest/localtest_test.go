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

// waitTimeout is how long a test waits for what comes by itself.
const waitTimeout = 20 * time.Second

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
func eventually(t *testing.T, description string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", waitTimeout, description)
		}
	}
}

// curlLines are the banner's lines.
func curlLines(r *localtest.Gateway) []string {
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

func TestBannerCurlLines(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl here")
	}
	r := localtest.Start(t, localtest.Options{})
	lines := curlLines(r)
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

func TestPaymentToNotification(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	info := r.Info()
	order := info.Merchant + "_1001"
	body := `{"currency":"XOF","order_id":"` + order + `","amount":"1000","return_url":"` + info.InboxURL + `/back","cancel_url":"` + info.InboxURL +
		`/no","notif_url":"` + info.InboxURL + `/n","reference":"R","state":"a%26<b>"}`
	status, text := send(t, "POST", info.BaseURL+"/mobilemoney/v1", body, payHeaders(info, "web"))
	var decoded struct {
		PaymentURL string `json:"payment_url"`
	}
	if err := json.Unmarshal([]byte(text), &decoded); err != nil || status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	_, text = send(t, "POST", info.SandboxURL+"/sandbox/v1/tests", "", nil)
	var test struct{ PIN, MSISDN string }
	if err := json.Unmarshal([]byte(text), &test); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"msisdn": {test.MSISDN}, "pin": {test.PIN}, "action": {"confirm"}}
	status, text = send(t, "POST", decoded.PaymentURL, form.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
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

func TestDataSurvivesRestartAndKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "local")
	first := localtest.Start(t, localtest.Options{Dir: dir})
	charge := func(r *localtest.Gateway, correlator string) string {
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
	firstResponse := charge(first, "c1")
	pids := readRunJSON(t, dir).PIDs
	if len(pids.Functions["charge"]) != 1 || (pids.DynamoDB != 0) != usesEmbeddedDynamoDB() || pids.Run != os.Getpid() {
		t.Fatalf("pids %+v", pids)
	}
	if err := syscall.Kill(pids.Functions["charge"][0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the dead process leaves run.json", func() bool { return len(readRunJSON(t, dir).PIDs.Functions["charge"]) == 0 })
	if retried := charge(first, "c1"); retried != firstResponse {
		t.Errorf("a repeat after a kill:\n%s\n%s", retried, firstResponse)
	}
	first.Close()
	if _, err := os.Stat(filepath.Join(dir, "run.json")); !os.IsNotExist(err) {
		t.Errorf("run.json after the end: %v", err)
	}
	second := localtest.Start(t, localtest.Options{Dir: dir})
	if second.Info().AccessToken != first.Info().AccessToken || second.Info().WebhookSecret != first.Info().WebhookSecret {
		t.Error("credentials did not survive")
	}
	if retried := charge(second, "c1"); retried != firstResponse {
		t.Errorf("a repeat after a restart:\n%s\n%s", retried, firstResponse)
	}
}

// usesEmbeddedDynamoDB tells whether the run has an engine of its own.
func usesEmbeddedDynamoDB() bool { return os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") == "" }

// readRunJSON reads run.json as a program of another language would.
func readRunJSON(t *testing.T, dir string) local.Info {
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
	credentials := []string{
		"access_token", "client_id", "client_secret", "merchant", "on_behalf_of", "service_id", "application_id", "contact_id", "gw_token", "gw_alias", "webhook_secret",
	}
	for _, name := range append(slices.Clone(credentials), "base_url", "inbox_url", "sandbox_url", "pids", "second_merchant", "limited_merchant") {
		if fields[name] == nil || fields[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	second, _ := fields["second_merchant"].(map[string]any)
	for _, name := range credentials {
		if second[name] == nil || second[name] == "" {
			t.Errorf("no %s of the second merchant", name)
		}
	}
	if second["merchant"] != "OtherShop" || fields["merchant"] != "DemoShop" || !strings.HasPrefix(fields["webhook_secret"].(string), "whsec_") {
		t.Errorf("%s", text)
	}
}

func TestSecondMerchantCountryRefused(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	info := r.Info()
	for merchant, want := range map[string]int{"DemoShop": 201, "OtherShop": 403} {
		credentials := info.MerchantCredentials
		if merchant == "OtherShop" {
			credentials = info.SecondMerchant
		}
		header := payHeaders(local.Info{MerchantCredentials: credentials}, "ussd")
		header.Set("Country-Code", "tn")
		body := `{"currency":"TND","order_id":"` + merchant + `_7","amount":"1.500","return_url":"` + info.InboxURL + `/","cancel_url":"` + info.InboxURL +
			`/","reference":"R","state":"s","user_msisdn":"21620123456"}`
		if status, text := send(t, "POST", info.BaseURL+"/mobilemoney/v1", body, header); status != want {
			t.Errorf("%s: %d %s", merchant, status, text)
		}
	}
}

func TestTokenEndpoint(t *testing.T) {
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
		var decoded struct {
			AccessToken string `json:"access_token"`
			ExpiresIn   int    `json:"expires_in"`
		}
		err = json.NewDecoder(response.Body).Decode(&decoded)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != 200 || decoded.ExpiresIn != 60 {
			t.Errorf("%s: %d %+v %v: at SPEED=60 a token lives 60 s", path, response.StatusCode, decoded.ExpiresIn, err)
		}
		info.AccessToken = decoded.AccessToken
		if status, text := send(t, "GET", info.BaseURL+"/mobilemoney/v1/getStatus/DemoShop_1", "", payHeaders(info, "web")); status != 404 {
			t.Errorf("an unknown order with the token: %d %s", status, text)
		}
	}
}

func TestCloseLeavesNoProcess(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	send(t, "POST", r.Info().BaseURL+"/token", "", nil)
	pids := readRunJSON(t, r.Dir).PIDs
	r.Close()
	all := slices.Concat(pids.Functions["token"], pids.Functions["sweep"])
	if usesEmbeddedDynamoDB() {
		all = append(all, pids.DynamoDB)
	}
	for _, pid := range all {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d of %+v is still there", pid, pids)
		}
	}
}
