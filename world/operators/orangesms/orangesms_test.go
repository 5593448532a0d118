package orangesms_test

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
	"mobilegateway/world/operators/orangesms"
)

const (
	ordinary = "2250700000000"
	path     = "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"
	accepted = `{"outboundSMSMessageRequest":{"address":["tel:+2250700000000"],"senderAddress":"tel:+2250000",` +
		`"senderName":"Stub","outboundSMSTextMessage":{"message":"Bonjour"},` +
		`"resourceURL":"https://api.orange.com/smsmessaging/v1/outbound/tel:+2250000/requests/ID"}}`
)

type bench struct {
	*stubtest.Stub
	token string
}

// newBench makes a stub whose bundle of Ivory Coast has 10 units.
func newBench(t *testing.T, quirks string) *bench {
	credentials := orangesms.DefaultCredentials()
	credentials.ReceiptURL = "https://gateway.test/receipts/secret"
	credentials.Senders[0].Units = 10
	b := &bench{Stub: stubtest.NewStub(t, "orangesms", quirks, func(client *http.Client) http.Handler {
		return orangesms.New(kit.Config{Client: client}, credentials).Handler()
	})}
	b.renewToken()
	return b
}

func (b *bench) tokenCall(secret string) (int, string) {
	basic := base64.StdEncoding.EncodeToString([]byte("stub-orangesms-id:" + secret))
	return b.Do("POST", "/oauth/v3/token", "grant_type=client_credentials", "Authorization",
		"Basic "+basic, "Content-Type", "application/x-www-form-urlencoded")
}

func (b *bench) renewToken() {
	b.Helper()
	_, text := b.tokenCall("stub-orangesms-secret")
	b.token = stubtest.Field(b.T, text, "access_token")
}

func body(number, text string) string {
	return `{"outboundSMSMessageRequest":{"address":"tel:+` + number + `","senderAddress":"tel:+2250000",` +
		`"senderName":"Stub","outboundSMSTextMessage":{"message":"` + text + `"}}}`
}

func (b *bench) post(body string) (int, string) {
	return b.Do("POST", path, body, "Authorization", "Bearer "+b.token)
}

func (b *bench) effects() []kit.Effect {
	_, text := b.Do("GET", "/stub/v1/effects", "")
	return stubtest.Parse[[]kit.Effect](b.T, text)
}

func (b *bench) units() string {
	_, text := b.Do("GET", "/sms/admin/v1/contracts?country=CIV", "", "Authorization", "Bearer "+b.token)
	list := stubtest.Parse[[]struct{ AvailableUnits int }](b.T, text)
	if len(list) != 1 {
		b.Fatal(text)
	}
	return fmt.Sprint(list[0].AvailableUnits)
}

// words returns the initials of the receipts' statuses, and checks their form and that they name one request.
func (b *bench) words() string {
	b.Helper()
	initials := map[string]string{"DeliveredToNetwork": "N", "DeliveredToTerminal": "T", "DeliveryImpossible": "I",
		"DeliveryUncertain": "U", "MessageWaiting": "W"}
	var words []string
	for _, r := range b.Callbacks.All() {
		n := stubtest.Parse[struct {
			DeliveryInfoNotification struct {
				CallbackData string
				DeliveryInfo struct{ Address, DeliveryStatus string }
			}
		}](b.T, r.Body).DeliveryInfoNotification
		if r.Method != "POST" || r.Path != "/receipts/secret" || !kit.IsUUIDv4(n.CallbackData) ||
			!strings.HasPrefix(n.DeliveryInfo.Address, "tel:+") {
			b.Errorf("receipt %s %s %s", r.Method, r.Path, r.Body)
		}
		words = append(words, initials[n.DeliveryInfo.DeliveryStatus])
	}
	return strings.Join(words, " ")
}

