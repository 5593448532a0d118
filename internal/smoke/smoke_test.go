package smoke

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestRunFindsEachFault lets a stub respond as the contract says, and then with one thing changed.
func TestRunFindsEachFault(t *testing.T) {
	const body = `{"requestError":{"policyException":{"messageId":"900902","text":"Missing Credentials",` +
		`"variables":[]}}}`
	type response struct {
		status                     int
		body, mediaType, challenge string
	}
	good := response{http.StatusUnauthorized, body, "application/json", `Bearer realm="gateway"`}
	for name, c := range map[string]struct {
		change func(*response)
		want   string
	}{
		"nothing":        {func(*response) {}, ""},
		"the status":     {func(r *response) { r.status = http.StatusOK }, "the status is 200, want 401"},
		"the error":      {func(r *response) { r.body = strings.ReplaceAll(body, "900902", "900901") }, "want {"},
		"more members":   {func(r *response) { r.body = strings.ReplaceAll(body, "[]}", `[],"x":1}`) }, "want {"},
		"the media type": {func(r *response) { r.mediaType = "text/html" }, `Content-Type is "text/html"`},
		"the challenge":  {func(r *response) { r.challenge = "Basic" }, "the header Www-Authenticate"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.change(&r)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Amzn-Remapped-Www-Authenticate", r.challenge)
				w.Header().Set("Content-Type", r.mediaType)
				w.WriteHeader(r.status)
				_, _ = w.Write([]byte(r.body))
			}))
			defer server.Close()
			for _, check := range Checks(Merchant{}, "1") {
				if check.Name != "charge needs credentials" {
					continue
				}
				err := (&Runner{Client: NewClient(), Base: server.URL}).Run(t.Context(), check)
				if c.want == "" && err != nil || c.want != "" && (err == nil ||
					!strings.Contains(err.Error(), c.want)) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			t.Fatal("there is no such check")
		})
	}
}

// TestTokenIsUsedAndNeverPrinted: the token of one check signs the next request, and no error quotes it.
func TestTokenIsUsedAndNeverPrinted(t *testing.T) {
	var authorization string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte(`{"token_type":"Bearer","access_token":"a-new-token","expires_in":3600}`))
	}))
	defer server.Close()
	m := Merchant{Name: "ShopA", AccessToken: "a-long-lived-token", ClientID: "id", ClientSecret: "a-client-secret"}
	runner := &Runner{Client: NewClient(), Base: server.URL}
	var faults []string
	used := false
	for _, check := range Checks(m, "1") {
		err := runner.Run(t.Context(), check)
		used = used || check.Name == "a lookup with that token" && authorization == "Bearer a-new-token"
		if err != nil {
			faults = append(faults, err.Error())
		} else if check.Name != "a token" {
			t.Errorf("%s: no fault", check.Name)
		}
	}
	if !used || len(faults) != len(Checks(m, "1"))-1 {
		t.Errorf("the token was used: %v; faults %q", used, faults)
	}
	for _, secret := range []string{"a-new-token", m.AccessToken, m.ClientSecret} {
		if text := strings.Join(faults, " "); strings.Contains(text, secret) {
			t.Errorf("a fault quotes %s: %s", secret, text)
		}
	}
}

// TestChecksWithoutCredentials: one missing value leaves only the open checks.
func TestChecksWithoutCredentials(t *testing.T) {
	for _, m := range []Merchant{{}, {Name: "ShopA", AccessToken: "t", ClientID: "i"}} {
		for _, check := range Checks(m, "1") {
			if check.Group != Open {
				t.Errorf("%+v: %s", m, check.Name)
			}
		}
	}
}

// TestPlainHTTPIsOnlyForThisMachine refuses to send credentials to another machine without TLS.
func TestPlainHTTPIsOnlyForThisMachine(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:3000": ErrPlainHTTP.Error(), "http://api.example.com": "needs https",
	} {
		if err := CheckTLS(t.Context(), address, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
