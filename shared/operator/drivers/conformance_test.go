package drivers_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// TestConformance runs the suite of drivers for each driver. A new driver is a value here, or in a test of its own.
func TestConformance(t *testing.T) {
	for _, suite := range []operatortest.Suite{
		gatewaySuite(), pawapaySuite(t), orangeWebPaySuite(t), orangeCMSuite(t),
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

func pawapaySuite(t *testing.T) operatortest.Suite {
	completed := strings.NewReplacer(`"COMPLETED"`, `"STATUS"`, `"1500.00"`, `"AMOUNT"`, `"XOF"`, `"CURRENCY"`).
		Replace(readFile(t, "pawapay", "completed.json"))
	report := func(body string) *operatortest.Reports {
		return &operatortest.Reports{
			Body: body, Amount: "1500.00", OtherAmount: "1.500",
			Statuses: map[string]ledger.Status{
				"ACCEPTED": ledger.Pending, "SUBMITTED": ledger.Pending, "COMPLETED": ledger.Successful,
				"FAILED": ledger.Failed, "ENQUEUED": "",
			},
		}
	}
	deposit := func(status string) string { return `{"depositId":"` + uuid + `","status":"` + status + `"` }
	rejected := func(code string) string {
		return deposit("REJECTED") + `,"failureReason":{"failureCode":"` + code + `"}}`
	}
	return operatortest.Suite{
		Platform:             "pawapay",
		Account:              map[string]any{"access_token": "token-very-private", "callback_secret": pathKey},
		Renewed:              map[string]any{"access_token": "renewed-very-private"},
		SuccessResponse:      always(200, deposit("ACCEPTED")+"}"),
		RefusalResponse:      always(200, rejected("PAYER_NOT_FOUND")),
		NotAppliedResponse:   always(200, rejected("PROVIDER_TEMPORARILY_UNAVAILABLE")),
		TokenRefusedResponse: operatortest.Respond(403, `{"failureReason":{"failureCode":"AUTHENTICATION_ERROR"}}`),
		DuplicateResponse:    operatortest.Respond(200, deposit("DUPLICATE_IGNORED")+"}"),
		NotFoundResponse:     operatortest.Respond(200, `{"status":"NOT_FOUND"}`),
		Lookup:               report(`{"status":"FOUND","data":` + completed + `}`), Callback: report(completed),
		Secrets: []string{"very-private"},
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

func orangeCMSuite(t *testing.T) operatortest.Suite {
	account := map[string]any{
		"consumer_key": "ck", "consumer_secret": "cs-very-private", "api_user": "user",
		"api_password": "password-very-private", "channel_msisdn": "691000001", "pin": "8642",
	}
	exchange := operatortest.Tokens("/token")
	reports := &operatortest.Reports{
		Body: `{"data":{"payToken":"` + payToken + `","status":"STATUS","amount":AMOUNT,"txnmode":"` + order +
			`","inittxnstatus":"200","confirmtxnstatus":"200"}}`,
		Amount: "1500", OtherAmount: "15", HasNoCurrency: true,
		Statuses: map[string]ledger.Status{
			"PENDING": ledger.Pending, "INITIATED": ledger.Pending, "FAILED": ledger.Failed, "EXPIRED": ledger.Expired,
			"CANCELLED":   ledger.Cancelled,
			"SUCCESSFULL": ledger.Successful, //nolint:misspell // the platform's own spelling
		},
	}
	return operatortest.Suite{
		Platform: "orange-cm", DriverData: payToken, Account: account, TokenMargin: 5 * time.Minute,
		Renewed: map[string]any{"api_password": "renewed-very-private"},
		Preparatory: func(r *http.Request) operatortest.Responder {
			if strings.HasSuffix(r.URL.Path, "/mp/init") {
				return operatortest.Respond(200, `{"message":"m","data":{"payToken":"`+payToken+`"}}`)
			}
			return exchange(r)
		},
		SuccessResponse: func(op operatortest.Operation) operatortest.Responder {
			if op.Name == "tpe" { // at once: a lookup follows
				return operatortest.Respond(200, readFile(t, "orangecm", "status-success.json"))
			}
			return operatortest.Respond(200, readFile(t, "orangecm", "pay-response.json"))
		},
		RefusalResponse:      always(200, readFile(t, "orangecm", "pay-refused.json")),
		NotAppliedResponse:   always(429, `{"fault":{"code":900802}}`),
		TokenRefusedResponse: operatortest.Respond(401, `{"fault":{"code":900901}}`),
		DuplicateResponse:    operatortest.Respond(422, `{}`),
		NotFoundResponse:     operatortest.Respond(400, `{"message":"m","data":{"inittxnstatus":"0069"}}`),
		Lookup:               reports, Callback: reports, Secrets: []string{"very-private", "8642", "NGUEMA"},
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
