package kit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// Callback is one message to a callback address. Without a body it is not sent.
type Callback struct {
	Status string `json:"status"` // that it reports, where it is shown
	Method string `json:"-"`      // POST by default
	// URL is the address; "" for that of the transaction at the time of the attempt.
	URL  string          `json:"-"`
	Body json.RawMessage `json:"body" unhashed:"made from the transaction, the status and the hazard"`
	// Sign makes further headers at each attempt, without the lock; nil adds none.
	Sign func(at time.Time) map[string]string `json:"-" unhashed:"made from the body"`
	// Wait is the pause after the callback before it. Speed divides it.
	Wait time.Duration `json:"-"`
	// Retries are the pauses before further attempts after a status outside 200 to 299. Speed divides them.
	Retries []time.Duration `json:"-"`
	// Hazard is the fault of its content.
	Hazard Hazard `json:"hazard,omitempty"`

	NextAttemptAt time.Time `json:"next,omitzero"` // not before
	Outcome       string    `json:"outcome"`
	Attempts      []Attempt `json:"attempts"`
}

// Attempt is one delivery attempt: the HTTP status of its response, or 0 and an error.
type Attempt struct {
	At     time.Time `json:"at" unhashed:"only shown"`
	Status int       `json:"answer" unhashed:"only shown"`
	Error  string    `json:"error,omitempty" unhashed:"only shown"`
}

// Outcomes of a callback.
const (
	CallbackWaiting   = "waiting"
	CallbackDelivered = "delivered"
	CallbackGivenUp   = "given up"
)

// Queue has callbacks that are sent one after the other: the next one waits until the one before is delivered or given
// up.
type Queue struct {
	Callbacks []*Callback `json:"callbacks,omitempty"`

	hasTimer  bool // for the next attempt
	isSending bool
	isBlocked bool // until the callbacks before a response are sent
}

func (q *Queue) next() *Callback {
	for _, c := range q.Callbacks {
		if c.Outcome == CallbackWaiting {
			return c
		}
	}
	return nil
}

// Outgoing is one delivery attempt of a callback.
type Outgoing struct {
	Kind, Key, Status string // of the transaction, and that the callback reports
	Method, URL       string
	Header            map[string]string
	Body              []byte
	Hazard            Hazard
}

// Delivery is a queue of callbacks that must be sent before a response.
type Delivery struct {
	t *Transaction
	q *Queue
}

// sender sends the callbacks.
type sender struct {
	*source
	log     *callLog
	changed func(t *Transaction) // Extension.Changed, or nil
}

// Post makes a callback of v, which must be marshalable, to the callback address of the transaction.
func (t *Transaction) Post(v any, retries ...time.Duration) Callback {
	return Callback{Body: Marshal(v), Retries: retries}
}

// SendAfter sends callbacks after d, which Speed divides, one after the other, each with its retries.
func (p *sender) SendAfter(d time.Duration, t *Transaction, callbacks []Callback) {
	p.After(d, func() { p.send(t, callbacks) })
}

// send sends callbacks in a queue of their own.
func (p *sender) send(t *Transaction, callbacks []Callback) {
	p.Enqueue(t, nil, callbacks)
}

// SendFirst sends callbacks before a response.
func (p *sender) SendFirst(r *Response, t *Transaction, callbacks []Callback) {
	q := &Queue{isBlocked: true}
	t.others = append(t.others, q)
	p.Enqueue(t, q, callbacks)
	r.First = append(r.First, Delivery{t, q})
}

// Block lets the transaction's own queue wait for a response, which sends it first.
func (t *Transaction) Block() Delivery {
	t.isBlocked = true
	return Delivery{t, &t.Queue}
}

// Unblock sends callbacks that waited for a response, as soon as they are due.
func (p *sender) Unblock(t *Transaction) {
	t.isBlocked = false
	p.schedule(t, &t.Queue)
}

// Enqueue adds callbacks to a queue of a transaction; nil makes a queue of their own. Those without a body or an
// address are left out, and a forged one, which comes from an attacker, is not retried.
func (p *sender) Enqueue(t *Transaction, q *Queue, callbacks []Callback) {
	at := p.Now()
	if q == nil {
		q = &Queue{}
		t.others = append(t.others, q)
	}
	for _, c := range callbacks {
		if c.Body == nil || cmp.Or(c.URL, t.CallbackURL) == "" {
			continue
		}
		if c.Wait > 0 && !q.isBlocked {
			at = at.Add(p.Scaled(c.Wait))
		}
		if c.Hazard.isForged() {
			c.Retries = nil
		}
		c.NextAttemptAt, c.Outcome = at, CallbackWaiting
		q.Callbacks = append(q.Callbacks, &c)
	}
	p.schedule(t, q)
}

