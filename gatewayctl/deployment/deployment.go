// Package deployment opens the stores of one deployment for gatewayctl.
//
// The stores of a dry run store nothing. Each of their writes returns the refusal that the real write would return.
package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/counts/daycount"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/pause"
	"mobilegateway/shared/webhook"
)

// System is the tool's environment. User is the person at the keyboard. Connect opens the stores of a deployment;
// commands that need none never call it. It receives the variables and the deployment as the command line changed them
// (--local).
type System struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	User           string
	Now            func() time.Time
	Rand           io.Reader
	Connect        func(env System, deployment Names) (*Stores, error)
	// Terminal prompts the person at the keyboard; nil if the standard input is not a terminal.
	Terminal Terminal
	// ReadStack finds a deployment by its stack's name (--stack).
	ReadStack func(ctx context.Context, name string) (*Stack, error)
	// Credentials sign the requests to AWS; nil for those of the variables.
	Credentials aws.CredentialsProvider
	// Columns returns the width of the standard output if it is a terminal, else 0. Without it there is no terminal.
	Columns func() int
	// Sleep waits, or returns the context's error. Without it pause.For waits.
	Sleep func(ctx context.Context, wait time.Duration) error
}

// Width returns Columns, 0 without it.
func (s System) Width() int {
	if s.Columns == nil {
		return 0
	}
	return s.Columns()
}

// Pause waits by Sleep, or by pause.For without it.
func (s System) Pause(ctx context.Context, wait time.Duration) error {
	if s.Sleep == nil {
		return pause.For(ctx, wait)
	}
	return s.Sleep(ctx, wait)
}

// Terminal prompts for lines. Both methods return the line without its end, and io.EOF if the input ended.
type Terminal interface {
	Prompt(question string) (string, error)
	PromptSecret(question string) (string, error) // without echo
}

// Stack is a deployment as its CloudFormation stack describes it. Variables are those of the tool, the region among
// them, for values that are known.
type Stack struct {
	Variables   map[string]string
	Credentials aws.CredentialsProvider
}

// Names are those of the tables and secrets of a deployment, by flags or by the variables that its functions have.
type Names struct {
	Stack             string `name:"stack" placeholder:"NAME" help:"Find all of these by this CloudFormation stack."`
	LedgerTable       string `variable:"LEDGER_TABLE" placeholder:"NAME" help:"Table of transactions."`
	MerchantTable     string `variable:"MERCHANT_TABLE" placeholder:"NAME" help:"Table of merchants."`
	LimitTable        string `variable:"LIMIT_TABLE" placeholder:"NAME" help:"Table of limits and circuits."`
	OperatorSecret    string `variable:"OPERATOR_CREDENTIALS_SECRET" placeholder:"NAME" help:"Operator secret."`
	TokenKeySecret    string `variable:"TOKEN_KEY_SECRET" placeholder:"NAME" help:"Private token key secret."`
	CallbackKeySecret string `variable:"CALLBACK_KEY_SECRET" placeholder:"NAME" help:"Callback key secret."`
	WebhookKeySecret  string `variable:"WEBHOOK_KEY_SECRET" placeholder:"NAME" help:"Webhook key secret."`
	AuditLogGroup     string `variable:"AUDIT_LOG_GROUP" placeholder:"NAME" help:"Log group of audit records."`
	// TokenPublicKeySecret is the secret with the public ring of token keys.
	TokenPublicKeySecret string `variable:"TOKEN_PUBLIC_KEY_SECRET" placeholder:"NAME" help:"Public token key secret."`

	SandboxURL      string        `variable:"SANDBOX_URL" placeholder:"URL" help:"Address of the sandbox operator."`
	SecretCache     time.Duration `variable:"SECRET_CACHE_TTL" default:"5m" help:"How long functions cache secrets."`
	ProfileCache    time.Duration `variable:"PROFILE_CACHE_TTL" default:"30s" help:"How long they cache profiles."`
	PaymentLifetime time.Duration `variable:"PAYMENT_LIFETIME" default:"24h" help:"Highest age of pending payments."`
}

