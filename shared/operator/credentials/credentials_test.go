package credentials_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/secret"
)

// stored is a secret whose cached value and source a test sets.
type stored struct {
	cached, source string
	getErr, err    error // of Get, and of Refresh
	fetchedAt      time.Time
	refreshes      int
}

func (s *stored) Get(context.Context) ([]byte, error) { return []byte(s.cached), s.getErr }

func (s *stored) Refresh(context.Context) ([]byte, error) {
	s.refreshes++
	if s.err != nil {
		return nil, s.err
	}
	s.cached = s.source
	return []byte(s.cached), nil
}

func (s *stored) FetchedAt() time.Time { return s.fetchedAt }

var (
	_   secret.Reader = (*stored)(nil)
	now               = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
)

// accountJSON is an account of the address op.example with a token.
func accountJSON(token string) string {
	return `{"base_url":"https://op.example/api/","access_token":"` + token + `"}`
}

// platformJSON is a platform with the accounts a1 and a2; a1 is the current one.
func platformJSON(name, token string) string {
	return `"` + name + `":{"current":"a1","accounts":{"a1":` + accountJSON(token) + `,"a2":` + accountJSON("t2") + `}}`
}

const routesJSON = `"routes":{"mtn":[{"country":"CI","operation":"pay","to":"mtn-momo/a1"},
	{"country":"CM","operation":"pay","channel":"ussd","to":"pawapay/p"}]}`

// newReader makes a reader of a document with these members, fetched now.
func newReader(members ...string) (*credentials.Reader, *stored) {
	document := "{" + strings.Join(members, ",") + "}"
	s := &stored{cached: document, source: document, fetchedAt: now}
	return credentials.NewReader(s, func() time.Time { return now }, operator.CheckBaseURL), s
}

func TestRoutesBesidePlatforms(t *testing.T) {
	reader, _ := newReader(platformJSON("mtn", "t"), routesJSON, platformJSON("mtn-momo", "t"),
		`"wave-checkout":{"current":"w","accounts":{}}`)
	routes, err := reader.Routes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(routes.Platforms)
	want := operator.Routes{Platforms: []string{"mtn", "mtn-momo"}, ByOperator: map[string][]operator.Route{"mtn": {
		{Country: "CI", Operation: "pay", To: "mtn-momo/a1"},
		{Country: "CM", Operation: "pay", Channel: "ussd", To: "pawapay/p"},
	}}}
	if diff := cmp.Diff(want, routes); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if _, err := reader.Find(t.Context(), "routes", ""); err == nil {
		t.Error("the routes are a platform")
	}
	for _, c := range []struct{ platform, id, want string }{
		{"mtn", "", "a1"}, {"MTN", "", "a1"}, {"mtn-momo", "a2", "a2"}, {"mtn-momo", "a3", ""},
		{"wave-checkout", "", ""},
		{"pawapay", "p", ""},
	} {
		found, err := reader.Find(t.Context(), c.platform, c.id)
		if found.ID != c.want || (err == nil) != (c.want != "") {
			t.Errorf("account %q of %s: %q, %v; want %q", c.id, c.platform, found.ID, err, c.want)
		}
	}
}

// A document without routes is that of a deployment of earlier versions.
func TestWithoutRoutes(t *testing.T) {
	for _, routes := range []string{"", `,"routes":{}`, `,"routes":null`} {
		value := secret.Static("{" + platformJSON("mtn", "t") + routes + "}")
		reader := credentials.NewReader(value, time.Now, operator.CheckBaseURL)
		got, err := reader.Routes(t.Context())
		if err != nil || len(got.ByOperator) != 0 || !slices.Equal(got.Platforms, []string{"mtn"}) {
			t.Errorf("%q: %+v, %v", routes, got, err)
		}
	}
}

func TestUnusableDocuments(t *testing.T) {
	const private = "very-private"
	for name, document := range map[string]string{
		"not JSON":                   private,
		"null":                       `null`,
		"a list":                     `["` + private + `"]`,
		"a platform that is a text":  `{"mtn":"` + private + `"}`,
		"routes that are a list":     `{"routes":["` + private + `"]}`,
		"a route that is a text":     `{"routes":{"mtn":["` + private + `"]}}`,
		"no address":                 `{"mtn":{"current":"a1","accounts":{"a1":{"access_token":"` + private + `"}}}}`,
		"an account that is a text":  `{"mtn":{"current":"a1","accounts":{"a1":"` + private + `"}}}`,
		"an account that is null":    `{"mtn":{"current":"a1","accounts":{"a1":null}}}`,
		"an address without https":   strings.ReplaceAll("{"+platformJSON("mtn", private)+"}", "https:", "http:"),
		"an address with a password": strings.ReplaceAll("{"+platformJSON("mtn", private)+"}", "op.ex", "u:p@op.ex"),
	} {
		reader := credentials.NewReader(secret.Static(document), time.Now, operator.CheckBaseURL)
		if _, err := reader.Find(t.Context(), "mtn", ""); err == nil || strings.Contains(err.Error(), private) {
			t.Errorf("%s: %v, want an error without a secret", name, err)
		}
	}
	reader, s := newReader(platformJSON("mtn", "t"))
	s.getErr = errors.New("no access")
	if _, err := reader.Routes(t.Context()); fault.FromError(err).Kind != fault.IntegrationRejected {
		t.Errorf("routes of a secret that cannot be read: %v", err)
	}
	if _, err := reader.Find(t.Context(), "mtn", ""); !errors.Is(err, s.getErr) {
		t.Errorf("an account of a secret that cannot be read: %v", err)
	}
}

