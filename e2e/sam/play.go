//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"path/filepath"
	"strings"

	"mobilegateway/e2e/stage"
	"mobilegateway/internal/local"
	"mobilegateway/internal/template"
)

// play is the two scenes on one engine: one in which the stories are told, one for the golden events.
type play struct {
	*runner
	host     string // the engine's address
	gateway  string // this host as the containers see it
	tables   string // DynamoDB Local's address
	template *template.Template
	stories  *scene
	goldens  *scene
}

// setUp starts what both scenes need, and furnishes them.
func (r *runner) setUp(ctx context.Context, host string) (p *play, err error) {
	p = &play{runner: r, host: host}
	if p.gateway, err = gateway(); err != nil {
		return p, err
	}
	p.template, err = template.Load(filepath.Join(r.Root, "template.yaml"), template.Options{StackName: "local", Region: region, Parameters: local.Parameters()})
	if err != nil {
		return p, err
	}
	if p.tables, err = stage.StartTables(ctx, r.Site, p.gateway); err != nil {
		return p, err
	}
	if p.stories, err = p.setScene(ctx, "stories"); err != nil {
		return p, err
	}
	if p.goldens, err = p.setScene(ctx, "goldens"); err != nil {
		return p, err
	}
	if err := p.openInboxes(); err != nil {
		return p, err
	}
	r.say("tables, secrets, operators and merchants are there")
	return p, nil
}

// openInboxes opens the merchants' inboxes in every container that starts: notifications go to the loopback, and a
// container has one of its own.
func (p *play) openInboxes() error {
	events := docker(context.Background(), p.Root, p.host, "events", "--filter", "type=container", "--filter", "event=start", "--format", "{{.ID}} {{.From}}")
	output, err := events.StdoutPipe()
	if err != nil {
		return err
	}
	if err := events.Start(); err != nil {
		return err
	}
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			id, from, _ := strings.Cut(lines.Text(), " ")
			if !strings.HasPrefix(from, mark(p.Root)) {
				continue // another's container
			}
			if err := p.openInbox(id); err != nil {
				p.say("no inbox in container %.12s of %s: %v", id, from, err)
			}
		}
	}()
	return nil
}

// openInbox opens both inboxes in a container.
func (p *play) openInbox(id string) error {
	output, err := docker(context.Background(), p.Root, p.host, "inspect", "--format", "{{.State.Pid}}", id).Output()
	if err != nil {
		return err
	}
	proc := "/proc/"
	if !p.OwnNetwork { // the engine is the machine's, and so are its processes' numbers
		proc = p.Machine + "/"
	}
	for _, s := range []*scene{p.stories, p.goldens} {
		listener, err := stage.ListenIn(proc+string(bytes.TrimSpace(output)), strings.TrimPrefix(s.info.InboxURL, "http://"))
		if err != nil {
			return err
		}
		s.partners.ServeInbox(listener)
	}
	return nil
}

// tellStories starts SAM's API and its Lambda, and plays the stories on them.
func (p *play) tellStories(ctx context.Context) error {
	deliveries, stop := context.WithCancel(ctx) // they outlive their start
	defer stop()
	err := stage.Together(ctx, p.stories.startAPI, func(context.Context) error { return p.stories.startDeliveries(deliveries) })
	if err != nil {
		return err
	}
	p.say("sam local start-api and start-lambda answer")
	stories := stage.Stories{Target: "sam", RunJSON: filepath.Join(p.Dir, "run.json")}
	if err := stage.WriteRunJSON(stories.RunJSON, p.stories.info); err != nil {
		return err
	}
	if err := stories.Play(ctx, p.Site, "^TestGateway$/^stories$", "", "-test.parallel=16"); err != nil {
		return err
	}
	p.say("the stories are told")
	return nil
}
