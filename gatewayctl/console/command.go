package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// Command is the command console.
type Command struct {
	Port         int  `default:"0" placeholder:"PORT" help:"The port on 127.0.0.1; a free one if not given."`
	AllowChanges bool `help:"Allow acts: each shows its dry run, and then needs a reason. Else the console only shows."`
}

// Run serves the console until it is interrupted. It prints the one-time address. The console uses the credentials and
// the deployment of this command.
func (c *Command) Run(s *session.Session, run Run) error {
	if s.Yes || s.JSON {
		return output.UsageError("console takes neither --yes nor --json: an act on its pages needs its own reason")
	}
	if err := s.OpenStores(); err != nil { // a missing setting is an error now, not on each page
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(s, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)))
	if err != nil {
		return fmt.Errorf("cannot listen on port %d: %w; choose another one with --port", c.Port, err)
	}
	where, global := s.LedgerTable, []string(nil)
	if s.Local {
		where, global = "", []string{"--" + session.LocalFlag}
	}
	sandbox := ""
	if s.Local {
		sandbox = s.SandboxURL
	}
	made, err := New(Config{
		Run: run, Global: global, Now: s.Now, Rand: s.Rand, Port: PortOf(listener), Where: where,
		AllowChanges: c.AllowChanges, Local: s.Local, SandboxURL: sandbox,
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.Stdout, "Console    http://%s%s\n", listener.Addr(), made.Opening()); err != nil {
		return err
	}
	fmt.Fprintln(s.Stderr, "It opens one session, which ends with this command. Ctrl-C ends it.")
	return Serve(s, listener, made)
}

// PortOf is the port of a listener.
func PortOf(listener net.Listener) string {
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// Limits of the server.
const (
	headerTimeout = 10 * time.Second
	drainTimeout  = 2 * time.Second
)

// Serve serves a handler until the context ends.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout}
	stop := context.AfterFunc(ctx, func() {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if server.Shutdown(drain) != nil {
			_ = server.Close()
		}
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
