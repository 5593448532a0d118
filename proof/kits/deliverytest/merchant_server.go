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

// MerchantServer is the merchants' HTTP server. Each path responds with 200 unless a test sets another response.
type MerchantServer struct {
	URL string

	mutex    sync.Mutex
	now      func() time.Time
	received []ReceivedNotification
	handlers map[string]http.HandlerFunc
}

// ReceivedNotification is one notification that arrived. At is a time of the fixture's clock.
type ReceivedNotification struct {
	Path   string
	Header http.Header
	Body   string
	At     time.Time
}

// ID returns the webhook-id.
func (n ReceivedNotification) ID() string { return n.Header.Get("webhook-id") }

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

// RespondWith sets the status and headers of a path's responses; header has names and values in turn.
func (s *MerchantServer) RespondWith(path string, status int, header ...string) {
	s.RespondFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	})
}

// RespondFunc sets the handler of a path; nil responds with 200 again.
func (s *MerchantServer) RespondFunc(path string, respond http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.handlers[path] = respond
}

// Received returns the notifications that arrived at a path so far, or with "" at every path.
func (s *MerchantServer) Received(path string) []ReceivedNotification {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	otherPath := func(n ReceivedNotification) bool { return path != "" && n.Path != path }
	return slices.DeleteFunc(slices.Clone(s.received), otherPath)
}

// ServeHTTP implements http.Handler.
func (s *MerchantServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mutex.Lock()
	s.received = append(s.received, ReceivedNotification{r.URL.Path, r.Header.Clone(), string(body), s.now()})
	respond := s.handlers[r.URL.Path]
	s.mutex.Unlock()
	if respond != nil {
		respond(w, r)
	}
}
