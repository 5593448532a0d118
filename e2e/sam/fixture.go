//go:build linux

package main

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"mobilegateway/deploy/samcli"
	"mobilegateway/e2e/harness"
	"mobilegateway/local"
	"mobilegateway/world/lambda"
	"mobilegateway/world/secrets"
	"mobilegateway/world/streams"
)

// fixture is the environment of the functions: a database, secrets, an operator, merchants, and an image with their
// addresses.
type fixture struct {
	*suite
	name     string // also the access key; DynamoDB Local has one database per access key
	stubs    *harness.Stubs
	listener net.Listener // the API's public address
	info     local.Info
}

// baseImage is the fixture's base image. SAM builds its own under another tag of the same repository.
func (f *fixture) baseImage() string { return resourceName(f.Root) + "/" + f.name + ":al2023" }

func (f *fixture) baseURL() string { return "http://" + f.listener.Addr().String() }

// newFixture creates a fixture. Containers reach all of it at the bridge's address.
func (s *suite) newFixture(ctx context.Context, name string) (f *fixture, err error) {
	f = &fixture{suite: s, name: name}
	f.stubs, err = harness.NewStubs(filepath.Join(s.Dir, name), s.hostAddress)
	if err != nil {
		return nil, err
	}
	secretsURL, err := f.serveSecrets()
	if err != nil {
		return nil, err
	}
	if f.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if err := f.dynamoClient().EnsureTables(ctx, s.template.Tables); err != nil {
		return nil, err
	}
	settings := map[string]string{
		"AWS_REGION": region, "AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL_DYNAMODB": s.dynamoURL, "AWS_ENDPOINT_URL_SECRETS_MANAGER": secretsURL,
	}
	names := map[string]string{} // SAM resolves a reference to the logical id
	for id := range s.template.References {
		names[id] = id
	}
	variable := func(name string) string { return settings[name] }
	deployment, err := harness.StackDeployment(names, variable, f.stubs, f.baseURL())
	if err != nil {
		return nil, err
	}
	if f.info, err = deployment.Seed(ctx); err != nil {
		return nil, err
	}
	f.stubs.SetWebhookSecrets(f.info)
	return f, s.engine.importImage(ctx, f.baseImage(), map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": s.dynamoURL, "AWS_ENDPOINT_URL_SECRETS_MANAGER": secretsURL,
		"ALLOW_LOOPBACK": "true", "SPEED": strconv.Itoa(harness.ScheduleSpeed),
	})
}

func (f *fixture) serveSecrets() (string, error) {
	store, err := secrets.Open(filepath.Join(f.Dir, f.name, "secrets.json"), time.Now, lambda.NewRequestID)
	if err != nil {
		return "", err
	}
	for _, secret := range f.template.Secrets {
		if err := store.Ensure(secret.LogicalID); err != nil {
			return "", err
		}
	}
	return harness.ListenAndServe(f.hostAddress, store)
}

func (f *fixture) dynamoClient() *streams.Client {
	return streams.NewClient(f.dynamoURL, region, f.name, "secret", time.Now)
}

// pumpStream passes the records of the ledger's stream to an invoker, as Lambda does. filtered applies the template's
// filters.
func (f *fixture) pumpStream(ctx context.Context, to streams.Invoker, filtered bool) {
	for _, function := range f.template.Functions {
		for _, stream := range function.Streams {
			if !filtered {
				stream.Filters = nil
			}
			(&streams.Pump{
				Client: f.dynamoClient(), Table: f.template.Table(stream.Table).Name, Stream: stream, Function: to,
				Checkpoint: filepath.Join(f.Dir, f.name, "stream.json"), Now: time.Now, Logf: f.Logf,
			}).Run(ctx)
		}
	}
}

func (f *fixture) samLocalCommand(command string, arguments ...string) (environment, all []string) {
	parameters := local.Parameters()
	parameters["BaseUrl"] = f.baseURL()
	all = append([]string{
		"local", command, "--template-file", filepath.Join(f.bundleDir(), "template.yaml"),
		"--skip-pull-image", "--invoke-image", f.baseImage(), "--region", region, "--parameter-overrides",
	}, samcli.ParameterOverrides(parameters)...)
	environment = append(harness.SAMEnvironment(f.Workspace, ""),
		"AWS_ACCESS_KEY_ID="+f.name, "AWS_SECRET_ACCESS_KEY=secret",
		// SAM looks up the account of these keys. The lookup fails at this closed port, and SAM continues.
		"AWS_ENDPOINT_URL_STS=http://127.0.0.1:9", "AWS_MAX_ATTEMPTS=1",
	)
	if f.engine.host != "" {
		environment = append(environment, "DOCKER_HOST="+f.engine.host)
	}
	return environment, append(all, arguments...)
}