// Ledger is the part of the ledger's store that the tool uses.
type Ledger interface {
	ledger.Reader
	ledger.Writer
	ledger.DayIndex
	ledger.DueQueue
	ledger.ReferenceIndex
}

// BatchReader reads many entries in one call.
type BatchReader interface {
	// GetBatch reads up to dynamoitem.MaxBatch different entries in one strongly consistent call. found has those that
	// exist. unread are the keys that the table did not read, because it throttles or the response is full.
	GetBatch(ctx context.Context, keys []ledger.Key) (
		found map[ledger.Key]*ledger.Entry, unread []ledger.Key, err error)
}

// ProfileReader reads the profiles of many merchants by few calls.
type ProfileReader interface {
	// Profiles reads those that exist, strongly consistent, in no order. It counts its calls.
	Profiles(ctx context.Context, ids []string) (profiles []*merchant.Profile, calls int, err error)
}

// CircuitReader reads many circuits by few calls.
type CircuitReader interface {
	// Forms reads the stored forms of those that exist, strongly consistent.
	Forms(ctx context.Context, keys []circuit.Key) (map[circuit.Key]string, error)
}

// Stores are the stores of one deployment.
type Stores struct {
	Merchants      merchant.Registry
	Ledger         Ledger
	Batches        BatchReader   // of the ledger's table
	Profiles       ProfileReader // nil in tests: each profile is then one read of Merchants
	EndpointHealth webhook.HealthStore
	DailyAmounts   *dailyamount.Counter // nil without LIMIT_TABLE: unknown resolve then refuses entries that count
	LookupRates    *limit.RateLimiter   // nil without LIMIT_TABLE: lookups are then not limited
	Counts         daycount.Store       // nil without LIMIT_TABLE: counts then refuses
	Circuits       *circuit.Writer      // nil without LIMIT_TABLE: the commands of circuits then refuse
	CircuitForms   CircuitReader        // nil in tests: each circuit is then one read of Circuits
	Secrets        SecretStore
	Audit          auditlog.Log
	AuditCopies    auditlog.Copies // nil if the deployment names no log group: nothing can be changed
	// Caller returns the identity of the person or the program that runs the tool.
	Caller func(context.Context) (string, error)
	// Sleep waits for a lookup's turn, or returns the context's error.
	Sleep func(ctx context.Context, wait time.Duration) error
}

// ReadOnly returns the stores of a dry run. Each write that a command makes returns the refusal that the real write
// would return, and stores nothing but that a lookup was made. A dry run writes no audit record.
func (s Stores) ReadOnly() *Stores {
	s.Merchants, s.Ledger = readOnlyMerchants{s.Merchants}, readOnlyLedger{s.Ledger}
	s.EndpointHealth, s.Secrets = readOnlyHealth{s.EndpointHealth}, readOnlySecrets{s.Secrets}
	if s.DailyAmounts != nil {
		amounts := *s.DailyAmounts
		amounts.Store = readOnlyAmounts{}
		s.DailyAmounts = &amounts
	}
	if s.Counts != nil {
		s.Counts = readOnlyCounts{s.Counts}
	}
	if s.Circuits != nil {
		circuits := *s.Circuits
		circuits.Store = readOnlyCircuits{circuits.Store}
		s.Circuits = &circuits
	}
	return &s
}

type readOnlyMerchants struct{ merchant.Registry }

// Create checks that the name is free.
func (m readOnlyMerchants) Create(ctx context.Context, p *merchant.Profile) error {
	holder, err := m.IDByName(ctx, p.Name)
	if err == nil && holder != "" {
		return merchant.ErrNameTaken
	}
	return err
}

// Update checks that the stored profile has the version that was read.
func (m readOnlyMerchants) Update(ctx context.Context, p *merchant.Profile) error {
	stored, err := m.Profile(ctx, p.ID)
	switch {
	case err != nil:
		return err
	case stored == nil:
		return merchant.ErrNotFound
	case stored.Version != p.Version:
		return merchant.ErrVersionConflict
	}
	return nil
}

