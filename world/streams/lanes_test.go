package streams_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// holding is a stub of a function that blocks on one item until release is closed.
type holding struct {
	key     string
	release chan struct{}
	taken   chan string
}

func (h *holding) Invoke(ctx context.Context, payload []byte) ([]byte, bool, error) {
	if strings.Contains(string(payload), h.key) {
		select {
		case <-h.release:
		case <-ctx.Done():
		}
		h.taken <- h.key
		return nil, false, nil
	}
	h.taken <- "another"
	return nil, false, nil
}

// TestSlowItemDelaysOnlyItself blocks on one item and expects the items of the other lanes.
func TestSlowItemDelaysOnlyItself(t *testing.T) {
	e := newTable(t)
	e.put(t, "slow", "1")
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		e.put(t, key, "1")
	}
	function := &holding{key: `"slow"`, release: make(chan struct{}), taken: make(chan string, 100)}
	checkpoint := filepath.Join(t.TempDir(), "checkpoint")
	p := newPump(t, e, &relay{}, checkpoint)
	p.Function, p.Stream.ParallelizationFactor = function, 10
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-function.taken:
			if got != want {
				t.Fatalf("received %s, want %s", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("%s was not received in time", want)
		}
	}
	expect("another")
	expect("another")
	close(function.release)
	for got := ""; got != `"slow"`; {
		select {
		case got = <-function.taken:
		case <-ctx.Done():
			t.Fatal("the blocked item was not received in time")
		}
	}
	cancel()
	<-done
}
