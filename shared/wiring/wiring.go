// Package wiring builds the parts of a function from its environment: clients, stores, keys and the request pipeline.
// The New of each function (functions/*/wire.go) calls the methods for the parts that it needs. Its bootstrap passes
// New to Run.
//
// Outside has what a function reaches outside its own memory: Run uses the real world, the simulator a model of it. The
// package decides nothing about a request. Its invariant: an incomplete or invalid environment stops the start, with
// one error that names every fault.
package wiring

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/circuit"
	circuitdynamo "mobilegateway/shared/circuit/dynamo"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/limit"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/telemetry"
)

const (
	// minRefreshInterval is the shortest time between two forced refreshes of a secret (decision "key-rings").
	minRefreshInterval = 30 * time.Second
	// initTimeout bounds the tasks of the init phase: a slow connection must not stop the start.
	initTimeout = 3 * time.Second
	// maxConcurrency is the largest ACCOUNT_CONCURRENCY.
	maxConcurrency = 100_000
	// probeMargin is how long a probe outlasts the longest operator call.
	probeMargin = 5 * time.Second
)

// Dependencies makes the parts of one function. Env is exported for settings that only one function has.
type Dependencies struct {
	Outside
	Env          *settings.Environment
	secretCaches map[string]*secret.Cache
	rings        []*keyring.RefreshingRing
	directory    *operator.DriverDirectory // made on first use
	circuits     *circuit.Circuits         // made on first use; nil for none
	readCircuits func(ctx context.Context, operation string) error
	// initTasks run in the init phase. warmsDynamoDB is set once they include the connection to DynamoDB.
	initTasks     []func(context.Context) error
	warmsDynamoDB bool
}

// NewDependencies makes the parts of a function over an outside world. getenv reads the function's environment.
func NewDependencies(outside Outside, getenv func(string) string) *Dependencies {
	return &Dependencies{
		Outside: outside, Env: settings.FromEnv(getenv), secretCaches: map[string]*secret.Cache{},
	}
}

// Handler handles invocations. lambda.Handler of aws-lambda-go is the same interface.
type Handler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Run builds a function from the process environment over the real outside world, and starts the runtime's loop, which
// does not return while the function lives. An error is logged and ends the process; Lambda reports it.
func Run(start func(handler any), build func(*Dependencies) (Handler, error)) {
	client, err := awsclient.New(os.Getenv)
	if err != nil {
		log.Fatal(fmt.Errorf("cannot start: %w", err))
	}
	handler, err := build(NewDependencies(realOutside(client), os.Getenv))
	if err != nil {
		log.Fatal(err)
	}
	start(handler)
}

// secretCache returns the cache of the secret that a variable names. The init phase fetches the secret. The cache
// renews it so often that a revoked key and an operator's former token end within a minute.
func (d *Dependencies) secretCache(variableName string) *secret.Cache {
	if cache, found := d.secretCaches[variableName]; found {
		return cache
	}
	ttl := min(d.Env.Duration(settings.SecretCacheTTL), keyring.RenewalInterval)
	cache := secret.NewCache(d.SecretSource(), d.Env.Required(variableName), ttl, minRefreshInterval, d.Now)
	cache.Await = d.Await
	d.secretCaches[variableName] = cache
	d.initTasks = append(d.initTasks, func(ctx context.Context) error {
		_, err := cache.Get(ctx)
		return err
	})
	return cache
}

// Authenticator returns the part that authenticates merchants.
func (d *Dependencies) Authenticator() *merchant.Authenticator {
	cacheTTL := d.Env.Duration(settings.ProfileCacheTTL)
	return merchant.NewAuthenticator(d.MerchantStore(), d.KeyRing(settings.TokenPublicKeySecret), cacheTTL, d.Now)
}

// MerchantStore returns the store of merchant profiles.
func (d *Dependencies) MerchantStore() *merchantdynamo.Store {
	d.warmDynamoDB()
	return merchantdynamo.New(d.DynamoDB(), d.Env.Required(settings.MerchantTable))
}

// KeyRing returns the key ring whose secret a variable names.
func (d *Dependencies) KeyRing(variableName string) *keyring.RefreshingRing {
	ring := keyring.NewRefreshingRing(d.secretCache(variableName), d.Env.Duration(settings.SecretCacheTTL), d.Now)
	d.rings = append(d.rings, ring)
	return ring
}

// countStaleRings counts in a request's line that it used a key ring that could not be renewed.
func (d *Dependencies) countStaleRings(line *telemetry.LogLine) {
	for _, ring := range d.rings {
		if ring.TakeStaleUses() > 0 {
			line.Increment(telemetry.StaleKeyRings)
		}
	}
}

// LedgerStore returns the store of transactions for a function that writes them.
func (d *Dependencies) LedgerStore() *dynamo.Store {
	store := d.LedgerReader()
	store.PackResponses = d.Env.Bool(settings.PackResponses)
	return store
}

// LedgerReader returns the store of transactions for a function that only reads them.
func (d *Dependencies) LedgerReader() *dynamo.Store {
	d.warmDynamoDB()
	return dynamo.New(d.DynamoDB(), d.Env.Required(settings.LedgerTable))
}

// warmDynamoDB makes the init phase open the first connection to DynamoDB.
func (d *Dependencies) warmDynamoDB() {
	if d.warmsDynamoDB {
		return
	}
	d.warmsDynamoDB = true
	d.initTasks = append(d.initTasks, d.OpenDynamoDB)
}

