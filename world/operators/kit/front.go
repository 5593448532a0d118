package kit

import (
	"context"
	"io"
	"net/http"
	"time"
)

// served receives the response to one call. It is the http.ResponseWriter of the router, which may also refuse a call.
type served struct {
	Response
	isMade bool // by an operation
	body   []byte
	header http.Header
}

// Header implements http.ResponseWriter.
func (s *served) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *served) WriteHeader(status int) { s.Status = status }

// Write implements http.ResponseWriter.
func (s *served) Write(b []byte) (int, error) {
	s.Body = append(s.Body, b...)
	return len(b), nil
}

// Serve makes the response to a request, whose body has been read. It never waits: what happens first and how late the
// response comes is in the response, and the caller does it. Every effect comes without the caller. The names of the
// request's headers may have any spelling.
func (p *Platform) Serve(r *http.Request, body []byte) Response {
	request := *r
	request.Header = http.Header{}
	for name, values := range r.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	s := &served{body: body, header: http.Header{}}
	p.mux.ServeHTTP(s, &request)
	if !s.isMade {
		s.Response.Header = map[string]string{}
		for name, values := range s.header {
			s.Response.Header[name] = values[0]
		}
	}
	return s.Response
}

// Handler serves the platform over HTTP. Only it waits.
func (p *Platform) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, MaxBodyBytes+1))
		if err != nil || len(body) > MaxBodyBytes && p.spec.Extension == nil {
			http.Error(w, "body too large or cut", http.StatusBadRequest)
			return
		}
		response := p.Serve(r, body)
		p.sendFirst(r.Context(), response)
		if response.Delay > 0 && !p.wait(r.Context(), response.Delay) {
			response.Close = true
		} else if response.Late != nil {
			response = response.Late()
			p.sendFirst(r.Context(), response)
		}
		if response.Close {
			panic(http.ErrAbortHandler) // the server closes the connection
		}
		for name, value := range response.Header {
			w.Header().Set(name, value)
		}
		if response.Type != "" {
			w.Header().Set("Content-Type", response.Type)
		}
		w.WriteHeader(response.Status)
		_, _ = w.Write(response.Body) // an error means that the client is gone
	})
}

// wait returns false if the client is gone, or the platform closes, before d is over.
func (s *source) wait(ctx context.Context, d time.Duration) bool {
	late := make(chan struct{})
	s.config.After(d, func() { close(late) })
	select {
	case <-late:
		return true
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return false
}

// sendFirst sends the callbacks that come before a response, within earlyCallbackTimeout.
func (p *sender) sendFirst(ctx context.Context, response Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), earlyCallbackTimeout)
	defer cancel()
	for _, delivery := range response.First {
		done := make(chan struct{})
		p.deliver(ctx, delivery, func() { close(done) })
		<-done
	}
}
