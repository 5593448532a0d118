// Command gateway-sandbox runs the sandbox operator as its own program, for gateways on other machines: its API, its
// payment page and its control port (world/operators/sandbox). The local run has its own sandbox and does not need it.
//
// The flags set the address to listen on and the public address. Tokens come only from the environment, because lists
// of processes show flags. SANDBOX_TOKENS are for the operator API, SANDBOX_CONTROL_TOKENS for the control port, and
// SANDBOX_TESTS_TOKENS only for its tests and slots. Each is one token, or several with commas between them. A token
// for tests may have its merchant before it: DemoShop:token.
// SANDBOX_SEED and the rates set the fault injection at the start. SIGTERM ends the program.
package main

import (
	"cmp"
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

	"mobilegateway/internal/loopback"
	"mobilegateway/shared/localhost"
	"mobilegateway/world/operators/sandbox"
)

// Environment variables with the tokens. A token has at least minTokenLength characters.
const (
	operatorTokensVariable = "SANDBOX_TOKENS"
	controlTokensVariable  = "SANDBOX_CONTROL_TOKENS"
	testsTokensVariable    = "SANDBOX_TESTS_TOKENS"
	minTokenLength         = 24
)

// drainTimeout is the wait for calls in progress at the end. It is short, because injected faults last up to a minute.
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

// run serves until ctx ends. Its first line of output is the address.
func run(ctx context.Context, arguments []string, lookupEnv func(string) (string, bool), out io.Writer) error {
	listen, config, err := parseConfig(arguments, lookupEnv, out)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	config.BaseURL = cmp.Or(config.BaseURL, "http://"+listener.Addr().String())
	config.Logf = func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	config.Logf("gateway-sandbox: %s on %s", config.BaseURL, listener.Addr()) // before New, which resumes callbacks
	operator, err := sandbox.New(config)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{
		Handler:           withHealth(protected(config, operator.Handler())),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
	serveErr := make(chan error, 1)
	go func() { serveErr <- server.Serve(listener) }()
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

// parseConfig reads flags and variables into the address to listen on and the sandbox's settings. It refuses a control
// port without tokens that other machines can reach.
func parseConfig(
	arguments []string, lookupEnv func(string) (string, bool), out io.Writer,
) (listen string, config sandbox.Config, err error) {
	flags := flag.NewFlagSet("gateway-sandbox", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&listen, "listen", "127.0.0.1:3001", "address and port to listen on; port 0 for a free one")
	flags.StringVar(&config.BaseURL, "base-url", "", "public address, of payment_url too (default: the listen address)")
	flags.StringVar(&config.Dir, "dir", "", "folder that keeps the operator's state (default: only memory)")
	flags.Float64Var(&config.Speed, "speed", 1, "divides every delay and lifetime")
	if err := flags.Parse(arguments); err != nil {
		return "", config, err
	}
	config.Faults, err = sandbox.FaultSettingsFromEnvironment(lookupEnv)
	tokensOf := func(variable string) []string {
		tokens, listErr := readTokens(lookupEnv, variable)
		err = errors.Join(err, listErr)
		return tokens
	}
	config.Tokens, config.ControlTokens = tokensOf(operatorTokensVariable), tokensOf(controlTokensVariable)
	for _, text := range tokensOf(testsTokensVariable) {
		merchant, token, named := strings.Cut(text, ":")
		if !named {
			merchant, token = "", text
		}
		err = errors.Join(err, checkTokenLength(testsTokensVariable, token))
		config.TestsTokens = append(config.TestsTokens, sandbox.TestsToken{Merchant: merchant, Token: token})
	}
	if err != nil {
		return "", config, err
	}
	host, _, _ := net.SplitHostPort(listen) // "" for a wrong address, which Listen reports
	base, baseErr := url.Parse(config.BaseURL)
	publicBase := config.BaseURL != "" && (baseErr != nil || !localhost.IsLoopback(base.Hostname()))
	public := !localhost.IsLoopback(host) || publicBase
	switch open := len(config.ControlTokens) == 0; {
	case flags.NArg() > 0:
		err = fmt.Errorf("unknown argument %q: remove it", flags.Arg(0))
	case len(config.Tokens) == 0:
		err = fmt.Errorf("%s is needed: set it to the access token of the gateways", operatorTokensVariable)
	case open && public:
		err = fmt.Errorf("%s is needed where other machines can call", controlTokensVariable)
	case open && len(config.TestsTokens) > 0:
		err = fmt.Errorf("%s is needed beside %s: without it the control port accepts every caller",
			controlTokensVariable, testsTokensVariable)
	case config.BaseURL != "" && (baseErr != nil || !isValidBaseURL(base)):
		err = errors.New("base-url must be an http or https address without query")
	}
	config.BaseURL = strings.TrimRight(config.BaseURL, "/")
	return listen, config, err
}

// readTokens reads a list of tokens. The error contains no token.
func readTokens(lookupEnv func(string) (string, bool), variable string) ([]string, error) {
	text, _ := lookupEnv(variable)
	if text == "" {
		return nil, nil
	}
	tokens := strings.Split(text, ",")
	for i, token := range tokens {
		tokens[i] = strings.TrimSpace(token)
		if err := checkTokenLength(variable, tokens[i]); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

func checkTokenLength(variable, token string) error {
	if len(token) < minTokenLength {
		return fmt.Errorf("%s: a token has at least %d characters", variable, minTokenLength)
	}
	return nil
}

func isValidBaseURL(u *url.URL) bool {
	return (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

// protected refuses foreign web pages at a control port that accepts every caller. Such a sandbox serves only this
// machine, but any page in a browser here can reach its port.
func protected(config sandbox.Config, next http.Handler) http.Handler {
	if len(config.ControlTokens) > 0 {
		return next
	}
	return loopback.Protect(next)
}

// withHealth adds GET /healthz, for health checks.
func withHealth(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("/", next)
	return mux
}
