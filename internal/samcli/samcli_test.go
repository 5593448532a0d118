package samcli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobilegateway/internal/samcli"
)

// outputsFrom makes a SAM that says something and ends with a status.
func outputsFrom(t *testing.T, out, stderr, status string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sam")
	script := "#!/bin/sh\necho \"$*\" >\"$0.asked\"\ncat <<'END'\n" + out + "\nEND\ncat >&2 <<'END'\n" + stderr + "\nEND\nexit " + status + "\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOutputs(t *testing.T) {
	sam := outputsFrom(t, `[{"OutputKey":"Stage","OutputValue":"dev"},{"OutputKey":"Alias","OutputValue":"live"}]`, "a warning", "0")
	found, err := samcli.StackOutputs(t.Context(), t.TempDir(), sam, "mine", "--region", "eu-west-1")
	if err != nil || found["Stage"] != "dev" || found["Alias"] != "live" {
		t.Errorf("%v, %v", found, err)
	}
	asked, _ := os.ReadFile(sam + ".asked")
	if got := strings.TrimSpace(string(asked)); got != "list stack-outputs --output json --stack-name mine --region eu-west-1" {
		t.Errorf("asked %q", got)
	}
	for stderr, none := range map[string]bool{
		"Error: The input stack a does not exist on Cloudformation in the region b":           true,
		"Error: Outputs do not exist for the input stack a on Cloudformation in the region b": true,
		"Error: denied": false,
	} {
		_, err := samcli.StackOutputs(t.Context(), t.TempDir(), outputsFrom(t, "", stderr, "1"), "mine")
		if errors.Is(err, samcli.ErrStackNotFound) != none || !none && (err == nil || !strings.Contains(err.Error(), stderr)) {
			t.Errorf("%s: %v", stderr, err)
		}
	}
	if _, err := samcli.StackOutputs(t.Context(), t.TempDir(), outputsFrom(t, "?", "", "0"), "mine"); err == nil {
		t.Error("an answer of no form, and no complaint")
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	t.Setenv("PATH", root)
	if _, err := samcli.Find(root); err == nil || !strings.Contains(err.Error(), "e2e/tools/install sam") {
		t.Errorf("%v", err)
	}
	own := filepath.Join(root, ".local", "tools", "sam-cli", "bin", "sam")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := samcli.Find(root); err != nil || got != own {
		t.Errorf("%q, %v", got, err)
	}
	onPath := filepath.Join(root, "sam")
	if err := os.WriteFile(onPath, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := samcli.Find(root); err != nil || got != onPath {
		t.Errorf("%q, %v", got, err)
	}
}
