// Package gatewayctl is the command line tool of the operations engineer. It manages merchants and their credentials,
// key rings, operator credentials, deliveries, unknown outcomes, exports and the sandbox's slots.
//
// It has no rules of its own about money or access: the transitions are those of packages merchant, keyring and ledger.
// Its invariants: nothing changes without --yes. Each change, and each export, has two audit records in the merchant
// table, one before it and one after it, which nothing replaces. No secret is an argument, and no audit record or error
// contains one.
package gatewayctl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/attention"
	"mobilegateway/gatewayctl/audit"
	"mobilegateway/gatewayctl/console"
	"mobilegateway/gatewayctl/counts"
	"mobilegateway/gatewayctl/deliveries"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/keys"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/reconcile"
	"mobilegateway/gatewayctl/restore"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/gatewayctl/settlement"
	"mobilegateway/gatewayctl/setup"
	"mobilegateway/gatewayctl/slots"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/shared/merchant"
)

// The exit codes.
const (
	ExitDone   = 0 // the command succeeded
	ExitFailed = 1 // the command failed, or a check failed
	ExitUsage  = 2 // the command line or a setting is wrong; no change was attempted, or nothing was compared
	// ExitWaiting is the end of attention: the command succeeded, and something waits for a person.
	ExitWaiting = 3
)

// commandLine is the grammar: the flags of all commands, and the commands by subject.
type commandLine struct {
	session.Flags
	waiting              `group:"waits"`
	transactionCommands  `group:"orders"`
	notificationCommands `group:"notify"`
	merchantCommands     `group:"shops"`

	Init  setup.Init  `cmd:"" group:"setup" help:"Make the keys and credentials that a new deployment lacks."`
	Smoke setup.Smoke `cmd:"" group:"setup" help:"Check a deployment by requests that move nothing."`

	Operator accounts.Commands `cmd:"" group:"keys" help:"Operators' credentials and routes."`
	Keys     keys.Commands     `cmd:"" group:"keys" help:"Rings of signing keys."`

	Restore restore.Commands `cmd:"" group:"tool" help:"After a restore of the ledger to an earlier moment."`

	Audit      audit.Commands            `cmd:"" group:"tool" help:"The record of all changes and exports."`
	Slot       slots.Commands            `cmd:"" group:"tool" help:"Bookable test times at the sandbox operator."`
	Completion kongcompletion.Completion `cmd:"" group:"tool" help:"Activate shell completion, or print its code (-c)."`
}

type waiting struct {
	Attention attention.Waiting    `cmd:"" help:"List or close what waits for a person, over all merchants."`
	Unknown   transactions.Unknown `cmd:"" help:"Transactions whose outcome is unknown."`
	Console   console.Command      `cmd:"" help:"Serve all of this as pages on this machine, for a browser."`
}

type transactionCommands struct {
	Find    transactions.Find `cmd:"" help:"Find transactions by a value, or by filters over all merchants."`
	List    transactions.List `cmd:"" help:"List a merchant's transactions of today or other days."`
	Payment struct {
		Show transactions.ShowPayment `cmd:"" help:"Show a payment's history."`
	} `cmd:"" help:"Mobile money payments."`
	Charge struct {
		Show transactions.ShowCharge `cmd:"" help:"Show a charge's history."`
	} `cmd:"" help:"Charges."`
	SMS struct {
		Show transactions.ShowSMS `cmd:"" help:"Show an SMS's history."`
	} `cmd:"" name:"sms" help:"SMS."`
	Counts    counts.Counts       `cmd:"" help:"Count a day's transactions, or show the counts of closed days."`
	Export    transactions.Export `cmd:"" help:"Export transactions for reconciliation."`
	Reconcile reconcile.Command   `cmd:"" help:"Compare an operator's statement with the ledger."`

	Settlement settlement.Command `cmd:"" help:"Sum what each merchant is owed of a day."`
}

type notificationCommands struct {
	Deliveries deliveries.Commands `cmd:"" help:"Notifications to merchants."`
	Endpoint   merchants.Endpoints `cmd:"" help:"URLs at which merchants are notified."`
	Webhook    merchants.Webhook   `cmd:"" help:"A merchant's address for notifications."`
}

type merchantCommands struct {
	Merchant      merchants.Commands       `cmd:"" help:"Merchants: add, show, change, suspend."`
	Host          merchants.Hosts          `cmd:"" help:"Hosts that a merchant's notif_url may name."`
	Token         merchants.Tokens         `cmd:"" help:"Long-lived access tokens of a merchant."`
	ClientSecret  merchants.ClientSecrets  `cmd:"" help:"Client secrets of a merchant."`
	WebhookSecret merchants.WebhookSecrets `cmd:"" help:"Secrets that sign a merchant's notifications."`
}

// exitCode is the parser's panic that ends the program, after --help for example. Run recovers it.
type exitCode int

