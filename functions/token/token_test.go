package token

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/secret"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeSecretSource returns the token key ring, or an error.
type fakeSecretSource struct {
	text []byte
	err  error
}

func (v *fakeSecretSource) Fetch(context.Context, string) ([]byte, error) {
	return v.text, v.err
}

// tokenFixture is the token function behind a gateway, with everything in memory.
type tokenFixture struct {
	t       testing.TB
	store   *storetest.Merchants
	limits  *storetest.Limits
	secrets *fakeSecretSource
	public  secret.Static // the ring that verifies
	gateway *apigw.Gateway
	log     bytes.Buffer
	profile *merchant.Profile
	secret  string
}

func newFixture(t testing.TB) *tokenFixture {
	t.Helper()
	pair, err := keyring.Pair{}.AddKey(merchanttest.SeededReader(9), start)
	if err != nil {
		t.Fatal(err)
	}
	d := &tokenFixture{
		t: t, store: storetest.NewMerchants(), limits: storetest.NewLimits(),
		secrets: &fakeSecretSource{text: pair.Private}, public: secret.Static(pair.Public),
	}
	now := func() time.Time { return start }
	cache := secret.NewCache(d.secrets, "token-keys", 5*time.Minute, 30*time.Second, now)
	operation := &Operation{
		Store: d.store, RateLimiter: limit.NewRateLimiter(d.limits, now),
		Keys: keyring.NewRefreshingRing(cache, 5*time.Minute, now), TokenLifetime: time.Hour, Now: now,
	}
	d.gateway = apigw.New(apigw.Config{Operation: "token", Now: now, Log: &d.log}, operation.Route())
	d.profile = merchanttest.NewProfile(t, "DemoShop", 1)
	if d.secret, err = merchant.ClientSecret.Issue(d.profile, merchanttest.SeededReader(2), start); err != nil {
		t.Fatal(err)
	}
	if err := d.store.Create(context.Background(), d.profile); err != nil {
		t.Fatal(err)
	}
	return d
}

// tokenCall is one request of the token endpoint.
type tokenCall struct {
	authorization string
	contentType   string
	query         map[string]string
	body          string
	path          string
}

// tokenResult is a response with its decoded body.
type tokenResult struct {
	Status  int               `json:"statusCode"`
	Headers map[string]string `json:"headers"`
	Raw     string            `json:"body"`
	Body    struct {
		AccessToken      string          `json:"access_token"`
		TokenType        string          `json:"token_type"`
		ExpiresIn        int             `json:"expires_in"`
		Error            string          `json:"error"`
		ErrorDescription string          `json:"error_description"`
		RequestError     json.RawMessage `json:"requestError"`
	} `json:"-"`
}

func (d *tokenFixture) send(c tokenCall) tokenResult {
	d.t.Helper()
	if c.path == "" {
		c.path = "/token"
	}
	headers := map[string]string{}
	if c.authorization != "" {
		headers["Authorization"] = c.authorization
	}
	if c.contentType != "" {
		headers["Content-Type"] = c.contentType
	}
	event, err := json.Marshal(map[string]any{
		"resource": "/token", "path": c.path, "httpMethod": "POST", "headers": headers,
		"queryStringParameters": c.query, "body": c.body, "requestContext": map[string]string{"requestId": "r-1"},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	payload, err := d.gateway.Invoke(context.Background(), event)
	if err != nil {
		d.t.Fatal(err)
	}
	var a tokenResult
	if err := json.Unmarshal(payload, &a); err != nil {
		d.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(a.Raw), &a.Body); err != nil {
		d.t.Fatalf("body %q: %v", a.Raw, err)
	}
	return a
}

func basicAuth(id, clientSecret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+clientSecret))
}

const grantForm = "grant_type=client_credentials"

