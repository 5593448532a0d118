package e2e

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mobilegateway/internal/smoke"
	"mobilegateway/local"
)

// unknownMerchant is the merchant in paths and order_ids if no merchant is configured.
const unknownMerchant = "Nobody"

// TestSmoke runs the safe stories, which any deployment must pass, including production. They leave nothing behind
// but, with SMOKE_PAY=sandbox, one final payment of the sandbox operator.
//
// SMOKE_BASE_URL names the deployment (make smoke sets it). MERCHANT, ACCESS_TOKEN, CLIENT_ID and CLIENT_SECRET are a
// merchant's credentials. Without an address it tests a local run behind a proxy that renames headers as API Gateway
// does.
func TestSmoke(t *testing.T) {
	t.Parallel()
	deployed := os.Getenv("SMOKE_BASE_URL")
	var g *target
	if deployed == "" {
		g = openTarget(t)
		g.BaseURL = serveRemappedHeaders(t, g.BaseURL)
	} else {
		g = smokeTarget(deployed, os.Getenv)
		t.Run("TLS", func(t *testing.T) {
			if err := smoke.CheckTLS(t.Context(), g.BaseURL, time.Now()); errors.Is(err, smoke.ErrPlainHTTP) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
	runner := &smoke.Runner{Client: newClient(), Base: g.BaseURL}
	for _, check := range smoke.Checks(smokeMerchant(g), g.newID()) {
		t.Run(check.Group+", "+check.Name, func(t *testing.T) {
			if err := runner.Run(t.Context(), check); err != nil {
				t.Error(err)
			}
		})
	}
	can := map[string]bool{
		"credentials": deployed == "" || g.AccessToken != "" && g.ClientID != "" && g.ClientSecret != "" &&
			g.Merchant != unknownMerchant,
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

// smokeMerchant returns the merchant of a target for the checks.
func smokeMerchant(g *target) smoke.Merchant {
	m := g.MerchantCredentials
	if m.Merchant == unknownMerchant {
		return smoke.Merchant{}
	}
	return smoke.Merchant{Name: m.Merchant, OnBehalfOf: m.OnBehalfOf, AccessToken: m.AccessToken, ClientID: m.ClientID,
		ClientSecret: m.ClientSecret, ServiceID: m.ServiceID, ApplicationID: m.ApplicationID, ContactID: m.ContactID}
}

// serveRemappedHeaders forwards requests and renames the response header that API Gateway renames.
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

// smokeTarget returns a deployment with a known address and one known merchant.
func smokeTarget(address string, variable func(string) string) *target {
	merchant := cmp.Or(variable("MERCHANT"), unknownMerchant)
	return &target{
		Info: local.Info{BaseURL: strings.TrimRight(address, "/"), MerchantCredentials: local.MerchantCredentials{
			AccessToken: variable("ACCESS_TOKEN"), ClientID: variable("CLIENT_ID"),
			ClientSecret: variable("CLIENT_SECRET"),
			Merchant:     merchant, OnBehalfOf: merchant, GWToken: "smoke", GWAlias: "smoke",
		}},
		idPrefix: idPrefix(time.Now(), os.Getpid()),
	}
}

// TestOldTLSIsDetected checks smoke.CheckOldTLSRefused against servers that accept and refuse TLS 1.1.
func TestOldTLSIsDetected(t *testing.T) {
	t.Parallel()
	for version, want := range map[uint16]bool{tls.VersionTLS12: true, tls.VersionTLS10: false} {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.TLS = &tls.Config{MinVersion: version}
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // hides failed handshakes
		server.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		if err := smoke.CheckOldTLSRefused(t.Context(), server.Listener.Addr().String(), roots); (err == nil) != want {
			t.Errorf("a server from TLS version %x: %v", version, err)
		}
		server.Close()
	}
}
