package deployment

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestCallOf names the requests of functions. A path that no operator has is an error of the table.
func TestCallOf(t *testing.T) {
	for _, c := range []struct{ path, webhookID, want string }{
		{"/payment/v1/acr%3AOperatorAPIToken/transactions/amount", "", "http charge"},
		{"/smsmessaging/v1/outbound/tel%3A%2B225/requests", "", "http sms"},
		{"/mobilemoney/v1", "", "http payment"}, {"/mobilemoney/v1/getStatus/OpenShop_1", "", CallLookup},
		{"/mtn/collection/token/", "", "http token"},
		{"/mtn/collection/v1_0/requesttopay", "", "http payment"},
		{"/mtn/collection/v1_0/requesttopay/id", "", CallLookup},
		{"/pawapay/v2/deposits", "", "http payment"}, {"/pawapay/v2/deposits/id", "", CallLookup},
		{"/wave/v1/checkout/sessions", "", "http payment"},
		{"/wave/v1/checkout/sessions/search?client_reference=OpenShop_1", "", CallLookup},
		{"/orangewebpay/orange-money-webpay/ci/v1/webpayment", "", "http payment"},
		{"/orangewebpay/orange-money-webpay/ci/v1/transactionstatus", "", CallLookup},
		{"/orangecm/omcoreapis/1.0.2/mp/init", "", "http prepare"},
		{"/orangecm/omcoreapis/1.0.2/mp/pay", "", "http payment"},
		{"/orangecm/omcoreapis/1.0.2/mp/paymentstatus/id", "", CallLookup},
		{"/flouci/api/v2/generate_payment", "", "http payment"},
		{"/flouci/api/v2/verify_payment/id", "", CallLookup},
		{"/notify", "id", CallNotification}, {"/token/requests", "id", CallNotification},
		{"/notify", "", ""}, {"/flouci/api/v2/other", "", ""},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com"+c.path, nil)
		request.Header.Set("webhook-id", c.webhookID)
		if got := CallOf(request); got != c.want {
			t.Errorf("%s is %q, want %q", c.path, got, c.want)
		}
	}
}