func TestIssuesToken(t *testing.T) {
	d := newFixture(t)
	id := d.profile.ID
	good := basicAuth(id, d.secret)
	inForm := url.Values{partGrantType: {clientCredentials}, partClientID: {id}, partClientSecret: {d.secret}}.Encode()
	percentEncode := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
		return b.String()
	}
	inQuery := map[string]string{partGrantType: clientCredentials}
	cases := []struct {
		name string
		call tokenCall
	}{
		{"Basic and a form", tokenCall{authorization: good, contentType: formType, body: grantForm}},
		{"with a charset", tokenCall{
			authorization: good, contentType: "Application/X-WWW-Form-URLencoded; charset=UTF-8", body: grantForm,
		}},
		{"without a content type", tokenCall{authorization: good, body: grantForm}},
		{"with the slash at the end", tokenCall{authorization: good, body: grantForm, path: "/token/"}},
		{"lower-case scheme", tokenCall{authorization: "basic" + basicAuth(id, d.secret)[5:], body: grantForm}},
		{"id and secret percent-encoded", tokenCall{
			authorization: basicAuth(percentEncode(id), percentEncode(d.secret)), body: grantForm,
		}},
		{"a newline after the form", tokenCall{authorization: good, body: grantForm + "\r\n"}},
		{"the grant in the query", tokenCall{authorization: good, query: inQuery}},
		{"the grant in the query, no body", tokenCall{authorization: good, contentType: formType, query: inQuery}},
		{"the grant in the query, no body but the type JSON", tokenCall{
			authorization: good, contentType: "application/json", query: inQuery,
		}},
		{"the grant in both", tokenCall{authorization: good, body: grantForm, query: inQuery}},
		{"the client in the form", tokenCall{contentType: formType, body: inForm}},
		{"the client in the form, the grant in the query", tokenCall{
			body: strings.Replace(inForm, "grant_type", "x", 1), query: inQuery,
		}},
		{"Basic, and the same client_id in the form", tokenCall{
			authorization: good, body: grantForm + "&client_id=" + id,
		}},
		{"a scope, ignored", tokenCall{authorization: good, body: grantForm + "&scope=payments"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := d.store.CallCount(storetest.ReadProfile)
			a := d.send(c.call)
			if a.Status != 200 || a.Body.TokenType != "Bearer" || a.Body.ExpiresIn != 3600 {
				t.Fatalf("response %d %s, want 200 and a bearer token for 3600 s", a.Status, a.Raw)
			}
			assertHeaders(t, a, map[string]string{
				"Cache-Control": "no-store", "Pragma": "no-cache", "Content-Type": "application/json",
			})
			if reads := d.store.CallCount(storetest.ReadProfile) - before; reads != 1 {
				t.Errorf("%d reads of profiles, want 1", reads)
			}
			justBeforeEnd := func() time.Time { return start.Add(time.Hour - time.Second) }
			public := keyring.NewRefreshingRing(d.public, time.Minute, justBeforeEnd)
			auth := merchant.NewAuthenticator(d.store, public, 0, justBeforeEnd)
			p, err := auth.Authenticate(context.Background(), "Bearer "+a.Body.AccessToken)
			if err != nil || p.ID != id {
				t.Errorf("the token is refused: %v", err)
			}
		})
	}
}

// assertHeaders checks some headers of a response.
func assertHeaders(t *testing.T, a tokenResult, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if a.Headers[name] != value {
			t.Errorf("%s: %q, want %q", name, a.Headers[name], value)
		}
	}
}

// A case without a space in its name has the golden body of that name.
func TestRefusals(t *testing.T) {
	d := newFixture(t)
	id := d.profile.ID
	good := basicAuth(id, d.secret)
	other := merchanttest.NewProfile(t, "OtherShop", 5)
	otherSecret, err := merchant.ClientSecret.Issue(other, merchanttest.SeededReader(6), start)
	if err != nil {
		t.Fatal(err)
	}
	form := func(body string) tokenCall { return tokenCall{authorization: good, body: body} }
	auth := func(authorization string) tokenCall { return tokenCall{authorization: authorization, body: grantForm} }
	withoutColon := "Basic " + base64.StdEncoding.EncodeToString([]byte(id))
	secretInQuery := map[string]string{
		partGrantType: clientCredentials, partClientID: id, partClientSecret: d.secret,
	}
	twoGrants, jsonCall := form(grantForm), form(`{"grant_type":"client_credentials"}`)
	twoGrants.query, jsonCall.contentType = map[string]string{partGrantType: "password"}, "application/json"
	clientInForm := "&client_id=" + id + "&client_secret=" + d.secret
	const missing, invalid = "900902", "900901"
	const unauthorized, badRequest, unsupported = "invalid_client", "invalid_request", "unsupported_grant_type"
	cases := []struct {
		name      string
		call      tokenCall
		code      string
		messageID string
		reads     int
	}{
		{"missing-credentials", tokenCall{body: grantForm}, unauthorized, missing, 0},
		{"invalid-client", auth(basicAuth("a", "b")), unauthorized, invalid, 0},
		{"missing-grant", tokenCall{authorization: good}, badRequest, "SVC0002", 1},
		{"unsupported-grant-type", form("grant_type=password"), unsupported, "SVC0003", 1},
		{"only a client id", tokenCall{body: grantForm + "&client_id=" + id}, unauthorized, missing, 0},
		{"a bearer token", auth("Bearer x"), unauthorized, invalid, 0},
		{"Basic with invalid base64", auth("Basic !!!"), unauthorized, invalid, 0},
		{"Basic without a colon", auth(withoutColon), unauthorized, invalid, 0},
		{"Basic with an invalid escape", auth(basicAuth("%zz", d.secret)), unauthorized, invalid, 0},
		{"a wrong checksum", auth(basicAuth(id, d.secret[:72]+"z")), unauthorized, invalid, 0},
		{"the secret of another id", auth(basicAuth(id, otherSecret)), unauthorized, invalid, 0},
		{"an unknown merchant", auth(basicAuth(other.ID, otherSecret)), unauthorized, invalid, 1},
		{"an empty grant type", form("grant_type="), badRequest, "SVC0002", 1},
		{"the grant type in capitals", form("grant_type=CLIENT_CREDENTIALS"), unsupported, "SVC0003", 1},
		{"the grant type twice", form(grantForm + "&" + grantForm), badRequest, "SVC0002", 0},
		{"two grant types", twoGrants, badRequest, "SVC0002", 0},
		{"two authentications", form(grantForm + clientInForm), badRequest, "SVC0002", 0},
		{"two clients", form(grantForm + "&client_id=other"), badRequest, "SVC0002", 0},
		{"the secret in the query", tokenCall{query: secretInQuery}, badRequest, "SVC0002", 0},
		{"a JSON body", jsonCall, badRequest, "SVC0002", 0},
		{"a malformed form", form("grant_type=%zz"), badRequest, "SVC0002", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := d.store.CallCount(storetest.ReadProfile)
			a := d.send(c.call)
			status := 400
			if c.code == unauthorized {
				status = 401
			}
			if a.Status != status || a.Body.Error != c.code || a.Body.ErrorDescription == "" {
				t.Fatalf("response %d %s, want %d %s with a description", a.Status, a.Raw, status, c.code)
			}
			if !strings.Contains(string(a.Body.RequestError), `"messageId":"`+c.messageID+`"`) {
				t.Errorf("requestError %s, want %s", a.Body.RequestError, c.messageID)
			}
			if challenge := a.Headers["WWW-Authenticate"]; strings.HasPrefix(challenge, "Basic ") != (status == 401) {
				t.Errorf("WWW-Authenticate %q in a response with %d", challenge, status)
			}
			assertHeaders(t, a, map[string]string{"Cache-Control": "no-store"})
			if reads := d.store.CallCount(storetest.ReadProfile) - before; reads != c.reads {
				t.Errorf("%d reads of profiles, want %d", reads, c.reads)
			}
			if !strings.Contains(c.name, " ") {
				operationtest.Golden(t, "testdata/"+c.name+".json", []byte(a.Raw))
			}
		})
	}
	for _, text := range []string{d.secret, otherSecret, good} {
		if strings.Contains(d.log.String(), text) {
			t.Error("the log contains a secret")
		}
	}
}

