package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// aliasOutput is the output that template.yaml has in its gradual form alone.
const aliasOutput = "Alias"

// keepAliases refuses a deployment all at once of a stack that has aliases: it would take them away, and with them the
// version before, to which nobody could go back.
func keepAliases(ctx context.Context, root, sam string, config []byte, w wish) error {
	if w.gradual || w.dropAliases {
		return nil
	}
	var file map[string]any
	if err := toml.Unmarshal(config, &file); err != nil {
		return err
	}
	stack, err := w.stackName(file)
	if err != nil {
		return err
	}
	found, err := outputs(ctx, root, sam, append([]string{"--stack-name", stack}, place(file, w.section())...))
	if err != nil {
		return err
	}
	if found[aliasOutput] != "" {
		return fmt.Errorf("%s was deployed step by step, and this would take its aliases away, all at once: GRADUAL=1, or DROP_ALIASES=1 where that is meant", stack)
	}
	return nil
}

// stackName is the stack that is deployed to.
func (w wish) stackName(file map[string]any) (string, error) {
	if w.stack != "" {
		return w.stack, nil
	}
	name, _ := under(file, w.section(), "global", "parameters", "stack_name").(string)
	if name == "" {
		return "", fmt.Errorf("samconfig.toml names no stack of %s", w.environment)
	}
	return name, nil
}

// place are the region and the profile that somebody gave to the deployment alone: SAM would look elsewhere for the outputs.
func place(file map[string]any, section string) []string {
	var found []string
	for _, name := range [...]string{"region", "profile"} {
		if value, _ := under(file, section, "deploy", "parameters", name).(string); value != "" {
			found = append(found, "--"+name, value)
		}
	}
	return append(found, "--config-env", section)
}

// absent are the words by which SAM says that there is no such stack, or none that was ever deployed to its end.
var absent = [...]string{"does not exist on Cloudformation", "Outputs do not exist"}

// outputs asks SAM for a stack's outputs; none where there is no stack. Any other failure is one of the deployment: it asks
// the same service with the same rights.
func outputs(ctx context.Context, root, sam string, of []string) (map[string]string, error) {
	ask := exec.CommandContext(ctx, sam, append([]string{"list", "stack-outputs", "--output", "json", "--config-file", filepath.Join(root, "samconfig.toml")}, of...)...)
	ask.Dir, ask.Env = root, append(os.Environ(), "SAM_CLI_TELEMETRY=0")
	var complaint bytes.Buffer
	ask.Stderr = &complaint
	text, err := ask.Output()
	for _, words := range absent {
		if err != nil && strings.Contains(complaint.String(), words) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("whether the stack has aliases: %w", errors.Join(err, errors.New(strings.TrimSpace(complaint.String()))))
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
