// Package gatewayctl is the command line tool of the operations engineer. It manages merchants and their credentials,
// key rings, operator credentials, deliveries, unknown outcomes, exports and the sandbox's slots.
//
// It has no rules of its own about money or access: the transitions are those of packages merchant, keyring and ledger.
// Its invariants: nothing changes without --yes. Each change, and each export, has two audit records in the merchant
// table, one before it and one after it, which nothing replaces. No secret is an argument, and no audit record or error
// contains one.
package gatewayctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

// The exit codes.
const (
	ExitDone   = 0 // the command succeeded
	ExitFailed = 1 // the command failed, or a check failed
	ExitUsage  = 2 // the command line or a setting is wrong; no change was attempted
	// ExitWaiting is the end of attention: the command succeeded, and something waits for a person.
	ExitWaiting = 3
)

// Ledger is the part of the ledger's store that the tool uses.
type Ledger interface {
	ledger.Reader
	ledger.Writer
	ledger.DayIndex
	ledger.DueQueue
	ledger.ReferenceIndex
}

// Stores are the stores of one deployment.
type Stores struct {
	Merchants      merchant.Registry
	Ledger         Ledger
	EndpointHealth webhook.HealthStore
	DailyAmounts   *dailyamount.Counter // nil without LIMIT_TABLE: unknown resolve then refuses entries that count
	Secrets        SecretStore
	Audit          AuditLog
	AuditCopies    AuditCopies // nil if the deployment names no log group: nothing can be changed
	// Caller returns the identity of the person or the program that runs the tool.
	Caller func(context.Context) (string, error)
}

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
	Connect        func(env System, deployment Deployment) (*Stores, error)
}

// Deployment names the tables and secrets of a deployment, by flags or by the variables that its functions have.
type Deployment struct {
	LedgerTable       string `variable:"LEDGER_TABLE" placeholder:"NAME" help:"Table of transactions."`
	MerchantTable     string `variable:"MERCHANT_TABLE" placeholder:"NAME" help:"Table of merchants."`
	LimitTable        string `variable:"LIMIT_TABLE" placeholder:"NAME" help:"Table of merchants' limits."`
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

// flags are those of all commands.
type flags struct {
	Deployment `group:"Deployment"`
	Local      bool `help:"Work on the local run of this folder, or of $$LOCAL_DIR: its tables, secrets and sandbox."`

	JSON   bool   `name:"json" help:"Write JSON, for programs."`
	Yes    bool   `help:"Apply the change. Without it the change is a dry run."`
	Reason string `placeholder:"REASON" help:"The reason, for the audit record; --yes needs it."`
}

type commandLine struct {
	flags

	Attention attentionCommands `cmd:"" group:"waits" help:"List or close what waits for a person, over all merchants."`
	Unknown   unknownCommands   `cmd:"" group:"waits" help:"Transactions whose outcome is unknown."`
	Find      findCommand       `cmd:"" group:"orders" help:"Find transactions by an id, a key or a number."`
	List      listCommand       `cmd:"" group:"orders" help:"List a merchant's transactions of today or other days."`
	Payment   struct {
		Show paymentShow `cmd:"" help:"Show a payment's history."`
	} `cmd:"" group:"orders" help:"Mobile money payments."`
	Charge struct {
		Show chargeShow `cmd:"" help:"Show a charge's history."`
	} `cmd:"" group:"orders" help:"Charges."`
	SMS struct {
		Show smsShow `cmd:"" help:"Show an SMS's history."`
	} `cmd:"" group:"orders" name:"sms" help:"SMS."`
	Export        exportCommand         `cmd:"" group:"orders" help:"Export transactions for reconciliation."`
	Deliveries    deliveriesCommands    `cmd:"" group:"notify" help:"Notifications to merchants."`
	Endpoint      endpointCommands      `cmd:"" group:"notify" help:"URLs at which merchants are notified."`
	Webhook       webhookCommands       `cmd:"" group:"notify" help:"A merchant's address for notifications."`
	Merchant      merchantCommands      `cmd:"" group:"shops" help:"Merchants: add, show, change, suspend."`
	Host          hostCommands          `cmd:"" group:"shops" help:"Hosts that a merchant's notif_url may name."`
	Token         tokenCommands         `cmd:"" group:"shops" help:"Long-lived access tokens of a merchant."`
	ClientSecret  clientSecretCommands  `cmd:"" group:"shops" help:"Client secrets of a merchant."`
	WebhookSecret webhookSecretCommands `cmd:"" group:"shops" help:"Secrets that sign a merchant's notifications."`
	Operator      operatorCommands      `cmd:"" group:"keys" help:"Operators' credentials and routes."`
	Keys          keysCommands          `cmd:"" group:"keys" help:"Rings of signing keys."`
	Audit         auditCommands         `cmd:"" group:"tool" help:"The record of all changes and exports."`

	Slot       slotCommands              `cmd:"" group:"tool" help:"Bookable test times at the sandbox operator."`
	Completion kongcompletion.Completion `cmd:"" group:"tool" help:"Activate shell completion, or print its code (-c)."`
}

// exitCode is the parser's panic that ends the program, after --help for example. Run recovers it.
type exitCode int

// errUsage marks errors of the command line or of a setting.
var errUsage = errors.New("usage")

// usageError returns an error that ends the tool with ExitUsage.
func usageError(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errUsage}, values...)...)
}

