package kit

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"
)

// Callback is one callback. Without a URL it is not sent.
type Callback struct {
	Method, URL string
	Body        []byte // JSON
	// Sign makes further headers at each attempt, without the lock; nil adds none.
	Sign func(at time.Time) map[string]string
	// Wait is the pause after the callback before it. Speed divides it.
	Wait time.Duration
	// Retries are the pauses before further attempts after a status outside 200 to 299. Speed divides them.
	Retries []time.Duration
}

// Post makes a callback of v, which must be marshalable, to the callback address of t.
func (t *Transaction) Post(v any, retries ...time.Duration) Callback {
	return Callback{Method: http.MethodPost, URL: t.CallbackURL, Body: Marshal(v), Retries: retries}
}

// SendAfter sends callbacks after d, which Speed divides, one after the other, each with its retries.
func (p *Platform) SendAfter(d time.Duration, t *Transaction, callbacks []Callback) {
	p.After(d, func() { p.send(t, callbacks) })
}

func (p *Platform) send(t *Transaction, callbacks []Callback) {
	if len(callbacks) > 0 {
		keys := t.Keys
		p.config.After(0, func() { p.deliver(context.Background(), keys, callbacks) })
	}
}

// deliver sends callbacks. The one that has a retry left blocks those after it.
func (p *Platform) deliver(ctx context.Context, keys Keys, callbacks []Callback) {
	for i, c := range callbacks {
		if c.URL == "" {
			continue
		}
		pause, rest := c.Wait, slices.Clone(callbacks[i:])
		rest[0].Wait = 0
		if pause == 0 {
			status := p.attempt(ctx, c)
			p.record("callback", keys, status)
			if status/100 == 2 || len(c.Retries) == 0 {
				continue
			}
			pause, rest[0].Retries = c.Retries[0], c.Retries[1:]
		}
		p.config.After(p.scaled(pause), func() { p.deliver(context.WithoutCancel(ctx), keys, rest) })
		return
	}
}

// attempt makes one delivery attempt and returns its status, or 0. It logs no error, which would quote the address.
func (p *Platform) attempt(ctx context.Context, c Callback) int {
	ctx, cancel := context.WithTimeout(ctx, callbackTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, c.Method, c.URL, bytes.NewReader(c.Body))
	if err != nil {
		return 0
	}
	request.Header.Set("Content-Type", jsonType)
	if c.Sign != nil {
		for name, value := range c.Sign(p.Now()) {
			request.Header.Set(name, value)
		}
	}
	response, err := p.config.Client.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}
