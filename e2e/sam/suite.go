//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"path/filepath"
	"strings"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/local"
	"mobilegateway/internal/template"
)

// suite is the two scenes on one engine: one in which the stories are told, one for the golden events.
type suite struct {
	*suiteRunner
	engineHost  string // the engine's address
	hostAddress string // this host as the containers see it
	dynamoURL   string // DynamoDB Local's address
	template    *template.Template
	stories     *fixture
	goldens     *fixture
}

// newSuite starts what both scenes need, and furnishes them.
func (r *suiteRunner) newSuite(ctx context.Context, host string) (p *suite, err error) {
	p = &suite{suiteRunner: r, engineHost: host}
	if p.hostAddress, err = bridgeAddress(); err != nil {
		return p, err
	}
	p.template, err = template.Load(filepath.Join(r.Root, "template.yaml"), template.Options{StackName: "local", Region: region, Parameters: local.Parameters()})
	if err != nil {
		return p, err
	}
	if p.dynamoURL, err = harness.StartDynamoDBLocal(ctx, r.Workspace, p.hostAddress); err != nil {
		return p, err
	}
	if p.stories, err = p.newFixture(ctx, "stories"); err != nil {
		return p, err
	}
	if p.goldens, err = p.newFixture(ctx, "goldens"); err != nil {
		return p, err
	}
	if err := p.openInboxes(); err != nil {
		return p, err
	}
	r.logf("tables, secrets, operators and merchants are there")
	return p, nil
}

// openInboxes opens the merchants' inboxes in every container that starts: notifications go to the loopback, and a
// container has one of its own.
func (p *suite) openInboxes() error {
	events := docker(context.Background(), p.Root, p.engineHost, "events", "--filter", "type=container", "--filter", "event=start", "--format", "{{.ID}} {{.From}}")
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
			if !strings.HasPrefix(from, resourceName(p.Root)) {
				continue // another's container
			}
			if err := p.openInbox(id); err != nil {
				p.logf("no inbox in container %.12s of %s: %v", id, from, err)
			}
		}
	}()
	return nil
}

// openInbox opens both inboxes in a container.
func (p *suite) openInbox(id string) error {
	output, err := docker(context.Background(), p.Root, p.engineHost, "inspect", "--format", "{{.State.Pid}}", id).Output()
	if err != nil {
		return err
	}
	proc := "/proc/"
	if !p.HasOwnNetwork { // the engine is the machine's, and so are its processes' numbers
		proc = p.HostProc + "/"
	}
	for _, s := range []*fixture{p.stories, p.goldens} {
		listener, err := harness.ListenInNetwork(proc+string(bytes.TrimSpace(output)), strings.TrimPrefix(s.info.InboxURL, "http://"))
		if err != nil {
			return err
		}
		s.stubs.ServeInboxAt(listener)
	}
	return nil
}

// runStories starts SAM's API and its Lambda, and plays the stories on them.
func (p *suite) runStories(ctx context.Context) error {
	deliveries, stop := context.WithCancel(ctx) // they outlive their start
	defer stop()
	err := harness.RunParallel(ctx, p.stories.startAPI, func(context.Context) error { return p.stories.startEventSources(deliveries) })
	if err != nil {
		return err
	}
	p.logf("sam local start-api and start-lambda answer")
	stories := harness.StorySuite{Target: "sam", RunJSON: filepath.Join(p.Dir, "run.json")}
	if err := harness.WriteRunJSON(stories.RunJSON, p.stories.info); err != nil {
		return err
	}
	if err := stories.Run(ctx, p.Workspace, "^TestGateway$/^stories$", "", "-test.parallel=16"); err != nil {
		return err
	}
	p.logf("the stories are told")
	return nil
}
