package drivers_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// TestConformance runs the suite of drivers for each driver. A new driver is a value here, or in a test of its own.
func TestConformance(t *testing.T) {
	for _, suite := range []operatortest.Suite{
		gatewaySuite(), orangeWebPaySuite(t),
		orangeSMSSuite(t),
	} {
		row, _ := operator.FindCapabilities(suite.Platform)
		t.Run(row.DriverName, func(t *testing.T) { operatortest.Run(t, suite) })
	}
}

const (
	order    = "DemoShop_42"
	uuid     = "f4401bd2-1568-4140-bf2d-eb77d2b2b639"
	pathKey  = "callback-secret-very-private-0123456789"
	payToken = "MP2201010123456789ABCDEF0123"
)

func readFile(t *testing.T, driver, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", driver, "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// always responds to each operation in the same way.
func always(status int, body string) func(operatortest.Operation) operatortest.Responder {
	return func(operatortest.Operation) operatortest.Responder { return operatortest.Respond(status, body) }
}

func requestError(side, id string) string {
	return `{"requestError":{"` + side + `":{"messageId":"` + id + `","text":"Text of %1","variables":["one"]}}}`
}

func gatewaySuite() operatortest.Suite {
	statuses := map[string]ledger.Status{
		"initiated": ledger.Pending, "Loaded": ledger.Pending, "PENDING": ledger.Pending,
		"success": ledger.Successful, "failed": ledger.Failed, "abandoned": ledger.Cancelled,
		"expired": ledger.Expired,
	}
	body := `{"order-id":"` + order + `","status":"STATUS","amount":"AMOUNT","currency":"CURRENCY"}`
	return operatortest.Suite{
		Platform: "sandbox",
		Account: map[string]any{
			"access_token": "token-very-private", "service_id": "SERVICE", "application_id": "APPLICATION",
			"contact_id": "CONTACT",
		},
		Renewed: map[string]any{"access_token": "renewed-very-private"},
		SuccessResponse: func(op operatortest.Operation) operatortest.Responder {
			body := map[string]string{
				"charge": `{"amountTransaction":{"transactionOperationStatus":"Charged",` +
					`"serverReferenceCode":"srv-1"}}`,
				"web":  `{"pay_token":"pt-1","payment_url":"https://op.example/pay/pt-1","notif_token":"nt-1"}`,
				"sms":  `{"outboundSMSMessageRequest":{"resourceURL":"https://op/requests/req-1/deliveryInfos"}}`,
				"tpe":  `{"status":"pending","order-id":"` + order + `"}`,
				"ussd": `{"status":"success","order-id":"` + order + `"}`, // at once: a lookup follows
			}
			return operatortest.Respond(201, body[op.Name])
		},
		RefusalResponse:      always(403, requestError("policyException", "POL1000")),
		NotAppliedResponse:   always(503, requestError("serviceException", "SVC0001")),
		TokenRefusedResponse: operatortest.Respond(401, requestError("policyException", "900901")),
		NotFoundResponse:     operatortest.Respond(404, requestError("serviceException", "SVC0002")),
		Lookup:               &operatortest.Reports{Body: body, Amount: "1500", OtherAmount: "15", Statuses: statuses},
		Callback:             &operatortest.Reports{Body: body, Amount: "1500", OtherAmount: "15", Statuses: statuses},
		Secrets:              []string{"very-private", "SERVICE"},
	}
}

func orangeWebPaySuite(t *testing.T) operatortest.Suite {
	report := func(body string) *operatortest.Reports {
		return &operatortest.Reports{
			Body: body, HasNoCurrency: true, // and no amount: the request of the lookup has it
			Statuses: map[string]ledger.Status{
				"INITIATED": ledger.Pending, "PENDING": ledger.Pending, "SUCCESS": ledger.Successful,
				"FAILED": ledger.Failed, "EXPIRED": ledger.Expired, "FAILURE": "",
			},
		}
	}
	return operatortest.Suite{
		Platform: "orange-webpay", DriverData: "v1f5720d",
		Account: map[string]any{
			"segment": "ci", "merchant_key": "merchant-very-private", "client_id": "client-1",
			"client_secret": "client-very-private",
		},
		Renewed:     map[string]any{"client_secret": "renewed-very-private"},
		Preparatory: operatortest.Tokens("/oauth/v3/token"), TokenMargin: 5 * time.Minute,
		SuccessResponse:      always(201, readFile(t, "orangewebpay", "pay-response.json")),
		NotAppliedResponse:   always(400, `{"code":23,"message":"m"}`),
		TokenRefusedResponse: operatortest.Respond(401, `{"code":42,"message":"m"}`),
		DuplicateResponse:    operatortest.Respond(400, `{"code":1204,"message":"m"}`),
		NotFoundResponse:     operatortest.Respond(400, `{"code":22,"message":"m"}`), LookupStatus: 201,
		Lookup:   report(`{"status":"STATUS","order_id":"` + order + `","txnid":"MP1"}`),
		Callback: report(`{"status":"STATUS","notif_token":"dd497bda","txnid":"MP1"}`),
		Secrets:  []string{"very-private"},
	}
}

func orangeSMSSuite(t *testing.T) operatortest.Suite {
	return operatortest.Suite{
		Platform: "orange-sms",
		Account: map[string]any{
			"client_id": "id", "client_secret": "cs-very-private", "callback_secret": pathKey,
			"sender": map[string]any{"CI": "tel:+2250000"},
		},
		Renewed:     map[string]any{"client_secret": "renewed-very-private"},
		Preparatory: operatortest.Tokens("/oauth/v3/token"), TokenMargin: 5 * time.Minute,
		SuccessResponse:      always(201, readFile(t, "orangesms", "sms-response.json")),
		RefusalResponse:      always(400, requestError("serviceException", "SVC0004")),
		NotAppliedResponse:   always(403, requestError("policyException", "POL0001")),
		TokenRefusedResponse: operatortest.Respond(401, `{"code":42,"message":"m"}`),
		Secrets:              []string{"very-private"},
	}
}
