package localtest_test

import (
	"bytes"
	"encoding/json"
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

	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
)

// waitTimeout bounds the wait for asynchronous events.
const waitTimeout = 20 * time.Second

// eventually polls a condition until it is true.
func eventually(t *testing.T, description string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", waitTimeout, description)
		}
	}
}

// curlLines returns the banner's curl lines.
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
		t.Fatalf("the banner has %d curl lines, want 3", len(lines))
	}
	for _, line := range lines {
		output, err := exec.CommandContext(t.Context(), "sh", "-c", line).Output()
		if err != nil || !bytes.HasPrefix(output, []byte("HTTP/1.1 201 ")) {
			t.Errorf("the line does not work as printed, want 201: %v\n%s\n%s", err, line, output)
		}
	}
}

func TestPaymentToNotification(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	info := r.Info()
	order := info.Merchant + "_1001"
	body := `{"currency":"XOF","order_id":"` + order + `","amount":"1000","return_url":"` + info.InboxURL +
		`/back","cancel_url":"` + info.InboxURL + `/no","notif_url":"` + info.InboxURL +
		`/n","reference":"R","state":"a%26<b>"}`
	status, _, text := localtest.Send(t, "POST", info.BaseURL+"/mobilemoney/v1", body, payHeaders(info, "web"))
	var decoded struct {
		PaymentURL string `json:"payment_url"`
	}
	if err := json.Unmarshal([]byte(text), &decoded); err != nil || status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	_, _, text = localtest.Send(t, "POST", info.SandboxURL+"/sandbox/v1/tests", "", nil)
	var test struct{ PIN, MSISDN string }
	if err := json.Unmarshal([]byte(text), &test); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"msisdn": {test.MSISDN}, "pin": {test.PIN}, "action": {"confirm"}}
	formType := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	status, _, text = localtest.Send(t, "POST", decoded.PaymentURL, form.Encode(), formType)
	if status != 302 && status != 303 {
		t.Fatalf("the page responded %d %s, want a redirect", status, text)
	}
	var got []struct{ Body string }
	eventually(t, "a notification", func() bool {
		_, _, text := localtest.Send(t, "GET", info.InboxURL+"/messages?order_id="+order, "", nil)
		return json.Unmarshal([]byte(text), &got) == nil && len(got) > 0
	})
	for _, want := range []string{`"status":"successful"`, `"state":"a%26<b>"`} {
		if !strings.Contains(got[0].Body, want) {
			t.Errorf("the notification is %s, want %s in it", got[0].Body, want)
		}
	}
	if _, _, page := localtest.Send(t, "GET", info.InboxURL+"/", "", nil); !strings.Contains(page, ">verified<") {
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
		body := `{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{` +
			`"chargingInformation":{"amount":"500","currency":"XOF","description":"d"},` +
			`"chargingMetaData":{"onBehalfOf":"` + info.OnBehalfOf + `","serviceId":"` + info.ServiceID + `"}},` +
			`"transactionOperationStatus":"Charged",` +
			`"referenceCode":"` + correlator + `","clientCorrelator":"` + correlator + `"}}`
		address := info.BaseURL + "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"
		status, _, text := localtest.Send(t, "POST", address, body, http.Header{
			"Authorization": {"Bearer " + info.AccessToken}, "Content-Type": {"application/json"},
			"Gw-Token": {info.GWToken}, "Gw-Alias": {info.GWAlias},
		})
		if status != 201 {
			t.Fatalf("the charge gets %d %s, want 201", status, text)
		}
		return text
	}
	firstResponse := charge(first, "c1")
	pids := readRunJSON(t, dir).PIDs
	if len(pids.Functions["charge"]) != 1 || pids.Run != os.Getpid() {
		t.Fatalf("run.json has pids %+v, want one charge process and this one as run", pids)
	}
	if (pids.DynamoDB != 0) != usesEmbeddedDynamoDB() {
		t.Errorf("run.json has the database's pid %d, want it only for the embedded one", pids.DynamoDB)
	}
	if err := syscall.Kill(pids.Functions["charge"][0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "run.json without the dead process", func() bool {
		return len(readRunJSON(t, dir).PIDs.Functions["charge"]) == 0
	})
	if retried := charge(first, "c1"); retried != firstResponse {
		t.Errorf("a repeat after a kill gets\n%s\nwant\n%s", retried, firstResponse)
	}
	first.Close()
	if _, err := os.Stat(filepath.Join(dir, "run.json")); !os.IsNotExist(err) {
		t.Errorf("run.json exists after the end: %v", err)
	}
	second := localtest.Start(t, localtest.Options{Dir: dir})
	if second.Info().MerchantCredentials != first.Info().MerchantCredentials {
		t.Error("the credentials did not survive a restart")
	}
	if retried := charge(second, "c1"); retried != firstResponse {
		t.Errorf("a repeat after a restart gets\n%s\nwant\n%s", retried, firstResponse)
	}
}

