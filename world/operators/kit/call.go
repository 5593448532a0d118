package kit

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
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
	Fields  // of the body; nil unless it is one JSON object
	Keys
}

// Keys are what a call is about. Each field may be empty.
type Keys struct {
	Key     string // the upstream key
	OrderID string
	// MSISDN is the payer's number of a call that creates a transaction. It selects the outcome.
	MSISDN string
	// CallbackOrder is the gateway's order id in the address for the callback. It may be longer than OrderID.
	CallbackOrder string
}

// match reports whether wanted is one of the keys. Empty wants all.
func (k Keys) match(wanted string) bool {
	return wanted == "" || slices.Contains([]string{k.Key, k.OrderID, k.MSISDN, k.CallbackOrder}, wanted)
}

// Operation is one endpoint. Pattern is that of http.ServeMux.
type Operation struct {
	Pattern, Name string
	// Key, OrderID and MSISDN are the sources of Keys: "header:X-Name", "path:name", "query:name", or the path of a
	// field in the body. "page:name" is the key of the page whose id is in the path. The default is none.
	Key, OrderID, MSISDN string
	// Callback is the source of the callback's address, for a platform that gets a digest of a long order id.
	Callback string
	// Identify changes the keys of a call, under the lock; nil changes nothing.
	Identify func(c *Call)
	// Open leaves Spec.Authorize out.
	Open bool
	// Check returns the refusal of a call after Spec.Authorize, or the zero Response; nil refuses none.
	Check func(c *Call) Response
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

// If returns a response on a condition, and else the zero Response, which refuses nothing.
func If(refuses bool, r Response) Response {
	if refuses {
		return r
	}
	return Response{}
}

// FirstOf returns the first response that is not zero, or the zero Response. It is for a table of If.
func FirstOf(all ...Response) Response {
	for _, r := range all {
		if r.Status != 0 {
			return r
		}
	}
	return Response{}
}

// JSON makes a response of v, which must be marshalable.
func JSON(status int, v any) Response {
	return Response{Status: status, Type: jsonType, Body: Marshal(v)}
}

// Marshal makes JSON of v, which must be marshalable.
func Marshal(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic("kit: " + err.Error())
	}
	return body
}

// HTML makes a page with one line of text, as a firewall or a proxy sends it. The text is not escaped.
func HTML(status int, text string) Response {
	body := "<html><head><title>" + text + "</title></head><body>" + text + "</body></html>"
	return Response{Status: status, Type: htmlType, Body: []byte(body)}
}

// Redirect sends the payer's browser to an address.
func Redirect(address string) Response {
	return Response{Status: http.StatusSeeOther, Header: map[string]string{"Location": address}}
}

// Form returns a field of a posted form, or "".
func (c *Call) Form(name string) string {
	form, _ := url.ParseQuery(string(c.Body)) // the fields before an error are right
	return form.Get(name)
}

// value returns the value of a source, as Operation lists them.
func (p *Platform) value(c *Call, source string) string {
	kind, name, found := strings.Cut(source, ":")
	switch {
	case !found:
		return c.Text(source)
	case kind == "header":
		return c.Request.Header.Get(name)
	case kind == "query":
		return c.Request.URL.Query().Get(name)
	case kind == "path":
		return c.Request.PathValue(name)
	}
	if t := p.FindPage(c.Request.PathValue(name)); t != nil {
		return t.Key
	}
	return ""
}

// Handler serves the operations and the control paths.
func (p *Platform) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, o := range p.spec.Operations {
		mux.HandleFunc(o.Pattern, func(w http.ResponseWriter, r *http.Request) { p.handle(w, r, o) })
	}
	p.addControl(mux)
	return mux
}

func (p *Platform) handle(w http.ResponseWriter, r *http.Request, o Operation) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		http.Error(w, "body too large or cut", http.StatusBadRequest)
		return
	}
	c := &Call{Request: r, Body: body}
	if decodeObject(body, &c.Fields) != nil {
		c.Fields = nil // a form, for example
	}
	p.mu.Lock()
	order := path.Base(path.Dir(p.value(c, o.Callback))) // the last segment is the token
	c.Keys = Keys{p.value(c, o.Key), p.value(c, o.OrderID), p.value(c, o.MSISDN), order}
	if o.Identify != nil {
		o.Identify(c)
	}
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
	if outcome := p.OutcomeFor(c.MSISDN); c.MSISDN != "" && p.attempts[id] == 1 && outcome.Mode != "" {
		return outcome.Mode
	}
	return "ok"
}

func (p *Platform) respond(mode string, o Operation, c *Call) Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch mode {
	case "ok":
		return p.serve(o, c)
	case "twice": // a proxy repeats the request, and passes the second response on
		first := p.serve(o, c).First
		repeated := p.serve(o, c)
		repeated.First = append(first, repeated.First...)
		return repeated
	}
	name, applied := strings.CutSuffix(mode, "-applied")
	faulty := p.faults(c.Key)[name]
	if applied {
		faulty.First = p.serve(o, c).First
	}
	return faulty
}

func (p *Platform) serve(o Operation, c *Call) Response {
	if p.spec.Authorize != nil && !o.Open {
		if refused := p.spec.Authorize(c); refused.Status != 0 {
			return refused
		}
	}
	if o.Check != nil {
		if refused := o.Check(c); refused.Status != 0 {
			return refused
		}
	}
	return o.Serve(c)
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
	writeResponse(w, response)
}

func writeResponse(w http.ResponseWriter, response Response) {
	for name, value := range response.Header {
		w.Header().Set(name, value)
	}
	if response.Type != "" {
		w.Header().Set("Content-Type", response.Type)
	}
	w.WriteHeader(response.Status)
	_, _ = w.Write(response.Body)
}
