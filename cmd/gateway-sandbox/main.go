// Command gateway-sandbox runs the sandbox operator by itself, for gateways on other machines: its API, its payment page
// and its control port (internal/sandbox). The local run has one of its own and does not need it.
//
// Flags say where it listens, and under which address it is known; tokens come from the environment alone, where no list of
// processes shows them: SANDBOX_TOKENS for the operator API, SANDBOX_CONTROL_TOKENS for the control port and
// SANDBOX_TESTS_TOKENS for its tests and slots alone, each one or several with commas between. SANDBOX_SEED and its rates
// make it unkind from the start. It ends on SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"mobilegateway/internal/sandbox"
)

// Variables with the tokens. A token has at least minToken characters.
const (
	tokensVariable  = "SANDBOX_TOKENS"
	controlVariable = "SANDBOX_CONTROL_TOKENS"
	testsVariable   = "SANDBOX_TESTS_TOKENS"
	minToken        = 24
)

// drainTimeout is how long calls under way get at the end. It is short: an unkind operator makes calls wait for a minute.
const drainTimeout = 2 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.LookupEnv, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "gateway-sandbox:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	listen  string
	baseURL string
	dir     string
	speed   float64
}

// run serves until ctx ends. Its first line of output says where.
func run(ctx context.Context, arguments []string, lookup func(string) (string, bool), out io.Writer) error {
	set, config, err := configure(arguments, lookup, out)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", set.listen)
	if err != nil {
		return err
	}
	if config.BaseURL == "" {
		config.BaseURL = "http://" + listener.Addr().String()
	}
	config.Logf = func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	operator, err := sandbox.New(config)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: withHealth(operator.Handler()), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	config.Logf("gateway-sandbox: %s on %s", config.BaseURL, listener.Addr())
	select {
	case err = <-served:
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		if server.Shutdown(end) != nil {
			_ = server.Close()
		}
	}
	return errors.Join(err, operator.Close())
}

// configure reads flags and variables, and refuses what would leave the control port open to others.
func configure(arguments []string, lookup func(string) (string, bool), out io.Writer) (settings, sandbox.Config, error) {
	var set settings
	flags := flag.NewFlagSet("gateway-sandbox", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&set.listen, "listen", "127.0.0.1:3001", "address and port to listen on; port 0 for a free one")
	flags.StringVar(&set.baseURL, "base-url", "", "public base address, of payment_url too (default: the one it listens on)")
	flags.StringVar(&set.dir, "dir", "", "folder that keeps what the operator knows (default: memory alone)")
	flags.Float64Var(&set.speed, "speed", 1, "divides every delay and lifetime")
	if err := flags.Parse(arguments); err != nil {
		return set, sandbox.Config{}, err
	}
	steering, err := sandbox.FromEnvironment(lookup)
	if err != nil {
		return set, sandbox.Config{}, err
	}
	config := sandbox.Config{Dir: set.dir, BaseURL: strings.TrimRight(set.baseURL, "/"), Speed: set.speed, Steering: steering}
	for name, list := range map[string]*[]string{tokensVariable: &config.Tokens, controlVariable: &config.ControlTokens, testsVariable: &config.TestsTokens} {
		*list, err = tokens(lookup, name)
		if err != nil {
			return set, config, err
		}
	}
	open := isLocal(set.listen) && (set.baseURL == "" || isLocalURL(set.baseURL))
	switch {
	case flags.NArg() > 0:
		return set, config, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case len(config.Tokens) == 0:
		return set, config, fmt.Errorf("%s is needed: what gateways send as their access token", tokensVariable)
	case len(config.ControlTokens) == 0 && !open:
		return set, config, fmt.Errorf("%s is needed where others than this machine can call", controlVariable)
	case len(config.ControlTokens) == 0 && len(config.TestsTokens) > 0:
		return set, config, fmt.Errorf("%s is needed beside %s: without it the control port answers everybody", controlVariable, testsVariable)
	case set.baseURL != "" && !isBase(set.baseURL):
		return set, config, fmt.Errorf("base-url must be an http or https address without query")
	}
	return set, config, nil
}

// tokens reads a list; its error names no token.
func tokens(lookup func(string) (string, bool), name string) ([]string, error) {
	text, _ := lookup(name)
	if text == "" {
		return nil, nil
	}
	var all []string
	for token := range strings.SplitSeq(text, ",") {
		token = strings.TrimSpace(token)
		if len(token) < minToken {
			return nil, fmt.Errorf("%s: a token has at least %d characters", name, minToken)
		}
		all = append(all, token)
	}
	return all, nil
}

func isBase(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

func isLocalURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && isLoopback(u.Hostname())
}

func isLocal(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// withHealth adds GET /healthz, for whoever watches the program.
func withHealth(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("/", next)
	return mux
}