// usesEmbeddedDynamoDB reports whether the run starts its own database.
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
		t.Errorf("run.json has mode %v, %v, want 0600", stat.Mode(), err)
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
	wantFields := func(object string, in any, names ...string) {
		t.Helper()
		fields, _ := in.(map[string]any)
		for _, name := range names {
			if fields[name] == nil || fields[name] == "" {
				t.Errorf("%s has no %s", object, name)
			}
		}
	}
	wantFields("run.json", fields,
		"base_url", "inbox_url", "sandbox_url", "pids", "second_merchant", "limited_merchant")
	for merchant, in := range map[string]any{"DemoShop": fields, "OtherShop": fields["second_merchant"]} {
		wantFields(merchant, in, "access_token", "client_id", "client_secret", "merchant", "on_behalf_of", "service_id",
			"application_id", "contact_id", "gw_token", "gw_alias", "webhook_secret")
		if in, _ := in.(map[string]any); in["merchant"] != merchant {
			t.Errorf("the merchant %v is in the place of %s", in["merchant"], merchant)
		}
	}
	if secret, _ := fields["webhook_secret"].(string); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("the webhook secret is %q, want the prefix whsec_", secret)
	}
}

// TestShellEnvironment reads the file env as a shell does. It has the same values as run.json and ends with it.
func TestShellEnvironment(t *testing.T) {
	r := localtest.Start(t, localtest.Options{Stubs: true, Dir: filepath.Join(t.TempDir(), "it's $HOME")})
	path := filepath.Join(r.Dir, "env")
	if stat, err := os.Stat(path); err != nil || stat.Mode().Perm() != 0o600 {
		t.Fatalf("env: %v, %v, want the mode 0600", stat, err)
	}
	i := r.Info()
	for name, want := range map[string]string{
		"TOKEN": i.AccessToken, "BASE": i.BaseURL, "SANDBOX": i.SandboxURL, "INBOX": i.InboxURL, "STUBS": i.StubsURL,
		"CLIENT_ID": i.ClientID, "CLIENT_SECRET": i.ClientSecret, "MERCHANT": i.Merchant,
		"ON_BEHALF_OF": i.OnBehalfOf, "SERVICE_ID": i.ServiceID, "APPLICATION_ID": i.ApplicationID,
		"CONTACT_ID": i.ContactID, "GW_TOKEN": i.GWToken, "GW_ALIAS": i.GWAlias, "WEBHOOK_SECRET": i.WebhookSecret,
	} {
		command := exec.CommandContext(t.Context(), "sh", "-euc", `. "$1"; printenv "$2"`, "sh", path, name)
		got, err := command.Output()
		if text := strings.TrimSuffix(string(got), "\n"); err != nil || want == "" || text != want {
			t.Errorf("env sets %s to %q, %v; run.json has %q", name, text, err, want)
		}
	}
	audit := exec.CommandContext(t.Context(), "sh", "-euc", `. "$1/aws.env"; printenv AUDIT_LOG_FILE`, "sh", r.Dir)
	want := filepath.Join(r.Dir, "data", "audit.jsonl")
	if got, err := audit.Output(); err != nil || string(got) != want+"\n" {
		t.Errorf("aws.env sets AUDIT_LOG_FILE to %q, %v; want %q", got, err, want)
	}
	r.Close()
	for _, name := range []string{"run.json", "env", "aws.env"} {
		if _, err := os.Stat(filepath.Join(r.Dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s exists after the end: %v", name, err)
		}
	}
	plain := localtest.Start(t, localtest.Options{})
	text, err := os.ReadFile(filepath.Join(plain.Dir, "env"))
	if err != nil || strings.Contains(string(text), "STUBS") {
		t.Errorf("without stubs env has STUBS: %v", err)
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
		body := `{"currency":"TND","order_id":"` + merchant + `_7","amount":"1.500","return_url":"` + info.InboxURL +
			`/","cancel_url":"` + info.InboxURL + `/","reference":"R","state":"s","user_msisdn":"21620123456"}`
		if status, _, text := localtest.Send(t, "POST", info.BaseURL+"/mobilemoney/v1", body, header); status != want {
			t.Errorf("a payment in Tunisia of %s gets %d %s, want %d", merchant, status, text, want)
		}
	}
}

func TestTokenEndpoint(t *testing.T) {
	r := localtest.Start(t, localtest.Options{Speed: 60})
	info := r.Info()
	for _, path := range []string{"/token", "/token/"} {
		client := &http.Request{Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}
		client.SetBasicAuth(info.ClientID, info.ClientSecret)
		const grant = "grant_type=client_credentials"
		code, _, response := localtest.Send(t, "POST", info.BaseURL+path, grant, client.Header)
		var decoded struct {
			AccessToken string `json:"access_token"`
			ExpiresIn   int    `json:"expires_in"`
		}
		if err := json.Unmarshal([]byte(response), &decoded); err != nil || code != 200 || decoded.ExpiresIn != 60 {
			t.Errorf("%s responds %d with expires_in %d, %v; want 200 and, at SPEED=60, 60 s",
				path, code, decoded.ExpiresIn, err)
		}
		info.AccessToken = decoded.AccessToken
		lookup := info.BaseURL + "/mobilemoney/v1/getStatus/DemoShop_1"
		status, _, text := localtest.Send(t, "GET", lookup, "", payHeaders(info, "web"))
		if status != 404 {
			t.Errorf("a lookup of an unknown order with the token gets %d %s, want 404", status, text)
		}
	}
}

func TestCloseLeavesNoProcess(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	localtest.Send(t, "POST", r.Info().BaseURL+"/token", "", nil)
	pids := readRunJSON(t, r.Dir).PIDs
	r.Close()
	all := slices.Concat(pids.Functions["token"], pids.Functions["sweep"])
	if usesEmbeddedDynamoDB() {
		all = append(all, pids.DynamoDB)
	}
	for _, pid := range all {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d of %+v runs after Close", pid, pids)
		}
	}
}