func TestRevokedSecretIsRefused(t *testing.T) {
	cases := map[string]func(p *merchant.Profile){
		"a suspended merchant": func(p *merchant.Profile) { merchant.Suspend(p, start) },
		"a revoked secret":     func(p *merchant.Profile) { _ = merchant.ClientSecret.Revoke(p, 1, start, start) },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			change(d.profile)
			if err := d.store.Update(context.Background(), d.profile); err != nil {
				t.Fatal(err)
			}
			a := d.send(tokenCall{authorization: basicAuth(d.profile.ID, d.secret), body: grantForm})
			if a.Status != 401 || a.Body.Error != "invalid_client" {
				t.Errorf("response %d %s, want 401 invalid_client", a.Status, a.Raw)
			}
			reason := ""
			if name == "a suspended merchant" {
				reason = "merchant-suspended"
			}
			assertHeaders(t, a, map[string]string{"X-Error-Reason": reason})
			wrong := d.send(tokenCall{authorization: basicAuth(d.profile.ID, otherSecretOf(t, d)), body: grantForm})
			assertHeaders(t, wrong, map[string]string{"X-Error-Reason": ""})
		})
	}
}

// otherSecretOf returns a well-formed client secret that the merchant does not have.
func otherSecretOf(t *testing.T, d *tokenFixture) string {
	t.Helper()
	secret, err := merchant.ClientSecret.Issue(d.profile.Clone(), merchanttest.SeededReader(77), start)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestStoreFailures(t *testing.T) {
	cases := map[string]func(d *tokenFixture){
		"the store":  func(d *tokenFixture) { d.store.Err = errors.New("no response") },
		"the secret": func(d *tokenFixture) { d.secrets.err = errors.New("no response") },
	}
	for name, fail := range cases {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			fail(d)
			a := d.send(tokenCall{authorization: basicAuth(d.profile.ID, d.secret), body: grantForm})
			requestError := string(a.Body.RequestError)
			if a.Status != 500 || a.Body.Error != "server_error" || !strings.Contains(requestError, "SVC0001") {
				t.Errorf("response %d %s, want 500 server_error", a.Status, a.Raw)
			}
		})
	}
}

func FuzzBasic(f *testing.F) {
	f.Add(basicAuth("id", "secret"))
	f.Add("Basic")
	f.Add("basic Og==")
	f.Add("Basic JTAwOiUwMA==")
	f.Fuzz(func(t *testing.T, authorization string) {
		_, _, ok := parseBasicAuth(authorization)
		if ok && !strings.EqualFold(authorization[:5], "Basic") {
			t.Errorf("%q is not Basic", authorization)
		}
	})
}

func FuzzForm(f *testing.F) {
	d := newFixture(f)
	f.Add("grant_type=client_credentials", "application/x-www-form-urlencoded")
	f.Add("grant_type=client_credentials&client_id=a&client_secret=b", "")
	f.Add("%", "text/plain")
	f.Fuzz(func(t *testing.T, body, contentType string) {
		d.t = t
		a := d.send(tokenCall{body: body, contentType: contentType})
		if a.Status != 400 && a.Status != 401 && a.Status != 413 {
			t.Errorf("response %d to a request without a secret, want an error", a.Status)
		}
	})
}
