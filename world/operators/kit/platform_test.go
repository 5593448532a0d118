package kit_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
)

// newExample makes a small stub: a payment that ends after one second.
func newExample(t *testing.T, quirks string) *stubtest.Stub {
	return stubtest.NewStub(t, "example", quirks, newPlatform)
}

func newPlatform(client *http.Client) http.Handler {
	var p *kit.Platform
	serve := func(c *kit.Call) kit.Response {
		if p.Find(c.Key) != nil {
			return kit.JSON(http.StatusConflict, "known")
		}
		payment := p.Add(c, &kit.Transaction{Amount: "5", Currency: "XOF",
			CallbackURL: "http://merchant.test/cb"})
		return p.DecideAfter(time.Second, payment, kit.JSON(http.StatusAccepted, "accepted"))
	}
	token := func(c *kit.Call) kit.Response {
		return p.Grant(c, kit.Grant{Clients: map[string]string{"": ""}})
	}
	check := func(c *kit.Call) kit.Response {
		_, valid := p.TokenOwner(c)
		return kit.JSON(http.StatusOK, valid)
	}
	p = kit.New(kit.Config{Client: client}, kit.Spec{
		Operator: "example", Quirks: []string{"odd"}, TokenLife: time.Hour,
		Faults:  map[string]kit.Response{"401": {Status: http.StatusUnauthorized}},
		Numbers: map[string]kit.Outcome{"700": {Result: kit.Refused}},
		Operations: []kit.Operation{
			{Pattern: "POST /pay", Name: "pay", Key: "key", OrderID: "order", MSISDN: "msisdn", Serve: serve},
			{Pattern: "POST /token", Name: "token", Serve: token},
			{Pattern: "GET /check", Name: "check", Serve: check},
		},
		Callback: func(t *kit.Transaction, r kit.Result) kit.Callback {
			return kit.Callback{Method: "POST", URL: t.CallbackURL, Body: []byte(r),
				Retries: []time.Duration{time.Second},
				Sign: func(at time.Time) map[string]string {
					return map[string]string{"Signed-At": at.Format(time.TimeOnly)}
				}}
		},
	})
	return p.Handler()
}

func pay(s *stubtest.Stub, msisdn string) int {
	s.Helper()
	status, _ := s.Do("POST", "/pay", `{"key":"k","order":"o","msisdn":"`+msisdn+`"}`)
	return status
}

func TestOutcomesByNumber(t *testing.T) {
	for _, c := range []struct {
		name, msisdn    string
		first, second   int // statuses
		early           int // callbacks that come before the response
		effects         int
		callbackResults string
	}{
		{"ordinary", "2250500000000", 202, 409, 0, 1, "paid"},
		{"refused", "2250500001001", 202, 409, 0, 0, "refused"},
		{"no funds", "2250500001002", 202, 409, 0, 0, "no_funds"},
		{"never decided", "2250500001003", 202, 409, 0, 0, ""},
		{"slow", "2250500001004", 202, 409, 0, 1, "paid"},
		{"applied then cut", "2250500001005", 0, 409, 0, 1, "paid"},
		{"three callbacks", "2250500001006", 202, 409, 0, 1, "paid paid paid"},
		{"contradicting", "2250500001007", 202, 409, 0, 1, "paid refused"},
		{"callback first", "2250500001008", 202, 409, 1, 1, "paid"},
		{"503 not applied", "2250500001009", 503, 202, 0, 1, "paid"},
		{"garbage applied", "2250500001010", 200, 409, 0, 1, "paid"},
		{"callback lost", "2250500001011", 202, 409, 0, 1, ""},
		{"own test number", "700", 202, 409, 0, 0, "refused"},
		{"short number", "1", 202, 409, 0, 1, "paid"},
	} {
		stubtest.Run(t, c.name, func(t *testing.T) {
			s := newExample(t, "")
			first := pay(s, c.msisdn)
			if got := len(s.Callbacks.All()); got != c.early {
				t.Errorf("%d callbacks before the response, want %d", got, c.early)
			}
			second := pay(s, c.msisdn)
			time.Sleep(time.Hour)
			if first != c.first || second != c.second {
				t.Errorf("responses %d, %d, want %d, %d", first, second, c.first, c.second)
			}
			for _, key := range []string{"", "k", "o"} {
				if got := s.Effects(key); got != c.effects {
					t.Errorf("%d effects under %q, want %d", got, key, c.effects)
				}
			}
			var results []string
			for _, callback := range s.Callbacks.All() {
				results = append(results, callback.Body)
			}
			if got := strings.Join(results, " "); got != c.callbackResults {
				t.Errorf("callbacks %q, want %q", got, c.callbackResults)
			}
		})
	}
}

func TestCallbackIsRetriedAsDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newExample(t, "")
		s.Callbacks.Respond(500)
		pay(s, "2250500000000")
		time.Sleep(time.Hour)
		attempts := s.Callbacks.All()
		if len(attempts) != 2 {
			t.Fatalf("%d attempts, want 2", len(attempts))
		}
		if attempts[0].Header.Get("Signed-At") == attempts[1].Header.Get("Signed-At") {
			t.Error("the second attempt has the signature of the first")
		}
	})
}

func TestScripts(t *testing.T) {
	for _, c := range []struct {
		script   string
		statuses []int
		effects  int
	}{
		{`{"key":"k","operation":"pay","calls":["ok","html"]}`, []int{202, 200, 409}, 1},
		{`{"key":"o","calls":["cut","cut-applied"]}`, []int{0, 0, 409}, 1},
		{`{"calls":["500","503","429","401","empty"]}`, []int{500, 503, 429, 401, 200, 202}, 1},
		{`{"key":"other","calls":["500"]}`, []int{202, 409}, 1},
		{`{"operation":"token","calls":["500"]}`, []int{202, 409}, 1},
		{`{"calls":["401-applied"]}`, []int{401, 409}, 1},
		{`{"calls":["slow","ok"]}`, []int{202, 409}, 1},
		{`{"key":"2250500000000","calls":["twice"]}`, []int{409, 409}, 1},
	} {
		stubtest.Run(t, c.script, func(t *testing.T) {
			s := newExample(t, "")
			if status, body := s.Do("POST", "/stub/v1/script", c.script); status != 200 {
				t.Fatal(status, body)
			}
			for i, want := range c.statuses {
				if got := pay(s, "2250500000000"); got != want {
					t.Errorf("call %d: %d, want %d", i, got, want)
				}
			}
			time.Sleep(time.Hour)
			if got := s.Effects("k"); got != c.effects {
				t.Errorf("%d effects, want %d", got, c.effects)
			}
		})
	}
}

func TestScriptsAreListedAndDeleted(t *testing.T) {
	const first, second = `{"key":"a","operation":"","calls":["500"]}`, `{"key":"b","operation":"pay","calls":["429"]}`
	for _, c := range []struct{ path, left string }{
		{"/stub/v1/script?key=a", "[" + second + "]"},
		{"/stub/v1/script?key=c", "[" + first + "," + second + "]"},
		{"/stub/v1/script", "[]"},
	} {
		s := newExample(t, "")
		s.Do("POST", "/stub/v1/script", first)
		s.Do("POST", "/stub/v1/script", second)
		if status, _ := s.Do("DELETE", c.path, ""); status != http.StatusNoContent {
			t.Errorf("DELETE %s: %d, want 204", c.path, status)
		}
		if _, left := s.Do("GET", "/stub/v1/script", ""); left != c.left {
			t.Errorf("DELETE %s leaves %s, want %s", c.path, left, c.left)
		}
	}
}

func TestControlNamesWhatWorks(t *testing.T) {
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/stub/v1/script", `{"calls":["odd"]}`, "401, 429, 500, 503, cut, empty, garbage, html"},
		{"POST", "/stub/v1/script", `{"operation":"x"}`, "pay, token, check"},
		{"POST", "/stub/v1/script", `{"kay":"x"}`, "unknown field"},
		{"POST", "/stub/v1/script", `{} {}`, "more text"},
		{"PUT", "/stub/v1/quirks", `{"x":true}`, "odd, token_60s, token_3s, expires_in_text"},
		{"PUT", "/stub/v1/quirks", ``, "object is required"},
	} {
		status, body := newExample(t, "").Do(c.method, c.path, c.body)
		if status != http.StatusBadRequest || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s, want 400 with %q", c.path, c.body, status, body, c.want)
		}
	}
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		quirks, expiresIn string
		life              time.Duration
	}{
		{"", `3600`, time.Hour},
		{"token_60s", `60`, time.Minute},
		{"token_3s expires_in_text", `"3"`, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newExample(t, c.quirks)
			mint := func() string {
				_, body := s.Do("POST", "/token", "")
				issued := stubtest.Parse[struct {
					Token     string          `json:"access_token"`
					ExpiresIn json.RawMessage `json:"expires_in"`
				}](t, body)
				if string(issued.ExpiresIn) != c.expiresIn {
					t.Errorf("%s, want expires_in %s", body, c.expiresIn)
				}
				return issued.Token
			}
			valid := func(token string) string {
				_, body := s.Do("GET", "/check", "", "Authorization", "Bearer "+token)
				return body
			}
			token := mint()
			if _, body := s.Do("GET", "/check", "", "Authorization", token); body != "false" {
				t.Errorf("a token without its scheme is valid: %s", body)
			}
			before := valid(token)
			time.Sleep(c.life)
			if before != "true" || valid(token) != "false" {
				t.Errorf("%s: the token does not live for %v", c.quirks, c.life)
			}
			token = mint()
			s.Do("POST", "/stub/v1/revoke-tokens", "")
			if valid(token) != "false" || valid("") != "false" {
				t.Errorf("%s: a revoked token is valid", c.quirks)
			}
			_, calls := s.Do("GET", "/stub/v1/calls", "")
			if strings.Contains(calls, token) || strings.Count(calls, `"token"`) != 2 {
				t.Errorf("calls: %s", calls)
			}
		})
	}
}

