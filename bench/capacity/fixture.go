package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"mobilegateway/local"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/world/dynoxide"
	"mobilegateway/world/lambda"
	"mobilegateway/world/secrets"
	"mobilegateway/world/streams"
	"mobilegateway/world/template"
)

// How long a call waits before it is handled: about what a function sees in a region.
const (
	tableDelay   = 3 * time.Millisecond
	outsideDelay = 30 * time.Millisecond
)

// merchants is the number of merchants, each with a server of its own, that share the entries evenly.
const merchants = 10

// fixture has the programs, the services that they call, and the merchants.
type fixture struct {
	deployment  *template.Template
	programs    string // their folder
	environment map[string]string
	engine      *dynoxide.Server
	engineAdmin *streams.Client
	client      *awsclient.Client // past the fronts
	tables      *front
	operator    *front
	servers     *front // of the merchants
	merchants   []*merchant.Profile
	operatorURL string
	addresses   []string // of the merchants' servers
	closers     []func()
}

// newFixture builds the programs, starts the services and adds the merchants. The caller must close the fixture.
func newFixture(ctx context.Context, root string) (f *fixture, err error) {
	deployment, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{
		StackName: "capacity", Parameters: local.Parameters(),
	})
	if err != nil {
		return nil, err
	}
	f = &fixture{deployment: deployment, programs: filepath.Join(root, ".local", "capacity")}
	var shipped []template.Function
	for _, name := range []string{"sweep", "relay"} {
		shipped = append(shipped, *deployment.Function(name))
	}
	if err := local.Build(ctx, root, f.programs, shipped, func() error { return nil }); err != nil {
		return nil, err
	}
	if err := f.startServices(ctx); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fixture) startServices(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "capacity-")
	if err != nil {
		return err
	}
	f.closers = append(f.closers, func() { _ = os.RemoveAll(folder) })
	if err := f.startEngine(ctx); err != nil {
		return err
	}
	secretsAddress, err := f.startSecretsManager(folder)
	if err != nil {
		return err
	}
	if err := f.startFronts(folder); err != nil {
		return err
	}
	own := map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "CAPACITY", "AWS_SECRET_ACCESS_KEY": "capacity",
		"AWS_ENDPOINT_URL_DYNAMODB": f.engine.Endpoint(), "AWS_ENDPOINT_URL_SECRETS_MANAGER": secretsAddress,
	}
	if f.client, err = awsclient.New(func(name string) string { return own[name] }); err != nil {
		return err
	}
	own["AWS_ENDPOINT_URL_DYNAMODB"] = f.environment["AWS_ENDPOINT_URL_DYNAMODB"]
	maps.Copy(f.environment, own)
	return f.addMerchants(ctx)
}

// startEngine starts the database in memory, with the template's tables. They have no stream: the engine slows down as
// a stream grows, and the events of the relay are made here.
func (f *fixture) startEngine(ctx context.Context) (err error) {
	if f.engine, err = dynoxide.Start(ctx, ""); err != nil {
		return err
	}
	f.closers = append(f.closers, f.engine.Stop)
	for i := range f.deployment.Tables {
		f.deployment.Tables[i].StreamView = ""
	}
	f.engineAdmin = streams.NewClient(f.engine.Endpoint(), "us-east-1", "CAPACITY", "capacity", time.Now)
	return f.engineAdmin.EnsureTables(ctx, f.deployment.Tables)
}

func (f *fixture) startSecretsManager(folder string) (address string, err error) {
	store, err := secrets.Open(filepath.Join(folder, "secrets.json"), time.Now, lambda.NewRequestID)
	if err != nil {
		return "", err
	}
	for _, secret := range f.deployment.Secrets {
		if err := store.Ensure(secret.Name); err != nil {
			return "", err
		}
	}
	server := httptest.NewServer(store)
	f.closers = append(f.closers, server.Close)
	return server.URL, nil
}

