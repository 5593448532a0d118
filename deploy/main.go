// Command deploy is `make deploy`: it builds the bundle by the flags that the Makefile gives, checks what was built, and
// has SAM deploy it with the settings of samconfig.toml.
//
// It exists because three things are easily forgotten: SAM drops all parameters of samconfig.toml where one is given on
// the command line, a bundle without the flags is another one, and a gradual deployment needs the marked lines of
// template.yaml and another Release each time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"mobilegateway/internal/samcli"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	root, err := os.Getwd()
	if err == nil {
		err = run(ctx, root, os.Args[1:], os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

// deployOptions is what the command line asks for.
type deployOptions struct {
	environment      string // dev, staging or prod
	stack            string // "" for samconfig.toml's
	gradual          bool
	skipConfirmation bool // no question before the change set
	dropAliases      bool // a stack with aliases may lose them
	parameters       []parameter
}

// switchFlag gives a switch that takes 1 for yes and nothing for no. Anything else is refused: a GRADUAL=true that counted for
// nothing would have the new version take over all at once.
func switchFlag(set *bool) func(string) error {
	return func(value string) error {
		if value != "" && value != "1" {
			return errors.New("it is 1, or left out")
		}
		*set = value == "1"
		return nil
	}
}

// parseOptions reads the command line.
func parseOptions(arguments []string, out io.Writer) (deployOptions, error) {
	var w deployOptions
	flags := flag.NewFlagSet("deploy", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&w.environment, "env", "dev", "dev, staging or prod")
	flags.StringVar(&w.stack, "stack", "", "another name than mobile-gateway-dev, for a stack of one's own; with dev alone")
	flags.Func("gradual", "1: let the new version take over step by step", switchFlag(&w.gradual))
	flags.Func("yes", "1: do not ask before the change set; never with prod", switchFlag(&w.skipConfirmation))
	flags.Func("drop-aliases", "1: deploy all at once although the stack has aliases, which go", switchFlag(&w.dropAliases))
	if err := flags.Parse(arguments); err != nil {
		return w, err
	}
	for _, argument := range flags.Args() {
		name, value, found := strings.Cut(argument, "=")
		if !found {
			return w, fmt.Errorf("%q is no parameter: Name=value", argument)
		}
		w.parameters = append(w.parameters, parameter{name, value})
	}
	switch {
	case w.environment != "dev" && w.environment != "staging" && w.environment != "prod":
		return w, fmt.Errorf("there is no environment %q: dev, staging or prod", w.environment)
	case w.stack != "" && w.environment != "dev":
		return w, fmt.Errorf("the stack of %s has its name in samconfig.toml", w.environment)
	case w.gradual && w.dropAliases:
		return w, errors.New("a gradual deployment drops no aliases: GRADUAL or DROP_ALIASES")
	case w.skipConfirmation && w.environment == "prod":
		return w, errors.New("a change of prod is looked at before it is made")
	}
	return w, nil
}

// configSection is the environment as samconfig.toml names it.
func (w deployOptions) configSection() string {
	if w.environment == "dev" {
		return "default" // what a plain `sam deploy` takes
	}
	return w.environment
}

// run builds, checks and deploys the checkout at root.
func run(ctx context.Context, root string, arguments []string, out io.Writer) error {
	w, err := parseOptions(arguments, out)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		return fmt.Errorf("start this in the checkout: %w", err)
	}
	if w.gradual {
		text = enableGradualLines(text)
		w.parameters = append(w.parameters, parameter{"Release", time.Now().UTC().Format(releaseLayout)})
	}
	config, err := os.ReadFile(filepath.Join(root, "samconfig.toml"))
	if err != nil {
		return err
	}
	given, err := resolveParameters(config, text, w)
	if err != nil {
		return err
	}
	sam, err := samcli.Find(root)
	if err != nil {
		return err
	}
	for _, line := range slices.Concat(productionWarnings(w.environment, given), overrideWarnings(config, text, w)) {
		fmt.Fprintln(out, "deploy: warning:", line)
	}
	if err := refuseAliasLoss(ctx, root, sam, config, w); err != nil {
		return err
	}
	return buildAndDeploy(ctx, root, sam, text, given, w)
}

// buildAndDeploy has SAM build and deploy with all parameters.
func buildAndDeploy(ctx context.Context, root, sam string, text []byte, given []parameter, w deployOptions) error {
	source := filepath.Join(root, "template.yaml")
	if w.gradual {
		if parameterValue(given, "Deployment") == "AllAtOnce" {
			text = removeDeploymentAlarms(text)
		}
		source = filepath.Join(root, ".aws-sam", "gradual.yaml")
		if err := errors.Join(os.MkdirAll(filepath.Dir(source), 0o755), os.WriteFile(source, text, 0o600)); err != nil {
			return err
		}
	}
	common := []string{"--config-file", filepath.Join(root, "samconfig.toml"), "--config-env", w.configSection()}
	build := append([]string{"build", "--template-file", source, "--base-dir", root, "--parameter-overrides"}, samOverrides(given)...)
	if err := runSAM(ctx, root, sam, append(build, common...)...); err != nil {
		return err
	}
	bundle := filepath.Join(root, ".aws-sam", "build")
	if err := checkBundle(bundle, functionIDs(text), parameterValue(given, "Architecture")); err != nil {
		return err
	}
	deploy := append([]string{"deploy", "--template-file", filepath.Join(bundle, "template.yaml"), "--parameter-overrides"}, samOverrides(given)...)
	if w.stack != "" {
		deploy = append(deploy, "--stack-name", w.stack)
	}
	if w.skipConfirmation {
		deploy = append(deploy, "--no-confirm-changeset")
	}
	return runSAM(ctx, root, sam, append(deploy, common...)...)
}

// runSAM runs SAM at the terminal: it may ask.
func runSAM(ctx context.Context, root, sam string, arguments ...string) error {
	c := exec.CommandContext(ctx, sam, arguments...)
	c.Dir, c.Env = root, append(os.Environ(), "SAM_CLI_TELEMETRY=0")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("sam %s: %w", arguments[0], err)
	}
	return nil
}
