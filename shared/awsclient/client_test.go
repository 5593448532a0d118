package awsclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/dynamoitem"
)

// newEnvironment returns the variables that Lambda always sets, and some more.
func newEnvironment(pairs ...string) map[string]string {
	values := map[string]string{
		"AWS_REGION":        "eu-west-1",
		"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "SECRET", "AWS_SESSION_TOKEN": "SESSION",
	}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return values
}

func newClient(t *testing.T, values map[string]string) *Client {
	t.Helper()
	client, err := New(func(name string) string { return values[name] })
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newStubService starts a server whose empty response fits both services. first may handle request number n itself.
func newStubService(
	t *testing.T, first func(n int32, w http.ResponseWriter, r *http.Request) (handled bool),
) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	calls := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server detects a closed client only after this
		if first(calls.Add(1), w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	return server, calls
}

func getItem(ctx context.Context, client *Client) error {
	_, err := client.DynamoDB().GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("ledger"), Key: dynamoitem.Key("1"),
	})
	return err
}

func getSecret(ctx context.Context, client *Client) error {
	input := &secretsmanager.GetSecretValueInput{SecretId: aws.String("operators")}
	_, err := client.SecretsManager().GetSecretValue(ctx, input)
	return err
}

func openDynamoDB(ctx context.Context, client *Client) error { return client.OpenDynamoDB(ctx) }

func TestRegionIsRequired(t *testing.T) {
	_, err := New(func(string) string { return "" })
	if err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Fatalf("without a region: %v", err)
	}
	values := newEnvironment("AWS_REGION", "", "AWS_DEFAULT_REGION", "af-south-1")
	if client := newClient(t, values); client.config.Region != "af-south-1" {
		t.Fatalf("AWS_DEFAULT_REGION gave the region %q", client.config.Region)
	}
}

func TestEndpoints(t *testing.T) {
	normal := func(int32, http.ResponseWriter, *http.Request) bool { return false }
	all, allCalls := newStubService(t, normal)
	own, ownCalls := newStubService(t, normal)
	cases := []struct {
		name     string
		ownName  string // the variable with the service's own endpoint
		call     func(context.Context, *Client) error
		all, own int32
	}{
		{"DynamoDB by the common one", "", getItem, 1, 0},
		{"DynamoDB by its own", "AWS_ENDPOINT_URL_DYNAMODB", getItem, 0, 1},
		{"secrets by the common one", "AWS_ENDPOINT_URL_DYNAMODB", getSecret, 1, 0},
		{"secrets by their own", "AWS_ENDPOINT_URL_SECRETS_MANAGER", getSecret, 0, 1},
		{"opening DynamoDB", "AWS_ENDPOINT_URL_DYNAMODB", openDynamoDB, 0, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			allCalls.Store(0)
			ownCalls.Store(0)
			environment := newEnvironment("AWS_ENDPOINT_URL", all.URL, c.ownName, own.URL)
			if err := c.call(t.Context(), newClient(t, environment)); err != nil {
				t.Fatal(err)
			}
			if allCalls.Load() != c.all || ownCalls.Load() != c.own {
				t.Fatalf("calls to the common endpoint: %d, want %d; to its own: %d, want %d",
					allCalls.Load(), c.all, ownCalls.Load(), c.own)
			}
		})
	}
}

