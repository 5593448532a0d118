package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyWhatMayBeTested(t *testing.T) {
	const sandbox = "https://sandbox.example.com"
	cases := map[string]struct {
		outputs map[string]string
		secret  string
		want    string
	}{
		"a stack of one's own":   {map[string]string{"Stage": "dev"}, "", ""},
		"furnished before":       {map[string]string{"Stage": "dev"}, `{"orange":{"current":"a","accounts":{"a":{"base_url":"` + sandbox + `"}}}}`, ""},
		"production":             {map[string]string{"Stage": "prod"}, "", "prod"},
		"another template":       {map[string]string{}, "", "no stack of this template"},
		"somebody's":             {map[string]string{"Stage": "staging"}, `{"orange":{"accounts":{"a":{"base_url":"https://api.operator.example"}}}}`, "another platform"},
		"credentials of no form": {map[string]string{"Stage": "dev"}, `[]`, "not of the form"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := testable(c.outputs)
			if err == nil {
				err = onlySandbox([]byte(c.secret), sandbox)
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestBaseURL(t *testing.T) {
	found := map[string]string{"BaseUrl": "https://abc123.execute-api.eu-west-1.amazonaws.com/dev"}
	cases := map[string]struct {
		variables map[string]string
		want      string
	}{
		"the stage's own": {nil, found["BaseUrl"]},
		"LocalStack's":    {map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:4566/"}, "http://127.0.0.1:4566/_aws/execute-api/abc123/dev"},
		"a domain":        {map[string]string{"BASE_URL": "https://api.example.com/"}, "https://api.example.com"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := baseURL(found, func(name string) string { return c.variables[name] })
			if err != nil || got != c.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func TestWhatItNeeds(t *testing.T) {
	if err := run(t.Context(), ".", func(string) string { return "" }, nil); err == nil {
		t.Error("no target, and no complaint")
	}
	_, err := deployment(map[string]string{}, func(string) string { return "" })
	if err == nil || !strings.Contains(err.Error(), "SANDBOX_URL") {
		t.Error(err)
	}
	for text, want := range map[string]bool{`{"pids":{"run":17}}`: true, `{"pids":{"run":0}}`: false, `{}`: false} {
		path := filepath.Join(t.TempDir(), "run.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := isLocalRun(path); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
