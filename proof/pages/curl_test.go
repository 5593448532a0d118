package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/local"
	"mobilegateway/proof/contract"
	"mobilegateway/proof/kits/localtest"
)

// curlSample is the curl command of one operation of the contract.
type curlSample struct{ operation, method, path, command string }

// resendSample needs the webhook-id of a notification that was delivered: that of an order of its own.
const (
	resendSample  = "resendNotification"
	orderOfResend = "3002"
)

// curlSamples returns the commands of all operations. Requests come before lookups, lookups before callbacks, and
// resendSample is the last.
func curlSamples(t *testing.T) []curlSample {
	t.Helper()
	document, err := contract.Load(filepath.Join(rootDir, "docs", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	operations, err := document.Operations()
	if err != nil {
		t.Fatal(err)
	}
	var found []curlSample
	for _, o := range operations {
		samples, _ := o.Raw["x-codeSamples"].([]any)
		if len(samples) != 1 {
			t.Errorf("%s %s (%s) has %d code samples, want the curl command", o.Method, o.Path, o.ID, len(samples))
			continue
		}
		sample, _ := samples[0].(contract.Object)
		command, _ := sample["source"].(string)
		found = append(found, curlSample{o.ID, strings.ToLower(o.Method), o.Path, command})
	}
	rank := func(s curlSample) string {
		isCallback := strings.HasPrefix(s.path, "/callbacks/")
		return fmt.Sprint(s.operation == resendSample, isCallback, s.method == "get", s.path)
	}
	slices.SortFunc(found, func(a, b curlSample) int { return cmp.Compare(rank(a), rank(b)) })
	return found
}

// checkCurlSamples runs the curl command of each operation as the reference shows it. Each must succeed. It returns the
// keys of the requests.
func checkCurlSamples(t *testing.T, gateway *localtest.Gateway) []string {
	t.Helper()
	i := gateway.Info()
	const order = "3001"
	variables := map[string]string{"BASE": i.BaseURL, "TOKEN": i.AccessToken, "CLIENT_ID": i.ClientID,
		"CLIENT_SECRET": i.ClientSecret, "MERCHANT": i.Merchant, "ON_BEHALF_OF": i.OnBehalfOf,
		"SERVICE_ID": i.ServiceID, "APPLICATION_ID": i.ApplicationID, "CONTACT_ID": i.ContactID,
		"GW_TOKEN": i.GWToken, "GW_ALIAS": i.GWAlias, "ORDER": order}
	for _, sample := range curlSamples(t) {
		if strings.HasPrefix(sample.path, "/callbacks/v1/accounts/") {
			continue // the sandbox has no address for each account
		}
		if strings.HasPrefix(sample.path, "/callbacks/") {
			payment := i.Merchant + "_" + order
			key := map[string]string{
				"reportPayment": payment, "reportPaymentByPut": payment, "reportDelivery": "sms-" + order,
			}
			variables["CALLBACK_URL"] = callbackURL(t, i.SandboxURL, key[sample.operation])
		}
		if sample.operation == resendSample {
			variables["ORDER"] = orderOfResend
			variables["WEBHOOK_ID"] = payForWebhookID(t, i, i.Merchant+"_"+orderOfResend)
		}
		command := exec.CommandContext(t.Context(), "bash", "-euc", sample.command)
		command.Env = environment()
		for name, value := range variables {
			command.Env = append(command.Env, name+"="+value)
		}
		output, err := command.Output()
		if err != nil || !strings.HasPrefix(string(output), "HTTP/1.1 20") {
			t.Errorf("%s: %v\n%s\nprinted\n%s", sample.operation, err, sample.command, output)
		}
		for name, pattern := range map[string]string{"TRANSACTION_ID": `"serverReferenceCode":"([^"]+)"`,
			"REQUEST_ID": `/requests/([^/"]+)/deliveryInfos`} {
			if value := regexp.MustCompile(pattern).FindSubmatch(output); value != nil {
				variables[name] = string(value[1])
			}
		}
	}
	return []string{"charge-" + order, "sms-" + order, i.Merchant + "_" + order, i.Merchant + "_" + orderOfResend}
}

// payForWebhookID pays an order, waits until its notification is delivered to the inbox, and returns the id. The
// address of the other samples does not exist.
func payForWebhookID(t *testing.T, i local.Info, order string) string {
	t.Helper()
	header := http.Header{
		"Authorization": {"Bearer " + i.AccessToken}, "Content-Type": {"application/json"},
		"Mno-Name": {"sandbox"}, "Country-Code": {"CI"}, "Channel": {"ussd"}, "Lang": {"fr"},
	}
	body := `{"currency":"XOF","order_id":"` + order + `","amount":"1000","return_url":"` + i.InboxURL +
		`/back","cancel_url":"` + i.InboxURL + `/no","notif_url":"` + i.InboxURL +
		`/notifications","reference":"R","state":"s","user_msisdn":"+2250700002000"}`
	if status, _, text := localtest.Send(t, http.MethodPost, i.BaseURL+"/mobilemoney/v1", body, header); status != 201 {
		t.Fatalf("the payment for a resend: %d %s", status, text)
	}
	address := i.BaseURL + "/reports/v1/transactions?operation=pay&status=successful&limit=100"
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	var report struct {
		Transactions []struct {
			ID            string
			Notifications []struct {
				WebhookID string `json:"webhook_id"`
				State     string
			}
		}
	}
	for range 300 {
		_, _, text := localtest.Send(t, http.MethodGet, address, "", header)
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, transaction := range report.Transactions {
			for _, n := range transaction.Notifications {
				if transaction.ID == order && n.State == "delivered" {
					return n.WebhookID
				}
			}
		}
		<-poll.C
	}
	t.Fatalf("no notification of %s is delivered after 30 s", order)
	return ""
}

// callbackURL returns the URL that the gateway sent to the operator with a transaction.
func callbackURL(t *testing.T, sandbox, key string) string {
	t.Helper()
	address := sandbox + "/sandbox/v1/transactions?key=" + url.QueryEscape(key)
	_, _, text := localtest.Send(t, http.MethodGet, address, "", nil)
	found := regexp.MustCompile(`"callback_url":"([^"]+)"`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the operator has no callback URL of %s: %s", key, text)
	}
	return found[1]
}
