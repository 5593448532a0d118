package awsclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// newEnvironment is a fake one with what Lambda always sets.
func newEnvironment(pairs ...string) map[string]string {
	values := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "SECRET", "AWS_SESSION_TOKEN": "SESSION",
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

// newStubService answers every call with what fits both services, after what the test wants to happen first.
func newStubService(t *testing.T, first func(n int32, w http.ResponseWriter, r *http.Request) (handled bool)) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	calls := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
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
		TableName: aws.String("ledger"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "1"}},
	})
	return err
}

func getSecret(ctx context.Context, client *Client) error {
	_, err := client.SecretsManager().GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String("operators")})
	return err
}

func TestRegionIsRequired(t *testing.T) {
	if _, err := New(func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Fatalf("got %v", err)
	}
	values := newEnvironment("AWS_REGION", "", "AWS_DEFAULT_REGION", "af-south-1")
	if client := newClient(t, values); client.config.Region != "af-south-1" {
		t.Fatalf("got %q", client.config.Region)
	}
}

func TestEndpoints(t *testing.T) {
	normal := func(int32, http.ResponseWriter, *http.Request) bool { return false }
	all, allCalls := newStubService(t, normal)
	own, ownCalls := newStubService(t, normal)
	cases := []struct {
		name     string
		values   map[string]string
		call     func(context.Context, *Client) error
		all, own int32
	}{
		{"DynamoDB by the common one", newEnvironment("AWS_ENDPOINT_URL", all.URL), getItem, 1, 0},
		{"DynamoDB by its own", newEnvironment("AWS_ENDPOINT_URL", all.URL, "AWS_ENDPOINT_URL_DYNAMODB", own.URL), getItem, 0, 1},
		{"secrets by the common one", newEnvironment("AWS_ENDPOINT_URL", all.URL, "AWS_ENDPOINT_URL_DYNAMODB", own.URL), getSecret, 1, 0},
		{"secrets by their own", newEnvironment("AWS_ENDPOINT_URL", all.URL, "AWS_ENDPOINT_URL_SECRETS_MANAGER", own.URL), getSecret, 0, 1},
		{"opening DynamoDB", newEnvironment("AWS_ENDPOINT_URL_DYNAMODB", own.URL), func(ctx context.Context, c *Client) error { return c.OpenDynamoDB(ctx) }, 0, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			allCalls.Store(0)
			ownCalls.Store(0)
			if err := c.call(t.Context(), newClient(t, c.values)); err != nil {
				t.Fatal(err)
			}
			if allCalls.Load() != c.all || ownCalls.Load() != c.own {
				t.Fatalf("%d calls to the common endpoint, %d to its own", allCalls.Load(), ownCalls.Load())
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
	for _, call := range []func(context.Context, *Client) error{getItem, getSecret, func(ctx context.Context, c *Client) error { return c.OpenDynamoDB(ctx) }} {
		if call(t.Context(), client) == nil {
			t.Fatal("a refused call succeeded")
		}
	}
	text := strings.Join(requestedHosts, " ")
	if !strings.HasPrefix(text, "dynamodb.eu-west-1.amazonaws.com") || !strings.Contains(text, "secretsmanager.eu-west-1.amazonaws.com") {
		t.Fatalf("asked %s", text)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What gets lost once is asked for again; what goes on being lost ends after three attempts.
func TestRetries(t *testing.T) {
	cut := func(w http.ResponseWriter) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	}
	cases := []struct {
		name  string
		first func(n int32, w http.ResponseWriter, r *http.Request) bool
		calls int32
		fails bool
	}{
		{"no answer", func(n int32, _ http.ResponseWriter, r *http.Request) bool {
			if n == 1 {
				<-r.Context().Done()
			}
			return n == 1
		}, 2, false},
		{"half an answer", func(n int32, w http.ResponseWriter, r *http.Request) bool {
			if n == 1 {
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte("{"))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
			return n == 1
		}, 2, false},
		{"a cut", func(n int32, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				cut(w)
			}
			return n == 1
		}, 2, false},
		{"an internal error", func(n int32, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				w.WriteHeader(http.StatusInternalServerError)
			}
			return n == 1
		}, 2, false},
		{"cuts for ever", func(_ int32, w http.ResponseWriter, _ *http.Request) bool {
			cut(w)
			return true
		}, 3, true},
		{"a redirect is not followed", func(_ int32, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return true
		}, 1, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server, calls := newStubService(t, c.first)
			client := newClient(t, newEnvironment("AWS_ENDPOINT_URL", server.URL))
			if client.http.Timeout != attemptTimeout {
				t.Fatalf("an attempt may take %s", client.http.Timeout)
			}
			client.http.Timeout = 200 * time.Millisecond // the same, but faster
			err := getItem(t.Context(), client)
			if (err != nil) != c.fails || calls.Load() != c.calls {
				t.Fatalf("%d calls, %v", calls.Load(), err)
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
		t.Fatalf("%d calls, %v", calls.Load(), err)
	}
}

func TestCredentialsAreReadEachTime(t *testing.T) {
	values := newEnvironment()
	provider := newClient(t, values).config.Credentials
	got, err := provider.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "AKID" || got.SecretAccessKey != "SECRET" || got.SessionToken != "SESSION" {
		t.Fatalf("got %s, %v", got.AccessKeyID, err)
	}
	values["AWS_ACCESS_KEY_ID"] = "OTHER"
	if got, _ := provider.Retrieve(t.Context()); got.AccessKeyID != "OTHER" {
		t.Fatalf("got %s", got.AccessKeyID)
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
		t.Fatalf("%d connections", opened.Load())
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
		t.Fatalf("got %v", err)
	}
	if RunInitTasks(t.Context()) != nil {
		t.Fatal("nothing failed")
	}
}