func TestDefaultEndpointsAreRegional(t *testing.T) {
	client := newClient(t, newEnvironment())
	var requestedHosts []string
	client.http.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		requestedHosts = append(requestedHosts, r.URL.Host)
		return nil, context.Canceled
	})
	for _, call := range []func(context.Context, *Client) error{getItem, getSecret, openDynamoDB} {
		if call(t.Context(), client) == nil {
			t.Fatal("a refused call succeeded")
		}
	}
	want := []string{"dynamodb", "secretsmanager", "dynamodb"}
	for i, service := range want {
		want[i] = service + ".eu-west-1.amazonaws.com"
	}
	if diff := cmp.Diff(want, slices.Compact(requestedHosts)); diff != "" {
		t.Fatalf("requested hosts (-want +got):\n%s", diff)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A lost response is retried; a call that keeps failing ends after three attempts.
func TestRetries(t *testing.T) {
	type failure = func(w http.ResponseWriter, r *http.Request)
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	}
	cases := []struct {
		name    string
		failure failure
		times   int32 // how many attempts fail
		calls   int32
		fails   bool
	}{
		{"no response", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 1, 2, false},
		{"half a response", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 1, 2, false},
		{"a cut", cut, 1, 2, false},
		{"an internal error", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		}, 1, 2, false},
		{"a cut of every attempt", cut, 10, 3, true},
		{"a redirect is not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 10, 1, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server, calls := newStubService(t, func(n int32, w http.ResponseWriter, r *http.Request) bool {
				if n <= c.times {
					c.failure(w, r)
				}
				return n <= c.times
			})
			client := newClient(t, newEnvironment("AWS_ENDPOINT_URL", server.URL))
			if client.http.Timeout != attemptTimeout {
				t.Fatalf("the timeout of an attempt is %s, want %s", client.http.Timeout, attemptTimeout)
			}
			client.http.Timeout = 200 * time.Millisecond // shorter than in production, for a fast test
			if err := getItem(t.Context(), client); (err != nil) != c.fails {
				t.Errorf("error %v, want one: %v", err, c.fails)
			}
			if calls.Load() != c.calls {
				t.Errorf("%d attempts, want %d", calls.Load(), c.calls)
			}
		})
	}
}

func TestDeadlineEndsRetries(t *testing.T) {
	server, calls := newStubService(t, func(_ int32, _ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	client := newClient(t, newEnvironment("AWS_ENDPOINT_URL", server.URL))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := getItem(ctx, client); !errors.Is(err, context.DeadlineExceeded) || calls.Load() != 1 {
		t.Fatalf("after the deadline: %d calls, want 1; error %v", calls.Load(), err)
	}
}

func TestCredentialsAreReadEachTime(t *testing.T) {
	values := newEnvironment()
	provider := credentials(func(name string) string { return values[name] })
	got, err := provider.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "AKID" || got.SecretAccessKey != "SECRET" || got.SessionToken != "SESSION" {
		t.Fatalf("credentials of %q, %v", got.AccessKeyID, err)
	}
	values["AWS_ACCESS_KEY_ID"] = "OTHER"
	if got, _ := provider.Retrieve(t.Context()); got.AccessKeyID != "OTHER" {
		t.Fatalf("a changed key was not read: %q", got.AccessKeyID)
	}
	values["AWS_SECRET_ACCESS_KEY"] = ""
	if _, err := provider.Retrieve(t.Context()); err == nil {
		t.Fatal("half of the credentials were accepted")
	}
}

// The connection that the init phase opened is the one that the first call uses.
func TestWarmConnectionIsReused(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte("healthy: dynamodb.eu-west-1.amazonaws.com "))
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := newClient(t, newEnvironment("AWS_ENDPOINT_URL_DYNAMODB", server.URL))
	if err := RunInitTasks(t.Context(), client.OpenDynamoDB); err != nil {
		t.Fatal(err)
	}
	if err := getItem(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if opened.Load() != 1 {
		t.Fatalf("%d connections were opened, want 1", opened.Load())
	}
}

func TestRunInitTasksRunsInParallelAndJoinsErrors(t *testing.T) {
	barrier := make(chan struct{})
	first, second := errors.New("first"), errors.New("second")
	err := RunInitTasks(t.Context(),
		func(context.Context) error { barrier <- struct{}{}; return first },
		func(context.Context) error { <-barrier; return second },
		func(context.Context) error { return nil },
	)
	if !errors.Is(err, first) || !errors.Is(err, second) {
		t.Fatalf("the joined error is %v", err)
	}
	if RunInitTasks(t.Context()) != nil {
		t.Fatal("no tasks returned an error")
	}
}
