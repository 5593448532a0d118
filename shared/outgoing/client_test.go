package outgoing

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// get returns the status of a response.
func get(t *testing.T, client *http.Client, address string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func TestClientReachesLoopbackOnlyWhereAllowed(t *testing.T) {
	called := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	t.Cleanup(server.Close)
	port := server.URL[strings.LastIndex(server.URL, ":"):]

	if _, err := get(t, NewClient(Policy{}, nil), server.URL); !errors.Is(err, ErrNotHTTPS) {
		t.Errorf("plain http: %v", err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "0x7f000001", "127.1"} {
		if _, err := get(t, NewClient(Policy{}, nil), "https://"+host+port); err == nil {
			t.Errorf("%s was reached", host)
		}
	}
	if _, err := get(t, NewClient(Policy{}, nil), "https://localhost"+port); !errors.Is(err, ErrForbiddenAddress) {
		t.Errorf("a name that resolves to loopback: %v", err)
	}
	if called != 0 {
		t.Fatal("the server was called")
	}
	local := NewClient(Policy{AllowLoopback: true}, nil)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := get(t, local, "http://"+host+port); err != nil {
			t.Errorf("%s, allowed: %v", host, err)
		}
	}
	if _, err := get(t, local, "http://shop.example/"); !errors.Is(err, ErrNotHTTPS) {
		t.Errorf("plain http elsewhere: %v", err)
	}
}

func TestClientFollowsNoRedirect(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	}))
	t.Cleanup(server.Close)
	status, err := get(t, NewClient(Policy{AllowLoopback: true}, nil), server.URL)
	if err != nil || status != http.StatusFound {
		t.Errorf("status %d, error %v; want the redirect itself", status, err)
	}
}

func TestClientUsesNoProxy(t *testing.T) {
	called := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	if _, err := get(t, NewClient(Policy{AllowLoopback: true}, nil), server.URL); err != nil {
		t.Error(err)
	}
	if called {
		t.Error("the proxy was called")
	}
}

func TestClientLimitsHeadersAndDisablesCompression(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Error("the client requests compression")
		}
		if r.URL.Path == "/large" {
			w.Header().Set("X-Large", strings.Repeat("a", 2*maxHeaderBytes))
		}
	}))
	t.Cleanup(server.Close)
	client := NewClient(Policy{AllowLoopback: true}, nil)
	if _, err := get(t, client, server.URL+"/small"); err != nil {
		t.Error(err)
	}
	if _, err := get(t, client, server.URL+"/large"); err == nil {
		t.Error("large headers are accepted")
	}
	client.CloseIdleConnections()
}
