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

// Variables with the tokens. A token has at least minTokenLength characters.
const (
	operatorTokensVariable = "SANDBOX_TOKENS"
	controlTokensVariable  = "SANDBOX_CONTROL_TOKENS"
	testsTokensVariable    = "SANDBOX_TESTS_TOKENS"
	minTokenLength         = 24
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

// options are the flags.
type options struct {
	listen  string
	baseURL string
	dir     string
	speed   float64
}

// run serves until ctx ends. Its first line of output says where.
func run(ctx context.Context, arguments []string, lookupEnv func(string) (string, bool), out io.Writer) error {
	opts, config, err := parseConfig(arguments, lookupEnv, out)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opts.listen)
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
	serveErr := make(chan error, 1)
	go func() { serveErr <- server.Serve(listener) }()
	config.Logf("gateway-sandbox: %s on %s", config.BaseURL, listener.Addr())
	select {
	case err = <-serveErr:
	case <-ctx.Done():
		shutdownCtx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		if server.Shutdown(shutdownCtx) != nil {
			_ = server.Close()
		}
	}
	return errors.Join(err, operator.Close())
}

// parseConfig reads flags and variables, and refuses what would leave the control port open to others.
func parseConfig(arguments []string, lookupEnv func(string) (string, bool), out io.Writer) (options, sandbox.Config, error) {
	var opts options
	flags := flag.NewFlagSet("gateway-sandbox", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&opts.listen, "listen", "127.0.0.1:3001", "address and port to listen on; port 0 for a free one")
	flags.StringVar(&opts.baseURL, "base-url", "", "public base address, of payment_url too (default: the one it listens on)")
	flags.StringVar(&opts.dir, "dir", "", "folder that keeps what the operator knows (default: memory alone)")
	flags.Float64Var(&opts.speed, "speed", 1, "divides every delay and lifetime")
	if err := flags.Parse(arguments); err != nil {
		return opts, sandbox.Config{}, err
	}
	steering, err := sandbox.FaultSettingsFromEnvironment(lookupEnv)
	if err != nil {
		return opts, sandbox.Config{}, err
	}
	config := sandbox.Config{Dir: opts.dir, BaseURL: strings.TrimRight(opts.baseURL, "/"), Speed: opts.speed, Faults: steering}
	for name, list := range map[string]*[]string{operatorTokensVariable: &config.Tokens, controlTokensVariable: &config.ControlTokens, testsTokensVariable: &config.TestsTokens} {
		*list, err = readTokens(lookupEnv, name)
		if err != nil {
			return opts, config, err
		}
	}
	localOnly := isLoopbackAddress(opts.listen) && (opts.baseURL == "" || isLoopbackURL(opts.baseURL))
	switch {
	case flags.NArg() > 0:
		return opts, config, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case len(config.Tokens) == 0:
		return opts, config, fmt.Errorf("%s is needed: what gateways send as their access token", operatorTokensVariable)
	case len(config.ControlTokens) == 0 && !localOnly:
		return opts, config, fmt.Errorf("%s is needed where others than this machine can call", controlTokensVariable)
	case len(config.ControlTokens) == 0 && len(config.TestsTokens) > 0:
		return opts, config, fmt.Errorf("%s is needed beside %s: without it the control port answers everybody", controlTokensVariable, testsTokensVariable)
	case opts.baseURL != "" && !isValidBaseURL(opts.baseURL):
		return opts, config, fmt.Errorf("base-url must be an http or https address without query")
	}
	return opts, config, nil
}

// readTokens reads a list; its error names no token.
func readTokens(lookupEnv func(string) (string, bool), name string) ([]string, error) {
	text, _ := lookupEnv(name)
	if text == "" {
		return nil, nil
	}
	var all []string
	for token := range strings.SplitSeq(text, ",") {
		token = strings.TrimSpace(token)
		if len(token) < minTokenLength {
			return nil, fmt.Errorf("%s: a token has at least %d characters", name, minTokenLength)
		}
		all = append(all, token)
	}
	return all, nil
}

func isValidBaseURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

func isLoopbackURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && isLoopback(u.Hostname())
}

func isLoopbackAddress(listen string) bool {
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