// Tool is the parsed grammar of the command line, which takes longer to make than most commands take. It runs one
// command at a time.
type Tool struct {
	grammar  commandLine
	parser   *kong.Kong
	commands []*kong.Node // all of the grammar
	env      *environment // of the command that runs
}

// completionVariable has the line to complete, when a shell runs the tool for a completion.
const completionVariable = "COMP_LINE"

// Run runs a command with the arguments after the tool's name and returns the exit code.
func (t *Tool) Run(ctx context.Context, arguments []string, system System) (code int) {
	defer func() {
		if ended, ok := recover().(exitCode); ok {
			code = int(ended)
		}
	}()
	t.env = &environment{processVariable: system.Getenv, now: system.Now}
	out := &trackedWriter{Writer: system.Stdout}
	system.Stdout, system.Stderr = cleanWriter{out, cleanText}, cleanWriter{system.Stderr, cleanText}
	system.Getenv = t.env.get
	t.parser.Stdout, t.parser.Stderr = system.Stdout, system.Stderr
	exitWith := func(err error) int { return reportError(system, t.grammar.JSON && !out.written, err) }
	t.parser.Model.Children = t.commands
	t.parser.Model.HelpFlag.Set = false // kong leaves it set, and then selects no default command
	if t.env.get(completionVariable) != "" {
		kongcompletion.Register(t.parser, kongcompletion.WithPredictor("file", complete.PredictFiles("*")))
	}
	t.selectCommand(arguments)
	parsed, err := t.parser.Parse(arguments)
	if t.env.readError != nil {
		err = t.env.readError
	}
	if err != nil {
		t.grammar.JSON = slices.Contains(arguments, "--json") // a failed parse may not have set it
		return exitWith(usageError("%w", listMissingCommand(err)))
	}
	t.grammar.Reason = strings.TrimSpace(t.grammar.Reason)
	return exitWith(parsed.Run(&session{
		Context: ctx, System: system, flags: &t.grammar.flags, documents: cleanWriter{out, escapeUnprintable},
	}))
}

// listMissingCommand lists all commands, by subject, in the error of a line that ends before its command. The parser's
// own error names five of them, and no others of their subjects.
func listMissingCommand(err error) error {
	failed, isParseError := errors.AsType[*kong.ParseError](err)
	if !isParseError || !strings.HasPrefix(err.Error(), "expected one of") {
		return err
	}
	text, subject := "expected one of these commands; --local works on the local run, COMMAND --help explains it", ""
	for _, command := range cmp.Or(failed.Context.Selected(), failed.Context.Model.Node).Children {
		if title := command.ClosestGroup().Title; title != subject {
			text, subject = text+"\n\n"+title, title
		}
		text += fmt.Sprintf("\n  %-15s %s", command.Name, command.Help)
	}
	return errors.New(text)
}

// selectCommand leaves only the command that the first argument names in the grammar, because the parser visits all of
// them several times. Without such a command it leaves the grammar unchanged.
func (t *Tool) selectCommand(arguments []string) {
	for at, command := range t.commands {
		if len(arguments) > 0 && command.Name == arguments[0] {
			t.parser.Model.Children = t.commands[at : at+1]
		}
	}
}

// Run makes the tool and runs one command.
func Run(ctx context.Context, arguments []string, system System) int {
	tool, err := NewTool()
	if err != nil {
		fmt.Fprintln(system.Stderr, "gatewayctl:", err)
		return ExitFailed
	}
	return tool.Run(ctx, arguments, system)
}