// startFronts starts the TLS servers, and sets the addresses and the authority that a program gets.
func (f *fixture) startFronts(folder string) error {
	addresses := make([]net.IP, 2+merchants)
	for i := range addresses {
		addresses[i] = net.IPv4(127, 0, 0, byte(1+i)) // Linux has all of 127.0.0.0/8
	}
	certificate, authority, err := newCertificate(addresses)
	if err != nil {
		return err
	}
	authorityFile := filepath.Join(folder, "authority.pem")
	if err := os.WriteFile(authorityFile, authority, 0o600); err != nil {
		return err
	}
	address, err := url.Parse(f.engine.Endpoint())
	if err != nil {
		return err
	}
	accept := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	f.tables = &front{delay: tableDelay, next: streams.NewProxy(address)}
	f.operator = &front{delay: outsideDelay, next: http.HandlerFunc(serveOperator)}
	f.servers = &front{delay: outsideDelay, next: accept}
	urls := make([]string, len(addresses))
	for i, of := range append([]*front{f.tables, f.operator}, slices.Repeat([]*front{f.servers}, merchants)...) {
		server, err := of.serve(certificate, addresses[i])
		if err != nil {
			return err
		}
		f.closers = append(f.closers, server.Close)
		urls[i] = server.URL
	}
	f.environment = map[string]string{
		"ALLOW_LOOPBACK": "true", "SSL_CERT_FILE": authorityFile, "AWS_ENDPOINT_URL_DYNAMODB": urls[0],
	}
	f.operatorURL, f.addresses = urls[1], urls[2:]
	return nil
}

// addMerchants seeds the secrets, with the stub as every operator, and stores the merchants.
func (f *fixture) addMerchants(ctx context.Context) error {
	info, err := local.Deployment{
		Client: f.client, Names: f.deployment.References,
		SandboxURL: f.operatorURL, SandboxToken: "operator-token", InboxURL: "http://127.0.0.1",
	}.Seed(ctx)
	if err != nil {
		return err
	}
	registry := merchantdynamo.NewRegistry(f.client.DynamoDB(), f.deployment.References["MerchantTable"])
	demo, err := registry.Profile(ctx, info.ClientID)
	if err != nil {
		return err
	}
	for i := range merchants {
		added, err := merchant.New("Capacity"+strconv.Itoa(i), rand.Reader, time.Now())
		if err != nil {
			return err
		}
		added.Entitlements, added.WebhookSecrets = demo.Entitlements, demo.WebhookSecrets
		if err := registry.Create(ctx, added); err != nil {
			return err
		}
		f.merchants = append(f.merchants, added)
	}
	return nil
}

// serveOperator is an operator that has applied each payment, and takes each SMS.
func serveOperator(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"outboundSMSMessageRequest":{"resourceURL":"https://operator.example/requests/1"}}`)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": "Successful", "order-id": path.Base(r.URL.Path), "amount": 500, "currency": "XOF",
		"Transaction-id": "T-1", "statusDescription": "Payment is successful",
	})
}

// newFunction returns a function that runs the program of a name as template.yaml describes it, once at a time.
func (f *fixture) newFunction(name string, output io.Writer) *lambda.Function {
	found := f.deployment.Function(name)
	environment := maps.Clone(found.Environment)
	maps.Copy(environment, f.environment)
	return lambda.NewFunction(lambda.Spec{
		Name: name, Bootstrap: filepath.Join(f.programs, name, "bootstrap"), Env: environment,
		Timeout: found.Timeout, Memory: found.MemoryMB, MaxProcesses: 1, Log: output,
	})
}

// setMemory sets the memory of all functions in MB; 0 leaves that of template.yaml.
func (f *fixture) setMemory(memoryMB int) {
	for i := range f.deployment.Functions {
		f.deployment.Functions[i].MemoryMB = cmp.Or(memoryMB, f.deployment.Functions[i].MemoryMB)
	}
}

// clearLedger replaces the ledger's table by an empty one.
func (f *fixture) clearLedger(ctx context.Context) error {
	ledgerTable := []template.Table{*f.deployment.Table("LedgerTable")}
	if err := f.engineAdmin.DeleteTables(ctx, ledgerTable); err != nil {
		return err
	}
	return f.engineAdmin.EnsureTables(ctx, ledgerTable)
}

func (f *fixture) close() {
	for i := range f.closers {
		f.closers[len(f.closers)-1-i]()
	}
}
