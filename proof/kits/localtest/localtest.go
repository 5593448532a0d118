// Package localtest starts a local run for a test, on free ports and with its own folder. The programs are built once
// for all tests of the checkout.
package localtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/file"
	"mobilegateway/internal/repository"
	"mobilegateway/local"
)

// startTimeout bounds a start, including the build of the programs.
const startTimeout = 5 * time.Minute

// CallsDirVariable is the environment variable with a folder. At its end, every run copies the record of its functions'
// AWS calls there, one file per run. If it is not set, no run does.
const CallsDirVariable = "LOCAL_CALLS_DIR"

// Options configures a run. The zero value is valid: Start sets Root, DynamoDB and RecordCalls, and Dir if it is empty.
// A second run may use the same Dir after the first is closed.
type Options = local.Config

// Gateway is a running gateway. Its Info has addresses and credentials.
type Gateway struct {
	*local.Gateway
	// Dir is the folder with run.json and the data.
	Dir string
}

// Start starts a gateway and stops it when the test ends. It uses the database of AWS_ENDPOINT_URL_DYNAMODB if that is
// set. If the gateway does not start, the test fails.
func Start(t testing.TB, options Options) *Gateway {
	t.Helper()
	root, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	options.Root, options.DynamoDB, options.RecordCalls = root, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), true
	options.Dir = cmp.Or(options.Dir, filepath.Join(t.TempDir(), "local"))
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	run, err := local.Start(ctx, options)
	if err != nil {
		t.Fatalf("start the local run: %v", err)
	}
	gateway := &Gateway{run, options.Dir}
	t.Cleanup(func() {
		gateway.Close()
		folder := os.Getenv(CallsDirVariable)
		if folder == "" {
			return
		}
		if err := file.ReplaceJSON(filepath.Join(folder, rand.Text()+".json"), gateway.RecordedCalls()); err != nil {
			t.Error(err)
		}
	})
	return gateway
}

// Send sends a request and returns the response with its whole body. It follows no redirect. If there is no response,
// the test fails.
func Send(t testing.TB, method, address, body string, header http.Header) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		request.Header = header
	}
	client := http.Client{
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}