type readOnlyLedger struct{ Ledger }

// Replace accepts every entry: the caller has just read it.
func (readOnlyLedger) Replace(context.Context, *ledger.Entry, ledger.Transition) (*ledger.Entry, error) {
	return nil, nil
}

// Insert accepts an entry whose key is free.
func (l readOnlyLedger) Insert(ctx context.Context, e *ledger.Entry, _ ledger.Transition) (*ledger.Entry, error) {
	existing, err := l.Get(ctx, e.Key)
	if err != nil || existing == nil || existing.PastRetention(e.UpdatedAt) {
		return nil, err
	}
	return existing, nil
}

// ClaimReference returns the owner that the reference has, or would have.
func (l readOnlyLedger) ClaimReference(ctx context.Context, charge *ledger.Entry) (string, error) {
	owner, err := l.ChargeOfReference(ctx, charge.Merchant.ID, charge.Request.ReferenceCode)
	return cmp.Or(owner, charge.ID), err
}

type readOnlyHealth struct{ webhook.HealthStore }

// SaveHealth accepts every health: a real write that came too late is harmless.
func (readOnlyHealth) SaveHealth(context.Context, webhook.Health) (bool, error) { return true, nil }

// SaveDisabled checks that the stored health has the version that was read.
func (r readOnlyHealth) SaveDisabled(ctx context.Context, h webhook.Health) (bool, error) {
	stored, err := r.Health(ctx, h.Endpoint)
	return stored.DisabledVersion == h.DisabledVersion, err
}

type readOnlySecrets struct{ SecretStore }

// Put checks that the secret has not changed since it was read.
func (r readOnlySecrets) Put(ctx context.Context, current StoredSecret, _ []byte) error {
	stored, err := r.Get(ctx, current.Name)
	if err == nil && stored.Revision != current.Revision {
		err = SecretChangedError(current.Name)
	}
	return err
}

type readOnlyAmounts struct{}

// Adjust accepts every adjustment.
func (readOnlyAmounts) Adjust(context.Context, dailyamount.Adjustment) (dailyamount.AdjustmentResult, error) {
	return dailyamount.AdjustmentResult{Applied: true}, nil
}

type readOnlyCounts struct{ daycount.Store }

// Save checks that no newer version stored the count.
func (c readOnlyCounts) Save(ctx context.Context, key daycount.Key, _ string) error {
	stored, _, err := c.Load(ctx, []daycount.Key{key})
	if err != nil || stored[key] == "" {
		return err
	}
	if _, err := daycount.Decode(stored[key]); errors.Is(err, daycount.ErrVersion) {
		return err
	}
	return nil // a damaged count is replaced
}

type readOnlyCircuits struct{ circuit.Store }

// Swap checks that the store has the form that was read.
func (r readOnlyCircuits) Swap(
	ctx context.Context, key circuit.Key, old, next string, _ time.Time,
) (current string, swapped bool, err error) {
	stored, err := r.Load(ctx, key)
	if err != nil || stored != old {
		return stored, false, err
	}
	return next, true, nil
}

// StoredSecret is a secret as it was read. Value is nil if it has none yet. Revision identifies what was read: Put
// refuses to overwrite another change.
type StoredSecret struct {
	Name     string
	Value    []byte
	Revision string
}

// SecretStore stores secrets. Its errors contain no value.
type SecretStore interface {
	// Get returns a secret with its current value, nil if it has none yet.
	Get(ctx context.Context, name string) (StoredSecret, error)
	// Put makes value the current one if the secret has not changed since current was read.
	Put(ctx context.Context, current StoredSecret, value []byte) error
}

// SecretChangedError is the error of a write over the change of another person.
func SecretChangedError(name string) error {
	return fmt.Errorf("secret %s was changed meanwhile: run the command again", name)
}
