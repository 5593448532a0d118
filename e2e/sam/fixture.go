//go:build linux

package main

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/local"
	"mobilegateway/internal/local/dynamo"
	"mobilegateway/internal/local/secrets"
	"mobilegateway/internal/runtimeapi"
	"mobilegateway/internal/template"
	"mobilegateway/shared/awsclient"
)

// region is where SAM says that the functions are.
const region = "us-east-1"

// fixture is what functions find around them: a database, secrets, an operator and two merchants, and an image that tells
// their addresses.
type fixture struct {
	*suiteRunner
	name       string // also the access key, by which DynamoDB Local tells databases apart
	engineHost string // the engine's address
	template   *template.Template
	dynamoURL  string // DynamoDB Local's address
	stubs      *harness.Stubs
	listener   net.Listener // the API's public address
	info       local.Info
}

// baseImage is the scene's base image. SAM builds its own beside it, under a tag of the same repository.
func (s *fixture) baseImage() string { return resourceName(s.Root) + "/" + s.name + ":al2023" }

// environment is what reaches the scene's tables and, at an address, its secrets.
func (s *fixture) environment(secretsURL string) map[string]string {
	return map[string]string{
		"AWS_REGION": region, "AWS_ACCESS_KEY_ID": s.name, "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL_DYNAMODB": s.dynamoURL, "AWS_ENDPOINT_URL_SECRETS_MANAGER": secretsURL,
	}
}

// newFixture furnishes a scene; containers reach all of it at the gateway's address.
func (p *suite) newFixture(ctx context.Context, name string) (s *fixture, err error) {
	s = &fixture{suiteRunner: p.suiteRunner, name: name, engineHost: p.engineHost, template: p.template, dynamoURL: p.dynamoURL}
	s.stubs, err = harness.NewStubs(filepath.Join(p.Dir, name), p.hostAddress)
	if err != nil {
		return nil, err
	}
	secretsURL, err := s.serveSecrets(p.hostAddress)
	if err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if err := s.dynamoClient().EnsureTables(ctx, p.template.Tables); err != nil {
		return nil, err
	}
	environment := s.environment(secretsURL)
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		return nil, err
	}
	s.info, err = local.Deployment{
		Client: client, MerchantTable: "MerchantTable", OperatorSecret: operatorSecret, KeySecrets: secretNames()[1:], WebhookSecret: "WebhookKeySecret",
		BaseURL: "http://" + s.listener.Addr().String(), SandboxURL: s.stubs.SandboxURL, InboxURL: s.stubs.InboxURL,
		SandboxToken: s.stubs.SandboxToken, Now: time.Now,
	}.Seed(ctx)
	if err != nil {
		return nil, err
	}
	s.stubs.SetWebhookSecrets(s.info)
	return s, importImage(ctx, s.Root, s.engineHost, s.baseImage(), map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": s.dynamoURL, "AWS_ENDPOINT_URL_SECRETS_MANAGER": secretsURL,
		"ALLOW_LOOPBACK": "true", "SPEED": strconv.Itoa(harness.ScheduleSpeed),
	})
}

// operatorSecret is the one that holds no keys of our own.
const operatorSecret = "OperatorSecret"

// secretNames are the secrets as SAM resolves a reference to them: by their logical ids.
func secretNames() []string {
	return []string{operatorSecret, "TokenKeySecret", "CallbackKeySecret", "WebhookKeySecret"}
}

// serveSecrets starts a Secrets Manager and returns its address.
func (s *fixture) serveSecrets(host string) (string, error) {
	store, err := secrets.Open(filepath.Join(s.Dir, s.name, "secrets.json"), time.Now, runtimeapi.NewRequestID)
	if err != nil {
		return "", err
	}
	if err := store.Ensure(secretNames()...); err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	harness.Serve(listener, store)
	return "http://" + listener.Addr().String(), nil
}

// dynamoClient reaches the scene's own database.
func (s *fixture) dynamoClient() *dynamo.Client {
	return dynamo.NewClient(s.dynamoURL, region, s.name, "secret", time.Now)
}

// pumpStream hands what the ledger's stream shows to an invoker, as Lambda would to the relay: what the template's filter lets
// pass, or all.
func (s *fixture) pumpStream(ctx context.Context, to dynamo.Invoker, filtered bool) {
	for _, f := range s.template.Functions {
		for _, stream := range f.Streams {
			if !filtered {
				stream.Filters = nil
			}
			(&dynamo.Pump{
				Client: s.dynamoClient(), Table: s.template.Table(stream.Table).Name, Stream: stream, Function: to,
				Checkpoint: filepath.Join(s.Dir, s.name, "stream.json"), Now: time.Now, Logf: s.logf,
			}).Run(ctx)
		}
	}
}

// samLocalCommand is what every `sam local` command has in common.
func (s *fixture) samLocalCommand(command string, arguments ...string) (environment, all []string) {
	parameters := local.Parameters()
	parameters["BaseUrl"] = "http://" + s.listener.Addr().String()
	all = append([]string{
		"local", command, "--template-file", filepath.Join(s.bundleDir(), "template.yaml"), "--skip-pull-image", "--invoke-image", s.baseImage(),
		"--region", region, "--parameter-overrides",
	}, harness.ParameterOverrides(parameters)...)
	environment = append(harness.SAMEnvironment(s.Workspace, ""), "AWS_ACCESS_KEY_ID="+s.name, "AWS_SECRET_ACCESS_KEY=secret",
		// It asks whose keys these are; nobody answers, and it goes on.
		"AWS_ENDPOINT_URL_STS=http://127.0.0.1:9", "AWS_MAX_ATTEMPTS=1",
	)
	if s.engineHost != "" {
		environment = append(environment, "DOCKER_HOST="+s.engineHost)
	}
	return environment, append(all, arguments...)
}
