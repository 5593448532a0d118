package samcli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/deploy/samcli"
)

// outputsFrom writes a script in place of sam, with fixed output and exit status. It stores its arguments.
func outputsFrom(t *testing.T, out, stderr, status string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sam")
	script := "#!/bin/sh\necho \"$*\" >\"$0.arguments\"\n" +
		"cat <<'END'\n" + out + "\nEND\ncat >&2 <<'END'\n" + stderr + "\nEND\nexit " + status + "\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOutputs(t *testing.T) {
	outputs := `[{"OutputKey":"Stage","OutputValue":"dev"},{"OutputKey":"Alias","OutputValue":"live"}]`
	sam := outputsFrom(t, outputs, "a warning", "0")
	found, err := samcli.StackOutputs(t.Context(), t.TempDir(), sam, "mine", "--region", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(map[string]string{"Stage": "dev", "Alias": "live"}, found); difference != "" {
		t.Errorf("the outputs differ (-want +got):\n%s", difference)
	}
	arguments, _ := os.ReadFile(sam + ".arguments")
	const want = "list stack-outputs --output json --stack-name mine --region eu-west-1"
	if got := strings.TrimSpace(string(arguments)); got != want {
		t.Errorf("sam got the arguments %q, want %q", got, want)
	}
	for stderr, none := range map[string]bool{
		"Error: The input stack a does not exist on Cloudformation in the region b":           true,
		"Error: Outputs do not exist for the input stack a on Cloudformation in the region b": true,
		"Error: denied": false,
	} {
		_, err := samcli.StackOutputs(t.Context(), t.TempDir(), outputsFrom(t, "", stderr, "1"), "mine")
		if errors.Is(err, samcli.ErrStackNotFound) != none {
			t.Errorf("for %q the error is %v, want ErrStackNotFound: %v", stderr, err, none)
		}
		if !none && (err == nil || !strings.Contains(err.Error(), stderr)) {
			t.Errorf("the error is %v, want SAM's message %q in it", err, stderr)
		}
	}
	if _, err := samcli.StackOutputs(t.Context(), t.TempDir(), outputsFrom(t, "?", "", "0"), "mine"); err == nil {
		t.Error("malformed output gave no error")
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	t.Setenv("PATH", root)
	if _, err := samcli.Find(root); err == nil || !strings.Contains(err.Error(), "e2e/tools/install sam") {
		t.Errorf("without sam the error is %v, want how to install it", err)
	}
	own := filepath.Join(root, ".local", "tools", "sam-cli", "bin", "sam")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := samcli.Find(root); err != nil || got != own {
		t.Errorf("the checkout's sam is found at %q, %v, want %q", got, err, own)
	}
	onPath := filepath.Join(root, "sam")
	if err := os.WriteFile(onPath, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := samcli.Find(root); err != nil || got != onPath {
		t.Errorf("sam on the PATH is found at %q, %v, want %q", got, err, onPath)
	}
}
