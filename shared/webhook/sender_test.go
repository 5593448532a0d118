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
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	official "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"mobilegateway/shared/outgoing"
)

// deliver makes one attempt with a sender as in the local run and a stopped clock.
func deliver(t *testing.T, timeout time.Duration, r Request) Result {
	t.Helper()
	client := outgoing.NewClient(outgoing.Policy{AllowLoopback: true}, nil)
	return NewSender(client, timeout, func() time.Time { return start }).Deliver(t.Context(), r)
}

// assertResult compares the result of an attempt.
func assertResult(t *testing.T, got, want Result) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func newRequest(url string) Request {
	return Request{
		URL: url, ID: "msg_1", Body: []byte(`{"status":"successful","state":"a&b<c"}`), Secrets: twoSecrets(),
	}
}

// newServer starts a server for one test and returns its URL.
func newServer(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// respondWith responds with a status and a Retry-After.
func respondWith(status int, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		if status >= 300 && status < 400 {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "thanks")
	}
}

func TestRequestContents(t *testing.T) {
	r := newRequest("")
	r.URL = newServer(t, func(_ http.ResponseWriter, got *http.Request) {
		body, err := io.ReadAll(got.Body)
		if err != nil || string(body) != string(r.Body) {
			t.Errorf("body %q, %v", body, err)
		}
		if line := got.Method + " " + got.RequestURI; line != "POST /notif?shop=1" {
			t.Errorf("request %s, want POST /notif?shop=1", line)
		}
		if got.ContentLength != int64(len(r.Body)) {
			t.Errorf("content length %d, want %d", got.ContentLength, len(r.Body))
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
	}) + "/notif?shop=1"
	assertResult(t, deliver(t, time.Minute, r), Result{Outcome: Delivered, Status: 200})
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
		{300, "", Result{Reason: ReasonRedirect}},
		{301, "", Result{Reason: ReasonRedirect}},
		{302, "", Result{Reason: ReasonRedirect}},
		{304, "", Result{Reason: ReasonRedirect}},
		{307, "", Result{Reason: ReasonRedirect}},
		{308, "60", Result{Reason: ReasonRedirect}},
		{400, "", Result{Reason: ReasonClient}},
		{401, "", Result{Reason: ReasonClient}},
		{404, "", Result{Reason: ReasonClient}},
		{410, "", Result{Outcome: Gone, Reason: ReasonGone}},
		{499, "", Result{Reason: ReasonClient}},
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
			url := newServer(t, respondWith(c.status, c.retryAfter))
			assertResult(t, deliver(t, time.Minute, newRequest(url)), c.want)
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
	unresponsive := newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the client's disconnect only after the body
		<-r.Context().Done()
	})
	// sendAndClose responds with raw bytes and closes the connection.
	sendAndClose := func(raw string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(connection, raw)
			_ = connection.Close()
		}
	}
	selfSigned := httptest.NewUnstartedServer(http.NotFoundHandler())
	selfSigned.Config.ErrorLog = log.New(io.Discard, "", 0)
	selfSigned.StartTLS()
	t.Cleanup(selfSigned.Close)
	plain := newServer(t, http.NotFound)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()

	cases := []struct {
		name, url, want string
	}{
		{"no response in time", unresponsive, ReasonTimeout},
		{"a closed connection", newServer(t, sendAndClose("")), ReasonConnect},
		{"not HTTP", newServer(t, sendAndClose("SSH-2.0-OpenSSH\r\n")), ReasonConnect},
		{"a closed port", "http://" + closed, ReasonConnect},
		{"a self-signed certificate", selfSigned.URL, ReasonTLS},
		{"https to a plain server", "https" + strings.TrimPrefix(plain, "http"), ReasonTLS},
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
			assertResult(t, deliver(t, timeout, newRequest(c.url)), Result{Reason: c.want})
		})
	}
}

func TestUnresolvableHost(t *testing.T) {
	err := &net.DNSError{Err: "no such host", Name: "shop.example", IsNotFound: true}
	if got := failureReason(err); got != ReasonName {
		t.Errorf("reason %s, want %s", got, ReasonName)
	}
}

func TestUnsignedNotificationIsNotSent(t *testing.T) {
	r := newRequest(newServer(t, respondWith(200, "")))
	r.Secrets = nil
	assertResult(t, deliver(t, time.Minute, r), Result{Reason: ReasonUnsigned})
}

func TestEndlessResponseBodyIsTruncated(t *testing.T) {
	written := make(chan int64, 1)
	url := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
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
	})
	assertResult(t, deliver(t, time.Minute, newRequest(url)), Result{Outcome: Delivered, Status: 200})
	if total := <-written; total > 64<<20 {
		t.Errorf("the sender took %d bytes of the response, want at most 64 MiB", total)
	}
}

func TestCallerDeadlineIsRespected(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sender := NewSender(outgoing.NewClient(outgoing.Policy{AllowLoopback: true}, nil), time.Minute, time.Now)
	result := sender.Deliver(ctx, newRequest(newServer(t, respondWith(200, ""))))
	if result.Outcome != Failed || result.Status != 0 {
		t.Errorf("result %+v after the caller's cancellation, want a failure without a response", result)
	}
}

// A caller that has no more time cuts an attempt off, which is not a failure. One that begins too late sends nothing.
func TestCutOff(t *testing.T) {
	arrived, over := make(chan struct{}, 1), make(chan struct{})
	url := newServer(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-over
	})
	defer close(over)
	sender := NewSender(outgoing.NewClient(outgoing.Policy{AllowLoopback: true}, nil), time.Minute, time.Now)
	ctx, cutOff := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cutOff(ErrCutOff)
	}()
	result := sender.Deliver(ctx, newRequest(url))
	result.Duration = 0
	assertResult(t, result, Result{Outcome: CutOff})
	result = sender.Deliver(ctx, newRequest(url))
	result.Duration = 0
	assertResult(t, result, Result{Outcome: NotSent})
	if len(arrived) != 0 {
		t.Error("a request was sent after the caller's time")
	}
}

// frozenTransport freezes the function after the connection is open and before the request is written.
type frozenTransport struct{ freeze func() }

func (f frozenTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	f.freeze()
	return http.DefaultTransport.RoundTrip(request)
}

// A body is not sent after NotAfter by the wall clock, also if the function froze in the middle of the attempt.
func TestNotAfter(t *testing.T) {
	const unbounded = time.Duration(-1)
	for name, c := range map[string]struct {
		notAfter, freeze time.Duration
		want             Outcome
	}{
		"no bound":               {unbounded, time.Hour, Delivered},
		"in time":                {time.Minute, time.Minute, Delivered},
		"frozen for longer":      {time.Minute, time.Minute + 1, NotSent},
		"passed as it began":     {0, 0, NotSent},
		"passed before it began": {-time.Second, 0, NotSent},
	} {
		t.Run(name, func(t *testing.T) {
			var received atomic.Bool
			r := newRequest(newServer(t, func(_ http.ResponseWriter, got *http.Request) {
				_, err := io.ReadAll(got.Body)
				received.Store(err == nil)
			}))
			now := start
			if c.notAfter != unbounded {
				r.NotAfter = start.Add(c.notAfter)
			}
			client := &http.Client{Transport: frozenTransport{func() { now = now.Add(c.freeze) }}}
			result := NewSender(client, 5*time.Second, func() time.Time { return now }).Deliver(t.Context(), r)
			if result.Outcome != c.want || received.Load() != (c.want == Delivered) {
				t.Errorf("outcome %d, received %v; want %d", result.Outcome, received.Load(), c.want)
			}
		})
	}
}