func TestPageEscapes(t *testing.T) {
	page := kit.Page{Title: "Pay", Notice: "<script>", OrderID: `"><b>`}
	body := string(page.Render(200).Body)
	if strings.Contains(body, "<script>") || strings.Contains(body, "<b>") || strings.Count(body, "<button") != 3 {
		t.Error(body)
	}
	if page.Code = true; !strings.Contains(string(page.Render(200).Body), `<input name="code"`) {
		t.Error("a page with Code has no field code")
	}
	page.Done = true
	if body = string(page.Render(200).Body); strings.Contains(body, "<form") {
		t.Error(body)
	}
}

func TestIsUUIDv4(t *testing.T) {
	for text, want := range map[string]bool{
		"f4401bd2-1568-4140-bf2d-eb77d2b2b639": true,
		"F4401BD2-1568-4140-BF2D-EB77D2B2B639": true,
		"f4401bd2-1568-1140-bf2d-eb77d2b2b639": false,
		"f4401bd2-1568-4140-7f2d-eb77d2b2b639": false,
		"f4401bd2a1568-4140-bf2d-eb77d2b2b639": false,
		"":                                     false,
	} {
		if kit.IsUUIDv4(text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

func TestIsAmount(t *testing.T) {
	for text, want := range map[string]bool{
		"1": true, "0.10": true, "": false, "0": false, "0.00": false, "1.": false, ".5": false, "-1": false,
		"1e3":   false,
		"1.2.3": false,
	} {
		if kit.IsAmount(text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

func TestReusedTokenHasItsRemainingLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := kit.New(kit.Config{}, kit.Spec{TokenLife: time.Hour})
		grant := func(client string) (string, int) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.SetBasicAuth(client, "secret")
			response := p.Grant(&kit.Call{Request: r}, kit.Grant{Reuse: true,
				Clients: map[string]string{"us": "secret", "them": "secret"}})
			issued := stubtest.Parse[struct {
				Token string `json:"access_token"`
				Life  int    `json:"expires_in"`
			}](t, string(response.Body))
			return issued.Token, issued.Life
		}
		first, life := grant("us")
		if life != 3600 {
			t.Errorf("new token: %d seconds, want 3600", life)
		}
		time.Sleep(time.Hour - 3*time.Second)
		if same, life := grant("us"); same != first || life != 3 {
			t.Errorf("%d seconds, the same token %t, want 3 and the same", life, same == first)
		}
		if other, _ := grant("them"); other == first {
			t.Error("two clients have one token")
		}
		time.Sleep(3 * time.Second)
		if next, life := grant("us"); next == first || life != 3600 {
			t.Errorf("after the end: %d seconds, the same token %t", life, next == first)
		}
	})
}

// A platform serves the hazards that its Spec names, and never takes another one for ok.
func TestUnknownHazardPanics(t *testing.T) {
	for _, c := range []struct {
		hazard  kit.Hazard
		isKnown bool
	}{{"", true}, {"503", true}, {kit.DeniesApplied, true}, {kit.NotFound, true}, {kit.NotFoundYet, false}} {
		pick := func(string, kit.Keys, bool) kit.Hazard { return c.hazard }
		p := kit.New(kit.Config{Hazards: kit.Hazards{Pick: pick}}, kit.Spec{
			Operator: "example", Hazards: []kit.Hazard{kit.NotFound}, Operations: []kit.Operation{{
				Pattern: "GET /check", Name: "check",
				Serve: func(*kit.Call) kit.Response { return kit.JSON(http.StatusOK, "ok") },
			}},
		})
		hasPanicked := func() (panicked bool) {
			defer func() { panicked = recover() != nil }()
			p.Serve(httptest.NewRequestWithContext(t.Context(), "GET", "/check", nil), nil)
			return
		}()
		if hasPanicked == c.isKnown {
			t.Errorf("the hazard %q is understood: %v, want %v", c.hazard, !hasPanicked, c.isKnown)
		}
	}
}
