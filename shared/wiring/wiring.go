// Package assembly puts a function together from its environment: the clients, the stores, the keys, and the desk where
// requests pass. A bootstrap asks for the parts that its function needs and starts.
//
// It decides nothing about a request. Its invariant: whatever is missing or wrong in the environment stops the start,
// with one error that names every fault.
package wiring

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/secret"
	secretaws "mobilegateway/shared/secret/aws"
	"mobilegateway/shared/settings"
)

const (
	// minRefreshInterval is the shortest time between two refreshes of a secret that something asked for (decision "key-rings").
	minRefreshInterval = 30 * time.Second
	// initTimeout bounds the connections that the init phase opens: a slow one must not cost the start.
	initTimeout = 3 * time.Second
)

// Dependencies hands out the parts of one function. Env is open for the settings that only this function has.
type Dependencies struct {
	Env          *settings.Environment
	Now          func() time.Time
	aws          *awsclient.Client
	secretCaches map[string]*secret.Cache
	// directory is nil until a part asks for it.
	directory *operator.DriverDirectory
	// initTasks is what the init phase does; connects is set once it opens DynamoDB.
	initTasks     []func(context.Context) error
	warmsDynamoDB bool
}

// LoadDependencies begins a function's assembly from the process environment and the system's clock. It fails where
// the AWS clients cannot be made.
func LoadDependencies() (*Dependencies, error) {
	client, err := awsclient.New(os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("cannot start: %w", err)
	}
	return &Dependencies{Env: settings.FromEnv(os.Getenv), Now: time.Now, aws: client, secretCaches: map[string]*secret.Cache{}}, nil
}

// Handler is what a bootstrap hands to the runtime's loop; lambda.Handler of aws-lambda-go is the same.
type Handler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Run assembles a function and starts the runtime's loop with it, which does not return while the function lives. What
// stops the start goes to the log, and the process ends: Lambda reports it.
func Run(start func(handler any), build func(*Dependencies) (Handler, error)) {
	dependencies, err := LoadDependencies()
	if err != nil {
		log.Fatal(err)
	}
	handler, err := build(dependencies)
	if err != nil {
		log.Fatal(err)
	}
	start(handler)
}

// secretCache is the cache of the secret that a variable names, fetched in the init phase.
func (d *Dependencies) secretCache(variableName string) *secret.Cache {
	if cache, found := d.secretCaches[variableName]; found {
		return cache
	}
	cache := secret.NewCache(secretaws.New(d.aws.SecretsManager()), d.Env.Required(variableName), d.Env.Duration(settings.SecretCacheTTL), minRefreshInterval, d.Now)
	d.secretCaches[variableName] = cache
	d.initTasks = append(d.initTasks, func(ctx context.Context) error {
		_, err := cache.Get(ctx)
		return err
	})
	return cache
}

// Authenticator is who may come in.
func (d *Dependencies) Authenticator() *merchant.Authenticator {
	return merchant.NewAuthenticator(d.MerchantStore(), d.secretCache(settings.TokenKeySecret), d.Env.Duration(settings.ProfileCacheTTL), d.Now)
}

// MerchantStore is the store of the merchants' profiles.
func (d *Dependencies) MerchantStore() *merchantdynamo.Store {
	d.warmDynamoDB()
	return merchantdynamo.New(d.aws.DynamoDB(), d.Env.Required(settings.MerchantTable))
}

// TokenKeySecret is the secret of the key ring that signs short-lived tokens.
func (d *Dependencies) TokenKeySecret() *secret.Cache { return d.secretCache(settings.TokenKeySecret) }

// LedgerStore is the store of transactions.
func (d *Dependencies) LedgerStore() *dynamo.Store {
	d.warmDynamoDB()
	return dynamo.New(d.aws.DynamoDB(), d.Env.Required(settings.LedgerTable))
}

// warmDynamoDB has the first connection to DynamoDB opened in the init phase.
func (d *Dependencies) warmDynamoDB() {
	if d.warmsDynamoDB {
		return
	}
	d.warmsDynamoDB = true
	d.initTasks = append(d.initTasks, d.aws.OpenDynamoDB)
}

// CallbackKeys gives the keys of callback addresses.
func (d *Dependencies) CallbackKeys() *callback.Keys {
	return callback.New(d.secretCache(settings.CallbackKeySecret), d.Env.Duration(settings.SecretCacheTTL), d.Now)
}

// OutgoingPolicy is the rule for addresses that merchants choose.
func (d *Dependencies) OutgoingPolicy() outgoing.Policy {
	return outgoing.Policy{AllowLoopback: d.Env.LoopbackAllowed()}
}

// OperatorDirectory is every operator with its driver. All parts of a function share the drivers, and with them the connections
// to the operators.
func (d *Dependencies) OperatorDirectory() *operator.DriverDirectory {
	if d.directory == nil {
		d.directory = drivers.NewDirectory(d.secretCache(settings.OperatorCredentialsSecret), d.Now)
	}
	return d.directory
}

// Pipeline is where the requests of an operation pass, over a store of transactions.
func (d *Dependencies) Pipeline(store ledger.Writer) *operation.Pipeline {
	return &operation.Pipeline{
		Merchants:       d.Authenticator(),
		Book:            &ledger.Book{Store: store, Now: d.Now, Rand: rand.Reader},
		Operators:       d.OperatorDirectory(),
		RateLimiter:     d.RateLimiter(),
		DailyAmounts:    d.DailyAmounts(),
		OperatorTimeout: d.Env.Duration(settings.OperatorTimeout),
		Now:             d.Now,
	}
}

// BaseURL is the public address of the API, for functions whose answers hold addresses; "" takes it from each request.
func (d *Dependencies) BaseURL() string { return d.Env.URL(settings.BaseURL) }

// CallbackBaseURL is the base of the addresses at which operators call back; "" takes it from each request, as BaseURL.
func (d *Dependencies) CallbackBaseURL() string { return d.Env.URL(settings.CallbackBaseURL) }

// StackName is the name of the deployed stack, for the metrics.
func (d *Dependencies) StackName() string { return d.Env.Required(settings.StackName) }

// APIHandler is the handler of an API function; base is "" for one whose answers hold no address. Call it last: it reports
// every fault of the environment, and opens the connections of the init phase.
func (d *Dependencies) APIHandler(operation, baseURL string, routes ...apigw.Route) (Handler, error) {
	config := apigw.Config{Operation: operation, StackName: d.StackName(), BaseURL: baseURL, Now: d.Now, Log: os.Stdout}
	if err := d.ValidateAndWarm(); err != nil {
		return nil, err
	}
	return apigw.New(config, routes...), nil
}

// ValidateAndWarm reports every fault of the environment and opens the connections of the init phase. What cannot be opened is
// left to the first request, and so is everything where WARM_CONNECTIONS is false, which is only for measuring.
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
	// What fails here is not reported: the first request does that work again, and says so if it fails then too.
	_ = awsclient.RunInitTasks(ctx, d.initTasks...)
	return nil
}
