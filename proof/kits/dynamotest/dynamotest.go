// Package dynamotest starts an empty DynamoDB for a test: the embedded database (package dynoxide), or a reference that
// the environment names. So the same tests check both.
package dynamotest

import (
	"context"
	"crypto/rand"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"testing"
	"time"

	"mobilegateway/world/dynoxide"
)

// ReferenceVariable is the environment variable with the endpoint of the reference. The reference must separate data by
// access key, as DynamoDB Local does without -sharedDb, and must not check signatures.
const ReferenceVariable = "AWS_ENDPOINT_URL_DYNAMODB_REFERENCE"

// startTimeout bounds the start of the embedded database, including its installation on first use.
const startTimeout = 2 * time.Minute

// credentialPattern finds the access key in a request's Authorization header.
var credentialPattern = regexp.MustCompile(`Credential=[^/]+/`)

// StartEndpoint returns the address of a DynamoDB without tables. It stops when the test ends.
func StartEndpoint(t testing.TB) string {
	t.Helper()
	if reference := os.Getenv(ReferenceVariable); reference != "" {
		return isolateByAccessKey(t, reference)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := dynoxide.Start(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.Endpoint()
}

// isolateByAccessKey starts a proxy of a reference that replaces each access key by one of the test's own.
func isolateByAccessKey(t testing.TB, reference string) string {
	t.Helper()
	target, err := url.Parse(reference)
	if err != nil {
		t.Fatal(err)
	}
	testCredential := "Credential=test" + rand.Text() + "/"
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		authorization := r.In.Header.Get("Authorization")
		r.Out.Header.Set("Authorization", credentialPattern.ReplaceAllString(authorization, testCredential))
	}})
	t.Cleanup(server.Close)
	return server.URL
}
