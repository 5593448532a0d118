package pawapay_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/pawapay"
	"mobilegateway/shared/timeline"
)

const (
	platform  = "pawapay"
	depositID = "f4401bd2-1568-4140-bf2d-eb77d2b2b639"
	html      = `<html>Request Rejected</html>`
)

// suite is the bench of the driver.
func suite(t testing.TB) operatortest.Suite {
	completed := strings.NewReplacer(`"COMPLETED"`, `"STATUS"`, `"1500.00"`, `"AMOUNT"`, `"XOF"`, `"CURRENCY"`).
		Replace(operatortest.ReadFile(t, "completed.json"))
	report := func(body string) *operatortest.Reports {
		return &operatortest.Reports{
			Body: body, Amount: "1500.00", OtherAmount: "1.500",
			Statuses: map[string]ledger.Status{
				"ACCEPTED": ledger.Pending, "SUBMITTED": ledger.Pending, "PROCESSING": ledger.Pending,
				"IN_RECONCILIATION": ledger.Pending, "COMPLETED": ledger.Successful, "FAILED": ledger.Failed,
				"ENQUEUED": "", "EXPIRED": "",
			},
		}
	}
	return operatortest.Suite{
		Platform: platform,
		Account: map[string]any{
			"access_token": "token-very-private", "callback_secret": "callback-secret-very-private-0123456789",
		},
		Renewed:              map[string]any{"access_token": "renewed-very-private"},
		SuccessResponse:      operatortest.Always(accepted),
		RefusalResponse:      operatortest.Always(respond(200, rejected("PAYER_NOT_FOUND"))),
		NotAppliedResponse:   operatortest.Always(respond(200, rejected("PROVIDER_TEMPORARILY_UNAVAILABLE"))),
		TokenRefusedResponse: respond(403, failure("AUTHENTICATION_ERROR")),
		DuplicateResponse:    respond(200, data("DUPLICATE_IGNORED", "")),
		NotFoundResponse:     respond(200, `{"status":"NOT_FOUND"}`),
		Lookup:               report(`{"status":"FOUND","data":` + completed + `}`),
		Callback:             report(completed),
	}
}

func TestConformance(t *testing.T) { operatortest.Run(t, suite(t)) }

func respond(status int, body string) operatortest.Responder {
	return operatortest.Respond(status, body)
}

func newDriver(t testing.TB, baseURL string) *pawapay.Driver {
	t.Helper()
	return operatortest.New[*pawapay.Driver](t, suite(t), baseURL)
}

func samplePay() operator.PayCall { return operatortest.SamplePay(platform, "", "tpe") }

func data(status, rest string) string {
	return `{"depositId":"` + depositID + `","status":"` + status + `"` + rest + `}`
}

var accepted = respond(200, data("ACCEPTED", ""))

func rejected(code string) string {
	return data("REJECTED", `,"failureReason":{"failureCode":"`+code+
		`","failureMessage":"about 2250707070707 and token-very-private"}`)
}

func failure(code string) string {
	return `{"failureReason":{"failureCode":"` + code + `","failureMessage":"about token-very-private"}}`
}

