package deliverytest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// MerchantServer is the merchants' server. It takes everything with 200 until a test says otherwise, each path on its own.
type MerchantServer struct {
	URL string

	mutex    sync.Mutex
	now      func() time.Time
	received []ReceivedNotification
	handlers map[string]http.HandlerFunc
}

// ReceivedNotification is one notification that arrived. At is the kit's clock.
type ReceivedNotification struct {
	Path   string
	Header http.Header
	Body   string
	At     time.Time
}

// ID is the webhook-id.
func (p ReceivedNotification) ID() string { return p.Header.Get("webhook-id") }

// NewMerchantServer starts the server.
func NewMerchantServer(t testing.TB) *MerchantServer {
	t.Helper()
	s := &MerchantServer{handlers: map[string]http.HandlerFunc{}, now: time.Now}
	server := httptest.NewServer(s)
	s.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// RespondWith makes a path answer with a status.
func (s *MerchantServer) RespondWith(path string, status int, header ...string) {
	s.RespondFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	})
}

// RespondFunc makes a path answer by a function; nil takes everything again.
func (s *MerchantServer) RespondFunc(path string, respond http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.handlers[path] = respond
}

// Received are what arrived so far, at one path or, with "", at all.
func (s *MerchantServer) Received(path string) []ReceivedNotification {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(s.received), func(p ReceivedNotification) bool { return path != "" && p.Path != path })
}

// ServeHTTP is http.Handler's.
func (s *MerchantServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mutex.Lock()
	s.received = append(s.received, ReceivedNotification{Path: r.URL.Path, Header: r.Header.Clone(), Body: string(body), At: s.now()})
	respond := s.handlers[r.URL.Path]
	s.mutex.Unlock()
	if respond != nil {
		respond(w, r)
	}
}
