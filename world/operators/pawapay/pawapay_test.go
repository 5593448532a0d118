package pawapay_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/pawapay"
)

const (
	id    = "f4401bd2-1568-4140-bf2d-eb77d2b2b639"
	valid = `{"depositId":"` + id + `","payer":{"type":"MMO","accountDetails":{"phoneNumber":"2250500000000",` +
		`"provider":"MTN_MOMO_CIV"}},"amount":"500","currency":"XOF","clientReferenceId":"ORDER-1",` +
		`"customerMessage":"Order 1","metadata":[{"a":"b"},{"c":"d"}]}`
	token = "Bearer stub-pawapay-token"
)

type bench struct{ *stubtest.Stub }

func newBench(t *testing.T, quirks string) bench {
	credentials := pawapay.DefaultCredentials()
	credentials.CallbackURL = "https://gateway.test/cb"
	return bench{stubtest.NewStub(t, "pawapay", quirks, func(client *http.Client) http.Handler {
		return pawapay.New(kit.Config{Client: client}, credentials).Handler()
	})}
}

func (b bench) pay(body string) (int, string) {
	return b.Do("POST", "/v2/deposits", body, "Authorization", token)
}

func (b bench) lookup() string {
	b.Helper()
	status, body := b.Do("GET", "/v2/deposits/"+id, "", "Authorization", token)
	if status != 200 {
		b.Errorf("lookup: %d %s", status, body)
	}
	return body
}

type view struct {
	DepositID     string
	Status        string
	FailureReason struct{ FailureCode string }
	Data          struct {
		Status, Amount string
		FailureReason  struct{ FailureCode string }
	}
}

// parse reads a response.
var parse = stubtest.Parse[view]

// wallets are the wallets and the currencies by the prefix of the numbers.
var wallets = map[string][2]string{
	"22505": {"ORANGE_CIV", "XOF"}, "2260": {"MOOV_BFA", "XOF"}, "22177": {"FREE_SEN", "XOF"},
	"243810": {"VODACOM_MPESA_COD", "USD"}, "243811": {"AIRTEL_COD", "CDF"}, "237653": {"MTN_MOMO_CMR", "XAF"},
	"237650": {"ORANGE_CMR", "XAF"},
}

func TestOutcomes(t *testing.T) {
	words := stubtest.Words{Accepted: "200", Paid: "COMPLETED", Refused: "FAILED PAYMENT_NOT_APPROVED",
		NoFunds: "FAILED INSUFFICIENT_BALANCE", Undecided: "PROCESSING", Unknown: "NOT_FOUND",
		Success: "COMPLETED", Failure: "FAILED"}
	outcomes := words.Outcomes("23765000", map[string]string{
		"2250500000000": words.Paid, "22601001001": words.Refused, "221770001002": words.NoFunds,
		"243810001003": words.Undecided, "243811000000": words.Paid,
		"22602345048": words.NoFunds, "22602345138": words.Undecided, "22602345068": "FAILED UNSPECIFIED_FAILURE",
		"22602345678": words.Paid, "22607345128": words.Undecided, "22607345148": words.Refused,
		"22607345678": words.Paid, "237653456039": words.Refused, "237653456049": words.NoFunds,
		"237653456069": "FAILED UNSPECIFIED_FAILURE", "237653456129": words.Undecided, "237653456789": words.Paid,
		"237653456029": "FAILED PAYER_NOT_FOUND",
	}, map[string]stubtest.Outcome{"237650001009": {Response: "200", Status: "NOT_FOUND"}})
	stubtest.CheckOutcomes(t, outcomes, func(t *testing.T, quirks string) stubtest.Trial {
		b := newBench(t, quirks)
		pay := func(number string) string {
			body := strings.Replace(valid, "2250500000000", number, 1)
			for prefix, wallet := range wallets {
				if strings.HasPrefix(number, prefix) {
					body = strings.NewReplacer("MTN_MOMO_CIV", wallet[0], "XOF", wallet[1]).Replace(body)
				}
			}
			status, _ := b.pay(body)
			return fmt.Sprint(status)
		}
		lookup := func() string {
			v := parse(t, b.lookup())
			if v.Status == "NOT_FOUND" {
				return v.Status
			}
			return strings.TrimSpace(v.Data.Status + " " + v.Data.FailureReason.FailureCode)
		}
		return stubtest.Trial{Stub: b.Stub, Pay: pay, Status: lookup, Key: "ORDER-1"}
	})
}

