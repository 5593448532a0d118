// Package control is gatewayctl, the operations engineer's tool: merchants and what they hold, the key rings, the
// operators' credentials, the history of a transaction, deliveries, unknown outcomes, exports, and the sandbox's slots.
//
// It decides no rule of its own about money or access: the transitions are those of packages merchant, keyring and
// ledger. Its invariants: nothing is changed without --yes; what is changed leaves an audit record in the merchant table,
// written before the change and completed after it; and no secret is an argument, or stands in a record or an error.
package gatewayctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

// The exit codes.
const (
	ExitDone   = 0 // it was done, or shown
	ExitFailed = 1 // it could not be done; or a check did not hold
	ExitUsage  = 2 // the command line is wrong; nothing was tried
)

// Ledger is what the tool needs of the ledger's store.
type Ledger interface {
	ledger.Reader
	ledger.Writer
	ledger.DayIndex
	ledger.DueQueue
}

// Stores are where the gateway keeps what the tool works on.
type Stores struct {
	Merchants      merchant.Registry
	Ledger         Ledger
	EndpointHealth webhook.HealthStore
	LimitCounter   *dailyamount.Counter // nil where LIMIT_TABLE is not set: unknown resolve then refuses what counts against a limit
	Secrets        SecretStore
	Audit          AuditLog
}

// System is what the tool has around it. Variable reads a variable of the environment; Who is the person at the
// keyboard; Connect opens the stores of a deployment, which a command that needs none never asks for. The System and the
// places that it is given are as the command line made them (see --local).
type System struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer // standard output and standard error
	Getenv         func(string) string
	User           string
	Now            func() time.Time
	Rand           io.Reader
	Connect        func(env System, places Deployment) (*Stores, error)
}

// Deployment are a deployment's tables and secrets, by flag or by the variables that its functions have too.
type Deployment struct {
	LedgerTable       string        `group:"Deployment" variable:"LEDGER_TABLE" placeholder:"NAME" help:"Table of transactions ($$LEDGER_TABLE)."`
	MerchantTable     string        `group:"Deployment" variable:"MERCHANT_TABLE" placeholder:"NAME" help:"Table of merchants ($$MERCHANT_TABLE)."`
	LimitTable        string        `group:"Deployment" variable:"LIMIT_TABLE" placeholder:"NAME" help:"Table of merchants' limits ($$LIMIT_TABLE)."`
	OperatorSecret    string        `group:"Deployment" variable:"OPERATOR_CREDENTIALS_SECRET" placeholder:"NAME" help:"Secret of the operators' credentials ($$OPERATOR_CREDENTIALS_SECRET)."`
	TokenKeySecret    string        `group:"Deployment" variable:"TOKEN_KEY_SECRET" placeholder:"NAME" help:"Secret of the ring for tokens ($$TOKEN_KEY_SECRET)."`
	CallbackKeySecret string        `group:"Deployment" variable:"CALLBACK_KEY_SECRET" placeholder:"NAME" help:"Secret of the ring for callbacks ($$CALLBACK_KEY_SECRET)."`
	WebhookKeySecret  string        `group:"Deployment" variable:"WEBHOOK_KEY_SECRET" placeholder:"NAME" help:"Secret of the ring for webhooks ($$WEBHOOK_KEY_SECRET)."`
	SandboxURL        string        `group:"Deployment" variable:"SANDBOX_URL" placeholder:"URL" help:"The sandbox operator's address ($$SANDBOX_URL)."`
	SecretCache       time.Duration `group:"Deployment" variable:"SECRET_CACHE_TTL" default:"5m" help:"How long a function keeps a secret ($$SECRET_CACHE_TTL)."`
	PaymentLifetime   time.Duration `group:"Deployment" variable:"PAYMENT_LIFETIME" default:"24h" help:"After this a pending payment may expire ($$PAYMENT_LIFETIME)."`
}

// commandLine is the whole command line.
type commandLine struct {
	Deployment
	Local bool `help:"Work on the local run of this folder, or of $$LOCAL_DIR: its tables, secrets and sandbox."`

	JSON   bool   `name:"json" help:"Write JSON, for programs."`
	Yes    bool   `help:"Do it. Without, what changes anything is tried and not done."`
	Reason string `placeholder:"REASON" help:"The reason, for the audit record; --yes needs it."`
	Who    string `variable:"GATEWAYCTL_WHO" placeholder:"NAME" help:"Who does it, for the audit record (the user of this machine)."`

	Merchant      merchantCommands      `cmd:"" help:"Merchants: add, show, list, change, suspend, resume."`
	Host          hostCommands          `cmd:"" help:"Hosts that a merchant's notif_url may name."`
	Token         tokenCommands         `cmd:"" help:"Long-lived access tokens of a merchant."`
	ClientSecret  clientSecretCommands  `cmd:"" help:"Client secrets of a merchant, for the token endpoint."`
	WebhookSecret webhookSecretCommands `cmd:"" help:"Secrets that a merchant's notifications are signed with."`
	Keys          keysCommands          `cmd:"" help:"The rings of signing keys."`
	Operator      operatorCommands      `cmd:"" help:"Operators' credentials."`
	Payment       paymentCommands       `cmd:"" help:"Mobile money payments."`
	Charge        chargeCommands        `cmd:"" help:"Charges."`
	SMS           smsCommands           `cmd:"" name:"sms" help:"SMS."`
	List          listCommand           `cmd:"" help:"List a merchant's transactions of a UTC day."`
	Deliveries    deliveriesCommands    `cmd:"" help:"Notifications to merchants."`
	Endpoint      endpointCommands      `cmd:"" help:"Where merchants are notified."`
	Unknown       unknownCommands       `cmd:"" help:"Transactions whose outcome is unknown."`
	Export        exportCommand         `cmd:"" help:"Export a merchant's transactions for reconciliation."`
	Slot          slotCommands          `cmd:"" help:"Bookable times at the sandbox operator."`
	Audit         auditCommand          `cmd:"" help:"List what was changed, by whom and why."`
	Completion    completionCommand     `cmd:"" help:"Print the completion script of a shell."`
	Complete      completeCommand       `cmd:"" hidden:"" help:"The words that may follow, for the completion scripts."`
}

