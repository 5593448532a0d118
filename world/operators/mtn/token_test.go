package mtn_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/mtn"
)

func TestTokenCallOnTheWire(t *testing.T) {
	server := httptest.NewServer(mtn.New(kit.Config{}, mtn.DefaultCredentials()).Handler())
	defer server.Close()
	key := "Ocp-Apim-Subscription-Key: stub-mtn-primary\r\n"
	good := "Authorization: " + basic("stub-mtn-api-key") + "\r\n" + key
	for _, c := range []struct {
		name, headers string
		status        int
		want          string
	}{
		{"no length", good + "\r\n", 411, "Length Required"},
		{"length 0", good + "Content-Length: 0\r\n\r\n", 200, `"expires_in":3600,"token_type":"access_token"`},
		{"JSON", good + "Content-Length: 2\r\n\r\n{}", 200, `"access_token"`},
		{"form", good + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b", 200,
			"<title>Request Rejected"},
		{"no subscription", "Authorization: " + basic("stub-mtn-api-key") + "\r\nContent-Length: 0\r\n\r\n", 401,
			`"statusCode":401`},
		{"wrong key", "Authorization: " + basic("x") + "\r\n" + key + "Content-Length: 0\r\n\r\n", 401,
			`"statusCode":401`},
	} {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(connection, "POST /collection/token/ HTTP/1.1\r\nHost: stub.test\r\n"+c.headers)
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = connection.Close()
		if response.StatusCode != c.status || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.name, response.StatusCode, text, c.status, c.want)
		}
	}
}

func TestInvalidTokenAppliesNothing(t *testing.T) {
	stubtest.CheckTokens(t, time.Hour, `"statusCode":401`, func(t *testing.T) stubtest.TokenUser {
		b := newBench(t, "")
		call := func() (int, string) {
			lookup, _ := b.status()
			status, text := b.pay(ordinary)
			if want := map[int]int{401: 401, 202: 404}[status]; lookup != want {
				t.Errorf("lookup %d, want %d", lookup, want)
			}
			return status, text
		}
		return stubtest.TokenUser{Stub: b.Stub, Renew: func() { b.token = newToken(b) }, Call: call}
	})
}
