package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Limits of an attempt.
const (
	// maxResponseBytes is how much of an answer is read, in bytes, so that the connection can be used again; none is kept.
	maxResponseBytes = 64 << 10
	// bodyTimeout is how long an answer's body is waited for once its status is there: a server that drips must not hold
	// up the notifications of others.
	bodyTimeout = time.Second
	// MaxRetryAfter is the longest wait that a Retry-After header can ask for.
	MaxRetryAfter = 24 * time.Hour
)

// Outcome is what an attempt came to.
type Outcome int

// The outcomes. The zero value is Failed on purpose.
const (
	Failed    Outcome = iota // try again, on the schedule
	Delivered                // 2xx
	Gone                     // 410: the merchant wants no more at this URL; disable the endpoint
)

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
}

// Result is what became of an attempt.
type Result struct {
	Outcome Outcome
	// Status is the HTTP status, 0 where no answer came.
	Status int
	// Reason is a short word for the failure, one of the Why constants; "" when delivered. It holds nothing that the server
	// said.
	Reason string
	// RetryAfter is how long the server asked us to wait, at most MaxRetryAfter; 0 if it did not.
	RetryAfter time.Duration
	// Duration is how long the attempt lasted, by the injected clock.
	Duration time.Duration
}

// Sender posts notifications. It is safe for parallel use.
type Sender struct {
	client  *http.Client
	timeout time.Duration
	now     func() time.Time
}

// NewSender makes a Sender. client comes from outgoing.Client; timeout limits a whole attempt, from the look-up of the
// name to the end of the answer (WEBHOOK_TIMEOUT).
func NewSender(client *http.Client, timeout time.Duration, now func() time.Time) *Sender {
	return &Sender{client: client, timeout: timeout, now: now}
}

// CloseIdle closes connections kept for the next notification. Call it at the end of an invocation: a frozen function
// wakes with dead connections.
func (s *Sender) CloseIdle() { s.client.CloseIdleConnections() }

// Deliver makes one attempt. It never fails otherwise than by its Result, and returns before ctx ends or the timeout
// is over.
func (s *Sender) Deliver(ctx context.Context, r Request) Result {
	start := s.now()
	result := s.post(ctx, r, start)
	result.Duration = s.now().Sub(start)
	return result
}

func (s *Sender) post(ctx context.Context, r Request, at time.Time) Result {
	if len(r.Secrets) == 0 {
		return Result{Reason: ReasonUnsigned} // an unsigned notification would teach merchants to accept those
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return Result{Reason: ReasonURL}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "mobilegateway-webhook/1")
	request.Header.Set(HeaderID, r.ID)
	request.Header.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(HeaderSignature, Sign(r.Secrets, r.ID, at, r.Body))

	response, err := s.client.Do(request)
	if err != nil {
		return Result{Reason: failureReason(err)}
	}
	// The status alone decides: an answer whose body is cut or slow is an answer all the same.
	bodyTimer := time.AfterFunc(bodyTimeout, cancel)
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxResponseBytes))
	_ = response.Body.Close()
	bodyTimer.Stop()
	return s.classify(response)
}

// classify reads the meaning of an answer's status.
func (s *Sender) classify(response *http.Response) Result {
	result := Result{Status: response.StatusCode}
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		result.Outcome = Delivered
	case status == http.StatusGone:
		result.Outcome, result.Reason = Gone, ReasonGone
	case status >= 300 && status < 400:
		result.Reason = ReasonRedirect
	case status == http.StatusTooManyRequests:
		result.Reason = ReasonThrottled
		result.RetryAfter = retryAfter(response.Header.Get("Retry-After"), s.now())
	case status == http.StatusBadGateway, status == http.StatusGatewayTimeout:
		result.Reason = ReasonServer
		result.RetryAfter = retryAfter(response.Header.Get("Retry-After"), s.now())
	case status >= 400 && status < 500:
		result.Reason = ReasonClient
	default:
		result.Reason = ReasonServer
	}
	return result
}

// retryAfter reads a Retry-After header (RFC 9110, 10.2.3): seconds or an HTTP date. Anything else, and the past, is 0.
func retryAfter(value string, now time.Time) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range it is the largest number
		if seconds > uint64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	if retryAt, err := http.ParseTime(value); err == nil {
		return min(max(retryAt.Sub(now), 0), MaxRetryAfter)
	}
	return 0
}