func TestPrivateNetworks(t *testing.T) {
	const document = `{"mtn":{"current":"a1","accounts":{"a1":{"base_url":"http://192.168.1.2:8080"}}}}`
	reader := credentials.NewReader(secret.Static(document), time.Now, operator.CheckBaseURL)
	if _, err := reader.Find(t.Context(), "mtn", ""); err == nil {
		t.Error("an http address of a private network is usable in a deployment")
	}
	reader = credentials.NewReader(secret.Static(document), time.Now, operator.CheckNearBaseURL)
	if found, err := reader.Find(t.Context(), "mtn", ""); err != nil || found.BaseURL() != "http://192.168.1.2:8080" {
		t.Errorf("%q, %v", found.BaseURL(), err)
	}
}

// An id from before routes may have the platform and a slash before it: a pin has it as platform/id. With both ids it
// is ambiguous which account is meant, and neither is used.
func TestIDsWithASlash(t *testing.T) {
	former, plain := `"orange/2024":`+accountJSON("former"), `"2024":`+accountJSON("plain")
	for accounts, want := range map[string]map[string]string{
		former:               {"": "former", "orange/2024": "former", "2024": "former", "2025": ""},
		plain:                {"": "plain", "orange/2024": "plain", "2024": "plain"},
		former + "," + plain: {"": "", "orange/2024": "", "2024": ""},
	} {
		reader, _ := newReader(`"orange":{"current":"orange/2024","accounts":{` + accounts + `}}`)
		for id, token := range want {
			found, err := reader.Find(t.Context(), "orange", id)
			usable := err == nil && found.ID == "2024"
			if found.Field("access_token") != token || usable != (token != "") {
				t.Errorf("%s, id %q: %+v, %v; want %q", accounts, id, found, err, token)
			}
		}
	}
}

