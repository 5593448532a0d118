// Package dynamotest gives a test a DynamoDB of its own: the embedded one, or a database of the engine that the
// environment names, so that the same tests judge both.
package dynamotest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"testing"
	"time"

	"mobilegateway/internal/dynoxide"
)

// ReferenceVariable names, in the environment, the engine that tests are to use in place of the embedded one. It must tell
// databases apart by access keys, as DynamoDB Local does without -sharedDb, and check no signatures.
const ReferenceVariable = "AWS_ENDPOINT_URL_DYNAMODB_REFERENCE"

// startTimeout bounds the start of the embedded engine, its installation on first use included.
const startTimeout = 2 * time.Minute

// credentialPattern is the place of the access key in a request's Authorization.
var credentialPattern = regexp.MustCompile(`Credential=[^/]+/`)

// StartEndpoint is the address of a DynamoDB without tables, which lasts as long as the test.
func StartEndpoint(t testing.TB) string {
	t.Helper()
	if reference := os.Getenv(ReferenceVariable); reference != "" {
		return isolateByAccessKey(t, reference)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := dynoxide.Start(ctx, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.Endpoint()
}

// isolateByAccessKey passes requests on to an engine under an access key of the test's own, whatever the client's is.
func isolateByAccessKey(t testing.TB, engine string) string {
	t.Helper()
	target, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // it never fails
	testCredential := "Credential=test" + hex.EncodeToString(random) + "/"
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", credentialPattern.ReplaceAllString(r.In.Header.Get("Authorization"), testCredential))
	}})
	t.Cleanup(server.Close)
	return server.URL
}