// The example of pawaPay has the code, which only one wallet gets.
func TestGoldenDeposit(t *testing.T) {
	stub := suite(t).Stub(t, accepted)
	result := newDriver(t, stub.URL).Pay(t.Context(), samplePay())
	want := operator.PayResponse{Result: operator.Result{Outcome: operator.Succeeded, HTTPStatus: 200}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Fatalf("response (-want +got):\n%s", diff)
	}
	var body bytes.Buffer
	if err := json.Compact(&body, []byte(operatortest.ReadFile(t, "request.json"))); err != nil {
		t.Fatal(err)
	}
	wantText := "POST /v2/deposits\nAuthorization: Bearer token-very-private\nContent-Type: application/json\n\n" +
		body.String()
	if diff := cmp.Diff(wantText, stub.Requests()[0].Text("Authorization", "Content-Type")); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// Each wallet has its code. Amounts lose the zeros at their end, and only one wallet gets the one-time code.
func TestWallets(t *testing.T) {
	cases := []struct{ operator, country, msisdn, amount, provider, sent, otp string }{
		{"mtn", "CM", "653456789", "500.00", "MTN_MOMO_CMR", "500", ""},
		{"orange", "CI", "0734567890", "10", "ORANGE_CIV", "10", ""},
		{"orange", "CM", "693456789", "10", "ORANGE_CMR", "10", ""},
		{"orange", "SN", "773456789", "10", "ORANGE_SEN", "10", ""},
		{"orange", "bf", "07345678", "10", "ORANGE_BFA", "10", operatortest.SampleOTP},
		{"Moov", "BF", "02345678", "10", "MOOV_BFA", "10", ""},
		{"free", "SN", "763456789", "10", "FREE_SEN", "10", ""},
		{"orange", "CD", "893456789", "1.5", "ORANGE_COD", "1.5", ""},
		{"airtel", "CD", "973456789", "1.25", "AIRTEL_COD", "1.25", ""},
		{"vodacom", "CD", "813456789", "10.00", "VODACOM_MPESA_COD", "10", ""},
	}
	for _, c := range cases {
		t.Run(c.provider, func(t *testing.T) {
			stub := suite(t).Stub(t, accepted)
			call := samplePay()
			call.Operator, call.Country, call.MSISDN, call.Amount = c.operator, c.country, c.msisdn, c.amount
			country, _ := market.ByAlpha2(c.country)
			call.Currency = country.Currency
			if result := newDriver(t, stub.URL).Pay(t.Context(), call); result.Outcome != operator.Succeeded {
				t.Fatalf("outcome %d: %v", result.Outcome, result.Fault)
			}
			var sent struct {
				Amount, PreAuthorisationCode string
				Payer                        struct {
					AccountDetails struct{ PhoneNumber, Provider string }
				}
			}
			if err := json.Unmarshal([]byte(stub.Requests()[0].Body), &sent); err != nil {
				t.Fatal(err)
			}
			details := sent.Payer.AccountDetails
			if sent.Amount != c.sent || sent.PreAuthorisationCode != c.otp || details.Provider != c.provider ||
				!strings.HasSuffix(details.PhoneNumber, c.msisdn) || len(details.PhoneNumber) != len(c.msisdn)+3 {
				t.Errorf("sent %+v", sent)
			}
		})
	}
}

func TestUnsentDeposits(t *testing.T) {
	type edits = map[string]func(*operator.PayCall)
	suite(t).CheckUnsent(t, samplePay(), map[operatortest.Proof]edits{
		operatortest.OurFault:                   {"out of reach": func(c *operator.PayCall) { c.Operator = "moov" }},
		operatortest.InvalidPart("user_msisdn"): {"no number": func(c *operator.PayCall) { c.MSISDN = "" }},
		operatortest.InvalidPart("amount"):      {"decimals": func(c *operator.PayCall) { c.Amount = "1.5" }},
		operatortest.InvalidPart("otp_code"): {"no code": func(c *operator.PayCall) {
			c.Operator, c.Country, c.MSISDN, c.OTP = "orange", "BF", "07345678", ""
		}},
	})
}

func TestDepositOutcomes(t *testing.T) {
	suite(t).CheckPayments(t, samplePay(), operatortest.Outcomes{
		operatortest.Succeeded: {"accepted": accepted},
		operatortest.KnownKey:  {"duplicate": respond(200, data("DUPLICATE_IGNORED", ""))},
		operatortest.Unavailable: {
			"provider down":   respond(200, rejected("PROVIDER_TEMPORARILY_UNAVAILABLE")),
			"another payment": respond(200, rejected("PAYMENT_IN_PROGRESS")),
		},
		operatortest.InvalidPart("amount"): {
			"bounds": respond(200, rejected("AMOUNT_OUT_OF_BOUNDS")),
			"amount": respond(200, rejected("INVALID_AMOUNT")),
		},
		operatortest.InvalidPart("user_msisdn"): {"number": respond(200, rejected("INVALID_PHONE_NUMBER"))},
		operatortest.InvalidPart("currency"):    {"currency": respond(200, rejected("INVALID_CURRENCY"))},
		operatortest.OurFault: {
			"provider":           respond(200, rejected("INVALID_PROVIDER")),
			"400":                respond(400, failure("MISSING_PARAMETER")),
			"400 of our deposit": respond(400, rejected("INVALID_INPUT")),
			"401":                respond(401, failure("NO_AUTHENTICATION")),
			"403 token":          respond(403, failure("AUTHENTICATION_ERROR")),
			"403 rights":         respond(403, failure("DEPOSITS_NOT_ALLOWED")),
		},
		operatortest.UnmappedCode: {
			"new code":          respond(200, rejected("SOMETHING_NEW")),
			"new code with 400": respond(400, failure("SOMETHING_NEW")),
			"new code with 403": respond(403, failure("SOMETHING_NEW")),
		},
		operatortest.Refused(ledger.WalletUnknown):  {"no wallet": respond(200, rejected("PAYER_NOT_FOUND"))},
		operatortest.Refused(ledger.NotEnoughFunds): {"funds": respond(200, rejected("INSUFFICIENT_BALANCE"))},
		operatortest.Refused(ledger.LimitReached): {
			"limit":  respond(200, rejected("PAYER_LIMIT_REACHED")),
			"wallet": respond(200, rejected("WALLET_LIMIT_REACHED")),
		},
		operatortest.Unknown: {
			"accepted another":          respond(200, `{"depositId":"other","status":"ACCEPTED"}`),
			"accepted without id":       respond(200, `{"status":"ACCEPTED"}`),
			"accepted with 202":         respond(202, data("ACCEPTED", "")),
			"unknown word":              respond(200, data("QUEUED", "")),
			"rejected without a reason": respond(200, data("REJECTED", "")),
			"new code with 500":         respond(500, rejected("SOMETHING_NEW")),
			"another payment with 500":  respond(500, rejected("PAYMENT_IN_PROGRESS")),
			"unknown error":             respond(200, rejected("UNKNOWN_ERROR")),
			"code without status":       respond(200, failure("INVALID_AMOUNT")),
			"400 of another":            respond(400, strings.ReplaceAll(rejected("INVALID_INPUT"), depositID, "x")),
			"400 unknown error":         respond(400, failure("UNKNOWN_ERROR")),
			"bare 401":                  respond(401, html),
			"bare 403":                  respond(403, "{}"),
			"404":                       respond(404, failure("NOT_FOUND")),
			"409":                       respond(409, ""),
			"429":                       respond(429, ""),
			"500":                       respond(500, failure("UNKNOWN_ERROR")),
			"500 with a code":           respond(500, rejected("INVALID_AMOUNT")),
		},
	})
}

// After an attempt that may have arrived, the payment in progress may be ours.
func TestPaymentInProgressAfterAnAttempt(t *testing.T) {
	call := samplePay()
	call.MayRepeat = true
	suite(t).CheckPayments(t, call, operatortest.Outcomes{
		operatortest.Unknown: {"in progress": respond(200, rejected("PAYMENT_IN_PROGRESS"))},
	})
}

// A code that pawaPay has not documented is not kept, because it may contain anything.
func TestCodes(t *testing.T) {
	suite(t).CheckCodes(t, samplePay(), operatortest.Codes{
		"INSUFFICIENT_BALANCE": {"refused": respond(200, rejected("INSUFFICIENT_BALANCE"))},
		"INVALID_AMOUNT":       {"a part": respond(200, rejected("INVALID_AMOUNT"))},
		"DEPOSITS_NOT_ALLOWED": {"set-up": respond(200, rejected("DEPOSITS_NOT_ALLOWED"))},
		"PAYMENT_IN_PROGRESS":  {"busy": respond(200, rejected("PAYMENT_IN_PROGRESS"))},
		timeline.UnknownCode:   {"new": respond(200, rejected("SOMETHING_NEW"))},
		"":                     {"success": accepted},
	})
}
