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

// wish is what the command line asks for.
type wish struct {
	environment string // dev, staging or prod
	stack       string // "" for samconfig.toml's
	gradual     bool
	unattended  bool // no question before the change set
	dropAliases bool // a stack with aliases may lose them
	parameters  []parameter
}

// onlyOne gives a switch that takes 1 for yes and nothing for no. Anything else is refused: a GRADUAL=true that counted for
// nothing would have the new version take over all at once.
func onlyOne(set *bool) func(string) error {
	return func(value string) error {
		if value != "" && value != "1" {
			return errors.New("it is 1, or left out")
		}
		*set = value == "1"
		return nil
	}
}

// readWish reads the command line.
func readWish(arguments []string, out io.Writer) (wish, error) {
	var w wish
	flags := flag.NewFlagSet("deploy", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&w.environment, "env", "dev", "dev, staging or prod")
	flags.StringVar(&w.stack, "stack", "", "another name than mobile-gateway-dev, for a stack of one's own; with dev alone")
	flags.Func("gradual", "1: let the new version take over step by step", onlyOne(&w.gradual))
	flags.Func("yes", "1: do not ask before the change set; never with prod", onlyOne(&w.unattended))
	flags.Func("drop-aliases", "1: deploy all at once although the stack has aliases, which go", onlyOne(&w.dropAliases))
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
	case w.unattended && w.environment == "prod":
		return w, errors.New("a change of prod is looked at before it is made")
	}
	return w, nil
}

// section is the environment as samconfig.toml names it.
func (w wish) section() string {
	if w.environment == "dev" {
		return "default" // what a plain `sam deploy` takes
	}
	return w.environment
}

// run builds, checks and deploys the checkout at root.
func run(ctx context.Context, root string, arguments []string, out io.Writer) error {
	w, err := readWish(arguments, out)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		return fmt.Errorf("start this in the checkout: %w", err)
	}
	if w.gradual {
		text = unmark(text)
		w.parameters = append(w.parameters, parameter{"Release", time.Now().UTC().Format(releaseForm)})
	}
	config, err := os.ReadFile(filepath.Join(root, "samconfig.toml"))
	if err != nil {
		return err
	}
	given, err := settled(config, text, w)
	if err != nil {
		return err
	}
	sam, err := samcli.Find(root)
	if err != nil {
		return err
	}
	for _, line := range slices.Concat(warnings(w.environment, given), overridden(config, text, w)) {
		fmt.Fprintln(out, "deploy: warning:", line)
	}
	if err := keepAliases(ctx, root, sam, config, w); err != nil {
		return err
	}
	return deployTo(ctx, root, sam, text, given, w)
}

// deployTo has SAM build and deploy with all parameters.
func deployTo(ctx context.Context, root, sam string, text []byte, given []parameter, w wish) error {
	source := filepath.Join(root, "template.yaml")
	if w.gradual {
		if valueOf(given, "Deployment") == "AllAtOnce" {
			text = withoutAlarms(text)
		}
		source = filepath.Join(root, ".aws-sam", "gradual.yaml")
		if err := errors.Join(os.MkdirAll(filepath.Dir(source), 0o755), os.WriteFile(source, text, 0o600)); err != nil {
			return err
		}
	}
	common := []string{"--config-file", filepath.Join(root, "samconfig.toml"), "--config-env", w.section()}
	build := append([]string{"build", "--template-file", source, "--base-dir", root, "--parameter-overrides"}, overrides(given)...)
	if err := command(ctx, root, sam, append(build, common...)...); err != nil {
		return err
	}
	bundle := filepath.Join(root, ".aws-sam", "build")
	if err := checkBundle(bundle, functionsOf(text), valueOf(given, "Architecture")); err != nil {
		return err
	}
	deploy := append([]string{"deploy", "--template-file", filepath.Join(bundle, "template.yaml"), "--parameter-overrides"}, overrides(given)...)
	if w.stack != "" {
		deploy = append(deploy, "--stack-name", w.stack)
	}
	if w.unattended {
		deploy = append(deploy, "--no-confirm-changeset")
	}
	return command(ctx, root, sam, append(deploy, common...)...)
}

// command runs SAM at the terminal: it may ask.
func command(ctx context.Context, root, sam string, arguments ...string) error {
	c := exec.CommandContext(ctx, sam, arguments...)
	c.Dir, c.Env = root, append(os.Environ(), "SAM_CLI_TELEMETRY=0")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("sam %s: %w", arguments[0], err)
	}
	return nil
}
