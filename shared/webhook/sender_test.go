package webhook

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	official "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"mobilegateway/shared/outgoing"
)

// newTestSender is a sender as in the local run, with a clock that stands still.
func newTestSender(timeout time.Duration) *Sender {
	return NewSender(outgoing.NewClient(outgoing.Policy{AllowLoopback: true}), timeout, func() time.Time { return start })
}

func newRequest(url string) Request {
	return Request{
		URL: url, ID: "msg_1", Body: []byte(`{"status":"successful","state":"a&b<c"}`),
		Secrets: []Secret{DeriveSecret(testKey(2), "aaaabbbbccccdddd", 2), DeriveSecret(testKey(1), "aaaabbbbccccdddd", 1)},
	}
}

// serverResponding is a server that answers with a status and a Retry-After.
func serverResponding(t *testing.T, status int, retryAfter string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		if status >= 300 && status < 400 {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "thanks")
	}))
	t.Cleanup(server.Close)
	return server
}

func TestRequestContents(t *testing.T) {
	r := newRequest("")
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) {
		body, err := io.ReadAll(got.Body)
		if err != nil || string(body) != string(r.Body) {
			t.Errorf("body %q, %v", body, err)
		}
		if got.Method != http.MethodPost || got.RequestURI != "/told?shop=1" || got.ContentLength != int64(len(r.Body)) {
			t.Errorf("%s %s, length %d", got.Method, got.RequestURI, got.ContentLength)
		}
		for name, want := range map[string]string{
			"Content-Type": "application/json", "webhook-id": "msg_1",
			"webhook-timestamp": strconv.FormatInt(start.Unix(), 10), "Authorization": "", "Accept-Encoding": "",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("%s: %q, want %q", name, got.Header.Get(name), want)
			}
		}
		for i, secret := range r.Secrets {
			verifier, err := official.NewWebhook(secret.Text())
			if err != nil || verifier.VerifyIgnoringTimestamp(body, got.Header) != nil {
				t.Errorf("secret %d does not verify", i)
			}
		}
	}))
	t.Cleanup(server.Close)
	r.URL = server.URL + "/told?shop=1"
	if result := newTestSender(time.Minute).Deliver(context.Background(), r); result != (Result{Outcome: Delivered, Status: 200}) {
		t.Errorf("result %+v", result)
	}
}

