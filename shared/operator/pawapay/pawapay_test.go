package pawapay_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/pawapay"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

const (
	platform   = "pawapay"
	depositID  = "f4401bd2-1568-4140-bf2d-eb77d2b2b639"
	pathSecret = "callback-secret-very-private-0123456789"
	html       = `<html>Request Rejected</html>`
)

func accountsOf(baseURL, token, callbackSecret string) []byte {
	account := map[string]string{"base_url": baseURL, "access_token": token, "callback_secret": callbackSecret}
	return operatortest.Secret(platform, "a1", account)
}

func newDriver(baseURL string) *pawapay.Driver {
	return newDriverOf(secret.Static(accountsOf(baseURL, "token-very-private", pathSecret)), nil)
}

func newDriverOf(reader secret.Reader, transport http.RoundTripper) *pawapay.Driver {
	accounts := credentials.NewReader(reader, time.Now, operator.CheckBaseURL)
	return pawapay.New(accounts, upstream.NewClient(transport))
}

func samplePay() operator.PayCall {
	call := operatortest.SamplePay("mtn", "a1", "tpe")
	call.Platform, call.UpstreamKey, call.OrderID = platform, depositID, "DemoShop_42"
	return call
}

func sampleLookup() operator.StatusCall {
	return operator.StatusCall{Call: samplePay().Call, Channel: "tpe", Lang: "fr", Amount: "1500", Currency: "XOF"}
}

func checkNoSecrets(t *testing.T, err error) {
	t.Helper()
	operatortest.CheckPrivate(t, err, []string{"very-private", "0707070707", operatortest.SampleOTP})
}

// parse compares JSON by its fields and values.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func accepted(status, id string) string {
	return `{"depositId":"` + id + `","status":"` + status + `"}`
}

func rejected(code string) string {
	return `{"depositId":"` + depositID + `","status":"REJECTED","failureReason":{"failureCode":"` + code +
		`","failureMessage":"about 2250707070707 and token-very-private"}}`
}

func failure(code string) string {
	return `{"failureReason":{"failureCode":"` + code + `","failureMessage":"about token-very-private"}}`
}

func TestGoldenDeposit(t *testing.T) {
	stub := operatortest.NewStubOperator(t, operatortest.Respond(200, accepted("ACCEPTED", depositID)))
	result := newDriver(stub.URL).Pay(t.Context(), samplePay())
	want := operator.PayResponse{Result: operator.Result{Outcome: operator.Succeeded, HTTPStatus: 200}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Fatalf("response (-want +got):\n%s", diff)
	}
	request := stub.Requests()[0]
	if request.Method+" "+request.Path != "POST /v2/deposits" ||
		request.Header.Get("Authorization") != "Bearer token-very-private" ||
		request.Header.Get("Content-Type") != "application/json" || len(stub.Requests()) != 1 {
		t.Errorf("request %+v", request)
	}
	if diff := cmp.Diff(parse(t, operatortest.ReadFile(t, "request.json")), parse(t, request.Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
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
			stub := operatortest.NewStubOperator(t, operatortest.Respond(200, accepted("ACCEPTED", depositID)))
			call := samplePay()
			call.Operator, call.Country, call.MSISDN, call.Amount = c.operator, c.country, c.msisdn, c.amount
			country, _ := market.ByAlpha2(c.country)
			call.Currency = country.Currency
			if result := newDriver(stub.URL).Pay(t.Context(), call); result.Outcome != operator.Succeeded {
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
	change := func(f func(*operator.PayCall)) operator.PayCall {
		call := samplePay()
		f(&call)
		return call
	}
	const ours, merchants = fault.IntegrationRejected, fault.InvalidPart
	cases := []struct {
		name string
		kind fault.Kind
		call operator.PayCall
	}{
		{"wallet out of reach", ours, change(func(c *operator.PayCall) { c.Operator = "moov" })},
		{"unknown account", ours, change(func(c *operator.PayCall) { c.AccountID = "gone" })},
		{"no number", merchants, change(func(c *operator.PayCall) { c.MSISDN = "" })},
		{"decimals", merchants, change(func(c *operator.PayCall) { c.Amount = "1.5" })},
		{"no code", merchants, change(func(c *operator.PayCall) {
			c.Operator, c.Country, c.MSISDN, c.OTP = "orange", "BF", "07345678", ""
		})},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t)
			result := newDriver(stub.URL).Pay(t.Context(), c.call)
			if result.Outcome != operator.NotApplied || result.Fault.Kind != c.kind || len(stub.Requests()) != 0 {
				t.Errorf("outcome %d, %d requests: %v", result.Outcome, len(stub.Requests()), result.Fault)
			}
			checkNoSecrets(t, result.Fault)
		})
	}
}