func TestFields(t *testing.T) {
	got := credentials.ReadFields([]byte(`{"base_url":"u",
		"user_sms":{"gw_token":"g","sender":{"CI":"+225","SN":"+221"}},
		"number":1,"flag":true,"list":["x"],"none":null,"empty":"","a.b":"dotted"}`))
	want := map[string]string{
		"base_url": "u", "user_sms.gw_token": "g", "user_sms.sender.CI": "+225", "user_sms.sender.SN": "+221",
		"empty": "", "a.b": "dotted",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	for _, form := range []string{`[]`, `"text"`, `null`, ``} {
		if got := credentials.ReadFields([]byte(form)); len(got) != 0 {
			t.Errorf("%s has the fields %v", form, got)
		}
	}
	reader, _ := newReader(platformJSON("mtn", "t"))
	found, err := reader.Find(t.Context(), "MTN", "")
	again, _ := reader.Find(t.Context(), "mtn", "a1")
	if diff := cmp.Diff(found, again, cmp.AllowUnexported(credentials.Account{})); diff != "" {
		t.Errorf("the account when it is found again (-first +again):\n%s", diff)
	}
	if err != nil || found.Platform != "mtn" || found.BaseURL() != "https://op.example/api" ||
		found.Field("access_token") != "t" || found.Field("absent") != "" {
		t.Errorf("%+v, %v", found, err)
	}
}

// Each value is parsed once. Its number shows that to the drivers, which prove that it works.
func TestParsedOnce(t *testing.T) {
	reader, s := newReader(platformJSON("mtn", "t"), platformJSON("mtn-momo", "t"))
	version := func(platform string) int {
		t.Helper()
		found, err := reader.Find(t.Context(), platform, "")
		if err != nil {
			t.Fatal(err)
		}
		return found.Version
	}
	for _, platform := range []string{"mtn", "mtn-momo", "mtn"} {
		if got := version(platform); got != 1 {
			t.Errorf("%s: version %d, want 1", platform, got)
		}
	}
	s.cached = "{" + platformJSON("mtn", "new") + "}"
	if got := version("mtn"); got != 2 {
		t.Errorf("version %d after a new value, want 2", got)
	}
	before := s.cached
	s.cached = "broken"
	if _, err := reader.Routes(t.Context()); err == nil {
		t.Error("a broken value has routes")
	}
	s.cached = before
	if got := version("mtn"); got != 2 {
		t.Errorf("version %d after a broken value, want 2", got)
	}
}

// A value that is not proven to work is read again after 30 seconds, and at once if it lacks the account.
func TestRefreshBeforeCall(t *testing.T) {
	for _, c := range []struct {
		name      string
		age       time.Duration
		use       []bool // whether the calls before worked
		id        string
		refreshes int
	}{
		{"new", 0, nil, "", 0},
		{"not proven", 30*time.Second - time.Millisecond, nil, "", 0},
		{"not proven and old", 30 * time.Second, nil, "", 1},
		{"proven and old", time.Hour, []bool{true}, "", 0},
		{"failed after it worked", time.Hour, []bool{true, false}, "", 1},
		{"worked after it failed", time.Hour, []bool{false, true}, "", 0},
		{"an account that the cached value lacks", 0, []bool{true}, "a3", 1},
	} {
		reader, s := newReader(platformJSON("mtn", "t"))
		s.source = strings.ReplaceAll(s.cached, `"a2"`, `"a3"`)
		for _, worked := range c.use {
			reader.RecordUse("MTN", 1, worked)
		}
		s.fetchedAt = now.Add(-c.age)
		found, err := reader.Find(t.Context(), "mtn", c.id)
		if err != nil || s.refreshes != c.refreshes || found.Version != 1+c.refreshes {
			t.Errorf("%s: version %d, %v after %d refreshes, want %d",
				c.name, found.Version, err, s.refreshes, c.refreshes)
		}
	}
	reader, s := newReader(platformJSON("mtn", "t"))
	s.fetchedAt, s.err = now.Add(-time.Hour), errors.New("throttled")
	if found, err := reader.Find(t.Context(), "mtn", ""); err != nil || found.ID != "a1" {
		t.Errorf("a failed refresh: %q, %v; want the cached account", found.ID, err)
	}
	if _, err := reader.Find(t.Context(), "mtn", "a3"); err == nil {
		t.Error("a failed refresh: an account that is not there was found")
	}
	unfetched := credentials.NewReader(secret.Static("{"+platformJSON("mtn", "t")+"}"), time.Now, operator.CheckBaseURL)
	if found, err := unfetched.Find(t.Context(), "mtn", ""); err != nil || found.ID != "a1" {
		t.Errorf("a value without a time: %q, %v", found.ID, err)
	}
}

func TestRefreshAfterRefusal(t *testing.T) {
	for _, c := range []struct {
		name, source string
		err          error
		changed      bool
	}{
		{"the same", platformJSON("mtn", "t"), nil, false},
		{"a new token", platformJSON("mtn", "new"), nil, true},
		{"another field", strings.Replace(platformJSON("mtn", "t"), `"base_url"`, `"x":"","base_url"`, 1), nil, true},
		{"another account has a new token", strings.Replace(platformJSON("mtn", "t"), `"t2"`, `"new"`, 1), nil, false},
		{"the account is gone", strings.Replace(platformJSON("mtn", "new"), `"a1":{`, `"a9":{`, 1), nil, false},
		{"another account is current", strings.Replace(platformJSON("mtn", "t"), `"current":"a1"`, `"current":"a2"`, 1),
			nil, false},
		{"it cannot be read", platformJSON("mtn", "new"), errors.New("throttled"), false},
		{"it is broken", `"mtn":1`, nil, false},
	} {
		reader, s := newReader(platformJSON("mtn", "t"))
		used, err := reader.Find(t.Context(), "mtn", "")
		if err != nil {
			t.Fatal(err)
		}
		s.source, s.err = "{"+c.source+"}", c.err
		found, changed := reader.RefreshAfterRefusal(t.Context(), used)
		if changed != c.changed || changed && found.ID != "a1" {
			t.Errorf("%s: account %q, changed %v, want %v", c.name, found.ID, changed, c.changed)
		}
	}
}

// All drivers of a function share one reader.
func TestConcurrentReads(t *testing.T) {
	reader, _ := newReader(platformJSON("mtn", "t"), routesJSON)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			found, err := reader.Find(t.Context(), "mtn", "a2")
			if err != nil || found.Field("access_token") != "t2" || found.Version != 1 {
				t.Errorf("%+v, %v", found, err)
			}
			reader.RecordUse("mtn", found.Version, true)
			if _, err := reader.Routes(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
