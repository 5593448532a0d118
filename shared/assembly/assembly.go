// Package assembly puts a function together from its environment: the clients, the stores, the keys, and the desk where
// requests pass. A bootstrap asks for the parts that its function needs and starts.
//
// It decides nothing about a request. Its invariant: whatever is missing or wrong in the environment stops the start,
// with one error that names every fault.
package assembly

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
	// refreshEvery is the shortest time between two refreshes of a secret that something asked for (decision "key-rings").
	refreshEvery = 30 * time.Second
	// warmTimeout bounds the connections that the init phase opens: a slow one must not cost the start.
	warmTimeout = 3 * time.Second
)

// Parts hands out the parts of one function. Env is open for the settings that only this function has.
type Parts struct {
	Env     *settings.Environment
	Now     func() time.Time
	aws     *awsclient.Client
	secrets map[string]*secret.Cache
	// operators is nil until a part asks for it.
	operators *operator.Directory
	// warm is what the init phase does; connects is set once it opens DynamoDB.
	warm     []func(context.Context) error
	connects bool
}

// FromEnvironment begins a function's assembly from the process environment and the system's clock. It fails where
// the AWS clients cannot be made.
func FromEnvironment() (*Parts, error) {
	client, err := awsclient.New(os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("cannot start: %w", err)
	}
	return &Parts{Env: settings.FromEnv(os.Getenv), Now: time.Now, aws: client, secrets: map[string]*secret.Cache{}}, nil
}

// Handler is what a bootstrap hands to the runtime's loop; lambda.Handler of aws-lambda-go is the same.
type Handler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Run assembles a function and starts the runtime's loop with it, which does not return while the function lives. What
// stops the start goes to the log, and the process ends: Lambda reports it.
func Run(start func(handler any), assemble func(*Parts) (Handler, error)) {
	parts, err := FromEnvironment()
	if err != nil {
		log.Fatal(err)
	}
	handler, err := assemble(parts)
	if err != nil {
		log.Fatal(err)
	}
	start(handler)
}

// secret is the cache of the secret that a variable names, fetched in the init phase.
func (p *Parts) secret(variable string) *secret.Cache {
	if cache, found := p.secrets[variable]; found {
		return cache
	}
	cache := secret.New(secretaws.New(p.aws.Secrets()), p.Env.Required(variable), p.Env.Duration(settings.SecretCache), refreshEvery, p.Now)
	p.secrets[variable] = cache
	p.warm = append(p.warm, func(ctx context.Context) error {
		_, err := cache.Get(ctx)
		return err
	})
	return cache
}

// Authenticator is who may come in.
func (p *Parts) Authenticator() *merchant.Authenticator {
	return merchant.NewAuthenticator(p.Merchants(), p.secret(settings.TokenKeySecret), p.Env.Duration(settings.ProfileCache), p.Now)
}

// Merchants is the store of the merchants' profiles.
func (p *Parts) Merchants() *merchantdynamo.Store {
	p.connect()
	return merchantdynamo.New(p.aws.DynamoDB(), p.Env.Required(settings.MerchantTable))
}

// TokenKeys is the secret of the key ring that signs short-lived tokens.
func (p *Parts) TokenKeys() *secret.Cache { return p.secret(settings.TokenKeySecret) }

// Ledger is the store of transactions.
func (p *Parts) Ledger() *dynamo.Store {
	p.connect()
	return dynamo.New(p.aws.DynamoDB(), p.Env.Required(settings.LedgerTable))
}

// connect has the first connection to DynamoDB opened in the init phase.
func (p *Parts) connect() {
	if p.connects {
		return
	}
	p.connects = true
	p.warm = append(p.warm, p.aws.OpenDynamoDB)
}

// Callbacks gives the keys of callback addresses.
func (p *Parts) Callbacks() *callback.Keys {
	return callback.New(p.secret(settings.CallbackKeySecret), p.Env.Duration(settings.SecretCache), p.Now)
}

// Outgoing is the rule for addresses that merchants choose.
func (p *Parts) Outgoing() outgoing.Policy {
	return outgoing.Policy{AllowLoopback: p.Env.Loopback()}
}

// Operators is every operator with its driver. All parts of a function share the drivers, and with them the connections
// to the operators.
func (p *Parts) Operators() *operator.Directory {
	if p.operators == nil {
		p.operators = drivers.Directory(p.secret(settings.OperatorSecret), p.Now)
	}
	return p.operators
}

// Desk is where the requests of an operation pass, over a store of transactions.
func (p *Parts) Desk(store ledger.Writer) *operation.Desk {
	return &operation.Desk{
		Merchants:       p.Authenticator(),
		Book:            &ledger.Book{Store: store, Now: p.Now, Rand: rand.Reader},
		Operators:       p.Operators(),
		Rate:            p.Rate(),
		Amounts:         p.Amounts(),
		OperatorTimeout: p.Env.Duration(settings.OperatorTimeout),
		Now:             p.Now,
	}
}

// BaseURL is the public address of the API, for functions whose answers hold addresses; "" takes it from each request.
func (p *Parts) BaseURL() string { return p.Env.URL(settings.BaseURL) }

// CallbackBaseURL is the base of the addresses at which operators call back; "" takes it from each request, as BaseURL.
func (p *Parts) CallbackBaseURL() string { return p.Env.URL(settings.CallbackBaseURL) }

// Stack is the name of the deployed stack, for the metrics.
func (p *Parts) Stack() string { return p.Env.Required(settings.Stack) }

// Gateway is the handler of an API function; base is "" for one whose answers hold no address. Call it last: it reports
// every fault of the environment, and opens the connections of the init phase.
func (p *Parts) Gateway(operation, base string, routes ...apigw.Route) (Handler, error) {
	config := apigw.Config{Operation: operation, Stack: p.Stack(), BaseURL: base, Now: p.Now, Log: os.Stdout}
	if err := p.Ready(); err != nil {
		return nil, err
	}
	return apigw.New(config, routes...), nil
}

// Ready reports every fault of the environment and opens the connections of the init phase. What cannot be opened is
// left to the first request, and so is everything where WARM_CONNECTIONS is false, which is only for measuring.
func (p *Parts) Ready() error {
	warm := p.Env.Flag(settings.WarmConnections)
	if err := p.Env.Err(); err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	if !warm {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), warmTimeout)
	defer cancel()
	// What fails here is not reported: the first request does that work again, and says so if it fails then too.
	_ = awsclient.Warm(ctx, p.warm...)
	return nil
}
