package mtn_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/mtn"
)

const (
	reference = "f4401bd2-1568-4140-bf2d-eb77d2b2b639"
	ordinary  = "2250500000000"
	payPath   = "/collection/v1_0/requesttopay"
)

type bench struct {
	*stubtest.Stub
	token string
}

func newBench(t *testing.T, quirks string) *bench {
	credentials := mtn.DefaultCredentials()
	credentials.CallbackHost = "gateway.test"
	b := &bench{Stub: stubtest.NewStub(t, "mtn", quirks, func(client *http.Client) http.Handler {
		return mtn.New(kit.Config{Client: client}, credentials).Handler()
	})}
	b.token = newToken(b)
	return b
}

func basic(key string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(mtn.DefaultCredentials().APIUser+":"+key))
}

func (b *bench) headers(more ...string) []string {
	return append([]string{"Authorization", "Bearer " + b.token, "Ocp-Apim-Subscription-Key", "stub-mtn-primary",
		"X-Target-Environment", "mtnivorycoast", "X-Reference-Id", reference,
		"X-Callback-Url", "https://gateway.test/cb/token"}, more...)
}

func body(msisdn string) string {
	return `{"amount":"500","currency":"XOF","externalId":"ORDER-1",` +
		`"payer":{"partyIdType":"MSISDN","partyId":"` + msisdn + `"},"payerMessage":"m","payeeNote":"n"}`
}

func (b *bench) pay(msisdn string) (int, string) {
	return b.Do("POST", payPath, body(msisdn), b.headers()...)
}

func (b *bench) status() (int, string) {
	return b.Do("GET", payPath+"/"+reference, "", b.headers()...)
}

func TestOutcomes(t *testing.T) {
	words := stubtest.Words{Accepted: "202", Paid: "SUCCESSFUL", Refused: "FAILED APPROVAL_REJECTED",
		NoFunds: "FAILED NOT_ENOUGH_FUNDS", Undecided: "PENDING", Unknown: "404 RESOURCE_NOT_FOUND",
		Success: "SUCCESSFUL", Failure: "FAILED"}
	own := map[string]stubtest.Outcome{"46733123462": {Response: "503", Status: words.Unknown}}
	for ending, code := range map[string]string{"55": "PAYER_NOT_FOUND", "56": "PAYEE_NOT_ALLOWED_TO_RECEIVE",
		"57": "NOT_ALLOWED", "58": "NOT_ALLOWED_TARGET_ENVIRONMENT", "59": "INVALID_CALLBACK_URL_HOST",
		"60": "INVALID_CURRENCY", "61": "INTERNAL_PROCESSING_ERROR", "64": "INTERNAL_PROCESSING_ERROR"} {
		own["467331234"+ending] = stubtest.Outcome{Response: "500 " + code, Status: words.Unknown}
	}
	outcomes := words.Outcomes("225050000", map[string]string{
		"46733123450": "FAILED INTERNAL_PROCESSING_ERROR", "46733123451": words.Refused,
		"46733123452": "FAILED EXPIRED", "46733123453": words.Undecided, "46733123454": words.Paid,
		"46733123463":                       "FAILED COULD_NOT_PERFORM_TRANSACTION",
		"46733123452 with measured_numbers": "FAILED EXPIRED",
		"46733123453 with measured_numbers": "PENDING",
		"46733123455 with measured_numbers": "SUCCESSFUL",
	}, own)
	stubtest.CheckOutcomes(t, outcomes, func(t *testing.T, quirks string) stubtest.Trial {
		b := newBench(t, quirks)
		pay := func(number string) string {
			status, text := b.pay(number)
			if status == 202 && text != "" {
				t.Errorf("the response has the body %q, want none", text)
			}
			if status == 500 {
				return fmt.Sprint(status, " ", stubtest.Field(t, text, "code"))
			}
			return fmt.Sprint(status)
		}
		lookup := func() string {
			status, text := b.status()
			if status != 200 {
				return fmt.Sprint(status, " ", stubtest.Field(t, text, "code"))
			}
			word := stubtest.Field(t, text, "status")
			if has := strings.Contains(text, "financialTransactionId"); has != (word == "SUCCESSFUL") {
				t.Errorf("lookup %s: financialTransactionId %v", text, has)
			}
			return strings.TrimSpace(word + " " + stubtest.Field(t, text, "reason"))
		}
		return stubtest.Trial{Stub: b.Stub, Pay: pay, Status: lookup, Key: "ORDER-1"}
	})
}