// schedule sets a timer for the next attempt of a queue, if none runs.
func (p *sender) schedule(t *Transaction, q *Queue) {
	c := q.next()
	if c == nil || q.hasTimer || q.isSending || q.isBlocked {
		return
	}
	q.hasTimer = true
	p.run(c.NextAttemptAt.Sub(p.Now()), func() {
		p.Locked(func() { q.hasTimer = false })
		p.attempt(p.ctx, Delivery{t, q}, func(bool) {})
	})
}

// deliver sends the callbacks of a blocked queue until one has to be retried, and then calls done. The rest follows.
func (p *sender) deliver(ctx context.Context, d Delivery, done func()) {
	p.attempt(ctx, d, func(isDone bool) {
		if isDone {
			p.deliver(ctx, d, done)
			return
		}
		p.Locked(func() {
			d.q.isBlocked = false
			p.schedule(d.t, d.q)
		})
		done()
	})
}

// Deliver sends the callbacks that come before a response, and then calls done. It never waits if Config.Post is set.
func (p *sender) Deliver(r Response, done func()) {
	if len(r.First) == 0 {
		done()
		return
	}
	first := r.First[0]
	r.First = r.First[1:]
	p.deliver(p.ctx, first, func() { p.Deliver(r, done) })
}

// attempt makes the next delivery attempt of a queue, and then reports whether a callback is delivered or given up.
func (p *sender) attempt(ctx context.Context, d Delivery, then func(isDone bool)) {
	var c *Callback
	var out Outgoing
	p.Locked(func() {
		if c = d.q.next(); c == nil || d.q.isSending || p.Closed() {
			c = nil
			return
		}
		d.q.isSending = true
		out = Outgoing{Kind: d.t.Kind, Key: d.t.Key, Status: c.Status, Method: cmp.Or(c.Method, http.MethodPost),
			URL: cmp.Or(c.URL, d.t.CallbackURL), Body: c.Body, Hazard: c.Hazard}
		c.Hazard.spoil(&out)
	})
	if c == nil {
		then(false)
		return
	}
	if c.Sign != nil {
		out.Header = c.Sign(p.Now())
	}
	done := func(status int, err error) {
		isDone := false
		p.Locked(func() {
			p.recordAttempt(d, c, status, err)
			isDone = c.Outcome != CallbackWaiting
		})
		then(isDone)
	}
	if p.config.Post != nil {
		p.config.Post(out, done)
		return
	}
	done(p.post(ctx, out))
}

func (p *sender) recordAttempt(d Delivery, c *Callback, status int, err error) {
	d.q.isSending = false
	a := Attempt{At: p.Now(), Status: status}
	if err != nil {
		a.Error = err.Error()
	}
	c.Attempts = append(c.Attempts, a)
	switch made := len(c.Attempts); {
	case status >= 200 && status < 300:
		c.Outcome = CallbackDelivered
	case made > len(c.Retries):
		c.Outcome = CallbackGivenUp
	default:
		c.NextAttemptAt = a.At.Add(p.Scaled(c.Retries[made-1]))
	}
	p.log.record("callback", d.t.Keys, status)
	if p.changed != nil {
		p.changed(d.t)
	}
	p.schedule(d.t, d.q)
}

// post makes one delivery attempt and returns its status, or 0 and an error that does not quote the address.
func (p *sender) post(ctx context.Context, out Outgoing) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callbackTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, out.Method, out.URL, bytes.NewReader(out.Body))
	if err != nil {
		return 0, errors.New("bad address")
	}
	request.Header.Set("Content-Type", jsonType)
	for name, value := range out.Header {
		request.Header.Set(name, value)
	}
	response, err := p.config.Client.Do(request)
	if err != nil {
		return 0, errors.Unwrap(err) // the outer error quotes the address with its token
	}
	defer func() { _ = response.Body.Close() }()
	if _, err = io.Copy(io.Discard, io.LimitReader(response.Body, MaxBodyBytes)); err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}
