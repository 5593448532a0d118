package outgoing

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// newCountingServer starts a TLS server whose requests wait for each other until as many as atOnce have come. It counts
// connections, and the TLS sessions that they resumed.
func newCountingServer(t *testing.T, atOnce int) (server *httptest.Server, opened, resumed *atomic.Int32) {
	t.Helper()
	opened, resumed = new(atomic.Int32), new(atomic.Int32)
	var mutex sync.Mutex
	waiting, gate := 0, make(chan struct{})
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mutex.Lock()
		own := gate
		if waiting++; waiting == atOnce {
			waiting, gate = 0, make(chan struct{})
			close(own)
		}
		mutex.Unlock()
		<-own
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, VerifyConnection: func(state tls.ConnectionState) error {
		if state.DidResume {
			resumed.Add(1)
		}
		return nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, opened, resumed
}

// newTrustingClient returns the client of a policy that also trusts a test server's certificate.
func newTrustingClient(t *testing.T, server *httptest.Server) *http.Client {
	t.Helper()
	transport := newTransport(Policy{AllowLoopback: true})
	transport.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return NewClient(Policy{AllowLoopback: true}, transport)
}

// The attempts that the sweep makes at once at one server find their connections again.
func TestBusyConnectionsAreReused(t *testing.T) {
	const attempts = 32
	server, opened, _ := newCountingServer(t, attempts)
	client := newTrustingClient(t, server)
	for range 3 {
		var group sync.WaitGroup
		for range attempts {
			group.Go(func() {
				if status, err := get(t, client, server.URL); err != nil || status != http.StatusOK {
					t.Errorf("status %d, %v", status, err)
				}
			})
		}
		group.Wait()
	}
	if opened.Load() > attempts {
		t.Errorf("%d connections opened, want at most %d", opened.Load(), attempts)
	}
}

// A new connection to a known server resumes its TLS session: it costs neither a signature nor a chain to verify.
func TestSessionsAreResumed(t *testing.T) {
	server, opened, resumed := newCountingServer(t, 1)
	client := newTrustingClient(t, server)
	for range 3 {
		if _, err := get(t, client, server.URL); err != nil {
			t.Fatal(err)
		}
		client.CloseIdleConnections()
	}
	if opened.Load() != 3 || resumed.Load() != 2 {
		t.Errorf("%d connections, %d of them resumed; want 3 and 2", opened.Load(), resumed.Load())
	}
}