func TestOutcomes(t *testing.T) {
	words := stubtest.Words{Accepted: "201", Paid: "9", Refused: "9", Unknown: "10", Success: "N T", Failure: "I"}
	outcomes := words.Outcomes("225070000",
		map[string]string{"221770000000": words.Paid, ordinary + " with no_resource_url": words.Paid},
		map[string]stubtest.Outcome{
			"2250700001001":                          {Response: "201", Status: "9", Callbacks: "I"},
			"2250700001002":                          {Response: "403", Status: "10"},
			"2250700001003":                          {Response: "201", Status: "9", Effects: 1},
			"2250700002001":                          {Response: "201", Status: "9", Effects: 1, Callbacks: "U"},
			"2250700002002":                          {Response: "201", Status: "9", Effects: 1, Callbacks: "W"},
			"221770000000 with off_net_lost":         {Response: "201", Status: "9"},
			ordinary + " with off_net_lost":          {Response: "201", Status: "9", Effects: 1, Callbacks: "N T"},
			ordinary + " with receipts_reordered":    {Response: "201", Status: "9", Effects: 1, Callbacks: "T N"},
			ordinary + " with receipts_twice":        {Response: "201", Status: "9", Effects: 1, Callbacks: "N N T T"},
			ordinary + " with receipts_lost":         {Response: "201", Status: "9", Effects: 1},
			ordinary + " with receipts_network_only": {Response: "201", Status: "9", Effects: 1, Callbacks: "N"},
			ordinary + " with bundle_empty":          {Response: "403", Status: "0"},
		})
	wanted := map[int]string{201: `"address":["tel:+`, 403: `"policyException":{"messageId":"POL0001"`,
		503: `{"code":5`, 200: "<html>"}
	stubtest.CheckOutcomes(t, outcomes, func(t *testing.T, quirks string) stubtest.Trial {
		b := newBench(t, quirks)
		send := func(number string) string {
			status, text := b.post(body(number, "Bonjour"))
			named := strings.Contains(text, "resourceURL")
			if !strings.Contains(text, wanted[status]) || named != (status == 201 && quirks != "no_resource_url") {
				t.Errorf("response %d %s", status, text)
			}
			return fmt.Sprint(status)
		}
		return stubtest.Trial{Stub: b.Stub, Pay: send, Status: b.units, Words: b.words}
	})
}

func TestResponseNamesTheReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		_, text := b.post(body(ordinary, "Bonjour"))
		time.Sleep(time.Minute)
		effects := b.effects()
		if len(effects) != 1 || effects[0].Kind != "sms" {
			t.Fatalf("effects %v, want one sms", effects)
		}
		if got := strings.Replace(text, effects[0].Key, "ID", 1); got != accepted {
			t.Errorf("response\n%s, want\n%s", got, accepted)
		}
		want := `{"deliveryInfoNotification":{"callbackData":"` + effects[0].Key +
			`","deliveryInfo":{"address":"tel:+2250700000000","deliveryStatus":"DeliveredToTerminal"}}}`
		if all := b.Callbacks.All(); len(all) != 2 || all[1].Body != want {
			t.Errorf("receipts %v, want the last to be %s", all, want)
		}
		_, calls := b.Do("GET", "/stub/v1/calls", "")
		if strings.Contains(calls, ordinary) || strings.Count(calls, effects[0].Key) != 3 {
			t.Errorf("calls %s, want a send and two receipts, without the number", calls)
		}
	})
}

func TestReceiptIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.Callbacks.Respond(503)
		b.post(body(ordinary, "Bonjour"))
		if time.Sleep(time.Hour); len(b.Callbacks.All()) != 2 {
			t.Errorf("%d receipts, want 2", len(b.Callbacks.All()))
		}
	})
}

func TestEqualSendsAreTwoEffects(t *testing.T) {
	for _, number := range []string{ordinary, "2250700001005"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, "")
			b.post(body(number, "Bonjour"))
			if status, text := b.post(body(number, "Bonjour")); status != 201 {
				t.Errorf("%s: repeat %d %s, want 201", number, status, text)
			}
			time.Sleep(time.Minute)
			effects := b.effects()
			if len(effects) != 2 || effects[0].Key == effects[1].Key || b.units() != "8" {
				t.Fatalf("%s: effects %v, %s units", number, effects, b.units())
			}
			_, text := b.Do("GET", "/stub/v1/calls?key="+effects[0].Key, "")
			calls := stubtest.Parse[[]struct {
				OrderID string `json:"order_id"`
			}](t, text)
			if len(calls) == 0 {
				t.Fatal(text)
			}
			_, text = b.Do("GET", "/stub/v1/effects?key="+calls[0].OrderID, "")
			if strings.Count(text, `"kind":"sms"`) != 2 {
				t.Errorf("%s: effects of the digest: %s, want two", number, text)
			}
		})
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		for i := range 6 {
			want := 201
			if i == 5 {
				want = 429
			}
			if status, text := b.post(body(ordinary, fmt.Sprint(i))); status != want {
				t.Errorf("send %d: %d %s, want %d", i, status, text, want)
			}
		}
		time.Sleep(time.Second)
		if status, _ := b.post(body(ordinary, "later")); status != 201 || len(b.effects()) != 6 {
			t.Errorf("a second later: %d with %d effects, want 201 and 6", status, len(b.effects()))
		}
	})
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		name, text, left string
	}{
		{"160 septets", strings.Repeat("a", 160), "9"},
		{"161 septets", strings.Repeat("a", 161), "8"},
		{"306 septets", strings.Repeat("é", 306), "8"},
		{"307 septets", strings.Repeat("a", 307), "7"},
		{"extension", strings.Repeat("€", 80), "9"},
		{"extension above one part", strings.Repeat("€", 81), "8"},
		{"70 UTF-16 units", strings.Repeat("ç", 70), "9"},
		{"71 UTF-16 units", strings.Repeat("ç", 71), "8"},
		{"curly apostrophe", strings.Repeat("a", 100) + "’", "8"},
		{"surrogate pairs", strings.Repeat("😀", 36), "8"},
	} {
		b := newBench(t, "")
		if status, text := b.post(body(ordinary, c.text)); status != 201 || b.units() != c.left {
			t.Errorf("%s: %d %s with %s units left, want %s", c.name, status, text, b.units(), c.left)
		}
	}
}

func TestEmptyBundleRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		for range 10 {
			b.post(body(ordinary, "Bonjour"))
			time.Sleep(time.Second)
		}
		status, text := b.post(body(ordinary, "Bonjour"))
		if status != 403 || !strings.Contains(text, "POL0001") || len(b.effects()) != 10 || b.units() != "0" {
			t.Errorf("%d %s with %d effects", status, text, len(b.effects()))
		}
	})
}

func TestRefusals(t *testing.T) {
	valid := body(ordinary, "Bonjour")
	for _, c := range []struct {
		name, path, body, token string
		status                  int
		want                    string
	}{
		{"token", path, valid, "Bearer x", 401, `{"code":42`},
		{"no token", path, valid, "", 401, `{"code":41`},
		{"unknown sender", strings.Replace(path, "0000", "1111", 1), valid, "", 404, `{"code":60`},
		{"other sender", strings.Replace(path, "225", "221", 1), valid, "", 400, `"SVC0002"`},
		{"no JSON", path, "<xml>", "", 400, `"SVC0002"`},
		{"array", path, strings.Replace(valid, `"tel:+2250700000000"`, `["tel:+2250700000000"]`, 1), "", 400,
			`"SVC0002"`},
		{"no address", path, strings.Replace(valid, "tel:+2250700000000", "", 1), "", 400,
			`"serviceException":{"messageId":"SVC0004"`},
		{"no plus", path, strings.Replace(valid, "tel:+2250700000000", "tel:2250700000000", 1), "", 400, `"SVC0004"`},
		{"no text", path, body(ordinary, ""), "", 400, `"SVC0002"`},
		{"long text", path, body(ordinary, strings.Repeat("a", 1025)), "", 400, `"SVC0280"`},
		{"name", path, strings.Replace(valid, "Stub", "MyShop", 1), "", 403, `"POL1009"`},
		{"long name", path, strings.Replace(valid, "Stub", "MyShopInAbidjan", 1), "", 400, `"SVC0002"`},
	} {
		b := newBench(t, "")
		headers := []string{"Authorization", "Bearer " + b.token}
		switch {
		case c.token != "":
			headers[1] = c.token
		case c.name == "no token":
			headers = nil
		}
		if status, text := b.Do("POST", c.path, c.body, headers...); status != c.status ||
			!strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, text, c.status, c.want)
		}
		if len(b.effects()) != 0 || b.units() != "10" {
			t.Errorf("%s: a refused send has an effect", c.name)
		}
	}
}

func TestSenderNameReplaced(t *testing.T) {
	b := newBench(t, "sender_name_replaced")
	for name, want := range map[string]bool{"Stub": true, "MyShop": false} {
		status, text := b.post(strings.Replace(body(ordinary, "Bonjour"), "Stub", name, 1))
		if status != 201 || strings.Contains(text, "senderName") != want {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

func TestTokenCall(t *testing.T) {
	for quirk, want := range map[string]string{"token_60s": `"expires_in":"60"`, "receipts_lost": `"expires_in":"3600"`,
		"expires_in_number": `"expires_in":3600`} {
		if _, text := newBench(t, quirk).tokenCall("stub-orangesms-secret"); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", quirk, text, want)
		}
	}
	b := newBench(t, "")
	if status, text := b.tokenCall("x"); status != 401 || !strings.Contains(text, `"code":41`) {
		t.Errorf("wrong secret: %d %s", status, text)
	}
	stubtest.CheckTokens(t, time.Hour, `"code":42`, func(t *testing.T) stubtest.TokenUser {
		b := newBench(t, "")
		send := func() (int, string) { return b.post(body(ordinary, "Bonjour")) }
		return stubtest.TokenUser{Stub: b.Stub, Renew: b.renewToken, Call: send}
	})
}

func TestScriptedFaultsInTheOperatorsForms(t *testing.T) {
	for mode, want := range map[string]string{
		"401": `"code":42`, "403": `"code":50`, "404": `"code":60`, "429": `"code":53`, "503": `"code":5,`,
		"503-html": `<html>`, "SVC0001": `"messageId":"SVC0001"`, "POL1009": `"messageId":"POL1009"`,
	} {
		b := newBench(t, "")
		b.Script("send", "", mode, mode+"-applied")
		for effects := range 2 {
			if _, text := b.post(body(ordinary, "Bonjour")); !strings.Contains(text, want) ||
				len(b.effects()) != effects {
				t.Errorf("%s: %s, want %s and %d effects", mode, text, want, effects)
			}
		}
	}
}
