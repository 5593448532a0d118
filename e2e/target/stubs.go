package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"mobilegateway/internal/local/inbox"
	"mobilegateway/internal/sandbox"
)

// sandboxSpeed divides the sandbox's waits, as in the stories' local run.
const sandboxSpeed = 60

// serveStubs holds a sandbox operator and an inbox on this host until an interrupt, for a stack that reaches it, as one on
// LocalStack does. It tells the variables by which a stack is furnished with them.
func serveStubs(ctx context.Context, dir string, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	sandboxListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	inboxListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, sandboxListener.Close())
	}
	sandboxURL, inboxURL, token := "http://"+sandboxListener.Addr().String(), "http://"+inboxListener.Addr().String(), rand.Text()
	operator, err := sandbox.New(sandbox.Config{Dir: filepath.Join(dir, "sandbox"), Tokens: []string{token}, BaseURL: sandboxURL, Speed: sandboxSpeed})
	if err != nil {
		return err
	}
	merchantInbox, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), time.Now)
	if err != nil {
		return errors.Join(err, operator.Close())
	}
	servers := []*http.Server{startServer(sandboxListener, operator.Handler()), startServer(inboxListener, merchantInbox.Handler())}
	_, err = fmt.Fprintf(out, "export SANDBOX_URL=%s SANDBOX_TOKEN=%s INBOX_URL=%s\n", sandboxURL, token, inboxURL)
	if err == nil {
		<-ctx.Done()
	}
	for _, server := range servers {
		err = errors.Join(err, server.Close())
	}
	return errors.Join(err, operator.Close(), merchantInbox.Close())
}

// startServer serves a handler until the server is closed.
func startServer(listener net.Listener, handler http.Handler) *http.Server {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	return server
}
