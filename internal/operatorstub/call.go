package operatorstub

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	maxBodyBytes = 64 << 10
	jsonType     = "application/json"
	htmlType     = "text/html; charset=utf-8"
)

// Call is one call of an operation.
type Call struct {
	Request *http.Request // its body has been read
	Body    []byte
	Keys
}

// Keys are what a call is about. Each field may be empty.
type Keys struct {
	Key     string // the upstream key
	OrderID string
	// MSISDN is the payer's number of a call that creates a transaction. It selects the outcome.
	MSISDN string
}

// Operation is one endpoint. Pattern is that of http.ServeMux.
type Operation struct {
	Pattern string
	Name    string
	// Identify reads the keys of a call, under the lock. It must accept every body.
	Identify func(r *http.Request, body []byte) Keys
	// Serve makes the response, under the lock.
	Serve func(c *Call) Response
}

// Response is the response to a call.
type Response struct {
	Status int
	Type   string // Content-Type, if there is a body
	Header map[string]string
	Body   []byte
	// Close closes the connection without a response.
	Close bool
	// First are callbacks that are sent before the response.
	First []Callback
}

// JSON makes a response of v, which must be marshalable.
func JSON(status int, v any) Response {
	body, err := json.Marshal(v)
	if err != nil {
		panic("operatorstub: " + err.Error())
	}
	return Response{Status: status, Type: jsonType, Body: body}
}

// HTML makes a page with one line of text, as a firewall or a proxy sends it. The text is not escaped.
func HTML(status int, text string) Response {
	body := "<html><head><title>" + text + "</title></head><body>" + text + "</body></html>"
	return Response{Status: status, Type: htmlType, Body: []byte(body)}
}

// faultsOf returns the kit's faults and those of a Spec.
func faultsOf(spec Spec) map[string]Response {
	faults := map[string]Response{
		"cut":     {Close: true},
		"garbage": {Status: http.StatusOK, Type: jsonType, Body: []byte("<html>OK{{\x00 no JSON")},
		"html":    HTML(http.StatusOK, "Request Rejected"),
		"empty":   {Status: http.StatusOK},
		"500":     HTML(http.StatusInternalServerError, "Internal Server Error"),
		"503":     HTML(http.StatusServiceUnavailable, "Service Unavailable"),
		"429":     HTML(http.StatusTooManyRequests, "Too Many Requests"),
	}
	maps.Copy(faults, spec.Faults)
	return faults
}

// validMode reports whether a mode is ok, slow, or a fault with or without "-applied".
func (p *Platform) validMode(mode string) bool {
	_, ok := p.faults[strings.TrimSuffix(mode, "-applied")]
	return ok || mode == "ok" || mode == "slow"
}

// Handler serves the operations and the control paths.
func (p *Platform) Handler(operations ...Operation) http.Handler {
	mux := http.NewServeMux()
	for _, o := range operations {
		mux.HandleFunc(o.Pattern, func(w http.ResponseWriter, r *http.Request) { p.handle(w, r, o) })
	}
	p.addControl(mux, operations)
	return mux
}

func (p *Platform) handle(w http.ResponseWriter, r *http.Request, o Operation) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		http.Error(w, "body too large or cut", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	c := &Call{Request: r, Body: body, Keys: o.Identify(r, body)}
	mode := p.selectMode(o, c)
	p.mu.Unlock()
	if mode != "slow" {
		p.write(w, r, o, c, p.respond(mode, o, c))
		return
	}
	late := make(chan Response, 1)
	p.config.After(slowResponseDelay, func() { late <- p.respond("ok", o, c) })
	select {
	case response := <-late:
		p.write(w, r, o, c, response)
	case <-r.Context().Done():
		p.record(o.Name, c.Keys, 0)
	}
}

