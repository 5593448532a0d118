package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"mobilegateway/shared/logsafe"
)

// Limits of an attempt.
const (
	// maxResponseBytes is how many bytes of a response are read so that the connection can be reused.
	maxResponseBytes = 64 << 10
	// bodyTimeout bounds the wait for a response's body after its status. A server that sends it slowly must not delay
	// other notifications.
	bodyTimeout = time.Second
	// MaxRetryAfter is the longest wait that a Retry-After header can request.
	MaxRetryAfter = 24 * time.Hour
)

// Outcome classifies the result of an attempt.
type Outcome int

// The outcomes. The zero value must be Failed.
const (
	Failed    Outcome = iota // try again, on the schedule
	Delivered                // 2xx
	Gone                     // 410: disable the endpoint
	NotSent                  // NotAfter or the caller's time had passed: no byte of the body was sent
	CutOff                   // the caller's time ended before a response: the notification may have arrived
)

// ErrCutOff is the cause of a context whose caller cannot wait longer for a response, although the server may still be
// within the attempt's own timeout. Such an attempt is CutOff, which is not a failure of the server.
var ErrCutOff = logsafe.New("webhook: no response within the caller's time")

// Request is one notification to post.
type Request struct {
	// URL passed outgoing.Check when it was registered or accepted.
	URL string
	// ID is the webhook-id, the same on every attempt; letters, digits, hyphens and underscores.
	ID string
	// Body is the JSON to post, unchanged.
	Body []byte
	// Secrets sign it, newest first; at least one.
	Secrets []Secret
	// NotAfter is when the request must have been written, by the wall clock; zero for no bound. A function that froze
	// in the middle of an attempt must not finish it later.
	NotAfter time.Time
	// KeepBytes is how much of the response's body Result.Body keeps, for a person who tests an address. The functions
	// keep nothing.
	KeepBytes int64
}

// Result is the result of an attempt.
type Result struct {
	Outcome Outcome
	// Status is the HTTP status, 0 without a response.
	Status int
	// Reason is one of the Reason constants; "" when delivered or cut off. It contains no text of the server.
	Reason string
	// RetryAfter is the wait that the server requested, at most MaxRetryAfter; 0 for none.
	RetryAfter time.Duration
	// Body is the beginning of the response's body, at most KeepBytes long.
	Body []byte
	// Duration is the length of the attempt by the injected clock.
	Duration time.Duration
}

// Sender posts notifications. It is safe for concurrent use.
type Sender struct {
	client  *http.Client
	timeout time.Duration
	now     func() time.Time
}

// NewSender returns a Sender. client comes from outgoing.NewClient. timeout bounds a whole attempt, from name
// resolution to the end of the response (WEBHOOK_TIMEOUT).
func NewSender(client *http.Client, timeout time.Duration, now func() time.Time) *Sender {
	return &Sender{client: client, timeout: timeout, now: now}
}

// CloseIdle closes idle connections. Call it at the end of an invocation: the connections of a frozen function die.
func (s *Sender) CloseIdle() { s.client.CloseIdleConnections() }

// Deliver makes one attempt and reports every failure in the Result. It ends when ctx or the timeout does. If the cause
// of ctx's end is ErrCutOff, the attempt is CutOff.
func (s *Sender) Deliver(ctx context.Context, r Request) Result {
	start := s.now()
	result := s.post(ctx, r, start)
	result.Duration = s.now().Sub(start)
	return result
}

func (s *Sender) post(ctx context.Context, r Request, at time.Time) Result {
	if len(r.Secrets) == 0 {
		return Result{Reason: ReasonUnsigned} // merchants must never receive an unsigned notification
	}
	timeout := s.timeout
	if !r.NotAfter.IsZero() {
		timeout = min(timeout, r.NotAfter.Sub(at))
	}
	if timeout <= 0 || isCutOff(ctx) {
		return Result{Outcome: NotSent}
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body := func() (io.ReadCloser, error) {
		return io.NopCloser(&timelyReader{bytes.NewReader(r.Body), r.NotAfter, s.now}), nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, nil)
	if err != nil {
		return Result{Reason: ReasonURL}
	}
	request.GetBody, request.ContentLength = body, int64(len(r.Body))
	request.Body, _ = body()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "mobilegateway-webhook/1")
	request.Header.Set(HeaderID, r.ID)
	request.Header.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(HeaderSignature, Sign(r.Secrets, r.ID, at, r.Body))

	response, err := s.client.Do(request)
	switch {
	case errors.Is(err, errLate):
		return Result{Outcome: NotSent}
	case err != nil && isCutOff(caller):
		return Result{Outcome: CutOff}
	case err != nil:
		return Result{Reason: failureReason(err)}
	}
	// Only the status decides: a response with a truncated or slow body is still a response.
	bodyTimer := time.AfterFunc(bodyTimeout, cancel)
	var kept []byte
	if r.KeepBytes > 0 {
		kept, _ = io.ReadAll(io.LimitReader(response.Body, r.KeepBytes))
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxResponseBytes))
	_ = response.Body.Close()
	bodyTimer.Stop()
	result := s.classify(response)
	result.Body = kept
	return result
}

// isCutOff reports whether the caller's time is over.
func isCutOff(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrCutOff) }

// errLate ends a request whose NotAfter has passed before its body was sent.
var errLate = logsafe.New("webhook: the time of the attempt is over")

// timelyReader reads a body, and fails once notAfter has passed by the wall clock. The clock is read last before the
// bytes leave, because the timers of a frozen function do not advance.
type timelyReader struct {
	body     io.Reader
	notAfter time.Time
	now      func() time.Time
}

// Read implements io.Reader.
func (r *timelyReader) Read(p []byte) (int, error) {
	if !r.notAfter.IsZero() && r.now().After(r.notAfter) {
		return 0, errLate
	}
	return r.body.Read(p)
}

// classify maps the status of a response to a result.
func (s *Sender) classify(response *http.Response) Result {
	result := Result{Status: response.StatusCode, Reason: ReasonServer}
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		result.Outcome, result.Reason = Delivered, ""
	case status == http.StatusGone:
		result.Outcome, result.Reason = Gone, ReasonGone
	case status >= 300 && status < 400:
		result.Reason = ReasonRedirect
	case status == http.StatusTooManyRequests:
		result.Reason = ReasonThrottled
	case status >= 400 && status < 500:
		result.Reason = ReasonClient
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		result.RetryAfter = retryAfter(response.Header.Get("Retry-After"), s.now())
	}
	return result
}

// retryAfter parses a Retry-After header (RFC 9110, 10.2.3): seconds or an HTTP date. Other texts and past dates are 0.
func retryAfter(value string, now time.Time) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // ParseUint returns the largest number on ErrRange
		return time.Duration(min(seconds, uint64(MaxRetryAfter/time.Second))) * time.Second
	}
	if retryAt, err := http.ParseTime(value); err == nil {
		return min(max(retryAt.Sub(now), 0), MaxRetryAfter)
	}
	return 0
}
