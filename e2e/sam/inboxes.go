//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"strings"

	"mobilegateway/e2e/harness"
)

// openInboxes opens the merchants' inboxes in every container that starts. Notifications go to the loopback address,
// and each container has its own.
func (s *suite) openInboxes() error {
	events := s.engine.docker(context.Background(),
		"events", "--filter", "type=container", "--filter", "event=start", "--format", "{{.ID}} {{.From}}")
	output, err := events.StdoutPipe()
	if err != nil {
		return err
	}
	if err := events.Start(); err != nil {
		return err
	}
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			id, image, _ := strings.Cut(lines.Text(), " ")
			if !strings.HasPrefix(image, resourceName(s.Root)) {
				continue // not a container of this checkout
			}
			if err := s.openInbox(id); err != nil {
				s.Logf("no inbox in container %.12s of %s: %v", id, image, err)
			}
		}
	}()
	return nil
}

func (s *suite) openInbox(id string) error {
	pid, err := s.engine.docker(context.Background(), "inspect", "--format", "{{.State.Pid}}", id).Output()
	if err != nil {
		return err
	}
	proc := "/proc/"
	if !s.HasOwnNetwork { // the machine's engine reports the machine's process ids
		proc = s.HostProc + "/"
	}
	address := strings.TrimPrefix(s.info.InboxURL, "http://")
	listener, err := harness.ListenInNetwork(proc+string(bytes.TrimSpace(pid)), address)
	if err != nil {
		return err
	}
	s.stubs.ServeInboxAt(listener)
	return nil
}
