//go:build linux

package harness

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"mobilegateway/internal/local"
	"mobilegateway/internal/local/file"
	"mobilegateway/internal/local/inbox"
	"mobilegateway/internal/sandbox"
)

// ScheduleSpeed divides the lifetimes and schedules of the product, as in the stories' local run.
const ScheduleSpeed = 60

// Stubs are the two sides outside the gateway: the operator, which is the sandbox, and the merchants' inbox.
type Stubs struct {
	SandboxURL, SandboxToken string
	InboxURL                 string

	inbox *inbox.Inbox
}

// NewStubs starts both. The sandbox listens on sandboxHost, where the functions reach it; the inbox on 127.0.0.1, the
// only address that a notification may go to here. What they keep stands in dir.
func NewStubs(dir, sandboxHost string) (*Stubs, error) {
	p := &Stubs{SandboxToken: rand.Text()}
	sandboxListener, err := net.Listen("tcp", net.JoinHostPort(sandboxHost, "0"))
	if err != nil {
		return nil, err
	}
	inboxListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, sandboxListener.Close())
	}
	p.SandboxURL, p.InboxURL = "http://"+sandboxListener.Addr().String(), "http://"+inboxListener.Addr().String()
	operator, err := sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "sandbox"), Tokens: []string{p.SandboxToken}, BaseURL: p.SandboxURL, Speed: ScheduleSpeed,
	})
	if err != nil {
		return nil, errors.Join(err, sandboxListener.Close(), inboxListener.Close())
	}
	p.inbox, err = inbox.Open(filepath.Join(dir, "inbox.jsonl"), time.Now)
	if err != nil {
		return nil, errors.Join(err, sandboxListener.Close(), inboxListener.Close())
	}
	Serve(sandboxListener, operator.Handler())
	Serve(inboxListener, p.inbox.Handler())
	return p, nil
}

// SetWebhookSecrets tells the inbox by which secrets notifications are signed.
func (p *Stubs) SetWebhookSecrets(info local.Info) {
	p.inbox.SetSecrets(info.WebhookSecret, info.SecondMerchant.WebhookSecret, info.LimitedMerchant.WebhookSecret)
}

// ServeInboxAt takes notifications at another place as well.
func (p *Stubs) ServeInboxAt(listener net.Listener) {
	Serve(listener, p.inbox.Handler())
}

// Serve serves a handler for as long as we live.
func Serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
}

// WriteRunJSON writes a run.json, as the local run has it.
func WriteRunJSON(path string, info local.Info) error {
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return file.Replace(path, append(text, '\n'))
}
