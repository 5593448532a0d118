package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mobilegateway/local"
	"mobilegateway/shared/awsclient"
	"mobilegateway/world/dynoxide"
	"mobilegateway/world/lambda"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/platforms"
	"mobilegateway/world/operators/sandbox"
	"mobilegateway/world/secrets"
	"mobilegateway/world/streams"
	"mobilegateway/world/template"
)

// baseline is the name of the minimal function that the others are compared with.
const baseline = "hello"

// delays are how long a call waits before the service handles it.
type delays struct{ table, secrets, operator time.Duration }

// fixture has the programs, the services that they call, and the merchant whose requests they get. DynamoDB and Secrets
// Manager are those of the local run, behind a delay.
type fixture struct {
	deployment *template.Template
	folder     string // of the built programs
	delays     delays
	dynamo     *meter
	billed     *unitCounter
	circuits   *meter
	operator   *meter
	inbox      *meter // of the merchant
	payer      *payer
	client     *awsclient.Client // past the meters' delays
	steps      map[string]*lambda.Function
	plain      bool // new functions do not pack responses
	merchant   local.MerchantCredentials
	endpoints  map[string]string
	closers    []func()
}

// newFixture builds the programs, starts the services and seeds them. The caller must close the fixture.
func newFixture(ctx context.Context, root string, wait delays) (*fixture, error) {
	deployment, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{
		StackName: "bench", Parameters: local.Parameters(),
	})
	if err != nil {
		return nil, err
	}
	s := &fixture{
		deployment: deployment, folder: filepath.Join(root, ".local", "bench"), delays: wait,
		steps: map[string]*lambda.Function{},
	}
	// The builder compares only the sources of what ships. The minimal function is not among them: build it each time.
	if err := os.RemoveAll(filepath.Join(s.folder, baseline)); err != nil {
		return nil, err
	}
	programs := append(deployment.Functions, template.Function{Name: baseline, CodeURI: "bench/hello/"})
	if err := local.Build(ctx, root, s.folder, programs, func() error { return nil }); err != nil {
		return nil, err
	}
	if err := s.startServices(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *fixture) startServices(ctx context.Context) error {
	dynamoDB, err := s.startDynamoDB(ctx, s.deployment.Tables)
	if err != nil {
		return err
	}
	secretsManager, err := s.newSecretsManager(s.deployment.Secrets)
	if err != nil {
		return err
	}
	operator := http.NewServeMux()
	s.billed = &unitCounter{next: dynamoDB}
	s.dynamo = &meter{next: delayCalls(s.delays.table, s.billed), calls: map[string]int{}}
	s.circuits = &meter{next: delayCalls(s.delays.table, dynamoDB), calls: map[string]int{}}
	s.inbox = &meter{next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), calls: map[string]int{}}
	s.operator = &meter{next: delayCalls(s.delays.operator, keepAlive(operator)), calls: map[string]int{}}
	s.endpoints = map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "BENCH", "AWS_SECRET_ACCESS_KEY": "bench",
		"ALLOW_LOOPBACK":                   "true",
		"AWS_ENDPOINT_URL_DYNAMODB":        s.serve(circuitReads{s.circuits, s.dynamo}),
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": s.serve(delayCalls(s.delays.secrets, secretsManager)),
	}
	client, err := awsclient.New(func(name string) string { return s.endpoints[name] })
	if err != nil {
		return err
	}
	s.client = client
	deployment := local.Deployment{
		Client: client, Names: s.deployment.References,
		SandboxURL: s.serve(s.operator), SandboxToken: "operator-token", InboxURL: s.serve(s.inbox),
	}
	info, err := deployment.Seed(ctx)
	if err != nil {
		return err
	}
	s.merchant = info.MerchantCredentials
	noCallbacks := func(time.Duration, func()) {}
	s.payer = &payer{callbacks: map[string]kit.Outgoing{}}
	stubs := platforms.Config{
		URL: deployment.SandboxURL, GatewayURL: "http://127.0.0.1", CallbackSecret: strings.Repeat("s", 32),
		Kit: kit.Config{After: noCallbacks},
	}
	operator.Handle("/mtn/", stubs.Handler())
	ordinary, err := sandbox.New(sandbox.Config{
		Tokens: []string{deployment.SandboxToken}, BaseURL: deployment.SandboxURL,
		Config: s.payer.config(),
	})
	if err != nil {
		return err
	}
	operator.Handle("/", ordinary.Handler())
	_, err = deployment.RouteToStubs(ctx, info, stubs)
	return err
}

// keepAlive lets a client use its connections again, as operators do. The sandbox closes each one, so that no client
// takes a cut for a stale connection; here nothing is cut.
func keepAlive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(keptConnection{w}, r)
	})
}

// keptConnection drops the header that closes the connection.
type keptConnection struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w keptConnection) WriteHeader(status int) {
	w.Header().Del("Connection")
	w.ResponseWriter.WriteHeader(status)
}

// startDynamoDB starts an engine in memory with the template's tables. They have no stream: the engine slows down as a
// stream grows, and no function reads it here.
func (s *fixture) startDynamoDB(ctx context.Context, tables []template.Table) (http.Handler, error) {
	engine, err := dynoxide.Start(ctx, "")
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, engine.Stop)
	for i := range tables {
		tables[i].StreamView = ""
	}
	client := streams.NewClient(engine.Endpoint(), "us-east-1", "BENCH", "bench", time.Now)
	if err := client.EnsureTables(ctx, tables); err != nil {
		return nil, err
	}
	address, err := url.Parse(engine.Endpoint())
	return streams.NewProxy(address), err
}

// newSecretsManager returns a Secrets Manager with the template's secrets, without values.
func (s *fixture) newSecretsManager(list []template.Secret) (http.Handler, error) {
	folder, err := os.MkdirTemp("", "bench-secrets-")
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() { _ = os.RemoveAll(folder) })
	store, err := secrets.Open(filepath.Join(folder, "secrets.json"), time.Now, lambda.NewRequestID)
	if err != nil {
		return nil, err
	}
	for _, secret := range list {
		if err := store.Ensure(secret.Name); err != nil {
			return nil, err
		}
	}
	return store, nil
}

func (s *fixture) close() {
	s.stopSteps()
	for _, stop := range s.closers {
		stop()
	}
}

// stopSteps stops the functions that make the requests before a measured one.
func (s *fixture) stopSteps() {
	for name, step := range s.steps {
		step.Close()
		delete(s.steps, name)
	}
}

func (s *fixture) serve(handler http.Handler) string {
	server := httptest.NewServer(handler)
	s.closers = append(s.closers, server.Close)
	return server.URL
}

func (s *fixture) programPath(name string) string { return filepath.Join(s.folder, name, "bootstrap") }

// newFunction returns a function that runs a program in the environment of template.yaml. The minimal function has the
// environment of the first one. warm sets whether it opens its connections in the init phase.
func (s *fixture) newFunction(name string, warm bool) (*lambda.Function, error) {
	found := s.deployment.Function(name)
	if name == baseline {
		found = &s.deployment.Functions[0]
	}
	if found == nil {
		return nil, fmt.Errorf("template.yaml has no function %s", name)
	}
	environment := maps.Clone(found.Environment)
	maps.Copy(environment, s.endpoints)
	environment["WARM_CONNECTIONS"] = fmt.Sprint(warm)
	if s.plain {
		environment["PACK_RESPONSES"] = "false"
	}
	return lambda.NewFunction(lambda.Spec{
		Name: name, Bootstrap: s.programPath(name), Env: environment, Timeout: found.Timeout, Memory: found.MemoryMB,
		MaxProcesses: 1,
	}), nil
}
