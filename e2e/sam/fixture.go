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
	"mobilegateway/internal/file"
	"mobilegateway/local"
	"mobilegateway/world/lambda"
	"mobilegateway/world/secrets"
	"mobilegateway/world/streams"
	"mobilegateway/world/template"
)

// accessKey is the functions' access key; DynamoDB Local has one database per access key.
const accessKey = "stories"

// baseImage is the functions' base image. SAM builds its own under another tag of the same repository.
func (s *suite) baseImage() string { return resourceName(s.Root) + "/" + accessKey + ":al2023" }

func (s *suite) baseURL() string { return "http://" + s.listener.Addr().String() }

// createFixture creates what the functions use. Containers reach all of it at the bridge's address.
func (s *suite) createFixture(ctx context.Context) (err error) {
	if s.hostAddress, err = bridgeAddress(); err != nil {
		return err
	}
	options := template.Options{Parameters: local.Parameters()} // the template as SAM resolves it
	if s.template, err = template.Load(filepath.Join(s.Root, "template.yaml"), options); err != nil {
		return err
	}
	if s.dynamoURL, err = harness.StartDynamoDBLocal(ctx, s.Workspace, s.hostAddress); err != nil {
		return err
	}
	if s.stubs, err = harness.NewStubs(s.Dir, s.hostAddress); err != nil {
		return err
	}
	secretsURL, err := s.serveSecrets()
	if err != nil {
		return err
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	if err := s.dynamoClient().EnsureTables(ctx, s.template.Tables); err != nil {
		return err
	}
	settings := map[string]string{
		"AWS_REGION": region, "AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL_DYNAMODB": s.dynamoURL, "AWS_ENDPOINT_URL_SECRETS_MANAGER": secretsURL,
	}
	if err := s.writeVariables(); err != nil {
		return err
	}
	names := map[string]string{} // SAM resolves a reference to the logical id
	for id := range s.template.References {
		names[id] = id
	}
	variable := func(name string) string { return settings[name] }
	deployment, err := harness.StackDeployment(names, variable, s.stubs, s.baseURL())
	if err != nil {
		return err
	}
	if s.info, err = deployment.Seed(ctx); err != nil {
		return err
	}
	s.stubs.SetWebhookSecrets(s.info)
	err = s.engine.importImage(ctx, s.baseImage(), map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": s.dynamoURL, "AWS_ENDPOINT_URL_SECRETS_MANAGER": secretsURL,
		"ALLOW_LOOPBACK": "true", "SPEED": strconv.Itoa(harness.ScheduleSpeed),
	})
	if err != nil {
		return err
	}
	s.Logf("created tables, secrets, operators and merchants")
	return s.openInboxes()
}

func (s *suite) serveSecrets() (string, error) {
	store, err := secrets.Open(filepath.Join(s.Dir, "secrets.json"), time.Now, lambda.NewRequestID)
	if err != nil {
		return "", err
	}
	for _, secret := range s.template.Secrets {
		if err := store.Ensure(secret.LogicalID); err != nil {
			return "", err
		}
	}
	return harness.ListenAndServe(s.hostAddress, store)
}

func (s *suite) dynamoClient() *streams.Client {
	return streams.NewClient(s.dynamoURL, region, accessKey, "secret", time.Now)
}

// pumpStream passes the records of the ledger's stream to the relay, as Lambda does.
func (s *suite) pumpStream(ctx context.Context) {
	for _, function := range s.template.Functions {
		for _, stream := range function.Streams {
			(&streams.Pump{
				Client: s.dynamoClient(), Table: s.template.Table(stream.Table).Name, Stream: stream,
				Function: &s.relay, Checkpoint: filepath.Join(s.Dir, "stream.json"), Now: time.Now, Logf: s.Logf,
			}).Run(ctx)
		}
	}
}

// writeVariables writes the file of --env-vars, with the tables and secrets by their logical ids. SAM does not resolve
// them: it evaluates both branches of !If, and cannot import values.
func (s *suite) writeVariables() error {
	ids := map[string]string{}
	for _, table := range s.template.Tables {
		ids[table.Name] = table.LogicalID
	}
	for _, secret := range s.template.Secrets {
		ids[secret.Name] = secret.LogicalID
	}
	variables := map[string]string{}
	for _, function := range s.template.Functions {
		for name, value := range function.Environment {
			if id := ids[value]; id != "" {
				variables[name] = id
			}
		}
	}
	return file.ReplaceJSON(s.variablesPath(), map[string]map[string]string{"Parameters": variables})
}

func (s *suite) variablesPath() string { return filepath.Join(s.Dir, "variables.json") }

func (s *suite) samLocalCommand(command string, arguments ...string) (environment, all []string) {
	parameters := local.Parameters()
	parameters["BaseUrl"] = s.baseURL()
	all = append([]string{
		"local", command, "--template-file", filepath.Join(s.bundleDir(), "template.yaml"),
		"--skip-pull-image", "--invoke-image", s.baseImage(), "--region", region, "--env-vars", s.variablesPath(),
		"--parameter-overrides",
	}, samcli.ParameterOverrides(parameters)...)
	environment = append(harness.SAMEnvironment(s.Workspace, ""),
		"AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY=secret",
		// SAM looks up the account of these keys. The lookup fails at this closed port, and SAM continues.
		"AWS_ENDPOINT_URL_STS=http://127.0.0.1:9", "AWS_MAX_ATTEMPTS=1",
	)
	if s.engine.host != "" {
		environment = append(environment, "DOCKER_HOST="+s.engine.host)
	}
	return environment, append(all, arguments...)
}
