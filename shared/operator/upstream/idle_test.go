package upstream

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A connection is reused within five seconds of idle time; after that, a new one is opened. The test uses a fake clock
// and pipes as connections. It does not cover net/http's comparison with the wall clock, which has the same
// IdleConnTimeout.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened atomic.Int32
		transport := pipeTransport(&opened)
		defer transport.CloseIdleConnections()
		client := NewClient(transport)
		steps := []struct {
			idle time.Duration
			want int32
		}{{0, 1}, {0, 1}, {4900 * time.Millisecond, 1}, {5100 * time.Millisecond, 2}, {time.Hour, 3}}
		for _, step := range steps {
			time.Sleep(step.idle)
			request := Request{Method: http.MethodPost, URL: "http://127.0.0.1/", Body: []byte("{}")}
			x := client.Send(t.Context(), request)
			if !x.IsSuccess() {
				t.Fatalf("status %d: %v", x.Status, x.Err)
			}
			if opened.Load() != step.want {
				t.Fatalf("after %s of idle time: %d connections opened, want %d", step.idle, opened.Load(), step.want)
			}
			synctest.Wait() // until the connection is back in the pool
		}
	})
}

// The calls that the sweep makes at once, of lookups and of payers' SMS, find their connections again.
func TestBusyConnectionsAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 32 + 32
		var opened atomic.Int32
		transport := pipeTransport(&opened)
		defer transport.CloseIdleConnections()
		client := NewClient(transport)
		for range 3 {
			var group sync.WaitGroup
			for range calls {
				group.Go(func() {
					request := Request{Method: http.MethodPost, URL: "http://127.0.0.1/", Body: []byte("{}")}
					if x := client.Send(t.Context(), request); !x.IsSuccess() {
						t.Errorf("status %d: %v", x.Status, x.Err)
					}
				})
			}
			group.Wait()
			synctest.Wait() // until the connections are back in the pool
		}
		if opened.Load() > calls {
			t.Errorf("%d connections opened, want at most %d", opened.Load(), calls)
		}
	})
}

// pipeTransport is the transport of a client, with pipes as connections. It counts those that it opened.
func pipeTransport(opened *atomic.Int32) *http.Transport {
	transport := newTransport()
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		opened.Add(1)
		ours, theirs := net.Pipe()
		go serve(theirs)
		return ours, nil
	}
	return transport
}

// serve responds to every request on a connection with 201.
func serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		const body = "{}"
		response := &http.Response{
			StatusCode: http.StatusCreated, ProtoMajor: 1, ProtoMinor: 1,
			ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		}
		if response.Write(conn) != nil {
			return
		}
	}
}
