// Command deploy is `make deploy`. It checks the account, and builds and checks the bundle. It deploys the bundle with
// SAM and the settings of samconfig.toml. The first time for prod it prompts for the environment's values, and keeps
// them in a file. It changes no other file.
//
// Plain SAM has three traps. It drops all parameters of samconfig.toml if the command line has one. It deploys a bundle
// that was built without the Makefile's flags. It publishes no version of a function if only a parameter changed.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"mobilegateway/deploy/bundle"
	"mobilegateway/deploy/preflight"
	"mobilegateway/deploy/samcli"
	"mobilegateway/shared/pause"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	root, err := os.Getwd()
	if err == nil {
		err = run(ctx, root, os.Args[1:], atTerminal())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

// system is what a deployment reaches outside of the checkout.
type system struct {
	in        io.Reader // what the person types; nil if the standard input is not a terminal
	out       io.Writer
	who       func(context.Context) (account, region string)
	preflight func(context.Context, preflight.Target) (preflight.Report, error)
	protect   func(ctx context.Context, region, stack string) error
	// protectData protects the data of a stack too.
	protectData func(ctx context.Context, region, stack string) error
	pause       func(context.Context, time.Duration) error
}

// atTerminal returns the system of the program.
func atTerminal() system {
	s := system{out: os.Stderr, who: preflight.Identify, pause: pause.For}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		s.in = os.Stdin
	}
	s.preflight = func(ctx context.Context, target preflight.Target) (preflight.Report, error) {
		configuration, err := preflight.Load(ctx, target.Region)
		if err != nil {
			return preflight.Report{}, err
		}
		return preflight.Run(ctx, configuration, target, time.Now()), nil
	}
	s.protect = func(ctx context.Context, region, stack string) error {
		configuration, err := preflight.Load(ctx, region)
		if err != nil {
			return err
		}
		return preflight.Protect(ctx, configuration, stack)
	}
	s.protectData = func(ctx context.Context, region, stack string) error {
		configuration, err := preflight.Load(ctx, region)
		if err != nil {
			return err
		}
		return preflight.ProtectData(ctx, configuration, stack)
	}
	return s
}

type deployOptions struct {
	environment      string // dev, staging or prod
	stack            string // "" for the stack of samconfig.toml
	gradual          bool
	skipConfirmation bool // SAM deploys the change set without confirmation
	onlyPreflight    bool // nothing is built or deployed
	rollback, abort  bool // the release is changed, and nothing is built or deployed
	waf              bool // the web ACL of deploy/waf.yaml is deployed and put in front of the stage
	parameters       parameters
}

// switchFlag parses a switch: 1 is on, an empty value is off. It refuses other values, because a GRADUAL=true that was
// ignored would deploy all at once.
func switchFlag(set *bool) func(string) error {
	return func(value string) error {
		if value != "" && value != "1" {
			return errors.New("set it to 1, or leave it out")
		}
		*set = value == "1"
		return nil
	}
}

func parseOptions(arguments []string, out io.Writer) (deployOptions, error) {
	o := deployOptions{parameters: parameters{}}
	flags := flag.NewFlagSet("deploy", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.environment, "env", "dev", "dev, staging or prod")
	flags.StringVar(&o.stack, "stack", "", "another stack name than mobile-gateway-dev; with dev only")
	flags.BoolVar(&o.onlyPreflight, "preflight", false, "only check the account and the parameters")
	flags.BoolVar(&o.rollback, "rollback", false, "move the aliases to the version before; a dry run without -yes=1")
	flags.BoolVar(&o.abort, "abort", false, "stop the deployment that runs")
	flags.Func("gradual", "1: move traffic to the new version gradually", switchFlag(&o.gradual))
	flags.Func("waf", "1: deploy the web ACL of deploy/waf.yaml, and put it in front of the stage", switchFlag(&o.waf))
	flags.Func("yes", "1: deploy the change set without confirmation; not with prod", switchFlag(&o.skipConfirmation))
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	for _, argument := range flags.Args() {
		name, value, found := strings.Cut(argument, "=")
		if !found {
			return o, fmt.Errorf("%q is not a parameter: write Name=value", argument)
		}
		o.parameters[name] = value
	}
	switch {
	case !slices.Contains([]string{"dev", "staging", "prod"}, o.environment):
		return o, fmt.Errorf("no environment %q: use dev, staging or prod", o.environment)
	case o.stack != "" && o.environment != "dev":
		return o, fmt.Errorf("the stack name of %s is fixed in samconfig.toml: leave STACK out", o.environment)
	case o.gradual && o.parameters["Gradual"] == "false":
		return o, errors.New("GRADUAL=1 sets Gradual=true: use one of the two")
	case o.waf && o.parameters["WebAclArn"] != "":
		return o, errors.New("WAF makes its own web ACL: use WAF or WebAclArn")
	case o.skipConfirmation && o.environment == "prod" && !o.rollback && !o.abort:
		return o, errors.New("a change of prod needs confirmation: leave YES out")
	}
	return o, nil
}

