package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"mobilegateway/deploy/preflight"
)

// fakeSAM records its arguments and prints the given stack outputs; after a deployment it prints those of a whole
// stack. Its build copies one program to every function. It records the deployment of the alarms in a log of its own.
const fakeSAM = `#!/bin/sh
if [ "$1" = list ]; then
  case "$*" in
    *-data*) ;;
    *) grep -qs "^deploy .*/build/template.yaml" "$FAKE_LOG" && echo "$FAKE_DEPLOYED" && exit;;
  esac
  echo "$@" >> "$FAKE_LOG.list"
  echo "$FAKE_STDERR" >&2
  [ -n "$FAKE_OUTPUTS" ] && echo "$FAKE_OUTPUTS" || exit 1
  exit
fi
case "$*" in *deploy/alarms.yaml*) echo "$@" >> "$FAKE_LOG.alarms"; exit;; esac
echo "$@" >> "$FAKE_LOG"
case "$*" in *account.yaml*)
  failed=$(cat "$FAKE_LOG.role" 2>/dev/null)
  [ "$failed" = "$FAKE_ROLE_FAILURES" ] && exit 0
  printf x >> "$FAKE_LOG.role"
  exit 1;;
esac
[ "$1" = build ] || exit 0
mkdir -p .aws-sam/build && cp template.yaml .aws-sam/build/template.yaml
for name in $FAKE_FUNCTIONS; do
  mkdir -p ".aws-sam/build/$name" && cp "$FAKE_PROGRAM" ".aws-sam/build/$name/bootstrap"
done
`

// dataOutputs are the outputs of a stack with data.
const dataOutputs = `[{"OutputKey":"LedgerStreamArn","OutputValue":"` + ledgerStream + `"}]`

const ledgerStream = "arn:aws:dynamodb:eu-west-1:123456789012:table/ledger/stream/2026-11-21T00:00:00.000"

// testCheckout is a folder with the files of a deployment and a SAM that only records its calls.
type testCheckout struct{ root, log string }

func newTestCheckout(t *testing.T, program string) testCheckout {
	t.Helper()
	s := testCheckout{root: t.TempDir()}
	s.log = filepath.Join(s.root, "log")
	for _, name := range []string{"template.yaml", "samconfig.toml", "deploy/alarms.yaml"} {
		path := filepath.Join(s.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, read(t, name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	tools := filepath.Join(s.root, "tools")
	if err := os.Mkdir(tools, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tools, "sam"), []byte(fakeSAM), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("FAKE_LOG", s.log)
	t.Setenv("FAKE_OUTPUTS", "")
	t.Setenv("FAKE_STDERR", "Error: The input stack x does not exist on Cloudformation in the region eu-west-1")
	t.Setenv("FAKE_DEPLOYED", wholeOutputs(t))
	t.Setenv("FAKE_PROGRAM", program)
	t.Setenv("FAKE_FUNCTIONS", strings.Join(mustReadTemplate(t).functions(), " "))
	return s
}

// system returns a system without a terminal, whose account is ready for each deployment.
func (s testCheckout) system() system {
	return system{out: io.Discard, preflight: func(context.Context, preflight.Target) (preflight.Report, error) {
		return preflight.Report{}, nil
	}, protect: func(context.Context, string, string) error { return nil },
		protectData: func(context.Context, string, string) error { return nil }}
}

// keepProd writes the file of prod.
func (s testCheckout) keepProd(t *testing.T, text string) {
	t.Helper()
	s.keep(t, "prod", text)
}

// keep writes the file of an environment.
func (s testCheckout) keep(t *testing.T, environment, text string) {
	t.Helper()
	path := filepath.Join(s.root, environmentPath(environment))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// prodFile is a complete file of prod.
const prodFile = `account = "123456789012"
region = "eu-west-1"

[parameters]
ServiceId = "S"
ApplicationId = "A"
ContactId = "C"
`

// calls returns the recorded calls of SAM.
func (s testCheckout) calls(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// wholeOutputs returns the outputs of template.yaml as SAM prints them, each with its own name as the value.
func wholeOutputs(t *testing.T) string {
	t.Helper()
	var root struct {
		Outputs map[string]yaml.Node `yaml:"Outputs"`
	}
	if err := yaml.Unmarshal(read(t, "template.yaml"), &root); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for name := range root.Outputs {
		rows = append(rows, map[string]string{"OutputKey": name, "OutputValue": name})
	}
	text, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
