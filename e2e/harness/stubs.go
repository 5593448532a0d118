// Package harness runs the stories on SAM, LocalStack, DynamoDB Local or a deployed stack. It has the isolation of
// these programs, their child processes, the tools in the checkout, and stubs of the operator and the merchants. It
// contains no test itself. Its invariant: after a program in an Isolation ends, only files below .local remain.
package harness

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mobilegateway/local"
	"mobilegateway/shared/awsclient"
	"mobilegateway/world/inbox"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/platforms"
	"mobilegateway/world/operators/sandbox"
)

// ScheduleSpeed divides lifetimes and schedules, as in the stories' local run.
const ScheduleSpeed = 60

// Stubs are the parties outside the gateway: the sandbox operator and the merchants' inbox.
type Stubs struct {
	SandboxURL, SandboxToken string
	InboxURL                 string

	operator *sandbox.Sandbox
	inbox    *inbox.Inbox
}

// NewStubs starts both, with their data in dir. The sandbox listens on sandboxHost, where the functions reach it. The
// inbox listens on 127.0.0.1, because notifications may go to no other address in a test.
func NewStubs(dir, sandboxHost string) (*Stubs, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(sandboxHost, "0"))
	if err != nil {
		return nil, err
	}
	s := &Stubs{SandboxToken: rand.Text(), SandboxURL: listenerURL(listener)}
	s.operator, err = sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "sandbox"), Tokens: []string{s.SandboxToken}, BaseURL: s.SandboxURL,
		Config: kit.Config{Speed: ScheduleSpeed},
	})
	if err == nil {
		s.inbox, err = inbox.Open(filepath.Join(dir, "inbox.jsonl"), time.Now)
	}
	if err == nil {
		s.InboxURL, err = ListenAndServe("127.0.0.1", s.inbox.Handler())
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	Serve(listener, s.operator.Handler())
	return s, nil
}

// SetWebhookSecrets sets the secrets with which the inbox verifies notifications.
func (s *Stubs) SetWebhookSecrets(info local.Info) {
	s.inbox.SetSecrets(info.WebhookSecret, info.SecondMerchant.WebhookSecret, info.LimitedMerchant.WebhookSecret)
}

// ServeInboxAt serves the inbox at another address too.
func (s *Stubs) ServeInboxAt(listener net.Listener) {
	Serve(listener, s.inbox.Handler())
}

// ServePlatforms serves the stubs of operators' platforms, and returns their settings. gatewayURL is the address of the
// stack's API.
func (s *Stubs) ServePlatforms(gatewayURL string) (platforms.Config, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return platforms.Config{}, err
	}
	config := platforms.Config{
		URL: listenerURL(listener), GatewayURL: gatewayURL, CallbackSecret: rand.Text() + rand.Text(),
		Kit: kit.Config{Speed: ScheduleSpeed},
	}
	Serve(listener, config.Handler())
	return config, nil
}

// Close writes the data of both to disk.
func (s *Stubs) Close() error {
	return errors.Join(s.operator.Close(), s.inbox.Close())
}

// ListenAndServe serves a handler on a free port of a host until the program ends. It returns the address.
func ListenAndServe(host string, handler http.Handler) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	Serve(listener, handler)
	return listenerURL(listener), nil
}

// Serve serves a handler until the program ends.
func Serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
}

func listenerURL(listener net.Listener) string { return "http://" + listener.Addr().String() }

// NewProxy returns a handler that forwards requests to an address. It logs no error: clients hang up on purpose.
func NewProxy(to *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// StackDeployment describes a stack to seed. names are as in local.Deployment; variable returns the AWS settings.
func StackDeployment(
	names map[string]string, variable func(string) string, stubs *Stubs, baseURL string,
) (local.Deployment, error) {
	client, err := awsclient.New(variable)
	return local.Deployment{
		Client: client, Names: names, BaseURL: baseURL,
		SandboxURL: stubs.SandboxURL, SandboxToken: stubs.SandboxToken, InboxURL: stubs.InboxURL,
	}, err
}

// InstallNodeLibrary installs the JavaScript library of the stories if its lock file is newer.
func InstallNodeLibrary(ctx context.Context, root string) error {
	folder := filepath.Join(root, "e2e", "node")
	installed, err := os.Stat(filepath.Join(folder, "node_modules", ".package-lock.json")) // npm writes it last
	pinned, missing := os.Stat(filepath.Join(folder, "package-lock.json"))
	if err == nil && missing == nil && installed.ModTime().After(pinned.ModTime()) {
		return nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return errors.New("node and npm are not on the PATH: install Node.js")
	}
	command := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, output)
	}
	return nil
}

// pollInterval is the pause between two checks of Poll.
const pollInterval = 50 * time.Millisecond

// Poll calls check until it succeeds. It returns the last error after the timeout or when ctx ends.
func Poll(ctx context.Context, timeout time.Duration, check func() error) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(pollInterval) {
		err := check()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// callTimeout bounds a Call. A function responds within 60 seconds after its container has started.
const callTimeout = 2 * time.Minute

// Call sends a request and returns the body and the headers of the response. A status of 400 or more is an error. It
// follows no redirect.
func Call(ctx context.Context, method, address, body string, header http.Header) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(request.Header, header)
	client := http.Client{
		Timeout:       callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s returned %d: %s", method, address, response.StatusCode, text)
	}
	return text, response.Header, err
}
