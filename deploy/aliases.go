package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/BurntSushi/toml"

	"mobilegateway/internal/samcli"
)

// aliasOutput is the output that template.yaml has in its gradual form alone.
const aliasOutput = "Alias"

// refuseAliasLoss refuses a deployment all at once of a stack that has aliases: it would take them away, and with them the
// version before, to which nobody could go back.
func refuseAliasLoss(ctx context.Context, root, sam string, config []byte, w deployOptions) error {
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
	found, err := samcli.StackOutputs(ctx, root, sam, stack, outputsArguments(root, file, w.configSection())...)
	if errors.Is(err, samcli.ErrStackNotFound) {
		return nil
	}
	if err != nil { // of the deployment too: it asks the same service with the same rights
		return fmt.Errorf("whether the stack has aliases: %w", err)
	}
	if found[aliasOutput] != "" {
		return fmt.Errorf("%s was deployed step by step, and this would take its aliases away, all at once: GRADUAL=1, or DROP_ALIASES=1 where that is meant", stack)
	}
	return nil
}

// stackName is the stack that is deployed to.
func (w deployOptions) stackName(file map[string]any) (string, error) {
	if w.stack != "" {
		return w.stack, nil
	}
	name, _ := nestedValue(file, w.configSection(), "global", "parameters", "stack_name").(string)
	if name == "" {
		return "", fmt.Errorf("samconfig.toml names no stack of %s", w.environment)
	}
	return name, nil
}

// outputsArguments is where SAM is to look for the outputs: the file and section that a deployment goes by, with the region and the
// profile that somebody gave to the deployment alone.
func outputsArguments(root string, file map[string]any, section string) []string {
	found := []string{"--config-file", filepath.Join(root, "samconfig.toml"), "--config-env", section}
	for _, name := range [...]string{"region", "profile"} {
		if value, _ := nestedValue(file, section, "deploy", "parameters", name).(string); value != "" {
			found = append(found, "--"+name, value)
		}
	}
	return found
}