func TestStatusOverTime(t *testing.T) {
	for _, c := range []struct {
		msisdn string
		words  []string // after 0, 1.5, 3, 26 seconds
	}{
		{ordinary, []string{"CREATED", "PENDING", "SUCCESSFUL", "SUCCESSFUL"}},
		{"46733123454", []string{"CREATED", "CREATED", "CREATED", "SUCCESSFUL"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, "")
			b.pay(c.msisdn)
			for i, pause := range []time.Duration{0, 1500, 1500, 23000} {
				time.Sleep(pause * time.Millisecond)
				if _, text := b.status(); stubtest.Field(t, text, "status") != c.words[i] {
					t.Errorf("%s: lookup %d: %s, want %s", c.msisdn, i, text, c.words[i])
				}
			}
		})
	}
}

func TestRepeatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.pay(ordinary)
		status, text := b.pay("2250500000001")
		if status != 409 || stubtest.Field(t, text, "code") != "RESOURCE_ALREADY_EXIST" {
			t.Error(status, text)
		}
		time.Sleep(time.Minute)
		if b.Effects("ORDER-1") != 1 {
			t.Error("want one effect")
		}
	})
}

func TestCallbackComesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.Callbacks.Respond(http.StatusInternalServerError)
		b.pay(ordinary)
		if time.Sleep(24 * time.Hour); len(b.Callbacks.All()) != 1 {
			t.Errorf("%d callbacks, want 1", len(b.Callbacks.All()))
		}
	})
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		code       string // code, or statusCode of the API gateway
	}{
		{"subscription key", body(ordinary), []string{"Ocp-Apim-Subscription-Key", "x"}, 401, "401"},
		{"token", body(ordinary), []string{"Authorization", "Bearer x"}, 401, "401"},
		{"reference", body(ordinary), []string{"X-Reference-Id", "ORDER-1"}, 400, ""},
		{"own reference", body(ordinary), []string{"X-Reference-Id", mtn.DefaultCredentials().APIUser}, 400, ""},
		{"empty callback", body(ordinary), []string{"X-Callback-Url", ""}, 400, ""},
		{"callback host", body(ordinary), []string{"X-Callback-Url", "https://other.test/"}, 500,
			"INVALID_CALLBACK_URL_HOST"},
		{"environment", body(ordinary), []string{"X-Target-Environment", "mtncongo"}, 500,
			"NOT_ALLOWED_TARGET_ENVIRONMENT"},
		{"currency", body(ordinary), []string{"X-Target-Environment", "mtncameroon"}, 500, "INVALID_CURRENCY"},
		{"no JSON", `<xml>`, nil, 400, ""},
		{"amount as a number", strings.Replace(body(ordinary), `"500"`, `500`, 1), nil, 400, ""},
		{"decimals", strings.Replace(body(ordinary), `"500"`, `"5.5"`, 1), nil, 400, ""},
		{"plus", body("+2250500000000"), nil, 400, ""},
		{"space", strings.Replace(body(ordinary), `ORDER-1`, `ORDER 1`, 1), nil, 400, ""},
	} {
		stubtest.Run(t, c.name, func(t *testing.T) {
			b := newBench(t, "")
			status, text := b.Do("POST", payPath, c.body, b.headers(c.headers...)...)
			if status != c.status {
				t.Fatalf("%d %s, want %d", status, text, c.status)
			}
			switch {
			case c.code == "" && text != "":
				t.Errorf("body %q, want none", text)
			case c.code == "401" && stubtest.Field(t, text, "statusCode") != "401":
				t.Error(text)
			case c.code != "" && c.code != "401" && stubtest.Field(t, text, "code") != c.code:
				t.Error(text)
			}
			if time.Sleep(time.Minute); b.Effects("ORDER-1") != 0 {
				t.Error("a refused request has an effect")
			}
		})
	}
}