// selectMode takes the next mode of a script, or that of the number for the first call under a key.
func (p *Platform) selectMode(o Operation, c *Call) string {
	id := [2]string{o.Name, c.Key}
	p.attempts[id]++
	if mode, ok := p.nextScripted(o.Name, c.Keys); ok {
		return mode
	}
	if c.MSISDN == "" || p.attempts[id] > 1 {
		return "ok"
	}
	return p.OutcomeFor(c.MSISDN).orOK()
}

func (p *Platform) respond(mode string, o Operation, c *Call) Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	fault, applied := strings.CutSuffix(mode, "-applied")
	if mode != "ok" && !applied {
		return p.faults[fault]
	}
	response := o.Serve(c)
	if mode == "ok" {
		return response
	}
	faulty := p.faults[fault]
	faulty.First = response.First
	return faulty
}

func (p *Platform) write(w http.ResponseWriter, r *http.Request, o Operation, c *Call, response Response) {
	if len(response.First) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), earlyCallbackTimeout)
		defer cancel()
		p.deliver(ctx, c.Keys, response.First)
	}
	if response.Close {
		p.record(o.Name, c.Keys, 0)
		panic(http.ErrAbortHandler)
	}
	p.record(o.Name, c.Keys, response.Status)
	for name, value := range response.Header {
		w.Header().Set(name, value)
	}
	if response.Type != "" {
		w.Header().Set("Content-Type", response.Type)
	}
	w.WriteHeader(response.Status)
	_, _ = w.Write(response.Body)
}

// callRecord is one call or callback, without secrets.
type callRecord struct {
	Operation string    `json:"operation"`
	Key       string    `json:"key"`
	OrderID   string    `json:"order_id,omitempty"`
	Status    int       `json:"status"`
	At        time.Time `json:"at"`
}

func (p *Platform) record(operation string, k Keys, status int) {
	p.mu.Lock()
	p.calls = append(p.calls, callRecord{operation, k.Key, k.OrderID, status, p.Now()})
	p.mu.Unlock()
	p.config.Logf("%s: %s %s: %d", p.spec.Operator, operation, k.Key, status)
}

// Callback is one callback. Without a URL it is not sent.
type Callback struct {
	Method, URL string
	Header      map[string]string // Content-Type is application/json by default
	Body        []byte
	// Sign makes further headers at each attempt, without the lock; nil adds none.
	Sign func(at time.Time) map[string]string
	// Wait is the pause after the callback before it. Speed divides it.
	Wait time.Duration
	// Retries are the pauses before further attempts after a status outside 200 to 299. Speed divides them.
	Retries []time.Duration
}

// Send sends callbacks one after the other, each with its retries, in the background.
func (p *Platform) Send(t *Transaction, callbacks []Callback) {
	if len(callbacks) == 0 {
		return
	}
	keys := Keys{Key: t.Key, OrderID: t.OrderID}
	p.config.After(0, func() { p.deliver(context.Background(), keys, callbacks) })
}

// deliver sends callbacks. The one that has a retry left blocks those after it.
func (p *Platform) deliver(ctx context.Context, keys Keys, callbacks []Callback) {
	for i, c := range callbacks {
		if c.URL == "" {
			continue
		}
		if c.Wait > 0 {
			rest := slices.Clone(callbacks[i:])
			rest[0].Wait = 0
			p.deliverAfter(ctx, c.Wait, keys, rest)
			return
		}
		status := p.attempt(ctx, c)
		p.record("callback", keys, status)
		if status/100 == 2 || len(c.Retries) == 0 {
			continue
		}
		rest := slices.Clone(callbacks[i:])
		rest[0].Retries = c.Retries[1:]
		p.deliverAfter(ctx, c.Retries[0], keys, rest)
		return
	}
}

func (p *Platform) deliverAfter(ctx context.Context, pause time.Duration, keys Keys, callbacks []Callback) {
	pause = max(time.Duration(float64(pause)/p.config.Speed), minDelay)
	p.config.After(pause, func() { p.deliver(context.WithoutCancel(ctx), keys, callbacks) })
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
	for name, value := range c.Header {
		request.Header.Set(name, value)
	}
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
