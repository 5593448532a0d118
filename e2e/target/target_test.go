package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/local"
	"mobilegateway/shared/awsclient"
	"mobilegateway/world/lambda"
	"mobilegateway/world/secrets"
)

// TestStackIsRefused checks which stacks must not be tested.
func TestStackIsRefused(t *testing.T) {
	const sandbox = "https://sandbox.example.com"
	cases := map[string]struct {
		outputs map[string]string
		secret  string
		want    string
	}{
		"a developer's stack": {map[string]string{"Stage": "dev"}, "", ""},
		"seeded before": {map[string]string{"Stage": "dev"},
			`{"orange":{"current":"a","accounts":{"a":{"base_url":"` + sandbox + `"}}}}`, ""},
		"production":           {map[string]string{"Stage": "prod"}, "", "prod"},
		"production, numbered": {map[string]string{"Stage": "prod2"}, "", "prod2"},
		"live":                 {map[string]string{"Stage": "live"}, "", "live"},
		"another template":     {map[string]string{}, "", "not a stack of this template"},
		"with a real operator": {map[string]string{"Stage": "staging"},
			`{"orange":{"accounts":{"a":{"base_url":"https://api.operator.example"}}}}`, "another platform"},
		"with invalid credentials": {map[string]string{"Stage": "dev"}, `[]`, "expected form"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := checkStageAllowed(c.outputs)
			if err == nil {
				err = checkOnlySandbox([]byte(c.secret), sandbox)
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestSeededStackIsCheckedAgain checks a stack that was seeded for tests and has a real operator by now.
func TestSeededStackIsCheckedAgain(t *testing.T) {
	store, err := secrets.Open(filepath.Join(t.TempDir(), "secrets.json"), time.Now, lambda.NewRequestID)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(store)
	t.Cleanup(server.Close)
	variables := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "b",
		"AWS_ENDPOINT_URL": server.URL, "SANDBOX_URL": "https://sandbox.example.com", "SANDBOX_TOKEN": "t",
		"INBOX_URL": "https://inbox.example.com",
	}
	variable := func(name string) string { return variables[name] }
	outputs := map[string]string{"Stage": "dev", "OperatorSecret": "operators",
		"BaseUrl": "https://abc123.execute-api.eu-west-1.amazonaws.com/dev"}
	root := t.TempDir()
	path := filepath.Join(root, ".local", "e2e-target", "own", "run.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := awsclient.New(variable)
	if err != nil {
		t.Fatal(err)
	}
	putOperatorSecret := func(base string) {
		text := `{"orange":{"accounts":{"a":{"base_url":"` + base + `"}}}}`
		err := local.Deployment{Client: client}.UpdateSecret(t.Context(), "operators", nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Ensure("operators"); err != nil {
		t.Fatal(err)
	}
	putOperatorSecret(variables["SANDBOX_URL"])
	if got, err := seededRunJSON(t.Context(), root, variable, "own", outputs); err != nil || got != path {
		t.Errorf("run.json %q, %v; want %q", got, err, path)
	}
	putOperatorSecret("https://api.operator.example")
	if _, err := seededRunJSON(t.Context(), root, variable, "own", outputs); err == nil ||
		!strings.Contains(err.Error(), "another platform") {
		t.Errorf("a stack with a real operator is tested: %v", err)
	}
}

// TestBaseURL checks where a stack's API is reached.
func TestBaseURL(t *testing.T) {
	outputs := map[string]string{"BaseUrl": "https://abc123.execute-api.eu-west-1.amazonaws.com/dev"}
	cases := map[string]struct {
		variables map[string]string
		want      string
	}{
		"the stage's": {nil, outputs["BaseUrl"]},
		"LocalStack's": {map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:4566/"},
			"http://127.0.0.1:4566/_aws/execute-api/abc123/dev"},
		"a domain": {map[string]string{"BASE_URL": "https://api.example.com/"}, "https://api.example.com"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := baseURL(outputs, func(name string) string { return c.variables[name] })
			if err != nil || got != c.want {
				t.Errorf("base URL %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestMissingSettings checks that a missing target or variable is an error.
func TestMissingSettings(t *testing.T) {
	if err := runStories(t.Context(), ".", func(string) string { return "" }, nil); err == nil {
		t.Error("no error without a target")
	}
	_, err := deploymentOf(map[string]string{}, func(string) string { return "" })
	if err == nil || !strings.Contains(err.Error(), "SANDBOX_URL") {
		t.Error(err)
	}
	for text, want := range map[string]bool{`{"pids":{"run":17}}`: true, `{"pids":{"run":0}}`: false, `{}`: false} {
		path := filepath.Join(t.TempDir(), "run.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := isLocalRun(path); err != nil || got != want {
			t.Errorf("%s: local run %v, %v; want %v", text, got, err, want)
		}
	}
}
