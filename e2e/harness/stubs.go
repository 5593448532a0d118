// Package harness runs the stories on SAM, LocalStack, DynamoDB Local or a deployed stack. It has the isolation of
// these programs, their child processes, the tools in the checkout, and stubs of the operator and the merchants. It
// contains no test itself. Its invariant: after a program in an Isolation ends, only files below .local remain.
package harness

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"time"

	"mobilegateway/internal/local"
	"mobilegateway/internal/local/file"
	"mobilegateway/internal/local/inbox"
	"mobilegateway/internal/sandbox"
	"mobilegateway/shared/awsclient"
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
	sandboxListener, err := net.Listen("tcp", net.JoinHostPort(sandboxHost, "0"))
	if err != nil {
		return nil, err
	}
	inboxListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, sandboxListener.Close())
	}
	s := &Stubs{SandboxToken: rand.Text(), SandboxURL: listenerURL(sandboxListener),
		InboxURL: listenerURL(inboxListener)}
	s.operator, err = sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "sandbox"), Tokens: []string{s.SandboxToken}, BaseURL: s.SandboxURL,
		Speed: ScheduleSpeed,
	})
	if err == nil {
		s.inbox, err = inbox.Open(filepath.Join(dir, "inbox.jsonl"), time.Now)
	}
	if err != nil {
		return nil, errors.Join(err, sandboxListener.Close(), inboxListener.Close())
	}
	Serve(sandboxListener, s.operator.Handler())
	s.ServeInboxAt(inboxListener)
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

// Close writes the data of both to disk.
func (s *Stubs) Close() error {
	return errors.Join(s.operator.Close(), s.inbox.Close())
}

// Serve serves a handler until the program ends.
func Serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
}

// listenerURL returns the address of a listener.
func listenerURL(listener net.Listener) string { return "http://" + listener.Addr().String() }

// NewProxy returns a handler that forwards requests to an address. It logs no error: clients hang up on purpose.
func NewProxy(to *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// StackDeployment describes a stack to seed by its outputs. variable returns the AWS settings to use.
func StackDeployment(
	outputs map[string]string, variable func(string) string, stubs *Stubs, baseURL string,
) (local.Deployment, error) {
	client, err := awsclient.New(variable)
	return local.Deployment{
		Client: client, MerchantTable: outputs["MerchantTable"], OperatorSecret: outputs["OperatorSecret"],
		KeySecrets:    []string{outputs["TokenKeySecret"], outputs["CallbackKeySecret"], outputs["WebhookKeySecret"]},
		WebhookSecret: outputs["WebhookKeySecret"],
		BaseURL:       baseURL, SandboxURL: stubs.SandboxURL, InboxURL: stubs.InboxURL,
		SandboxToken: stubs.SandboxToken, Now: time.Now,
	}, err
}

// WriteRunJSON writes a run.json in the form of the local run.
func WriteRunJSON(path string, info local.Info) error {
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return file.Replace(path, append(text, '\n'))
}
