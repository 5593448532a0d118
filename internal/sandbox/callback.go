package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// callback is one message to the address that came with a payment or an SMS. The callbacks of a transaction go out one
// after the other: the next waits until the one before is delivered or given up.
type callback struct {
	Status   string          `json:"status"`
	Body     json.RawMessage `json:"body"`
	Next     time.Time       `json:"next,omitzero"` // not before
	Outcome  string          `json:"outcome"`       // "waiting", "delivered", "given up"
	Attempts []attempt       `json:"attempts"`
}

// attempt is one post: the HTTP status of its answer, or 0 and what went wrong.
type attempt struct {
	At     time.Time `json:"at"`
	Answer int       `json:"answer"`
	Error  string    `json:"error,omitempty"`
}

const (
	callbackWaiting   = "waiting"
	callbackDelivered = "delivered"
	callbackGivenUp   = "given up"
	maxCallbackAnswer = 64 << 10 // bytes of an answer that are read
)

// tell queues the callbacks of these statuses, step apart, where an address was given.
func (s *Sandbox) tell(t *transaction, statuses []string, step time.Duration) {
	if t.CallbackURL == "" {
		return
	}
	statuses = slices.Clone(statuses)
	if t.Early && t.Kind == kindSMS {
		slices.Reverse(statuses)
	}
	if t.held {
		step = 0
	}
	at := s.now()
	for i, status := range statuses {
		at = at.Add(step)
		c := callback{Status: status, Body: s.callbackBody(t, status, i), Next: at, Outcome: callbackWaiting}
		t.Callbacks = append(t.Callbacks, &c)
		if t.luck.duplicated() {
			again := c
			t.Callbacks = append(t.Callbacks, &again)
		}
	}
	s.schedule(t)
}

func (s *Sandbox) callbackBody(t *transaction, status string, position int) []byte {
	if t.Kind == kindSMS {
		return receiptBody(t, status, position%2 == 1)
	}
	return notificationBody(t, status)
}

func (t *transaction) nextCallback() *callback {
	for _, c := range t.Callbacks {
		if c.Outcome == callbackWaiting {
			return c
		}
	}
	return nil
}

// schedule sets a timer for the next callback of a transaction, if none runs. It is called with the lock held.
func (s *Sandbox) schedule(t *transaction) {
	c := t.nextCallback()
	if c == nil || t.timer || t.busy || t.held {
		return
	}
	t.timer = true
	s.after(c.Next.Sub(s.now()), func() {
		s.mu.Lock()
		t.timer = false
		s.mu.Unlock()
		s.deliver(s.ctx, t)
	})
}

// flush sends what is held back now, in order, and waits for it within EarlyWait. What is not delivered then comes later.
func (s *Sandbox) flush(ctx context.Context, t *transaction) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.EarlyWait)
	defer cancel()
	for s.deliver(ctx, t) {
		// one callback at a time
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(t)
	s.save(t)
}

// release lets callbacks go that were held back for an early sender.
func (s *Sandbox) release(t *transaction) {
	t.held = false
	s.schedule(t)
}

// deliver makes one attempt at the next callback and reports whether it was delivered.
func (s *Sandbox) deliver(ctx context.Context, t *transaction) bool {
	s.mu.Lock()
	c := t.nextCallback()
	if c == nil || t.busy || s.closed {
		s.mu.Unlock()
		return false
	}
	t.busy = true
	address, body := t.CallbackURL, c.Body
	s.mu.Unlock()

	status, err := s.post(ctx, address, body)

	s.mu.Lock()
	defer s.mu.Unlock()
	t.busy = false
	s.noteAttempt(c, status, err)
	s.save(t)
	s.schedule(t)
	s.config.Logf("sandbox: callback %s %s %s: %d, %s", t.Kind, t.Key, c.Status, status, c.Outcome)
	return c.Outcome == callbackDelivered
}

func (s *Sandbox) noteAttempt(c *callback, status int, err error) {
	a := attempt{At: s.now(), Answer: status}
	if err != nil {
		a.Error = errorKind(err)
	}
	c.Attempts = append(c.Attempts, a)
	failures := len(c.Attempts)
	switch {
	case status >= 200 && status < 300:
		c.Outcome = callbackDelivered
	case failures > len(s.config.Retries):
		c.Outcome = callbackGivenUp
	default:
		c.Next = a.At.Add(s.scaled(s.config.Retries[failures-1]))
	}
}

// errorKind is the inner error alone: the outer one quotes the address with its token.
func errorKind(err error) string {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err.Error()
	}
	return err.Error()
}

func (s *Sandbox) post(ctx context.Context, address string, body []byte) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("bad address")
	}
	request.Header.Set("Content-Type", jsonType)
	response, err := s.config.Client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxCallbackAnswer))
	if err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}
