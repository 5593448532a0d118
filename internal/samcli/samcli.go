// Package samcli finds the AWS SAM CLI and asks it what a stack says of itself.
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

// ErrStackNotFound says that there is no such stack, or none that was ever deployed to its end.
var ErrStackNotFound = errors.New("the stack is not there, or was never deployed to its end")

// stackNotFoundMessages are SAM's words for it.
var stackNotFoundMessages = [...]string{"does not exist on Cloudformation", "Outputs do not exist"}

// Find is the program on the PATH, else the pinned one of the checkout at root. The error says how to install it.
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

// StackOutputs are a stack's outputs by name. arguments are what sam list is told of where it is. The error is ErrStackNotFound where
// there is no stack, else what SAM said.
func StackOutputs(ctx context.Context, root, sam, stack string, arguments ...string) (map[string]string, error) {
	command := exec.CommandContext(ctx, sam, append([]string{"list", "stack-outputs", "--output", "json", "--stack-name", stack}, arguments...)...)
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
	var list []struct{ OutputKey, OutputValue string }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the stack's outputs: %w", err)
	}
	found := map[string]string{}
	for _, output := range list {
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