// exitCode is how the parser ends the program after --help; run turns it into the exit code.
type exitCode int

// errUsage marks what is wrong with the command line itself.
var errUsage = errors.New("usage")

// usageError makes an error of the command line.
func usageError(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errUsage}, values...)...)
}

// Run runs the tool with the arguments after its name, and returns the exit code.
func Run(ctx context.Context, arguments []string, system System) (code int) {
	defer func() {
		if ended, ok := recover().(exitCode); ok {
			code = int(ended)
		}
	}()
	var grammar commandLine
	out := &trackedWriter{Writer: system.Stdout}
	env := &environment{processVariable: system.Getenv}
	system.Stdout, system.Getenv = out, env.get
	exitWith := func(err error) int { return reportError(system.Stderr, out, grammar.JSON, err) }
	parser, err := newParser(&grammar, system, env)
	if err != nil {
		return exitWith(err)
	}
	parsed, err := parser.Parse(arguments)
	if env.readError != nil {
		err = env.readError
	}
	if err != nil {
		grammar.JSON = slices.Contains(arguments, "--json") // what was not parsed was not read either
		return exitWith(usageError("%w", err))
	}
	grammar.Reason, grammar.Who = strings.TrimSpace(grammar.Reason), strings.TrimSpace(grammar.Who)
	s := &session{Context: ctx, System: system, commandLine: &grammar, grammar: parser.Model}
	s.changes = &dryRun{session: s}
	if grammar.Yes {
		s.changes = &applied{session: s}
	}
	return exitWith(parsed.Run(s))
}

// newParser makes the parser of the command line.
func newParser(grammar *commandLine, system System, env *environment) (*kong.Kong, error) {
	return kong.New(grammar,
		kong.Name("gatewayctl"),
		kong.Description("Onboards merchants and looks after the gateway. What changes anything is tried only, and done with --yes."),
		kong.Writers(system.Stdout, system.Stderr),
		kong.Exit(func(code int) { panic(exitCode(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Resolvers(kong.ResolverFunc(func(parsed *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
			env.loadLocalRun(parsed)
			if value := system.Getenv(flag.Tag.Get("variable")); flag.Tag.Has("variable") && value != "" {
				return value, nil
			}
			return nil, nil
		})),
	)
}

// reportError says what went wrong, to people and, where JSON was asked for, to programs, and gives the exit code. What a command
// wrote before it failed, such as the accounts of a check that did not hold, stays the one document of the output.
func reportError(notes io.Writer, out *trackedWriter, asJSON bool, err error) int {
	if err == nil {
		return ExitDone
	}
	wrong := errors.Is(err, errUsage)
	fmt.Fprintln(notes, "gatewayctl:", err)
	if asJSON && !out.written {
		// What cannot be written here was said on the notes.
		_ = writeJSON(out, errorOutput{strings.TrimPrefix(err.Error(), errUsage.Error()+": "), wrong})
	}
	if wrong {
		return ExitUsage
	}
	return ExitFailed
}

// session is one run of the tool. Commands read through it and change things by its hand alone.
type session struct {
	context.Context
	System
	*commandLine
	grammar *kong.Application
	changes changes

	stores *Stores
}

// openStores connects to the deployment, once.
func (s *session) openStores() (*Stores, error) {
	if s.stores != nil {
		return s.stores, nil
	}
	stores, err := s.Connect(s.System, s.Deployment)
	s.stores = stores
	return stores, err
}

// auditUser is the name in audit records.
func (s *session) auditUser() string {
	if s.commandLine.Who != "" {
		return s.commandLine.Who
	}
	return s.System.User
}

// ledgerBook is the ledger for changes.
func (s *session) ledgerBook(stores *Stores) *ledger.Book {
	return &ledger.Book{Store: stores.Ledger, Reader: stores.Ledger, Now: s.Now, Rand: s.Rand}
}

// findMerchant finds a profile by its name or id.
func (s *session) findMerchant(nameOrID string) (*merchant.Profile, error) {
	stores, err := s.openStores()
	if err != nil {
		return nil, err
	}
	id, err := stores.Merchants.IDByName(s, nameOrID)
	if err != nil {
		return nil, err
	}
	if id == "" {
		id = nameOrID
	}
	profile, err := stores.Merchants.Profile(s, id)
	if err != nil {
		return nil, err
	}
	if profile == nil {
		return nil, fmt.Errorf("there is no merchant %q", nameOrID)
	}
	return profile.Clone(), nil
}
