package e2e

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// minCertificateLifetime is how long a certificate must still hold; ACM renews its own 60 days before.
const minCertificateLifetime = 14 * 24 * time.Hour

// unknownMerchant stands in paths and order_ids where no merchant is known.
const unknownMerchant = "Nobody"

// TestSmoke tells the safe stories: those that any deployment must answer, production included, and after which nothing is
// left but, with SMOKE_PAY=sandbox, one final payment of the sandbox operator. SMOKE_BASE_URL names the deployment (make
// smoke sets it), MERCHANT, ACCESS_TOKEN, CLIENT_ID and CLIENT_SECRET a merchant's credentials; without an address it is a
// local run, as API Gateway would show it.
func TestSmoke(t *testing.T) {
	t.Parallel()
	deployed := os.Getenv("SMOKE_BASE_URL")
	var g *target
	if deployed == "" {
		g = openTarget(t)
		g.BaseURL = serveRemappedHeaders(t, g.BaseURL)
	} else {
		g = smokeTarget(deployed, os.Getenv)
		t.Run("TLS", func(t *testing.T) { checkTLS(t, deployed) })
	}
	can := map[string]bool{
		"credentials":     deployed == "" || g.AccessToken != "" && g.ClientID != "" && g.ClientSecret != "" && g.Merchant != unknownMerchant,
		"sandbox-payment": deployed == "" || os.Getenv("SMOKE_PAY") == "sandbox",
	}
	testscript.Run(t, testscript.Params{
		Dir:   "smoke",
		Setup: func(env *testscript.Env) error { return newStory(g, env) },
		Cmds:  testscriptCommands(),
		Condition: func(name string) (bool, error) {
			if supported, known := can[name]; known {
				return supported, nil
			}
			return g.condition(name)
		},
	})
}

// serveRemappedHeaders passes requests on, and gives the header of the answers that API Gateway renames the name that it has there.
func serveRemappedHeaders(t *testing.T, address string) string {
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(response *http.Response) error {
			if challenge := response.Header.Get(authenticateHeader); challenge != "" {
				response.Header.Del(authenticateHeader)
				response.Header.Set(remappedAuthenticateHeader, challenge)
			}
			return nil
		},
	})
	t.Cleanup(server.Close)
	return server.URL
}

// smokeTarget is a deployment of which only the address and one merchant are known.
func smokeTarget(address string, variable func(string) string) *target {
	merchant := cmp.Or(variable("MERCHANT"), unknownMerchant)
	return &target{
		BaseURL: strings.TrimRight(address, "/"),
		merchantCredentials: merchantCredentials{
			AccessToken: variable("ACCESS_TOKEN"), ClientID: variable("CLIENT_ID"), ClientSecret: variable("CLIENT_SECRET"),
			Merchant: merchant, OnBehalfOf: merchant, GWToken: "smoke", GWAlias: "smoke",
		},
		idPrefix: idPrefix(time.Now(), os.Getpid()),
	}
}

// checkTLS looks at the connection: 1.2 or newer, a certificate that holds for a while, and no older version.
func checkTLS(t *testing.T, address string) {
	found, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if found.Scheme != "https" {
		if ip := net.ParseIP(found.Hostname()); found.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			t.Fatal("a deployment that is not on this machine is reached by https alone")
		}
		t.Skip("plain http, on this machine")
	}
	port := found.Port()
	if port == "" {
		port = "443"
	}
	host := net.JoinHostPort(found.Hostname(), port)
	connection, err := tls.Dial("tcp", host, &tls.Config{MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if until := connection.ConnectionState().PeerCertificates[0].NotAfter; time.Until(until) < minCertificateLifetime {
		t.Errorf("the certificate ends at %s", until)
	}
	if err := checkOldTLSRefused(host, nil); err != nil {
		t.Error(err)
	}
}

// checkOldTLSRefused: a handshake with TLS 1.1 must fail. nil roots are the system's.
func checkOldTLSRefused(host string, roots *x509.CertPool) error {
	old, err := tls.Dial("tcp", host, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}) //nolint:gosec // it is to be refused
	if err != nil {
		return nil //nolint:nilerr // as it should be
	}
	return errors.Join(old.Close(), errors.New("TLS 1.1 is accepted"))
}

func TestOldTLSIsDetected(t *testing.T) {
	t.Parallel()
	for version, want := range map[uint16]bool{tls.VersionTLS12: true, tls.VersionTLS10: false} {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.TLS = &tls.Config{MinVersion: version}
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshakes that fail
		server.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		if err := checkOldTLSRefused(server.Listener.Addr().String(), roots); (err == nil) != want {
			t.Errorf("from version %x on: %v", version, err)
		}
		server.Close()
	}
}