func TestClassifyResponse(t *testing.T) {
	cases := []struct {
		status     int
		retryAfter string
		want       Result
	}{
		{200, "", Result{Outcome: Delivered}},
		{201, "", Result{Outcome: Delivered}},
		{202, "60", Result{Outcome: Delivered}},
		{204, "", Result{Outcome: Delivered}},
		{299, "", Result{Outcome: Delivered}},
		{301, "", Result{Reason: ReasonRedirect}},
		{302, "", Result{Reason: ReasonRedirect}},
		{304, "", Result{Reason: ReasonRedirect}},
		{307, "", Result{Reason: ReasonRedirect}},
		{308, "60", Result{Reason: ReasonRedirect}},
		{400, "", Result{Reason: ReasonClient}},
		{401, "", Result{Reason: ReasonClient}},
		{404, "", Result{Reason: ReasonClient}},
		{410, "", Result{Outcome: Gone, Reason: ReasonGone}},
		{429, "", Result{Reason: ReasonThrottled}},
		{429, "120", Result{Reason: ReasonThrottled, RetryAfter: 2 * time.Minute}},
		{429, "Sun, 01 Mar 2026 13:00:00 GMT", Result{Reason: ReasonThrottled, RetryAfter: time.Hour}},
		{500, "60", Result{Reason: ReasonServer}},
		{502, "60", Result{Reason: ReasonServer, RetryAfter: time.Minute}},
		{503, "60", Result{Reason: ReasonServer}},
		{504, "99999999", Result{Reason: ReasonServer, RetryAfter: MaxRetryAfter}},
		{599, "", Result{Reason: ReasonServer}},
		{600, "", Result{Reason: ReasonServer}},
		{999, "", Result{Reason: ReasonServer}},
	}
	for _, c := range cases {
		t.Run(strconv.Itoa(c.status)+" "+c.retryAfter, func(t *testing.T) {
			c.want.Status = c.status
			if got := newTestSender(time.Minute).Deliver(context.Background(), newRequest(serverResponding(t, c.status, c.retryAfter).URL)); got != c.want {
				t.Errorf("result %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	cases := map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "86400": MaxRetryAfter, "86401": MaxRetryAfter,
		"99999999999999999999999999": MaxRetryAfter, "-1": 0, "+1": 0, "1.5": 0, "soon": 0, "0x10": 0,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"Mon, 01 Mar 2027 12:00:00 GMT": MaxRetryAfter,
		"2026-03-01T12:00:30Z":          0,
	}
	for value, want := range cases {
		if got := retryAfter(value, start); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", value, got, want)
		}
	}
}

func TestNoResponse(t *testing.T) {
	unresponsive := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // lets the server notice that the client went away
		<-r.Context().Done()
	}))
	t.Cleanup(unresponsive.Close)
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = connection.Close()
	}))
	t.Cleanup(cut.Close)
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(connection, "SSH-2.0-OpenSSH\r\n")
		_ = connection.Close()
	}))
	t.Cleanup(garbage.Close)
	selfSigned := httptest.NewUnstartedServer(http.NotFoundHandler())
	selfSigned.Config.ErrorLog = log.New(io.Discard, "", 0)
	selfSigned.StartTLS()
	t.Cleanup(selfSigned.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()

	cases := []struct {
		name, url, want string
	}{
		{"no answer in time", unresponsive.URL, ReasonTimeout},
		{"the connection is cut", cut.URL, ReasonConnect},
		{"not HTTP", garbage.URL, ReasonConnect},
		{"nobody listens", "http://" + closed, ReasonConnect},
		{"a certificate of nobody", selfSigned.URL, ReasonTLS},
		{"https to a plain server", "https" + strings.TrimPrefix(plain.URL, "http"), ReasonTLS},
		{"a private address", "https://10.0.0.1/", ReasonAddress},
		{"http to the Internet", "http://shop.example/", ReasonURL},
		{"no URL", "https://shop example/", ReasonURL},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			timeout := time.Minute
			if c.want == ReasonTimeout {
				timeout = 50 * time.Millisecond
			}
			if got := newTestSender(timeout).Deliver(context.Background(), newRequest(c.url)); got != (Result{Reason: c.want}) {
				t.Errorf("result %+v, want %s", got, c.want)
			}
		})
	}
}

func TestUnresolvableHost(t *testing.T) {
	if got := failureReason(&net.DNSError{Err: "no such host", Name: "shop.example", IsNotFound: true}); got != ReasonName {
		t.Errorf("why = %s", got)
	}
}

func TestUnsignedNotificationIsNotSent(t *testing.T) {
	r := newRequest(serverResponding(t, 200, "").URL)
	r.Secrets = nil
	if got := newTestSender(time.Minute).Deliver(context.Background(), r); got != (Result{Reason: ReasonUnsigned}) {
		t.Errorf("result %+v", got)
	}
}

func TestEndlessResponseBodyIsTruncated(t *testing.T) {
	written := make(chan int64, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 32<<10)
		var total int64
		for {
			n, err := w.Write(block)
			total += int64(n)
			if err != nil {
				written <- total
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	if got := newTestSender(time.Minute).Deliver(context.Background(), newRequest(server.URL)); got.Outcome != Delivered {
		t.Errorf("result %+v", got)
	}
	if total := <-written; total > 64<<20 {
		t.Errorf("%d bytes were taken", total)
	}
}

func TestCallerDeadlineIsRespected(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := newTestSender(time.Minute).Deliver(ctx, newRequest(serverResponding(t, 200, "").URL)); got.Outcome != Failed || got.Status != 0 {
		t.Errorf("result %+v", got)
	}
}
