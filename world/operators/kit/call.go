package kit

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// MaxBodyBytes is the longest request body. A Call has one byte more if its body was longer.
const MaxBodyBytes = 64 << 10

const (
	jsonType = "application/json"
	htmlType = "text/html; charset=utf-8"
)

// Call is one call of an operation.
type Call struct {
	Request *http.Request // its body has been read
	Body    []byte
	Fields  // of the body; nil unless it is one JSON object
	Keys
	// Parsed is what Operation.Identify made of the body, if it made something.
	Parsed any
	// Mode is the mode of the call, and Faulty is true if its response is not correct or late.
	Mode   string
	Faulty bool
}

// Keys are what a call is about. Each field may be empty.
type Keys struct {
	Key     string `json:"key"` // the upstream key
	OrderID string `json:"-"`
	// MSISDN is the payer's number of a call that creates a transaction. It selects the outcome.
	MSISDN string `json:"-"`
	// CallbackOrder is the gateway's order id in the address for the callback. It may be longer than OrderID.
	CallbackOrder string `json:"-"`
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
	// Plain has no modes and is in no log: a page or a control path. With First a call is authorized, checked and begun
	// (Extension) before its mode is selected, and a slow one is served at once: Serve applies it later by itself.
	Plain, First bool
	// OnlyNamed is true if only scripts that name the operation are for it.
	OnlyNamed bool
}

// Response is the response to a call.
type Response struct {
	Status int
	Type   string // Content-Type, if there is a body
	Header map[string]string
	Body   []byte
	// Close closes the connection without a response.
	Close bool
	// First are callbacks that are sent before the response: SendFirst adds them.
	First []Delivery
	// Late replaces the response after a delay, which is never scaled; nil keeps it.
	Delay time.Duration
	Late  func() Response
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

// handle serves a call of an operation, without its waits.
func (p *Platform) handle(o Operation, c *Call) Response {
	if decodeObject(c.Body, &c.Fields) != nil {
		c.Fields = nil // a form, for example
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.Closed():
		return Response{Close: true}
	case o.Plain:
		return o.Serve(c)
	}
	order := path.Base(path.Dir(p.value(c, o.Callback))) // the last segment is the token
	c.Keys = Keys{p.value(c, o.Key), p.value(c, o.OrderID), p.value(c, o.MSISDN), order}
	if o.Identify != nil {
		o.Identify(c)
	}
	if o.First {
		if refused := p.check(o, c); refused.Status != 0 {
			return p.respondAndRecord(o, c, refused, false)
		}
	}
	mode, delay := p.selectMode(o, c)
	if mode == "slow" && !o.First {
		return p.serveLater(o, c)
	} else if mode == "slow" {
		delay = SlowDelay
	}
	response := p.respond(mode, o, c)
	response.Delay = max(response.Delay, delay)
	return p.respondAndRecord(o, c, response, o.First)
}

// serveLater serves a slow call when its time has come, also if its client is gone by then.
func (p *Platform) serveLater(o Operation, c *Call) Response {
	var response Response
	isServed := false
	serve := func() {
		if !isServed {
			isServed = true
			response = p.respondAndRecord(o, c, p.respond("ok", o, c), false)
		}
	}
	p.AfterUnscaled(SlowDelay, serve)
	return Response{Delay: SlowDelay, Late: func() Response {
		p.Locked(serve)
		return response
	}}
}

// selectMode takes the next mode of a script, or that of the number for the first call under a key.
func (p *Platform) selectMode(o Operation, c *Call) (mode string, delay time.Duration) {
	extension, id := p.spec.Extension, [2]string{o.Name, c.Key}
	isFirst := p.attempts[id] == 0
	if extension == nil {
		p.attempts[id]++
	} else if o.First {
		isFirst = extension.Begin(c)
	}
	if mode, ok := p.nextScripted(o, c.Keys); ok {
		return mode, 0
	}
	if mode := p.config.Hazards.mode(o.Name, c.Keys, !isFirst); mode != "" {
		return mode, 0
	}
	if outcome := p.OutcomeFor(c.MSISDN); c.MSISDN != "" && isFirst && outcome.Mode != "" {
		return outcome.Mode, 0
	}
	if extension != nil && o.First {
		return extension.Draw(c)
	}
	return "ok", 0
}

// respond makes the response to a call in a mode. It panics for a mode that the platform does not understand.
func (p *Platform) respond(mode string, o Operation, c *Call) Response {
	fault, isFault, isApplied := p.Fault(mode, c.Key)
	if !isFault && !p.isMode(mode) && !slices.Contains(p.spec.Hazards, Hazard(mode)) {
		panic("kit: " + p.spec.Operator + " does not understand the mode " + mode)
	}
	c.Mode, c.Faulty = mode, isFault || mode == "slow"
	if isFault && !isApplied {
		return fault
	}
	response := p.serve(o, c)
	if mode == "twice" { // a proxy repeats the request, and passes the second response on
		first := response.First
		response = p.serve(o, c)
		response.First = append(first, response.First...)
	}
	if isFault {
		fault.First = response.First
		return fault
	}
	return response
}

func (p *Platform) serve(o Operation, c *Call) Response {
	if !o.First {
		if refused := p.check(o, c); refused.Status != 0 {
			return refused
		}
	}
	return o.Serve(c)
}

// check returns the refusal of a call, or the zero Response.
func (p *Platform) check(o Operation, c *Call) Response {
	if p.spec.Authorize != nil && !o.Open {
		if refused := p.spec.Authorize(c); refused.Status != 0 {
			return refused
		}
	}
	if o.Check == nil {
		return Response{}
	}
	return o.Check(c)
}

// respondAndRecord adds a call to the log.
func (p *Platform) respondAndRecord(o Operation, c *Call, r Response, isBegun bool) Response {
	if isBegun {
		p.spec.Extension.Record(c, r)
	}
	p.log.record(o.Name, c.Keys, r.logStatus())
	return r
}

func (r Response) logStatus() int {
	if r.Close {
		return 0
	}
	return r.Status
}
