package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// environmentFile is deploy/environments/ENV.toml: where an environment is, and the parameters that stay. Git ignores
// it, because it names an account.
type environmentFile struct {
	Account    string     `toml:"account"` // 12 digits
	Region     string     `toml:"region"`
	Parameters parameters `toml:"parameters"`

	exists bool
}

// environmentPath returns the path of an environment's file in the checkout.
func environmentPath(environment string) string {
	return filepath.Join("deploy", "environments", environment+".toml")
}

var (
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
	regionForm  = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`)
)

// readEnvironment reads an environment's file. Without one it returns an empty value.
func readEnvironment(root, environment string) (environmentFile, error) {
	path := environmentPath(environment)
	e := environmentFile{exists: true}
	found, err := toml.DecodeFile(filepath.Join(root, path), &e)
	if errors.Is(err, fs.ErrNotExist) {
		return environmentFile{}, nil
	}
	if err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	if unknown := found.Undecoded(); len(unknown) > 0 {
		return e, fmt.Errorf("%s: unknown key %s: use account, region and [parameters]", path, unknown[0])
	}
	if err := e.check(); err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

func (e environmentFile) check() error { return cmp.Or(checkAccount(e.Account), checkRegion(e.Region)) }

func checkAccount(account string) error {
	if !accountForm.MatchString(account) {
		return fmt.Errorf("account must be the 12 digits of an AWS account, not %q", account)
	}
	return nil
}

func checkRegion(region string) error {
	if !regionForm.MatchString(region) {
		return fmt.Errorf("region must be a region such as eu-west-1, not %q", region)
	}
	return nil
}

// write keeps the file. It never replaces one.
func (e environmentFile) write(root, environment string) error {
	path := filepath.Join(root, environmentPath(environment))
	var text strings.Builder
	fmt.Fprintf(&text, "# The environment %s, kept by make deploy (docs/deploy.md). Git ignores this file.\n",
		environment)
	fmt.Fprintf(&text, "account = %q\nregion = %q\n\n[parameters]\n", e.Account, e.Region)
	for _, name := range slices.Sorted(maps.Keys(e.Parameters)) {
		fmt.Fprintf(&text, "%s = %q\n", name, e.Parameters[name])
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text.String())
	return errors.Join(err, file.Close())
}

// question is one prompt of the first deployment of an environment.
type question struct {
	name, text string
	optional   bool
	only       string // prompted for only if this parameter has a value
}

var questions = []question{
	{name: "account", text: "AWS account"},
	{name: "region", text: "Region"},
	{name: "ServiceId", text: "ServiceId, from the operators"},
	{name: "ApplicationId", text: "ApplicationId, from the operators"},
	{name: "ContactId", text: "ContactId, from the operators"},
	{name: "AlarmTopicArn", text: "ARN of the SNS topic for alarms", optional: true},
	{name: "DomainName", text: "Domain for merchants", optional: true},
	{name: "CertificateArn", text: "ARN of its certificate in ACM", only: "DomainName"},
}

// promptEnvironment prompts for what an environment needs, and prompts again after a value that cannot be used.
// offered are the values that an empty line takes.
func promptEnvironment(in io.Reader, out io.Writer, known templateFile, offered map[string]string) (environmentFile,
	error) {
	e := environmentFile{Parameters: parameters{}, exists: true}
	lines := bufio.NewScanner(in)
	for _, q := range questions {
		if q.only != "" && e.Parameters[q.only] == "" {
			continue
		}
		value, err := q.prompt(lines, out, known, offered[q.name])
		if err != nil {
			return e, err
		}
		switch {
		case q.name == "account":
			e.Account = value
		case q.name == "region":
			e.Region = value
		case value != "":
			e.Parameters[q.name] = value
		}
	}
	return e, nil
}

func (q question) prompt(lines *bufio.Scanner, out io.Writer, known templateFile, offered string) (string, error) {
	hint := ""
	switch {
	case offered != "":
		hint = " [" + offered + "]"
	case q.optional:
		hint = " (empty for none)"
	}
	for {
		fmt.Fprintf(out, "%s%s: ", q.text, hint)
		if !lines.Scan() {
			return "", errors.Join(errors.New("the input ended early, and nothing was kept"), lines.Err())
		}
		value := cmp.Or(strings.TrimSpace(lines.Text()), offered)
		if value == "" && q.optional {
			return "", nil
		}
		if err := q.check(known, value); err != nil {
			fmt.Fprintf(out, "  %v\n", err)
			continue
		}
		return value, nil
	}
}

func (q question) check(known templateFile, value string) error {
	switch {
	case value == "":
		return fmt.Errorf("%s must not be empty", q.name)
	case q.name == "account":
		return checkAccount(value)
	case q.name == "region":
		return checkRegion(value)
	}
	return known.checkParameter(q.name, value)
}
