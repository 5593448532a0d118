package platforms_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
	"mobilegateway/world/operators/platforms"
)

var config = platforms.Config{
	URL: "http://127.0.0.1:1", GatewayURL: "http://127.0.0.1:2", CallbackSecret: strings.Repeat("s", 32),
}

// directory returns the drivers over the stubs' accounts and routes, without others.
func directory(t *testing.T) *operator.DriverDirectory {
	t.Helper()
	document := map[string]any{"routes": platforms.Routes()}
	for platform, accounts := range config.Accounts() {
		document[platform] = map[string]any{"accounts": accounts}
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return drivers.NewDirectory(secret.Static(text), nil, time.Now)
}

// TestEveryServiceHasUsableAccount selects each service of each real platform, and lets the driver check the account.
func TestEveryServiceHasUsableAccount(t *testing.T) {
	all := directory(t)
	routes, err := all.Routes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range map[operator.Service]string{
		{Operator: "mtn", Country: "CI", Operation: "pay", Channel: "ussd"}:     "mtn-momo/stub-ci",
		{Operator: "mtn", Country: "CM", Operation: "pay", Channel: "tpe"}:      "mtn-momo/stub-cm",
		{Operator: "orange", Country: "CI", Operation: "pay", Channel: "web"}:   "orange-webpay/stub-ci",
		{Operator: "orange", Country: "CM", Operation: "pay", Channel: "web"}:   "orange-webpay/stub-cm",
		{Operator: "orange", Country: "CM", Operation: "pay", Channel: "ussd"}:  "orange-cm/stub",
		{Operator: "orange", Country: "CD", Operation: "pay", Channel: "tpe"}:   "pawapay/stub",
		{Operator: "orange", Country: "TN", Operation: "sms"}:                   "orange-sms/stub",
		{Operator: "wave", Country: "BF", Operation: "pay", Channel: "web"}:     "wave-checkout/stub-bf",
		{Operator: "moov", Country: "BF", Operation: "pay", Channel: "ussd"}:    "pawapay/stub",
		{Operator: "airtel", Country: "CD", Operation: "pay", Channel: "ussd"}:  "pawapay/stub",
		{Operator: "vodacom", Country: "CD", Operation: "pay", Channel: "ussd"}: "pawapay/stub",
		{Operator: "free", Country: "SN", Operation: "pay", Channel: "ussd"}:    "pawapay/stub",
		{Operator: "flouci", Country: "TN", Operation: "pay", Channel: "web"}:   "flouci-checkout/stub",
	} {
		if got, _ := routes.Select(service); got.Account != want {
			t.Errorf("%+v goes to %q, want %s", service, got.Account, want)
		}
	}
	for name, list := range platforms.Routes() {
		for _, route := range list {
			pin := operator.ParsePin(route.To, "")
			driver, row, found := all.Driver(pin.Platform)
			if !found || !row.Reaches(name, route.Country) || !platforms.IsStub(pin.Account) {
				t.Errorf("the route of %s to %s leads nowhere", name, route.To)
				continue
			}
			if _, err := driver.FindAccount(t.Context(), pin.Platform, pin.Account); err != nil {
				t.Errorf("%s: %v", route.To, err)
			}
		}
	}
}

func TestEveryStubHasItsPrefix(t *testing.T) {
	handler := config.Handler()
	for platform, accounts := range config.Accounts() {
		for id, fields := range accounts {
			base, _ := fields["base_url"].(string)
			path, _ := strings.CutPrefix(base, config.URL)
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, httptest.NewRequest("GET", path+"/stub/v1/effects", nil))
			if got := strings.TrimSpace(response.Body.String()); got != "[]" {
				t.Errorf("the effects of %s/%s are %q", platform, id, got)
			}
		}
	}
}
