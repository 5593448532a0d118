package gatewayctl

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	official "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// newMerchantServer starts a merchant's server that responds with a status, and returns its address and the requests
// that it received.
func newMerchantServer(t *testing.T, status int) (address string, received *[]*http.Request, bodies *[]string) {
	t.Helper()
	received, bodies = &[]*http.Request{}, &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*received, *bodies = append(*received, r), append(*bodies, string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "unknown order\x1b[31m"+strings.Repeat("x", 4<<10))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hook", received, bodies
}

// The sample is signed with every live secret, and its response is shown. Nothing is stored for the endpoint.
func TestWebhookTest(t *testing.T) {
	d, shop := newShopTool(t)
	d.variables["ALLOW_LOOPBACK"] = "true"
	address, received, bodies := newMerchantServer(t, 200)
	d.apply("webhook-secret rotate ShopA", "merchant change ShopA --host 127.0.0.1 --notif-url "+address)

	dryRun := query[webhookTestResult](d, "webhook test --merchant ShopA")
	if len(*received) != 0 || dryRun.URL != address || !strings.Contains(dryRun.Sample, `"order-id":"ShopA_0"`) {
		t.Fatalf("the dry run posted %d, and shows %+v", len(*received), dryRun)
	}
	if _, out, _ := d.run("webhook test --merchant ShopA"); strings.Contains(out, "delivered") {
		t.Errorf("the dry run reports whether the sample was delivered: %s", out)
	}
	result := query[webhookTestResult](d, "webhook test --merchant ShopA"+confirmFlags)
	if !*result.Delivered || result.Status != 200 || len(*received) != 1 || len(result.Response) != maxResponseText {
		t.Fatalf("%d posted, result %+v", len(*received), result)
	}
	checkEqual(t, "versions", result.Versions, []int{2, 1})
	second := query[webhookSecretOutput](d, "webhook-secret show ShopA 2"+confirmFlags).Secret
	for _, secret := range []string{shop.WebhookSecret, second} {
		verifier, err := official.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.VerifyIgnoringTimestamp([]byte((*bodies)[0]), (*received)[0].Header); err != nil {
			t.Errorf("the signature: %v", err)
		}
	}
	d.expectOutput("webhook test --merchant ShopA"+confirmFlags, "delivered", "true", "status", "200",
		"unknown order.[31m")

	gone, _, _ := newMerchantServer(t, 410)
	writes := d.health.WriteCount()
	d.expectExit("webhook test --merchant ShopA --url "+gone+confirmFlags, ExitFailed, "not accepted: gone 410")
	checkEqual(t, "writes of health", d.health.WriteCount(), writes)
}

// Without --url the sample goes to the address that is disabled, also if a request named it. The person chooses one of
// several.
func TestWebhookTestOfTheDisabledAddress(t *testing.T) {
	d, shop := newShopTool(t)
	const named, second = "https://shop.example/of-request?key=1", "https://shop.example/second"
	checkEqual(t, "without a disabled one", query[webhookTestResult](d, "webhook test --merchant ShopA").URL, shopURL)
	d.disabledShop(shop, named)
	d.expectOutput("webhook test --merchant ShopA", "https://shop.example/of-request?***")
	d.expectExit("webhook test --merchant ShopA", ExitDone,
		"The address of the test is the merchant's disabled one: https://shop.example/of-request?***")
	d.expectOutput("webhook test --merchant ShopA --url "+shopURL, shopURL)
	d.expectOutput("webhook test --merchant ShopA --url https://shop.example/of-request?***", "of-request")
	d.disabledShop(shop, named, second)
	d.expectBoth("webhook test --merchant ShopA", ExitUsage, "2 addresses of ShopA are disabled: name one with --url")
}

// The same checks apply as for a payment's notif_url.
func TestWebhookTestRefusals(t *testing.T) {
	d, _ := newShopTool(t)
	d.expectExit("webhook test", ExitUsage, "--merchant")
	d.expectBoth("webhook test --merchant ShopA --url https://other.example/n", ExitFailed, "not registered")
	d.expectBoth("webhook test --merchant ShopA --url http://shop.example/n", ExitFailed, "not https")
	d.expectBoth("webhook test --merchant ShopA --url http://127.0.0.1/n", ExitFailed, "address")
	d.apply("webhook-secret revoke ShopA 1 --last")
	d.expectBoth("webhook test --merchant ShopA", ExitFailed, "no webhook secret")
}

// A new secret does not sign at once: the functions may still have the profile of before. The command says from when.
func TestNewWebhookSecretSaysWhenItSigns(t *testing.T) {
	d, _ := newShopTool(t)
	d.variables["PROFILE_CACHE_TTL"] = "20s"
	d.now = d.now.Add(time.Hour)
	line := "webhook-secret rotate ShopA" + confirmFlags
	checkEqual(t, "signs from", query[webhookSecretOutput](d, line).SignsFrom, d.now.Add(25*time.Second))
	d.apply("webhook-secret revoke ShopA 1")
	d.expectExit(line, ExitDone, "Version 3 signs every notification from 2026-03-01T13:00:25Z on, beside version 2")
	d.expectOutput("webhook-secret show ShopA 3"+confirmFlags, "signs every notification from", "2026-03-01T13:00:25Z")
}
