package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/operator/upstream"
)

// serve starts a server, and returns a request for it.
func serve(t *testing.T, handler http.HandlerFunc) upstream.Request {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return upstream.Request{Method: http.MethodPost, URL: server.URL + "/a%2Fb?x=%20", Body: []byte(`{"a":1}`)}
}

func send(t *testing.T, r upstream.Request) upstream.Exchange {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return upstream.NewClient(nil).Send(ctx, r)
}

func TestSend(t *testing.T) {
	var got *http.Request
	var body []byte
	request := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Their", "value")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"b":2}`)
	})
	request.Header = map[string]string{"X-Reference-Id": "k", "Content-Type": "application/x-thing", "Absent": ""}
	x := send(t, request)
	if x.Err != nil || x.Status != 202 || !x.IsSuccess() || x.Header.Get("X-Their") != "value" || !x.MayHaveSent {
		t.Fatalf("%+v", x)
	}
	if doc, ok := x.Document(); !ok || upstream.TextOrNumber(doc, "b") != "2" {
		t.Errorf("document %s, %v", x.Body, ok)
	}
	if got.RequestURI != "/a%2Fb?x=%20" || string(body) != `{"a":1}` || got.ContentLength != 7 {
		t.Errorf("%s, body %s of length %d", got.RequestURI, body, got.ContentLength)
	}
	for name, want := range map[string]string{
		"X-Reference-Id": "k", "Content-Type": "application/x-thing", "Accept": "application/json", "Absent": "",
		"User-Agent": "mobilegateway", "Accept-Encoding": "",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
}

// The spelling of a header's name is the driver's.
func TestHeaderSpelling(t *testing.T) {
	names := map[string][]string{}
	client := upstream.NewClient(transport(func(r *http.Request) (*http.Response, error) {
		names = r.Header
		return nil, io.EOF
	}))
	client.Send(t.Context(), upstream.Request{
		Method: http.MethodGet, URL: "http://127.0.0.1/", Header: map[string]string{"WSO2-Authorization": "x"},
	})
	if _, found := names["WSO2-Authorization"]; !found || names["Content-Type"] != nil {
		t.Errorf("headers %v; want the spelling as it is, and no Content-Type without a body", names)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// MayHaveSent is false only if certainly no byte was written.
func TestSendFails(t *testing.T) {
	refused := serve(t, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused.URL = "http://" + listener.Addr().String() + "/"
	_ = listener.Close() // nothing listens there any more
	malformed := refused
	malformed.URL = "http://127.0.0.1:secret/"
	for _, c := range []struct {
		name        string
		request     upstream.Request
		mayHaveSent bool
	}{
		{"the connection is refused", refused, false},
		{"a malformed address", malformed, false},
		{"the connection is cut after the request", serve(t, func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), true},
		{"the response is cut", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"a":`)
		}), true},
		{"the response is too long", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", upstream.MaxResponseBytes+1))
		}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := send(t, c.request)
			if x.Err == nil || x.MayHaveSent != c.mayHaveSent || x.IsSuccess() {
				t.Errorf("%+v; want an error, may have sent %v", x, c.mayHaveSent)
			}
			if _, ok := x.Document(); ok || strings.Contains(fmt.Sprint(x.Err), "secret") {
				t.Errorf("a document, or an error that quotes the request: %v", x.Err)
			}
		})
	}
}

// An expired context sends nothing. A response as long as the limit, a redirect and an error status are responses.
func TestSendResponses(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	longest := strings.Repeat("x", upstream.MaxResponseBytes)
	request := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			_, _ = io.WriteString(w, longest)
		case http.MethodPut:
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	if x := upstream.NewClient(nil).Send(ctx, request); !errors.Is(x.Err, context.Canceled) || x.MayHaveSent {
		t.Errorf("an expired context: %+v", x)
	}
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodPut: 307, http.MethodPost: 500} {
		request.Method = method
		if x := send(t, request); x.Err != nil || x.Status != want || x.IsSuccess() != (want == 200) {
			t.Errorf("%s: status %d, %v; want %d", method, x.Status, x.Err, want)
		}
	}
}

func TestCheckCallbackSecret(t *testing.T) {
	good := "abcdefghijklmnopqrstuvwxyzABC_-9"
	for text, wantOK := range map[string]bool{
		good: true, good + "0": true, good[1:]: false, "": false, good + "/": false, good + " ": false,
		"." + good: false, good[:16] + "/" + good[16:]: false, good + "é": false,
	} {
		if err := upstream.CallbackSecretField("pay").Check(text); (err == nil) != wantOK {
			t.Errorf("%q: %v, want usable %v", text, err, wantOK)
		} else if err != nil && text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("the error quotes %q: %v", text, err)
		}
	}
}