func TestDepositOutcomes(t *testing.T) {
	const (
		ours, merchants    = fault.IntegrationRejected, fault.OperatorError
		part               = fault.InvalidPart
		down, unclear      = fault.OperatorUnavailable, fault.OutcomeUnknown
		unknown, unapplied = operator.Unknown, operator.NotApplied
	)
	cases := []struct {
		name      string
		status    int
		body      string
		outcome   operator.Outcome
		kind      fault.Kind
		reason    ledger.FailureReason
		duplicate bool
	}{
		{"accepted", 200, accepted("ACCEPTED", depositID), operator.Succeeded, 0, "", false},
		{"accepted another", 200, accepted("ACCEPTED", "other"), unknown, unclear, "", false},
		{"accepted without id", 200, `{"status":"ACCEPTED"}`, unknown, unclear, "", false},
		{"accepted with 202", 202, accepted("ACCEPTED", depositID), unknown, unclear, "", false},
		{"duplicate", 200, accepted("DUPLICATE_IGNORED", depositID), unknown, unclear, "", true},
		{"unknown word", 200, accepted("QUEUED", depositID), unknown, unclear, "", false},
		{"rejected without a reason", 200, accepted("REJECTED", depositID), unknown, unclear, "", false},
		{"HTML", 200, html, unknown, unclear, "", false},
		{"empty", 200, "", unknown, unclear, "", false},
		{"provider down", 200, rejected("PROVIDER_TEMPORARILY_UNAVAILABLE"), unapplied, down, "", false},
		{"bounds", 200, rejected("AMOUNT_OUT_OF_BOUNDS"), unapplied, part, "", false},
		{"amount", 200, rejected("INVALID_AMOUNT"), unapplied, part, "", false},
		{"number", 200, rejected("INVALID_PHONE_NUMBER"), unapplied, part, "", false},
		{"currency", 200, rejected("INVALID_CURRENCY"), unapplied, part, "", false},
		{"provider", 200, rejected("INVALID_PROVIDER"), unapplied, ours, "", false},
		{"wallet", 200, rejected("WALLET_LIMIT_REACHED"), operator.Refused, merchants, ledger.LimitReached, false},
		{"another payment", 200, rejected("PAYMENT_IN_PROGRESS"), unapplied, down, "", false},
		{"new code", 200, rejected("SOMETHING_NEW"), unapplied, ours, "", false},
		{"new code with 400", 400, failure("SOMETHING_NEW"), unapplied, ours, "", false},
		{"new code with 403", 403, failure("SOMETHING_NEW"), unapplied, ours, "", false},
		{"new code with 500", 500, rejected("SOMETHING_NEW"), unknown, unclear, "", false},
		{"another payment with 500", 500, rejected("PAYMENT_IN_PROGRESS"), unknown, unclear, "", false},
		{"unknown error", 200, rejected("UNKNOWN_ERROR"), unknown, unclear, "", false},
		{"no wallet", 200, rejected("PAYER_NOT_FOUND"), operator.Refused, merchants, ledger.WalletUnknown, false},
		{"funds", 200, rejected("INSUFFICIENT_BALANCE"), operator.Refused, merchants, ledger.NotEnoughFunds, false},
		{"limit", 200, rejected("PAYER_LIMIT_REACHED"), operator.Refused, merchants, ledger.LimitReached, false},
		{"code without status", 200, failure("INVALID_AMOUNT"), unknown, unclear, "", false},
		{"400", 400, failure("MISSING_PARAMETER"), unapplied, ours, "", false},
		{"400 of our deposit", 400, rejected("INVALID_INPUT"), unapplied, ours, "", false},
		{"400 of another", 400, strings.ReplaceAll(rejected("INVALID_INPUT"), depositID, "x"),
			unknown, unclear, "", false},
		{"400 unknown error", 400, failure("UNKNOWN_ERROR"), unknown, unclear, "", false},
		{"bare 400", 400, "", unknown, unclear, "", false},
		{"401", 401, failure("NO_AUTHENTICATION"), unapplied, ours, "", false},
		{"bare 401", 401, html, unknown, unclear, "", false},
		{"403 token", 403, failure("AUTHENTICATION_ERROR"), unapplied, ours, "", false},
		{"403 rights", 403, failure("DEPOSITS_NOT_ALLOWED"), unapplied, ours, "", false},
		{"bare 403", 403, "{}", unknown, unclear, "", false},
		{"404", 404, failure("NOT_FOUND"), unknown, unclear, "", false},
		{"409", 409, "", unknown, unclear, "", false},
		{"429", 429, "", unknown, unclear, "", false},
		{"500", 500, failure("UNKNOWN_ERROR"), unknown, unclear, "", false},
		{"500 with a code", 500, rejected("INVALID_AMOUNT"), unknown, unclear, "", false},
		{"503", 503, html, unknown, unclear, "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, operatortest.Respond(c.status, c.body))
			result := newDriver(stub.URL).Pay(t.Context(), samplePay())
			if result.Outcome != c.outcome || result.DuplicateKey != c.duplicate || len(stub.Requests()) != 1 {
				t.Fatalf("%+v, %d requests: %v", result, len(stub.Requests()), result.Fault)
			}
			if c.outcome == operator.Succeeded {
				return
			}
			if result.Fault.Kind != c.kind || operator.RefusalReason(result.Fault) != c.reason {
				t.Errorf("kind %d, reason %q", result.Fault.Kind, operator.RefusalReason(result.Fault))
			}
			if isNew := strings.HasPrefix(c.name, "new code") && c.outcome == unapplied; isNew !=
				errors.Is(result.Fault, operator.ErrUnmappedCode) {
				t.Errorf("%v is an unmapped code: %v, want %v", result.Fault, !isNew, isNew)
			}
			checkNoSecrets(t, result.Fault)
		})
	}
	for name, step := range map[string]operatortest.Responder{
		"cut":  operatortest.CloseConnection(),
		"half": operatortest.RespondTruncated(200, rejected("INVALID_AMOUNT")),
	} {
		stub := operatortest.NewStubOperator(t, step)
		result := newDriver(stub.URL).Pay(t.Context(), samplePay())
		if result.Outcome != operator.Unknown || len(stub.Requests()) != 1 {
			t.Errorf("%s: outcome %d", name, result.Outcome)
		}
	}
}