// NewTool makes the tool. Flags with a variable take its value if they are not given. It fails only if the grammar is
// wrong.
func NewTool() (*Tool, error) {
	t := &Tool{}
	times := kong.MapperFunc(func(c *kong.DecodeContext, target reflect.Value) error {
		return decodeTime(c, target, t.env.now())
	})
	parser, err := kong.New(&t.grammar,
		kong.Name("gatewayctl"),
		kong.Description("Manages merchants and operates the gateway. A change is a dry run, unless --yes is given."),
		kong.Exit(func(code int) { panic(exitCode(code)) }),
		kong.Vars{
			"charge_notif_help": "Send charges whose outcome became known after a 504 to notif_url.",
			"daily_amount_help": "Limit of charges and payments per UTC day: XOF=1000000; XOF=none for no limit.",
			"route_channel_help": "Only this channel of pay. Without it the route is for the platform's channels " +
				"that have no route of their own.",
			"sms_notify_enum": "registered,any",
			"sms_notify_help": "Hosts that an SMS's notifyURL may name: registered (as notif_url), or any.",
			"requests_per_second_help": fmt.Sprintf("Requests per second that the merchant may send; 0 for no limit. "+
				"A new merchant gets %d, and %d at once.", merchant.DefaultRequestsPerSecond, merchant.DefaultBurst),
			"resolve_as": "lookup,successful,failed,cancelled,applied,not-applied,unknowable",
			"resolve_as_help": "lookup: the operator's status of a payment. Manually: successful, failed, cancelled " +
				"for a payment; applied, not-applied for a charge or an SMS; unknowable closes an SMS as it is.",
		},
		kong.Groups{
			"waits": "What waits for a person: begin with gatewayctl attention", "orders": "Transactions",
			"notify": "Notifications", "shops": "Merchants", "keys": "Operators and keys", "tool": "Audit, tests, tool",
		},
		kong.TypeMapper(reflect.TypeFor[utcDay](), times),
		kong.TypeMapper(reflect.TypeFor[moment](), times),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ValueFormatter(func(value *kong.Value) string {
			help := kong.DefaultHelpValueFormatter(value)
			if variable := value.Tag.Get("variable"); variable != "" {
				help += " ($" + variable + ")"
			}
			return help
		}),
		kong.Resolvers(kong.ResolverFunc(func(parsed *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
			t.env.loadLocalRun(parsed)
			if value := t.env.get(flag.Tag.Get("variable")); flag.Tag.Has("variable") && value != "" {
				return value, nil
			}
			return nil, nil
		})),
	)
	if err != nil {
		return nil, err
	}
	t.parser, t.commands = parser, parser.Model.Children
	return t, nil
}

// reportError writes an error for people and, as JSON, for programs, and returns the exit code. If the command already
// wrote its result, such as the failed check of an account, that result stays the only JSON document.
func reportError(system System, asJSON bool, err error) int {
	if err == nil {
		return ExitDone
	}
	usage := errors.Is(err, errUsage)
	fmt.Fprintln(system.Stderr, "gatewayctl:", err)
	if asJSON {
		// The standard error already has the same text, so a failed write needs no second report.
		_ = writeJSON(system.Stdout, errorOutput{strings.TrimPrefix(err.Error(), errUsage.Error()+": "), usage})
	}
	switch {
	case usage:
		return ExitUsage
	case errors.Is(err, errWaiting):
		return ExitWaiting
	}
	return ExitFailed
}

// session is one run of the tool. Commands change things only within execute.
type session struct {
	context.Context
	System
	*flags
	stores *Stores // set by openStores; readOnly in a dry run
	plan   string  // the detail of the first audit record: what must be known if the change is interrupted
	// documents is the standard output for a document whose texts are masked: masking it whole would cross them.
	documents io.Writer
	isDryRun  bool // a change was tried and not made
}

// openStores connects to the deployment once. It is called after the command line is checked, so that a wrong line is
// reported without a deployment.
func (s *session) openStores() (err error) {
	if s.stores != nil {
		return nil
	}
	s.stores, err = s.Connect(s.System, s.Deployment)
	if err == nil && !s.Yes {
		s.stores = s.stores.readOnly()
	}
	return err
}

// findMerchant returns a copy of the profile with a name or an id.
func (s *session) findMerchant(nameOrID string) (*merchant.Profile, error) {
	if err := s.openStores(); err != nil {
		return nil, err
	}
	id, err := s.stores.Merchants.IDByName(s, nameOrID)
	if err != nil {
		return nil, err
	}
	profile, err := s.stores.Merchants.Profile(s, cmp.Or(id, nameOrID))
	if err != nil {
		return nil, err
	}
	if profile == nil {
		return nil, fmt.Errorf("there is no merchant %q: gatewayctl merchant list shows all", nameOrID)
	}
	return profile.Clone(), nil
}

type merchantArgument struct {
	Name string `arg:"" name:"merchant" help:"The merchant's name or id."`
}

// ProvideProfile returns the profile for the Run method of every command with a merchantArgument (kong's provider).
func (c merchantArgument) ProvideProfile(s *session) (*merchant.Profile, error) {
	return s.findMerchant(c.Name)
}