// Tool is the parsed grammar of the command line, which takes longer to make than most commands take. It runs one
// command at a time.
type Tool struct {
	grammar  commandLine
	parser   *kong.Kong
	commands map[*kong.Node][]*kong.Node // all below each node of the grammar that selectCommand has changed
	env      *environment                // of the command that runs
	interval session.Interval            // of its --watch
}

// completionVariable has the line to complete, when a shell runs the tool for a completion.
const completionVariable = "COMP_LINE"

// Run runs a command with the arguments after the tool's name and returns the exit code. Without arguments it writes
// what to do first.
func (t *Tool) Run(ctx context.Context, arguments []string, system deployment.System) int {
	switch {
	case isWatched(arguments):
		return t.watch(ctx, arguments, system)
	case len(arguments) == 0 && system.Getenv(completionVariable) == "":
		return reportError(system, false, t.writeGuide(system.Stdout))
	}
	return t.runOnce(ctx, arguments, system)
}

// runOnce runs a command once.
func (t *Tool) runOnce(ctx context.Context, arguments []string, system deployment.System) (code int) {
	defer func() {
		switch recovered := recover().(type) {
		case nil:
		case exitCode:
			code = int(recovered)
		default:
			panic(recovered)
		}
	}()
	t.env = &environment{processVariable: system.Getenv, now: system.Now}
	t.env.readStack = func(name string) (*deployment.Stack, error) { return system.ReadStack(ctx, name) }
	out := &output.TrackedWriter{Writer: system.Stdout}
	system.Stdout, system.Stderr = output.CleanWriter{Next: out, Clean: output.CleanText, Terminal: terminalOf(system)},
		output.CleanWriter{Next: system.Stderr, Clean: output.CleanText}
	system.Getenv, t.interval = t.env.get, 0
	t.parser.Stdout, t.parser.Stderr = system.Stdout, system.Stderr
	exitWith := func(err error) int { return reportError(system, t.grammar.JSON && !out.Written, err) }
	t.restoreCommands()
	t.forgetFlags()
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
		return exitWith(output.UsageError("%w", listMissingCommand(err)))
	}
	if t.env.stack != nil {
		system.Credentials = t.env.stack.Credentials
	}
	for _, name := range t.env.overridden() {
		fmt.Fprintf(system.Stderr, "Warning: %s of the environment replaces the one of the stack %s.\n", name,
			t.grammar.Stack)
	}
	if t.interval = watchInterval(parsed); t.interval > 0 && t.grammar.JSON {
		return exitWith(output.UsageError("--watch excludes --json: a program repeats the command itself"))
	}
	t.grammar.Reason = strings.TrimSpace(t.grammar.Reason)
	return exitWith(runSelected(parsed, &session.Session{
		Context: ctx, System: system, Flags: &t.grammar.Flags, Documents: output.CleanWriter{Next: out,
			Clean: output.EscapeUnprintable},
	}))
}

// terminalOf returns what the standard output can show (https://no-color.org).
func terminalOf(system deployment.System) output.Terminal {
	columns := system.Width()
	isPlain := system.Getenv("NO_COLOR") != "" || system.Getenv("TERM") == "dumb"
	return output.Terminal{Columns: columns, Colours: columns > 0 && !isPlain}
}

// runSelected runs the selected command. Its providers are the methods Provide... of the command and of those above it,
// as for the parser's own Run, which guards none of them.
func runSelected(parsed *kong.Context, s *session.Session) error {
	parsed.Bind(s, consoleRun(s))
	var commands []reflect.Value
	for node := parsed.Selected(); node != nil; node = node.Parent {
		commands = append(commands, node.Target.Addr())
	}
	for _, command := range slices.Backward(commands) { // the inner command's provider replaces an outer one
		for method, provider := range command.Methods() {
			if !strings.HasPrefix(method.Name, "Provide") {
				continue
			}
			if err := parsed.BindToProvider(guardProvider(provider)); err != nil {
				return err
			}
		}
	}
	results, err := parsed.Call(commands[0].MethodByName("Run").Interface())
	if err != nil {
		return err
	}
	err, _ = results[0].(error)
	return err
}

// guardProvider returns the provider with each error as a pointer. The parser panics over one that is a struct, such as
// context.DeadlineExceeded, and runs the command in spite of one that is a nil slice.
func guardProvider(provider reflect.Value) any {
	return reflect.MakeFunc(provider.Type(), func(arguments []reflect.Value) []reflect.Value {
		results := provider.Call(arguments)
		last := len(results) - 1
		if err, failed := results[last].Interface().(error); failed {
			results[last] = reflect.ValueOf(fmt.Errorf("%w", err))
		}
		return results
	}).Interface()
}

// selectCommand leaves only the command that the first arguments name in the grammar, because the parser visits all of
// them several times. It leaves all commands below the last one that an argument names.
func (t *Tool) selectCommand(arguments []string) {
	node := t.parser.Model.Node
	for _, argument := range arguments {
		at := slices.IndexFunc(node.Children, func(command *kong.Node) bool { return command.Name == argument })
		if at < 0 {
			return
		}
		t.commands[node] = node.Children
		node.Children = node.Children[at : at+1]
		node = node.Children[0]
	}
}

