// Package samcli finds the AWS SAM CLI and reads a stack's outputs with it.
package samcli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrStackNotFound is the error for a stack that does not exist or was never deployed completely.
var ErrStackNotFound = errors.New("the stack does not exist or was never deployed completely")

// stackNotFoundMessages are SAM's messages for it.
var stackNotFoundMessages = [...]string{"does not exist on Cloudformation", "Outputs do not exist"}

// Find returns the path of sam: the one on the PATH, else the pinned one of the checkout at root.
func Find(root string) (string, error) {
	if path, err := exec.LookPath("sam"); err == nil {
		return path, nil
	}
	path := filepath.Join(root, ".local", "tools", "sam-cli", "bin", "sam")
	if _, err := os.Stat(path); err != nil {
		return "", errors.New("sam is not on the PATH: install the AWS SAM CLI, or run e2e/tools/install sam")
	}
	return path, nil
}

// StackOutputs returns a stack's outputs by name. arguments are further options of sam list, such as the region. It
// returns ErrStackNotFound if there is no such stack, else an error with SAM's message.
func StackOutputs(ctx context.Context, root, sam, stack string, arguments ...string) (map[string]string, error) {
	list := append([]string{"list", "stack-outputs", "--output", "json", "--stack-name", stack}, arguments...)
	command := exec.CommandContext(ctx, sam, list...)
	command.Dir, command.Env = root, append(os.Environ(), "SAM_CLI_TELEMETRY=0")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	text, err := command.Output()
	for _, message := range stackNotFoundMessages {
		if err != nil && strings.Contains(stderr.String(), message) {
			return nil, ErrStackNotFound
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var outputs []struct{ OutputKey, OutputValue string }
	if err := json.Unmarshal(text, &outputs); err != nil {
		return nil, fmt.Errorf("decode the outputs of the stack %s: %w", stack, err)
	}
	found := map[string]string{}
	for _, output := range outputs {
		found[output.OutputKey] = output.OutputValue
	}
	return found, nil
}

// ParameterOverrides returns parameters for SAM's --parameter-overrides, in the form that accepts empty values too.
func ParameterOverrides(parameters map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		list = append(list, "ParameterKey="+name+",ParameterValue="+parameters[name])
	}
	return list
}
