//go:build linux

package stage

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

// Speed divides the lifetimes and schedules of the product, as in the stories' local run.
const Speed = 60

// Partners are the two sides outside the gateway: the operator, which is the sandbox, and the merchants' inbox.
type Partners struct {
	SandboxURL, SandboxToken string
	InboxURL                 string

	inbox *inbox.Inbox
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
	operator, err := sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "sandbox"), Tokens: []string{p.SandboxToken}, BaseURL: p.SandboxURL, Speed: Speed,
	})
	if err != nil {
		return nil, errors.Join(err, operatorSide.Close(), merchantSide.Close())
	}
	p.inbox, err = inbox.Open(filepath.Join(dir, "inbox.jsonl"), time.Now)
	if err != nil {
		return nil, errors.Join(err, operatorSide.Close(), merchantSide.Close())
	}
	Serve(operatorSide, operator.Handler())
	Serve(merchantSide, p.inbox.Handler())
	return p, nil
}

// Trust tells the inbox by which secrets notifications are signed.
func (p *Partners) Trust(info local.Info) {
	p.inbox.Trust(info.WebhookSecret, info.SecondMerchant.WebhookSecret, info.LimitedMerchant.WebhookSecret)
}

// ServeInbox takes notifications at another place as well.
func (p *Partners) ServeInbox(listener net.Listener) {
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
