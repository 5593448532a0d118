package awsclient

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fingerprints are the SHA-256 fingerprints of the certificates, as Amazon Trust Services and Starfield publish them.
var fingerprints = []string{
	"8ecde6884f3d87b1125ba31ac3fcb13d7016de7f57cc904fe1cb97c6ae98196e", // Amazon Root CA 1 to 4
	"1ba5b2aa8c65401a82960118f80bec4f62304d83cec4713a19c39c011ea46db4",
	"18ce6cfe7bf14e60b2e347b8dfe868cb31d02ebb3ada271569f50343b46db3a4",
	"e35d28419ed02025cfa69038cd623962458da5c695fbdea3c22b0bfb25897092",
	"568d6905a2c88708a4b3025190edcfedb1974a606a13c6e5290fcb2ae63edab5", // Starfield Services Root G2
	"1465fa205397b876faa6f0a9958e5590e40fcc7faa4fb7c2c8677521fb5fb658", // Starfield Class 2
}

func TestEmbeddedRoots(t *testing.T) {
	if _, err := amazonRoots(); err != nil {
		t.Fatal(err)
	}
	rest := []byte(amazonRootsPEM)
	for i, want := range fingerprints {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatalf("certificate %d is missing", i)
		}
		sum := sha256.Sum256(block.Bytes)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("certificate %d has fingerprint %s", i, got)
		}
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes after the last certificate", len(rest))
	}
}

// testCA is a certificate authority made for one test.
type testCA struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newTestCA(t *testing.T) testCA {
	t.Helper()
	a := testCA{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate, _ = a.sign(template, template, &a.key.PublicKey)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a testCA) sign(template, parent *x509.Certificate, key *ecdsa.PublicKey) (*x509.Certificate, []byte) {
	a.t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate, raw
}

func (a testCA) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// startServer starts an HTTPS server with a certificate for an address.
func (a testCA) startServer(ip string) *httptest.Server {
	a.t.Helper()
	key := newKey(a.t)
	_, raw := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(ip)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.certificate, &key.PublicKey)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	server.Config.ErrorLog = nil
	server.StartTLS()
	a.t.Cleanup(server.Close)
	return server
}

// Amazon's pool comes first. An unknown authority is looked up in the system's pool. Any other failure is an error.
func TestFallbackToTheSystemPool(t *testing.T) {
	amazon, system, untrusted := newTestCA(t), newTestCA(t), newTestCA(t)
	cases := []struct {
		name      string
		server    *httptest.Server
		works     bool
		useSystem bool
	}{
		{"Amazon's", amazon.startServer("127.0.0.1"), true, false},
		{"the system's", system.startServer("127.0.0.1"), true, true},
		{"an unknown authority's", untrusted.startServer("127.0.0.1"), false, false},
		{"Amazon's for another host", amazon.startServer("192.0.2.1"), false, false},
		{"the system's for another host", system.startServer("192.0.2.1"), false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dial := &dialer{amazonRootsTLS: newTLSConfig(amazon.pool()), systemRootsTLS: newTLSConfig(system.pool())}
			for range 2 { // the second may resume the session, or start with the system's pool
				conn, err := dial.dialTLS(t.Context(), "tcp", c.server.Listener.Addr().String())
				if (err == nil) != c.works || dial.useSystemRoots.Load() != c.useSystem {
					t.Fatalf("error %v, system pool used: %v", err, dial.useSystemRoots.Load())
				}
				if err != nil {
					if conn != nil {
						t.Error("an error came with a connection")
					}
					continue
				}
				_ = conn.Close()
			}
		})
	}
}

func TestVerificationErrorIsKept(t *testing.T) {
	amazon, untrusted := newTestCA(t), newTestCA(t)
	transport := newTransport(amazon.pool())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, untrusted.startServer("127.0.0.1").URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if response != nil {
		_ = response.Body.Close()
	}
	var unknownAuthority x509.UnknownAuthorityError
	if !errors.As(err, &unknownAuthority) {
		t.Fatalf("the verification error is lost: %v", err)
	}
}

// The calls that the sweep's workers make at once find their connections again.
func TestBusyConnectionsAreReused(t *testing.T) {
	const workers = 32
	var opened atomic.Int32
	var barrier sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		barrier.Done()
		barrier.Wait() // until all calls of a round have come
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := &http.Client{Transport: newTransport(nil)}
	for range 3 {
		barrier.Add(workers)
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				response, err := client.Get(server.URL)
				if err != nil {
					t.Error(err)
					return
				}
				_ = response.Body.Close()
			})
		}
		group.Wait()
	}
	if opened.Load() > workers {
		t.Errorf("%d connections opened, want at most %d", opened.Load(), workers)
	}
}