// configSection is the environment's section in samconfig.toml.
func (o deployOptions) configSection() string {
	if o.environment == "dev" {
		return "default" // plain `sam deploy` uses it
	}
	return o.environment
}

func run(ctx context.Context, root string, arguments []string, env system) error {
	o, err := parseOptions(arguments, env.out)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		return fmt.Errorf("%w: start this in the checkout", err)
	}
	if o.gradual {
		o.parameters["Gradual"] = "true"
	}
	known, err := readTemplate(text)
	if err != nil {
		return err
	}
	if o.rollback || o.abort {
		config, err := readConfig(root, o)
		if err != nil {
			return err
		}
		return env.changeRelease(ctx, config, o)
	}
	config, err := env.readConfig(ctx, root, known, o)
	if err != nil {
		return err
	}
	given, err := resolveParameters(config, known, o)
	if err != nil {
		return err
	}
	d := deployment{deployOptions: o, system: env, root: root, config: config, given: given}
	d.chooseDataStack()
	report, err := d.check(ctx, known)
	if err != nil || o.onlyPreflight {
		return err
	}
	if d.sam, err = samcli.Find(root); err != nil {
		return err
	}
	for _, line := range slices.Concat(productionWarnings(o, known, given), overrideWarnings(config, known, o)) {
		fmt.Fprintln(env.out, "deploy: warning:", line)
	}
	if report.LacksLogRole {
		if err := d.deployLogRole(ctx); err != nil {
			return err
		}
	}
	region := cmp.Or(config.region(), report.Region)
	built, err := d.build(ctx, known.functions())
	if err != nil {
		return err
	}
	if err := d.deployData(ctx, region); err != nil {
		return err
	}
	if err := d.deploy(ctx, built, known.functions()); err != nil {
		return err
	}
	if o.environment == "prod" {
		if err := env.protect(ctx, region, d.stackName()); err != nil {
			return err
		}
	}
	return d.deployAlarms(ctx, known)
}

// readConfig reads the configuration. The first time it prompts for the values of prod, and keeps them.
func (s system) readConfig(ctx context.Context, root string, known templateFile, o deployOptions) (samconfig, error) {
	config, err := readConfig(root, o)
	if err != nil {
		return config, fmt.Errorf("samconfig.toml: %w", err)
	}
	if o.environment != "prod" || config.kept.exists {
		return config, nil
	}
	path := environmentPath(o.environment)
	if s.in == nil {
		return config, fmt.Errorf("%s is missing: run this at a terminal, which prompts for it, or copy "+
			"deploy/environments/ENV.toml.example", path)
	}
	fmt.Fprintf(s.out, "%s is missing: the values are kept there.\n", path)
	offered := maps.Clone(map[string]string(o.parameters))
	offered["account"], offered["region"] = s.who(ctx)
	if config.kept, err = promptEnvironment(s.in, s.out, known, offered); err != nil {
		return config, err
	}
	if err := config.kept.write(root, o.environment); err != nil {
		return config, fmt.Errorf("keep %s: %w", path, err)
	}
	maps.Copy(config.parameters, config.kept.Parameters)
	return config, nil
}

// deployment is a deployment with all of its parameters.
type deployment struct {
	deployOptions
	system
	root, sam string
	config    samconfig
	given     parameters
}

