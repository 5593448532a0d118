package token

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/merchantmem"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/merchanttest"
	"mobilegateway/shared/secret"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeSecretSource is the secret that holds the token keys.
type fakeSecretSource struct {
	text []byte
	err  error
}

func (v *fakeSecretSource) Fetch(context.Context, string) (secret.Value, error) {
	return secret.Value{Bytes: v.text}, v.err
}

// tokenFixture is the token function as deployed, in memory.
type tokenFixture struct {
	t       testing.TB
	store   *merchantmem.Store
	secrets *fakeSecretSource
	cache   *secret.Cache
	gateway *apigw.Gateway
	log     bytes.Buffer
	profile *merchant.Profile
	secret  string
}

func newFixture(t testing.TB) *tokenFixture {
	t.Helper()
	text, err := keyring.AddKey(nil, merchanttest.SeededReader(9), start)
	if err != nil {
		t.Fatal(err)
	}
	d := &tokenFixture{t: t, store: &merchantmem.Store{}, secrets: &fakeSecretSource{text: text}}
	now := func() time.Time { return start }
	d.cache = secret.NewCache(d.secrets, "token-keys", 5*time.Minute, 30*time.Second, now)
	operation := &Operation{Store: d.store, Keys: keyring.NewRefreshingRing(d.cache, 5*time.Minute, now), TokenLifetime: time.Hour, Now: now}
	d.gateway = apigw.New(apigw.Config{Operation: "token", Now: now, Log: &d.log}, operation.Route())
	d.profile = merchanttest.NewProfile(t, "DemoShop", 1)
	if d.secret, err = merchant.IssueClientSecret(d.profile, merchanttest.SeededReader(2), start); err != nil {
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

// tokenAnswer is what came back, its body decoded.
type tokenAnswer struct {
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

func (d *tokenFixture) send(c tokenCall) tokenAnswer {
	d.t.Helper()
	if c.path == "" {
		c.path = Resource
	}
	headers := map[string]string{}
	if c.authorization != "" {
		headers["Authorization"] = c.authorization
	}
	if c.contentType != "" {
		headers["Content-Type"] = c.contentType
	}
	event, err := json.Marshal(map[string]any{
		"resource": Resource, "path": c.path, "httpMethod": Method, "headers": headers,
		"queryStringParameters": c.query, "body": c.body, "requestContext": map[string]string{"requestId": "r-1"},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	payload, err := d.gateway.Invoke(context.Background(), event)
	if err != nil {
		d.t.Fatal(err)
	}
	var a tokenAnswer
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
	inForm := url.Values{partGrantType: {clientCredentials}, partClientID: {id}, partClientSecret: {d.secret}}.Encode()
	everyCharacter := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			b.WriteString("%" + strings.ToUpper(string("0123456789abcdef"[c>>4])+string("0123456789abcdef"[c&15])))
		}
		return b.String()
	}
	inQuery := map[string]string{partGrantType: clientCredentials}
	cases := []struct {
		name string
		call tokenCall
	}{
		{"Basic and a form", tokenCall{authorization: basicAuth(id, d.secret), contentType: formType, body: grantForm}},
		{"with a charset", tokenCall{authorization: basicAuth(id, d.secret), contentType: "Application/X-WWW-Form-URLencoded; charset=UTF-8", body: grantForm}},
		{"without a content type", tokenCall{authorization: basicAuth(id, d.secret), body: grantForm}},
		{"with the slash at the end", tokenCall{authorization: basicAuth(id, d.secret), body: grantForm, path: "/token/"}},
		{"lower-case scheme", tokenCall{authorization: "basic" + basicAuth(id, d.secret)[5:], body: grantForm}},
		{"id and secret percent-encoded", tokenCall{authorization: basicAuth(everyCharacter(id), everyCharacter(d.secret)), body: grantForm}},
		{"a newline after the form", tokenCall{authorization: basicAuth(id, d.secret), body: grantForm + "\r\n"}},
		{"the grant in the query", tokenCall{authorization: basicAuth(id, d.secret), query: inQuery}},
		{"the grant in the query, a body dropped", tokenCall{authorization: basicAuth(id, d.secret), contentType: formType, query: inQuery}},
		{"the grant in the query, JSON said of no body", tokenCall{authorization: basicAuth(id, d.secret), contentType: "application/json", query: inQuery}},
		{"the grant in both", tokenCall{authorization: basicAuth(id, d.secret), body: grantForm, query: inQuery}},
		{"the client in the form", tokenCall{contentType: formType, body: inForm}},
		{"the client in the form, the grant in the query", tokenCall{body: strings.Replace(inForm, "grant_type", "x", 1), query: inQuery}},
		{"Basic, and the same client_id in the form", tokenCall{authorization: basicAuth(id, d.secret), body: grantForm + "&client_id=" + id}},
		{"a scope, ignored", tokenCall{authorization: basicAuth(id, d.secret), body: grantForm + "&scope=payments"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := d.store.ReadCount()
			a := d.send(c.call)
			if a.Status != 200 || a.Body.TokenType != "Bearer" || a.Body.ExpiresIn != 3600 {
				t.Fatalf("%d %s", a.Status, a.Raw)
			}
			if a.Headers["Cache-Control"] != "no-store" || a.Headers["Pragma"] != "no-cache" || a.Headers["Content-Type"] != "application/json" {
				t.Errorf("headers %v", a.Headers)
			}
			if reads := d.store.ReadCount() - before; reads != 1 {
				t.Errorf("%d reads, want 1", reads)
			}
			auth := merchant.NewAuthenticator(d.store, d.cache, 0, func() time.Time { return start.Add(time.Hour - time.Second) })
			p, err := auth.Authenticate(context.Background(), "Bearer "+a.Body.AccessToken)
			if err != nil || p.ID != id {
				t.Errorf("the token is refused: %v", err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	d := newFixture(t)
	id := d.profile.ID
	good := basicAuth(id, d.secret)
	other := merchanttest.NewProfile(t, "OtherShop", 5)
	otherSecret, err := merchant.IssueClientSecret(other, merchanttest.SeededReader(6), start)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		call   tokenCall
		status int
		code   string
		id     string // of requestError
		reads  int
	}{
		{"no client", tokenCall{body: grantForm}, 401, "invalid_client", "900902", 0},
		{"a client id alone", tokenCall{body: grantForm + "&client_id=" + id}, 401, "invalid_client", "900902", 0},
		{"a bearer token", tokenCall{authorization: "Bearer x", body: grantForm}, 401, "invalid_client", "900901", 0},
		{"Basic of no base64", tokenCall{authorization: "Basic !!!", body: grantForm}, 401, "invalid_client", "900901", 0},
		{"Basic without a colon", tokenCall{authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte(id)), body: grantForm}, 401, "invalid_client", "900901", 0},
		{"Basic badly escaped", tokenCall{authorization: basicAuth("%zz", d.secret), body: grantForm}, 401, "invalid_client", "900901", 0},
		{"a wrong checksum", tokenCall{authorization: basicAuth(id, d.secret[:72]+"z"), body: grantForm}, 401, "invalid_client", "900901", 0},
		{"the secret of another id", tokenCall{authorization: basicAuth(id, otherSecret), body: grantForm}, 401, "invalid_client", "900901", 0},
		{"a merchant that does not exist", tokenCall{authorization: basicAuth(other.ID, otherSecret), body: grantForm}, 401, "invalid_client", "900901", 1},
		{"no grant type", tokenCall{authorization: good}, 400, "invalid_request", "SVC0002", 1},
		{"an empty grant type", tokenCall{authorization: good, body: "grant_type="}, 400, "invalid_request", "SVC0002", 1},
		{"another grant type", tokenCall{authorization: good, body: "grant_type=password"}, 400, "unsupported_grant_type", "SVC0003", 1},
		{"the grant type in capitals", tokenCall{authorization: good, body: "grant_type=CLIENT_CREDENTIALS"}, 400, "unsupported_grant_type", "SVC0003", 1},
		{"the grant type twice", tokenCall{authorization: good, body: grantForm + "&" + grantForm}, 400, "invalid_request", "SVC0002", 0},
		{"two grant types", tokenCall{authorization: good, body: grantForm, query: map[string]string{partGrantType: "password"}}, 400, "invalid_request", "SVC0002", 0},
		{"two ways to authenticate", tokenCall{authorization: good, body: grantForm + "&client_id=" + id + "&client_secret=" + d.secret}, 400, "invalid_request", "SVC0002", 0},
		{"two clients", tokenCall{authorization: good, body: grantForm + "&client_id=other"}, 400, "invalid_request", "SVC0002", 0},
		{"the secret in the query", tokenCall{query: map[string]string{partGrantType: clientCredentials, partClientID: id, partClientSecret: d.secret}}, 400, "invalid_request", "SVC0002", 0},
		{"a JSON body", tokenCall{authorization: good, contentType: "application/json", body: `{"grant_type":"client_credentials"}`}, 400, "invalid_request", "SVC0002", 0},
		{"a form that is none", tokenCall{authorization: good, body: "grant_type=%zz"}, 400, "invalid_request", "SVC0002", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := d.store.ReadCount()
			a := d.send(c.call)
			if a.Status != c.status || a.Body.Error != c.code || a.Body.ErrorDescription == "" {
				t.Fatalf("%d %s, want %d %s", a.Status, a.Raw, c.status, c.code)
			}
			if !strings.Contains(string(a.Body.RequestError), `"messageId":"`+c.id+`"`) {
				t.Errorf("requestError %s, want %s", a.Body.RequestError, c.id)
			}
			if challenge := a.Headers["WWW-Authenticate"]; strings.HasPrefix(challenge, "Basic ") != (c.status == 401) {
				t.Errorf("WWW-Authenticate %q", challenge)
			}
			if a.Headers["Cache-Control"] != "no-store" {
				t.Errorf("headers %v", a.Headers)
			}
			if reads := d.store.ReadCount() - before; reads != c.reads {
				t.Errorf("%d reads, want %d", reads, c.reads)
			}
		})
	}
	if log := d.log.String(); strings.Contains(log, d.secret) || strings.Contains(log, otherSecret) || strings.Contains(log, good) {
		t.Error("a secret stands in the log")
	}
}

func TestRevokedSecretIsRefused(t *testing.T) {
	cases := map[string]func(p *merchant.Profile){
		"a suspended merchant": func(p *merchant.Profile) { merchant.Suspend(p, start) },
		"a revoked secret":     func(p *merchant.Profile) { _ = merchant.RevokeClientSecret(p, 1, start, start) },
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
				t.Errorf("%d %s", a.Status, a.Raw)
			}
		})
	}
}

func TestStoreFailures(t *testing.T) {
	cases := map[string]func(d *tokenFixture){
		"the store":  func(d *tokenFixture) { d.store.FailWith(errors.New("no answer")) },
		"the secret": func(d *tokenFixture) { d.secrets.err = errors.New("no answer") },
	}
	for name, fail := range cases {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			fail(d)
			a := d.send(tokenCall{authorization: basicAuth(d.profile.ID, d.secret), body: grantForm})
			if a.Status != 500 || a.Body.Error != "server_error" || !strings.Contains(string(a.Body.RequestError), "SVC0001") {
				t.Errorf("%d %s", a.Status, a.Raw)
			}
		})
	}
}

// TestGoldenBodies holds the refusals' bodies as clients see them.
func TestGoldenBodies(t *testing.T) {
	d := newFixture(t)
	good := basicAuth(d.profile.ID, d.secret)
	cases := map[string]tokenCall{
		"missing-credentials":    {body: grantForm},
		"invalid-client":         {authorization: basicAuth("a", "b"), body: grantForm},
		"missing-grant":          {authorization: good},
		"unsupported-grant-type": {authorization: good, body: "grant_type=password"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if got := d.send(c).Raw; got != strings.TrimSpace(string(want)) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
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
		if a := d.send(tokenCall{body: body, contentType: contentType}); a.Status != 400 && a.Status != 401 && a.Status != 413 {
			t.Errorf("%d for a request without a secret", a.Status)
		}
	})
}