func TestQuirks(t *testing.T) {
	inBody := func(want string) func(*bench) bool {
		return func(b *bench) bool { _, text := b.status(); return strings.Contains(text, want) }
	}
	callback := func(fits func(stubtest.Callback) bool) func(*bench) bool {
		return func(b *bench) bool { return len(b.Callbacks.All()) == 1 && fits(b.Callbacks.All()[0]) }
	}
	for _, c := range []struct {
		quirk, msisdn string
		pause         time.Duration
		off, on       func(*bench) bool
	}{
		{"callback_put", ordinary, time.Minute,
			callback(func(c stubtest.Callback) bool { return c.Method == "POST" && c.Path == "/cb/token" }),
			callback(func(c stubtest.Callback) bool { return c.Method == "PUT" })},
		{"callback_without_reference", ordinary, time.Minute,
			callback(func(c stubtest.Callback) bool { return strings.Contains(c.Body, `"referenceId":"`+reference) }),
			callback(func(c stubtest.Callback) bool { return !strings.Contains(c.Body, reference) })},
		{"reason_object", "2250500001001", time.Minute, inBody(`"reason":"APPROVAL_REJECTED"`),
			inBody(`"reason":{"code":"APPROVAL_REJECTED","message":`)},
		{"amount_number", ordinary, time.Minute, inBody(`"amount":"500"`), inBody(`"amount":500`)},
		{"early_not_found", ordinary, 4 * time.Second, inBody(`SUCCESSFUL`), inBody(`RESOURCE_NOT_FOUND`)},
		{"early_not_found", ordinary, 8 * time.Second, inBody(`SUCCESSFUL`), inBody(`SUCCESSFUL`)},
	} {
		for quirks, check := range map[string]func(*bench) bool{"token_60s": c.off, c.quirk: c.on} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, quirks)
				b.pay(c.msisdn)
				time.Sleep(c.pause - time.Second)
				if !check(b) {
					_, text := b.status()
					t.Errorf("%s with %s: %s %v", c.quirk, quirks, text, b.Callbacks.All())
				}
			})
		}
	}
}

func TestAmountComesBackWithoutTrailingZeros(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		for sent, want := range map[string]string{"12.50": "12.5", "12.00": "12", "100": "100"} {
			b.Handler = newBench(t, "").Handler
			b.token = newToken(b)
			request := strings.NewReplacer("XOF", "EUR", `"500"`, `"`+sent+`"`).Replace(body(ordinary))
			headers := b.headers("X-Target-Environment", "sandbox")
			if status, text := b.Do("POST", payPath, request, headers...); status != 202 {
				t.Fatal(status, text)
			}
			_, text := b.Do("GET", payPath+"/"+reference, "", headers...)
			if stubtest.Field(t, text, "amount") != want {
				t.Errorf("%s: %s, want %s", sent, text, want)
			}
		}
	})
}

func newToken(b *bench) string {
	_, text := b.Do("POST", "/collection/token/", `{"grant_type":"client_credentials"}`,
		"Authorization", basic("stub-mtn-api-key"), "Ocp-Apim-Subscription-Key", "stub-mtn-secondary")
	return stubtest.Field(b.T, text, "access_token")
}

func TestScriptedFaultsInTheOperatorsForms(t *testing.T) {
	for mode, want := range map[string]string{
		"401": `"statusCode":401`, "403": `"statusCode":403`, "429": `"statusCode":429`,
		"500": `"code":"INTERNAL_PROCESSING_ERROR"`, "503": `"code":"SERVICE_UNAVAILABLE"`,
		"409": `"code":"RESOURCE_ALREADY_EXIST"`, "PAYER_NOT_FOUND": `"code":"PAYER_NOT_FOUND"`,
	} {
		b := newBench(t, "")
		b.CheckScript("requesttopay", reference, mode, want, func() (int, string) { return b.pay(ordinary) })
	}
}

func TestSpeedDividesDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		credentials := mtn.DefaultCredentials()
		b := newBench(t, "")
		b.Handler = mtn.New(kit.Config{Speed: 10}, credentials).Handler()
		b.token = newToken(b)
		headers := b.headers("X-Callback-Url", "http://127.0.0.1:0/")
		b.Do("POST", payPath, body("2250500001011"), headers...)
		time.Sleep(250 * time.Millisecond)
		if _, text := b.status(); stubtest.Field(t, text, "status") != "SUCCESSFUL" {
			t.Error(text)
		}
	})
}

// Above its rate a target environment's lookups get 429, in the form of the API gateway, until a second has passed.
func TestLookupRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.pay("2250500000000")
		for i := range 17 {
			want := 200
			if i >= 15 {
				want = 429
			}
			if status, text := b.status(); status != want {
				t.Errorf("lookup %d: %d %s, want %d", i+1, status, text, want)
			}
		}
		other := b.headers("X-Target-Environment", "mtncameroon")
		if status, text := b.Do("GET", payPath+"/"+reference, "", other...); status != 404 {
			t.Errorf("another environment: %d %s, want 404", status, text)
		}
		time.Sleep(time.Second)
		if status, _ := b.status(); status != 200 {
			t.Errorf("a second later: %d", status)
		}
	})
}
