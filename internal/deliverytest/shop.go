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

// Shop is the merchants' server. It takes everything with 200 until a test says otherwise, each path on its own.
type Shop struct {
	URL string

	mutex   sync.Mutex
	now     func() time.Time
	posts   []Post
	answers map[string]http.HandlerFunc
}

// Post is one notification that arrived. At is the kit's clock.
type Post struct {
	Path   string
	Header http.Header
	Body   string
	At     time.Time
}

// ID is the webhook-id.
func (p Post) ID() string { return p.Header.Get("webhook-id") }

// NewShop starts the server.
func NewShop(t testing.TB) *Shop {
	t.Helper()
	s := &Shop{answers: map[string]http.HandlerFunc{}, now: time.Now}
	server := httptest.NewServer(s)
	s.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// Answers makes a path answer with a status.
func (s *Shop) Answers(path string, status int, header ...string) {
	s.Handle(path, func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	})
}

// Handle makes a path answer by a function; nil takes everything again.
func (s *Shop) Handle(path string, answer http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answers[path] = answer
}

// Posts are what arrived so far, at one path or, with "", at all.
func (s *Shop) Posts(path string) []Post {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(s.posts), func(p Post) bool { return path != "" && p.Path != path })
}

// ServeHTTP is http.Handler's.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mutex.Lock()
	s.posts = append(s.posts, Post{Path: r.URL.Path, Header: r.Header.Clone(), Body: string(body), At: s.now()})
	answer := s.answers[r.URL.Path]
	s.mutex.Unlock()
	if answer != nil {
		answer(w, r)
	}
}
