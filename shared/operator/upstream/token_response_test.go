package upstream

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestReadToken(t *testing.T) {
	cases := []struct {
		name     string
		status   int
		body     string
		lifetime time.Duration
		ok       bool
		refused  bool
	}{
		{"number", 200, `{"access_token":"abc","expires_in":3600}`, time.Hour, true, false},
		{"text", 200, `{"access_token":"abc","expires_in":"180"}`, 3 * time.Minute, true, false},
		{"fraction", 200, `{"access_token":"abc","expires_in":1.5}`, 0, true, false},
		{"no life", 200, `{"access_token":"abc"}`, 0, true, false},
		{"negative", 200, `{"access_token":"abc","expires_in":-9223372036854775808}`, 0, true, false},
		{"too long a life", 200, `{"access_token":"abc","expires_in":99999999999999}`, maxLifetime, true, false},
		{"long token", 200, `{"access_token":"` + strings.Repeat("a", 4000) + `","expires_in":1}`,
			time.Second, true, false},
		{"token with a space", 200, `{"access_token":"a b","expires_in":3600}`, 0, false, false},
		{"token with a line end", 200, `{"access_token":"ab\n","expires_in":60}`, 0, false, false},
		{"token without a value", 200, `{"expires_in":60}`, 0, false, false},
		{"token in a failure", 500, `{"access_token":"abc","expires_in":3600}`, 0, false, false},
		{"token twice", 200, `{"access_token":"a","access_token":"b"}`, 0, false, false},
		{"firewall page", 200, `<html>Request Rejected</html>`, 0, false, false},
		{"refused", 401, `{"access_token":"abc","expires_in":3600}`, 0, false, true},
		{"forbidden", 403, ``, 0, false, true},
		{"bad client", 400, `{"error":"invalid_client"}`, 0, false, true},
		{"down", 503, ``, 0, false, false},
		{"refusal of the platform", 500, `{"error":"login_failed"}`, 0, false, true},
		{"refusal with another status", 503, `{"error":"login_failed"}`, 0, false, false},
		{"another error", 500, `{"error":"server_error"}`, 0, false, false},
		{"no error", 500, `{"error":""}`, 0, false, false},
		{"length required", 411, ``, 0, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x := Exchange{Status: c.status, Body: []byte(c.body)}
			token, lifetime, err := readToken(x, "login_failed")
			refused := errors.Is(err, errTokenRefused)
			if (err == nil) != c.ok || (token != "") != c.ok || refused != c.refused {
				t.Fatalf("token %q, refused %v, %v", token, refused, err)
			}
			if c.ok && lifetime != c.lifetime {
				t.Errorf("lifetime %v, want %v", lifetime, c.lifetime)
			}
		})
	}
}

func TestReadTokenWithoutResponse(t *testing.T) {
	cause := errors.New("cut")
	if _, _, err := readToken(Exchange{Err: cause}, ""); !errors.Is(err, cause) || errors.Is(err, errTokenRefused) {
		t.Fatal(err)
	}
}

// A platform without an error of its own refuses no credentials by a 500.
func TestReadTokenWithoutRefusalError(t *testing.T) {
	for _, body := range []string{`{"error":"login_failed"}`, `{"error":""}`, `{}`, ``} {
		if _, _, err := readToken(Exchange{Status: 500, Body: []byte(body)}, ""); err == nil ||
			errors.Is(err, errTokenRefused) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

const maxLifetime = 90 * 24 * time.Hour