// RateLimiter returns the limiter of the requests per second of each merchant, and to each operator's account.
func (d *Dependencies) RateLimiter() *limit.RateLimiter {
	return limit.NewRateLimiter(d.limitStore(), d.Now)
}

// DailyAmounts keeps merchants within their daily amounts.
func (d *Dependencies) DailyAmounts() *dailyamount.Counter {
	return &dailyamount.Counter{Store: d.limitStore(), Now: d.Now, Rand: d.Rand, Sleep: d.Sleep}
}

// limitStore returns the store of limits; it shares its connections with the ledger.
func (d *Dependencies) limitStore() *limitdynamo.Store {
	return limitdynamo.New(d.DynamoDB(), d.Env.Required(settings.LimitTable))
}

// CallbackKeys returns the keys of callback addresses.
func (d *Dependencies) CallbackKeys() *callback.Keys {
	return callback.New(d.KeyRing(settings.CallbackKeySecret), d.Env.Duration(settings.SecretCacheTTL))
}

// OutgoingPolicy returns the rule for addresses that merchants choose.
func (d *Dependencies) OutgoingPolicy() outgoing.Policy {
	return outgoing.Policy{AllowLoopback: d.Env.LoopbackAllowed()}
}

// OperatorDirectory returns the drivers of all operators. All parts of a function share them, with their connections.
func (d *Dependencies) OperatorDirectory() *operator.DriverDirectory {
	if d.directory == nil {
		credentials := d.secretCache(settings.OperatorCredentialsSecret)
		d.directory = drivers.New(credentials, drivers.Outside{
			Transport: d.OperatorTransport, Now: d.Now, Await: d.Await,
			AcceptsPrivateNetworks: d.Env.LoopbackAllowed(),
		})
	}
	return d.directory
}

// Pipeline returns the request pipeline over a store of transactions.
func (d *Dependencies) Pipeline(store *dynamo.Store) *operation.Pipeline {
	return &operation.Pipeline{
		Merchants:       d.Authenticator(),
		Book:            d.Book(store),
		Operators:       d.OperatorDirectory(),
		RateLimiter:     d.RateLimiter(),
		DailyAmounts:    d.DailyAmounts(),
		OperatorTimeout: d.Env.Duration(settings.OperatorTimeout),
		Circuits:        d.Circuits(),
		Now:             d.Now,
	}
}

// Circuits returns the circuits of the operators' accounts; nil for none, without ACCOUNT_CONCURRENCY.
func (d *Dependencies) Circuits() *circuit.Circuits {
	concurrency := d.Env.WholeNumber(settings.AccountConcurrency, maxConcurrency)
	if d.circuits == nil && concurrency > 0 {
		store := circuitdynamo.New(d.DynamoDB(), d.Env.Required(settings.LimitTable))
		d.circuits = &circuit.Circuits{
			Writer:     circuit.Writer{Store: store, Now: d.Now, Rand: d.Rand},
			MaxSlow:    concurrency * d.Env.WholeNumber(settings.OperatorShare, 100) / 100,
			ProbeLapse: d.Env.Duration(settings.OperatorTimeout) + probeMargin,
			Start:      d.Start, Await: d.Await, After: d.After,
		}
		d.readCircuits = d.ReadCircuits
	}
	return d.circuits
}

// ReadCircuits reads the circuits of the accounts that get new transactions of an operation.
func (d *Dependencies) ReadCircuits(ctx context.Context, operation string) error {
	accounts, err := d.OperatorDirectory().Accounts(ctx, operation)
	d.circuits.Read(accounts, operation)
	return err
}

// BaseURL returns the public address of the API, for functions whose responses contain addresses. "" takes it from each
// request.
func (d *Dependencies) BaseURL() string { return d.Env.URL(settings.BaseURL) }

// CallbackBaseURL returns the base of the operators' callback addresses. "" takes it from each request, as BaseURL
// does.
func (d *Dependencies) CallbackBaseURL() string { return d.Env.SecureURL(settings.CallbackBaseURL) }

// StackName returns the name of the deployed stack, for the metrics.
func (d *Dependencies) StackName() string { return d.Env.Required(settings.StackName) }

// APIHandler returns the handler of an API function. baseURL is "" for a function whose responses contain no address.
// Call it last: it validates the environment and runs the init tasks.
func (d *Dependencies) APIHandler(operation, baseURL string, routes ...apigw.Route) (Handler, error) {
	config := apigw.Config{Operation: operation, StackName: d.StackName(), BaseURL: baseURL, Now: d.Now, Log: d.Log,
		CountUses: func(line *telemetry.LogLine) {
			d.countStaleRings(line)
			d.circuits.Finish(line)
		}}
	if d.circuits != nil {
		d.initTasks = append(d.initTasks, func(ctx context.Context) error { return d.readCircuits(ctx, operation) })
	}
	if err := d.ValidateAndWarm(); err != nil {
		return nil, err
	}
	return apigw.New(config, routes...), nil
}

// ValidateAndWarm returns one error with every fault of the environment, and runs the init tasks. A failed init task is
// left to the first request. WARM_CONNECTIONS=false skips the tasks; it is for measurements only.
func (d *Dependencies) ValidateAndWarm() error {
	warm := d.Env.Bool(settings.WarmConnections)
	if err := d.Env.Err(); err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	if !warm {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), initTimeout)
	defer cancel()
	// The error is dropped: the first request repeats the work, and reports a failure of its own.
	_ = awsclient.RunInitTasks(ctx, d.initTasks...)
	return nil
}