func TestRejections(t *testing.T) {
	for _, c := range []struct {
		old, new string
		status   int
		code     string
	}{
		{valid, `{`, 400, "INVALID_INPUT"},
		{`"500"`, `500`, 400, "INVALID_INPUT"},
		{`"500"`, `""`, 400, "MISSING_PARAMETER"},
		{"MTN_MOMO_CIV", "ORANGE_BFA", 400, "MISSING_PARAMETER"},
		{id, "ORDER-1", 400, "INVALID_PARAMETER"},
		{`"Order 1"`, `"A message that is too long"`, 400, "INVALID_PARAMETER"},
		{"MTN_MOMO_CIV", "MTN_MOMO_COD", 200, "INVALID_PROVIDER"},
		{"XOF", "XAF", 200, "INVALID_CURRENCY"},
		{`"500"`, `"5.5"`, 200, "INVALID_AMOUNT"},
		{`"500"`, `"0500"`, 200, "INVALID_AMOUNT"},
		{`MTN_MOMO_CIV"}},"amount":"500","currency":"XOF"`, `AIRTEL_COD"}},"amount":"5.50","currency":"USD"`, 200,
			"INVALID_AMOUNT"},
		{"2250500000000", "+2250500000000", 200, "INVALID_PHONE_NUMBER"},
		{"2250500000000", "237650000000", 200, "INVALID_PHONE_NUMBER"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, "")
			status, body := b.pay(strings.Replace(valid, c.old, c.new, 1))
			v := parse(t, body)
			if status != c.status || v.Status != "REJECTED" || v.FailureReason.FailureCode != c.code {
				t.Errorf("%s: %d %s, want %d %s", c.new, status, body, c.status, c.code)
			}
			if time.Sleep(time.Minute); b.Effects("ORDER-1") != 0 || parse(t, b.lookup()).Status != "NOT_FOUND" {
				t.Errorf("%s: a rejected deposit exists", c.new)
			}
		})
	}
}

func TestAuthentication(t *testing.T) {
	for header, want := range map[string]struct {
		status int
		code   string
	}{"": {401, "NO_AUTHENTICATION"}, "Bearer x": {403, "AUTHENTICATION_ERROR"}} {
		b := newBench(t, "")
		for _, call := range [][2]string{{"POST", "/v2/deposits"}, {"GET", "/v2/deposits/" + id}} {
			status, body := b.Do(call[0], call[1], valid, "Authorization", header)
			if status != want.status || parse(t, body).FailureReason.FailureCode != want.code {
				t.Errorf("%s with %q: %d %s", call[0], header, status, body)
			}
		}
	}
}

func TestRepeatIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.pay(valid)
		status, body := b.pay(strings.Replace(valid, `"500"`, `"600"`, 1))
		if status != 200 || parse(t, body).Status != "DUPLICATE_IGNORED" {
			t.Error(status, body)
		}
		if time.Sleep(time.Minute); b.Effects("ORDER-1") != 1 {
			t.Error("want one effect")
		}
	})
}

func TestCallbackIsTheDepositAndIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.Callbacks.Respond(500)
		b.pay(valid)
		time.Sleep(time.Hour)
		all := b.Callbacks.All()
		if len(all) != 4 || all[0].Method != "POST" || all[0].Path != "/cb" {
			t.Fatalf("%d callbacks: %v", len(all), all)
		}
		const reference = `"clientReferenceId":"ORDER-1",`
		if data := strings.Replace(b.lookup(), reference, "", 1); !strings.Contains(data, `"data":`+all[0].Body+`,`) {
			t.Errorf("callback %s is not the lookup's data %s without a clientReferenceId", all[0].Body, data)
		}
		wanted := []string{`"metadata":{"a":"b","c":"d"}`, `"country":"CIV"`}
		for _, want := range wanted {
			if !strings.Contains(all[0].Body, want) {
				t.Errorf("callback %s lacks %s", all[0].Body, want)
			}
		}
	})
}

func TestQuirks(t *testing.T) {
	for _, c := range []struct {
		quirks, amount string
		statuses       []string // after 0, 1.5, 3, 33 seconds
	}{
		{"", "500", []string{"ACCEPTED", "PROCESSING", "COMPLETED", "COMPLETED"}},
		{"in_reconciliation", "500", []string{"ACCEPTED", "PROCESSING", "IN_RECONCILIATION", "COMPLETED"}},
		{"amount_decimals", "500.00", []string{"ACCEPTED", "PROCESSING", "COMPLETED", "COMPLETED"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, c.quirks)
			b.pay(valid)
			for i, pause := range []time.Duration{0, 1500, 1500, 30000} {
				time.Sleep(pause * time.Millisecond)
				if v := parse(t, b.lookup()); v.Data.Status != c.statuses[i] || v.Data.Amount != c.amount {
					t.Errorf("%s: lookup %d: %+v, want %s", c.quirks, i, v, c.statuses[i])
				}
			}
		})
	}
}

func TestScriptedRejection(t *testing.T) {
	b := newBench(t, "")
	b.Script("deposit", "ORDER-1", "PROVIDER_TEMPORARILY_UNAVAILABLE")
	b.checkDownOnce(valid)
}

// The documented rejection is what the number of an operator that is down gets: a 503 would prove nothing.
func TestOperatorDown(t *testing.T) {
	b := newBench(t, "")
	b.checkDownOnce(strings.Replace(valid, "2250500000000", "2250500001009", 1))
}

func (b bench) checkDownOnce(body string) {
	b.Helper()
	_, first := b.pay(body)
	_, second := b.pay(body)
	rejected := parse(b.T, first)
	if rejected.FailureReason.FailureCode != "PROVIDER_TEMPORARILY_UNAVAILABLE" || rejected.DepositID != id ||
		rejected.Status != "REJECTED" || parse(b.T, second).Status != "ACCEPTED" {
		b.Error(first, second)
	}
}
