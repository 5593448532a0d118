package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"
)

// callback is one message to the callback address of a payment or an SMS. A transaction's callbacks are sent one after
// the other: the next one waits until the one before is delivered or given up.
type callback struct {
	Status        string          `json:"status"`
	Body          json.RawMessage `json:"body"`
	NextAttemptAt time.Time       `json:"next,omitzero"` // not before
	Outcome       string          `json:"outcome"`
	Attempts      []attempt       `json:"attempts"`
}

// attempt is one delivery attempt: the HTTP status of its response, or 0 and an error.
type attempt struct {
	At     time.Time `json:"at"`
	Status int       `json:"answer"`
	Error  string    `json:"error,omitempty"`
}

// Outcomes of a callback.
const (
	callbackWaiting   = "waiting"
	callbackDelivered = "delivered"
	callbackGivenUp   = "given up"
)

const (
	maxCallbackAttempts      = 10
	firstCallbackRetry       = time.Second // doubles with each attempt
	maxCallbackResponseBytes = 64 << 10    // more is not read
)

// queueCallbacks queues the callbacks of these statuses, step apart, if the request has a callback address.
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
		c := callback{Status: status, Body: callbackBody(t, status, i), NextAttemptAt: at, Outcome: callbackWaiting}
		t.Callbacks = append(t.Callbacks, &c)
		if t.callbackFaults.drawDuplicate() {
			t.Callbacks = append(t.Callbacks, new(c))
		}
	}
	s.scheduleCallback(t)
}

func callbackBody(t *transaction, status string, position int) []byte {
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

// scheduleCallback sets a timer for a transaction's next callback, if none runs. The caller holds the lock.
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

// sendBlockedCallbacks sends the callbacks that must come before a response, in order, within earlyCallbackTimeout.
// Those that are not delivered by then follow later.
func (s *Sandbox) sendBlockedCallbacks(ctx context.Context, t *transaction) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), earlyCallbackTimeout)
	defer cancel()
	for s.deliverNextCallback(ctx, t) { // until all are delivered, or one is not
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unblockCallbacks(t)
	s.saveTransaction(t)
}

// unblockCallbacks schedules the callbacks that waited for sendBlockedCallbacks.
func (s *Sandbox) unblockCallbacks(t *transaction) {
	t.callbacksBlocked = false
	s.scheduleCallback(t)
}

// deliverNextCallback makes one delivery attempt of the next callback and reports whether it was delivered.
func (s *Sandbox) deliverNextCallback(ctx context.Context, t *transaction) bool {
	s.mu.Lock()
	c := t.nextCallback()
	if c == nil || t.callbackInFlight || s.closed() {
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
		a.Error = err.Error()
	}
	c.Attempts = append(c.Attempts, a)
	switch {
	case status >= 200 && status < 300:
		c.Outcome = callbackDelivered
	case len(c.Attempts) >= maxCallbackAttempts:
		c.Outcome = callbackGivenUp
	default:
		c.NextAttemptAt = a.At.Add(s.scaleDuration(firstCallbackRetry << (len(c.Attempts) - 1)))
	}
}

func (s *Sandbox) postCallback(ctx context.Context, address string, body []byte) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("bad address")
	}
	request.Header.Set("Content-Type", jsonType)
	httpResponse, err := s.client.Do(request)
	if err != nil {
		return 0, errors.Unwrap(err) // the outer error quotes the address with its token
	}
	defer func() { _ = httpResponse.Body.Close() }()
	_, err = io.Copy(io.Discard, io.LimitReader(httpResponse.Body, maxCallbackResponseBytes))
	if err != nil {
		return 0, err
	}
	return httpResponse.StatusCode, nil
}
