package stage

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"mobilegateway/internal/local"
	"mobilegateway/internal/local/file"
	"mobilegateway/internal/local/inbox"
	"mobilegateway/internal/sandbox"
)

// Speed divides the lifetimes and schedules of the product, as in the stories' local run.
const Speed = 60

// Partners are the two sides outside the gateway: the operator, which is the sandbox, and the merchants' inbox.
type Partners struct {
	SandboxURL, SandboxToken string
	InboxURL                 string

	sandbox *sandbox.Sandbox
	inbox   *inbox.Inbox
	servers []*http.Server
}

// NewPartners starts both. The sandbox listens on sandboxHost, where the functions reach it; the inbox on 127.0.0.1, the
// only address that a notification may go to here. What they keep stands in dir.
func NewPartners(dir, sandboxHost string) (*Partners, error) {
	p := &Partners{SandboxToken: rand.Text()}
	operatorSide, err := net.Listen("tcp", net.JoinHostPort(sandboxHost, "0"))
	if err != nil {
		return nil, err
	}
	merchantSide, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, operatorSide.Close())
	}
	p.SandboxURL, p.InboxURL = "http://"+operatorSide.Addr().String(), "http://"+merchantSide.Addr().String()
	p.sandbox, err = sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "sandbox"), Tokens: []string{p.SandboxToken}, BaseURL: p.SandboxURL, Speed: Speed,
	})
	if err != nil {
		return nil, errors.Join(err, operatorSide.Close(), merchantSide.Close())
	}
	p.inbox, err = inbox.Open(filepath.Join(dir, "inbox.jsonl"), time.Now)
	if err != nil {
		return nil, errors.Join(err, operatorSide.Close(), merchantSide.Close())
	}
	p.servers = []*http.Server{Serve(operatorSide, p.sandbox.Handler()), Serve(merchantSide, p.inbox.Handler())}
	return p, nil
}

// Trust tells the inbox by which secrets notifications are signed.
func (p *Partners) Trust(info local.Info) {
	p.inbox.Trust(info.WebhookSecret, info.SecondMerchant.WebhookSecret)
}

// Close ends both at once.
func (p *Partners) Close() {
	_ = p.sandbox.Close()
	for _, server := range p.servers {
		_ = server.Close()
	}
	_ = p.inbox.Close()
}

// Serve serves a handler until the server is closed.
func Serve(listener net.Listener, handler http.Handler) *http.Server {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	return server
}

// WriteRunJSON writes a run.json, as the local run has it.
func WriteRunJSON(path string, info local.Info) error {
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return file.Replace(path, append(text, '\n'))
}

// Stories plays the stories against a run.json: the tests of package e2e with what the target cannot do left out
// (exceptions_test.go there). deployURL is where they may ask for a change of the deployment. Their output goes to ours.
func Stories(ctx context.Context, root, target, runJSON, deployURL string, arguments ...string) error {
	command := GoTest(ctx, root, arguments...)
	command.Env = append(os.Environ(), "E2E_RUN_JSON="+runJSON, "E2E_TARGET="+target, "E2E_DEPLOY_URL="+deployURL)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("the stories on %s: %w", target, err)
	}
	return nil
}
