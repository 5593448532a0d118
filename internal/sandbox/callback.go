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
	Status        string          `json:"status"`
	Body          json.RawMessage `json:"body"`
	NextAttemptAt time.Time       `json:"next,omitzero"` // not before
	Outcome       string          `json:"outcome"`       // "waiting", "delivered", "given up"
	Attempts      []attempt       `json:"attempts"`
}

// attempt is one post: the HTTP status of its answer, or 0 and what went wrong.
type attempt struct {
	At     time.Time `json:"at"`
	Status int       `json:"answer"`
	Error  string    `json:"error,omitempty"`
}

const (
	callbackWaiting          = "waiting"
	callbackDelivered        = "delivered"
	callbackGivenUp          = "given up"
	maxCallbackResponseBytes = 64 << 10 // bytes of an answer that are read
)

// queueCallbacks queues the callbacks of these statuses, step apart, where an address was given.
func (s *Sandbox) queueCallbacks(t *transaction, statuses []string, step time.Duration) {
	if t.CallbackURL == "" {
		return
	}
	statuses = slices.Clone(statuses)
	if t.CallbacksFirst && t.Kind == kindSMS {
		slices.Reverse(statuses)
	}
	if t.callbacksBlocked {
		step = 0
	}
	at := s.now()
	for i, status := range statuses {
		at = at.Add(step)
		c := callback{Status: status, Body: s.callbackBody(t, status, i), NextAttemptAt: at, Outcome: callbackWaiting}
		t.Callbacks = append(t.Callbacks, &c)
		if t.callbackFaults.drawDuplicate() {
			again := c
			t.Callbacks = append(t.Callbacks, &again)
		}
	}
	s.scheduleCallback(t)
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

// scheduleCallback sets a timer for the next callback of a transaction, if none runs. It is called with the lock held.
func (s *Sandbox) scheduleCallback(t *transaction) {
	c := t.nextCallback()
	if c == nil || t.callbackTimerSet || t.callbackInFlight || t.callbacksBlocked {
		return
	}
	t.callbackTimerSet = true
	s.runAfter(c.NextAttemptAt.Sub(s.now()), func() {
		s.mu.Lock()
		t.callbackTimerSet = false
		s.mu.Unlock()
		s.deliverNextCallback(s.ctx, t)
	})
}

// sendBlockedCallbacks sends what is held back now, in order, and waits for it within EarlyCallbackTimeout. What is not delivered then comes later.
func (s *Sandbox) sendBlockedCallbacks(ctx context.Context, t *transaction) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.EarlyCallbackTimeout)
	defer cancel()
	for s.deliverNextCallback(ctx, t) {
		// one callback at a time
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unblockCallbacks(t)
	s.saveTransaction(t)
}

// unblockCallbacks lets callbacks go that were held back for an early sender.
func (s *Sandbox) unblockCallbacks(t *transaction) {
	t.callbacksBlocked = false
	s.scheduleCallback(t)
}

// deliverNextCallback makes one attempt at the next callback and reports whether it was delivered.
func (s *Sandbox) deliverNextCallback(ctx context.Context, t *transaction) bool {
	s.mu.Lock()
	c := t.nextCallback()
	if c == nil || t.callbackInFlight || s.closed {
		s.mu.Unlock()
		return false
	}
	t.callbackInFlight = true
	address, body := t.CallbackURL, c.Body
	s.mu.Unlock()

	status, err := s.postCallback(ctx, address, body)

	s.mu.Lock()
	defer s.mu.Unlock()
	t.callbackInFlight = false
	s.recordAttempt(c, status, err)
	s.saveTransaction(t)
	s.scheduleCallback(t)
	s.config.Logf("sandbox: callback %s %s %s: %d, %s", t.Kind, t.Key, c.Status, status, c.Outcome)
	return c.Outcome == callbackDelivered
}

func (s *Sandbox) recordAttempt(c *callback, status int, err error) {
	a := attempt{At: s.now(), Status: status}
	if err != nil {
		a.Error = innerErrorText(err)
	}
	c.Attempts = append(c.Attempts, a)
	failures := len(c.Attempts)
	switch {
	case status >= 200 && status < 300:
		c.Outcome = callbackDelivered
	case failures > len(s.config.CallbackRetries):
		c.Outcome = callbackGivenUp
	default:
		c.NextAttemptAt = a.At.Add(s.scaleDuration(s.config.CallbackRetries[failures-1]))
	}
}

// innerErrorText is the inner error alone: the outer one quotes the address with its token.
func innerErrorText(err error) string {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err.Error()
	}
	return err.Error()
}

func (s *Sandbox) postCallback(ctx context.Context, address string, body []byte) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("bad address")
	}
	request.Header.Set("Content-Type", jsonType)
	httpResponse, err := s.config.Client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = httpResponse.Body.Close() }()
	_, err = io.Copy(io.Discard, io.LimitReader(httpResponse.Body, maxCallbackResponseBytes))
	if err != nil {
		return 0, err
	}
	return httpResponse.StatusCode, nil
}