// After an attempt that may have arrived, the payment in progress may be ours.
func TestPaymentInProgressAfterAnAttempt(t *testing.T) {
	stub := operatortest.NewStubOperator(t, operatortest.Respond(200, rejected("PAYMENT_IN_PROGRESS")))
	call := samplePay()
	call.MayRepeat = true
	if result := newDriver(stub.URL).Pay(t.Context(), call); result.Outcome != operator.Unknown {
		t.Errorf("outcome %d: %v, want unknown", result.Outcome, result.Fault)
	}
}

// A renewed token is used at once, because pawaPay did not process the first request.
func TestRenewedToken(t *testing.T) {
	stub := operatortest.NewStubOperator(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer renewed-very-private" {
			operatortest.Respond(200, accepted("ACCEPTED", depositID))(w, r)
			return
		}
		operatortest.Respond(403, failure("AUTHENTICATION_ERROR"))(w, r)
	})
	accounts := &operatortest.RenewedSecret{
		Value:   accountsOf(stub.URL, "token-very-private", pathSecret),
		Renewed: accountsOf(stub.URL, "renewed-very-private", pathSecret),
	}
	result := newDriverOf(accounts, nil).Pay(t.Context(), samplePay())
	if result.Outcome != operator.Succeeded || len(stub.Requests()) != 2 {
		t.Errorf("outcome %d, %d requests: %v", result.Outcome, len(stub.Requests()), result.Fault)
	}
}

func TestFindAccount(t *testing.T) {
	const address = "https://api.pawapay.io"
	for name, c := range map[string]struct {
		accounts []byte
		field    string
	}{
		"complete":     {accountsOf(address, "t", pathSecret), ""},
		"no token":     {accountsOf(address, "", pathSecret), "access_token"},
		"short secret": {accountsOf(address, "t", "very-private"), "callback_secret"},
	} {
		id, err := newDriverOf(secret.Static(c.accounts), nil).FindAccount(t.Context(), platform, "")
		if (err == nil) != (c.field == "") || (id == "a1") != (c.field == "") ||
			err != nil && !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %q, %v", name, id, err)
		}
		checkNoSecrets(t, err)
	}
}

func TestStaticCallback(t *testing.T) {
	current := accountsOf("https://api.pawapay.io", "t", pathSecret)
	renewed := accountsOf("https://api.pawapay.io", "t", strings.ToUpper(pathSecret))
	cases := []struct {
		name    string
		reader  secret.Reader
		account string
		secret  string
		want    bool
	}{
		{"right", secret.Static(current), "a1", pathSecret, true},
		{"wrong", secret.Static(current), "a1", pathSecret[1:] + "x", false},
		{"empty", secret.Static(accountsOf("https://api.pawapay.io", "t", "")), "a1", "", false},
		{"another account", secret.Static(current), "a2", pathSecret, false},
		{"renewed", &operatortest.RenewedSecret{Value: current, Renewed: renewed},
			"a1", strings.ToUpper(pathSecret), true},
	}
	for _, c := range cases {
		found, err := newDriverOf(c.reader, nil).VerifyStaticCallback(t.Context(), operator.StaticCallback{
			Platform: platform, AccountID: c.account, PathSecret: c.secret,
		})
		if err != nil || found != c.want {
			t.Errorf("%s: %v, %v", c.name, found, err)
		}
	}
	unreadable := newDriverOf(&operatortest.RenewedSecret{}, nil)
	if _, err := unreadable.VerifyStaticCallback(t.Context(), operator.StaticCallback{Platform: platform}); err == nil {
		t.Error("no error without a readable secret")
	}
}