// restoreCommands makes the grammar have all commands again.
func (t *Tool) restoreCommands() {
	for node, all := range t.commands {
		node.Children = all
	}
}

// forgetFlags makes the grammar have no flag and no argument that was given. Kong leaves them: a required one of the
// next command would not be missing, and --help would select no default command.
func (t *Tool) forgetFlags() {
	_ = kong.Visit(t.parser.Model, func(node kong.Visitable, next kong.Next) error { // it never fails
		if value, isValue := node.(*kong.Value); isValue {
			value.Set = false
		}
		return next(nil)
	})
}

// Run makes the tool and runs one command.
func Run(ctx context.Context, arguments []string, system deployment.System) int {
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
	t := &Tool{commands: map[*kong.Node][]*kong.Node{}}
	times := kong.MapperFunc(func(c *kong.DecodeContext, target reflect.Value) error {
		return session.DecodeTime(c, target, t.env.now())
	})
	parser, err := kong.New(&t.grammar,
		kong.Name("gatewayctl"),
		kong.Description("Manages merchants and operates the gateway. A change is a dry run, unless --yes is given."),
		kong.Exit(func(code int) { panic(exitCode(code)) }),
		kong.Vars{
			"charge_notif_help": "Send charges whose outcome became known after a 504 to notif_url.",
			"daily_amount_help": "Limit of charges and payments per UTC day: XOF=1000000; XOF=none for no limit.",
			"day_shards_help": fmt.Sprintf("Partitions of the index of each day for new transactions, 1 to %d. "+
				"One takes about 1000 writes a second.", merchant.MaxDayShards),
			"find_since_help": "From this UTC time (10:30, 2026-03-01T10:30) or day on. If not given: of a " +
				"value the last 7 days, of filters today.",
			"send_since_help": "With --merchant: the first UTC day, or RFC 3339 time, of the statuses.",
			"route_channel_help": "Only this channel of pay. Without it the route is for the platform's channels " +
				"that have no route of their own.",
			"circuit_operation_help": "Only this operation; all that the platform has if none is given.",
			"operations":             strings.Join(merchant.Operations(), ","),
			"sms_notify_enum":        "registered,any",
			"sms_notify_help":        "Hosts that an SMS's notifyURL may name: registered (as notif_url), or any.",
			"requests_per_second_help": fmt.Sprintf("Requests per second that the merchant may send; 0 for no limit. "+
				"A new merchant gets %d, and %d at once.", merchant.DefaultRequestsPerSecond, merchant.DefaultBurst),
			"restore_log_help":  "The functions' log lines from that moment on, as CloudWatch exports them (.gz too).",
			"restore_list_help": "A merchant's own list from that moment on: CSV with the columns of export.",
			"resolve_as":        "lookup,successful,failed,cancelled,applied,not-applied,unknowable",
			"resolve_as_help": "lookup: the operator's status of a payment. Manually: successful, failed, cancelled " +
				"for a payment; applied, not-applied for a charge or an SMS; unknowable closes an SMS as it is.",
		},
		kong.Groups{
			"waits": "What waits for a person: begin with gatewayctl attention", "orders": "Transactions",
			"notify": "Notifications", "shops": "Merchants", "setup": "A new deployment",
			"keys": "Operators and keys", "tool": "Audit, recovery, tests, tool",
		},
		kong.TypeMapper(reflect.TypeFor[session.UTCDay](), times),
		kong.TypeMapper(reflect.TypeFor[session.Moment](), times),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ValueFormatter(func(value *kong.Value) string {
			help := kong.DefaultHelpValueFormatter(value)
			if variable := value.Tag.Get("variable"); variable != "" {
				help += " ($" + variable + ")"
			}
			return help
		}),
		kong.Resolvers(kong.ResolverFunc(func(parsed *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
			t.env.load(parsed)
			if value := t.env.get(flag.Tag.Get("variable")); flag.Tag.Has("variable") && value != "" {
				return value, nil
			}
			return nil, nil
		})),
	)
	if err != nil {
		return nil, err
	}
	t.parser = parser
	return t, nil
}

// reportError writes an error for people and, as JSON, for programs, and returns the exit code. If the command already
// wrote its result, such as the failed check of an account, that result stays the only JSON document.
func reportError(system deployment.System, asJSON bool, err error) int {
	if err == nil {
		return ExitDone
	}
	usage := errors.Is(err, output.ErrUsage)
	fmt.Fprintln(system.Stderr, "gatewayctl:", err)
	if asJSON {
		// The standard error already has the same text, so a failed write needs no second report.
		_ = output.WriteJSON(system.Stdout, struct {
			Error string `json:"error"`
			Usage bool   `json:"usage"`
		}{strings.TrimPrefix(err.Error(), output.ErrUsage.Error()+": "), usage})
	}
	switch {
	case usage, errors.Is(err, reconcile.ErrNotDone):
		return ExitUsage
	case errors.Is(err, attention.ErrWaiting):
		return ExitWaiting
	}
	return ExitFailed
}