func (d deployment) stackName() string {
	return cmp.Or(d.stack, d.config.stackName(d.config.section))
}

// check makes the preflight and prints it. The error says that the deployment must not begin.
func (d deployment) check(ctx context.Context, known templateFile) (preflight.Report, error) {
	defaults := map[string]string{}
	for name, parameter := range known.Parameters {
		defaults[name] = parameter.Default
	}
	report, err := d.preflight(ctx, preflight.Target{
		Account: d.config.kept.Account, Region: d.config.region(), Stack: d.stackName(), Given: d.given,
		Defaults: defaults, Data: known.dataResources(),
	})
	if err != nil {
		return report, err
	}
	return report, report.Write(d.out)
}

// build builds and checks the bundle, and returns its folder.
func (d deployment) build(ctx context.Context, functions []string) (built string, err error) {
	root := d.root
	build := append([]string{"build", "--template-file", filepath.Join(root, "template.yaml"), "--base-dir", root},
		d.settings(d.given)...)
	if err := runSAM(ctx, root, d.sam, build...); err != nil {
		return "", err
	}
	built = filepath.Join(root, ".aws-sam", "build")
	if err := bundle.Check(built, functions, d.given["Architecture"]); err != nil {
		return "", err
	}
	return built, bundle.WriteSBOM(built, filepath.Join(root, ".aws-sam", bundle.SBOMFile))
}

// deploy publishes versions of what changed and deploys a bundle, behind the web ACL if there is one.
func (d deployment) deploy(ctx context.Context, built string, functions []string) error {
	if d.waf {
		if err := d.deployWebACL(ctx); err != nil {
			return err
		}
	}
	if err := publishVersions(built, functions, d.given); err != nil {
		return err
	}
	deploy := []string{"deploy", "--template-file", filepath.Join(built, "template.yaml")}
	if d.stack != "" {
		deploy = append(deploy, "--stack-name", d.stack)
	}
	return runSAM(ctx, d.root, d.sam, slices.Concat(deploy, d.confirmation(), d.settings(d.given))...)
}

// settings returns the arguments of SAM with the configuration and some parameters.
func (d deployment) settings(given parameters) []string {
	return slices.Concat([]string{"--config-file", filepath.Join(d.root, "samconfig.toml"), "--config-env",
		d.configSection()}, d.config.regionArguments(), []string{"--parameter-overrides"},
		samcli.ParameterOverrides(given))
}

// confirmation returns the argument that skips SAM's prompt, if any.
func (d deployment) confirmation() []string {
	if d.skipConfirmation {
		return []string{"--no-confirm-changeset"}
	}
	return nil
}

// deployWebACL deploys deploy/waf.yaml as a stack of its own, and gives the web ACL to the gateway's stack. That stack
// then keeps it.
func (d deployment) deployWebACL(ctx context.Context) error {
	stack := d.stackName() + "-waf"
	retention := parameters{"LogRetentionDays": cmp.Or(d.given["LogRetentionDays"], "90")}
	deploy := []string{"deploy", "--template-file", filepath.Join(d.root, "deploy", "waf.yaml"), "--stack-name", stack,
		"--no-fail-on-empty-changeset"}
	arguments := slices.Concat(deploy, d.confirmation(), d.settings(retention))
	if err := runSAM(ctx, d.root, d.sam, arguments...); err != nil {
		return err
	}
	outputs, err := samcli.StackOutputs(ctx, d.root, d.sam, stack, d.config.outputsArguments()...)
	if err != nil {
		return fmt.Errorf("read the outputs of %s: %w", stack, err)
	}
	if outputs["WebAclArn"] == "" {
		return fmt.Errorf("the stack %s has no output WebAclArn: was its change set declined?", stack)
	}
	d.given["WebAclArn"] = outputs["WebAclArn"]
	return nil
}

// runSAM runs SAM at the terminal, because SAM may prompt for confirmation.
func runSAM(ctx context.Context, root, sam string, arguments ...string) error {
	c := exec.CommandContext(ctx, sam, arguments...)
	c.Dir, c.Env = root, append(os.Environ(), "SAM_CLI_TELEMETRY=0")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("sam %s: %w", arguments[0], err)
	}
	return nil
}
